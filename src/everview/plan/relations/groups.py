"""What brings rows together: aggregates, and distinct rows.

**What sums are kept as.** A sum is kept in a column that holds every sum of values of the argument's type,
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

from dataclasses import dataclass
from functools import cached_property

from everview.change.types import BIGNUM, BLOB, HUGEINT, INTEGERS, Kind, Type, decimal
from everview.errors import DefinitionError
from everview.plan.expressions import Definition, Field, of_field
from everview.plan.relations.calls import Call
from everview.plan.relations.relation import OverOne


@dataclass(frozen=True)
class Aggregate(OverOne):
    """Groups of rows and what is computed of each. Without group columns there is one group,
    which is there even over nothing."""

    groups: tuple[Definition, ...]
    calls: tuple[Call, ...]
    sets: tuple[tuple[int, ...], ...] = ()
    """Grouping sets, as numbers of group columns; none: all columns."""
    set_number: Field | None = None
    """Where there are several sets: which one a row belongs to, from 0, hidden."""
    title = "aggregate"

    def __post_init__(self) -> None:
        self._check_reads([expression for _, expression in self.groups], self.input)
        self._check_reads([read for call in self.calls for read in call.reads], self.input)
        if (len(self.sets) > 1) != (self.set_number is not None):
            raise DefinitionError("an aggregate with several grouping sets numbers them")
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        number = (self.set_number,) if self.set_number else ()
        return (*(field for field, _ in self.groups), *(call.field for call in self.calls), *number)

    @cached_property
    def key(self) -> tuple[str, ...]:
        number = (self.set_number.name,) if self.set_number else ()
        return (*(field.name for field, _ in self.groups), *number)

    def description(self) -> str:
        groups = ", ".join(str(f) if e == of_field(f) else f"{e} AS {f}" for f, e in self.groups)
        if self.sets:
            groups += " IN SETS " + ", ".join(f"({', '.join(str(n + 1) for n in one)})" for one in self.sets)
        calls = ", ".join(str(call) for call in self.calls)
        return f"{calls} BY {groups or 'nothing'}" if calls else f"BY {groups}"


@dataclass(frozen=True)
class Distinct(OverOne):
    """Each combination of the shown fields once."""

    title = "distinct"

    def __post_init__(self) -> None:
        self._check()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return self.input.shown

    @cached_property
    def key(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)


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
