"""Joins: a REVERSE-JOIN for each side, shared with whatever else keeps those rows by that key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from everview.change.schema import KeyPart
from everview.plan.expressions import Expr, Field
from everview.plan.maintenance.column_names import pretty, side_prefix
from everview.plan.maintenance.failing import computed_first, settled
from everview.plan.maintenance.model import Role, Shape
from everview.plan.maintenance.operator_definitions import JoinOperator, PartitionOperator, ReverseJoinOperator
from everview.plan.maintenance.operator_parts import MatchedKey
from everview.plan.maintenance.sketch import (
    CompileContext,
    Located,
    StateDraft,
    StepDraft,
    Stream,
    place_by,
    renamed,
    with_prefix,
)
from everview.plan.relations import Join, JoinKind
from everview.plan.relations.joins import Equality

_LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI)


def join(relation: Join, needed: frozenset[str], context: CompileContext) -> Stream:
    """A right join is a left join with its sides exchanged; only the order of compiling stays."""
    read = needed | (relation.rest.fields if relation.rest else frozenset())
    wanted = [
        frozenset(name for name in read if name in side.by_name) | frozenset().union(*(e.fields for e in keys))
        for side, keys in (
            (relation.left, [one.left for one in relation.on]),
            (relation.right, [one.right for one in relation.on]),
        )
    ]
    if relation.kind in _LEFT_ONLY:
        needed = frozenset(name for name in needed if name in relation.left.by_name)
    first = context.stream(relation.left, wanted[0])
    second = context.stream(relation.right, wanted[1])
    kind, on = relation.kind, relation.on
    if kind is JoinKind.RIGHT:
        kind, first, second = JoinKind.LEFT, second, first
        on = tuple(Equality(one.right, one.left, one.nulls_match) for one in on)
    on = tuple(sorted(on, key=lambda e: (first.over(e.left).sql, second.over(e.right).sql)))
    left = rows_by(context, first, [first.over(e.left) for e in on], sorted(read & first.names.keys()), joined=True)
    right = rows_by(
        context, second, [second.over(e.right) for e in on], sorted(read & second.names.keys()), joined=True
    )

    prefix = side_prefix(left.labels, right.labels)
    beside = {name: Expr(with_prefix(found.sql, prefix), found.type) for name, found in right.names.items()}
    both = Stream(left.draft, left.labels, left.names | beside)
    operator = JoinOperator(
        kind=kind,
        on=tuple(MatchedKey(first.over(e.left).sql, second.over(e.right).sql, e.nulls_match) for e in on),
        rest=both.over(relation.rest).sql if relation.rest else None,
        right_prefix=prefix,
    )
    subject = f"{left.draft.subject} ⋈ {right.draft.subject}"
    draft, slots = context.sketch.step(operator, [(left, None), (right, None)], subject)
    draft.located = _located(kind, left.draft.located, renamed(right.draft.located, prefix))
    names = {name: both.names[name] for name in needed}
    missing_left = kind is JoinKind.FULL
    missing_right = kind in (JoinKind.LEFT, JoinKind.FULL)
    draft.carry(_columns(left, needed & left.names.keys(), "", missing_left))
    if kind not in _LEFT_ONLY:
        draft.carry(_columns(right, needed & right.names.keys(), prefix, missing_right))
    labels = left.labels + tuple(prefix + label for label in right.labels)
    return Stream(draft, left.labels if kind in _LEFT_ONLY else labels, names, slots)


def _located(kind: JoinKind, left: Located, right: Located) -> Located:
    """In pairs both sides have the join key; a row without a partner has its own side's only."""
    if left is None or right is None or not left:
        return left
    if kind is JoinKind.INNER:
        return tuple(one | other for one, other in zip(left, right, strict=True))
    return None if kind is JoinKind.FULL else left


def _columns(side: Stream, names: Iterable[str], prefix: str, missing: bool) -> Iterable[Field]:
    for name in sorted(names):
        column = side.field_of(side.names[name])
        yield Field(prefix + column.name, column.type, column.nullable or missing)


def rows_by(
    context: CompileContext, below: Stream, key: Sequence[Expr], fields: Iterable[str], *, joined: bool = False
) -> Stream:
    """A bag of rows for each key. One for each input and key, for all that read it: a join's sides,
    groups and partitions that are evaluated again (paper 004, Example 6)."""
    fields = list(fields)
    first = computed_first(context, below, [*key, *(below.names[name] for name in fields)])
    key, below = [settled(first, one) for one in key], first
    by = tuple(expression.sql for expression in key)
    place = place_by(below.draft, by)
    draft, slots = context.sketch.step(PartitionOperator(key=by), [(below, place)], below.draft.subject)
    if draft.state is None:
        draft.state = StateDraft(Role.PARTITION, Shape.BAG, by_text(below.draft, by), bag_key(below, key))
    if joined:
        draft.operator = ReverseJoinOperator(key=by)
        draft.state.role = Role.REVERSE_JOIN
    keyed = replace(below, names={one.sql: one for one in key})
    keyed.carried_by(draft, keyed.names, slots)  # so that its changes can go on by that key
    return below.carried_by(draft, fields, slots)


def bag_key(below: Stream, key: Sequence[Expr]) -> tuple[KeyPart, ...]:
    """The key of bags of rows. Rows get the values of their key's columns back from it, except
    those of types in which different values compare equal (0.0 and -0.0, 1 month and 30 days):
    these are in the rows as well, so their part of the key has a name of its own."""
    return tuple(
        replace(part, name=f"{part.name}#1")
        if part.type.different_values_compare_equal and part.name == column.name
        else part
        for part, column in zip(below.key_parts(key), map(below.field_of, key), strict=True)
    )


def by_text(below: StepDraft, key: Sequence[str]) -> str:
    """``orders by customer``, for people."""
    own = f"{below.subject.removeprefix('filtered ')}."
    parts = ", ".join(pretty(sql, lambda name: name.removeprefix(own)) for sql in key)
    return f"{below.subject} by {parts}" if key else f"all {below.subject}"
