"""Where rows come from: tables, views, and the query itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from everview.plan.expressions import Field
from everview.plan.relations.relation import Relation


@dataclass(frozen=True)
class Scan(Relation):
    """A base table or a view, under an alias."""

    table: str
    alias: str
    columns: tuple[Field, ...]
    """With the names they have in the table."""
    primary: tuple[str, ...]
    title = "scan"

    def __post_init__(self) -> None:
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(replace(column, name=f"{self.alias}.{column.name}") for column in self.columns)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(f"{self.alias}.{name}" for name in self.primary)

    def description(self) -> str:
        name = self.table if self.table == self.alias else f"{self.table} AS {self.alias}"
        return f"{name} ({', '.join(map(str, self.columns))})"


@dataclass(frozen=True)
class QueryRows(Relation):
    """Rows that stand in the query itself: VALUES, generate_series of constants, SELECT without FROM."""

    query: str
    """A DuckDB query without tables, whose columns are the fields but the number."""
    columns: tuple[Field, ...]
    number: Field | None = None
    """The row's number from 1, hidden; none where there is one row only."""
    rounds: int = 0
    """Of a recursive query: after how many it is given up."""
    title = "rows"

    def __post_init__(self) -> None:
        self._check()

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.columns, *((self.number,) if self.number else ()))

    @property
    def key(self) -> tuple[str, ...]:
        return (self.number.name,) if self.number else ()

    def description(self) -> str:
        return self.query
