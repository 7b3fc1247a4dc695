"""Counts and sums by group.

One sentence: a group is a few accumulators that can be added and taken away, so its new
state is the old one plus the weighted sum of its changes, whatever their order::

    accumulators(G) as of E  =  accumulators(G) as of E−1  +  Σ weight · (1, x is there, x)

For ``SELECT customer, count(*), sum(amount) … GROUP BY customer`` a group has ``n`` (its
rows), ``f0`` (its rows whose amount is not null) and ``s0`` (their sum). ``f0`` decides
whether the sum is NULL, as in SQL: a sum of 0.00 and a sum of nothing are different. A
group without rows is gone::

    as of E−1           changes of E                partial         as of E
    7: n 2  s 30.00     7  amount 10.00  −1         7: n −1  s −10  7: n 1  s 20.00
    8: n 1  s  5.00     8  amount  5.00  −1         8: n −1  s  −5  (8 is gone)
                        9  amount  1.00  +1         9: n +1  s  +1  9: n 1  s  1.00

The same addition serves three times: from changes to a partial (before the shuffle, so that
a group travels once per task), from partials to one (after it), and onto the state. It is
associative and commutative, so how changes are split over tasks does not matter.

Everything is keyed by the encoded group key; what the key columns are is nobody's business
here. Sums are exact: decimals are added as integers, and a sum that leaves the 38 digits of
a DECIMAL is an error, never a wrong number.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import KEY, WEIGHT
from everview.change.types import BIGINT, Kind, Type, decimal
from everview.errors import DamagedEntryError, DefinitionError, ValueTypeError
from everview.store.contract import Bytes

Mask = npt.NDArray[np.bool_]

DIGITS = 38
_WEIGHT_DIGITS = 19


@dataclass(frozen=True)
class Sum:
    """``sum(column)``: the input column, its type, and what the sum is called."""

    name: str
    column: str
    type: Type

    def __post_init__(self) -> None:
        if self.type.kind is not Kind.DECIMAL:
            raise DefinitionError(
                f"column {self.column} cannot be summed",
                detail=f"sums are kept for DECIMAL columns, and this is a {self.type}",
            )

    @property
    def result(self) -> Type:
        return decimal(DIGITS, self.type.scale)

    @property
    def product(self) -> pa.DataType:
        """What holds any value of the column times a weight."""
        digits = self.type.precision + _WEIGHT_DIGITS + 1
        return pa.decimal128(digits, self.type.scale) if digits <= DIGITS else pa.decimal256(digits, self.type.scale)


@dataclass(frozen=True)
class Aggregate:
    """count(*) and some sums. ``where`` names the view in errors."""

    count: str
    sums: tuple[Sum, ...] = ()
    where: str = ""

    @functools.cached_property
    def accumulators(self) -> dict[str, Type]:
        """What a group remembers: names and types, in order."""
        found = {"n": BIGINT}
        for i, total in enumerate(self.sums):
            found |= {f"f{i}": BIGINT, f"s{i}": total.result}
        return found

    @functools.cached_property
    def visible(self) -> dict[str, Type]:
        """What a reader sees of a group, apart from its key."""
        return {self.count: BIGINT} | {total.name: total.result for total in self.sums}

    # -------------------------------------------------------------- changes → partials

    def partial(self, keys: Bytes, changes: pa.Table) -> pa.Table:
        """The effect of changes on each group: one row per key, with accumulators to add."""
        weights = _one(changes[WEIGHT])
        columns = {KEY: keys, "n": weights}
        for i, total in enumerate(self.sums):
            values = _one(changes[total.column])
            columns[f"f{i}"] = pc.if_else(pc.is_valid(values), weights, pa.scalar(0, pa.int64()))
            columns[f"s{i}"] = pc.fill_null(_times(values, weights, total.product), pa.scalar(0, total.product))
        return self.combine([pa.table(columns)])

    def combine(self, partials: Sequence[pa.Table]) -> pa.Table:
        """The sum of partials: keys distinct and sorted, groups that do not change left out."""
        names = list(self.accumulators)
        grouped = pa.concat_tables(partials).group_by(KEY, use_threads=False).aggregate([(n, "sum") for n in names])
        sums = [self._narrowed(grouped[f"{name}_sum"], kind, grouped[KEY]) for name, kind in self.accumulators.items()]
        found = pa.table([grouped[KEY], *sums], names=[KEY, *names])
        found = found.filter(functools.reduce(pc.or_, [pc.not_equal(_one(found[name]), 0) for name in names]))
        return found.sort_by(KEY)

    # -------------------------------------------------------------- partials → new state

    def step(self, before: Sequence[pa.Array], delta: pa.Table) -> Step:
        """The new state of groups: ``before`` holds their accumulators as of the last epoch,
        null where a group was not there, ``delta`` what :meth:`combine` gave."""
        keys = _one(delta[KEY])
        after = [
            self._sum(old, _one(delta[name]), kind, keys)
            for old, (name, kind) in zip(before, self.accumulators.items(), strict=True)
        ]
        counts = after[0].to_numpy()
        stays: Mask = counts > 0
        self._check(keys, counts, after)
        return Step(self, keys, tuple(before), tuple(after), pc.is_valid(before[0]).to_numpy(False), stays)

    def _check(self, keys: Bytes, counts: npt.NDArray[np.int64], after: Sequence[pa.Array]) -> None:
        """A group without rows has nothing left, and no group has less than nothing."""
        wrong = counts < 0
        for i in range(len(self.sums)):
            filled, total = after[1 + 2 * i].to_numpy(), pc.not_equal(after[2 + 2 * i], 0).to_numpy(False)
            wrong |= (filled < 0) | (filled > counts) | ((filled == 0) & total)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            left = {name: column[row].as_py() for name, column in zip(self.accumulators, after, strict=True)}
            raise DamagedEntryError(
                f"{self.where or 'an aggregate'}: the group with the key {keys[row].as_py().hex()} does not add up",
                detail=f"its changes would leave {left}",
                hint="its state or the log is damaged: rebuild the view",
            )

    def _sum(self, old: pa.Array, new: pa.Array, kind: Type, keys: Bytes) -> pa.Array:
        if kind.kind is not Kind.DECIMAL:
            return pc.add_checked(pc.fill_null(old, 0), new)
        wide = pa.decimal256(DIGITS, kind.scale)
        return self._narrowed(pc.add(pc.fill_null(old, pa.scalar(0, old.type)).cast(wide), new.cast(wide)), kind, keys)

    def _narrowed(self, column: pa.Array | pa.ChunkedArray, kind: Type, keys: Bytes | pa.ChunkedArray) -> pa.Array:
        values = _one(column)
        try:
            return values.cast(kind.arrow)
        except pa.ArrowInvalid as error:
            limit = Decimal(10) ** (DIGITS - kind.scale)
            row = next(i for i, value in enumerate(values.to_pylist()) if abs(value) >= limit)
            raise ValueTypeError(
                f"{self.where or 'an aggregate'}: a sum of the group with the key {keys[row].as_py().hex()} "
                f"does not fit a {kind}",
                hint="sum a smaller part, or columns of a smaller scale",
            ) from error

    def shown(self, accumulators: Sequence[pa.Array]) -> list[pa.Array]:
        """The visible columns of groups."""
        columns = [accumulators[0]]
        for i in range(len(self.sums)):
            filled, total = accumulators[1 + 2 * i], accumulators[2 + 2 * i]
            columns.append(pc.if_else(pc.greater(filled, 0), total, pa.scalar(None, total.type)))
        return columns


@dataclass(frozen=True)
class Step:
    """Groups before and after an epoch: equally long columns, keys sorted."""

    aggregate: Aggregate
    keys: Bytes
    before: tuple[pa.Array, ...]
    after: tuple[pa.Array, ...]
    was: Mask
    stays: Mask

    def changes(self) -> pa.Table:
        """What the step does to the view: the old row of each group −1, the new one +1."""
        parts = []
        for rows, there, weight in ((self.before, self.was, -1), (self.after, self.stays, 1)):
            shown = dict(zip(self.aggregate.visible, self.aggregate.shown(rows), strict=True))
            weights = pa.array(np.full(len(there), weight, np.int64))
            parts.append(pa.table({KEY: self.keys} | shown | {WEIGHT: weights}).filter(pa.array(there)))
        return pa.concat_tables(parts)


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _times(values: pa.Array, weights: pa.Array, product: pa.DataType) -> pa.Array:
    narrow = pa.types.is_decimal128(product)
    factor = (pa.decimal128 if narrow else pa.decimal256)(_WEIGHT_DIGITS, 0)
    wide = values if narrow else values.cast(pa.decimal256(values.type.precision, values.type.scale))
    return pc.multiply(wide, weights.cast(factor))
