"""What sums are kept as.

A sum is kept in a column that holds every sum of values of the argument's type,
whatever the number of rows, so that taking rows away again always leaves the exact sum.

| argument | kept as | why it is enough |
|---|---|---|
| BOOLEAN, integers of up to 64 bits | HUGEINT | 2^64 times 2^63 rows are 127 bits |
| TIME, TIMESTAMP, TIMESTAMPTZ | HUGEINT | for AVG: 64 bits of microseconds |
| DECIMAL of up to 18 digits | DECIMAL(38, scale) | 10^18 times 2^63 rows have 37 digits |
| HUGEINT, wider DECIMAL | BLOB | as many digits as it takes |
| BIGNUM | BIGNUM | as many digits as it takes |
| REAL, DOUBLE, UHUGEINT | BLOB | as many digits as it takes; DuckDB adds UHUGEINT as DOUBLE |

The averages of DATE and INTERVAL have no such column: their groups are evaluated again.
"""

from __future__ import annotations

from everview.change.types import BIGNUM, BLOB, HUGEINT, INTEGERS, Kind, Type, decimal

NARROW_DIGITS = 18
MOMENTS = frozenset({Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ})
"""Kinds that are counts of microseconds."""


def kept_as(argument: Type) -> Type | None:
    """The column that keeps sums of these; None where sums are not kept."""
    match argument.kind:
        case Kind.DECIMAL if argument.precision <= NARROW_DIGITS:
            return decimal(38, argument.scale)
        case Kind.DECIMAL | Kind.HUGEINT | Kind.UHUGEINT | Kind.REAL | Kind.DOUBLE:
            return BLOB
        case Kind.BIGNUM:
            return BIGNUM
        case kind if kind is Kind.BOOLEAN or kind in INTEGERS or kind in MOMENTS:
            return HUGEINT
    return None
