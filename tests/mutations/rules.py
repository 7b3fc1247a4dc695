"""Faults of rules: a relation becomes another that does not have the same rows.

One sentence: each rule is broken where it decides that something makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

from sqlglot import exp

from everview.plan import rules
from everview.plan.expressions import Expr, conjuncts
from everview.plan.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Project,
    Reevaluate,
    Relation,
    Scan,
    SetOperation,
    TopK,
    Union,
)
from everview.plan.rules import chains, conditions, descent
from everview.plan.rules.trees import bottom_up
from tests.mutations.mutant import Fault, Mutant, entry, given, instead, returned, wrapped
from tests.mutations.targets import Rule


def module(rule: Rule) -> ModuleType:
    """The module of a rule, whose name is its function's."""
    return import_module(f"everview.plan.rules.{rule.value}")


LEFT_NULL = "SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id WHERE c.score IS NULL"
LEFT_OF = "SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id WHERE o.amount > 1"
FULL_OF = "SELECT o.id, c.name FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id WHERE o.amount > 1"
TWO = "SELECT a, count(*) AS n FROM visits GROUP BY a HAVING count(*) > 1 AND max(b) > 1"
CONSTANT = "SELECT id FROM orders WHERE amount > 1 AND 1 = 2"
UNKNOWN = "SELECT id FROM orders WHERE amount > 1 OR NULL = 1"
COMMA = "SELECT o.id, v.b FROM orders AS o, visits AS v WHERE o.customer = v.a AND o.amount < v.b"
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
CUT = "SELECT id, amount FROM (SELECT id, amount, customer FROM orders ORDER BY amount, id LIMIT 5) WHERE customer > 1"
RANKED = "SELECT * FROM (SELECT id, rank() OVER (ORDER BY amount) AS r, customer FROM orders) WHERE customer > 1"
GROUPED = "SELECT * FROM (SELECT a, count(*) AS n FROM visits GROUP BY ROLLUP (a)) WHERE a IS NULL"


def ruled(rule: Rule, change: Callable[[Relation], Relation]) -> Fault:
    """A rule that does something else to every node as well."""

    def around(found: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(_after(one, change) if one.__name__ == rule.value else one for one in found)

    return instead(rules, "RULES", around(rules.RULES))


def _after(
    real: Callable[[Relation], Relation], change: Callable[[Relation], Relation]
) -> Callable[[Relation], Relation]:
    done: list[Relation] = []

    def rule(relation: Relation) -> Relation:
        found = real(relation)
        if found is not relation or any(found is one for one in done):
            return found
        done.append(bottom_up(found, change))
        return done[-1]

    rule.__name__ = real.__name__
    return rule


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
        return real(node, read)  # type: ignore[no-any-return]

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
    Mutant("an order loses its first part", Rule.SETTLE_TIES, ruled(Rule.SETTLE_TIES, _less_order),
           ("SELECT id, amount FROM orders ORDER BY amount, id LIMIT 3",)),
    Mutant("ties are settled where they are to stay", Rule.SETTLE_TIES, ruled(Rule.SETTLE_TIES, _one_row),
           ("SELECT id, amount FROM orders QUALIFY rank() OVER (ORDER BY amount) <= 2",)),
    Mutant("a text that is settled loses its order", Rule.SETTLE_TIES,
           wrapped(module(Rule.SETTLE_TIES), "settled_text", lambda real: lambda node: node.query.replace(" DESC", "")),
           ("SELECT * FROM (SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 40 PERCENT)",)),
    Mutant("the inner filter is lost", Rule.MERGE_FILTERS, instead(module(Rule.MERGE_FILTERS), "_merged", _outer_alone), (TWO,)),
    Mutant("one part of a condition is kept", Rule.MERGE_FILTERS, ruled(Rule.MERGE_FILTERS, _last_part), (TWO,)),
    Mutant("FALSE is folded to TRUE", Rule.FOLD_CONSTANTS, instead(module(Rule.FOLD_CONSTANTS), "_computed", lambda sql: True), (CONSTANT,)),
    Mutant("NULL is folded to TRUE", Rule.FOLD_CONSTANTS,
           returned(module(Rule.FOLD_CONSTANTS), "_computed", lambda value: True if value is None else value), (UNKNOWN,)),
    Mutant("AND and OR are folded alike", Rule.FOLD_CONSTANTS, wrapped(
        module(Rule.FOLD_CONSTANTS), "_condition", lambda real: lambda tree: exp.true() if isinstance(tree, exp.And) else real(tree)),
           (CONSTANT,)),
    Mutant("NOT of a constant is the constant", Rule.FOLD_CONSTANTS, wrapped(
        module(Rule.FOLD_CONSTANTS), "_value", lambda real: lambda tree: real(tree.this if isinstance(tree, exp.Not) else tree)),
           ("SELECT id FROM orders WHERE amount > 1 AND NOT 1 = 2",)),
    Mutant("every outer join is inner", Rule.OUTER_TO_INNER, ruled(Rule.OUTER_TO_INNER, _always_inner), (LEFT_OF,)),
    Mutant("IS NULL rejects nulls", Rule.OUTER_TO_INNER,
           instead(module(Rule.OUTER_TO_INNER), "rejects_nulls", lambda part, fields: bool(part.fields & fields)), (LEFT_NULL,)),
    Mutant("the sides of a full join are exchanged", Rule.OUTER_TO_INNER,
           wrapped(module(Rule.OUTER_TO_INNER), "_inner", lambda real: lambda node, known: (
               replace(node, kind=JoinKind.RIGHT, marker=None)
               if node.kind is JoinKind.FULL and real(node, known).kind is JoinKind.LEFT else real(node, known))),
           (FULL_OF,)),
    Mutant("OR rejects nulls where one part does", Rule.OUTER_TO_INNER, wrapped(
        conditions, "_never_true", lambda real: lambda tree, fields: (
            real(tree.this, fields) or real(tree.expression, fields) if isinstance(tree, exp.Or) else real(tree, fields))),
           ("SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id "
            "WHERE c.score > 1 OR o.amount > 1",)),
    Mutant("a filter goes below the wrong side of a left join", Rule.PUSH_FILTERS,
           entry(descent.ASKED, JoinKind.LEFT, (0, 1)), (LEFT_NULL,)),
    Mutant("a filter goes below a full join", Rule.PUSH_FILTERS, entry(descent.ASKED, JoinKind.FULL, (0, 1)),
           ("SELECT o.id, c.id AS c FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id WHERE c.score IS NULL",)),
    Mutant("a left join's own condition drops rows of the left side", Rule.PUSH_FILTERS,
           entry(descent.MATCHED, JoinKind.LEFT, (0, 1)),
           ("SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND o.amount > 1",)),
    Mutant("a filter goes below a limit", Rule.PUSH_FILTERS,
           wrapped(descent, "_goes_below", lambda real: lambda node, part: isinstance(node, TopK) or real(node, part)), (CUT,)),
    Mutant("a filter goes below a window of other partitions", Rule.PUSH_FILTERS,
           instead(descent, "_reads_only_expressions", lambda part, expressions: True), (RANKED,)),
    Mutant("a filter goes below a grouping set without its column", Rule.PUSH_FILTERS,
           wrapped(descent, "_goes_below", lambda real: lambda node, part: (
               isinstance(node, Aggregate) and part.fields <= {field.name for field, _ in node.groups}) or real(node, part)),
           (GROUPED,)),
    Mutant("what stays above is lost", Rule.PUSH_FILTERS,
           instead(module(Rule.PUSH_FILTERS), "filtered", lambda relation, parts: relation), (COMMA,)),
    Mutant("a condition beyond the keys is lost", Rule.JOIN_EQUALITIES, ruled(Rule.JOIN_EQUALITIES, _without_rest), (COMMA,)),
    Mutant("IS NOT DISTINCT FROM is =", Rule.JOIN_EQUALITIES,
           returned(module(Rule.JOIN_EQUALITIES), "equality", lambda found: found and replace(found, nulls_match=False)),
           ("SELECT q.id, q.b FROM (SELECT o.id, o.customer, v.a, v.b FROM orders AS o, visits AS v) AS q "
            "WHERE q.customer IS NOT DISTINCT FROM q.a",)),
    Mutant("what is not an equality is taken for one", Rule.JOIN_EQUALITIES,
           given(module(Rule.JOIN_EQUALITIES), "equality", lambda part, left, right: (
               Expr(part.sql.replace(" < ", " = "), part.type), left, right)),
           ("SELECT q.id, q.b FROM (SELECT o.id, o.amount, v.a, v.b FROM orders AS o, visits AS v) AS q WHERE q.amount < q.a",)),
    Mutant("conditions of a chain are lost", Rule.ORDER_JOINS,
           wrapped(chains.Chain, "joined", _without_equality), (CHAIN,)),
    Mutant("of several equalities one is kept", Rule.ORDER_JOINS,
           wrapped(chains.Chain, "joined", _first_equality), (CROSSED,)),
    Mutant("conditions of a chain are lost", Rule.JOIN_DIMENSIONS,
           wrapped(chains.Chain, "joined", _without_equality), (DIMENSIONS,)),
    Mutant("the inner projection is all there is", Rule.MERGE_PROJECTIONS,
           instead(module(Rule.MERGE_PROJECTIONS), "merged", _merged_names), (COMPUTED,)),
    Mutant("definitions are not put in", Rule.MERGE_PROJECTIONS,
           instead(module(Rule.MERGE_PROJECTIONS), "substituted", lambda expression, definitions: next(iter(definitions.values()))),
           (COMPUTED,)),
    Mutant("distinct rows lose a column that is not read", Rule.PRUNE_COLUMNS,
           wrapped(module(Rule.PRUNE_COLUMNS), "_pruned", _pruned_distinct), ("SELECT sum(a) AS s FROM (SELECT DISTINCT a, b FROM visits)",)),
    Mutant("a union keeps the wrong columns", Rule.PRUNE_COLUMNS,
           wrapped(module(Rule.PRUNE_COLUMNS), "_with_shown", lambda real: lambda node, numbers: real(
               node, [1 - number for number in numbers] if _reads(node, "customers") else numbers)), (OF_UNION,)),
    Mutant("a window that is read goes", Rule.PRUNE_COLUMNS,
           wrapped(module(Rule.PRUNE_COLUMNS), "_window", lambda real: lambda node, read: real(node, {*read} - {
               call.field.name for call in node.calls})),
           ("SELECT id, rank() OVER (ORDER BY amount) AS r FROM orders",)),
    Mutant("a union of different rows is merged with one of all rows", Rule.MERGE_UNIONS,
           ruled(Rule.MERGE_UNIONS, _merged_sets), (DIFFERENT,)),
    Mutant("inputs of an inner union are lost", Rule.MERGE_UNIONS,
           instead(module(Rule.MERGE_UNIONS), "_merged", _without_last_input), (UNIONS,)),
    Mutant("a projection that computes is removed", Rule.REMOVE_IDENTITIES,
           instead(module(Rule.REMOVE_IDENTITIES), "_only_passes", lambda node: True),
           ("SELECT count(q.a) AS n FROM (SELECT CASE WHEN a > 3 THEN a END AS a FROM visits) AS q",)),
    Mutant("a filter below an aggregate is removed", Rule.REMOVE_IDENTITIES,
           ruled(Rule.REMOVE_IDENTITIES, _without_filter), ("SELECT a, count(*) AS n FROM visits WHERE b > 1 GROUP BY a",)),
    Mutant("LEFT is INNER", Rule.REEVALUATE_PAIRS, ruled(
        Rule.REEVALUATE_PAIRS, _query(lambda sql: sql.replace("LEFT JOIN", "INNER JOIN"))), (LESS_LEFT,)),
    Mutant("the condition is lost", Rule.REEVALUATE_PAIRS, wrapped(
        module(Rule.REEVALUATE_PAIRS), "_reevaluated", lambda real: lambda node: real(_without_rest(node))), (LESS, LESS_LEFT)),
    Mutant("a re-evaluation is split by a column that does not split it", Rule.SPLIT_REEVALUATIONS,
           instead(module(Rule.SPLIT_REEVALUATIONS), "distributed", _any_column), (LESS, RECURSIVE)),
    Mutant("a split takes the first column for carried", Rule.SPLIT_REEVALUATIONS,
           instead(module(Rule.SPLIT_REEVALUATIONS), "distributed", lambda query, columns, split: frozenset()), (RECURSIVE,)),
)  # fmt: skip
