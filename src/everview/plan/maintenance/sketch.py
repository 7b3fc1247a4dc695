"""The plan while it grows: steps that gain columns and members as views come in.

A :class:`StepDraft` is found by its fingerprint, so the second view that needs a step
gets the first one's, and adds to it the columns and constants that it needs beyond.

**Where a row is.** A stage's work is split by some row key, so a step may keep state for a key
in the stage where its input is only if all rows with equal keys are in one place. A draft
therefore knows by what its rows are ``located``: one set of expressions for each part of the
row key, all expressions of a set having the same value in every row. Rows that agree in a key
are in one place if every set has an expression in that key::

    delta orders                  located by {orders.id}
    … joined with customers       located by {orders.customer, customers.id}
      view, key orders.id         not there: one more shuffle
      grouped by customers.id     there already: no shuffle

In the first stage rows are where their log is read: by the key of one table. That is one place
for a key of that table, but not the same place for equal keys of two tables; steps with several
inputs, and the rows they join, start in the second stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.change.schema import KeyPart
from everview.plan.expressions import Expr, Field, fields_of, quoted, replaced
from everview.plan.maintenance.column_names import computed_name
from everview.plan.maintenance.fingerprint import fingerprint
from everview.plan.maintenance.model import Role, Shape
from everview.plan.maintenance.operator_base import Gained
from everview.plan.maintenance.operator_definitions import AnyOperator
from everview.plan.maintenance.operator_parts import ComputedColumn
from everview.plan.relations import Relation

Located = tuple[frozenset[str], ...] | None
"""None: by nothing that the rows hold."""

Slot = int | str
"""A constant, or the number of one that each member of the template has."""


@dataclass
class StateDraft:
    role: Role
    shape: Shape
    subject: str
    key: tuple[KeyPart, ...]
    order: tuple[KeyPart, ...] = ()
    fields: dict[str, Field] | None = None
    """None: the columns of the step that are not in the key."""


@dataclass(eq=False)
class StepDraft:
    """A step that may still gain columns, things to compute, and members."""

    fingerprint: str
    operator: AnyOperator
    """Without what it gains."""
    subject: str
    """What its rows are, for people."""
    inputs: tuple[tuple[StepDraft, tuple[str, ...] | None], ...]
    level: int
    """The stage, from 1."""
    located: Located
    zone_key: tuple[str, ...]
    classes: tuple[str, ...]
    """Of its parameters."""
    columns: dict[str, Field] = field(default_factory=dict)
    gained: dict[tuple[type[Gained], str], Gained] = field(default_factory=dict)
    """What views have added to the operator, by kind and name."""
    state: StateDraft | None = None
    members: dict[tuple[str, ...], None] = field(default_factory=dict)

    def gain(self, *added: Gained) -> None:
        """Add to the operator."""
        self.gained |= {(type(item), item.name): item for item in added}

    def complete(self) -> AnyOperator:
        """The operator with all that it has gained."""
        return self.operator.with_gained(self.gained.values())

    def call(self, sql: str, name: str) -> None:
        """A column of this name holds the expression: rows located by one are by the other."""
        self.located = self.located and tuple(part | {quoted(name)} if sql in part else part for part in self.located)

    def carry(self, columns: Iterable[Field]) -> None:
        """Let these columns through."""
        for column in columns:
            known = self.columns.get(column.name)
            if known is None or (column.nullable and not known.nullable):
                self.columns[column.name] = column


@dataclass(frozen=True)
class Stream:
    """A relation's rows as they come out of a draft."""

    draft: StepDraft
    labels: tuple[str, ...]
    """The sources that its names begin with."""
    names: dict[str, Expr]
    """For each needed field of the relation, what it is in columns of the draft."""
    slots: tuple[Slot, ...] = ()
    """The constants of the draft's parameters."""

    def over(self, expression: Expr) -> Expr:
        """An expression over the relation's fields, in columns of the draft."""
        plain = expression.field
        if plain is not None:
            return self.names[plain]
        return expression.over(self.names)

    def name_of(self, expression: Expr) -> str:
        """What a column that holds this (an expression in columns of the draft) is called."""
        plain = expression.field
        return plain if plain is not None else computed_name(self.labels, expression.sql)

    def field_of(self, expression: Expr) -> Field:
        """The column that holds this."""
        plain = expression.field
        if plain is not None:
            return self.draft.columns[plain]
        return Field(self.name_of(expression), expression.type)

    def columns_of(self, *expressions: Expr) -> list[Field]:
        """The columns that these read."""
        names = sorted({name for expression in expressions for name in expression.fields})
        return [self.draft.columns[name] for name in names]

    def key_parts(self, expressions: Sequence[Expr], descending: Sequence[bool] = ()) -> tuple[KeyPart, ...]:
        """The key that these make, each value named once."""
        parts: list[KeyPart] = []
        taken: set[str] = set()
        for number, expression in enumerate(expressions):
            column = self.field_of(expression)
            name, copy = column.name, 1
            while name in taken:
                copy += 1
                name = f"{column.name}#{copy}"
            taken.add(name)
            parts.append(KeyPart(name, column.type, column.nullable, bool(descending) and descending[number]))
        return tuple(parts)

    def carried_by(self, draft: StepDraft, fields: Iterable[str], slots: tuple[Slot, ...]) -> Stream:
        """The same fields as columns of a further step, which computes those that are none yet."""
        names: dict[str, Expr] = {}
        for name in fields:
            expression = self.names[name]
            column = self.field_of(expression)
            if expression.field is None:
                draft.gain(ComputedColumn(column.name, expression.sql))
            draft.carry([column])
            draft.call(expression.sql, column.name)
            names[name] = Expr(quoted(column.name), expression.type)
        return Stream(draft, self.labels, names, slots)


@dataclass(frozen=True)
class Place:
    """Where a step works."""

    level: int
    located: Located
    key: tuple[str, ...] | None
    """How its input gets there; None: it is there."""


def place_for(draft: StepDraft, key: Sequence[str]) -> Place:
    """Where state under this key can be kept: here, if rows that agree in it are in one place."""
    if draft.located is not None and all(part & set(key) for part in draft.located):
        return Place(draft.level, draft.located, None)
    return Place(draft.level + 1, _by(key), tuple(key))


def place_by(draft: StepDraft, key: Sequence[str]) -> Place:
    """Where rows are split by exactly this key, so that equal keys of other inputs meet them."""
    if (
        draft.level > 1
        and draft.located is not None
        and len(draft.located) == len(key)
        and all(one in part for one, part in zip(key, draft.located, strict=True))
    ):
        return Place(draft.level, draft.located, None)
    return Place(draft.level + 1, _by(key), tuple(key))


def _by(key: Sequence[str]) -> Located:
    return tuple(frozenset({one}) for one in key)


@dataclass
class Sketch:
    """All drafts of a group."""

    drafts: dict[str, StepDraft] = field(default_factory=dict)
    touched: list[tuple[StepDraft, tuple[Slot, ...]]] = field(default_factory=list)
    """The drafts that the relation being compiled needs, with its constants."""

    def step(
        self,
        operator: AnyOperator,
        inputs: Sequence[tuple[Stream, Place | None]],
        subject: str,
        own: Sequence[tuple[str, Slot]] = (),
    ) -> tuple[StepDraft, tuple[Slot, ...]]:
        """Find or make a draft; its constants are those of the inputs and its ``own``, each with
        its class. The fingerprint is over the identity of the operator, not over what it gains."""
        classes = tuple(kind for stream, _ in inputs for kind in stream.draft.classes) + tuple(k for k, _ in own)
        slots = tuple(slot for stream, _ in inputs for slot in stream.slots) + tuple(slot for _, slot in own)
        named = fingerprint(
            operator.meaning or operator.name,
            [operator.identity(), [kind for kind, _ in own]],
            [stream.draft.fingerprint for stream, _ in inputs],
        )
        draft = self.drafts.get(named)
        if draft is None:
            places = [place or Place(stream.draft.level, stream.draft.located, None) for stream, place in inputs]
            level = max((place.level for place in places), default=1)
            first = next((place for place in places if place.level == level), None)
            edges = tuple(
                (stream.draft, _edge(stream.draft, place, level))
                for (stream, _), place in zip(inputs, places, strict=True)
            )
            located = first.located if first else None
            draft = StepDraft(named, operator, subject, edges, level, located, (), classes)
            draft.zone_key = tuple(min(part) for part in located or ())
            self.drafts[named] = draft
        self.touched.append((draft, slots))
        return draft, slots

    def join_members(self, touched: Iterable[tuple[StepDraft, tuple[Slot, ...]]], constants: Sequence[str]) -> None:
        """Enter the constants of one view in all the drafts that it needs."""
        for draft, slots in touched:
            draft.members[resolved(slots, constants)] = None


def _edge(source: StepDraft, place: Place, level: int) -> tuple[str, ...] | None:
    if place.key is not None or source.level == level:
        return place.key
    there = source.columns.keys()
    return tuple(min(sql for sql in part if fields_of(sql) <= there) for part in place.located or ())


def resolved(slots: Sequence[Slot], constants: Sequence[str]) -> tuple[str, ...]:
    return tuple(slot if isinstance(slot, str) else constants[slot] for slot in slots)


def renamed(located: Located, prefix: str) -> Located:
    """The same rows under names that begin with a prefix."""
    if located is None or not prefix:
        return located
    return tuple(frozenset(with_prefix(sql, prefix) for sql in part) for part in located)


def with_prefix(sql: str, prefix: str) -> str:
    """An expression over fields whose names begin with a prefix."""
    return replaced(sql, {name: quoted(prefix + name) for name in fields_of(sql)}) if prefix else sql


@dataclass
class CompileContext:
    """What is shared while one relation is compiled."""

    sketch: Sketch
    compiled_by: Mapping[type[Relation], Callable[[Any, frozenset[str], CompileContext], Stream]]
    views: Callable[[str], Stream | None]
    """The stream of a view of the same group, by its shown columns; None: a base table."""
    slots: Iterator[Slot]
    """The constants of the relation's conditions, in the order in which it is compiled."""

    def stream(self, relation: Relation, needed: frozenset[str]) -> Stream:
        """Compile a relation of which these fields are needed."""
        return self.compiled_by[type(relation)](relation, needed, self)
