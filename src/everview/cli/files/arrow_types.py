"""Which SQL type a column of a file gets when its table is made.

The smallest type of ours that takes every value of an Arrow type.

    >>> import pyarrow as pa
    >>> sql_type(pa.list_(pa.decimal128(9, 2)))
    Type('DECIMAL(9,2)[]')
"""

from __future__ import annotations

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
from everview.cli.files.intervals import IN_FILES
from everview.errors import DefinitionError

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
