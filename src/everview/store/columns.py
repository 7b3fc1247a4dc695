"""Columns and what they are made of: Python values, raw bytes, choices between two columns.

One sentence: Arrow arrays of our types are made from Python values or fixed-width bytes,
and taken apart again, in this file only, because Arrow's own conversions stop at
extension types (HUGEINT, UUID, JSON) and at whatever is nested around them.

Python values are the canonical ones of :mod:`everview.store.values`, None for null::

    >>> to_python(to_arrow([1 << 100, None], parse_type("HUGEINT")), parse_type("HUGEINT"))
    [1267650600228229401496703205376, None]

The raw values of a column are a numpy array with one element of ``type.width`` bytes per
row: what :mod:`everview.store.rows` stores, little-endian, with 16-byte values (HUGEINT,
UUID, INTERVAL, wide DECIMAL) as opaque elements.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.change.types import NESTED, UNSIGNED, Kind, Type
from everview.errors import InputError, ValueTypeError

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
    Kind.INTERVAL: "V16",
    Kind.UUID: "V16",
    Kind.HUGEINT: "V16",
    Kind.UHUGEINT: "V16",
}
_DAY_MICROS = 86_400_000_000


def dtype_of(sql: Type) -> np.dtype[Any]:
    """The numpy type of the raw values of a fixed-width type."""
    if sql.kind is Kind.DECIMAL:
        return np.dtype("<i8" if sql.width == 8 else "V16")
    known = _DTYPE.get(sql.kind)
    return np.dtype(known or f"<{'u' if sql.kind in UNSIGNED else 'i'}{sql.width}")


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
    if kind is Kind.STRUCT:
        children = [to_arrow([None if v is None else v[name] for v in values], child) for name, child in sql.children]
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
    if kind is Kind.STRUCT:
        names = [name for name, _ in sql.children]
        parts = [to_python(part, child) for part, (_, child) in zip(array.flatten(), sql.children, strict=True)]
        return _unless_null(array, [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)])
    if kind in NESTED:
        items = to_python(list_items(array), sql.item)
        if kind is Kind.MAP:
            items = [(entry["key"], entry["value"]) for entry in items]
        build = dict if kind is Kind.MAP and sql.children[0][1].is_scalar else list
        ends = [0, *np.cumsum(list_counts(array)).tolist()]
        return _unless_null(array, [build(items[start:end]) for start, end in pairwise(ends)])
    return _listed(array)


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
    offsets = _list_offsets(array)
    return array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _list_offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    if len(array) == 0:
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]


def list_array(sql: Type, counts: npt.NDArray[np.int64], items: pa.Array, nulls: Mask | None) -> pa.Array:
    """A LIST or MAP column of the items in their order; a MAP's items are its entries."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    mask = pa.array(nulls) if nulls is not None and nulls.any() else None
    if sql.kind is Kind.MAP:
        keys, values = items.flatten()
        return pa.MapArray.from_arrays(pa.array(offsets), keys, values, type=sql.arrow, mask=mask)
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=sql.arrow, mask=mask)


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
