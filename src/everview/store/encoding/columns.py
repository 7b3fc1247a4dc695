"""Columns and what they are made of: Python values, raw bytes, choices between two columns.

Arrow arrays of our types are made from Python values or fixed-width bytes,
and taken apart again, in this file only, because Arrow's own conversions stop at
extension types (HUGEINT, UUID, JSON) and at whatever is nested around them.

Python values are the canonical ones of :mod:`everview.store.encoding.values`, None for null::

    >>> to_python(to_arrow([1 << 100, None], parse_type("HUGEINT")), parse_type("HUGEINT"))
    [1267650600228229401496703205376, None]

The raw values of a column are a numpy array with one element of ``type.width`` bytes per
row: what :mod:`everview.store.encoding.rows` stores, little-endian, with 16-byte values (HUGEINT,
UUID, INTERVAL, wide DECIMAL) as opaque elements.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.change.types import NESTED, RECORDS, UNSIGNED, Kind, Type
from everview.errors import InputError, ValueTypeError
from everview.store.encoding import bignums, bits, timetz

Numbers = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

LIMIT = 1 << 31
"""Arrow's strings and lists count in 32 bits: the bytes or items one array may hold."""

_DTYPE = {
    Kind.BOOLEAN: "u1",
    Kind.REAL: "<f4",
    Kind.DOUBLE: "<f8",
    Kind.DATE: "<i4",
    Kind.TIME: "<i8",
    Kind.TIMESTAMP: "<i8",
    Kind.TIMESTAMPTZ: "<i8",
    Kind.TIMESTAMP_S: "<i8",
    Kind.TIMESTAMP_MS: "<i8",
    Kind.TIMESTAMP_NS: "<i8",
    Kind.TIMETZ: "<u8",
    Kind.INTERVAL: "V16",
    Kind.UUID: "V16",
    Kind.HUGEINT: "V16",
    Kind.UHUGEINT: "V16",
}
_DAY_MICROS = 86_400_000_000
_EPOCH = datetime.datetime(1970, 1, 1)
INFINITY = (1 << 63) - 1
"""How DuckDB holds the moment infinity, whatever unit it counts in."""


def dtype_of(sql: Type) -> np.dtype[Any]:
    """The numpy type of the raw values of a fixed-width type."""
    if sql.kind is Kind.DECIMAL:
        return np.dtype("<i8" if sql.width == 8 else "V16")
    known = _DTYPE.get(sql.kind)
    return np.dtype(known or f"<{'u' if sql.kind in UNSIGNED or sql.kind is Kind.ENUM else 'i'}{sql.width}")


# ------------------------------------------------------------------ Python values


def to_arrow(values: Sequence[Any], sql: Type) -> pa.Array:
    """A column of canonical Python values."""
    kind = sql.kind
    if kind in (Kind.HUGEINT, Kind.UHUGEINT):
        signed = kind is Kind.HUGEINT
        return _wrapped([None if v is None else v.to_bytes(16, "little", signed=signed) for v in values], sql)
    if kind is Kind.UUID:
        return _wrapped([None if v is None else v.bytes for v in values], sql)
    if kind is Kind.JSON:
        return _wrapped(values, sql)
    if kind is Kind.BIT:
        return _wrapped([None if v is None else bits.to_bytes(v) for v in values], sql)
    if kind is Kind.BIGNUM:
        return _wrapped([None if v is None else bignums.to_bytes(v) for v in values], sql)
    if kind is Kind.ENUM:
        places = {member: place for place, member in enumerate(sql.members)}
        return _wrapped([None if v is None else places[v] for v in values], sql)
    if kind is Kind.TIMETZ:
        return _wrapped([None if v is None else timetz.held(v).to_bytes(8, "little") for v in values], sql)
    if kind is Kind.TIMESTAMP_NS:
        return pa.array([None if v is None else nanoseconds(v) for v in values], pa.int64()).cast(sql.arrow)
    if kind in RECORDS:
        names = range(len(sql.children)) if kind is Kind.TUPLE else [name for name, _ in sql.children]
        children = [
            to_arrow([None if v is None else v[name] for v in values], child)
            for name, (_, child) in zip(names, sql.children, strict=True)
        ]
        absent = pa.array([v is None for v in values], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(sql.arrow), mask=absent)
    if kind in NESTED:
        if kind is Kind.MAP:
            values = [_entries(v) for v in values]
        nulls = np.array([v is None for v in values], np.bool_)
        counts = np.array([0 if v is None else len(v) for v in values], np.int64)
        flat = list(chain.from_iterable(v for v in values if v is not None))
        return list_array(sql, counts, to_arrow(flat, sql.item), nulls)
    return pa.array(values, sql.arrow)


def _wrapped(values: Sequence[Any], sql: Type) -> pa.Array:
    return pa.ExtensionArray.from_storage(sql.arrow, pa.array(values, sql.arrow.storage_type))


def _entries(value: Any) -> list[dict[str, object]] | None:
    if value is None:
        return None
    pairs = value.items() if isinstance(value, dict) else value
    return [{"key": key, "value": held} for key, held in pairs]


def to_python(array: pa.Array, sql: Type) -> list[Any]:
    """The canonical Python values of a column."""
    kind = sql.kind
    if kind in (Kind.HUGEINT, Kind.UHUGEINT):
        signed = kind is Kind.HUGEINT
        raw = array.storage.to_pylist()
        return [None if v is None else int.from_bytes(v, "little", signed=signed) for v in raw]
    if kind is Kind.TIMESTAMPTZ:
        # Arrow would give zoneinfo's UTC, which is equal to ours but not the same.
        utc = datetime.UTC
        return [None if v is None else v.replace(tzinfo=utc) for v in _listed(array.cast(pa.timestamp("us")))]
    if kind is Kind.TIME and (raw_values(array, sql) == _DAY_MICROS)[~_nulls(array)].any():
        raise no_python_value("a column", OverflowError("24:00:00 is not a Python time"))  # Arrow gives 00:00
    if kind is Kind.BIT:
        return [None if v is None else bits.from_bytes(v) for v in array.storage.to_pylist()]
    if kind is Kind.BIGNUM:
        return [None if v is None else bignums.from_bytes(v) for v in array.storage.to_pylist()]
    if kind is Kind.ENUM:
        return [None if v is None else sql.members[v] for v in array.storage.to_pylist()]
    if kind is Kind.TIMETZ:
        return _converted(timetz.time_of, array.storage.view(pa.int64()))
    if kind is Kind.TIMESTAMP_NS:
        return _converted(from_nanoseconds, array.view(pa.int64()))
    if kind in RECORDS:
        names = [name for name, _ in sql.children]
        parts = [to_python(part, child) for part, (_, child) in zip(array.flatten(), sql.children, strict=True)]
        if kind is Kind.TUPLE:
            return _unless_null(array, list(zip(*parts, strict=True)))
        return _unless_null(array, [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)])
    if kind in NESTED:
        items = to_python(list_items(array), sql.item)
        if kind is Kind.MAP:
            items = [(entry["key"], entry["value"]) for entry in items]
        build: Any = dict if kind is Kind.MAP and sql.children[0][1].is_scalar else list
        build = tuple if kind is Kind.ARRAY else build
        ends = [0, *np.cumsum(list_counts(array)).tolist()]
        return _unless_null(array, [build(items[start:end]) for start, end in pairwise(ends)])
    return _listed(array)


def _converted(convert: Callable[[int], object], numbers: pa.Array) -> list[Any]:
    try:
        return [None if v is None else convert(v) for v in numbers.to_pylist()]
    except OverflowError as error:
        raise no_python_value("a column", error) from error


def nanoseconds(value: datetime.datetime) -> int:
    """A moment as nanoseconds since 1970: of a pandas Timestamp all of them, of a datetime its microseconds."""
    since = value - _EPOCH
    whole = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return whole * 1000 + getattr(value, "nanosecond", 0)


def from_nanoseconds(value: int) -> datetime.datetime:
    """A datetime, or a pandas Timestamp where there are nanoseconds. Raises OverflowError for infinity."""
    if abs(value) >= INFINITY:
        raise OverflowError("infinity is not a moment in Python")
    micros, rest = divmod(value, 1000)
    if rest == 0:
        return _EPOCH + datetime.timedelta(microseconds=micros)
    import pandas as pd  # type: ignore[import-untyped]

    found: datetime.datetime = pd.Timestamp(value)
    return found


def _listed(array: pa.Array) -> list[Any]:
    try:
        values: list[Any] = array.to_pylist()
    except (ValueError, OverflowError) as error:
        raise no_python_value("a column", error) from error
    return values


def no_python_value(what: str, error: Exception) -> ValueTypeError:
    """For dates and times that SQL has and Python has not."""
    return ValueTypeError(
        f"{what} holds a value that Python has none for", detail=str(error), hint="read it as an Arrow column"
    )


def _unless_null(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [value if there else None for value, there in zip(values, array.is_valid().to_pylist(), strict=True)]


# ------------------------------------------------------------------ nulls and lists


def nulls_of(array: pa.Array) -> Mask | None:
    """Which rows are null; None if no row is."""
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None


def _nulls(array: pa.Array) -> Mask:
    return np.zeros(len(array), np.bool_) if (found := nulls_of(array)) is None else found


def without_nulls(array: pa.Array) -> pa.Array:
    """The rows that are not null. (Arrow's ``drop_null`` cannot make an empty list of an
    extension type; its ``take`` can.)"""
    nulls = nulls_of(array)
    return array if nulls is None else array.take(pa.array(np.flatnonzero(~nulls)))


def list_counts(array: pa.Array) -> npt.NDArray[np.int64]:
    """How many items each row of a LIST or MAP column holds; 0 where it is null."""
    if isinstance(array.type, pa.FixedSizeListType):
        counts = np.full(len(array), array.type.list_size, np.int64)
    else:
        counts = np.diff(_list_offsets(array)).astype(np.int64)
    nulls = nulls_of(array)
    if nulls is not None:
        counts[nulls] = 0
    return counts


def list_items(array: pa.Array) -> pa.Array:
    """The items of all rows of a LIST or MAP column one after another; a MAP's are its entries.
    (Arrow's ``flatten`` knows neither maps nor, in some cases, extension types.)"""
    if isinstance(array.type, pa.MapType):
        entry = pa.struct([array.type.key_field, array.type.item_field])
        array = array.view(pa.list_(pa.field("entries", entry, nullable=False)))
    array = without_nulls(array)
    if isinstance(array.type, pa.FixedSizeListType):
        size = array.type.list_size
        return array.values.slice(array.offset * size, len(array) * size)
    offsets = _list_offsets(array)
    return array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _list_offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    if len(array) == 0:
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]


def list_array(sql: Type, counts: npt.NDArray[np.int64], items: pa.Array, nulls: Mask | None) -> pa.Array:
    """A LIST, MAP or ARRAY column of the items in their order; a MAP's items are its entries. Where an ARRAY
    is not null, it has all of its items."""
    if sql.kind is Kind.ARRAY:
        return _fixed_size(sql, items, np.zeros(len(counts), np.bool_) if nulls is None else nulls)
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    mask = pa.array(nulls) if nulls is not None and nulls.any() else None
    if sql.kind is Kind.MAP:
        keys, values = items.flatten()
        return pa.MapArray.from_arrays(pa.array(offsets), keys, values, type=sql.arrow, mask=mask)
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=sql.arrow, mask=mask)


def _fixed_size(sql: Type, items: pa.Array, nulls: Mask) -> pa.Array:
    if nulls.any():  # a null has items too, which nothing reads
        there = np.repeat(~nulls, sql.length)
        items = items.take(pa.array(np.maximum(np.cumsum(there) - 1, 0), mask=~there))
    mask = pa.array(nulls) if nulls.any() else None
    return pa.FixedSizeListArray.from_arrays(items, type=sql.arrow, mask=mask)


# ------------------------------------------------------------------ raw values


def raw_values(array: pa.Array, sql: Type) -> Numbers:
    """The raw values of a fixed-width column. What stands at null rows is not defined."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    first, count = array.offset, len(array)
    buffer = array.buffers()[1]
    if count == 0 or buffer is None:
        return np.zeros(count, dtype_of(sql))
    if sql.kind is Kind.BOOLEAN:
        bits = np.frombuffer(buffer, np.uint8)[first >> 3 : (first + count + 7) >> 3]
        return np.unpackbits(bits, bitorder="little")[first & 7 : (first & 7) + count]
    if sql.kind is Kind.DECIMAL and sql.width == 8:
        low_halves: Numbers = np.frombuffer(buffer, "<i8")[2 * first : 2 * (first + count) : 2]
        return low_halves
    return np.frombuffer(buffer, dtype_of(sql))[first : first + count]


def from_raw(raw: Numbers, sql: Type, nulls: Mask | None) -> pa.Array:
    """The column of raw values. Raises ValueError where one is not a value of the type."""
    count = len(raw)
    validity = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls is not None else None
    if sql.kind is Kind.BOOLEAN:
        raw = np.packbits(raw != 0, bitorder="little")
    elif sql.kind is Kind.DECIMAL:
        if sql.width == 8:
            low = raw
            raw = np.empty((count, 2), "<i8")
            raw[:, 0] = low
            np.right_shift(low, 63, out=raw[:, 1])
    elif sql.kind is Kind.TIME:
        # DuckDB has the moment 24:00:00.
        wrong = (raw < 0) | (raw > _DAY_MICROS)
        if wrong.any() and (nulls is None or (wrong & ~nulls).any()):
            raise ValueError("a time is not within a day")
    elif sql.kind is Kind.TIMETZ:
        timetz.refuse_damaged(raw if nulls is None else raw[~nulls])
    elif sql.kind is Kind.ENUM and (raw if nulls is None else raw[~nulls]).max(initial=0) >= len(sql.members):
        raise ValueError("a value is not one of the ENUM's members")
    storage = sql.arrow.storage_type if isinstance(sql.arrow, pa.BaseExtensionType) else sql.arrow
    array = pa.Array.from_buffers(storage, count, [validity, pa.py_buffer(np.ascontiguousarray(raw))])
    if sql.kind is Kind.DECIMAL:
        array.validate(full=True)
    return array if storage is sql.arrow else pa.ExtensionArray.from_storage(sql.arrow, array)


# ------------------------------------------------------------------ choices


def merge_columns(old: Sequence[pa.Array], new: Sequence[pa.Array], given: Sequence[bool | Mask]) -> list[pa.Array]:
    """Column by column and row by row: the new value where it is given, else the old one."""
    return [_merge(was, now, chosen) for was, now, chosen in zip(old, new, given, strict=True)]


def _merge(was: pa.Array, now: pa.Array, chosen: bool | Mask) -> pa.Array:
    if isinstance(chosen, np.ndarray) and chosen.any() and not chosen.all():
        both = one_array([was, now])
        return both.take(pa.array(np.arange(len(was)) + np.where(chosen, len(was), 0)))
    return now if np.all(chosen) else was


def one_array(chunks: Sequence[pa.Array]) -> pa.Array:
    """The chunks as one array, or a clear refusal where that is too large for Arrow."""
    if len(chunks) == 1:
        return chunks[0]
    try:
        return pa.concat_arrays(chunks)
    except pa.ArrowInvalid as error:
        raise InputError(
            "a column is too large for one array", detail=str(error), hint="handle fewer rows at a time"
        ) from error
