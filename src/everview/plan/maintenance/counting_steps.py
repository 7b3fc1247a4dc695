"""Counted rows: distinct rows, and set operations."""

from __future__ import annotations

from collections.abc import Sequence

from everview.change.schema import KeyPart
from everview.change.types import BIGINT
from everview.plan.expressions import Expr, Field, quoted
from everview.plan.maintenance.model import Role, Shape
from everview.plan.maintenance.operator_definitions import (
    DistinctOperator,
    SetOperator,
)
from everview.plan.maintenance.sketch import CompileContext, Place, StateDraft, Stream, place_by, place_for
from everview.plan.relations import Distinct, SetOperation


def distinct(relation: Distinct, needed: frozenset[str], context: CompileContext) -> Stream:
    below = context.stream(relation.input, frozenset(column.name for column in relation.fields))
    different = {below.names[column.name].sql: below.names[column.name] for column in relation.fields}
    row = [different[sql] for sql in sorted(different)]
    return distinct_rows(context, below, row, place_for(below.draft, [one.sql for one in row]))


def distinct_rows(context: CompileContext, below: Stream, row: Sequence[Expr], place: Place) -> Stream:
    """Count equal rows: a row comes with its first copy and goes with its last."""
    operator = DistinctOperator(row=tuple(one.sql for one in row))
    draft, slots = context.sketch.step(operator, [(below, place)], f"different {below.draft.subject}")
    if draft.state is None:
        kept = {"copies": Field("copies", BIGINT, nullable=False)}
        key = below.key_parts(row)
        draft.state = StateDraft(Role.DISTINCT_COUNT, Shape.RECORD, below.draft.subject, key, fields=kept)
    return below.carried_by(draft, below.names, slots)


def set_operation(relation: SetOperation, needed: frozenset[str], context: CompileContext) -> Stream:
    sides: list[tuple[Stream, Place]] = []
    sent: list[tuple[str, ...]] = []
    for side in (relation.left, relation.right):
        below = context.stream(side, frozenset(column.name for column in side.shown))
        by = tuple(
            below.names[found.name].sql
            if found.type == column.type
            else f"CAST({below.names[found.name].sql} AS {column.type})"
            for found, column in zip(side.shown, relation.columns, strict=True)
        )
        sent.append(by)
        sides.append((below, place_by(below.draft, by)))
    count = len(relation.columns)
    stored = [f"set.{n + 1}" for n in range(count)] + (["set.copy"] if relation.copy else [])
    draft, slots = context.sketch.step(
        SetOperator(kind=relation.kind, all=relation.all, columns=tuple(stored), inputs=tuple(sent)),
        sides,
        f" {relation.kind.value} ".join(below.draft.subject for below, _ in sides),
    )
    draft.located = tuple(frozenset({quoted(name)}) for name in stored[:count])
    draft.zone_key = tuple(map(quoted, stored[:count]))
    draft.carry(Field(name, f.type, f.nullable) for name, f in zip(stored, relation.fields, strict=True))
    if draft.state is None:
        key = tuple(KeyPart(n, f.type, f.nullable) for n, f in zip(stored, relation.columns, strict=False))
        kept = {side: Field(side, BIGINT, nullable=False) for side in ("left copies", "right copies")}
        draft.state = StateDraft(Role.DISTINCT_COUNT, Shape.RECORD, draft.subject, key, fields=kept)
    names = {f.name: Expr(quoted(name), f.type) for name, f in zip(stored, relation.fields, strict=True)}
    return Stream(draft, ("set",), names, slots)
