"""Schemas: the columns of a table, which of them are its key, and how both may change.

A :class:`Schema` is a frozen list of typed columns of which the first
ones named in ``key`` identify a row; columns are only ever appended, so a row written
under an older version reads under a newer one with nulls at its end.

    >>> orders = Schema.of({"id": "BIGINT", "customer": "INTEGER", "amount": "DOUBLE"}, key=["id"])
    >>> orders.version, [c.name for c in orders.values]
    (1, ['customer', 'amount'])
    >>> orders.add(Column("note", parse_type("VARCHAR"))).version
    2

A table without a primary key has a hidden one, the column :data:`ROW_ID`. Stores and maintenance
treat it as any other key; what users see are the columns that are shown, and equal rows may
stand in such a table several times::

    >>> visits = Schema.of({"customer": "INTEGER", "page": "VARCHAR"})
    >>> visits.hidden_key, visits.key, [c.name for c in visits.shown]
    (True, ('__row',), ['customer', 'page'])
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from everview.boundary import public_constructors
from everview.change.types import UUID, Type, parse_type
from everview.errors import DefinitionError, UnknownColumnError

RESERVED = "__"
"""Names that begin with this belong to Everview (``__weight``, ``__seq``, …)."""

ROW_ID = f"{RESERVED}row"
"""The hidden key of a table that has no key of its own: a UUID, made by the process that inserts the row."""


@public_constructors
@dataclass(frozen=True)
class Column:
    """A named, typed column. ``since`` is the schema version that added it; a hidden one is
    neither seen nor named by users."""

    name: str
    type: Type
    nullable: bool = True
    since: int = 1
    hidden: bool = False

    def __post_init__(self) -> None:
        if not self.name or not self.name.strip() or "\x00" in self.name or not _is_unicode(self.name):
            raise DefinitionError(f"{self.name!r} is not a name for a column")
        if self.hidden and self.name != ROW_ID:
            raise DefinitionError(f"column {self.name} cannot be hidden")
        if self.name.startswith(RESERVED) and not self.hidden:
            raise DefinitionError(
                f"column {self.name} cannot be defined",
                detail=f"names that begin with {RESERVED} belong to Everview",
                hint="choose another name",
            )


def _is_unicode(text: str) -> bool:
    """Whether a text can be written: Python's may hold halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class KeyPart:
    """One component of a key: a type, whether it may be null, and its direction."""

    name: str
    type: Type
    nullable: bool = False
    descending: bool = False


@public_constructors
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
            raise DefinitionError(
                "a table needs a primary key", hint="name key columns, or let Schema.of make a hidden one"
            )
        if any(column.hidden for column in self.columns) and not self.hidden_key:
            raise DefinitionError(f"column {ROW_ID} is the whole key of a table, or is not there")
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
        columns: Mapping[str, Type | str] | Iterable[Column], key: Sequence[str] = (), not_null: Sequence[str] = ()
    ) -> Schema:
        """Build a schema from names and types (as objects or SQL text); without ``key`` with a
        hidden one."""
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
        if key:
            return Schema(tuple(columns), tuple(key))
        if not (shown := tuple(columns)):
            raise DefinitionError("a table needs a column")
        return Schema((Column(ROW_ID, UUID, nullable=False, hidden=True), *shown), (ROW_ID,))

    def column(self, name: str) -> Column:
        found = self._by_name.get(name)
        if found is None:
            raise UnknownColumnError(
                f"there is no column {name}", hint=f"the columns are {', '.join(c.name for c in self.shown)}"
            )
        return found

    @functools.cached_property
    def shown(self) -> tuple[Column, ...]:
        """What users see: all columns but a hidden key."""
        return tuple(column for column in self.columns if not column.hidden)

    @property
    def hidden_key(self) -> bool:
        """Whether a column that users do not see distinguishes the rows."""
        return self.key == (ROW_ID,)

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
        try:
            columns, key, version = plain["columns"], plain["key"], plain["version"]
            # functions are written for a schema: what stands in their text has the right type
            if not (isinstance(columns, list) and isinstance(key, list) and type(version) is int):
                raise TypeError("there are no columns, no key or no version")
            made = [
                Column(name, parse_type(text), nullable, since, hidden=name == ROW_ID)
                for name, text, nullable, since in columns
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise DefinitionError("this is not a recorded schema", detail=f"{type(error).__name__}: {error}") from error
        return Schema(tuple(made), tuple(key), version)
