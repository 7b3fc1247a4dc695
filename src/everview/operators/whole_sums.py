"""Sums of integers, decimals and BIGNUMs.

Every value is cut into digits of 32 bits, the digits are summed by group as
64-bit integers, and what comes out is carried into the kept form.

A decimal is its unscaled integer, so nothing here knows of scales until a result is shown.
There are two kept forms (:mod:`everview.plan.relations.groups` lists which type has which):

- **Narrow**: 128 bits, as two 64-bit words. No number of rows leaves it.
- **Wide**: the bytes of :mod:`everview.operators.limbs`. A sum may leave the 128 bits (or 38
  digits) that a result has room for: that group has no result then, but its state is still
  the exact sum, and the result is back once enough has been taken away.

Weights multiply digits. The digits of n rows stay within 63 bits while n times the greatest
weight is below 2^31; greater weights, which nothing but a bag with millions of equal rows
has, are cut into pieces in turn.

**BIGNUM.** A sum is kept as the BIGNUM that it is, which has room for every sum, so what is kept is also the
result.

Numbers of up to 64 bytes are cut into digits of 32 bits, as all integers are,
and added in columns. Longer ones are added one by one as Python's integers, whose addition is as fast as their bytes
are read; a matrix of digits would be as wide for all rows as the longest number is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import BIGNUM, BLOB, BOOLEAN, Kind, Type
from everview.operators.limbs import (
    BITS,
    Groups,
    Ints,
    Limbs,
    Mask,
    add_columns,
    carried,
    combine_column,
    decoded,
    encode,
    gathered,
    is_empty,
    shifted,
    unsigned,
)
from everview.plan.relations.groups import MOMENTS, NARROW_DIGITS
from everview.store.encoding import bignums

Words: TypeAlias = tuple[npt.NDArray[np.uint64], Ints]
"""128-bit integers: the low words, and the high ones with the sign."""

_LOW = (1 << BITS) - 1
_DIGITS_38 = 10**38


def pieces(weights: Ints) -> Iterator[tuple[Ints, int]]:
    """Weights as sums of pieces times a power of two: (piece, bits), the greatest power first.
    As many products of a piece with 32 bits as there are weights add up within 63 bits."""
    rows = len(weights)
    least, most = int(weights.min(initial=0)), int(weights.max(initial=0))
    if max(-least, most) * rows < 1 << 31:
        yield weights, 0
        return
    width = max(31 - rows.bit_length(), 1)
    bits = 0
    while max(-(least >> bits), most >> bits) * rows >= 1 << 31:
        bits += width
    yield weights >> bits, bits
    for below in range(bits - width, -1, -width):
        yield (weights >> below) & ((1 << width) - 1), below


def summed(digits: list[Ints], weights: Ints, groups: Groups, count: int) -> Limbs:
    """Σ weight · number by group, carried; the numbers are digits of up to 32 bits, the least first."""
    found = Limbs(0, np.zeros((len(digits), count), np.int64))
    before: int | None = None
    for piece, bits in pieces(weights):
        if before is not None:
            found = carried(shifted(carried(found), before - bits))
            found = Limbs(0, np.pad(found.digits, ((0, max(len(digits) - len(found.digits), 0)), (0, 0))))
        for into, digit in zip(found.digits, digits, strict=False):
            np.add.at(into, groups, digit * piece)
        before = bits
    return carried(found)


def _fits(values: Ints, weights: Ints) -> bool:
    """Whether no sum of these products can leave 63 bits."""
    bound = max(-int(values.min(initial=0)), int(values.max(initial=0)))
    return bound * max(-int(weights.min(initial=0)), int(weights.max(initial=0))) * len(values) < 1 << 62


def _digits(values: pa.Array, argument: Type, weights: Ints) -> list[Ints]:
    """The digits of a column, nulls as zero; one digit of any size where no sum can overflow."""
    if argument == BOOLEAN:
        return [values.fill_null(False).cast(pa.int8()).to_numpy().astype(np.int64)]
    if argument.kind is Kind.DECIMAL or argument.kind is Kind.HUGEINT:
        low, high = words_of(values)
        signed = low.view(np.int64)
        narrow = argument.kind is Kind.DECIMAL and argument.precision <= NARROW_DIGITS
        if not narrow and not np.array_equal(high, signed >> 63):
            return [*_halves(low), *_halves(high)]
        return [signed] if _fits(signed, weights) else _halves(signed)
    if argument.kind in MOMENTS:
        values = values.view(pa.int64())
    plain = (values.fill_null(0) if values.null_count else values).to_numpy()
    if plain.dtype == np.uint64:
        return _halves(plain)
    signed = plain.astype(np.int64, copy=False)
    return [signed] if _fits(signed, weights) else _halves(signed)


def _halves(words: npt.NDArray[np.uint64] | Ints) -> list[Ints]:
    return [(words & words.dtype.type(_LOW)).astype(np.int64), (words >> words.dtype.type(BITS)).astype(np.int64)]


# ------------------------------------------------------------------ 128 bits


def words_of(column: pa.Array) -> Words:
    """The words of a HUGEINT or DECIMAL column, nulls as zero."""
    storage = column.storage if isinstance(column, pa.ExtensionArray) else column
    begin = 2 * storage.offset
    words = np.frombuffer(storage.buffers()[1] or b"", np.uint64)[begin : begin + 2 * len(column)]
    low, high = words[::2], words[1::2].view(np.int64)
    if column.null_count:
        there = column.is_valid().to_numpy(zero_copy_only=False)
        low, high = np.where(there, low, np.uint64(0)), np.where(there, high, 0)
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


def column_of(words: Words, kind: Type, absent: Mask | None = None) -> pa.Array:
    """A HUGEINT or DECIMAL column of words, null where ``absent``."""
    low, high = words
    both = np.empty((len(low), 2), np.uint64)
    both[:, 0], both[:, 1] = low, high.view(np.uint64)
    there = None if absent is None else pa.array(~absent).buffers()[1]
    held = kind.arrow.storage_type if isinstance(kind.arrow, pa.BaseExtensionType) else kind.arrow
    array = pa.Array.from_buffers(held, len(low), [there, pa.py_buffer(both)])
    return pa.ExtensionArray.from_storage(kind.arrow, array) if held is not kind.arrow else array


def words_from(numbers: Limbs) -> tuple[npt.NDArray[np.uint64], Ints, Mask]:
    """Carried numbers as 128 bits: low words, high words, and which do not fit these."""
    if numbers.low:
        padding = np.zeros((numbers.low, numbers.count), np.int64)
        numbers = Limbs(0, np.concatenate([padding, numbers.digits]))
    digits, above = unsigned(numbers)
    sign = above & _LOW
    four = [digits[i] if i < len(digits) else sign for i in range(4)]
    outside = (four[3] >> (BITS - 1)) != (above & 1)
    for digit in digits[4:]:
        outside |= digit != sign
    low, high = ((one.view(np.uint64) | (two.view(np.uint64) << np.uint64(BITS))) for one, two in (four[:2], four[2:]))
    return low, high.view(np.int64), outside


def outside_digits(words: Words) -> Mask:
    """Which integers do not fit 38 decimal digits."""
    low, high = words
    negative = high < 0
    size_low = np.where(negative, ~low + np.uint64(1), low)
    size_high = np.where(negative, ~high + (low == 0), high).view(np.uint64)
    bound_high, bound_low = (np.uint64(part) for part in divmod(_DIGITS_38, 1 << 64))
    found: Mask = (size_high > bound_high) | ((size_high == bound_high) & (size_low >= bound_low))
    return found


def _limbs_of(words: Words) -> Limbs:
    low, high = words
    return Limbs(0, np.stack([*_halves(low), *_halves(high)]))


# ------------------------------------------------------------------ the accumulators


@dataclass(frozen=True)
class NarrowSum:
    """A sum that 128 bits hold whatever the number of rows."""

    argument: Type
    type: Type

    def partial(self, values: pa.Array, weights: Ints, groups: Groups, count: int) -> pa.Array:
        found = summed(_digits(values, self.argument, weights), weights, groups, count)
        return column_of(words_from(found)[:2], self.type)

    def add(self, a: pa.Array, b: pa.Array) -> pa.Array:
        (low, high), (more, upper) = words_of(a), words_of(b)
        total = low + more
        return column_of((total, high + upper + (total < low)), self.type)

    def combine(self, column: pa.Array, groups: Groups, count: int) -> pa.Array:
        found = carried(gathered(_limbs_of(words_of(column)), groups, count))
        return column_of(words_from(found)[:2], self.type)

    def is_zero(self, column: pa.Array) -> Mask:
        low, high = words_of(column)
        found: Mask = (low == 0) & (high == 0)
        return found

    def words(self, column: pa.Array) -> tuple[Words, Mask]:
        """The sums as 128 bits, and which do not fit these: none."""
        return words_of(column), np.zeros(len(column), np.bool_)


@dataclass(frozen=True)
class WideSum:
    """A sum of any length."""

    argument: Type
    type: Type = BLOB

    def partial(self, values: pa.Array, weights: Ints, groups: Groups, count: int) -> pa.Array:
        return encode(summed(_digits(values, self.argument, weights), weights, groups, count))

    def add(self, a: pa.Array, b: pa.Array) -> pa.Array:
        return add_columns(a, b)

    def combine(self, column: pa.Array, groups: Groups, count: int) -> pa.Array:
        return combine_column(column, groups, count)

    def is_zero(self, column: pa.Array) -> Mask:
        return is_empty(column)

    def words(self, column: pa.Array) -> tuple[Words, Mask]:
        """The sums as 128 bits, and which do not fit these."""
        lows, highs, outside = zip(*map(words_from, decoded(column)), strict=True)
        return (np.concatenate(lows), np.concatenate(highs)), np.concatenate(outside)


# -------------------------------------------------------------- BIGNUM


_SHORT = 64
"""Bytes of the magnitudes that are added in columns."""


@dataclass(frozen=True)
class BignumSum:
    """A sum of any length, as a BIGNUM."""

    type: Type = BIGNUM

    def partial(self, values: pa.Array, weights: Ints, groups: Groups, count: int) -> pa.Array:
        held = values.storage
        sizes = bignums.sizes(held)
        short = np.flatnonzero((sizes > 0) & (sizes <= _SHORT))
        found = _short_sums(held.take(pa.array(short)), weights[short], groups[short], count)
        long = np.flatnonzero(sizes > _SHORT)
        if len(long):
            found = _with_long(found, held.take(pa.array(long)), weights[long], groups[long])
        return pa.ExtensionArray.from_storage(self.type.arrow, found)

    def add(self, a: pa.Array, b: pa.Array) -> pa.Array:
        rows = np.arange(len(a))
        return self.combine(pa.concat_arrays([a, b]), np.concatenate([rows, rows]), len(a))

    def combine(self, column: pa.Array, groups: Groups, count: int) -> pa.Array:
        return self.partial(column, np.ones(len(column), np.int64), groups, count)

    def is_zero(self, column: pa.Array) -> Mask:
        """Sums are never DuckDB's ``-0``."""
        found: Mask = pc.equal(column.storage, bignums.ZERO).fill_null(True).to_numpy(zero_copy_only=False)
        return found


def _short_sums(held: pa.Array, weights: Ints, groups: Groups, count: int) -> pa.Array:
    matrix, negative = bignums.magnitudes(held)
    digits = matrix.view(">u4").astype(np.int64).T[::-1]
    totals = summed(list(digits), np.where(negative, -weights, weights), groups, count)
    _, above = unsigned(totals)
    below_zero = above < 0
    sizes, _ = unsigned(carried(Limbs(0, np.where(below_zero, -totals.digits, totals.digits))))
    if not len(sizes):
        sizes = np.zeros((1, count), np.int64)
    found = np.ascontiguousarray(sizes[::-1].T.astype(">u4")).view(np.uint8)
    return bignums.from_magnitudes(found, below_zero, np.ones(count, np.bool_))


def _with_long(sums: pa.Array, held: pa.Array, weights: Ints, groups: Groups) -> pa.Array:
    """The sums with those of the long numbers added."""
    found: list[bytes] = sums.to_pylist()
    totals: dict[int, int] = {}
    for group, number, weight in zip(groups.tolist(), held.to_pylist(), weights.tolist(), strict=True):
        totals[group] = totals.get(group, 0) + weight * bignums.to_int(number)
    for group, total in totals.items():
        found[group] = bignums.of_int(total + bignums.to_int(found[group]))
    return pa.array(found, pa.binary())
