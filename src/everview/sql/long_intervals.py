"""Intervals of more hours than Arrow counts.

One sentence: DuckDB counts the time of an INTERVAL in microseconds and Arrow in nanoseconds, so what has more
than 2,562,047 hours of time would silently become another value on the way: its whole days are counted as days.

    >>> connect().sql(carried("SELECT to_hours(2562048) AS i", [parse_type("INTERVAL")])).fetchall()
    [(datetime.timedelta(days=106752),)]

The interval that comes out equals the one that went in: to SQL a day is 24 hours. One with more days than
an INTERVAL holds is DuckDB's error.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.change.types import Kind, Type

MOST_HOURS = (1 << 63) // 3_600_000_000_000
"""Hours whose nanoseconds Arrow counts."""


def carried(query: str, kinds: Sequence[Type]) -> str:
    """The query, whose columns have these types, with such intervals in a form that Arrow holds."""
    if not any(map(_has_intervals, kinds)):
        return query
    names = [f"c{at}" for at, _ in enumerate(kinds)]
    columns = ", ".join(f"{_carried(name, kind)} AS {name}" for name, kind in zip(names, kinds, strict=True))
    return f"SELECT {columns} FROM ({query}) AS found({', '.join(names)})"


def _has_intervals(kind: Type) -> bool:
    return kind.kind is Kind.INTERVAL or any(_has_intervals(child) for _, child in kind.children)


def _carried(sql: str, kind: Type, depth: int = 0) -> str:
    if not _has_intervals(kind):
        return sql
    if kind.kind is Kind.INTERVAL:
        hours = f"extract('hour' FROM {sql})"
        days = f"({hours} // 24)"
        whole = f"{sql} - to_hours(24 * {days}) + to_days(CAST({days} AS INTEGER))"
        return f"CASE WHEN abs({hours}) >= {MOST_HOURS} THEN {whole} ELSE {sql} END"
    item = f"v{depth}"
    if kind.kind is Kind.STRUCT:
        fields = ", ".join(
            f"{_quoted(name)} := {_carried(f'struct_extract({sql}, {_text(name)})', child, depth)}"
            for name, child in kind.children
        )
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({fields}) END"
    if kind.kind is Kind.MAP:
        (_, key), (_, value) = kind.children
        parts = _carried(f"{item}.key", key, depth + 1), _carried(f"{item}.value", value, depth + 1)
        entry = f"struct_pack(k := {parts[0]}, v := {parts[1]})"
        made = f"map_from_entries(list_transform(map_entries({sql}), lambda {item}: {entry}))"
        return f"CASE WHEN {sql} IS NOT NULL THEN {made} END"
    return f"list_transform({sql}, lambda {item}: {_carried(item, kind.item, depth + 1)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
