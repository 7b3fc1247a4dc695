"""Columns into records, all rows at once.

The slots of all rows are one matrix of bytes that is filled column by
column, and Arrow joins its rows with the variable bytes of each column in one pass.

Lists are the same turned round: the blocks of all lists are one run of bytes into which
the items of all rows are scattered at positions computed from the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import RECORDS, Type
from everview.store.encoding.columns import (
    Numbers,
    dtype_of,
    list_counts,
    list_items,
    nulls_of,
    raw_values,
    without_nulls,
)
from everview.store.encoding.row_layout import END_WIDTH, VAR_LIMIT, Layout, slot_width, too_long

Integers = npt.NDArray[np.int64]
_NOTHING = pa.scalar(b"", pa.large_binary())


def write_records(layout: Layout, columns: Sequence[pa.Array], head: npt.NDArray[np.uint8]) -> pa.LargeBinaryArray:
    """The records of the columns' rows, each after its row of ``head`` (rows × bytes)."""
    count, shift = head.shape
    matrix = np.zeros((count, shift + layout.size), np.uint8)
    matrix[:, :shift] = head
    payloads: list[pa.LargeBinaryArray] = []
    ends = np.zeros(count, np.int64)
    for i, (sql, slot, column) in enumerate(zip(layout.types, layout.slots, columns, strict=True)):
        nulls = nulls_of(column)
        if sql.width is None:
            payload = _payloads(column, sql)
            payloads.append(payload)
            ends += np.diff(offsets_of(payload))
            _check_ends(ends)
            _slot(matrix, shift + slot, np.dtype("<u4"))[:] = ends
        else:
            values = _slot(matrix, shift + slot, dtype_of(sql))
            values[:] = raw_values(column, sql)
            if nulls is not None:
                values[nulls] = np.zeros((), values.dtype)
        if nulls is not None:
            matrix[:, shift + (i >> 3)] |= nulls.view(np.uint8) << (i & 7)
    slots = binary(matrix.reshape(-1), np.arange(count + 1, dtype=np.int64) * matrix.shape[1])
    return _joined(slots, *payloads) if payloads else slots


def _slot(matrix: npt.NDArray[np.uint8], offset: int, dtype: np.dtype[Any]) -> Numbers:
    """The slot of one column in all rows, as numbers to write to."""
    if not len(matrix):
        return np.zeros(0, dtype)
    return np.ndarray((len(matrix),), dtype, matrix, offset, (matrix.shape[1],))


def _joined(*parts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    return pc.binary_join_element_wise(*parts, _NOTHING)


def _check_ends(ends: Numbers) -> None:
    if len(ends) and ends.max() > VAR_LIMIT:
        raise too_long()


def _payloads(column: pa.Array, sql: Type) -> pa.LargeBinaryArray:
    """The variable bytes of each row: never null, empty where the value is null."""
    if sql.is_scalar:
        stored = column.storage if isinstance(column, pa.ExtensionArray) else column
        stored = stored.cast(pa.large_binary())
        return pc.fill_null(stored, _NOTHING) if stored.null_count else stored
    nulls = nulls_of(column)
    there = without_nulls(column)
    if sql.kind in RECORDS:
        layout = Layout([child for _, child in sql.children])
        payload = write_records(layout, there.flatten(), np.zeros((len(there), 0), np.uint8))
    else:
        payload = _lists(there, sql.item)
    if nulls is None:
        return payload
    lengths = np.zeros(len(column), np.int64)
    lengths[~nulls] = np.diff(offsets_of(payload))
    return binary(payload.buffers()[2], starts_of(lengths))


def _lists(column: pa.Array, item: Type) -> pa.LargeBinaryArray:
    """Of each list: the count, the bitmap of its null items, their slots, their bytes."""
    counts = list_counts(column)
    items = list_items(column)
    width = slot_width(item)
    bitmaps = (counts + 7) >> 3
    starts = starts_of(END_WIDTH + bitmaps + counts * width)
    out = np.zeros(starts[-1], np.uint8)
    _scatter(out, starts[:-1], counts, np.dtype("<u4"))
    firsts = starts_of(counts)
    numbers = np.arange(len(items))
    slots = np.repeat(starts[:-1] + END_WIDTH + bitmaps - firsts[:-1] * width, counts) + numbers * width
    nulls = nulls_of(items)
    if nulls is not None:
        which = np.flatnonzero(nulls)
        inside = (numbers - np.repeat(firsts[:-1], counts))[which]
        at = np.repeat(starts[:-1] + END_WIDTH, counts)[which] + (inside >> 3)
        np.bitwise_or.at(out, at, (1 << (inside & 7)).astype(np.uint8))
    if item.width is not None:
        values = raw_values(items, item)
        if nulls is not None:
            values = values.copy()
            values[nulls] = np.zeros((), values.dtype)
        _scatter(out, slots, values, dtype_of(item))
        return binary(out, starts)
    payload = _payloads(items, item)
    edges = offsets_of(payload)
    ends = edges[1:] - np.repeat(edges[firsts[:-1]], counts)
    _check_ends(ends)
    _scatter(out, slots, ends, np.dtype("<u4"))
    return _joined(binary(out, starts), binary(payload.buffers()[2], edges[firsts]))


def _scatter(out: npt.NDArray[np.uint8], at: Integers, values: Numbers, dtype: np.dtype[Any]) -> None:
    """Write each value at its position, aligned or not."""
    if len(at):
        np.ndarray((len(out) - dtype.itemsize + 1,), dtype, out, strides=(1,))[at] = values


# ------------------------------------------------------------------ byte columns


def starts_of(lengths: Integers) -> Integers:
    """Where each of the consecutive pieces starts, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def offsets_of(array: pa.LargeBinaryArray) -> Integers:
    """The offsets of a byte column into its data buffer: one more than it has rows."""
    if len(array) == 0:
        return np.zeros(1, np.int64)
    return np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]


def binary(data: Any, offsets: Integers) -> pa.LargeBinaryArray:
    """A byte column without nulls over a buffer."""
    if data is None:
        data = b""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
