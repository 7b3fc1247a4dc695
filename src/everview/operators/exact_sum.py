"""Exact sums of DOUBLE.

A DOUBLE is a 53-bit integer times a power of two, so doubles are summed as whole
numbers of 2^-1074, the least DOUBLE there is, and rounded only when it is shown.

    x  =  ± mantissa · 2^(place − 1074)          mantissa below 2^53, place 0 … 2045

The mantissa, moved to its place among 32-bit digits (:mod:`everview.operators.limbs`), touches
three of them::

    place 37 = 32 + 5        digit    2        1        0
                                  ┌──────┬────────┬────────┐
                                  │  mantissa · 2^5        │  + 32 zero bits below
                                  └──────┴────────┴────────┘

Only the digits between the least and the greatest value of a batch are held: numbers of
similar size take three or four, the widest mixture 67. Infinities and NaN have no digits; they
are counted beside them, so that they too can be taken away.

The sum of a group is exact, so the order of its changes leaves no trace, and a group whose
rows are all gone has no bytes left. It is rounded as IEEE 754 requires: to the nearest, and of two
equally near to the even one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.change.types import BLOB, Kind, Type
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
    is_empty,
    joined,
    plus,
    ranges,
    unsigned,
    zeros,
)
from everview.operators.whole_sums import pieces, words_of

Floats = npt.NDArray[np.float64]

_LEAST = -1074
_MANTISSA = (1 << 52) - 1
_LOW = (1 << BITS) - 1
_BLOCK = 1 << 15
"""Rows that are taken apart at a time, so that the columns in between stay in the cache."""
_CELLS = 1 << 22
"""Digits that are held at a time."""


@dataclass(frozen=True)
class ExactSum:
    """A sum of floating-point numbers; UHUGEINT is added as DOUBLE, as DuckDB does."""

    argument: Type
    type: Type = BLOB

    def partial(self, values: pa.Array, weights: Ints, groups: Groups, count: int) -> pa.Array:
        floats = self._floats(values)
        odd, floats, low, high = _measured(floats, weights, groups, count)
        done = []
        for first, size, rows in ranges(groups, count, _CELLS // (high - low)):
            found = _scattered(floats[rows], weights[rows], groups[rows] - first, size, low, high)
            if odd is not None:
                found.odd = odd[:, first : first + size]
            done.append(encode(found))
        return joined(done)

    def add(self, a: pa.Array, b: pa.Array) -> pa.Array:
        return add_columns(a, b)

    def combine(self, column: pa.Array, groups: Groups, count: int) -> pa.Array:
        return combine_column(column, groups, count)

    def is_zero(self, column: pa.Array) -> Mask:
        return is_empty(column)

    def rounded(self, column: pa.Array) -> Floats:
        """The DOUBLE nearest to each sum."""
        return np.concatenate([rounded(numbers) for numbers in decoded(column)])

    def _floats(self, values: pa.Array) -> Floats:
        if self.argument.kind is Kind.UHUGEINT:
            low, high = words_of(values)
            return low.astype(np.float64) + high.view(np.uint64).astype(np.float64) * 2.0**64
        plain: Floats = (values.fill_null(0.0) if values.null_count else values).to_numpy()
        return plain.astype(np.float64, copy=False)


def _measured(floats: Floats, weights: Ints, groups: Groups, count: int) -> tuple[Ints | None, Floats, int, int]:
    """The counts of what is not finite, the rest, and the digits that it touches: from, to."""
    size = np.abs(floats)
    odd = None
    if not np.isfinite(size.max(initial=0.0)):
        which = np.flatnonzero(~np.isfinite(floats))
        kinds = np.where(np.isnan(floats[which]), 2, floats[which] < 0).astype(np.intp)
        odd = np.zeros((3, count), np.int64)
        np.add.at(odd.reshape(-1), kinds * count + groups[which], weights[which])
        floats = np.where(np.isfinite(floats), floats, 0.0)
        size = np.abs(floats)
    greatest = size.max(initial=0.0)
    least = size.min(initial=greatest) or size.min(initial=greatest, where=size > 0)
    return odd, floats, _digit(least), _digit(greatest) + 3


def _digit(size: float) -> int:
    """The lowest digit that a number of this size touches."""
    return max(math.frexp(size)[1] - 53 - _LEAST, 0) // BITS if size else 0


def _scattered(floats: Floats, weights: Ints, groups: Groups, count: int, low: int, high: int) -> Limbs:
    """Σ weight · number by group, carried; the numbers touch digits from ``low`` to ``high`` − 1."""
    found = zeros(low, low, count)
    for piece, bits in pieces(weights):
        part = zeros(low, high + -(-bits // BITS), count)
        cells = part.digits.reshape(-1)
        for begin in range(0, len(floats), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            _scatter(cells, floats[rows], piece[rows], groups[rows], count, bits - BITS * low)
        found = carried(plus(found, part) if len(found.digits) else part)
    return found


def _scatter(cells: Ints, floats: Floats, weights: Ints, groups: Groups, count: int, bits: int) -> None:
    bare = floats.view(np.int64)
    signed = np.where(bare < 0, -weights, weights)
    exponent = (bare >> 52) & 0x7FF
    normal = np.minimum(exponent, 1)
    mantissa = (bare & _MANTISSA) | (normal << 52)
    # A zero has no digits: it may stand anywhere, and its place may be below all others.
    place = np.maximum(exponent - normal + bits, 0)
    shift = place & (BITS - 1)
    at = (place >> 5) * count + groups
    lower = (mantissa & _LOW) << shift
    upper = ((mantissa >> BITS) << shift) + (lower >> BITS)
    np.add.at(cells, at, (lower & _LOW) * signed)
    at += count
    np.add.at(cells, at, (upper & _LOW) * signed)
    at += count
    np.add.at(cells, at, (upper >> BITS) * signed)


def rounded(numbers: Limbs) -> Floats:
    """The DOUBLE nearest to each carried number of 2^-1074, with what is not finite."""
    found = _nearest(numbers)
    if numbers.odd.shape[1]:
        above, below, neither = numbers.odd != 0
        found[above] = np.inf
        found[below] = -np.inf
        found[(above & below) | neither] = np.nan
    return found


def _nearest(numbers: Limbs) -> Floats:
    if not len(numbers.digits):
        return np.zeros(numbers.count)
    every = np.arange(numbers.count)
    filled = numbers.digits != 0
    last = len(filled) - 1 - filled[::-1].argmax(axis=0)
    negative = numbers.digits[last, every] < 0
    digits, _ = unsigned(Limbs(0, np.where(negative, -numbers.digits, numbers.digits)))
    filled = digits != 0
    top = len(filled) - 1 - filled[::-1].argmax(axis=0)
    first = filled.argmax(axis=0)
    # The three highest digits hold at least 65 bits; of those below, only whether there are any counts.
    three = [np.where(top >= i, digits[np.maximum(top - i, 0), every], 0).astype(np.uint64) for i in range(3)]
    used = np.maximum(np.frexp(three[0].astype(np.float64))[1], 1)
    bits = used.astype(np.uint64)
    window = (three[0] << (64 - bits)) | (three[1] << (BITS - bits)) | (three[2] >> bits)
    below = (first < top - 2) | ((three[2] & ((np.uint64(1) << bits) - np.uint64(1))) != 0)
    kept, rest = window >> np.uint64(11), (window & np.uint64(0x7FF)) | below
    half = np.uint64(0x400)
    kept += (rest > half) | ((rest == half) & ((kept & np.uint64(1)) == 1))
    place = BITS * (top + numbers.low) + used - 64 + 11 + _LEAST
    with np.errstate(over="ignore"):
        found: Floats = np.ldexp(kept.astype(np.float64), place)
    np.negative(found, out=found, where=negative)
    return found
