"""What SUM and AVG show of an accumulator.

A result is what DuckDB answers for the rows that are there, except that no order
of the rows can make a difference, and a sum that does not fit its type is reported for its
group alone.

| argument | SUM | AVG |
|---|---|---|
| BOOLEAN | HUGEINT | |
| integers of up to 64 bits, HUGEINT | HUGEINT | DOUBLE |
| DECIMAL(p, s) | DECIMAL(38, s) | DOUBLE |
| BIGNUM | BIGNUM | |
| REAL, DOUBLE, UHUGEINT | DOUBLE | DOUBLE |
| TIME, TIMESTAMP, TIMESTAMPTZ | | the same |

NULL where no row has a value.

**Integers and decimals.** DuckDB fails where any sum on the way leaves HUGEINT; here only the
sum of all rows counts, for it is all that does not depend on their order. Where it does not fit
a HUGEINT the group has neither SUM nor AVG until rows are taken away, and no SUM where it does
not fit the 38 digits of a DECIMAL.

AVG is DuckDB's to the last bit, which is not always the nearest DOUBLE: the sum becomes a C
``long double``, the count times 10^s another, and their quotient, rounded once for each, a
DOUBLE. Types that DuckDB holds in 16 bits (SMALLINT and below, DECIMAL of up to 4 digits) are
divided as DOUBLE instead. numpy's longdouble is C's on the machine at hand, as DuckDB's is.

The average of moments is the quotient in whole microseconds, rounded as DuckDB does it: to the
nearest, halves down, after 1970, and up before.

**Floating point.** SUM is the exact sum, rounded once, as ``math.fsum`` gives it; AVG is that
divided by the count. What is not finite goes as in IEEE 754, and in DuckDB: with a NaN, or with
both infinities, the sum is NaN, with one infinity it is that one. A finite sum beyond the
greatest DOUBLE is an infinity, not an error, as in DuckDB (which finds one as soon as a sum on
the way is; here only the sum of all rows counts). Zero is never −0.0, as sums start from 0.0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import BIGNUM, DOUBLE, HUGEINT, Kind, Type, decimal
from everview.errors import DefinitionError
from everview.operators.accumulators import sum_of
from everview.operators.exact_sum import ExactSum, Floats
from everview.operators.limbs import Ints, Mask
from everview.operators.whole_sums import BignumSum, Words, column_of, outside_digits
from everview.plan.relations.groups import MOMENTS

_SMALL = frozenset({Kind.TINYINT, Kind.UTINYINT, Kind.SMALLINT})
_SMALL_DIGITS = 4


@dataclass(frozen=True)
class AggregateResult:
    """A column of results, null where a group has none, and which groups have none because
    their sum does not fit the type, for the reason of ``message``."""

    values: pa.Array
    overflow: Mask
    message: str


def sum_type(argument: Type) -> Type:
    """The type of a SUM."""
    if isinstance(sum_of(argument), ExactSum):
        return DOUBLE
    if argument.kind is Kind.BIGNUM:
        return BIGNUM
    return decimal(38, argument.scale) if argument.kind is Kind.DECIMAL else HUGEINT


def result(function: str, argument: Type, total: pa.Array, count: pa.Array) -> AggregateResult:
    """``sum``, ``avg`` or ``mean`` of groups: of the accumulated sums, and counts of what is not null."""
    if function not in ("sum", "avg", "mean"):
        raise DefinitionError(f"{function}({argument}) is not read off a sum")
    kept = sum_of(argument)
    counts = count.fill_null(0).to_numpy()
    nothing: Mask = counts == 0
    message = f"the sum of {argument} does not fit a {sum_type(argument)}"
    if isinstance(kept, ExactSum):
        floats = kept.rounded(total)
        if function != "sum":
            floats = np.divide(floats, counts, out=floats, where=~nothing)
        return AggregateResult(
            pa.array(floats, mask=nothing, from_pandas=False), np.zeros(len(counts), np.bool_), message
        )
    if isinstance(kept, BignumSum):
        sums = pc.if_else(pa.array(nothing), pa.scalar(None, pa.binary()), total.storage)
        exact = pa.ExtensionArray.from_storage(BIGNUM.arrow, sums)
        return AggregateResult(exact, np.zeros(len(counts), np.bool_), message)
    words, overflow = kept.words(total)
    if function == "sum" and argument.kind is Kind.DECIMAL:
        overflow = overflow | outside_digits(words)
    overflow = overflow & ~nothing
    absent = nothing | overflow
    if function == "sum":
        return AggregateResult(column_of(words, sum_type(argument), absent), overflow, message)
    if argument.kind in MOMENTS:
        moments = pa.array(_microseconds(words, counts), mask=absent).cast(argument.arrow)
        return AggregateResult(moments, overflow, message)
    return AggregateResult(pa.array(_quotients(words, counts, argument), mask=absent), overflow, message)


def _quotients(words: Words, counts: Ints, argument: Type) -> Floats:
    low, high = words
    counts = np.maximum(counts, 1)
    scale = float(10**argument.scale)
    if argument.kind in _SMALL or (argument.kind is Kind.DECIMAL and argument.precision <= _SMALL_DIGITS):
        return low.view(np.int64).astype(np.float64) / (counts.astype(np.float64) * scale)
    wide = np.longdouble
    negative = -((~low).astype(wide)) - wide(1)
    sums = np.where(high == -1, negative, low.astype(wide) + high.astype(wide) * wide(2) ** 64)
    found: Floats = (sums / (counts.astype(wide) * wide(scale))).astype(np.float64)
    return found


def _microseconds(words: Words, counts: Ints) -> Ints:
    low, high = words
    counts = np.maximum(counts, 1)
    negative = high < 0
    low = np.where(negative, ~low + np.uint64(1), low)
    high = np.where(negative, ~high + (low == 0), high)
    wide = np.longdouble
    near = ((low.astype(wide) + high.astype(wide) * wide(2) ** 64) / counts.astype(wide)).astype(np.int64)
    # Off by a few at most: what is left is far below 2^63, so its low word is enough.
    rest = low.view(np.int64) - near * counts
    quotient, rest = near + rest // counts, rest % counts
    found: Ints = np.where(negative, -quotient, quotient + (rest > counts // 2))
    return found
