"""Arrow columns of many types, brought into the one type a column has.

:func:`fit` converts a column where no value changes its meaning, and says
why it cannot where one would.

What converts is what the values of a single row may be (:mod:`everview.store.encoding.values`),
plus what only columns have: other widths of integers, units of time and sizes of
decimals, as long as every value fits; floats and decimals that are whole numbers, for
integers (pandas makes floats of integers with gaps); dictionaries, run ends, views, and
columns of nothing but nulls.

A conversion may fail for its types (:class:`Unfit`: no value would fit) or for a value
(``Refused``); :func:`first_misfit` then finds the row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import BIGINT, Kind, Type
from everview.errors import InputError
from everview.store.encoding import bits, timetz
from everview.store.encoding.columns import (
    LIMIT,
    list_array,
    list_counts,
    list_items,
    nulls_of,
)
from everview.store.encoding.fitting_numbers import NUMBERS, Unfit, is_text, unfit, value_by_value
from everview.store.encoding.row_layout import Layout
from everview.store.encoding.row_write import write_records
from everview.store.encoding.values import Refused, checker

__all__ = ["Unfit", "first_misfit", "fit"]

_DAY_MICROS = 86_400_000_000


def fit(array: pa.Array, sql: Type) -> pa.Array:
    """The column as one of ``sql.arrow``, with every value checked. Raises Unfit or Refused."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    elif pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), sql.arrow)
    try:
        return _FITS[sql.kind](array, sql)
    except pa.ArrowInvalid as error:
        raise Refused(str(error).partition("\n")[0]) from error
    except pa.ArrowNotImplementedError as error:
        raise unfit(array, sql) from error


def first_misfit(array: pa.Array, sql: Type) -> int:
    """The first row whose value is refused, in a column of which one is: found by halving."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            fit(array.slice(low, middle - low), sql)
            low = middle
        except Refused:
            high = middle
    return low


# ------------------------------------------------------------------ text and bytes


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or pa.types.is_binary_view(arrow)
        or pa.types.is_fixed_size_binary(arrow)
    )


def _sized(array: pa.Array, small: pa.DataType) -> pa.Array:
    """Text or bytes with offsets of 32 bits."""
    if array.type == small:
        return array
    array = array.cast(pa.large_string() if small == pa.string() else pa.large_binary())
    if len(array) and (pc.sum(pc.binary_length(array)).as_py() or 0) >= LIMIT:
        raise InputError("a column holds more than 2 GiB", hint="hand over fewer rows at a time")
    return array.cast(small)


def _varchar(array: pa.Array, sql: Type) -> pa.Array:
    if isinstance(array.type, pa.JsonType):
        array = array.storage
    if not is_text(array.type):
        raise unfit(array, sql)
    array.validate(full=True)
    return _sized(array, pa.string())


def _json(array: pa.Array, sql: Type) -> pa.Array:
    text = _varchar(array, sql)
    check = checker(sql)
    for value in text.drop_null().to_pylist():
        check(value)
    return pa.ExtensionArray.from_storage(sql.arrow, text)


def _blob(array: pa.Array, sql: Type) -> pa.Array:
    if not _is_bytes(array.type):
        raise unfit(array, sql)
    return _sized(array, pa.binary())


def _uuid(array: pa.Array, sql: Type) -> pa.Array:
    if array.type == sql.arrow:
        return array
    if not is_text(array.type):
        raise unfit(array, sql)
    array.validate(full=True)
    return value_by_value(array, sql)


def _bit(array: pa.Array, sql: Type) -> pa.Array:
    if array.type == sql.arrow:
        return array
    if is_text(array.type):
        try:
            return pa.ExtensionArray.from_storage(sql.arrow, bits.from_texts(_sized(array, pa.string())))
        except ValueError as error:
            raise Refused(str(error)) from None
    if not _is_bytes(array.type):
        raise unfit(array, sql)
    held = _sized(array, pa.binary())
    if bits.damaged(held).any():
        raise Refused("the bytes are not those of a BIT")
    return pa.ExtensionArray.from_storage(sql.arrow, held)


def _enum(array: pa.Array, sql: Type) -> pa.Array:
    if array.type == sql.arrow:
        return array
    if not is_text(array.type):
        raise unfit(array, sql)
    places = pc.index_in(array, value_set=pa.array(sql.members, array.type))
    if places.null_count != array.null_count:
        unknown = array.filter(pc.and_(places.is_null(), array.is_valid()))[0].as_py()
        raise Refused(f"{unknown!r} is not a member of the ENUM")
    return pa.ExtensionArray.from_storage(sql.arrow, places.cast(sql.arrow.storage_type))


# ------------------------------------------------------------------ times


def _date(array: pa.Array, sql: Type) -> pa.Array:
    if not pa.types.is_date(array.type):
        raise unfit(array, sql)
    return array.cast(sql.arrow)


def _time(array: pa.Array, sql: Type) -> pa.Array:
    if not pa.types.is_time(array.type):
        raise unfit(array, sql)
    array = array.cast(sql.arrow)
    micros = array.drop_null().cast(pa.int64()).to_numpy()
    if ((micros < 0) | (micros >= _DAY_MICROS)).any():
        raise Refused("a time is not within a day")
    return array


def _timestamp(array: pa.Array, sql: Type) -> pa.Array:
    if not pa.types.is_timestamp(array.type):
        raise unfit(array, sql)
    if (array.type.tz is not None) != (sql.kind is Kind.TIMESTAMPTZ):
        raise Unfit(f"the moments have {'no' if array.type.tz is None else 'a'} time zone, unlike those of {sql}")
    return array.cast(sql.arrow)


def _timetz(array: pa.Array, sql: Type) -> pa.Array:
    if array.type == sql.arrow:
        return array
    if not is_text(array.type):
        raise unfit(array, sql)
    try:  # by the bits: 24:00:00 is such a time, and none of Python's
        raw = [None if text is None else timetz.parsed(text).to_bytes(8, "little") for text in array.to_pylist()]
    except ValueError as error:
        raise Refused(str(error)) from None
    return pa.ExtensionArray.from_storage(sql.arrow, pa.array(raw, sql.arrow.storage_type))


def _interval(array: pa.Array, sql: Type) -> pa.Array:
    if array.type == sql.arrow:
        return array
    if not pa.types.is_duration(array.type):
        raise unfit(array, sql)
    return value_by_value(array.cast(pa.duration("us")), sql)


# ------------------------------------------------------------------ nested


def _list(array: pa.Array, sql: Type) -> pa.Array:
    arrow = array.type
    if isinstance(arrow, (pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)):
        array = array.cast(pa.list_(arrow.value_field))
    elif not isinstance(arrow, pa.ListType):
        raise unfit(array, sql)
    counts = list_counts(array)
    if sql.kind is Kind.ARRAY and (counts[array.is_valid().to_numpy(zero_copy_only=False)] != sql.length).any():
        raise Refused(f"a value has not the {sql.length} items of a {sql}")
    return list_array(sql, counts, fit(list_items(array), sql.item), nulls_of(array))


def _struct(array: pa.Array, sql: Type) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise unfit(array, sql)
    names = [field.name for field in array.type]
    known = [name for name, _ in sql.children]
    odd = [name for i, name in enumerate(names) if name not in known or name in names[:i]]
    if odd:
        raise Unfit(f"field {odd[0]} is not a field of {sql}, or stands there twice")
    found = dict(zip(names, array.flatten(), strict=True))
    children = [
        fit(found[name], child) if name in found else pa.nulls(len(array), child.arrow) for name, child in sql.children
    ]
    nulls = nulls_of(array)
    mask = None if nulls is None else pa.array(nulls)
    return pa.StructArray.from_arrays(children, fields=list(sql.arrow), mask=mask)


def _tuple(array: pa.Array, sql: Type) -> pa.Array:
    """The fields of a struct in their order, whatever they are called."""
    if not pa.types.is_struct(array.type) or array.type.num_fields != len(sql.children):
        raise unfit(array, sql)
    children = [fit(part, child) for part, (_, child) in zip(array.flatten(), sql.children, strict=True)]
    nulls = nulls_of(array)
    mask = None if nulls is None else pa.array(nulls)
    return pa.StructArray.from_arrays(children, fields=list(sql.arrow), mask=mask)


def _map(array: pa.Array, sql: Type) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise unfit(array, sql)
    counts = list_counts(array)
    (_, key), (_, value) = sql.children
    keys, values = list_items(array).flatten()
    keys, values = fit(keys, key), fit(values, value)
    if keys.null_count:
        raise Refused(f"a key of a {sql} cannot be null")
    rows = pa.array(np.repeat(np.arange(len(counts)), counts))
    named = write_records(Layout([BIGINT, key]), [rows, keys], np.zeros((len(keys), 0), np.uint8))
    if pc.count_distinct(named).as_py() != len(keys):
        raise Refused("a key stands there twice")
    entries = pa.StructArray.from_arrays([keys, values], fields=list(sql.item.arrow))
    return list_array(sql, counts, entries, nulls_of(array))


_FITS: dict[Kind, Callable[[pa.Array, Type], pa.Array]] = {
    **NUMBERS,
    Kind.VARCHAR: _varchar,
    Kind.BLOB: _blob,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamp,
    Kind.TIMESTAMP_S: _timestamp,
    Kind.TIMESTAMP_MS: _timestamp,
    Kind.TIMESTAMP_NS: _timestamp,
    Kind.TIMETZ: _timetz,
    Kind.BIT: _bit,
    Kind.ENUM: _enum,
    Kind.INTERVAL: _interval,
    Kind.UUID: _uuid,
    Kind.JSON: _json,
    Kind.LIST: _list,
    Kind.STRUCT: _struct,
    Kind.MAP: _map,
    Kind.ARRAY: _list,
    Kind.TUPLE: _tuple,
}
