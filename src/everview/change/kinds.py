"""The kinds of types, and the properties that all types of a kind share.

A kind is a family of SQL types. Most kinds have one type; for those the tables here contain
the width of its values and its Arrow type.

:mod:`everview.change.types` has what differs from type to type, of decimals, enums and nested types.
"""

from __future__ import annotations

import enum

import pyarrow as pa


class Kind(enum.Enum):
    """The families of types; the value is the SQL name."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    HUGEINT = "HUGEINT"
    UTINYINT = "UTINYINT"
    USMALLINT = "USMALLINT"
    UINTEGER = "UINTEGER"
    UBIGINT = "UBIGINT"
    UHUGEINT = "UHUGEINT"
    REAL = "REAL"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    VARCHAR = "VARCHAR"
    BLOB = "BLOB"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMPTZ = "TIMESTAMPTZ"
    TIMESTAMP_S = "TIMESTAMP_S"
    TIMESTAMP_MS = "TIMESTAMP_MS"
    TIMESTAMP_NS = "TIMESTAMP_NS"
    TIMETZ = "TIMETZ"
    INTERVAL = "INTERVAL"
    UUID = "UUID"
    JSON = "JSON"
    BIT = "BIT"
    BIGNUM = "BIGNUM"
    ENUM = "ENUM"
    LIST = "LIST"
    STRUCT = "STRUCT"
    MAP = "MAP"
    ARRAY = "ARRAY"
    TUPLE = "TUPLE"


SIGNED = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.HUGEINT: 128}
UNSIGNED = {
    Kind.UTINYINT: 8,
    Kind.USMALLINT: 16,
    Kind.UINTEGER: 32,
    Kind.UBIGINT: 64,
    Kind.UHUGEINT: 128,
}
INTEGERS = SIGNED | UNSIGNED
FLOATS = frozenset({Kind.REAL, Kind.DOUBLE})
NESTED = frozenset({Kind.LIST, Kind.STRUCT, Kind.MAP, Kind.ARRAY, Kind.TUPLE})
RECORDS = frozenset({Kind.STRUCT, Kind.TUPLE})
"""Kinds whose values have a fixed number of parts, each of a type of its own."""
TEXTS = frozenset({Kind.VARCHAR, Kind.JSON})
"""Kinds whose values are UTF-8 text."""

WIDTH = {
    Kind.BOOLEAN: 1,
    Kind.REAL: 4,
    Kind.DOUBLE: 8,
    Kind.DATE: 4,
    Kind.TIME: 8,
    Kind.TIMESTAMP: 8,
    Kind.TIMESTAMPTZ: 8,
    Kind.TIMESTAMP_S: 8,
    Kind.TIMESTAMP_MS: 8,
    Kind.TIMESTAMP_NS: 8,
    Kind.TIMETZ: 8,
    Kind.INTERVAL: 16,
    Kind.UUID: 16,
    **{kind: bits // 8 for kind, bits in INTEGERS.items()},
}
"""Bytes of a stored value, for kinds whose values all have the same number of bytes."""

_HUGEINT = pa.opaque(pa.binary(16), "hugeint", "DuckDB")
_UHUGEINT = pa.opaque(pa.binary(16), "uhugeint", "DuckDB")

ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.HUGEINT: _HUGEINT,
    Kind.UTINYINT: pa.uint8(),
    Kind.USMALLINT: pa.uint16(),
    Kind.UINTEGER: pa.uint32(),
    Kind.UBIGINT: pa.uint64(),
    Kind.UHUGEINT: _UHUGEINT,
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.VARCHAR: pa.string(),
    Kind.BLOB: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    Kind.TIMESTAMP_S: pa.timestamp("s"),
    Kind.TIMESTAMP_MS: pa.timestamp("ms"),
    Kind.TIMESTAMP_NS: pa.timestamp("ns"),
    Kind.TIMETZ: pa.opaque(pa.binary(8), "time_tz", "DuckDB"),
    Kind.INTERVAL: pa.month_day_nano_interval(),
    Kind.UUID: pa.uuid(),
    Kind.JSON: pa.json_(pa.string()),
    Kind.BIT: pa.opaque(pa.binary(), "bit", "DuckDB"),
    Kind.BIGNUM: pa.opaque(pa.binary(), "bignum", "DuckDB"),
}
"""The Arrow types of kinds that have one type."""
