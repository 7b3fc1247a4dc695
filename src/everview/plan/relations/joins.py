"""Joins."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from everview.plan.expressions import Expr, Field
from everview.plan.relations.relation import Relation


class JoinKind(enum.Enum):
    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True)
class Equality:
    """``left = right``, or ``left IS NOT DISTINCT FROM right`` where nulls match."""

    left: Expr
    right: Expr
    nulls_match: bool = False

    def __str__(self) -> str:
        return f"{self.left} {'IS NOT DISTINCT FROM' if self.nulls_match else '='} {self.right}"


@dataclass(frozen=True)
class Join(Relation):
    """Pairs of rows whose join keys are equal and for which the rest of the condition holds.
    Without equalities one side must be known to have one row at most."""

    kind: JoinKind
    left: Relation
    right: Relation
    on: tuple[Equality, ...]
    rest: Expr | None = None
    title = "join"

    def __post_init__(self) -> None:
        self._check_reads([e.left for e in self.on], self.left)
        self._check_reads([e.right for e in self.on], self.right)
        if self.rest is not None:
            self._check_reads([self.rest], self.left, self.right)
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.fields
        missing_left = self.kind in (JoinKind.RIGHT, JoinKind.FULL)
        missing_right = self.kind in (JoinKind.LEFT, JoinKind.FULL)
        left = tuple(replace(f, nullable=f.nullable or missing_left) for f in self.left.fields)
        right = tuple(replace(f, nullable=f.nullable or missing_right) for f in self.right.fields)
        return left + right

    @cached_property
    def key(self) -> tuple[str, ...]:
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return self.left.key
        if self.kind in (JoinKind.INNER, JoinKind.LEFT) and self._met_once(self.right, [e.right for e in self.on]):
            return self.left.key
        if self.kind in (JoinKind.INNER, JoinKind.RIGHT) and self._met_once(self.left, [e.left for e in self.on]):
            return self.right.key
        return self.left.key + self.right.key

    def _met_once(self, side: Relation, keys: Sequence[Expr]) -> bool:
        """Whether a row of the other side meets at most one row of this one."""
        return set(side.key) <= {found.field for found in keys}

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    def with_inputs(self, *inputs: Relation) -> Join:
        left, right = inputs
        return replace(self, left=left, right=right)

    def says(self) -> str:
        condition = " AND ".join([str(e) for e in self.on] + ([self.rest.sql] if self.rest else []))
        return f"{self.kind.value} ON {condition or 'true'}"
