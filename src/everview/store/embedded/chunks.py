"""Chunks of bags: about a hundred entries with their counts, as one value of a record.

A chunk is a run of 64-bit words, so that the words of thousands of chunks are
found and placed by arithmetic.

::

    header      bits 0-7 flags, 8-15 width, 32-63 number of entries n
    width 1-8   n words: the entries' codes (see bag_entries.py)
    width 0     ⌈n/2⌉ words: where each entry ends, as u32, counted from the first one's start
    COUNTED     n words: how often each entry stands there (without the flag: once)
    width 0     the entries' bytes, filled up to whole words

Little-endian. A chunk's bytes follow from its entries and counts alone, whatever else is
written with it: a retry that cuts the work differently writes the same bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.errors import DamagedEntryError
from everview.store.embedded.bag_entries import VARIABLE, WIDEST, Alphabet, Entries, from_codes, to_codes
from everview.store.encoding.ragged import (
    EMPTY,
    Bytes,
    Ints,
    Mask,
    Words,
    column_of,
    concat,
    content,
    gather,
    glue,
    lengths,
    null_column,
    offsets_of,
    places,
)

MORE = 1
"""In a bag's first chunk: other chunks may follow. Where it is not set, none does."""
COUNTED = 2

_HEADER = struct.Struct("<BBxxI")


@dataclass(frozen=True)
class ChunkHeads:
    """The headers of chunks that stand in one buffer; no entries where there is no chunk."""

    size: Ints
    flags: Ints
    width: Ints


@dataclass(frozen=True)
class ChunkRows:
    """Entries of chunks, in the order of the chunks and within."""

    chunk: Ints
    entries: Entries
    counts: Ints


def read_heads(words: Words, starts: Ints, absent: Mask) -> ChunkHeads:
    """Headers at byte places ``starts`` of the buffer that the words are."""
    if absent.all():
        nothing = np.zeros(len(starts), np.int64)
        return ChunkHeads(nothing, nothing, nothing)
    at = np.where(absent, 0, starts >> 3)
    header = np.where(absent, 0, words[at]).astype(np.int64)
    return ChunkHeads(header >> 32, header & 0xFF, (header >> 8) & 0xFF)


def words_of(buffer: pa.Buffer, table: str) -> Words:
    """A buffer of chunk records, all of them whole words."""
    if buffer.size & 7:
        raise damaged_chunk(table)
    return np.frombuffer(buffer, "<u8")


def decode(buffer: pa.Buffer, starts: Ints, ends: Ints, absent: Mask, table: str) -> tuple[ChunkHeads, ChunkRows]:
    """The entries of the chunks between these byte places."""
    words = words_of(buffer, table)
    heads, counted = _checked_heads(words, starts, ends, absent, table)
    first = starts >> 3
    widths = np.unique(heads.width[heads.size > 0]).tolist()
    if len(widths) <= 1:
        every = np.arange(len(starts))
        return heads, _rows(buffer, words, first, heads, counted, every, widths[0] if widths else WIDEST, table)
    parts = [
        _rows(buffer, words, first, heads, counted, np.flatnonzero(heads.width == width), width, table)
        for width in widths
    ]
    chunk = np.concatenate([part.chunk for part in parts])
    order = np.argsort(chunk, kind="stable")
    column = concat(*(part.entries.as_column() for part in parts)).take(pa.array(order))
    counts = np.concatenate([part.counts for part in parts])[order]
    return heads, ChunkRows(chunk[order], Entries(VARIABLE, np.zeros(0, np.uint64), column), counts)


def _checked_heads(words: Words, starts: Ints, ends: Ints, absent: Mask, table: str) -> tuple[ChunkHeads, Mask]:
    """Headers that fit the lengths of their chunks, and which of the chunks have counts."""
    heads = read_heads(words, starts, absent)
    counted = (heads.flags & COUNTED) != 0
    narrow = heads.width > 0
    block = np.where(narrow, heads.size, (heads.size + 1) >> 1)
    least = np.where(absent, 0, 8 * (1 + block + heads.size * counted))
    if np.any(np.where(narrow, least != ends - starts, least > ends - starts)) or np.any(heads.width > WIDEST):
        raise damaged_chunk(table)
    return heads, counted


def _rows(
    buffer: pa.Buffer, words: Words, first: Ints, heads: ChunkHeads, counted: Mask, chosen: Ints, width: int, table: str
) -> ChunkRows:
    """The entries of the chosen chunks, which have one width (or no entries)."""
    size = heads.size[chosen]
    chunk = np.repeat(chosen, size)
    number = np.arange(len(chunk)) - np.repeat(offsets_of(size)[:-1], size)
    after_header = np.repeat(first[chosen] + 1, size)
    block = size if width else (size + 1) >> 1
    counts = np.ones(len(chunk), np.int64)
    if counted[chosen].any():
        has = np.repeat(counted[chosen], size)
        at = (after_header + np.repeat(block, size) + number)[has]
        counts[has] = words[at].astype(np.int64)
    if width:
        return ChunkRows(chunk, Entries(width, words[after_header + number]), counts)
    ends = words.view("<u4")[2 * after_header + number].astype(np.int64)
    data = 8 * np.repeat(first[chosen] + 1 + block + size * counted[chosen], size)
    starts = np.where(number == 0, 0, np.concatenate([[0], ends[:-1]])) if len(ends) else ends
    if np.any(ends < starts) or np.any(data + ends > buffer.size):
        raise damaged_chunk(table)
    column = gather(buffer, data + starts, data + ends, np.arange(len(chunk)))
    return ChunkRows(chunk, Entries(VARIABLE, np.zeros(0, np.uint64), column), counts)


def encode(alphabet: Alphabet, codes: Words, counts: Ints, size: Ints, more: Mask) -> Bytes:
    """Chunks of the given sizes, taking the rows one after the other."""
    edges = offsets_of(size)
    if alphabet.width:
        return _encode_narrow(alphabet.width, codes, counts, size, more, edges)
    column = alphabet.entries(codes)
    return _encode_by_width(column, counts, size, more, edges)


def _encode_by_width(column: Bytes, counts: Ints, size: Ints, more: Mask, edges: Ints) -> Bytes:
    """Each chunk as narrow as its own entries allow."""
    widths = _chunk_widths(column, size, edges)
    of_row = np.repeat(widths, size)
    parts, owners = [EMPTY], []
    for width in np.unique(widths).tolist():
        chosen = np.flatnonzero(widths == width)
        rows = np.flatnonzero(of_row == width)
        own_edges = offsets_of(size[chosen])
        part = column.take(pa.array(rows))
        if width:
            made = _encode_narrow(width, to_codes(part, width), counts[rows], size[chosen], more[chosen], own_edges)
        else:
            made = _encode_variable(part, counts[rows], size[chosen], more[chosen], own_edges)
        parts.append(made)
        owners.append(chosen)
    order = np.concatenate(owners) if owners else np.zeros(0, np.int64)
    return concat(*parts).take(pa.array(np.argsort(order, kind="stable")))


def _chunk_widths(column: Bytes, size: Ints, edges: Ints) -> Ints:
    """The width each chunk is written with; an empty chunk counts as narrow."""
    widths = np.full(len(size), WIDEST, np.int64)
    filled = np.flatnonzero(size)
    if len(filled):
        sizes = lengths(column)
        least = np.minimum.reduceat(sizes, edges[:-1][filled])
        most = np.maximum.reduceat(sizes, edges[:-1][filled])
        widths[filled] = np.where((least == most) & (most <= WIDEST), most, VARIABLE)
    return widths


def _headers(width: int, size: Ints, more: Mask, counted: Mask) -> npt.NDArray[np.int64]:
    return (size << 32) | (width << 8) | np.where(more, MORE, 0) | np.where(counted, COUNTED, 0)


def _is_counted(counts: Ints, edges: Ints) -> Mask:
    many = offsets_of(counts != 1)
    counted: Mask = many[edges[1:]] > many[edges[:-1]]
    return counted


def _encode_narrow(width: int, codes: Words, counts: Ints, size: Ints, more: Mask, edges: Ints) -> Bytes:
    counted = _is_counted(counts, edges)
    start = offsets_of(1 + size * (1 + counted))
    words = np.empty(int(start[-1]), np.uint64)
    words[start[:-1]] = _headers(width, size, more, counted).astype(np.uint64)
    at = np.arange(len(codes)) + np.repeat(start[:-1] + 1 - edges[:-1], size)
    words[at] = codes
    if counted.any():
        has = np.repeat(counted, size)
        words[(at + np.repeat(size, size))[has]] = counts[has].astype(np.uint64)
    return column_of(words, 8 * start)


def _encode_variable(column: Bytes, counts: Ints, size: Ints, more: Mask, edges: Ints) -> Bytes:
    counted = _is_counted(counts, edges)
    block = (size + 1) >> 1
    start = offsets_of(1 + block + size * counted)
    words = np.zeros(int(start[-1]), np.uint64)
    words[start[:-1]] = _headers(VARIABLE, size, more, counted).astype(np.uint64)
    number = np.arange(len(column)) - np.repeat(edges[:-1], size)
    places_of = places(column)
    data = places_of[edges]
    words.view("<u4")[2 * np.repeat(start[:-1] + 1, size) + number] = places_of[1:] - np.repeat(data[:-1], size)
    if counted.any():
        has = np.repeat(counted, size)
        words[(np.repeat(start[:-1] + 1 + block, size) + number)[has]] = counts[has].astype(np.uint64)
    filling = offsets_of(-np.diff(data) & 7)
    return glue(
        column_of(words, 8 * start),
        column_of(content(column), data),
        column_of(bytes(int(filling[-1])), filling),
    )


# ------------------------------------------------------------------ first and last


def first_and_last(buffer: pa.Buffer, starts: Ints, ends: Ints, absent: Mask, table: str) -> tuple[Bytes, Bytes]:
    """First and last entry of the chunks between these byte places, null where there is
    none; what lies between is not looked at."""
    words = words_of(buffer, table)
    heads, counted = _checked_heads(words, starts, ends, absent, table)
    empty = heads.size == 0
    widths = np.unique(heads.width[~empty]).tolist()
    parts = [(null_column(len(empty)),) * 2]
    at = np.arange(len(empty))
    for width in widths:
        chosen = np.flatnonzero(~empty & (heads.width == width))
        at[chosen] = sum(len(first) for first, _ in parts) + np.arange(len(chosen))
        word, size = starts[chosen] // 8 + 1, heads.size[chosen]
        if width:
            parts.append((from_codes(words[word], width), from_codes(words[word + size - 1], width)))
        else:
            data = 8 * (word + ((size + 1) >> 1) + size * counted[chosen])
            parts.append(_variable_ends(buffer, words.view("<u4"), 2 * word, data, size, ends[chosen], table))
    order = pa.array(at)
    return concat(*(first for first, _ in parts)).take(order), concat(*(last for _, last in parts)).take(order)


def _variable_ends(
    buffer: pa.Buffer, halves: npt.NDArray[np.uint32], place: Ints, data: Ints, size: Ints, ends: Ints, table: str
) -> tuple[Bytes, Bytes]:
    """Of chunks that are not empty, whose entries' ends stand at ``place`` and bytes at ``data``."""
    first_end, last_end = (halves[at].astype(np.int64) for at in (place, place + size - 1))
    last_start = np.where(size > 1, halves[place + np.maximum(size - 2, 0)], 0).astype(np.int64)
    if np.any(first_end > last_end) or np.any(last_start > last_end) or np.any(data + last_end > ends):
        raise damaged_chunk(table)
    every = np.arange(len(size))
    return gather(buffer, data, data + first_end, every), gather(buffer, data + last_start, data + last_end, every)


# ------------------------------------------------------------------ one chunk at a time


def size_of(chunk: bytes) -> int:
    """How many entries one chunk has."""
    size: int = _HEADER.unpack_from(chunk)[2]
    return size


def ends_of(chunk: bytes) -> tuple[bytes, bytes] | None:
    """First and last entry of one chunk, without decoding what lies between."""
    flags, width, size = _HEADER.unpack_from(chunk)
    if not size:
        return None
    if width:
        first, last = struct.unpack_from("<Q", chunk, 8)[0], struct.unpack_from("<Q", chunk, 8 * size)[0]
        return first.to_bytes(8, "big")[8 - width :], last.to_bytes(8, "big")[8 - width :]
    ends = struct.unpack_from(f"<{size}I", chunk, 8)
    data = 8 + 8 * ((size + 1) >> 1) + (8 * size if flags & COUNTED else 0)
    before_last = ends[-2] if size > 1 else 0
    return chunk[data : data + ends[0]], chunk[data + before_last : data + ends[-1]]


def damaged_chunk(table: str) -> DamagedEntryError:
    return DamagedEntryError(
        f"a chunk of a bag of state table {table} cannot be decoded",
        detail="its length does not fit its header",
        hint="rebuild the view the table belongs to",
    )
