"""Faults of the rules that change joins, projections, unions and re-evaluations.

A join loses a condition, a column goes that is read, inputs are taken for others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from everview.plan.expressions import Expr
from everview.plan.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Reevaluate,
    Relation,
    Scan,
    SetOperation,
    Union,
)
from everview.plan.rules import chains
from tests.mutations.mutant import Mutant, given, instead, returned, wrapped
from tests.mutations.rules import COMMA, module, ruled
from tests.mutations.targets import Rule

CHAIN = (
    "SELECT o.id, v.b, l.name FROM orders AS o LEFT JOIN lands AS l ON o.amount < l.id JOIN visits AS v "
    "ON v.a = o.customer AND v.b = l.id"
)
CROSSED = (
    "SELECT o.id, v.b, l.name FROM (orders AS o LEFT JOIN lands AS l ON TRUE) JOIN visits AS v "
    "ON v.a = o.customer AND v.b = o.amount AND v.b = l.id"
)

DIMENSIONS = (
    "SELECT p.number, o.amount, l.name FROM customers AS c JOIN orders AS o ON o.customer = c.id JOIN parts AS p "
    "ON p.customer = c.id JOIN lands AS l ON l.id = c.land WHERE p.weight > o.amount"
)
COMPUTED = "SELECT q.x + 1 AS y, q.z FROM (SELECT amount * 2 AS x, customer AS z, id FROM orders) AS q"
UNIONS = "SELECT a FROM visits UNION ALL (SELECT b FROM visits UNION ALL SELECT id FROM lands)"
DIFFERENT = "SELECT a FROM visits UNION ALL (SELECT b FROM visits UNION SELECT id FROM lands)"
OF_UNION = "SELECT y FROM (SELECT a AS x, b AS y FROM visits UNION ALL SELECT id, score FROM customers)"
LESS = "SELECT o.id, v.b FROM orders AS o JOIN visits AS v ON o.amount < v.a"
LESS_LEFT = "SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.amount < v.a"
RECURSIVE = (
    "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM visits UNION SELECT r.a, v.b FROM r JOIN visits AS v ON v.a = r.b) "
    "SELECT a, b FROM r"
)


def _without_rest(node: Relation) -> Relation:
    return replace(node, rest=None) if isinstance(node, Join) else node


def _without_equality(real: Callable[..., Any]) -> Callable[..., Any]:
    """Conditions beyond the equalities are forgotten."""

    def joined(self: chains.Chain, left: Relation, right: Relation) -> Any:
        join, chain = real(self, left, right)
        short = replace(join, rest=None)
        return short, replace(chain, inputs=tuple(short if one is join else one for one in chain.inputs))

    return joined


def _first_equality(real: Callable[..., Any]) -> Callable[..., Any]:
    def joined(self: chains.Chain, left: Relation, right: Relation) -> Any:
        join, chain = real(self, left, right)
        short = replace(join, on=join.on[:1])
        return short, replace(chain, inputs=tuple(short if one is join else one for one in chain.inputs))

    return joined


def _pruned_distinct(real: Callable[..., Any]) -> Callable[..., Any]:
    """Columns of distinct rows that nobody reads go."""

    def pruned(node: Relation, read: Any) -> Relation:
        if isinstance(node, Distinct) and isinstance(node.input, Project):
            kept = tuple(one for one in node.input.outputs if one[0].name in read or one[0].hidden)
            return node if kept == node.input.outputs else replace(node, input=Project(node.input.input, kept))
        return real(node, read)

    return pruned


def _merged_names(node: Relation) -> Relation:
    """The outer one's fields, computed as the inner one's are."""
    if not isinstance(node, Project) or not isinstance(node.input, Project):
        return node
    inner = {field.name: found for field, found in node.input.outputs}
    outputs = tuple((field, inner.get(next(iter(found.fields), ""), found)) for field, found in node.outputs)
    return Project(node.input.input, outputs)


def _without_last_input(node: Relation) -> Relation:
    if isinstance(node, Union) and any(isinstance(part, Union) for part in node.parts):
        parts = [inner for part in node.parts for inner in (part.parts[:1] if isinstance(part, Union) else (part,))]
        return replace(node, parts=tuple(parts))
    return node


def _merged_sets(node: Relation) -> Relation:
    if isinstance(node, Union) and any(isinstance(part, SetOperation) for part in node.parts):
        parts = [inner for part in node.parts for inner in (part.inputs if isinstance(part, SetOperation) else (part,))]
        return replace(node, parts=tuple(parts))
    return node


def _reads(relation: Relation, table: str) -> bool:
    return any(isinstance(node, Scan) and node.table == table for node in relation.walk())


def _without_filter(node: Relation) -> Relation:
    return (
        node.with_inputs(node.input.input) if isinstance(node, Aggregate) and isinstance(node.input, Filter) else node
    )


def _query(change: Callable[[str], str]) -> Callable[[Relation], Relation]:
    return lambda node: replace(node, query=change(node.query)) if isinstance(node, Reevaluate) else node


def _any_column(query: exp.Expr, columns: Any, split: Any) -> frozenset[str]:
    return frozenset(name.lower() for names in columns.values() for name in names)


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a condition beyond the keys is lost",
        Rule.JOIN_EQUALITIES,
        ruled(Rule.JOIN_EQUALITIES, _without_rest),
        (COMMA,),
    ),
    Mutant(
        "IS NOT DISTINCT FROM is =",
        Rule.JOIN_EQUALITIES,
        returned(module(Rule.JOIN_EQUALITIES), "equality", lambda found: found and replace(found, nulls_match=False)),
        (
            "SELECT q.id, q.b FROM (SELECT o.id, o.customer, v.a, v.b FROM orders AS o, visits AS v) AS q "
            "WHERE q.customer IS NOT DISTINCT FROM q.a",
        ),
    ),
    Mutant(
        "what is not an equality is taken for one",
        Rule.JOIN_EQUALITIES,
        given(
            module(Rule.JOIN_EQUALITIES),
            "equality",
            lambda part, left, right: (Expr(part.sql.replace(" < ", " = "), part.type), left, right),
        ),
        (
            "SELECT q.id, q.b FROM (SELECT o.id, o.amount, v.a, v.b FROM orders AS o, visits AS v) AS q "
            "WHERE q.amount < q.a",
        ),
    ),
    Mutant(
        "conditions of a chain are lost", Rule.ORDER_JOINS, wrapped(chains.Chain, "joined", _without_equality), (CHAIN,)
    ),
    Mutant(
        "of several equalities one is kept",
        Rule.ORDER_JOINS,
        wrapped(chains.Chain, "joined", _first_equality),
        (CROSSED,),
    ),
    Mutant(
        "conditions of a chain are lost",
        Rule.JOIN_DIMENSIONS,
        wrapped(chains.Chain, "joined", _without_equality),
        (DIMENSIONS,),
    ),
    Mutant(
        "the inner projection is all there is",
        Rule.MERGE_PROJECTIONS,
        instead(module(Rule.MERGE_PROJECTIONS), "merged", _merged_names),
        (COMPUTED,),
    ),
    Mutant(
        "definitions are not put in",
        Rule.MERGE_PROJECTIONS,
        instead(
            module(Rule.MERGE_PROJECTIONS),
            "substituted",
            lambda expression, definitions: next(iter(definitions.values())),
        ),
        (COMPUTED,),
    ),
    Mutant(
        "distinct rows lose a column that is not read",
        Rule.PRUNE_COLUMNS,
        wrapped(module(Rule.PRUNE_COLUMNS), "_pruned", _pruned_distinct),
        ("SELECT sum(a) AS s FROM (SELECT DISTINCT a, b FROM visits)",),
    ),
    Mutant(
        "a union keeps the wrong columns",
        Rule.PRUNE_COLUMNS,
        wrapped(
            module(Rule.PRUNE_COLUMNS),
            "_with_shown",
            lambda real: (
                lambda node, numbers: real(
                    node, [1 - number for number in numbers] if _reads(node, "customers") else numbers
                )
            ),
        ),
        (OF_UNION,),
    ),
    Mutant(
        "a window that is read goes",
        Rule.PRUNE_COLUMNS,
        wrapped(
            module(Rule.PRUNE_COLUMNS),
            "_window",
            lambda real: lambda node, read: real(node, {*read} - {call.field.name for call in node.calls}),
        ),
        ("SELECT id, rank() OVER (ORDER BY amount) AS r FROM orders",),
    ),
    Mutant(
        "a union of different rows is merged with one of all rows",
        Rule.MERGE_UNIONS,
        ruled(Rule.MERGE_UNIONS, _merged_sets),
        (DIFFERENT,),
    ),
    Mutant(
        "inputs of an inner union are lost",
        Rule.MERGE_UNIONS,
        instead(module(Rule.MERGE_UNIONS), "_merged", _without_last_input),
        (UNIONS,),
    ),
    Mutant(
        "a projection that computes is removed",
        Rule.REMOVE_IDENTITIES,
        instead(module(Rule.REMOVE_IDENTITIES), "_only_passes", lambda node: True),
        ("SELECT count(q.a) AS n FROM (SELECT CASE WHEN a > 3 THEN a END AS a FROM visits) AS q",),
    ),
    Mutant(
        "a filter below an aggregate is removed",
        Rule.REMOVE_IDENTITIES,
        ruled(Rule.REMOVE_IDENTITIES, _without_filter),
        ("SELECT a, count(*) AS n FROM visits WHERE b > 1 GROUP BY a",),
    ),
    Mutant(
        "LEFT is INNER",
        Rule.REEVALUATE_PAIRS,
        ruled(Rule.REEVALUATE_PAIRS, _query(lambda sql: sql.replace("LEFT JOIN", "INNER JOIN"))),
        (LESS_LEFT,),
    ),
    Mutant(
        "the condition is lost",
        Rule.REEVALUATE_PAIRS,
        wrapped(module(Rule.REEVALUATE_PAIRS), "_reevaluated", lambda real: lambda node: real(_without_rest(node))),
        (LESS, LESS_LEFT),
    ),
    Mutant(
        "a re-evaluation is split by a column that does not split it",
        Rule.SPLIT_REEVALUATIONS,
        instead(module(Rule.SPLIT_REEVALUATIONS), "distributed", _any_column),
        (LESS, RECURSIVE),
    ),
    Mutant(
        "a split takes the first column for carried",
        Rule.SPLIT_REEVALUATIONS,
        instead(module(Rule.SPLIT_REEVALUATIONS), "distributed", lambda query, columns, split: frozenset()),
        (RECURSIVE,),
    ),
)
