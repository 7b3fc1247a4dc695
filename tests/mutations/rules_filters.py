"""Faults of the rules that move conditions.

A condition is lost, folded or moved to where it drops other rows.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.plan.expressions import conjuncts
from everview.plan.relations import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Relation,
    TopK,
)
from everview.plan.rules import conditions, descent
from tests.mutations.mutant import Mutant, entry, instead, returned, wrapped
from tests.mutations.rules import COMMA, module, ruled
from tests.mutations.targets import Rule

LEFT_NULL = "SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id WHERE c.score IS NULL"
LEFT_OF = "SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id WHERE o.amount > 1"
FULL_OF = "SELECT o.id, c.name FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id WHERE o.amount > 1"
TWO = "SELECT a, count(*) AS n FROM visits GROUP BY a HAVING count(*) > 1 AND max(b) > 1"
CONSTANT = "SELECT id FROM orders WHERE amount > 1 AND 1 = 2"
UNKNOWN = "SELECT id FROM orders WHERE amount > 1 OR NULL = 1"
CUT = "SELECT id, amount FROM (SELECT id, amount, customer FROM orders ORDER BY amount, id LIMIT 5) WHERE customer > 1"
RANKED = "SELECT * FROM (SELECT id, rank() OVER (ORDER BY amount) AS r, customer FROM orders) WHERE customer > 1"
GROUPED = "SELECT * FROM (SELECT a, count(*) AS n FROM visits GROUP BY ROLLUP (a)) WHERE a IS NULL"


def _less_order(node: Relation) -> Relation:
    return replace(node, order=node.order[1:]) if isinstance(node, TopK) and not node.ties else node


def _one_row(node: Relation) -> Relation:
    return replace(node, ties=False) if isinstance(node, TopK) else node


def _last_part(node: Relation) -> Relation:
    if not isinstance(node, Filter):
        return node
    return replace(node, condition=conjuncts(node.condition)[-1])


def _outer_alone(node: Relation) -> Relation:
    if isinstance(node, Filter) and isinstance(node.input, Filter):
        return Filter(node.input.input, node.condition)
    return node


def _always_inner(node: Relation) -> Relation:
    kinds = (JoinKind.LEFT, JoinKind.RIGHT)
    return replace(node, kind=JoinKind.INNER) if isinstance(node, Join) and node.kind in kinds else node


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "an order loses its first part",
        Rule.SETTLE_TIES,
        ruled(Rule.SETTLE_TIES, _less_order),
        ("SELECT id, amount FROM orders ORDER BY amount, id LIMIT 3",),
    ),
    Mutant(
        "ties are settled where they are to stay",
        Rule.SETTLE_TIES,
        ruled(Rule.SETTLE_TIES, _one_row),
        ("SELECT id, amount FROM orders QUALIFY rank() OVER (ORDER BY amount) <= 2",),
    ),
    Mutant(
        "a text that is settled loses its order",
        Rule.SETTLE_TIES,
        wrapped(module(Rule.SETTLE_TIES), "settled_text", lambda real: lambda node: node.query.replace(" DESC", "")),
        ("SELECT * FROM (SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 40 PERCENT)",),
    ),
    Mutant(
        "the inner filter is lost",
        Rule.MERGE_FILTERS,
        instead(module(Rule.MERGE_FILTERS), "_merged", _outer_alone),
        (TWO,),
    ),
    Mutant("one part of a condition is kept", Rule.MERGE_FILTERS, ruled(Rule.MERGE_FILTERS, _last_part), (TWO,)),
    Mutant(
        "FALSE is folded to TRUE",
        Rule.FOLD_CONSTANTS,
        instead(module(Rule.FOLD_CONSTANTS), "_computed", lambda sql: True),
        (CONSTANT,),
    ),
    Mutant(
        "NULL is folded to TRUE",
        Rule.FOLD_CONSTANTS,
        returned(module(Rule.FOLD_CONSTANTS), "_computed", lambda value: True if value is None else value),
        (UNKNOWN,),
    ),
    Mutant(
        "AND and OR are folded alike",
        Rule.FOLD_CONSTANTS,
        wrapped(
            module(Rule.FOLD_CONSTANTS),
            "_condition",
            lambda real: lambda tree: exp.true() if isinstance(tree, exp.And) else real(tree),
        ),
        (CONSTANT,),
    ),
    Mutant(
        "NOT of a constant is the constant",
        Rule.FOLD_CONSTANTS,
        wrapped(
            module(Rule.FOLD_CONSTANTS),
            "_value",
            lambda real: lambda tree: real(tree.this if isinstance(tree, exp.Not) else tree),
        ),
        ("SELECT id FROM orders WHERE amount > 1 AND NOT 1 = 2",),
    ),
    Mutant("every outer join is inner", Rule.OUTER_TO_INNER, ruled(Rule.OUTER_TO_INNER, _always_inner), (LEFT_OF,)),
    Mutant(
        "IS NULL rejects nulls",
        Rule.OUTER_TO_INNER,
        instead(module(Rule.OUTER_TO_INNER), "rejects_nulls", lambda part, fields: bool(part.fields & fields)),
        (LEFT_NULL,),
    ),
    Mutant(
        "the sides of a full join are exchanged",
        Rule.OUTER_TO_INNER,
        wrapped(
            module(Rule.OUTER_TO_INNER),
            "_inner",
            lambda real: (
                lambda node, known: (
                    replace(node, kind=JoinKind.RIGHT, marker=None)
                    if node.kind is JoinKind.FULL and real(node, known).kind is JoinKind.LEFT
                    else real(node, known)
                )
            ),
        ),
        (FULL_OF,),
    ),
    Mutant(
        "OR rejects nulls where one part does",
        Rule.OUTER_TO_INNER,
        wrapped(
            conditions,
            "_never_true",
            lambda real: (
                lambda tree, fields: (
                    real(tree.this, fields) or real(tree.expression, fields)
                    if isinstance(tree, exp.Or)
                    else real(tree, fields)
                )
            ),
        ),
        (
            "SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id "
            "WHERE c.score > 1 OR o.amount > 1",
        ),
    ),
    Mutant(
        "a filter goes below the wrong side of a left join",
        Rule.PUSH_FILTERS,
        entry(descent.ASKED, JoinKind.LEFT, (0, 1)),
        (LEFT_NULL,),
    ),
    Mutant(
        "a filter goes below a full join",
        Rule.PUSH_FILTERS,
        entry(descent.ASKED, JoinKind.FULL, (0, 1)),
        (
            "SELECT o.id, c.id AS c FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id "
            "WHERE c.score IS NULL",
        ),
    ),
    Mutant(
        "a left join's own condition drops rows of the left side",
        Rule.PUSH_FILTERS,
        entry(descent.MATCHED, JoinKind.LEFT, (0, 1)),
        ("SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND o.amount > 1",),
    ),
    Mutant(
        "a filter goes below a limit",
        Rule.PUSH_FILTERS,
        wrapped(descent, "_goes_below", lambda real: lambda node, part: isinstance(node, TopK) or real(node, part)),
        (CUT,),
    ),
    Mutant(
        "a filter goes below a window of other partitions",
        Rule.PUSH_FILTERS,
        instead(descent, "_reads_only_expressions", lambda part, expressions: True),
        (RANKED,),
    ),
    Mutant(
        "a filter goes below a grouping set without its column",
        Rule.PUSH_FILTERS,
        wrapped(
            descent,
            "_goes_below",
            lambda real: (
                lambda node, part: (
                    (isinstance(node, Aggregate) and part.fields <= {field.name for field, _ in node.groups})
                    or real(node, part)
                )
            ),
        ),
        (GROUPED,),
    ),
    Mutant(
        "what stays above is lost",
        Rule.PUSH_FILTERS,
        instead(module(Rule.PUSH_FILTERS), "filtered", lambda relation, parts: relation),
        (COMMA,),
    ),
)
