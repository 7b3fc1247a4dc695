"""Sums of BIGNUMs.

A sum is kept as the BIGNUM that it is, which has room for every sum, so what is kept is also the
result.

Numbers of up to 64 bytes are cut into digits of 32 bits, as all integers are (:mod:`everview.operators.whole_sums`),
and added in columns. Longer ones are added one by one as Python's integers, whose addition is as fast as their bytes
are read; a matrix of digits would be as wide for all rows as the longest number is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import BIGNUM, Type
from everview.operators.limbs import Groups, Ints, Limbs, Mask, carried, unsigned
from everview.operators.whole_sums import summed
from everview.store import bignums

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
