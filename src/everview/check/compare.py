"""Two bags of rows compared, in columns.

What stands in one bag oftener than in the other is missing or extra, and a missing and an
extra row with one key are one row that differs.

Values are equal where DuckDB takes them for equal: NaN equals NaN, 0.0 equals -0.0, 1 month equals 30
days, null equals null, also inside lists, structs and maps; decimals are compared digit by digit.
Floating-point numbers that are computed from many rows depend on the order of additions in their last
digits: where a query aggregates, they are equal if they agree in :data:`DIGITS` digits.

::

    expected                found                   only expected     only found     reported
    key 1  n 5              key 1  n 5
    key 2  n 7              key 2  n 8              2, 7              2, 8           differing 2
    key 3  n 9                                      3, 9                             missing 3
                            key 4  n 1                                4, 1           extra 4
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import duckdb

from everview.change.schema import Column
from everview.change.types import Kind, Type
from everview.check.report import Difference
from everview.sql.result_values import fetched

DIGITS = 9
"""In which computed DOUBLEs agree; half as many of a REAL."""

_MISSING, _EXTRA, _PAIRS = "temp.__missing", "temp.__extra", "temp.__pairs"


@dataclass(frozen=True)
class Compared:
    """How two bags of rows differ."""

    rows: int
    """That were found."""
    missing: int = 0
    extra: int = 0
    differing: int = 0
    first: tuple[Difference, ...] = ()

    @property
    def differs(self) -> bool:
        return bool(self.missing or self.extra or self.differing)


@dataclass(frozen=True)
class Comparison:
    """What is compared, and how."""

    columns: Sequence[Column]
    key: Sequence[str] | None
    """The columns that distinguish rows; None: nothing that is shown does."""
    exact: bool = True
    """Floating-point numbers agree in all digits."""
    samples: int = 20
    """How many differences of each kind are named."""

    def of(self, connection: duckdb.DuckDBPyConnection, expected: str, found: str) -> Compared:
        """Compare two relations of a connection."""
        names = ", ".join(quoted(column.name) for column in self.columns)
        try:
            for table, these, those in ((_MISSING, expected, found), (_EXTRA, found, expected)):
                difference = f"SELECT {names} FROM {these} EXCEPT ALL SELECT {names} FROM {those}"
                connection.execute(f"CREATE TEMP TABLE {_bare(table)} AS {difference}")
            rows = _number(connection, f"SELECT count(*) FROM {found}")
            missing, extra = (_number(connection, f"SELECT count(*) FROM {table}") for table in (_MISSING, _EXTRA))
            if not missing and not extra:
                return Compared(rows)
            self._pair(connection)
            close = _number(connection, f"SELECT count(*) FROM {_PAIRS} WHERE close")
            differing = _number(connection, f"SELECT count(*) FROM {_PAIRS} WHERE NOT close")
            gone = close + differing
            return Compared(rows, missing - gone, extra - gone, differing, tuple(self._first(connection)))
        finally:
            for table in (_MISSING, _EXTRA, _PAIRS):
                connection.execute(f"DROP TABLE IF EXISTS {table}")

    @cached_property
    def _floats(self) -> list[Column]:
        return [] if self.exact else [column for column in self.columns if _has_floats(column.type)]

    def _pair(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Missing and extra rows that are one row. Without a key that is so only where nothing but
        the last digits of computed numbers differs."""
        keyed = self.key is not None
        by = list(self.key or ()) if keyed else [c.name for c in self.columns if c not in self._floats]
        partition = f"PARTITION BY {', '.join(map(quoted, by))}" if by else ""
        order = f"ORDER BY {', '.join(quoted(column.name) for column in self._floats)}" if self._floats else ""
        sides = [
            f"(SELECT *, rowid AS __place, row_number() OVER ({partition} {order}) AS __n FROM {table})"
            for table in (_MISSING, _EXTRA)
        ]
        equal = [f"m.{quoted(name)} IS NOT DISTINCT FROM e.{quoted(name)}" for name in by]
        both = f"{sides[0]} AS m JOIN {sides[1]} AS e ON {' AND '.join(['m.__n = e.__n', *equal])}"
        close = " AND ".join(f"({self._same(column)})" for column in self.columns)
        chosen = f"SELECT m.__place AS m, e.__place AS e, {close} AS close FROM {both}"
        connection.execute(f"CREATE TEMP TABLE {_bare(_PAIRS)} AS FROM ({chosen}) WHERE close OR {str(keyed).lower()}")

    def _same(self, column: Column) -> str:
        one, other = f"m.{quoted(column.name)}", f"e.{quoted(column.name)}"
        return _close(column.type, one, other) if column in self._floats else f"{one} IS NOT DISTINCT FROM {other}"

    def _first(self, connection: duckdb.DuckDBPyConnection) -> Iterator[Difference]:
        names = [column.name for column in self.columns]
        key = list(names if self.key is None else self.key)
        order = f" ORDER BY {', '.join(map(quoted, key))}" if key else ""
        for kind, table, side in (("missing", _MISSING, "m"), ("extra", _EXTRA, "e")):
            rest = f"SELECT * FROM {table} WHERE rowid NOT IN (SELECT {side} FROM {_PAIRS})"
            for values in fetched(connection, f"{rest}{order} LIMIT {self.samples}"):
                row = dict(zip(names, values, strict=True))
                row_of = {"expected": row} if kind == "missing" else {"shown": row}
                yield Difference(kind, {name: row[name] for name in key}, **row_of)
        both = [f"{side}.{quoted(name)}" for side in "me" for name in names]
        same = [f"({self._same(column)})" for column in self.columns]
        pairs = f"{_PAIRS} AS p JOIN {_MISSING} AS m ON m.rowid = p.m JOIN {_EXTRA} AS e ON e.rowid = p.e"
        order = f" ORDER BY {', '.join(f'm.{quoted(name)}' for name in key)}" if key else ""
        asked = f"SELECT {', '.join([*both, *same])} FROM {pairs} WHERE NOT p.close{order} LIMIT {self.samples}"
        for values in fetched(connection, asked):
            expected, shown, equal = (values[at * len(names) : (at + 1) * len(names)] for at in range(3))
            row = dict(zip(names, expected, strict=True))
            other = [name for name, is_same in zip(names, equal, strict=True) if is_same not in (True, "true")]
            found = dict(zip(names, shown, strict=True))
            yield Difference(
                "differing",
                {name: row[name] for name in key},
                shown={name: found[name] for name in other},
                expected={name: row[name] for name in other},
            )


def _bare(name: str) -> str:
    return name.partition(".")[2]


def _number(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    found = connection.execute(sql).fetchone()
    assert found is not None
    return int(found[0])


def _has_floats(kind: Type) -> bool:
    if kind.kind in (Kind.LIST, Kind.STRUCT):
        return any(_has_floats(child) for _, child in kind.children)
    return kind.kind in (Kind.DOUBLE, Kind.REAL)


def _close(kind: Type, one: str, other: str) -> str:
    """Whether two values agree in as many digits as they are computed to; never null."""
    equal = f"{one} IS NOT DISTINCT FROM {other}"
    if not _has_floats(kind):
        return equal
    if kind.kind is Kind.LIST:
        inner = _close(kind.item, "pair[1]", "pair[2]")
        each = f"list_bool_and(list_transform(list_zip({one}, {other}), lambda pair: {inner}))"
        return f"({equal} OR coalesce(len({one}) = len({other}) AND {each}, false))"
    if kind.kind is Kind.STRUCT:
        parts = [
            _close(child, *(f"struct_extract({side}, {_literal(name)})" for side in (one, other)))
            for name, child in kind.children
        ]
        there = f"{one} IS NOT NULL AND {other} IS NOT NULL"
        return f"({equal} OR ({there} AND {' AND '.join(parts)}))"
    digits = DIGITS if kind.kind is Kind.DOUBLE else DIGITS // 2
    a, b = f"CAST({one} AS DOUBLE)", f"CAST({other} AS DOUBLE)"
    near = f"isfinite({a}) AND isfinite({b}) AND abs({a} - {b}) <= 1e-{digits} * greatest(abs({a}), abs({b}))"
    return f"({equal} OR coalesce({near}, false))"


def quoted(name: str) -> str:
    """A name as it stands in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
