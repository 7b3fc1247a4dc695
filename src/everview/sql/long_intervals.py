"""Intervals of more hours than Arrow counts.

DuckDB counts the time of an INTERVAL in microseconds and Arrow in nanoseconds, so what has more
than 2,562,047 hours of time would silently become another value on the way: its whole days are counted as days.

    >>> import duckdb
    >>> query = carried("SELECT to_hours(2562049)", [parse_type("INTERVAL")])
    >>> duckdb.sql(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query})").fetchall()
    [('106752 days 01:00:00',)]

The interval that comes out equals the one that went in: to SQL a day is 24 hours, and a month is 30 days. Where there
are more days than an INTERVAL holds, they are counted as months; with more months than it holds it is DuckDB's error.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.change.types import Kind, Type
from everview.sql.leaves import Replacements, has_leaves, replaced

MOST_HOURS = (1 << 63) // 3_600_000_000_000
"""Hours whose nanoseconds Arrow counts."""
_MOST_DAYS = (1 << 31) - 1


def carried(query: str, kinds: Sequence[Type]) -> str:
    """The query, whose columns have these types, with such intervals in a form that Arrow holds."""
    if not any(has_leaves(kind, _CARRIED) for kind in kinds):
        return query
    names = [f"c{at}" for at, _ in enumerate(kinds)]
    columns = ", ".join(f"{replaced(name, kind, _CARRIED)} AS {name}" for name, kind in zip(names, kinds, strict=True))
    return f"SELECT {columns} FROM ({query}) AS found({', '.join(names)})"


def _with_days(sql: str) -> str:
    hours = f"extract('hour' FROM {sql})"
    days = f"({hours} // 24)"
    whole = f"{sql} - to_hours(24 * {days}) + to_days(CAST({days} AS INTEGER))"
    more = f"(extract('day' FROM {sql}) + {days})"
    time = f"{sql} - to_hours(24 * {days}) - to_days(CAST(extract('day' FROM {sql}) AS INTEGER))"
    as_months = f"{time} + to_months(CAST({more} // 30 AS INTEGER)) + to_days(CAST({more} % 30 AS INTEGER))"
    fits = f"{more} BETWEEN {-_MOST_DAYS - 1} AND {_MOST_DAYS}"
    return f"CASE WHEN abs({hours}) < {MOST_HOURS} THEN {sql} WHEN {fits} THEN {whole} ELSE {as_months} END"


_CARRIED: Replacements = {Kind.INTERVAL: _with_days}
