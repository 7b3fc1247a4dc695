"""Union all and the set operations."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from functools import cached_property

from everview.errors import DefinitionError
from everview.plan.expressions import Field
from everview.plan.relations.relation import Relation


class SetKind(enum.Enum):
    UNION = "union"
    INTERSECT = "intersect"
    EXCEPT = "except"


@dataclass(frozen=True)
class Union(Relation):
    """UNION ALL: the rows of all inputs, matched by position."""

    parts: tuple[Relation, ...]
    columns: tuple[Field, ...]
    """What the shown fields are called."""
    branch: Field
    """The number of the input a row comes from, from 0, hidden."""
    title = "union all"

    def __post_init__(self) -> None:
        if any(len(part.shown) != len(self.columns) for part in self.parts):
            raise DefinitionError("the inputs of a union differ in their number of columns")
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return (*self.columns, self.branch, *self._keys)

    @cached_property
    def _keys(self) -> tuple[Field, ...]:
        """The keys of the inputs, laid over each other position by position where types agree."""
        found: list[Field] = []
        for part in self.parts:
            free = list(range(len(found)))
            for name in part.key:
                field = part.field(name)
                at = next((n for n in free if found[n].type == field.type), None)
                if at is None:
                    found.append(Field(f"{self.branch.name}.{len(found)}", field.type, hidden=True))
                else:
                    free.remove(at)
        return tuple(found)

    @cached_property
    def key(self) -> tuple[str, ...]:
        return (self.branch.name, *(field.name for field in self._keys))

    def places(self, number: int) -> tuple[str | None, ...]:
        """For each key field of the union after the branch: the field of this input that goes
        there, or None."""
        part = self.parts[number]
        placed: list[str | None] = [None] * len(self._keys)
        for name in part.key:
            kind = part.field(name).type
            at = next(n for n, field in enumerate(self._keys) if placed[n] is None and field.type == kind)
            placed[at] = name
        return tuple(placed)

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.parts

    def with_inputs(self, *inputs: Relation) -> Union:
        return replace(self, parts=inputs)


@dataclass(frozen=True)
class SetOperation(Relation):
    """UNION, INTERSECT and EXCEPT by the shown fields; with ALL, by the number of copies."""

    kind: SetKind
    all: bool
    left: Relation
    right: Relation
    columns: tuple[Field, ...]
    copy: Field | None = None
    """With ALL: the number of the copy, hidden."""
    title = "set operation"

    def __post_init__(self) -> None:
        if (self.copy is not None) != self.all:
            raise DefinitionError("a set operation numbers its copies if it keeps them")
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return (*self.columns, *((self.copy,) if self.copy else ()))

    @cached_property
    def key(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    def with_inputs(self, *inputs: Relation) -> SetOperation:
        left, right = inputs
        return replace(self, left=left, right=right)

    def description(self) -> str:
        return self.kind.value + (" all" if self.all else "")
