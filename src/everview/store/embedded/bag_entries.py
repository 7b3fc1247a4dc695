"""Entries of bags as numbers that order like them.

Entries are sorted, compared and summed as 64-bit codes, and an
:class:`Alphabet` says which code stands for which entry.

Entries that are all equally long, one to eight bytes, are their own codes: the bytes read
as a big-endian number. For all others the alphabet is the distinct entries at hand in
their order, and a code is the place in it::

    b"\\x00\\x07", b"\\x01\\x00"            codes 7, 256     (width 2)
    b"pear", b"fig", b"pear"             codes 1, 0, 1    (alphabet: fig, pear)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.store.encoding.ragged import (
    BINARY,
    Bytes,
    Ints,
    Mask,
    Words,
    column_of,
    concat,
    content,
    lengths,
    offsets_of,
    places,
)

WIDEST = 8
VARIABLE = 0
"""The width of entries that have to be looked up in an alphabet."""


@dataclass(frozen=True)
class Entries:
    """A column of entries: as codes where they are narrow, else as bytes."""

    width: int
    codes: Words
    column: Bytes | None = None

    def as_column(self) -> Bytes:
        return from_codes(self.codes, self.width) if self.column is None else self.column

    def __len__(self) -> int:
        return len(self.codes) if self.column is None else len(self.column)


@dataclass(frozen=True)
class Alphabet:
    """What codes stand for: themselves, or code c for the entry in row ``rows[c]``."""

    width: int
    column: Bytes | None = None
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def entries(self, codes: Words, absent: Mask | None = None) -> Bytes:
        if self.column is None:
            return from_codes(codes, self.width, absent)
        return self.column.take(pa.array(self.rows[codes], mask=absent))

    def entry(self, code: int) -> bytes:
        if self.column is None:
            return code.to_bytes(WIDEST, "big")[WIDEST - self.width :]
        found: bytes = self.column[int(self.rows[code])].as_py()
        return found

    def sizes(self, codes: Words) -> Ints:
        """How many bytes the entries have."""
        if self.column is None:
            return np.full(len(codes), self.width, np.int64)
        return lengths(self.column)[self.rows[codes]]


def narrow_width(column: Bytes) -> int:
    """The length all entries have, if it is one to eight bytes."""
    sizes = lengths(column)
    width = int(sizes[0]) if len(sizes) else VARIABLE
    return width if 0 < width <= WIDEST and bool((sizes == width).all()) else VARIABLE


def entries_of(column: Bytes) -> Entries:
    width = narrow_width(column)
    return Entries(width, to_codes(column, width)) if width else Entries(VARIABLE, np.zeros(0, np.uint64), column)


def to_codes(column: Bytes, width: int) -> Words:
    """The codes of entries that all have the width."""
    start = int(places(column)[0])
    raw = np.frombuffer(content(column), np.uint8, len(column) * width, start)
    if width == WIDEST:
        return raw.view(">u8").astype(np.uint64)
    padded = np.zeros((len(column), WIDEST), np.uint8)
    padded[:, WIDEST - width :] = raw.reshape(-1, width)
    return padded.view(">u8").ravel().astype(np.uint64)


def from_codes(codes: Words, width: int, absent: Mask | None = None) -> Bytes:
    raw = codes.astype(">u8").view(np.uint8).reshape(-1, WIDEST)[:, WIDEST - width :]
    column = column_of(np.ascontiguousarray(raw), np.arange(len(codes) + 1) * width)
    if absent is None or not absent.any():
        return column
    validity = pa.py_buffer(np.packbits(~absent, bitorder="little"))
    return pa.LargeBinaryArray.from_buffers(BINARY, len(codes), [validity, *column.buffers()[1:]])


def in_one_alphabet(parts: Sequence[Entries]) -> tuple[Alphabet, list[Words]]:
    """Codes of several columns that can be compared with each other."""
    widths = {part.width for part in parts if len(part)}
    if len(widths) == 1 and VARIABLE not in widths:
        return Alphabet(widths.pop()), [part.codes for part in parts]
    column = concat(*(part.as_column() for part in parts))
    codes, rows = rank(column)
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return Alphabet(VARIABLE, column, rows), np.split(codes, cuts)


def rank(column: Bytes) -> tuple[Words, Ints]:
    """The place of each entry among the distinct ones, and for each place a row that has it.

    Entries are sorted by their first eight bytes as one number, those that tie by the next
    eight, and so on. What still ties after DEEPEST numbers is left to Arrow; what ties at
    its end is the same but for zero bytes at the end of the longer, so the length decides.
    """
    order = np.arange(len(column))
    fresh = np.zeros(len(column), np.bool_)
    fresh[:1] = True
    tied = order.copy()
    sizes = lengths(column)
    for digit in _digits(column, sizes):
        rows = order[tied]
        key = digit(rows)
        groups = np.cumsum(fresh[tied]) - 1
        by_key = sort_rows(groups, key, int(groups[-1]) + 1 if len(groups) else 0)
        order[tied] = rows[by_key]
        key = key[by_key]
        fresh[tied[1:]] |= key[1:] != key[:-1]
        last = np.append(fresh[1:], True)
        tied = np.flatnonzero(~(fresh & last))
        if not len(tied):
            break
    codes = np.empty(len(column), np.uint64)
    codes[order] = np.cumsum(fresh) - 1
    return codes, order[fresh]


DEEPEST = 4


def _digits(column: Bytes, sizes: Ints) -> Iterator[Callable[[Ints], Words]]:
    """What entries are sorted by, one after the other, as functions of rows."""
    starts = places(column)[:-1]
    padded = np.concatenate([np.frombuffer(content(column), np.uint8), np.zeros(WIDEST, np.uint8)])
    at_every_byte: Words = np.ndarray((len(padded) - WIDEST + 1,), ">u8", padded, 0, (1,))
    longest = int(sizes.max(initial=0))

    def word(rows: Ints, depth: int) -> Words:
        left = np.clip(sizes[rows] - WIDEST * depth, 0, WIDEST)
        place = np.minimum(starts[rows] + WIDEST * depth, len(at_every_byte) - 1)
        found: Words = at_every_byte[place].astype(np.uint64) & _KEPT[left]
        return found

    for depth in range(DEEPEST):
        if WIDEST * depth < longest:
            yield partial(word, depth=depth)
    if longest > WIDEST * DEEPEST:
        yield lambda rows: _rank_by_arrow(column.take(pa.array(rows)))
    else:
        yield lambda rows: sizes[rows].astype(np.uint64)


_KEPT = np.array([(1 << 64) - (1 << (64 - 8 * left)) for left in range(WIDEST + 1)], np.uint64)
"""A mask of the first bytes of a word, for each number of bytes that an entry still has."""


def _rank_by_arrow(column: Bytes) -> Words:
    encoded = column.dictionary_encode()
    places_of: Words = np.empty(len(encoded.dictionary), np.uint64)
    places_of[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(places_of), dtype=np.uint64)
    codes: Words = places_of[encoded.indices.to_numpy()]
    return codes


def sort_rows(groups: Ints, codes: Words, group_count: int) -> Ints:
    """The order by (group, code): as one number where both fit into 64 bits. Else the groups,
    which are small numbers, go in one or two passes over the codes' order; numpy sorts
    16-bit numbers by radix."""
    group_bits = max(group_count - 1, 0).bit_length()
    code_bits = int(codes.max(initial=0)).bit_length()
    if group_bits + code_bits <= 64:
        return np.argsort((groups.astype(np.uint64) << np.uint64(code_bits)) | codes if group_bits else codes)
    order = np.argsort(codes)
    for shift in range(0, group_bits, 16):
        digit = ((groups[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order


def separator(left: bytes, right: bytes) -> bytes:
    """The shortest prefix of ``right`` that is greater than ``left``."""
    size = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return right[: size + 1]


# ------------------------------------------------------------------ sums
#
# The entries of every chunk are sorted already, so only the changes are sorted, each is looked up in its chunk, all
# of them at once, and either changes a count there or is put in between.
#
# Runs of rows belong to regions: run r is the rows ``edges[r]:edges[r + 1]``. Two regions, of which the second is new:
#
#     edges   0 2 2                  edges   0 2 3                edges   0 1 2
#     codes   5 9        and the     codes   5 9 4     make       codes   9 4
#     counts  1 1        changes     counts −1 1 1                counts  2 1


@dataclass(frozen=True)
class Sums:
    """Runs of distinct codes in ascending order, and how often each stands there."""

    edges: Ints
    codes: Words
    counts: Ints


def add_up(regions: Ints, codes: Words, counts: Ints, region_count: int) -> Sums:
    """Rows in any order, equal ones added up."""
    order = sort_rows(regions, codes, region_count)
    regions, codes = regions[order], codes[order]
    fresh = np.ones(len(order), np.bool_)
    np.logical_or(regions[1:] != regions[:-1], codes[1:] != codes[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    size = np.bincount(regions[starts], minlength=region_count)
    return Sums(offsets_of(size), codes[starts], np.add.reduceat(counts[order], starts) if len(starts) else counts)


def merge(old: Sums, change: Sums) -> Sums:
    """Both together, without the codes that come to nothing."""
    regions = len(old.edges) - 1
    region = np.repeat(np.arange(regions), np.diff(change.edges))
    place = _places(old, region, change.codes)
    known = place < old.edges[region + 1]
    known[known] = old.codes[place[known]] == change.codes[known]
    counts = old.counts.copy()
    counts[place[known]] += change.counts[known]
    new = np.flatnonzero(~known)
    codes = np.insert(old.codes, place[new], change.codes[new])
    counts = np.insert(counts, place[new], change.counts[new])
    edges = old.edges + offsets_of(np.bincount(region[new], minlength=regions))
    gone = counts == 0
    if not gone.any():
        return Sums(edges, codes, counts)
    left_out = offsets_of(gone)
    return Sums(edges - left_out[edges], codes[~gone], counts[~gone])


def _places(old: Sums, region: Ints, codes: Words) -> Ints:
    """The row of the first code in its region that is not smaller; the region's end if all are.
    A binary search in all regions at once: as many steps as the largest one needs."""
    low, high = old.edges[region], old.edges[region + 1]
    for _ in range(int(np.diff(old.edges).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        smaller = (low < high) & (old.codes[np.minimum(middle, len(old.codes) - 1)] < codes)
        low = np.where(smaller, middle + 1, low)
        high = np.where(smaller, high, middle)
    return low
