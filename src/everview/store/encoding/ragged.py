"""Columns of byte strings, handled as one buffer and its offsets.

A byte column is a buffer with the places where its values begin and end, so
cutting, joining and choosing values is arithmetic on places.

Values come from LMDB one by one as Python bytes and go back so; in between nothing here
looks at a single value.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes: TypeAlias = pa.LargeBinaryArray
Ints: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Mask: TypeAlias = npt.NDArray[np.bool_]

BINARY = pa.large_binary()
EMPTY = pa.array([], BINARY)
_NOTHING = pa.scalar(b"", BINARY)


def places(column: Bytes) -> Ints:
    """Where the values of a column begin in its buffer, and where the last one ends. A null
    has no bytes: columns that reach this module come from Arrow's own builders."""
    if not len(column):
        return np.zeros(1, np.int64)
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]


def content(column: Bytes) -> pa.Buffer:
    """The buffer that :func:`places` counts in."""
    buffer = column.buffers()[2]
    return pa.py_buffer(b"") if buffer is None else buffer


def lengths(column: Bytes) -> Ints:
    return np.diff(places(column))


def nulls(column: Bytes) -> Mask:
    if column.null_count in (0, len(column)):
        return np.full(len(column), column.null_count > 0)
    found: Mask = column.is_null().to_numpy(zero_copy_only=False)
    return found


def column_of(buffer: Any, offsets: Ints) -> Bytes:
    """The column whose values stand in the buffer one behind the other."""
    places_buffer = pa.py_buffer(np.ascontiguousarray(offsets))
    return pa.LargeBinaryArray.from_buffers(BINARY, len(offsets) - 1, [None, places_buffer, pa.py_buffer(buffer)])


def offsets_of(sizes: npt.NDArray[Any]) -> Ints:
    """The places of values of these lengths, one behind the other."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def gather(buffer: pa.Buffer, starts: Ints, ends: Ints, chosen: npt.NDArray[Any], absent: Mask | None = None) -> Bytes:
    """The pieces of a buffer numbered by ``chosen``, null where ``absent`` says so. The
    pieces must come one after the other in the buffer: then pieces and the gaps between
    them are the values of one column, of which Arrow takes the even ones."""
    if not len(chosen):
        return EMPTY
    edges = np.empty(2 * len(starts), np.int64)
    edges[0::2] = starts
    edges[1::2] = ends
    pieces = pa.LargeBinaryArray.from_buffers(BINARY, len(edges) - 1, [None, pa.py_buffer(edges), buffer])
    return pieces.take(pa.array(2 * chosen, mask=absent))


def glue(*columns: Bytes | bytes) -> Bytes:
    """The columns value by value one behind the other; a null counts as no bytes."""
    parts = [pa.scalar(part, BINARY) if isinstance(part, bytes) else part for part in columns]
    return pc.binary_join_element_wise(*parts, _NOTHING, null_handling="replace", null_replacement="")


def prefixed(prefix: bytes, column: Bytes) -> Bytes:
    """The prefix before every value of a column without nulls."""
    sizes = lengths(column)
    width = int(sizes[0]) if len(sizes) else 0
    if not width or (sizes != width).any():
        return glue(prefix, column)
    rows = np.empty((len(column), len(prefix) + width), np.uint8)
    rows[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    start = int(places(column)[0])
    rows[:, len(prefix) :] = np.frombuffer(content(column), np.uint8, rows.shape[0] * width, start).reshape(-1, width)
    return column_of(rows, np.arange(len(column) + 1) * rows.shape[1])


def concat(*columns: Bytes) -> Bytes:
    filled = [column for column in columns if len(column)]
    if len(filled) == 1:
        return filled[0]
    return pa.concat_arrays(filled) if filled else EMPTY


def null_column(count: int) -> Bytes:
    return pa.nulls(count, BINARY)
