"""Whole numbers of any length, one per group, held in columns.

A number is a row of 32-bit digits with signs, so adding two numbers is adding
their digits, and only afterwards is carried::

    number  =  Σ digit[i] · 2^(32·(low + i))

A :class:`Limbs` holds the numbers of many groups as a matrix: ``digits[i, group]``. As long as
nothing reads it, a digit may be any 64-bit integer, so the digits of a million rows are summed
without a carry. :func:`carried` brings every digit into −2^31 … 2^31−1. Each number has exactly
one such row of digits (no second form with a sign in front, or in two's complement, whose
length depends on how one got there), and the digits of −n are near those of n: so the bytes
of a number are the digits between the first and the last that is not zero::

    0            (no bytes)
    1            00 | 01 00 00 00
    −1           00 | ff ff ff ff
    2^31         00 | 00 00 00 80  01 00 00 00        = −2^31 + 2^32
    2^64         02 | 01 00 00 00

    byte    position of the first digit; 128 is added where three counts follow
    i64 × 3 counts of what is not a number: +∞, −∞, NaN (only if one of them is not zero)
    i32 …   the digits

Equal numbers have equal bytes, whatever sums and differences led to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.errors import DamagedEntryError

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Groups: TypeAlias = npt.NDArray[np.intp]

BITS = 32
_LOW = (1 << BITS) - 1
_HALF = 1 << (BITS - 1)
_ODD = 128
_COUNTS = 3
_ODD_BYTES = 8 * _COUNTS
_NO_ODD = np.zeros((_COUNTS, 0), np.int64)
_ROWS = 1 << 16
"""Numbers that are unpacked at a time: of the longest ones 36 MB."""


@dataclass
class Limbs:
    """The numbers of groups. ``odd``: per group the counts of +∞, −∞ and NaN, or no columns
    where there are none at all."""

    low: int
    digits: Ints
    odd: Ints = field(default_factory=lambda: _NO_ODD)

    @property
    def count(self) -> int:
        return int(self.digits.shape[1])

    @property
    def high(self) -> int:
        return self.low + len(self.digits)


def zeros(low: int, high: int, count: int) -> Limbs:
    return Limbs(low, np.zeros((high - low, count), np.int64))


def odd_of(numbers: Limbs) -> Ints:
    return numbers.odd if numbers.odd.shape[1] else np.zeros((_COUNTS, numbers.count), np.int64)


def plus(a: Limbs, b: Limbs) -> Limbs:
    """The sums, not carried. The digits of one must be."""
    numbers = [one for one in (a, b) if len(one.digits)]
    low = min((one.low for one in numbers), default=0)
    found = zeros(low, max((one.high for one in numbers), default=0), a.count)
    for one in numbers:
        found.digits[one.low - found.low : one.high - found.low] += one.digits
    if a.odd.shape[1] or b.odd.shape[1]:
        found.odd = odd_of(a) + odd_of(b)
    return found


def gathered(numbers: Limbs, groups: Groups, count: int) -> Limbs:
    """The sums by group number, not carried. The digits must be, and fewer than 2^31 numbers."""
    found = zeros(numbers.low, numbers.high, count)
    for into, digits in zip(found.digits, numbers.digits, strict=True):
        np.add.at(into, groups, digits)
    if numbers.odd.shape[1]:
        found.odd = np.zeros((_COUNTS, count), np.int64)
        for into, counts in zip(found.odd, numbers.odd, strict=True):
            np.add.at(into, groups, counts)
    return found


def shifted(numbers: Limbs, bits: int) -> Limbs:
    """The numbers times 2^bits, of carried ones and for fewer than 31 bits; not carried."""
    return Limbs(numbers.low, numbers.digits << bits, numbers.odd)


def carried(numbers: Limbs) -> Limbs:
    """The same numbers with digits of 32 bits."""
    rows = [*numbers.digits]
    carry = np.zeros(numbers.count, np.int64)
    found: list[Ints] = []
    while rows or carry.any():
        total = carry + rows.pop(0) if rows else carry
        # (total + _HALF) >> BITS, with no overflow where total is near 2^63
        carry = (total >> BITS) + ((total >> (BITS - 1)) & 1)
        found.append(total - (carry << BITS))
    digits = np.stack(found) if found else np.zeros((0, numbers.count), np.int64)
    return Limbs(numbers.low, digits, numbers.odd)


def unsigned(numbers: Limbs) -> tuple[Ints, Ints]:
    """Digits from 0 to 2^32−1 of carried numbers, and what is left above them: −1 or 0."""
    digits = np.empty_like(numbers.digits)
    above = np.zeros(numbers.count, np.int64)
    for i, row in enumerate(numbers.digits):
        total = row + above
        np.bitwise_and(total, _LOW, out=digits[i])
        above = total >> BITS
    return digits, above


def ranges(groups: Groups, count: int, size: int) -> Iterator[tuple[int, int, Groups | slice]]:
    """Runs of at most ``size`` groups: the first of each, how many they are, and their rows."""
    if count <= size:
        yield 0, count, slice(None)
        return
    order = np.argsort(groups, kind="stable")
    begins = np.arange(0, count, size)
    ends = np.searchsorted(groups[order], np.append(begins, count))
    for first, begin, end in zip(begins.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield first, min(size, count - first), order[begin:end]


# ------------------------------------------------------------------ columns of bytes


def add_columns(a: pa.BinaryArray, b: pa.BinaryArray) -> pa.BinaryArray:
    """The sums of two columns, row by row."""
    return joined([encode(carried(plus(*both))) for both in zip(decoded(a), decoded(b), strict=True)])


def combine_column(column: pa.BinaryArray, groups: Groups, count: int) -> pa.BinaryArray:
    """The sums of a column by group."""
    done = []
    for first, size, rows in ranges(groups, count, _ROWS):
        numbers, among = (column, groups) if isinstance(rows, slice) else (column.take(pa.array(rows)), groups[rows])
        found = zeros(0, 0, size)
        begin = 0
        for part in decoded(numbers):
            found = carried(plus(found, gathered(part, among[begin : begin + part.count] - first, size)))
            begin += part.count
        done.append(encode(found))
    return joined(done)


def decoded(column: pa.BinaryArray) -> Iterator[Limbs]:
    """The numbers of a column, not too many at a time; at least once."""
    for begin in range(0, max(len(column), 1), _ROWS):
        yield decode(column.slice(begin, _ROWS))


def joined(columns: list[pa.BinaryArray]) -> pa.BinaryArray:
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def is_empty(column: pa.BinaryArray) -> Mask:
    """Which values of a column are null or have no bytes."""
    if not len(column):
        return np.zeros(0, np.bool_)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    found: Mask = offsets[1:] == offsets[:-1]
    return found | ~column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else found


def encode(numbers: Limbs) -> pa.BinaryArray:
    """The bytes of carried numbers."""
    count, rows = numbers.count, len(numbers.digits)
    filled = numbers.digits != 0
    first = filled.argmax(axis=0) if rows else np.zeros(count, np.int64)
    some = filled.any(axis=0)
    length = np.where(some, rows - filled[::-1].argmax(axis=0) - first, 0) if rows else np.zeros(count, np.int64)
    odd: Mask = (odd_of(numbers) != 0).any(axis=0)
    sizes = np.where(some | odd, 1 + _ODD_BYTES * odd + 4 * length, 0)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    data = np.zeros(int(offsets[-1]) + 8, np.uint8)
    there = np.flatnonzero(sizes)
    data[offsets[there]] = np.where(some, numbers.low + first, 0)[there] + _ODD * odd[there]
    if odd.any():
        which = np.flatnonzero(odd)
        for i in range(_COUNTS):
            _spread(data, np.dtype("<i8"))[offsets[which] + 1 + 8 * i] = numbers.odd[i][which]
    begin = offsets[:-1] + 1 + _ODD_BYTES * odd
    written = _spread(data, np.dtype("<i4"))
    flat = numbers.digits.reshape(-1)
    which, at = there, first * count + np.arange(count)
    for i in range(int(length.max(initial=0))):
        which = which[length[which] > i]
        written[begin[which] + 4 * i] = flat[at[which] + i * count]
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def decode(column: pa.BinaryArray) -> Limbs:
    """The numbers of bytes; zero where there are none, or null."""
    whole = column.fill_null(b"") if column.null_count else column
    count = len(whole)
    if not count:
        return zeros(0, 0, 0)
    offsets = np.frombuffer(whole.buffers()[1], np.int32)[whole.offset : whole.offset + count + 1].astype(np.int64)
    content = whole.buffers()[2]
    # Eight bytes more, so that a digit can be looked for at every byte.
    data = np.zeros(int(offsets[-1]) + 8, np.uint8)
    if content is not None:
        data[:-8] = np.frombuffer(content, np.uint8)[: len(data) - 8]
    there = np.flatnonzero(offsets[1:] > offsets[:-1])
    head = data[offsets[there]].astype(np.int64)
    odd, low = head >= _ODD, head & (_ODD - 1)
    begin = offsets[there] + 1 + _ODD_BYTES * odd
    length = (offsets[there + 1] - begin) >> 2
    if ((offsets[there + 1] - begin) & 3).any() or (length < 0).any():
        raise DamagedEntryError(
            "a stored sum cannot be decoded", detail="its bytes are not whole digits", hint="rebuild the view"
        )
    filled = length > 0
    base = int(low[filled].min()) if filled.any() else 0
    found = zeros(base, int((low + length)[filled].max()) if filled.any() else 0, count)
    flat = found.digits.reshape(-1)
    read = _spread(data, np.dtype("<i4"))
    which = np.flatnonzero(filled)
    for i in range(int(length.max(initial=0))):
        which = which[length[which] > i]
        flat[(low[which] - base + i) * count + there[which]] = read[begin[which] + 4 * i]
    if odd.any():
        found.odd = np.zeros((_COUNTS, count), np.int64)
        which = np.flatnonzero(odd)
        for i in range(_COUNTS):
            found.odd[i][there[which]] = _spread(data, np.dtype("<i8"))[offsets[there[which]] + 1 + 8 * i]
    return found


def _spread(data: npt.NDArray[np.uint8], kind: np.dtype[np.signedinteger]) -> Ints:
    """The values that begin at every byte."""
    shape = (len(data) - kind.itemsize + 1,)
    return np.ndarray(shape, kind, data, strides=(1,))
