"""What all relations have: fields, a key, inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from everview.errors import DefinitionError
from everview.plan.expressions import Expr, Field


@dataclass(frozen=True)
class Relation(ABC):
    """A node of the tree."""

    title: ClassVar[str] = "relation"

    @property
    @abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """What a row consists of."""

    @property
    @abstractmethod
    def key(self) -> tuple[str, ...]:
        """The fields that identify rows; none where there is one row at most."""

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return ()

    def with_inputs(self, *inputs: Relation) -> Relation:
        """The same node over other inputs."""
        assert not inputs
        return self

    def description(self) -> str:
        """One line about the node itself, for people."""
        return ""

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def shown(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if not field.hidden)

    def field(self, name: str) -> Field:
        return self.by_name[name]

    def walk(self) -> Iterator[Relation]:
        """This node and everything below it, inputs first."""
        for found in self.inputs:
            yield from found.walk()
        yield self

    def _check(self) -> None:
        names = [field.name for field in self.fields]
        twice = {name for name in names if names.count(name) > 1}
        missing = [name for name in self.key if name not in names]
        if twice or missing:
            raise DefinitionError(
                f"a {self.title} is not well formed", detail=f"fields twice: {sorted(twice)}, key missing: {missing}"
            )

    def _check_reads(self, expressions: Sequence[Expr], *available: Relation) -> None:
        there = {name for relation in available for name in relation.by_name}
        for expression in expressions:
            unknown = expression.fields - there
            if unknown:
                raise DefinitionError(
                    f"a {self.title} reads what its input does not have",
                    detail=f"{expression.sql} reads {sorted(unknown)}; there are {sorted(there)}",
                )


@dataclass(frozen=True)
class OverOne(Relation):
    """A node over one input."""

    input: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, *inputs: Relation) -> Self:
        (found,) = inputs
        return replace(self, input=found)


def outline(relation: Relation, depth: int = 0) -> str:
    """The tree as text, the root first, one line for each node."""
    described = relation.description()
    line = (
        "  " * depth
        + relation.title
        + (f" {described}" if described else "")
        + f"  [{', '.join(relation.key) or 'one row'}]"
    )
    return "\n".join([line, *(outline(found, depth + 1) for found in relation.inputs)])
