"""Entries of bags as numbers that order like them.

One sentence: entries are sorted, compared and summed as 64-bit codes, and an
:class:`Alphabet` says which code stands for which entry.

Entries that are all equally long, one to eight bytes, are their own codes: the bytes read
as a big-endian number. For all others the alphabet is the sorted list of the distinct
entries at hand, and a code is the place in it::

    b"\\x00\\x07", b"\\x01\\x00"            codes 7, 256     (width 2)
    b"pear", b"fig", b"pear"             codes 1, 0, 1    (alphabet: fig, pear)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.store.contract import Bytes
from everview.store.embedded.ragged import BINARY, Ints, Mask, Words, column_of, concat, content, lengths, places

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
    """What codes stand for."""

    width: int
    sorted_entries: Bytes | None = None

    def entries(self, codes: Words, absent: Mask | None = None) -> Bytes:
        if self.sorted_entries is None:
            return from_codes(codes, self.width, absent)
        return self.sorted_entries.take(pa.array(codes, mask=absent))

    def entry(self, code: int) -> bytes:
        if self.sorted_entries is None:
            return code.to_bytes(WIDEST, "big")[WIDEST - self.width :]
        found: bytes = self.sorted_entries[code].as_py()
        return found

    def sizes(self, codes: Words) -> Ints:
        """How many bytes the entries have."""
        if self.sorted_entries is None:
            return np.full(len(codes), self.width, np.int64)
        return lengths(self.sorted_entries)[codes]


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
    encoded = concat(*(part.as_column() for part in parts)).dictionary_encode()
    distinct = encoded.dictionary
    order = pc.array_sort_indices(distinct)
    rank = np.empty(len(distinct), np.uint64)
    rank[order.to_numpy()] = np.arange(len(distinct), dtype=np.uint64)
    codes = rank[encoded.indices.to_numpy()]
    cuts = np.cumsum([len(part) for part in parts])[:-1]
    return Alphabet(VARIABLE, distinct.take(order)), np.split(codes, cuts)


def sort_rows(groups: Ints, codes: Words, group_count: int) -> Ints:
    """The order by (group, code). Numpy sorts 16-bit numbers by radix, so the groups, which
    are small numbers, go in one or two such passes over the codes' order."""
    order = np.argsort(codes)
    for shift in range(0, max(group_count - 1, 1).bit_length(), 16):
        digit = ((groups[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order


def separator(left: bytes, right: bytes) -> bytes:
    """The shortest prefix of ``right`` that is greater than ``left``."""
    size = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    return right[: size + 1]
