"""Schemas: the columns of a table, which of them are its key, and how both may change.

One sentence: a :class:`Schema` is a frozen list of typed columns of which the first
ones named in ``key`` identify a row; columns are only ever appended, so a row written
under an older version reads under a newer one with nulls at its end.

    >>> orders = Schema.of({"id": "BIGINT", "customer": "INTEGER", "amount": "DOUBLE"}, key=["id"])
    >>> orders.version, [c.name for c in orders.values]
    (1, ['customer', 'amount'])
    >>> orders.add(Column("note", parse_type("VARCHAR"))).version
    2
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from everview.change.types import Type, parse_type
from everview.errors import DefinitionError, UnknownColumnError

RESERVED = "__"
"""Names that begin with this belong to Everview (``__weight``, ``__seq``, …)."""


@dataclass(frozen=True)
class Column:
    """A named, typed column. ``since`` is the schema version that added it."""

    name: str
    type: Type
    nullable: bool = True
    since: int = 1

    def __post_init__(self) -> None:
        if not self.name or not self.name.strip() or "\x00" in self.name:
            raise DefinitionError(f"{self.name!r} is not a name for a column")
        if self.name.startswith(RESERVED):
            raise DefinitionError(
                f"column {self.name} cannot be defined",
                detail=f"names that begin with {RESERVED} belong to Everview",
                hint="choose another name",
            )


@dataclass(frozen=True)
class KeyPart:
    """One component of a key: a type, whether it may be null, and its direction."""

    name: str
    type: Type
    nullable: bool = False
    descending: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns of a table in their order, and the names of its key columns."""

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    version: int = 1
    _by_name: dict[str, Column] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        folded = [column.name.lower() for column in self.columns]
        twice = sorted({name for name in folded if folded.count(name) > 1})
        if twice:
            raise DefinitionError(
                f"column {twice[0]} is defined twice", hint="names differ in more than upper and lower case"
            )
        object.__setattr__(self, "_by_name", {column.name: column for column in self.columns})
        if not self.key:
            raise DefinitionError("a table needs a primary key", hint="name one or more key columns")
        if len(set(self.key)) != len(self.key):
            raise DefinitionError(f"the primary key {self.key} names a column twice")
        for name in self.key:
            column = self.column(name)
            if not column.type.is_scalar:
                raise DefinitionError(
                    f"column {name} cannot be part of the primary key",
                    detail=f"{column.type} is not a scalar type",
                    hint="use scalar columns as the key, and keep lists, structs and maps as values",
                )
            if column.nullable:
                raise DefinitionError(f"key column {name} must be NOT NULL")
            if column.since != 1:
                raise DefinitionError(f"key column {name} cannot be added later")

    @staticmethod
    def of(
        columns: Mapping[str, Type | str] | Iterable[Column], key: Sequence[str], not_null: Sequence[str] = ()
    ) -> Schema:
        """Build a schema from names and types (as objects or SQL text)."""
        if isinstance(columns, Mapping):
            unknown = [name for name in (*key, *not_null) if name not in columns]
            if unknown:
                raise UnknownColumnError(
                    f"there is no column {unknown[0]}", hint=f"the columns are {', '.join(columns)}"
                )
            columns = [
                Column(
                    name,
                    parse_type(kind) if isinstance(kind, str) else kind,
                    nullable=name not in key and name not in not_null,
                )
                for name, kind in columns.items()
            ]
        return Schema(tuple(columns), tuple(key))

    def column(self, name: str) -> Column:
        found = self._by_name.get(name)
        if found is None:
            raise UnknownColumnError(
                f"there is no column {name}", hint=f"the columns are {', '.join(c.name for c in self.columns)}"
            )
        return found

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @functools.cached_property
    def key_parts(self) -> tuple[KeyPart, ...]:
        """The key's components in key order."""
        return tuple(KeyPart(name, self.column(name).type) for name in self.key)

    @functools.cached_property
    def values(self) -> tuple[Column, ...]:
        """The columns that are not part of the key, in table order: what a stored row holds."""
        return tuple(column for column in self.columns if column.name not in self.key)

    def values_at(self, version: int) -> tuple[Column, ...]:
        """The value columns a row of an older schema version holds: a prefix of :attr:`values`."""
        return tuple(column for column in self.values if column.since <= version)

    @functools.cached_property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type.arrow, nullable=c.nullable) for c in self.columns])

    def add(self, column: Column) -> Schema:
        """The schema with one more column; rows written before read as null there."""
        if not column.nullable:
            raise DefinitionError(
                f"column {column.name} cannot be added as NOT NULL",
                detail="rows that are there already would have no value",
                hint="add it nullable",
            )
        version = self.version + 1
        return Schema((*self.columns, replace(column, since=version)), self.key, version)

    def to_json(self) -> dict[str, object]:
        """A plain form for the catalog; :meth:`from_json` reads it back."""
        return {
            "columns": [[c.name, str(c.type), c.nullable, c.since] for c in self.columns],
            "key": list(self.key),
            "version": self.version,
        }

    @staticmethod
    def from_json(plain: Mapping[str, object]) -> Schema:
        columns = plain["columns"]
        key = plain["key"]
        version = plain["version"]
        assert isinstance(columns, list) and isinstance(key, list) and isinstance(version, int)
        return Schema(
            tuple(Column(name, parse_type(text), nullable, since) for name, text, nullable, since in columns),
            tuple(key),
            version,
        )
