"""Statements: what a text asks for, in fields.

A statement is a frozen dataclass that holds all parts of its text and has checked
what can be checked without a catalog; nothing in it has been carried out.

Every statement keeps its own ``text``, ``at`` (where it begins in the whole text) and
``source`` (that whole text, to which all positions refer). Queries and expressions are
sqlglot trees in Everview's dialect (:mod:`everview.sql.dialects`), names not yet resolved,
parameters replaced. Trees are never changed: who needs another one copies it.

Two statements are equal if their parts are, wherever they stand.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from sqlglot import exp

from everview.change.schema import Column, Schema
from everview.errors import DefinitionError
from everview.sql.dialects import to_sql
from everview.sql.positions import START, TextPosition

Option: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class OwnWords:
    """A query to the letter, with its parameters filled in."""

    text: str
    start: int = 0
    """Where it begins in the text around it."""
    is_read: bool = True
    """Whether our parser reads it too; otherwise there is nothing but these words."""


@dataclass(frozen=True)
class Statement:
    """What all statements have."""

    text: str = field(default="", kw_only=True, compare=False, repr=False)
    at: TextPosition = field(default=START, kw_only=True, compare=False, repr=False)
    source: str = field(default="", kw_only=True, compare=False, repr=False)
    words: OwnWords | None = field(default=None, kw_only=True, compare=False, repr=False)
    """Its query as it was written, where it was written in DuckDB's SQL."""


# ------------------------------------------------------------------ tables


@dataclass(frozen=True)
class CreateTable(Statement):
    """``CREATE TABLE``. Without a ``key`` the rows are identified by a hidden number, and equal
    rows may stand in the table several times."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    if_not_exists: bool = False

    def __post_init__(self) -> None:
        if not self.columns:
            raise DefinitionError(f"table {self.name} needs a column")
        if self.key:
            Schema(self.columns, self.key)

    @property
    def hidden_key(self) -> bool:
        return not self.key

    @property
    def schema(self) -> Schema:
        """Columns and key as stores want them; only for a table with a key of its own."""
        return Schema(self.columns, self.key)


@dataclass(frozen=True)
class AddColumn(Statement):
    """``ALTER TABLE … ADD COLUMN``: nullable, since rows that are there have no value."""

    table: str
    column: Column
    if_exists: bool = False
    """Whether a missing table is no error."""
    if_not_exists: bool = False

    def __post_init__(self) -> None:
        if not self.column.nullable:
            raise DefinitionError(
                f"column {self.column.name} cannot be added as NOT NULL",
                detail="rows that are there already would have no value",
                hint="add it nullable",
            )


@dataclass(frozen=True)
class DropTable(Statement):
    name: str
    cascade: bool = False
    if_exists: bool = False


# ------------------------------------------------------------------ views and indexes


@dataclass(frozen=True)
class CreateMaterializedView(Statement):
    """A view that is kept up to date. ``columns`` renames those of the query, if given."""

    name: str
    query: exp.Expr
    columns: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict, hash=False)
    or_replace: bool = False
    if_not_exists: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", dict(self.options))
        _check_view(self.name, self.columns, self.or_replace and self.if_not_exists)

    @cached_property
    def sql(self) -> str:
        """The text of its query."""
        return to_sql(self.query)


@dataclass(frozen=True)
class CreateView(Statement):
    """A name for a query, put in its place wherever it is used."""

    name: str
    query: exp.Expr
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False

    def __post_init__(self) -> None:
        _check_view(self.name, self.columns, self.or_replace and self.if_not_exists)


def _check_view(name: str, columns: tuple[str, ...], replaces_and_keeps: bool) -> None:
    folded = [column.lower() for column in columns]
    twice = [column for column in columns if folded.count(column.lower()) > 1]
    if twice:
        raise DefinitionError(f"view {name} names column {twice[0]} twice", hint="give each column a name of its own")
    if replaces_and_keeps:
        raise DefinitionError(
            f"view {name} cannot be both replaced and kept",
            hint="write OR REPLACE or IF NOT EXISTS, not both",
        )


@dataclass(frozen=True)
class DropView(Statement):
    """``DROP VIEW`` and ``DROP MATERIALIZED VIEW``."""

    name: str
    materialized: bool
    cascade: bool = False
    if_exists: bool = False


@dataclass(frozen=True)
class CreateIndex(Statement):
    """Rows of a table or view by other columns than its key."""

    name: str
    on: str
    columns: tuple[str, ...]
    if_not_exists: bool = False

    def __post_init__(self) -> None:
        folded = [column.lower() for column in self.columns]
        if not folded or len(set(folded)) != len(folded):
            raise DefinitionError(f"index {self.name} needs columns, each of them once")


@dataclass(frozen=True)
class DropIndex(Statement):
    name: str
    cascade: bool = False
    if_exists: bool = False


# ------------------------------------------------------------------ writes


@dataclass(frozen=True)
class Insert(Statement):
    """``INSERT``: the store's put. ``columns`` is empty where the text names none: then the
    values are those of all columns in their order."""

    table: str
    columns: tuple[str, ...]
    query: exp.Expr
    """``VALUES``, or any other query."""

    def __post_init__(self) -> None:
        folded = [column.lower() for column in self.columns]
        twice = [column for column in self.columns if folded.count(column.lower()) > 1]
        if twice:
            raise DefinitionError(f"column {twice[0]} of table {self.table} is given twice", hint="name it once")

    @property
    def values(self) -> tuple[tuple[exp.Expr, ...], ...] | None:
        """The rows of VALUES, as expressions; None for another query."""
        if not isinstance(self.query, exp.Values):
            return None
        return tuple(tuple(row.expressions) for row in self.query.expressions)


@dataclass(frozen=True)
class Update(Statement):
    table: str
    assignments: tuple[tuple[str, exp.Expr], ...]
    where: exp.Expr | None = None
    alias: str | None = None
    """What expressions may call the table instead of its name."""

    def __post_init__(self) -> None:
        folded = [name.lower() for name, _ in self.assignments]
        twice = [name for name, _ in self.assignments if folded.count(name.lower()) > 1]
        if twice:
            raise DefinitionError(f"column {twice[0]} of table {self.table} is set twice", hint="set it once")


@dataclass(frozen=True)
class Delete(Statement):
    table: str
    where: exp.Expr | None = None
    alias: str | None = None


# ------------------------------------------------------------------ questions


@dataclass(frozen=True)
class Select(Statement):
    query: exp.Expr


class ExplainFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    SVG = "svg"


@dataclass(frozen=True)
class Explain(Statement):
    statement: Select | CreateMaterializedView | CreateView | CreateIndex
    format: ExplainFormat = ExplainFormat.TEXT


class ShowKind(enum.StrEnum):
    TABLES = "tables"
    VIEWS = "views"
    INDEXES = "indexes"
    GROUPS = "groups"


@dataclass(frozen=True)
class Show(Statement):
    kind: ShowKind


@dataclass(frozen=True)
class ShowCreate(Statement):
    """``SHOW CREATE [TABLE | VIEW | MATERIALIZED VIEW | INDEX] name``."""

    name: str
    kind: str | None = None
    """In lower case; None where the text has none."""


@dataclass(frozen=True)
class Describe(Statement):
    name: str


# ------------------------------------------------------------------ the rest


@dataclass(frozen=True)
class Flush(Statement):
    """Wait until every view reflects every earlier write."""


@dataclass(frozen=True)
class SetDialect(Statement):
    """Read the statements that follow, in this text and later ones, in this dialect."""

    dialect: str


@dataclass(frozen=True)
class SetOption(Statement):
    name: str
    value: Option


@dataclass(frozen=True)
class SetGlobal(Statement):
    """A setting of the store, which outlives who sets it."""

    name: str
    value: Option
