"""What brings rows together: aggregates, and distinct rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from everview.errors import DefinitionError
from everview.plan.expressions import Definition, Field, of_field
from everview.plan.relations.calls import Call
from everview.plan.relations.relation import OverOne


@dataclass(frozen=True)
class Aggregate(OverOne):
    """Groups of rows and what is computed of each. Without group columns there is one group,
    which is there even over nothing."""

    groups: tuple[Definition, ...]
    calls: tuple[Call, ...]
    sets: tuple[tuple[int, ...], ...] = ()
    """Grouping sets, as numbers of group columns; none: all columns."""
    set_number: Field | None = None
    """Where there are several sets: which one a row belongs to, from 0, hidden."""
    title = "aggregate"

    def __post_init__(self) -> None:
        self._check_reads([expression for _, expression in self.groups], self.input)
        self._check_reads([read for call in self.calls for read in call.reads], self.input)
        if (len(self.sets) > 1) != (self.set_number is not None):
            raise DefinitionError("an aggregate with several grouping sets numbers them")
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        number = (self.set_number,) if self.set_number else ()
        return (*(field for field, _ in self.groups), *(call.field for call in self.calls), *number)

    @cached_property
    def key(self) -> tuple[str, ...]:
        number = (self.set_number.name,) if self.set_number else ()
        return (*(field.name for field, _ in self.groups), *number)

    def says(self) -> str:
        groups = ", ".join(str(f) if e == of_field(f) else f"{e} AS {f}" for f, e in self.groups)
        if self.sets:
            groups += " IN SETS " + ", ".join(f"({', '.join(str(n + 1) for n in one)})" for one in self.sets)
        calls = ", ".join(str(call) for call in self.calls)
        return f"{calls} BY {groups or 'nothing'}" if calls else f"BY {groups}"


@dataclass(frozen=True)
class Distinct(OverOne):
    """Each combination of the shown fields once."""

    title = "distinct"

    def __post_init__(self) -> None:
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.input.shown

    @cached_property
    def key(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)
