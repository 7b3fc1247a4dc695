"""Arrow columns as DuckDB reads them.

DuckDB takes every column of ours for the type that it is, except those with an ENUM in them, which
Arrow has no word for: such columns go in as texts, and what queries read is a view that casts them.

Rows are a table, or anything with a schema that offers Arrow's stream, each time from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import duckdb
import pyarrow as pa

from everview.change.types import Kind, Type, type_of
from everview.store.encoding.rewriting import Rewrite

_PLAIN = "{}__with_texts"


def _texts(array: pa.Array, sql: Type) -> pa.Array:
    return pa.array(sql.members, pa.string()).take(array.storage)


AS_TEXTS = Rewrite({Kind.ENUM: (lambda _: pa.string(), _texts)})
"""ENUMs as texts. (DuckDB reads dictionaries too, but not those in arrays.)"""


class ArrowRows(Protocol):
    """Columns that can be read several times."""

    @property
    def schema(self) -> pa.Schema:
        """Of our own Arrow types."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows, from the beginning."""


class _WithTexts:
    """The same rows with texts in place of ENUMs."""

    def __init__(self, rows: ArrowRows) -> None:
        self._rows = rows
        self._types = [type_of(field.type) for field in rows.schema]
        fields = zip(rows.schema, self._types, strict=True)
        self.schema = pa.schema([pa.field(field.name, AS_TEXTS.type(kind)) for field, kind in fields])

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in pa.RecordBatchReader.from_stream(self._rows):
            arrays = [AS_TEXTS.column(array, kind) for array, kind in zip(batch.columns, self._types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__(requested_schema)


def register(connection: duckdb.DuckDBPyConnection, name: str, rows: ArrowRows | pa.Table) -> None:
    """Give rows a name in a connection."""
    enums = [field for field in rows.schema if _has_enum(field.type)]
    if not enums:
        connection.register(name, rows)
        return
    casts = ", ".join(f"CAST({_quoted(one.name)} AS {type_of(one.type)}) AS {_quoted(one.name)}" for one in enums)
    connection.register(_PLAIN.format(name), _WithTexts(rows))
    source = _quoted(_PLAIN.format(name))
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {_quoted(name)} AS SELECT * REPLACE ({casts}) FROM {source}")


def unregister(connection: duckdb.DuckDBPyConnection, name: str, rows: ArrowRows | pa.Table) -> None:
    """Take it back."""
    if any(_has_enum(field.type) for field in rows.schema):
        connection.execute(f"DROP VIEW IF EXISTS {_quoted(name)}")
        name = _PLAIN.format(name)
    connection.unregister(name)


def _has_enum(arrow: pa.DataType) -> bool:
    if isinstance(arrow, pa.OpaqueType):
        return bool(arrow.vendor_name == "Everview")
    if isinstance(arrow, pa.MapType):
        return _has_enum(arrow.key_type) or _has_enum(arrow.item_type)
    if isinstance(arrow, pa.ListType | pa.FixedSizeListType):
        return _has_enum(arrow.value_type)
    return isinstance(arrow, pa.StructType) and any(_has_enum(field.type) for field in arrow)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
