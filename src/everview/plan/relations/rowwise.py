"""What is done to each row by itself: filter, project, unnest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from everview.errors import DefinitionError
from everview.plan.expressions import Definition, Expr, Field, of_field
from everview.plan.relations.relation import OverOne, Relation


@dataclass(frozen=True)
class Filter(OverOne):
    """The rows for which a condition is true."""

    condition: Expr
    title = "filter"

    def __post_init__(self) -> None:
        self._check_reads([self.condition], self.input)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def key(self) -> tuple[str, ...]:
        return self.input.key

    def description(self) -> str:
        return self.condition.sql


@dataclass(frozen=True)
class Project(OverOne):
    """Columns computed from each row. Every key field of the input is passed on as it is."""

    outputs: tuple[Definition, ...]
    title = "project"

    def __post_init__(self) -> None:
        self._check_reads([expression for _, expression in self.outputs], self.input)
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field for field, _ in self.outputs)

    @cached_property
    def passed(self) -> dict[str, str]:
        """Fields of the input that are passed on unchanged, and the name each has here."""
        found: dict[str, str] = {}
        for field, expression in self.outputs:
            if expression.field is not None:
                found.setdefault(expression.field, field.name)
        return found

    @cached_property
    def key(self) -> tuple[str, ...]:
        lost = [name for name in self.input.key if name not in self.passed]
        if lost:
            raise DefinitionError("a projection loses the key of its rows", detail=f"{lost} are not passed on")
        return tuple(dict.fromkeys(self.passed[name] for name in self.input.key))

    def description(self) -> str:
        return ", ".join(
            str(field) if expression == of_field(field) else f"{expression} AS {field}"
            for field, expression in self.outputs
        )


def project(input: Relation, outputs: Sequence[Definition]) -> Project:
    """A projection that carries the key along: hidden, where the outputs do not show it."""
    passed = {expression.field for _, expression in outputs}
    names = {field.name for field, _ in outputs}
    extra: list[Definition] = []
    for name in input.key:
        if name not in passed:
            field = input.field(name)
            free = (
                name if name not in names else next(f"{name}#{n}" for n in range(2, 1000) if f"{name}#{n}" not in names)
            )
            names.add(free)
            extra.append((replace(field, name=free, hidden=True), of_field(field)))
    return Project(input, (*outputs, *extra))


@dataclass(frozen=True)
class Unnest(OverOne):
    """One row for each item of a row's own list."""

    items: Expr
    item: Field
    position: Field
    """From 1, hidden unless asked for."""
    outer: bool = False
    """A row whose list is empty stays, with nulls."""
    title = "unnest"

    def __post_init__(self) -> None:
        self._check_reads([self.items], self.input)
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, self.item, self.position)

    @cached_property
    def key(self) -> tuple[str, ...]:
        return (*self.input.key, self.position.name)

    def description(self) -> str:
        return f"{self.items} AS {self.item}" + (" OUTER" if self.outer else "")
