"""Types in Parquet files.

A column gets the smallest SQL type that contains every value of its Arrow type.

    >>> sql_type(pa.list_(pa.decimal128(9, 2)))
    Type('DECIMAL(9,2)[]')

Parquet has no type for months, days and nanoseconds, so there an interval is a struct of the
three, under a name by which it is recognized at any depth of lists, structs and maps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from everview.change.types import (
    BIGINT,
    BIGNUM,
    BIT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    HUGEINT,
    INTEGER,
    INTERVAL,
    JSON,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_MS,
    TIMESTAMP_NS,
    TIMESTAMP_S,
    TIMESTAMPTZ,
    TIMETZ,
    TINYINT,
    UBIGINT,
    UHUGEINT,
    UINTEGER,
    USMALLINT,
    UTINYINT,
    UUID,
    VARCHAR,
    Kind,
    Type,
    decimal,
    list_of,
    map_of,
)
from everview.errors import DefinitionError
from everview.store.encoding.columns import from_raw, list_counts, list_items, nulls_of, raw_values

_PARTS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
IN_FILES = pa.opaque(
    pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())]), "interval", "Everview"
)


def from_file(array: pa.Array) -> pa.Array:
    """A column with such structs as intervals."""
    return _replaced(array, IN_FILES, _from_parts)


def to_parts(array: pa.Array, _: Type) -> pa.Array:
    """Intervals as structs."""
    raw, nulls = raw_values(array, INTERVAL).view(_PARTS), nulls_of(array)
    parts = [pa.array(np.ascontiguousarray(raw[field.name]), field.type) for field in IN_FILES.storage_type]
    mask = None if nulls is None else pa.array(nulls)
    storage = pa.StructArray.from_arrays(parts, fields=list(IN_FILES.storage_type), mask=mask)
    return pa.ExtensionArray.from_storage(IN_FILES, storage)


def _from_parts(array: pa.Array) -> pa.Array:
    raw = np.zeros(len(array), _PARTS)
    for field, part in zip(IN_FILES.storage_type, array.storage.flatten(), strict=True):
        raw[field.name] = part.fill_null(0).to_numpy(zero_copy_only=False)
    return from_raw(raw.view("V16"), INTERVAL, nulls_of(array))


def _replaced(array: pa.Array, old: pa.DataType, new: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The column with every part of one type replaced; the same column if there is none."""
    arrow = array.type
    if arrow == old:
        return new(array)
    if not _contains(arrow, old):
        return array
    nulls = nulls_of(array)
    mask = None if nulls is None else pa.array(nulls)
    if pa.types.is_struct(arrow):
        parts = [_replaced(part, old, new) for part in array.flatten()]
        fields = [pa.field(field.name, part.type) for field, part in zip(arrow, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if pa.types.is_fixed_size_list(arrow):
        inside = array.values.slice(array.offset * arrow.list_size, len(array) * arrow.list_size)
        found = _replaced(inside, old, new)
        return pa.FixedSizeListArray.from_arrays(found, type=pa.list_(found.type, arrow.list_size), mask=mask)
    offsets = pa.array(np.concatenate([[0], np.cumsum(list_counts(array))]).astype(np.int32))
    items = list_items(array)
    if pa.types.is_map(arrow):
        keys, values = (_replaced(part, old, new) for part in items.flatten())
        return pa.MapArray.from_arrays(offsets, keys, values, type=pa.map_(keys.type, values.type), mask=mask)
    found = _replaced(items, old, new)
    return pa.ListArray.from_arrays(offsets, found, type=pa.list_(found.type), mask=mask)


def _contains(arrow: pa.DataType, old: pa.DataType) -> bool:
    if arrow == old:
        return True
    if pa.types.is_map(arrow):
        return _contains(arrow.key_type, old) or _contains(arrow.item_type, old)
    if pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return _contains(arrow.value_type, old)
    return pa.types.is_struct(arrow) and any(_contains(field.type, old) for field in arrow)


# ------------------------------------------------------------------ the type of a column

_SAME = {
    one.arrow: one
    for one in (
        BOOLEAN, TINYINT, SMALLINT, INTEGER, BIGINT, HUGEINT, UTINYINT, USMALLINT, UINTEGER, UBIGINT, UHUGEINT,
        REAL, DOUBLE, VARCHAR, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_S, TIMESTAMP_MS,
        TIMESTAMP_NS, TIMETZ, BIT, BIGNUM, INTERVAL, UUID, JSON,
    )
}  # fmt: skip
_OTHERS = {
    pa.float16(): REAL,
    pa.large_string(): VARCHAR,
    pa.string_view(): VARCHAR,
    pa.large_binary(): BLOB,
    pa.binary_view(): BLOB,
    pa.date64(): DATE,
    pa.null(): VARCHAR,
    IN_FILES: INTERVAL,
}
_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)


def sql_type(arrow: pa.DataType) -> Type:
    """The type for a column of an Arrow type."""
    found = _SAME.get(arrow) or _OTHERS.get(arrow)
    if found is not None:
        return found
    if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow):
        return sql_type(arrow.value_type)
    if pa.types.is_decimal(arrow) and arrow.precision <= 38 and 0 <= arrow.scale <= arrow.precision:
        return decimal(arrow.precision, arrow.scale)
    if pa.types.is_fixed_size_binary(arrow):
        return BLOB
    if pa.types.is_time(arrow):
        return TIME
    if pa.types.is_timestamp(arrow):
        return TIMESTAMP if arrow.tz is None else TIMESTAMPTZ
    if pa.types.is_duration(arrow):
        return INTERVAL
    if isinstance(arrow, _LISTS):
        return list_of(sql_type(arrow.value_type))
    if pa.types.is_struct(arrow) and arrow.num_fields:
        return Type(Kind.STRUCT, children=tuple((field.name, sql_type(field.type)) for field in arrow))
    if pa.types.is_map(arrow):
        return map_of(sql_type(arrow.key_type), sql_type(arrow.item_type))
    if isinstance(arrow, pa.BaseExtensionType):
        return sql_type(arrow.storage_type)
    raise DefinitionError(f"there is no type for a column of {arrow}", hint="convert the column, or leave it out")
