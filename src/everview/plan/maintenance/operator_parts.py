"""What operators hold: columns and calls that views add to them, and what their other fields consist of.

Expressions are SQL over the fields of the operator's input.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.change.types import Type
from everview.plan.maintenance.operator_base import Gained


@dataclass(frozen=True)
class TableColumn(Gained):
    """A column of a base table, under the name of a field."""

    column: str


@dataclass(frozen=True)
class ComputedColumn(Gained):
    """A field that is an expression over the input."""

    sql: str


@dataclass(frozen=True)
class AccumulatedColumn(Gained):
    """A count or a sum that is kept for each group."""

    function: str
    argument: str | None
    """None: rows are counted."""
    filter: str | None
    argument_type: Type | None = None
    """Of a sum."""


@dataclass(frozen=True)
class EndColumn(Gained):
    """The least or the greatest value of each group."""

    function: str


@dataclass(frozen=True)
class EvaluatedCall(Gained):
    """An aggregate or window function that is evaluated again for the groups that change."""

    sql: str


@dataclass(frozen=True)
class PartColumn:
    """A column of one of the parts of an aggregate."""

    part: int
    """The number of the input."""
    column: str


@dataclass(frozen=True)
class AssembledCall:
    """A shown aggregate: a function of columns of parts. Of a sum or an average these are the sum and the count."""

    name: str
    function: str
    columns: tuple[PartColumn, ...]


@dataclass(frozen=True)
class BagOrder:
    """One part of the order of a bag's rows."""

    sql: str
    descending: bool


@dataclass(frozen=True)
class MatchedKey:
    """An equality of a join: the key's expressions in the inputs of its two reverse-joins."""

    left: str
    right: str
    nulls_match: bool


@dataclass(frozen=True)
class QueryColumn:
    """A field of an input, and what the query calls it."""

    stored: str
    name: str


@dataclass(frozen=True)
class QueryInput:
    """An input of a query that is evaluated again: its columns, and the key of its partitions."""

    columns: tuple[QueryColumn, ...]
    key: tuple[str, ...]
