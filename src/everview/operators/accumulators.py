"""Counts, sums and averages that are added to and taken from.

An accumulator is one column of a group's record that can be added, in any order
and any number of parts, and taken away again without a trace; results are read off it::

    record of a group, as of E  =  record as of E−1  +  Σ weight · (1, x is there, x)

The same addition serves three times: from changes to a partial (before the shuffle, so that a
group travels once per task), from partials to one (after it), and onto the state::

    count of x      partial([x, null, y], [+1, +1, −1])           1 − 1  =  0
    sum of x        partial([2.5, null, 0.5], [+1, +1, −1])       2.5 − 0.5  =  2.0

    >>> from everview.operators.results import result
    >>> kept = accumulator("sum", BIGINT)
    >>> state = kept.partial(pa.array([5, None, 7]), np.array([1, 1, 1]), np.array([0, 0, 1]), 2)
    >>> taken = kept.partial(pa.array([5]), np.array([-1]), np.array([0]), 2)
    >>> after = kept.add(state, taken)
    >>> kept.is_zero(after)
    array([ True, False])
    >>> result("avg", BIGINT, after, pa.array([0, 1])).values.to_pylist()
    [None, 7.0]

| accumulator | column | of |
|---|---|---|
| count | BIGINT | rows, or rows whose argument is not null |
| sum | HUGEINT, DECIMAL(38, s) | BOOLEAN, integers of up to 64 bits, DECIMAL of up to 18 digits |
| sum | BIGNUM | BIGNUM |
| sum | BLOB | HUGEINT, wider DECIMAL, REAL, DOUBLE, UHUGEINT |

Equal multisets of rows leave equal columns, byte for byte. What a result means, and where it
has none, stands in :mod:`everview.operators.results`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import BIGINT, BLOB, FLOATS, Kind, Type
from everview.errors import DefinitionError
from everview.operators.exact_sum import ExactSum
from everview.operators.limbs import Groups, Ints, Mask
from everview.operators.whole_sums import BignumSum, NarrowSum, WideSum
from everview.plan.relations.groups import kept_as


class Accumulator(Protocol):
    """One column of a group's record. Group numbers are 0 … count − 1; a group that no row has
    the number of gets a zero."""

    @property
    def type(self) -> Type:
        """The column's type."""

    def partial(self, values: pa.Array, weights: Ints, groups: Groups, count: int) -> pa.Array:
        """The weighted sums by group of a column of the argument; nulls are nothing. A count of
        all rows takes None for the column."""

    def add(self, a: pa.Array, b: pa.Array) -> pa.Array:
        """The sums of two columns, row by row; null is zero."""

    def combine(self, column: pa.Array, groups: Groups, count: int) -> pa.Array:
        """The sums of a column by group; null is zero."""

    def is_zero(self, column: pa.Array) -> Mask:
        """Where a column is zero, or null."""


@dataclass(frozen=True)
class Count:
    """The rows, or the rows whose argument is not null. ``values`` may be None for all rows."""

    type: Type = BIGINT

    def partial(self, values: pa.Array | None, weights: Ints, groups: Groups, count: int) -> pa.Array:
        if values is not None and values.null_count:
            weights = np.where(values.is_valid().to_numpy(zero_copy_only=False), weights, 0)
        return self._by_group(weights, groups, count)

    def add(self, a: pa.Array, b: pa.Array) -> pa.Array:
        return pc.add(a.fill_null(0), b.fill_null(0))

    def combine(self, column: pa.Array, groups: Groups, count: int) -> pa.Array:
        return self._by_group(column.fill_null(0).to_numpy(), groups, count)

    def is_zero(self, column: pa.Array) -> Mask:
        found: Mask = column.fill_null(0).to_numpy() == 0
        return found

    def _by_group(self, numbers: Ints, groups: Groups, count: int) -> pa.Array:
        found = np.zeros(count, np.int64)
        np.add.at(found, groups, numbers)
        return pa.array(found)


Sum: TypeAlias = NarrowSum | WideSum | BignumSum | ExactSum


def accumulator(function: str, argument: Type | None) -> Accumulator:
    """What keeps ``count`` or ``sum`` of an argument of this type; only a count may have none."""
    if function == "count":
        return Count()
    if function != "sum" or argument is None:
        raise DefinitionError(f"{function}({argument or '*'}) is not a sum", hint="keep count and sum of the argument")
    return sum_of(argument)


@functools.cache
def sum_of(argument: Type) -> Sum:
    """What keeps sums of this type."""
    column = kept_as(argument)
    if column is None:
        raise DefinitionError(
            f"sums of {argument} are not kept", detail="their groups are evaluated again whenever they change"
        )
    if argument.kind in FLOATS or argument.kind is Kind.UHUGEINT:
        return ExactSum(argument)
    if argument.kind is Kind.BIGNUM:
        return BignumSum()
    return WideSum(argument) if column == BLOB else NarrowSum(argument, column)
