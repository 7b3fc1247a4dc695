"""Blocks: how log entries lie in the file, and how they become columns.

A block is a run of entries of one table in one node's log, with a directory
of fixed-size descriptors in front, so that any number of blocks decode together by array
arithmetic, whether they hold one entry each or thousands.

A block (little-endian)::

    u8 form | u8 flags | u16 0 | u32 table | u64 batch | u64 first sequence | u32 entries | u64 end
    directory: per entry  u16 key length | u8 kind | u8 parts | u32 incarnation | u32 old | u32 new
    payload:   per entry  key | old row | new row
    u32 checksum

``end`` is how many bytes the node's log has up to the end of this block, so that the bytes of a
run of blocks are a difference. ``flags`` bit 0: entries carry before-images, and ``new`` is the
whole row after the write. Otherwise there is no ``old``, and ``new`` is a patch: the columns that
were named.
``parts`` bit 0: a row was there before; bit 1: there is one after.

A block's key is (node, sequence of its last entry), so a seek finds the block that holds
a position. All blocks of one batch carry the batch's number, the id of the transaction
that wrote them, which rises along every log: a frontier is a cut between batches if all
nodes are cut at the same batch number.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.store.contract import EntryKind
from everview.store.encoding.ragged import Bytes, Ints, Mask, content, gather, glue, lengths, nulls, places

FORM = 1
IMAGES = 1
HAD_OLD = 1
HAS_NEW = 2
BLOCK_ENTRIES = 4096
BLOCK_BYTES = 1 << 20

HEADER = struct.Struct("<BBHIQQIQ")
ENTRY = struct.Struct("<HBBIII")
_END = struct.Struct("<Q")
CHECKSUM = struct.Struct("<I")
_DIRECTORY = np.dtype(
    [("key", "<u2"), ("kind", "u1"), ("parts", "u1"), ("incarnation", "<u4"), ("old", "<u4"), ("new", "<u4")]
)
_RESIDUE = zlib.crc32(CHECKSUM.pack(zlib.crc32(b"")))
"""The checksum of anything that is followed by its own checksum."""

_SINGLE = struct.Struct(HEADER.format + ENTRY.format.lstrip("<"))


class LogEnd(NamedTuple):
    """Where a node's log ends: the last entry, and the bytes of all blocks so far."""

    sequence: int
    bytes: int


def encode_one(
    table: int,
    batch: int,
    end: LogEnd,
    incarnation: int,
    kind: int,
    images: bool,
    key: bytes,
    old: bytes | None,
    new: bytes | None,
) -> bytes:
    """A block of one entry after the given end of a log: the form a single put takes."""
    parts = (HAD_OLD if old is not None else 0) | (HAS_NEW if new is not None else 0)
    old_bytes = old if images and old is not None else b""
    new_bytes = new or b""
    size = _SINGLE.size + len(key) + len(old_bytes) + len(new_bytes) + CHECKSUM.size
    body = (
        _SINGLE.pack(
            FORM,
            images,
            0,
            table,
            batch,
            end.sequence + 1,
            1,
            end.bytes + size,
            len(key),
            kind,
            parts,
            incarnation,
            len(old_bytes),
            len(new_bytes),
        )
        + key
        + old_bytes
        + new_bytes
    )
    return body + CHECKSUM.pack(zlib.crc32(body))


@dataclass(frozen=True)
class LogEntries:
    """Entries of one table to be written, as columns. ``old`` is null where no row was there,
    ``new`` where none is after."""

    kind: EntryKind
    keys: Bytes
    old: Bytes
    new: Bytes
    incarnations: npt.NDArray[np.uint32]

    def take(self, chosen: Ints) -> LogEntries:
        indices = pa.array(chosen)
        keys, old, new = (column.take(indices) for column in (self.keys, self.old, self.new))
        return LogEntries(self.kind, keys, old, new, self.incarnations[chosen])


class Packed:
    """Entries laid out as blocks hold them, to be cut into runs."""

    def __init__(self, table: int, batch: int, images: bool, entries: LogEntries) -> None:
        self._head = (FORM, images, 0, table, batch)
        directory = np.zeros(len(entries.keys), _DIRECTORY)
        directory["key"] = lengths(entries.keys)
        directory["kind"] = entries.kind
        directory["incarnation"] = entries.incarnations
        directory["parts"] = ~nulls(entries.old) * np.uint8(HAD_OLD) | ~nulls(entries.new) * np.uint8(HAS_NEW)
        directory["old"] = lengths(entries.old) if images else 0
        directory["new"] = lengths(entries.new)
        columns = (entries.keys, entries.old, entries.new) if images else (entries.keys, entries.new)
        payload = glue(*(column for column in columns if column.null_count < len(column)))
        self._directory = directory
        self._edges = places(payload)
        self._data = memoryview(content(payload))

    def blocks(self, start: int, end: int, log: LogEnd) -> Iterator[tuple[int, bytes]]:
        """The entries from ``start`` to before ``end``, to be appended to a log, in blocks of at most
        BLOCK_ENTRIES entries and about BLOCK_BYTES bytes; each with the sequence number of its
        last entry."""
        edges = self._edges
        first, size = log.sequence + 1, log.bytes
        while start < end:
            full = int(np.searchsorted(edges, edges[start] + BLOCK_BYTES, "right")) - 1
            stop = min(start + BLOCK_ENTRIES, max(start + 1, full), end)
            directory, payload = self._directory[start:stop].tobytes(), self._data[edges[start] : edges[stop]]
            size += HEADER.size + len(directory) + len(payload) + CHECKSUM.size
            parts = (HEADER.pack(*self._head, first, stop - start, size), directory, payload)
            checksum = 0
            for part in parts:
                checksum = zlib.crc32(part, checksum)
            first += stop - start
            yield first - 1, b"".join((*parts, CHECKSUM.pack(checksum)))
            start = stop


@dataclass(frozen=True)
class Decoded:
    """The entries of many blocks as columns, in log order."""

    table: npt.NDArray[np.uint32]
    images: Mask
    sequence: npt.NDArray[np.uint64]
    incarnation: npt.NDArray[np.uint32]
    kind: npt.NDArray[np.uint8]
    parts: npt.NDArray[np.uint8]
    payload: bytes
    starts: Ints
    key_length: Ints
    old_length: Ints
    new_length: Ints

    def keys(self, chosen: Ints) -> Bytes:
        return self._pieces(self.starts[chosen], self.key_length[chosen])

    def old(self, chosen: Ints) -> Bytes:
        start = self.starts[chosen] + self.key_length[chosen]
        return self._pieces(start, self.old_length[chosen], (self.parts[chosen] & HAD_OLD) == 0)

    def new(self, chosen: Ints) -> Bytes:
        start = self.starts[chosen] + self.key_length[chosen] + self.old_length[chosen]
        return self._pieces(start, self.new_length[chosen], (self.parts[chosen] & HAS_NEW) == 0)

    def _pieces(self, starts: Ints, sizes: Ints, absent: Mask | None = None) -> Bytes:
        return gather(pa.py_buffer(self.payload), starts, starts + sizes, np.arange(len(starts)), absent)


def decode(blocks: Sequence[bytes]) -> Decoded:
    """Columns of all entries of the blocks. The blocks are :func:`sound`."""
    payload = b"".join(blocks)
    lengths = np.fromiter(map(len, blocks), np.int64, len(blocks))
    at = np.cumsum(lengths) - lengths
    entries = numbers(payload, at + 24, "<u4").astype(np.int64)
    owner = np.repeat(np.arange(len(blocks)), entries)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(entries) - entries, entries)
    descriptor = at[owner] + HEADER.size + within * ENTRY.size
    key_length = numbers(payload, descriptor, "<u2").astype(np.int64)
    old_length = numbers(payload, descriptor + 8, "<u4").astype(np.int64)
    new_length = numbers(payload, descriptor + 12, "<u4").astype(np.int64)
    size = key_length + old_length + new_length
    running = np.cumsum(size) - size
    first_entry = np.cumsum(entries) - entries
    base = at + HEADER.size + entries * ENTRY.size
    starts = base[owner] + running - running[first_entry[owner]] if len(owner) else running
    return Decoded(
        table=numbers(payload, at + 4, "<u4")[owner],
        images=(numbers(payload, at + 1, "u1")[owner] & IMAGES).astype(np.bool_),
        sequence=numbers(payload, at + 16, "<u8")[owner] + within.astype(np.uint64),
        incarnation=numbers(payload, descriptor + 4, "<u4"),
        kind=numbers(payload, descriptor + 2, "u1"),
        parts=numbers(payload, descriptor + 3, "u1"),
        payload=payload,
        starts=starts,
        key_length=key_length,
        old_length=old_length,
        new_length=new_length,
    )


def sound(blocks: Sequence[bytes]) -> Mask:
    """Which blocks are as they were written."""
    whole: Mask = np.fromiter(map(zlib.crc32, blocks), np.uint32, len(blocks)) == _RESIDUE
    return whole


def batch_of(block: bytes) -> int:
    """The batch number of a block."""
    return int(HEADER.unpack_from(block)[4])


def end_of(block: bytes) -> int:
    """How many bytes the log has up to the end of a block."""
    found: int = _END.unpack_from(block, HEADER.size - _END.size)[0]
    return found


def numbers(buffer: bytes, positions: Ints, kind: str) -> npt.NDArray[np.unsignedinteger]:
    """The numbers that begin at the given bytes of a buffer, wherever they lie."""
    dtype = np.dtype(kind)
    if not len(positions):
        return np.empty(0, dtype)
    window = np.ndarray((len(buffer) - dtype.itemsize + 1,), dtype, buffer, strides=(1,))
    return window[positions]
