"""Faults of the builders of clauses.

Each is broken where it decides what a group, a call, DISTINCT or a set operation means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from sqlglot import exp

from everview.plan.expressions import Expr
from everview.plan.relations import (
    Distinct,
    SetKind,
    SetOperation,
)
from tests.mutations.building import module, texts
from tests.mutations.building_orders import BETWEEN, FIRST
from tests.mutations.mutant import Mutant, entry, instead, returned, wrapped
from tests.mutations.targets import Builder

SUMMED = "SELECT a, sum(b) AS s FROM visits GROUP BY a HAVING count(*) > 1"
ROLLED = "SELECT a, b, count(*) AS n FROM visits GROUP BY ROLLUP (a, b)"
CUBED = "SELECT a, b, grouping(a, b) AS g, count(*) AS n FROM visits GROUP BY CUBE (a, b)"
PICKED = "SELECT customer, list(amount ORDER BY id DESC) AS l FROM orders GROUP BY customer"
EXCEPT_ALL = "SELECT a FROM visits EXCEPT ALL SELECT score FROM customers"
COLLATED = "SELECT status COLLATE nocase AS s, count(*) AS n FROM orders GROUP BY status COLLATE nocase"
NOCASE = "SELECT o.id, c.id AS c FROM orders AS o JOIN customers AS c ON o.status COLLATE nocase = c.name"
PERCENT = "SELECT a FROM visits ORDER BY a LIMIT 40 PERCENT"


def _called(**other: Any) -> Callable[[Any], Any]:
    return lambda call: replace(call, **other)


def _no_having(made: Any) -> None:
    return None


def _as_distinct(found: Any) -> Any:
    relation = found.relation
    if isinstance(relation, Distinct):
        return replace(found, relation=relation.input)
    return found


def _no_copies(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text, fields, copy: real(f"SELECT DISTINCT * FROM ({text})", fields, copy)


def _null_of(tree: exp.Expr) -> exp.Expr:
    changed = tree.copy()
    for column in list(changed.find_all(exp.Column)):
        if column.name == "y":
            column.replace(exp.Null())
    return changed


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a column is taken for NULL",
        Builder.BARE_NULLS,
        returned(import_module("everview.plan.build"), "without_bare_nulls", _null_of),
        ("SELECT q.x, q.y FROM (SELECT a AS x, b AS y FROM visits) AS q",),
    ),
    Mutant(
        "every column beside a NULL is NULL",
        Builder.BARE_NULLS,
        instead(module(Builder.BARE_NULLS), "_bare", lambda output: True),
        ("SELECT coalesce(q.y, q.x) AS z, q.x FROM (SELECT a AS x, NULL AS y FROM visits) AS q",),
    ),
    Mutant(
        "DISTINCT of an aggregate is lost",
        Builder.FUNCTION_CALLS,
        returned(module(Builder.FUNCTION_CALLS), "aggregate", _called(distinct=False)),
        ("SELECT a, count(DISTINCT b) AS n FROM visits GROUP BY a",),
    ),
    Mutant(
        "FILTER of an aggregate is lost",
        Builder.FUNCTION_CALLS,
        returned(module(Builder.FUNCTION_CALLS), "aggregate", _called(filter=None)),
        ("SELECT a, count(b) FILTER (WHERE b > 1) AS n FROM visits GROUP BY a",),
    ),
    Mutant(
        "the order of an aggregate is lost",
        Builder.FUNCTION_CALLS,
        returned(module(Builder.FUNCTION_CALLS), "_with_order", texts(" DESC", "")),
        (PICKED,),
    ),
    Mutant(
        "everything is a sum",
        Builder.FUNCTION_CALLS,
        wrapped(
            module(Builder.FUNCTION_CALLS),
            "aggregate",
            lambda real: (
                lambda *args: replace(call, function="sum") if (call := real(*args)).function == "avg" else call
            ),
        ),
        ("SELECT a, avg(b) AS m FROM visits GROUP BY a",),
    ),
    Mutant(
        "structs have ends",
        Builder.FUNCTION_CALLS,
        instead(module(Builder.FUNCTION_CALLS), "has_ends", lambda kind: True),
        ("SELECT a, max(s) AS h, min(s) AS l FROM points GROUP BY a",),
    ),
    Mutant(
        "INTERVALs have ends",
        Builder.FUNCTION_CALLS,
        instead(module(Builder.FUNCTION_CALLS), "has_ends", lambda kind: True),
        (
            "SELECT a, CAST(max(i) AS VARCHAR) AS h FROM points WHERE CAST(i AS VARCHAR) NOT IN ('1 month', '24:00:00')"
            " GROUP BY a",
        ),
    ),
    Mutant(
        "INTERVALs have ends, of which two are equal",
        Builder.FUNCTION_CALLS,
        instead(module(Builder.FUNCTION_CALLS), "has_ends", lambda kind: True),
        ("SELECT a, CAST(max(i) AS VARCHAR) AS h FROM points GROUP BY a",),
    ),
    Mutant(
        "a collation ends where it stands",
        Builder.COLLATED_COMPARISONS,
        instead(import_module("everview.plan.build"), "escaping", lambda tree: None),
        (COLLATED,),
    ),
    Mutant(
        "text under a collation is compared by its bytes",
        Builder.COLLATED_COMPARISONS,
        instead(
            module(Builder.JOIN_CLAUSES),
            "comparable",
            lambda left, right: (
                Expr(left.sql.replace(" COLLATE NOCASE", "").replace(" COLLATE nocase", ""), left.type),
                right,
            ),
        ),
        (NOCASE,),
    ),
    Mutant(
        "ROLLUP has no total",
        Builder.GROUP_BY,
        returned(module(Builder.GROUP_BY), "_alternatives", lambda sets: sets[:-1] if len(sets) > 1 else sets),
        (ROLLED, CUBED),
    ),
    Mutant(
        "GROUPING has its bits the other way round",
        Builder.GROUP_BY,
        wrapped(
            module(Builder.GROUP_BY),
            "_groupings",
            lambda real: (
                lambda stage, query, texts, number, known: real(
                    stage,
                    query,
                    [one[::-1] if len(one) != 1 else texts[3 - at] for at, one in enumerate(texts)],
                    number,
                    known,
                )
            ),
        ),
        (CUBED,),
    ),
    Mutant(
        "a group column is lost",
        Builder.GROUP_BY,
        returned(module(Builder.GROUP_BY), "_sets", lambda sets: [[one[0], one[0]] for one in sets]),
        ("SELECT count(*) AS n FROM visits GROUP BY a, b",),
    ),
    Mutant(
        "a query in parentheses loses its limit",
        Builder.QUERIES,
        wrapped(
            module(Builder.QUERIES),
            "_built",
            lambda real: (
                lambda context, query, alias, needed: real(
                    context, query.this if isinstance(query, exp.Subquery) else query, alias, needed
                )
            ),
        ),
        ("(SELECT id, amount FROM orders) ORDER BY amount, id LIMIT 2",),
    ),
    Mutant(
        "only the existence of rows matters",
        Builder.QUERIES,
        wrapped(
            module(Builder.QUERIES),
            "_built",
            lambda real: lambda context, query, alias, needed: real(context, query, alias, False),
        ),
        ("SELECT DISTINCT 1 AS one FROM orders",),
    ),
    Mutant(
        "of equal rows one is kept",
        Builder.REEVALUATE,
        wrapped(module(Builder.REEVALUATE), "_numbered", _no_copies),
        (PERCENT,),
    ),
    Mutant(
        "inputs of a text are exchanged",
        Builder.REEVALUATE,
        wrapped(
            module(Builder.REEVALUATE),
            "over_inputs",
            lambda real: (
                lambda context, query: (
                    (found := real(context, query))[0]
                    .replace("in0", "in2")
                    .replace("in1", "in0")
                    .replace("in2", "in1"),
                    found[1],
                )
            ),
        ),
        ("SELECT o.id, v.id AS v FROM (SELECT id FROM lands) AS o POSITIONAL JOIN (SELECT id FROM customers) AS v",),
    ),
    Mutant("HAVING is lost", Builder.SELECT, instead(module(Builder.SELECT), "_having", _no_having), (SUMMED,)),
    Mutant(
        "DISTINCT is lost",
        Builder.SELECT,
        returned(module(Builder.SELECT), "_distinct", _as_distinct),
        ("SELECT count(*) AS n FROM (SELECT DISTINCT a, b FROM visits)",),
    ),
    Mutant(
        "QUALIFY is lost",
        Builder.SELECT,
        wrapped(
            module(Builder.SELECT),
            "_windows",
            lambda real: lambda made: (made.query.set("qualify", None), real(made))[1],
        ),
        (FIRST, BETWEEN),
    ),
    Mutant(
        "DISTINCT ON takes the last row",
        Builder.SELECT,
        wrapped(
            module(Builder.SELECT),
            "by_key",
            lambda real: (
                lambda relation, order=(): tuple(
                    replace(sort, descending=not sort.descending) for sort in real(relation, order)
                )
            ),
        ),
        ("SELECT DISTINCT ON (customer) customer, id FROM orders ORDER BY customer, amount, id",),
    ),
    Mutant(
        "EXCEPT is INTERSECT",
        Builder.SET_OPERATIONS,
        entry(module(Builder.SET_OPERATIONS)._KINDS, exp.Except, SetKind.INTERSECT),
        (EXCEPT_ALL,),
    ),
    Mutant(
        "ALL is lost",
        Builder.SET_OPERATIONS,
        wrapped(
            module(Builder.SET_OPERATIONS),
            "SetOperation",
            lambda real: (
                lambda kind, every, left, right, columns, copy: SetOperation(kind, False, left, right, columns)
            ),
        ),
        (EXCEPT_ALL,),
    ),
    Mutant(
        "the sides are exchanged",
        Builder.SET_OPERATIONS,
        wrapped(
            module(Builder.SET_OPERATIONS),
            "SetOperation",
            lambda real: (
                lambda kind, every, left, right, columns, copy: SetOperation(kind, every, right, left, columns, copy)
            ),
        ),
        (EXCEPT_ALL,),
    ),
    Mutant(
        "a UNION inside a UNION ALL is flat",
        Builder.SET_OPERATIONS,
        wrapped(
            module(Builder.SET_OPERATIONS),
            "_member",
            lambda real: (
                lambda side: [side.this.left, side.this.right] if isinstance(side.this, exp.SetOperation) else [side]
            ),
        ),
        (
            "SELECT a FROM visits UNION ALL (SELECT b FROM visits UNION SELECT id FROM lands)",
            "SELECT a, b FROM visits UNION ALL (SELECT id, id FROM lands EXCEPT SELECT b, a FROM visits)",
        ),
    ),
)
