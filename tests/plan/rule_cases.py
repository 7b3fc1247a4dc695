"""Trees for the rules, by name: what each rule does is printed in tests/scripts/rules."""

from __future__ import annotations

from dataclasses import replace

from everview.change.types import BIGINT, BOOLEAN, INTEGER, list_of
from everview.plan.expressions import Expr, Field, of_field, quoted
from everview.plan.relations import (
    Aggregate,
    Call,
    Distinct,
    Equality,
    Filter,
    Join,
    JoinKind,
    Project,
    Reevaluate,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    TopK,
    Union,
    Unnest,
    Way,
    Window,
    project,
)
from everview.plan.rules import Rule
from everview.plan.rules.fold_constants import fold_constants
from everview.plan.rules.join_dimensions import join_dimensions
from everview.plan.rules.join_equalities import join_equalities
from everview.plan.rules.merge_filters import merge_filters
from everview.plan.rules.merge_projections import merge_projections
from everview.plan.rules.merge_unions import merge_unions
from everview.plan.rules.order_joins import order_joins
from everview.plan.rules.outer_to_inner import outer_to_inner
from everview.plan.rules.prune_columns import prune_columns
from everview.plan.rules.push_filters import push_filters
from everview.plan.rules.reevaluate_pairs import reevaluate_pairs
from everview.plan.rules.remove_identities import remove_identities
from everview.plan.rules.settle_ties import settle_ties
from everview.plan.rules.split_reevaluations import split_reevaluations

INNER, LEFT, RIGHT, FULL = JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL
SEMI, ANTI = JoinKind.SEMI, JoinKind.ANTI


def table(alias: str) -> Scan:
    """A table of its own for each alias, with the columns id, x and y."""
    columns = (Field("id", INTEGER, nullable=False), Field("x", INTEGER), Field("y", INTEGER))
    return Scan(alias, alias, columns, ("id",))


def where(input: Relation, condition: str) -> Filter:
    return Filter(input, Expr(condition, BOOLEAN))


def join(kind: JoinKind, left: Relation, right: Relation, *on: tuple[str, str], rest: str = "") -> Join:
    return Join(
        kind,
        left,
        right,
        tuple(equal(left, one, right, other) for one, other in on),
        Expr(rest, BOOLEAN) if rest else None,
    )


def select(input: Relation, **columns: str) -> Project:
    return project(input, [(Field(name, BIGINT), Expr(text, BIGINT)) for name, text in columns.items()])


def passing(input: Relation, *names: str) -> Project:
    return project(input, [(input.field(name), of_field(input.field(name))) for name in names])


def union(*parts: Relation) -> Union:
    """Its fields are named after how many inputs there are."""
    name = f"u{len(parts)}"
    columns = tuple(replace(field, name=f"{name}-{n}") for n, field in enumerate(parts[0].shown))
    return Union(parts, columns, Field(name, BIGINT, nullable=False, hidden=True))


def count_by(input: Relation, *names: str) -> Aggregate:
    groups = tuple((replace(input.field(name), name=f"by.{name}"), of_field(input.field(name))) for name in names)
    return Aggregate(input, groups, (Call(Field("n", BIGINT, nullable=False), "count", sql="COUNT(*)", way=Way.SUM),))


def numbered(input: Relation, *partition: str) -> Window:
    parts = tuple(of_field(input.field(name)) for name in partition)
    over = f"PARTITION BY {', '.join(part.sql for part in parts)} ORDER BY {quoted(input.key[0])}"
    order = (Sort(of_field(input.field(input.key[0]))),)
    return Window(
        input, parts, (Call(Field("w", BIGINT), "row_number", order=order, sql=f"ROW_NUMBER() OVER ({over})"),)
    )


def both(kind: SetKind, left: Relation, right: Relation) -> SetOperation:
    columns = tuple(replace(field, name=f"s.{n}") for n, field in enumerate(left.shown))
    return SetOperation(kind, False, left, right, columns)


def items(input: Relation) -> Unnest:
    return Unnest(input, Expr("[1, 2]", list_of(INTEGER)), Field("item", INTEGER), Field("at", BIGINT, hidden=True))


def equal(left: Relation, one: str, right: Relation, other: str) -> Equality:
    return Equality(of_field(left.field(one)), of_field(right.field(other)))


a, b, c, d = (table(alias) for alias in "abcd")


CASES: tuple[tuple[str, Rule, Relation], ...] = (
    (
        "a top-k says which key settles its ties",
        settle_ties,
        TopK(join(INNER, a, b, ("a.x", "b.x")), (), (Sort(of_field(a.field("a.y"))),), 3),
    ),
    (
        "a re-evaluated text says which key settles its ties",
        settle_ties,
        Reevaluate(
            (a,),
            'SELECT "a.id", lag("a.y") OVER (ORDER BY "a.x") AS "n" FROM in0 ORDER BY "a.x" LIMIT 10 PERCENT',
            (a.field("a.id"), Field("n", INTEGER)),
            ("a.id",),
            reason="anything",
        ),
    ),
    (
        "filters in a row are one",
        merge_filters,
        where(where(where(a, '"a.x" = 1'), '"a.y" = 2 AND "a.id" = 3'), '"a.x" = 1'),
    ),
    (
        "constants are computed",
        fold_constants,
        where(where(a, "1 = 1 AND (2 < 1 OR \"a.x\" = 1) AND 'x' <> 'y'"), "NULL OR TRUE"),
    ),
    (
        "constants of a join are computed",
        fold_constants,
        join(LEFT, a, b, ("a.x", "b.x"), rest='"b.y" = 1 AND NOT (1 < 2)'),
    ),
    (
        "a filter drops the missing rows of a left join",
        outer_to_inner,
        where(join(LEFT, a, b, ("a.x", "b.id")), '"b.y" + 1 > 3'),
    ),
    (
        "a filter drops the missing rows of a right join",
        outer_to_inner,
        where(join(RIGHT, a, b, ("a.x", "b.x")), '"a.y" IN (1, 2)'),
    ),
    ("a filter drops half of a full join", outer_to_inner, where(join(FULL, a, b, ("a.x", "b.x")), '"a.y" = 1')),
    (
        "filters drop both halves of a full join",
        outer_to_inner,
        where(join(FULL, a, b, ("a.x", "b.x")), '"a.y" = 1 AND ("b.x" < 9 OR "b.y" IS NOT NULL)'),
    ),
    (
        "an upper join drops the missing rows of a left join",
        outer_to_inner,
        join(INNER, select(join(LEFT, a, b, ("a.x", "b.x")), p='"b.y"'), c, ("p", "c.id")),
    ),
    (
        "a key gets smaller below a union",
        outer_to_inner,
        passing(
            where(union(passing(join(LEFT, a, b, ("a.id", "b.x")), "b.y"), passing(c, "c.y")), '"u2-0" = 1'), "u2-0"
        ),
    ),
    (
        "inner join: to both sides",
        push_filters,
        where(join(INNER, a, b, ("a.id", "b.id"), rest='"b.x" > 1'), '"a.x" = 1 AND "a.y" < "b.y"'),
    ),
    (
        "left join: a filter to the left, its own condition to the right",
        push_filters,
        where(join(LEFT, a, b, ("a.id", "b.id"), rest='"b.x" > 1 AND "a.x" > 1'), '"a.y" = 1 AND "b.y" IS NULL'),
    ),
    (
        "semi join: all to the left",
        push_filters,
        where(join(SEMI, a, b, ("a.id", "b.id"), rest='"b.x" > 1 AND "a.x" > 1'), '"a.y" = 1'),
    ),
    (
        "anti join: its own condition stays where it is about the left",
        push_filters,
        where(join(ANTI, a, b, ("a.id", "b.id"), rest='"b.x" > 1 AND "a.x" > 1'), '"a.y" = 1'),
    ),
    ("projection: over what its fields are", push_filters, where(select(a, p='"a.x" + 1', q="5"), '"p" * 2 > "q"')),
    ("aggregate: what is about its groups", push_filters, where(count_by(a, "a.x"), '"by.a.x" > 1 AND "n" > 2')),
    (
        "grouping sets: what is about a column of all sets",
        push_filters,
        where(
            replace(count_by(a, "a.x", "a.y"), sets=((0, 1), (0,)), set_number=Field("set", BIGINT, hidden=True)),
            '"by.a.x" > 1 AND "by.a.y" > 2',
        ),
    ),
    (
        "window: what is about its partition",
        push_filters,
        where(numbered(a, "a.x"), '"a.x" > 1 AND "a.y" > 2 AND "w" = 1'),
    ),
    (
        "top-k: what is about its partition",
        push_filters,
        where(TopK(a, (Expr('"a.x" + 1', INTEGER),), (), 3), '"a.x" + 1 > 2 AND "a.x" > 1'),
    ),
    ("union all: into every input", push_filters, where(union(passing(a, "a.x"), passing(b, "b.y")), '"u2-0" = 1')),
    ("distinct: below it", push_filters, where(Distinct(passing(a, "a.x", "a.y")), '"a.x" = 1')),
    (
        "set operation: into both sides",
        push_filters,
        where(both(SetKind.EXCEPT, passing(a, "a.x"), passing(b, "b.x")), '"s.0" = 1'),
    ),
    ("unnest: what is not about the item", push_filters, where(items(a), '"a.x" = 1 AND "item" = 1')),
    ("a filter's equality joins", join_equalities, where(join(INNER, a, b), '"a.y" < "b.y" AND "b.id" = "a.x"')),
    (
        "an equality of a join's rest joins",
        join_equalities,
        join(LEFT, a, b, ("a.x", "b.x"), rest='"a.id" > 1 AND "a.y" IS NOT DISTINCT FROM "b.y"'),
    ),
    (
        "whole numbers of different width join as the wider",
        join_equalities,
        join(INNER, a, count_by(b, "b.x"), rest='"a.y" = "n"'),
    ),
    (
        "every join gets an equality",
        order_joins,
        passing(
            Join(
                INNER,
                join(INNER, a, b),
                c,
                (equal(a, "a.x", c, "c.x"), equal(b, "b.y", c, "c.y")),
                Expr('"a.id" < "b.id"', BOOLEAN),
            ),
            "a.x",
            "b.x",
        ),
    ),
    (
        "one row comes last, with what is asked about it",
        order_joins,
        count_by(join(INNER, join(INNER, a, count_by(d), rest='"a.y" < "n"'), b, ("a.x", "b.id")), "a.x"),
    ),
    (
        "what adds one row at most is joined before rows are multiplied",
        join_dimensions,
        passing(
            join(INNER, join(INNER, join(INNER, a, b, ("a.id", "b.x")), c, ("b.id", "c.x")), d, ("a.y", "d.id")),
            "c.y",
            "d.x",
        ),
    ),
    (
        "what others look up is whole before it is looked up",
        join_dimensions,
        passing(
            join(
                INNER,
                join(INNER, join(INNER, c, b, ("c.y", "b.id")), where(a, '"a.x" > 1'), ("c.x", "a.id")),
                d,
                ("a.y", "d.id"),
                rest='"b.y" < "d.y"',
            ),
            "c.id",
            "d.x",
        ),
    ),
    (
        "projections in a row are one",
        merge_projections,
        select(select(a, p='"a.x" + 1', q="'1'"), r='"p" * 2', s='"p"', t='"q" < 2'),
    ),
    (
        "nobody reads it, nobody keeps it",
        prune_columns,
        passing(where(join(INNER, join(INNER, a, b, ("a.x", "b.x")), c, ("b.y", "c.y")), '"c.x" = 1'), "a.y"),
    ),
    (
        "calls that nobody reads",
        prune_columns,
        passing(numbered(where(count_by(a, "a.x"), '"n" > 1'), "by.a.x"), "by.a.x"),
    ),
    (
        "a column of a union goes with those of its inputs",
        prune_columns,
        passing(union(passing(a, "a.id", "a.x"), Distinct(passing(b, "b.x", "b.y"))), "u2-1"),
    ),
    (
        "a semi join's right side needs only what is compared",
        prune_columns,
        passing(join(SEMI, a, join(INNER, b, c, ("b.x", "c.x")), ("a.x", "b.y")), "a.id"),
    ),
    (
        "a re-evaluated text does not name what nobody reads",
        prune_columns,
        passing(
            Reevaluate(
                (a, b),
                'SELECT "t"."id" AS "p", "t"."x" AS "q", "b.y" AS "r" FROM (SELECT "a.id" AS "id", "a.x" AS "x", '
                '"a.y" AS "y" FROM in0) AS "t" ASOF JOIN (SELECT * FROM in1) AS "u" ON "t"."x" >= "u"."b.x"',
                (Field("p", INTEGER), Field("q", INTEGER), Field("r", INTEGER)),
                ("p",),
                reason="anything",
            ),
            "p",
        ),
    ),
    (
        "unions in a row are one",
        merge_unions,
        passing(union(union(passing(a, "a.x"), passing(b, "b.x")), passing(c, "c.x"), passing(d, "d.x")), "u3-0"),
    ),
    (
        "a union whose key is read stays",
        merge_unions,
        settle_ties(
            TopK(
                union(union(passing(a, "a.x"), passing(b, "b.x")), passing(c, "c.x"), passing(d, "d.x")),
                (),
                (),
                1,
                offset=1,
            )
        ),
    ),
    (
        "a projection that passes on everything goes",
        remove_identities,
        passing(where(passing(a, "a.id", "a.x", "a.y"), '"a.x" = 1'), "a.x", "a.id", "a.y"),
    ),
    ("below an aggregate any that only passes on", remove_identities, count_by(passing(a, "a.x", "a.id"), "a.x")),
    (
        "a join without an equality is evaluated again",
        reevaluate_pairs,
        passing(join(LEFT, where(a, '"a.x" > 1'), b, rest='"a.x" < "b.y"'), "a.id", "b.x"),
    ),
    (
        "a join with one row stays a join",
        reevaluate_pairs,
        passing(join(INNER, a, count_by(b), rest='"a.x" < "n"'), "a.id"),
    ),
    (
        "a re-evaluation is split by what keeps its rows apart",
        split_reevaluations,
        Reevaluate(
            (a, b),
            'SELECT "a.id", "a.x", "b.y", UNNEST([1, 2]) AS "n" FROM in0 JOIN in1 ON "a.x" = "b.id" AND "a.y" > "b.y"',
            (a.field("a.id"), a.field("a.x"), b.field("b.y"), Field("n", INTEGER)),
            ("a.id", "n"),
            reason="anything",
        ),
    ),
    (
        "a re-evaluation of all rows together stays whole",
        split_reevaluations,
        Reevaluate((a,), 'SELECT "a.id" FROM in0 LIMIT 10 PERCENT', (a.field("a.id"),), ("a.id",), reason="anything"),
    ),
)
