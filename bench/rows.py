"""Reading rows of figures, for the sentences that are made of them.

A sentence needs some rows and some numbers in them, and where one is missing, since its result was
wrong or the run was a quick one, the sentence is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.experiment import Row, Value


class Missing(LookupError):
    """There is no such row, or no such number in it."""


def row_of(rows: Sequence[Row], **wanted: Value) -> Row:
    """The first row with these values."""
    for row in rows:
        if all(row.get(name) == value for name, value in wanted.items()):
            return row
    raise Missing(f"no row has {wanted}")


def number(row: Row, column: str) -> float:
    """A number of a row."""
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Missing(f"{column} is {value!r}")
    return value


def numbers(rows: Sequence[Row], column: str) -> list[float]:
    """The numbers in a column, at least one."""
    found = [number(row, column) for row in rows if row.get(column) is not None]
    if not found:
        raise Missing(f"no row has a {column}")
    return found


def times(ratio: float) -> str:
    """A ratio in words: ``2.5 times``."""
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:,.0f} times"


def seconds(value: float) -> str:
    """A time in words, to three digits: ``12 µs``, ``190 ms``, ``4.2 s``."""
    for unit, size in (("µs", 1e-6), ("ms", 1e-3)):
        if value < 999.5 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} s" if value < 100 else f"{value:,.0f} s"
