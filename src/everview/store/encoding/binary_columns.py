"""Columns of bytes as numpy arrays, and back.

A column of bytes is where the bytes of each row start, all bytes behind each other, and which rows are
not null.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def content(column: pa.Array) -> tuple[Places, Bytes, Mask]:
    """Where the bytes of each row start, and the last ones end; all bytes; which rows are not null. Nulls have none."""
    there = column.is_valid().to_numpy(zero_copy_only=False)
    if not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8), there
    large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    offsets = np.frombuffer(column.buffers()[1], np.int64 if large else np.int32)
    starts = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    held = column.buffers()[2]
    data = np.zeros(0, np.uint8) if held is None else np.frombuffer(held, np.uint8)[starts[0] : starts[-1]]
    starts = starts - starts[0]
    if (np.diff(starts)[~there] > 0).any():  # bytes under nulls
        return content(pa.array(column.to_pylist(), column.type))
    return starts, data, there


def column_of(starts: Places, data: Bytes, there: Mask) -> pa.Array:
    """The column of bytes again."""
    validity = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    buffers = [validity, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(there), buffers)
