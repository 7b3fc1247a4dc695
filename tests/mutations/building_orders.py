"""Faults of the builders of orders: ORDER BY, LIMIT, windows and first rows.

Each is broken where it decides which rows come first, and in which partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from everview.plan.relations import (
    Relation,
    TopK,
)
from tests.mutations.building import module, staged
from tests.mutations.mutant import Mutant, given, instead, returned, wrapped
from tests.mutations.targets import Builder

FIRST = "SELECT customer, id FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount, id) < 3"
BETWEEN = "SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY amount, id) BETWEEN 2 AND 4"
RANKED = "SELECT id, amount FROM orders QUALIFY rank() OVER (ORDER BY amount) <= 3"
LATER = "SELECT id, amount FROM orders ORDER BY 2 DESC NULLS FIRST, 1 LIMIT 3 OFFSET 1"
SUMS = "SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY amount) AS s FROM orders"
NUMBERS = "SELECT id, lag(amount) OVER (PARTITION BY customer ORDER BY amount DESC, id) AS p FROM orders"


def _no_offset(node: Relation) -> Relation:
    return replace(node, offset=0) if isinstance(node, TopK) else node


def _sorted(**other: Any) -> Callable[[Relation], Relation]:
    return lambda node: (
        replace(node, order=tuple(replace(sort, **other) for sort in node.order)) if isinstance(node, TopK) else node
    )


def _last_condition(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda condition: real(condition)[:-1] if len(real(condition)) > 1 else real(condition)


def _without(tree: exp.Expr, part: str) -> exp.Expr:
    changed = tree.copy()
    changed.set(part, None)
    return changed


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "< is <=",
        Builder.FIRST_ROWS,
        wrapped(
            module(Builder.FIRST_ROWS),
            "as_first",
            lambda real: (
                lambda condition: (
                    (found := real(condition)) and replace(found, limit=found.limit + isinstance(condition, exp.LT))
                )
            ),
        ),
        (FIRST,),
    ),
    Mutant(
        "rank() is row_number()",
        Builder.FIRST_ROWS,
        instead(module(Builder.FIRST_ROWS).First, "ties", property(lambda self: False)),
        (RANKED,),
    ),
    Mutant(
        "BETWEEN begins with the first row",
        Builder.FIRST_ROWS,
        wrapped(
            module(Builder.FIRST_ROWS),
            "as_first",
            lambda real: lambda condition: (found := real(condition)) and replace(found, exact=True),
        ),
        (BETWEEN,),
    ),
    Mutant(
        "the first rows of all partitions",
        Builder.FIRST_ROWS,
        staged(
            Builder.FIRST_ROWS,
            "keep_first",
            lambda node: replace(node, partition=()) if isinstance(node, TopK) else node,
        ),
        (FIRST,),
    ),
    Mutant("OFFSET is ignored", Builder.ORDER, staged(Builder.ORDER, "limited", _no_offset), (LATER,)),
    Mutant(
        "NULLS FIRST is ignored", Builder.ORDER, staged(Builder.ORDER, "limited", _sorted(nulls_first=False)), (LATER,)
    ),
    Mutant("DESC is ignored", Builder.ORDER, staged(Builder.ORDER, "limited", _sorted(descending=False)), (LATER,)),
    Mutant(
        "LIMIT is one more",
        Builder.ORDER,
        returned(module(Builder.ORDER), "limit_of", lambda found: (found[0] and found[0] + 1, found[1])),
        (LATER,),
    ),
    Mutant(
        "the last condition is lost",
        Builder.QUERY_SCOPES,
        wrapped(module(Builder.FROM_CLAUSE), "conjuncts", _last_condition),
        ("SELECT id FROM orders WHERE amount > 1 AND customer > 1",),
    ),
    Mutant(
        "sorts lose their direction",
        Builder.QUERY_SCOPES,
        returned(module(Builder.QUERY_SCOPES), "as_sort", lambda sort: replace(sort, descending=False)),
        (LATER,),
    ),
    Mutant(
        "the key settles ties the other way round",
        Builder.QUERY_SCOPES,
        returned(module(Builder.ORDER), "by_key", lambda sorts: sorts[::-1]),
        (LATER,),
    ),
    Mutant(
        "the partition is lost",
        Builder.WINDOWS,
        given(
            module(Builder.WINDOWS),
            "_call",
            lambda stage, tree, text, links: (stage, _without(tree, "partition_by"), text, links),
        ),
        (NUMBERS, SUMS),
    ),
    Mutant(
        "the order is lost",
        Builder.WINDOWS,
        given(
            module(Builder.WINDOWS),
            "_call",
            lambda stage, tree, text, links: (stage, _without(tree, "order"), text, links),
        ),
        (SUMS,),
    ),
    Mutant(
        "the frame is lost",
        Builder.WINDOWS,
        given(
            module(Builder.WINDOWS),
            "_call",
            lambda stage, tree, text, links: (stage, _without(tree, "spec"), text, links),
        ),
        ("SELECT id, count(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM orders",),
    ),
    Mutant(
        "peers get different ranks",
        Builder.WINDOWS,
        instead(module(Builder.WINDOWS), "_ONE_BY_ONE", frozenset({"row_number", "lag", "lead", "ntile", "sum"})),
        (SUMS,),
    ),
)
