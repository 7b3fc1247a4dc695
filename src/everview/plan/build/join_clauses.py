"""Joins: relations brought together by the conditions between them.

Of the conditions of inner joins, comma joins and WHERE, those that equate an
expression over one input with one over another become join keys, and the inputs are joined in
an order in which each one has such a key.

Inputs that no equality connects are joined freely if one of them has one row at most;
otherwise every row must be compared with every other, which is a re-evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from everview.change.types import FLOATS, INTEGERS, Kind
from everview.plan.build.context import BuildContext, NoOperator, text_of
from everview.plan.collations import comparable
from everview.plan.expressions import Expr, conjunction, quoted
from everview.plan.relations import (
    Equality,
    Filter,
    Join,
    JoinKind,
    Reevaluate,
    Relation,
    distinguishes_sides,
    full_join,
)

_NUMBERS = {*INTEGERS, *FLOATS, Kind.DECIMAL}
_TIMES = {Kind.DATE, Kind.TIMESTAMP}


def combine(
    context: BuildContext, parts: Sequence[Relation], conditions: list[exp.Expr], places: Mapping[str, exp.Expr]
) -> Relation:
    """The inner join of all parts. Takes the conditions it has used as join keys off the list.
    ``places`` are where fields come from."""
    waiting = list(parts)
    islands = []
    while waiting:
        island = waiting.pop(0)
        while (found := _connected(context, island, waiting, conditions)) is not None:
            island = found
        islands.append(island)
    while len(islands) > 1:
        islands = _bridged(context, islands, conditions, places)
    return islands[0]


def _connected(
    context: BuildContext, island: Relation, waiting: list[Relation], conditions: list[exp.Expr]
) -> Relation | None:
    """The island joined with the first waiting part that an equality connects to it."""
    for part in waiting:
        keys = [
            (equality, condition) for condition in conditions if (equality := equate(context, condition, island, part))
        ]
        if keys:
            waiting.remove(part)
            for _, condition in keys:
                conditions.remove(condition)
            return Join(JoinKind.INNER, island, part, tuple(equality for equality, _ in keys))
    return None


def _bridged(
    context: BuildContext, islands: list[Relation], conditions: list[exp.Expr], places: Mapping[str, exp.Expr]
) -> list[Relation]:
    """Two islands fewer, one more: first those where one has one row, then those that are left."""
    for number, island in enumerate(islands):
        if not island.key:
            other = islands[number - 1] if number else islands[1]
            left, right = (other, island) if number else (island, other)
            joined: Relation = Join(JoinKind.INNER, left, right, ())
            return _reconnected(
                context, joined, [one for one in islands if one is not island and one is not other], conditions
            )
    left, right, *others = islands
    there = left.by_name.keys() | right.by_name.keys()
    own = [
        c
        for c in conditions
        if fields_in(c) <= there
        and not fields_in(c) <= left.by_name.keys()
        and not fields_in(c) <= right.by_name.keys()
    ]
    for condition in own:
        conditions.remove(condition)
    rest = conjunction(context.condition(condition, left, right) for condition in own)
    why = NoOperator("a join without an equality", own[0] if own else _place(right, places))
    joined = every_pair(context, JoinKind.INNER, left, right, rest, why)
    return _reconnected(context, joined, others, conditions)


def _place(relation: Relation, places: Mapping[str, exp.Expr]) -> exp.Expr | None:
    return next((places[name] for name in relation.by_name if name in places), None)


def _reconnected(
    context: BuildContext, joined: Relation, others: list[Relation], conditions: list[exp.Expr]
) -> list[Relation]:
    while (found := _connected(context, joined, others, conditions)) is not None:
        joined = found
    return [joined, *others]


def fields_in(tree: exp.Expr) -> set[str]:
    return {column.name for column in tree.find_all(exp.Column)}


def equate(context: BuildContext, condition: exp.Expr, left: Relation, right: Relation) -> Equality | None:
    """A condition as a join key, if it equates an expression over one side with one over the other."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
        return None
    one, other = condition.this, condition.expression
    read, read_other = fields_in(one), fields_in(other)
    if not read or not read_other:
        return None
    if read <= right.by_name.keys() and read_other <= left.by_name.keys():
        one, other = other, one
    elif not (read <= left.by_name.keys() and read_other <= right.by_name.keys()):
        return None
    return equality(
        context,
        context.expression(text_of(one.unnest()), left),
        context.expression(text_of(other.unnest()), right),
        isinstance(condition, exp.NullSafeEQ),
    )


def equality(context: BuildContext, left: Expr, right: Expr, nulls_match: bool = False) -> Equality | None:
    """``left = right`` with both sides of one type; None where DuckDB compares them in a third way."""
    sides = comparable(left, right)
    if sides is None:
        return None
    left, right = sides
    if left.type == right.type:
        return Equality(left, right, nulls_match)
    kinds = {left.type.kind, right.type.kind}
    if not (kinds <= _NUMBERS or kinds <= _TIMES):
        return None
    inputs = {"in0": [("l", left.type), ("r", right.type)]}
    ((_, kind),) = context.described("SELECT coalesce(l, r) AS c FROM in0", inputs)
    cast = [side if side.type == kind else Expr(f"CAST({side.sql} AS {kind})", kind) for side in (left, right)]
    return Equality(cast[0], cast[1], nulls_match)


def join_on(
    context: BuildContext,
    kind: JoinKind,
    left: Relation,
    right: Relation,
    conditions: Sequence[exp.Expr],
    place: exp.Expr,
) -> Relation:
    """A join of two relations on conditions over their fields."""
    keys: list[Equality] = []
    others: list[Expr] = []
    for condition in conditions:
        found = equate(context, condition, left, right)
        if found is not None:
            keys.append(found)
        else:
            others.append(context.condition(condition, left, right))
    rest = conjunction(others)
    if not keys and left.key and right.key:
        return every_pair(context, kind, left, right, rest, NoOperator("a join without an equality", place))
    return _join(context, kind, left, right, keys, rest)


def _join(
    context: BuildContext, kind: JoinKind, left: Relation, right: Relation, keys: Sequence[Equality], rest: Expr | None
) -> Join:
    if kind is JoinKind.FULL:
        return full_join(left, right, keys, rest, context.names.fresh("side"))
    return Join(kind, left, right, tuple(keys), rest)


def every_pair(
    context: BuildContext, kind: JoinKind, left: Relation, right: Relation, rest: Expr | None, why: NoOperator
) -> Relation:
    """A join without any equality: rules may find one, or make it a re-evaluation of what is left."""
    context.noticed(why, "every change re-evaluates the join of both inputs as a whole")
    return _join(context, kind, left, right, (), rest)


def as_of(
    context: BuildContext,
    kind: JoinKind,
    left: Relation,
    right: Relation,
    conditions: Sequence[exp.Expr],
    place: exp.Expr,
) -> Relation:
    """For each row of the left side the last row of the right side that is not after it: of right rows at
    one moment, the first by the key. Whether there is one at all is an ordinary semi or anti join."""
    if kind in (JoinKind.SEMI, JoinKind.ANTI):
        return join_on(context, kind, left, right, conditions, place)
    keys = [(found, c) for c in conditions if (found := equate(context, c, left, right)) is not None]
    taken = [condition for _, condition in keys]
    moments = [condition for condition in conditions if condition not in taken]
    if len(moments) != 1 or not isinstance(moments[0], exp.GT | exp.GTE | exp.LT | exp.LTE):
        raise NoOperator("an as-of join of this form", place)
    keeps_right = kind in (JoinKind.RIGHT, JoinKind.FULL)
    if kind is JoinKind.FULL and not distinguishes_sides(left, right):
        raise NoOperator("an as-of join whose sides cannot be distinguished", place)
    settled = ", ".join([*(equality.right.sql for equality, _ in keys), _over(moments[0], right)])
    order = ", ".join(quoted(name) for name in right.key)
    like = Join(kind, left, right, (), marker=right.key[0] if kind is JoinKind.FULL and right.key else None)
    shown = ", ".join(quoted(field.name) for field in like.fields)
    condition = " AND ".join([*(str(equality) for equality, _ in keys), text_of(moments[0])])
    mark = f", TRUE AS {_MET}" if keeps_right else ""
    once = f"SELECT *{mark} FROM in1"
    if order:
        once += f" QUALIFY row_number() OVER (PARTITION BY {settled} ORDER BY {order}) = 1"
    outer = "LEFT " if kind in (JoinKind.LEFT, JoinKind.FULL) else ""
    query = f"FROM in0 ASOF {outer}JOIN ({once}) AS in1 ON {condition}"
    query = _with_unmatched(query, left, right, shown) if keeps_right else f"SELECT {shown} {query}"
    why = NoOperator("an as-of join", place)
    context.noticed(
        why,
        "every change re-evaluates the rows of its join key" if keys else "every change re-evaluates the whole join",
    )
    partition = (tuple(e.left for e, _ in keys), tuple(e.right for e, _ in keys)) if keys else ()
    plain = tuple(equality.left.field for equality, _ in keys)
    shown_as = tuple(name for name in plain if name is not None and not keeps_right)
    return Reevaluate(
        (left, right),
        query,
        like.fields,
        left.key + right.key if keeps_right else left.key,
        partition,
        why.construct,
        shown_as if len(shown_as) == len(plain) else (),
    )


_MET = "__met"
"""Holds for right rows that a left row has met."""


def _with_unmatched(query: str, left: Relation, right: Relation, shown: str) -> str:
    """The rows of an as-of join, and the right rows that no left row has met."""
    nulls = [f"CAST(NULL AS {field.type}) AS {quoted(field.name)}" for field in left.fields]
    own = ", ".join([*nulls, *(f"in1.{quoted(field.name)}" for field in right.fields)])
    same = [f"met.{quoted(name)} IS NOT DISTINCT FROM in1.{quoted(name)}" for name in right.key]
    asked = " AND ".join([f"met.{_MET}", *same])
    return (
        f"WITH met AS (SELECT {shown}, {_MET} {query}) SELECT {shown} FROM met "
        f"UNION ALL SELECT {own} FROM in1 WHERE NOT EXISTS (SELECT 1 FROM met WHERE {asked})"
    )


def _over(condition: exp.Expr, relation: Relation) -> str:
    for side in (condition.this, condition.expression):
        if fields_in(side) and fields_in(side) <= relation.by_name.keys():
            return text_of(side)
    raise NoOperator("an as-of join of this form", condition)


def filtered(context: BuildContext, relation: Relation, conditions: Sequence[exp.Expr]) -> Relation:
    """The rows for which all conditions over fields hold."""
    condition = conjunction(context.condition(condition, relation) for condition in conditions)
    return Filter(relation, condition) if condition else relation
