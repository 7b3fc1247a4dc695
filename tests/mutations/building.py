"""Faults of builders: a clause that becomes the wrong relation.

One sentence: each builder is broken where it decides what a clause means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

from sqlglot import exp

from everview.plan.expressions import Expr
from everview.plan.relations import (
    Aggregate,
    Distinct,
    Equality,
    Filter,
    Join,
    JoinKind,
    Relation,
    SetKind,
    SetOperation,
    TopK,
    Unnest,
)
from tests.mutations.mutant import Fault, Mutant, entry, given, instead, returned, wrapped
from tests.mutations.targets import Builder


def module(builder: Builder) -> ModuleType:
    return import_module(f"everview.plan.build.{builder.value}")


NEAR = "SELECT c.id, (SELECT count(*) FROM visits AS v WHERE v.a > c.score) AS n FROM customers AS c"
NEAR_NULL = "SELECT c.id, (SELECT count(*) FROM visits AS v WHERE (v.a > c.score) IS NOT TRUE) AS n FROM customers AS c"
LINKED = "SELECT c.id, (SELECT count(*) FROM visits AS v WHERE v.a = c.score) AS n FROM customers AS c"
LINKED_SUM = "SELECT c.id, (SELECT sum(v.b) FROM visits AS v WHERE v.a = c.score) AS s FROM customers AS c"
SUMMED = "SELECT a, sum(b) AS s FROM visits GROUP BY a HAVING count(*) > 1"
ROLLED = "SELECT a, b, count(*) AS n FROM visits GROUP BY ROLLUP (a, b)"
CUBED = "SELECT a, b, grouping(a, b) AS g, count(*) AS n FROM visits GROUP BY CUBE (a, b)"
PICKED = "SELECT customer, list(amount ORDER BY id DESC) AS l FROM orders GROUP BY customer"
NOT_IN = "SELECT o.id FROM orders AS o WHERE o.customer NOT IN (SELECT v.a FROM visits AS v WHERE v.b > 3)"
IS_IN = "SELECT o.id, o.customer IN (SELECT v.a FROM visits AS v) AS i FROM orders AS o"
ANY_OF = "SELECT o.id FROM orders AS o WHERE o.amount > ANY (SELECT v.a FROM visits AS v WHERE v.b = o.customer)"
ALL_OF = "SELECT o.id, o.amount <= ALL (SELECT v.a FROM visits AS v WHERE v.b = o.customer) AS f FROM orders AS o"
EXISTING = "SELECT o.id FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.a = o.customer)"
LATERAL = "SELECT o.id, q.b FROM orders AS o LEFT JOIN LATERAL (SELECT v.b FROM visits AS v WHERE v.a = o.customer) AS q ON TRUE"
ITEMS = "SELECT o.id, u.i FROM orders AS o LEFT JOIN unnest(o.items) AS u(i) ON TRUE"
AS_OF = "SELECT o.id, l.id AS l, l.name FROM orders AS o ASOF JOIN lands AS l ON o.amount >= l.id"
AS_OF_RIGHT = "SELECT o.id, l.id AS l FROM orders AS o ASOF LEFT JOIN lands AS l ON o.amount >= l.id"
FIRST = "SELECT customer, id FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount, id) < 3"
RANKED = "SELECT id, amount FROM orders QUALIFY rank() OVER (ORDER BY amount) <= 3"
BETWEEN = "SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY amount, id) BETWEEN 2 AND 4"
MOVED = "SELECT a, b FROM (SELECT DISTINCT a, b, row_number() OVER (PARTITION BY a ORDER BY b, c) AS n FROM visits) WHERE n <= 2"
LATER = "SELECT id, amount FROM orders ORDER BY 2 DESC NULLS FIRST, 1 LIMIT 3 OFFSET 1"
SUMS = "SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY amount) AS s FROM orders"
NUMBERS = "SELECT id, lag(amount) OVER (PARTITION BY customer ORDER BY amount DESC, id) AS p FROM orders"
EXCEPT_ALL = "SELECT a FROM visits EXCEPT ALL SELECT score FROM customers"
COLLATED = "SELECT status COLLATE nocase AS s, count(*) AS n FROM orders GROUP BY status COLLATE nocase"
NOCASE = "SELECT o.id, c.id AS c FROM orders AS o JOIN customers AS c ON o.status COLLATE nocase = c.name"
PERCENT = "SELECT a FROM visits ORDER BY a LIMIT 40 PERCENT"


def built(builder: Builder, function: str, change: Callable[[Relation], Relation]) -> Fault:
    """A function of a builder that returns a relation returns another."""
    return returned(module(builder), function, change)


def staged(builder: Builder, function: str, change: Callable[[Relation], Relation]) -> Fault:
    """A function of a builder that takes a stage further leaves another relation there."""

    def around(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(stage: Any, *args: Any, **kwargs: Any) -> Any:
            found = real(stage, *args, **kwargs)
            stage.relation = change(stage.relation)
            return found

        return step

    return wrapped(module(builder), function, around)


def _unasked(node: Relation) -> Relation:
    return node.input if isinstance(node, Filter) else node


def _semi(node: Relation) -> Relation:
    return replace(node, kind=JoinKind.SEMI) if isinstance(node, Join) and node.kind is JoinKind.ANTI else node


def _inner(node: Relation) -> Relation:
    return replace(node, kind=JoinKind.INNER) if isinstance(node, Join) and node.kind is JoinKind.LEFT else node


def _no_offset(node: Relation) -> Relation:
    return replace(node, offset=0) if isinstance(node, TopK) else node


def _sorted(**other: Any) -> Callable[[Relation], Relation]:
    return lambda node: (
        replace(node, order=tuple(replace(sort, **other) for sort in node.order)) if isinstance(node, TopK) else node
    )


def _without_sets(node: Relation) -> Relation:
    return replace(node, sets=node.sets[:-1]) if isinstance(node, Aggregate) and node.sets else node


def _called(**other: Any) -> Callable[[Any], Any]:
    return lambda call: replace(call, **other)


def _texts(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


def _worded(builder: Builder, function: str, old: str, new: str) -> Fault:
    return returned(module(builder), function, _texts(old, new))


def _no_having(made: Any) -> None:
    return None


def _plain_equality(found: Equality | None) -> Equality | None:
    return None if found is None else replace(found, nulls_match=not found.nulls_match)


def _lost_rest(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context, kind, left, right, keys, rest: real(context, kind, left, right, keys, None)


def _last_condition(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda condition: real(condition)[:-1] if len(real(condition)) > 1 else real(condition)


def _as_distinct(found: Any) -> Any:
    relation = found.relation
    if isinstance(relation, Distinct):
        return replace(found, relation=relation.input)
    return found


def _no_copies(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda text, fields, copy: real(f"SELECT DISTINCT * FROM ({text})", fields, copy)


def _without(tree: exp.Expr, part: str) -> exp.Expr:
    changed = tree.copy()
    changed.set(part, None)
    return changed


def _negated(query: exp.Expr) -> exp.Expr:
    where = query.args["where"]
    where.set("this", exp.not_(where.this))
    return query


def _null_of(tree: exp.Expr) -> exp.Expr:
    changed = tree.copy()
    for column in list(changed.find_all(exp.Column)):
        if column.name == "y":
            column.replace(exp.alias_(exp.Null(), "y", quoted=True))
    return changed


MUTANTS: tuple[Mutant, ...] = (
    Mutant("rows around a subquery with a null are not found again", Builder.AROUND,
           wrapped(module(Builder.SELECT), "Link", lambda real: lambda inner, outer, nulls_match=False: real(inner, outer, False)),
           (NEAR_NULL,)),
    Mutant("a subquery asks for the opposite of the rows around it", Builder.AROUND,
           wrapped(module(Builder.AROUND), "_with_rows", lambda real: lambda stage, query: _negated(real(stage, query))), (NEAR,)),
    Mutant("a column is taken for NULL", Builder.BARE_NULLS,
           returned(import_module("everview.plan.build"), "without_bare_nulls", _null_of),
           ("SELECT q.x, q.y FROM (SELECT a AS x, b AS y FROM visits) AS q",)),
    Mutant("every column beside a NULL is NULL", Builder.BARE_NULLS,
           instead(module(Builder.BARE_NULLS), "_bare", lambda output: True),
           ("SELECT coalesce(q.y, q.x) AS z, q.x FROM (SELECT a AS x, NULL AS y FROM visits) AS q",)),
    Mutant("DISTINCT of an aggregate is lost", Builder.CALLS,
           returned(module(Builder.CALLS), "aggregate", _called(distinct=False)),
           ("SELECT a, count(DISTINCT b) AS n FROM visits GROUP BY a",)),
    Mutant("FILTER of an aggregate is lost", Builder.CALLS,
           returned(module(Builder.CALLS), "aggregate", _called(filter=None)),
           ("SELECT a, count(b) FILTER (WHERE b > 1) AS n FROM visits GROUP BY a",)),
    Mutant("the order of an aggregate is lost", Builder.CALLS,
           returned(module(Builder.CALLS), "_with_order", _texts(" DESC", "")), (PICKED,)),
    Mutant("everything is a sum", Builder.CALLS,
           wrapped(module(Builder.CALLS), "aggregate", lambda real: lambda *args: (
               replace(call, function="sum") if (call := real(*args)).function == "avg" else call)),
           ("SELECT a, avg(b) AS m FROM visits GROUP BY a",)),
    Mutant("structs have ends", Builder.CALLS, instead(module(Builder.CALLS), "has_ends", lambda kind: True),
           ("SELECT a, max(s) AS h, min(s) AS l FROM points GROUP BY a",)),
    Mutant("INTERVALs have ends", Builder.CALLS, instead(module(Builder.CALLS), "has_ends", lambda kind: True),
           ("SELECT a, CAST(max(i) AS VARCHAR) AS h FROM points WHERE CAST(i AS VARCHAR) NOT IN ('1 month', '24:00:00') "
            "GROUP BY a",)),
    Mutant("INTERVALs have ends, of which two are equal", Builder.CALLS,
           instead(module(Builder.CALLS), "has_ends", lambda kind: True),
           ("SELECT a, CAST(max(i) AS VARCHAR) AS h FROM points GROUP BY a",)),
    Mutant("a collation ends where it stands", Builder.COLLATIONS,
           instead(import_module("everview.plan.build"), "escaping", lambda tree: None), (COLLATED,)),
    Mutant("text under a collation is compared by its bytes", Builder.COLLATIONS,
           instead(module(Builder.JOINS), "comparable", lambda left, right: (
               Expr(left.sql.replace(" COLLATE NOCASE", "").replace(" COLLATE nocase", ""), left.type), right)), (NOCASE,)),
    Mutant("< is <=", Builder.FIRST_ROWS, wrapped(module(Builder.FIRST_ROWS), "as_first", lambda real: lambda condition: (
        (found := real(condition)) and replace(found, limit=found.limit + isinstance(condition, exp.LT)))), (FIRST,)),
    Mutant("rank() is row_number()", Builder.FIRST_ROWS,
           instead(module(Builder.FIRST_ROWS).First, "ties", property(lambda self: False)), (RANKED,)),
    Mutant("BETWEEN begins with the first row", Builder.FIRST_ROWS, wrapped(
        module(Builder.FIRST_ROWS), "as_first", lambda real: lambda condition: (
            (found := real(condition)) and replace(found, exact=True))), (BETWEEN,)),
    Mutant("the first rows of all partitions", Builder.FIRST_ROWS, staged(
        Builder.FIRST_ROWS, "keep_first", lambda node: replace(node, partition=()) if isinstance(node, TopK) else node), (FIRST,)),
    Mutant("ROLLUP has no total", Builder.GROUPS, returned(module(Builder.GROUPS), "_alternatives", lambda sets: (
        sets[:-1] if len(sets) > 1 else sets)), (ROLLED, CUBED)),
    Mutant("GROUPING has its bits the other way round", Builder.GROUPS,
           wrapped(module(Builder.GROUPS), "_groupings", lambda real: lambda stage, query, texts, number, known: real(
               stage, query, [one[::-1] if len(one) != 1 else texts[3 - at] for at, one in enumerate(texts)], number, known)),
           (CUBED,)),
    Mutant("a group column is lost", Builder.GROUPS,
           returned(module(Builder.GROUPS), "_sets", lambda sets: [[one[0], one[0]] for one in sets]),
           ("SELECT count(*) AS n FROM visits GROUP BY a, b",)),
    Mutant("a condition beyond the keys is lost", Builder.JOINS, wrapped(module(Builder.JOINS), "_join", _lost_rest),
           ("SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.a AND o.amount > v.b",)),
    Mutant("nulls match where they should not, and the other way round", Builder.JOINS,
           returned(module(Builder.JOINS), "equality", _plain_equality),
           ("SELECT o.id, v.b FROM orders AS o JOIN visits AS v ON o.customer = v.a",
            "SELECT o.id, v.b FROM orders AS o JOIN visits AS v ON o.customer IS NOT DISTINCT FROM v.a")),
    Mutant("an as-of join takes the next row", Builder.JOINS, returned(
        module(Builder.JOINS), "as_of", lambda node: replace(node, query=node.query.replace(">=", ">"))), (AS_OF, AS_OF_RIGHT)),
    Mutant("an as-of LEFT join is inner", Builder.JOINS, returned(
        module(Builder.JOINS), "as_of", lambda node: replace(node, query=node.query.replace("ASOF LEFT JOIN", "ASOF JOIN"))),
           (AS_OF_RIGHT,)),
    Mutant("a lateral join loses its side", Builder.LATERAL, given(
        module(Builder.LATERAL), "joined", lambda context, left, columns, source, outer: (
            context, left, columns, source, False)), (LATERAL, ITEMS)),
    Mutant("an empty list has no row", Builder.LATERAL, wrapped(
        module(Builder.LATERAL), "unnest", lambda real: lambda *args: (
            replace(found[0], outer=False) if isinstance((found := real(*args))[0], Unnest) else found[0], *found[1:])),
           (ITEMS,)),
    Mutant("a count over nothing is NULL", Builder.LINKS, wrapped(
        module(Builder.LINKS), "attach", lambda real: lambda stage, piece, place: real(
            stage, replace(piece, empty=piece.empty and ("NULL",) * len(piece.empty)), place)), (LINKED,)),
    Mutant("a sum over nothing is zero", Builder.LINKS, wrapped(
        module(Builder.LINKS), "attach", lambda real: lambda stage, piece, place: real(
            stage, replace(piece, empty=piece.empty and ("0",) * len(piece.empty)), place)), (LINKED_SUM,)),
    Mutant("a value that is not there takes its row away", Builder.LINKS,
           staged(Builder.LINKS, "attach", _inner), (LINKED_SUM,)),
    Mutant("OFFSET is ignored", Builder.ORDER, staged(Builder.ORDER, "limited", _no_offset), (LATER,)),
    Mutant("NULLS FIRST is ignored", Builder.ORDER, staged(Builder.ORDER, "limited", _sorted(nulls_first=False)), (LATER,)),
    Mutant("DESC is ignored", Builder.ORDER, staged(Builder.ORDER, "limited", _sorted(descending=False)), (LATER,)),
    Mutant("LIMIT is one more", Builder.ORDER, returned(
        module(Builder.ORDER), "limit_of", lambda found: (found[0] and found[0] + 1, found[1])), (LATER,)),
    Mutant("a query in parentheses loses its limit", Builder.QUERIES, wrapped(
        module(Builder.QUERIES), "_built", lambda real: lambda context, query, alias, needed: real(
            context, query.this if isinstance(query, exp.Subquery) else query, alias, needed)),
           ("(SELECT id, amount FROM orders) ORDER BY amount, id LIMIT 2",)),
    Mutant("only the existence of rows matters", Builder.QUERIES, wrapped(
        module(Builder.QUERIES), "_built", lambda real: lambda context, query, alias, needed: real(context, query, alias, False)),
           ("SELECT DISTINCT 1 AS one FROM orders",)),
    Mutant("of equal rows one is kept", Builder.REEVALUATE,
           wrapped(module(Builder.REEVALUATE), "_numbered", _no_copies), (PERCENT,)),
    Mutant("inputs of a text are exchanged", Builder.REEVALUATE, wrapped(
        module(Builder.REEVALUATE), "over_inputs", lambda real: lambda context, query: (
            (found := real(context, query))[0].replace("in0", "in2").replace("in1", "in0").replace("in2", "in1"), found[1])),
           ("SELECT o.id, v.id AS v FROM (SELECT id FROM lands) AS o POSITIONAL JOIN (SELECT id FROM customers) AS v",)),
    Mutant("the last condition is lost", Builder.SCOPES,
           wrapped(module(Builder.SOURCES), "conjuncts", _last_condition),
           ("SELECT id FROM orders WHERE amount > 1 AND customer > 1",)),
    Mutant("sorts lose their direction", Builder.SCOPES, returned(
        module(Builder.SCOPES), "as_sort", lambda sort: replace(sort, descending=False)), (LATER,)),
    Mutant("the key settles ties the other way round", Builder.SCOPES, returned(
        module(Builder.ORDER), "by_key", lambda sorts: sorts[::-1]), (LATER,)),
    Mutant("HAVING is lost", Builder.SELECT, instead(module(Builder.SELECT), "_having", _no_having), (SUMMED,)),
    Mutant("DISTINCT is lost", Builder.SELECT, returned(module(Builder.SELECT), "_distinct", _as_distinct),
           ("SELECT count(*) AS n FROM (SELECT DISTINCT a, b FROM visits)",)),
    Mutant("QUALIFY is lost", Builder.SELECT, wrapped(
        module(Builder.SELECT), "_windows", lambda real: lambda made: (made.query.set("qualify", None), real(made))[1]),
           (FIRST, BETWEEN)),
    Mutant("DISTINCT ON takes the last row", Builder.SELECT, wrapped(
        module(Builder.SELECT), "by_key", lambda real: lambda relation, order=(): tuple(
            replace(sort, descending=not sort.descending) for sort in real(relation, order))),
           ("SELECT DISTINCT ON (customer) customer, id FROM orders ORDER BY customer, amount, id",)),
    Mutant("EXCEPT is INTERSECT", Builder.SETS, entry(module(Builder.SETS)._KINDS, exp.Except, SetKind.INTERSECT), (EXCEPT_ALL,)),
    Mutant("ALL is lost", Builder.SETS, wrapped(module(Builder.SETS), "SetOperation", lambda real: (
        lambda kind, every, left, right, columns, copy: SetOperation(kind, False, left, right, columns))), (EXCEPT_ALL,)),
    Mutant("the sides are exchanged", Builder.SETS, wrapped(module(Builder.SETS), "SetOperation", lambda real: (
        lambda kind, every, left, right, columns, copy: SetOperation(kind, every, right, left, columns, copy))), (EXCEPT_ALL,)),
    Mutant("a UNION inside a UNION ALL is flat", Builder.SETS, wrapped(
        module(Builder.SETS), "_member", lambda real: lambda side: [side.this.left, side.this.right] if isinstance(
            side.this, exp.SetOperation) else [side]),
           ("SELECT a FROM visits UNION ALL (SELECT b FROM visits UNION SELECT id FROM lands)",
            "SELECT a, b FROM visits UNION ALL (SELECT id, id FROM lands EXCEPT SELECT b, a FROM visits)")),
    Mutant("LEFT is INNER", Builder.SOURCES, entry(module(Builder.SOURCES)._KINDS, ("LEFT", ""), JoinKind.INNER),
           ("SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.a",)),
    Mutant("FULL is RIGHT", Builder.SOURCES, entry(module(Builder.SOURCES)._KINDS, ("FULL", ""), JoinKind.RIGHT),
           ("SELECT o.id, c.id AS c FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id",)),
    Mutant("WHERE is lost", Builder.SOURCES, wrapped(
        module(Builder.SOURCES).Sources, "hold", lambda real: lambda self, conditions: real(self, conditions[:-1])),
           ("SELECT id FROM orders WHERE amount > 1 AND customer > 1",)),
    Mutant("NOT IN ignores nulls", Builder.SUBQUERIES, wrapped(
        module(Builder.SUBQUERIES), "parsed", lambda real: lambda sql: real("TRUE" if "IS NULL AND" in sql else sql)), (NOT_IN,)),
    Mutant("NOT EXISTS is EXISTS", Builder.SUBQUERIES, staged(Builder.SUBQUERIES, "keep", _semi), (EXISTING, NOT_IN)),
    Mutant("IN is never unknown", Builder.SUBQUERIES, _worded(Builder.SUBQUERIES, "_member", "THEN NULL", "THEN FALSE"), (IS_IN,)),
    Mutant("ANY is ALL", Builder.SUBQUERIES,
           entry(module(Builder.SUBQUERIES)._ANY_OF, exp.GT, ("max",)), (ANY_OF,)),
    Mutant("ALL ignores nulls", Builder.SUBQUERIES, _worded(Builder.SUBQUERIES, "_compared", "THEN NULL", "THEN TRUE"), (ALL_OF,)),
    Mutant("ALL of nothing is false", Builder.SUBQUERIES,
           _worded(Builder.SUBQUERIES, "_compared", "= 0 THEN TRUE", "= 0 THEN FALSE"), (ALL_OF,)),
    Mutant("the partition is lost", Builder.WINDOWS, given(
        module(Builder.WINDOWS), "_call", lambda stage, tree, text, links: (stage, _without(tree, "partition_by"), text, links)),
           (NUMBERS, SUMS)),
    Mutant("the order is lost", Builder.WINDOWS, given(
        module(Builder.WINDOWS), "_call", lambda stage, tree, text, links: (stage, _without(tree, "order"), text, links)), (SUMS,)),
    Mutant("the frame is lost", Builder.WINDOWS, given(
        module(Builder.WINDOWS), "_call", lambda stage, tree, text, links: (stage, _without(tree, "spec"), text, links)),
           ("SELECT id, count(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM orders",)),
    Mutant("peers are told apart", Builder.WINDOWS,
           instead(module(Builder.WINDOWS), "_ONE_BY_ONE", frozenset({"row_number", "lag", "lead", "ntile", "sum"})), (SUMS,)),
)  # fmt: skip
