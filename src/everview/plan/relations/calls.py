"""Orders and calls: what aggregates, windows and top-k are made of."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from everview.plan.expressions import Expr, Field


@dataclass(frozen=True)
class Sort:
    """One part of an order."""

    by: Expr
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        return f"{self.by}{' DESC' if self.descending else ''}{' NULLS FIRST' if self.nulls_first else ''}"


class Way(enum.Enum):
    """How an aggregate is kept."""

    SUM = "sum"
    """count, sum, avg: added to and taken from."""
    EXTREME = "extreme"
    """min, max: the ends of a bag."""
    GENERAL = "general"
    """everything else: the group is evaluated again."""


@dataclass(frozen=True)
class Call:
    """One aggregate or window function: ``function(DISTINCT arguments ORDER BY …) FILTER (…)``."""

    field: Field
    function: str
    arguments: tuple[Expr, ...] = ()
    distinct: bool = False
    filter: Expr | None = None
    order: tuple[Sort, ...] = ()
    sql: str = ""
    """The whole call as DuckDB evaluates it over the rows of a group."""
    way: Way = Way.GENERAL

    @property
    def reads(self) -> tuple[Expr, ...]:
        filters = (self.filter,) if self.filter else ()
        return (*self.arguments, *filters, *(sort.by for sort in self.order))

    def __str__(self) -> str:
        return f"{self.sql} AS {self.field}"
