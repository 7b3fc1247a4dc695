"""Values of DuckDB's answers that Python or Arrow cannot hold as they are.

What DuckDB answers is read as Python's values or as Arrow, and both count intervals otherwise
than DuckDB does.

**Python** has no value for an INTERVAL of millions of years: then the rows are texts (:func:`fetched`).

**Arrow** counts the time of an INTERVAL in nanoseconds and DuckDB in microseconds, so what has more
than 2,562,047 hours of time would silently become another value on the way: its whole days are counted as days.

    >>> import duckdb
    >>> query = carried("SELECT to_hours(2562049)", [parse_type("INTERVAL")])
    >>> duckdb.sql(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query})").fetchall()
    [('106752 days 01:00:00',)]

The interval that comes out equals the one that went in: to SQL a day is 24 hours, and a month is 30 days. Where there
are more days than an INTERVAL holds, they are counted as months; with more months than it holds it is DuckDB's error.

**Nested values** are taken apart, their scalars replaced, and put together again, nulls where they were.

    >>> replaced_leaves("x", parse_type("BIT[]"), {Kind.BIT: "CAST({} AS VARCHAR)".format})
    'list_transform(x, lambda v0: CAST(v0 AS VARCHAR))'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb

from everview.change.types import Kind, Type


def fetched(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query as Python's values, or all as texts."""
    try:
        return connection.execute(sql).fetchall()
    except (OverflowError, ValueError):
        return connection.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({sql})").fetchall()


# ------------------------------------------------------------------ for Arrow

MOST_HOURS = (1 << 63) // 3_600_000_000_000
"""Hours whose nanoseconds Arrow counts."""
_MOST_DAYS = (1 << 31) - 1


def carried(query: str, kinds: Sequence[Type]) -> str:
    """The query, whose columns have these types, with such intervals in a form that Arrow holds."""
    if not any(has_leaves(kind, _CARRIED) for kind in kinds):
        return query
    names = [f"c{at}" for at, _ in enumerate(kinds)]
    columns = ", ".join(
        f"{replaced_leaves(name, kind, _CARRIED)} AS {name}" for name, kind in zip(names, kinds, strict=True)
    )
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


# ------------------------------------------------------------------ nested values

Replacements = Mapping[Kind, Callable[[str], str]]
"""What makes of the text of a scalar the text of what it becomes."""


def has_leaves(kind: Type, of: Replacements) -> bool:
    """Whether values of the type hold a scalar that is replaced."""
    return kind.kind in of or any(has_leaves(child, of) for _, child in kind.children)


def replaced_leaves(sql: str, kind: Type, by: Replacements, depth: int = 0) -> str:
    """The expression with such scalars replaced. An array comes out as a list."""
    if not has_leaves(kind, by):
        return sql
    if kind.kind in by:
        return by[kind.kind](sql)
    item = f"v{depth}"
    if kind.kind is Kind.STRUCT:
        fields = ", ".join(
            f"{_quoted(name)} := {replaced_leaves(f'struct_extract({sql}, {_text(name)})', child, by, depth)}"
            for name, child in kind.children
        )
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({fields}) END"
    if kind.kind is Kind.TUPLE:
        parts = [
            replaced_leaves(f"struct_extract_at({sql}, {name})", child, by, depth) for name, child in kind.children
        ]
        return f"CASE WHEN {sql} IS NOT NULL THEN row({', '.join(parts)}) END"
    if kind.kind is Kind.MAP:
        (_, key), (_, value) = kind.children
        parts = [
            replaced_leaves(f"struct_extract({item}, '{name}')", child, by, depth + 1)
            for name, child in (("key", key), ("value", value))
        ]
        entries = f"list_transform(map_entries({sql}), lambda {item}: struct_pack(k := {parts[0]}, v := {parts[1]}))"
        return f"CASE WHEN {sql} IS NOT NULL THEN map_from_entries({entries}) END"
    items = f"CAST({sql} AS {kind.item}[])" if kind.kind is Kind.ARRAY else sql
    return f"list_transform({items}, lambda {item}: {replaced_leaves(item, kind.item, by, depth + 1)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


_CARRIED: Replacements = {Kind.INTERVAL: _with_days}
