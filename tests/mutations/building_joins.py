"""Faults of the builders of FROM and of subqueries.

Each is broken where it decides which rows meet, and what stands where none do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from everview.plan.relations import (
    Equality,
    Join,
    JoinKind,
    Relation,
    Unnest,
)
from tests.mutations.building import module, staged, texts
from tests.mutations.mutant import Fault, Mutant, entry, given, returned, wrapped
from tests.mutations.targets import Builder

NEAR = "SELECT c.id, (SELECT count(*) FROM visits AS v WHERE v.a > c.score) AS n FROM customers AS c"
NEAR_NULL = "SELECT c.id, (SELECT count(*) FROM visits AS v WHERE (v.a > c.score) IS NOT TRUE) AS n FROM customers AS c"
LINKED = "SELECT c.id, (SELECT count(*) FROM visits AS v WHERE v.a = c.score) AS n FROM customers AS c"
LINKED_SUM = "SELECT c.id, (SELECT sum(v.b) FROM visits AS v WHERE v.a = c.score) AS s FROM customers AS c"
NOT_IN = "SELECT o.id FROM orders AS o WHERE o.customer NOT IN (SELECT v.a FROM visits AS v WHERE v.b > 3)"
IS_IN = "SELECT o.id, o.customer IN (SELECT v.a FROM visits AS v) AS i FROM orders AS o"
ANY_OF = "SELECT o.id FROM orders AS o WHERE o.amount > ANY (SELECT v.a FROM visits AS v WHERE v.b = o.customer)"
ALL_OF = "SELECT o.id, o.amount <= ALL (SELECT v.a FROM visits AS v WHERE v.b = o.customer) AS f FROM orders AS o"
EXISTING = "SELECT o.id FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.a = o.customer)"
LATERAL = (
    "SELECT o.id, q.b FROM orders AS o "
    "LEFT JOIN LATERAL (SELECT v.b FROM visits AS v WHERE v.a = o.customer) AS q ON TRUE"
)
ITEMS = "SELECT o.id, u.i FROM orders AS o LEFT JOIN unnest(o.items) AS u(i) ON TRUE"
AS_OF = "SELECT o.id, l.id AS l, l.name FROM orders AS o ASOF JOIN lands AS l ON o.amount >= l.id"
AS_OF_RIGHT = "SELECT o.id, l.id AS l FROM orders AS o ASOF LEFT JOIN lands AS l ON o.amount >= l.id"


def _semi(node: Relation) -> Relation:
    return replace(node, kind=JoinKind.SEMI) if isinstance(node, Join) and node.kind is JoinKind.ANTI else node


def _inner(node: Relation) -> Relation:
    return replace(node, kind=JoinKind.INNER) if isinstance(node, Join) and node.kind is JoinKind.LEFT else node


def _worded(builder: Builder, function: str, old: str, new: str) -> Fault:
    return returned(module(builder), function, texts(old, new))


def _plain_equality(found: Equality | None) -> Equality | None:
    return None if found is None else replace(found, nulls_match=not found.nulls_match)


def _lost_rest(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context, kind, left, right, keys, rest: real(context, kind, left, right, keys, None)


def _negated(query: exp.Expr) -> exp.Expr:
    where = query.args["where"]
    where.set("this", exp.not_(where.this))
    return query


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "rows around a subquery with a null are not found again",
        Builder.AROUND,
        wrapped(
            module(Builder.SELECT),
            "Link",
            lambda real: lambda inner, outer, nulls_match=False: real(inner, outer, False),
        ),
        (NEAR_NULL,),
    ),
    Mutant(
        "a subquery asks for the opposite of the rows around it",
        Builder.AROUND,
        wrapped(module(Builder.AROUND), "_with_rows", lambda real: lambda stage, query: _negated(real(stage, query))),
        (NEAR,),
    ),
    Mutant(
        "a condition beyond the keys is lost",
        Builder.JOIN_CLAUSES,
        wrapped(module(Builder.JOIN_CLAUSES), "_join", _lost_rest),
        ("SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.a AND o.amount > v.b",),
    ),
    Mutant(
        "nulls match where they should not, and the other way round",
        Builder.JOIN_CLAUSES,
        returned(module(Builder.JOIN_CLAUSES), "equality", _plain_equality),
        (
            "SELECT o.id, v.b FROM orders AS o JOIN visits AS v ON o.customer = v.a",
            "SELECT o.id, v.b FROM orders AS o JOIN visits AS v ON o.customer IS NOT DISTINCT FROM v.a",
        ),
    ),
    Mutant(
        "an as-of join takes the next row",
        Builder.JOIN_CLAUSES,
        returned(
            module(Builder.JOIN_CLAUSES), "as_of", lambda node: replace(node, query=node.query.replace(">=", ">"))
        ),
        (AS_OF, AS_OF_RIGHT),
    ),
    Mutant(
        "an as-of LEFT join is inner",
        Builder.JOIN_CLAUSES,
        returned(
            module(Builder.JOIN_CLAUSES),
            "as_of",
            lambda node: replace(node, query=node.query.replace("ASOF LEFT JOIN", "ASOF JOIN")),
        ),
        (AS_OF_RIGHT,),
    ),
    Mutant(
        "a lateral join loses its side",
        Builder.LATERAL,
        given(
            module(Builder.LATERAL),
            "joined",
            lambda context, left, columns, source, outer: (context, left, columns, source, False),
        ),
        (LATERAL, ITEMS),
    ),
    Mutant(
        "an empty list has no row",
        Builder.LATERAL,
        wrapped(
            module(Builder.LATERAL),
            "unnest",
            lambda real: (
                lambda *args: (
                    replace(found[0], outer=False) if isinstance((found := real(*args))[0], Unnest) else found[0],
                    *found[1:],
                )
            ),
        ),
        (ITEMS,),
    ),
    Mutant(
        "a count over nothing is NULL",
        Builder.LINKS,
        wrapped(
            module(Builder.LINKS),
            "attach",
            lambda real: (
                lambda stage, piece, place: real(
                    stage, replace(piece, empty=piece.empty and ("NULL",) * len(piece.empty)), place
                )
            ),
        ),
        (LINKED,),
    ),
    Mutant(
        "a sum over nothing is zero",
        Builder.LINKS,
        wrapped(
            module(Builder.LINKS),
            "attach",
            lambda real: (
                lambda stage, piece, place: real(
                    stage, replace(piece, empty=piece.empty and ("0",) * len(piece.empty)), place
                )
            ),
        ),
        (LINKED_SUM,),
    ),
    Mutant(
        "a value that is not there takes its row away",
        Builder.LINKS,
        staged(Builder.LINKS, "attach", _inner),
        (LINKED_SUM,),
    ),
    Mutant(
        "LEFT is INNER",
        Builder.FROM_CLAUSE,
        entry(module(Builder.FROM_CLAUSE)._KINDS, ("LEFT", ""), JoinKind.INNER),
        ("SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.a",),
    ),
    Mutant(
        "FULL is RIGHT",
        Builder.FROM_CLAUSE,
        entry(module(Builder.FROM_CLAUSE)._KINDS, ("FULL", ""), JoinKind.RIGHT),
        ("SELECT o.id, c.id AS c FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id",),
    ),
    Mutant(
        "WHERE is lost",
        Builder.FROM_CLAUSE,
        wrapped(
            module(Builder.FROM_CLAUSE).Sources,
            "hold",
            lambda real: lambda self, conditions: real(self, conditions[:-1]),
        ),
        ("SELECT id FROM orders WHERE amount > 1 AND customer > 1",),
    ),
    Mutant(
        "NOT IN ignores nulls",
        Builder.SUBQUERIES,
        wrapped(
            module(Builder.SUBQUERIES), "parsed", lambda real: lambda sql: real("TRUE" if "IS NULL AND" in sql else sql)
        ),
        (NOT_IN,),
    ),
    Mutant("NOT EXISTS is EXISTS", Builder.SUBQUERIES, staged(Builder.SUBQUERIES, "keep", _semi), (EXISTING, NOT_IN)),
    Mutant(
        "IN is never unknown",
        Builder.SUBQUERIES,
        _worded(Builder.SUBQUERIES, "_member", "THEN NULL", "THEN FALSE"),
        (IS_IN,),
    ),
    Mutant("ANY is ALL", Builder.SUBQUERIES, entry(module(Builder.SUBQUERIES)._ANY_OF, exp.GT, ("max",)), (ANY_OF,)),
    Mutant(
        "ALL ignores nulls",
        Builder.SUBQUERIES,
        _worded(Builder.SUBQUERIES, "_compared", "THEN NULL", "THEN TRUE"),
        (ALL_OF,),
    ),
    Mutant(
        "ALL of nothing is false",
        Builder.SUBQUERIES,
        _worded(Builder.SUBQUERIES, "_compared", "= 0 THEN TRUE", "= 0 THEN FALSE"),
        (ALL_OF,),
    ),
)
