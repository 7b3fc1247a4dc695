"""Joins.

What identifies the rows of a join. Inner, left and right joins: the keys of both sides, whatever
nulls are in them, for a row has either partners, each with a key of its own, or one line without
any. A full join has two kinds of such lines, and where the keys of both sides can be all null (a
group's key, a one-row side) one of each may look alike::

    (SELECT x, count(*) AS n FROM a GROUP BY x) FULL JOIN (SELECT y, count(*) AS m FROM b GROUP BY y) ON x = y

    x     n  y     m
    NULL  3  NULL  -      the group of a without an x
    NULL  -  NULL  2      the group of b without a y

There one side gets a hidden field that is never null, the *marker*, and it is part of the key:
:func:`full_join`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from everview.change.types import BOOLEAN
from everview.errors import DefinitionError
from everview.plan.expressions import Expr, Field, of_field, operand, parsed, written
from everview.plan.relations.relation import Relation
from everview.plan.relations.rowwise import Project


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
        left, right = (written(operand(parsed(side.sql))) for side in (self.left, self.right))
        return f"{left} {'IS NOT DISTINCT FROM' if self.nulls_match else '='} {right}"


@dataclass(frozen=True)
class Join(Relation):
    """Pairs of rows whose join keys are equal and for which the rest of the condition holds.
    Without equalities one side must be known to have one row at most, or no operator maintains it."""

    kind: JoinKind
    left: Relation
    right: Relation
    on: tuple[Equality, ...]
    rest: Expr | None = None
    marker: str | None = None
    """Of a full join: a field of one side that is never null there, where the keys may be."""
    title = "join"

    def __post_init__(self) -> None:
        if self.kind is JoinKind.FULL and not distinguishes_sides(self.left, self.right, self.marker):
            raise DefinitionError(
                "a full join cannot distinguish rows without a match on its sides",
                detail=f"keys {self.left.key} and {self.right.key} may be null, marker {self.marker}",
            )
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
        marker = (self.marker,) if self.marker and self.kind is JoinKind.FULL else ()
        return self.left.key + self.right.key + marker

    @property
    def compares_all(self) -> bool:
        """Whether each of many rows must be compared with each of many others."""
        return not self.on and bool(self.left.key) and bool(self.right.key)

    def _met_once(self, side: Relation, keys: Sequence[Expr]) -> bool:
        """Whether a row of the other side meets at most one row of this one."""
        return set(side.key) <= {found.field for found in keys}

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    def with_inputs(self, *inputs: Relation) -> Join:
        left, right = inputs
        return replace(self, left=left, right=right)

    def description(self) -> str:
        condition = " AND ".join([str(e) for e in self.on] + ([self.rest.sql] if self.rest else []))
        return f"{self.kind.value} ON {condition or 'true'}"


def distinguishes_sides(left: Relation, right: Relation, marker: str | None = None) -> bool:
    """Whether no row of the one side and row of the other, each beside nulls, can look alike."""
    keys = (*left.key, *right.key, *((marker,) if marker else ()))
    sides = left.by_name | right.by_name
    return any(name in sides and not sides[name].nullable for name in keys)


def full_join(left: Relation, right: Relation, on: Sequence[Equality], rest: Expr | None, marker: str) -> Join:
    """A full join, with a marker of this name on its left side where it needs one."""
    if distinguishes_sides(left, right):
        return Join(JoinKind.FULL, left, right, tuple(on), rest)
    field = Field(marker, BOOLEAN, nullable=False, hidden=True)
    outputs = (*((found, of_field(found)) for found in left.fields), (field, Expr("TRUE", BOOLEAN)))
    return Join(JoinKind.FULL, Project(left, outputs), right, tuple(on), rest, marker)
