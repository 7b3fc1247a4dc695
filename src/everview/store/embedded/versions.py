"""The versioned record: (epoch, current, previous).

A record holds the value its epoch wrote and the value before it, so that it
can be read as of its epoch or as of any time before it back to the last epoch but one.

::

    u64 epoch | u32 length of current + 1, 0: none | u32 length of previous + 1, 0: none
    current | previous

Little-endian. A tombstone has no current. What is not there reads like a record of epoch 0
with neither::

    written           as of 5     as of 6     as of 7
    nothing           none        none        none
    (6, "b", "a")     "a"         "b"         "b"
    (7, none, "b")    -           "b"         none      (epoch 6 is committed: no process reads as of 5)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.errors import DamagedEntryError
from everview.store.encoding.ragged import (
    BINARY,
    Bytes,
    Ints,
    Mask,
    Words,
    column_of,
    content,
    gather,
    glue,
    lengths,
    nulls,
    places,
)

HEADER = np.dtype([("epoch", "<u8"), ("current", "<u4"), ("previous", "<u4")])
_ONE = struct.Struct("<QII")
ABSENT = bytes(HEADER.itemsize)
"""Stands for a record that is not there."""


def encode(epoch: int, current: Bytes, previous: Bytes) -> Bytes:
    """Records of one epoch; nulls where there is no current or no previous value."""
    header = np.empty(len(current), HEADER)
    header["epoch"] = epoch
    header["current"] = _length_field(current)
    header["previous"] = _length_field(previous)
    headers = column_of(header, np.arange(len(current) + 1) * HEADER.itemsize)
    return glue(headers, current, previous)


def encode_one(epoch: int, current: bytes | None, previous: bytes | None) -> bytes:
    """One record."""
    sizes = [0 if value is None else len(value) + 1 for value in (current, previous)]
    return _ONE.pack(epoch, *sizes) + (current or b"") + (previous or b"")


def _length_field(values: Bytes) -> Ints:
    field = lengths(values) + 1
    if values.null_count:
        field[nulls(values)] = 0
    return field


class Versions:
    """Records as they came from the store, decoded together."""

    def __init__(self, records: Sequence[bytes], table: str) -> None:
        self._column = pa.array(records, BINARY)
        edges = places(self._column)
        buffer = content(self._column)
        sizes = np.diff(edges)
        if len(sizes) and sizes.min() < HEADER.itemsize:
            raise _damaged(table)
        self.data = buffer
        self.starts: Ints = edges[:-1] + HEADER.itemsize
        """Where the bytes after each header begin."""
        window = max(buffer.size - HEADER.itemsize + 1, 0)
        epochs: Words = np.ndarray((window,), "<u8", buffer, 0, (1,))
        fields: Words = np.ndarray((window,), "<u8", buffer, 8, (1,))
        self.epoch: Words = epochs[edges[:-1]]
        both = fields[edges[:-1]].astype(np.int64)
        self._current: Ints = both & 0xFFFFFFFF
        self._previous: Ints = (both >> 32) & 0xFFFFFFFF
        needed = np.maximum(self._current - 1, 0) + np.maximum(self._previous - 1, 0) + HEADER.itemsize
        if not np.array_equal(needed, sizes):
            raise _damaged(table)

    def __len__(self) -> int:
        return len(self._column)

    @property
    def tombstone(self) -> Mask:
        found: Mask = (self._current == 0) & (self.epoch > 0)
        return found

    def as_of(self, epoch: int) -> tuple[Ints, Ints, Mask]:
        """Where each record's value as of the epoch begins and ends in ``data``, and where
        there is none."""
        newer = self.epoch > epoch
        starts = self.starts + np.where(newer, np.maximum(self._current - 1, 0), 0)
        field = np.where(newer, self._previous, self._current)
        return starts, starts + np.maximum(field - 1, 0), field == 0

    def values(self, epoch: int, chosen: npt.NDArray[np.int64] | None = None) -> Bytes:
        """The values as of the epoch, of the chosen records in that order."""
        starts, ends, absent = self.as_of(epoch)
        if chosen is None:
            return gather(self.data, starts, ends, np.arange(len(self)), absent)
        return gather(self.data, starts, ends, chosen, absent[chosen])


def value_as_of(record: bytes, epoch: int, table: str) -> bytes | None:
    """One record's value as of the epoch."""
    size = len(record)
    written, current, previous = _ONE.unpack_from(record) if size >= _ONE.size else (0, size, 0)
    middle = _ONE.size + (current - 1 if current else 0)
    end = middle + (previous - 1 if previous else 0)
    if end != size:
        raise _damaged(table)
    if written > epoch:
        return record[middle:end] if previous else None
    return record[_ONE.size : middle] if current else None


def is_there(record: bytes, epoch: int, table: str) -> bool:
    """Whether one record has a value as of the epoch."""
    if len(record) < _ONE.size:
        raise _damaged(table)
    written, current, previous = _ONE.unpack_from(record)
    return bool(previous if written > epoch else current)


def _damaged(table: str) -> DamagedEntryError:
    return DamagedEntryError(
        f"a record of state table {table} cannot be decoded",
        detail="its length does not fit its header",
        hint="rebuild the view the table belongs to",
    )
