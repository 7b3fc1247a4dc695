"""Python values and pandas columns of results, as DuckDB's own conversions produce them.

``rows()`` returns the values of DuckDB's ``fetchall()`` and ``df()`` those of its ``df()``, except if
DuckDB raises an error or loses digits: then the values stay exact.

| | as in DuckDB | where DuckDB raises or is not exact |
|---|---|---|
| ``rows()``: INTERVAL | ``timedelta``, a month is 30 days | ``pyarrow.MonthDayNano`` beyond a ``timedelta`` |
| ``rows()``: dates and times beyond Python's | text; infinity is Python's last or first | |
| ``df()``: integers with nulls | ``Int32``, ``Int64``, … | |
| ``df()``: HUGEINT, DECIMAL | ``float64`` | Python's ints and Decimals if a float rounds one of them |
| ``df()``: UHUGEINT, TIMETZ, BIGNUM, extreme INTERVAL, DATE | | the values of ``rows()`` |
| ``rows()``: TIMESTAMP_NS | ``datetime`` | a pandas ``Timestamp`` if there are nanoseconds |
"""

from __future__ import annotations

import datetime
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from everview.change.types import NESTED, RECORDS, Kind, Type
from everview.errors import ValueTypeError
from everview.sql.settings import closed_at_exit, connect
from everview.store.encoding.columns import list_items, nulls_of, one_array, raw_values, to_python
from everview.store.encoding.registering import register, unregister

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

    from everview.client.result import ResultColumn

Convert = Callable[[Any], Any]

_EXACT_DIGITS = 15
"""Every decimal number with at most so many digits survives conversion to a double and back."""
_EXACT_INTEGER = 1 << 53
_NEVER_IN_FRAMES = frozenset({Kind.UHUGEINT, Kind.TIMETZ, Kind.BIGNUM})
"""Kinds without a pandas column in DuckDB."""


# ------------------------------------------------------------------ Python


def python_values(array: pa.Array, sql: Type) -> list[Any]:
    """The values of a column as DuckDB's ``fetchall`` gives them."""
    try:
        values = to_python(array, sql)
    except ValueTypeError:  # dates and times beyond Python's range
        return _defaults().fetched(array)
    convert = _conversion(sql)
    return values if convert is None else [None if value is None else convert(value) for value in values]


@functools.cache
def _conversion(sql: Type) -> Convert | None:
    """From a canonical value (:mod:`everview.store.encoding.values`) to DuckDB's; None: no conversion is needed."""
    if sql.kind is Kind.INTERVAL:
        return _timedelta
    inner = [_conversion(child) for _, child in sql.children]
    if sql.kind is Kind.MAP:
        key, held = (_or_null(convert) for convert in inner)
        if not sql.children[0][1].is_scalar:
            return lambda pairs: {"key": [key(one) for one, _ in pairs], "value": [held(one) for _, one in pairs]}
        if any(inner):
            return lambda value: {key(one): held(two) for one, two in value.items()}
        return None
    if not any(inner):
        return None
    parts = [_or_null(convert) for convert in inner]
    if sql.kind is Kind.STRUCT:
        return lambda value: {name: part(one) for part, (name, one) in zip(parts, value.items(), strict=True)}
    if sql.kind is Kind.TUPLE:
        return lambda value: tuple(part(one) for part, one in zip(parts, value, strict=True))
    build: Convert = tuple if sql.kind is Kind.ARRAY else list
    return lambda value: build(parts[0](one) for one in value)


def _or_null(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _timedelta(value: pa.MonthDayNano) -> datetime.timedelta | pa.MonthDayNano:
    months, days, nanos = value
    try:
        return datetime.timedelta(days=30 * months + days, microseconds=nanos // 1000)
    except OverflowError:
        return value


# ------------------------------------------------------------------ pandas


def frame(table: pa.Table, columns: Sequence[ResultColumn]) -> pd.DataFrame:
    """A table of columns with these types, as DuckDB's ``df`` gives it."""
    import pandas as pd

    names = _distinct([column.name for column in columns])
    arrays = [one_array(column.chunks) if column.num_chunks else pa.nulls(0, column.type) for column in table.columns]
    parts = {at: array for at, array in enumerate(arrays) if _fits_a_frame(array, columns[at].type)}
    try:
        series = _defaults().series(parts)
    except (duckdb.Error, OverflowError):
        series = {}
        for at, array in parts.items():
            try:
                series |= _defaults().series({at: array})
            except (duckdb.Error, OverflowError):  # an interval or date beyond pandas' range
                continue
    for at, column in enumerate(columns):
        if at not in series:
            values = [pd.NA if value is None else value for value in python_values(arrays[at], column.type)]
            series[at] = pd.Series(values, dtype=object)
    made = pd.DataFrame({at: series[at] for at in range(len(columns))})
    made.columns = pd.Index(names, dtype=object)
    return made


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of a frame's columns; DuckDB numbers names that repeat, whatever their case."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        number, candidate = 0, name
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        found.append(candidate)
    return found


def _fits_a_frame(array: pa.Array, sql: Type) -> bool:
    """Whether DuckDB has an exact pandas column for the values."""
    return all(kind.kind not in _NEVER_IN_FRAMES and _exact(leaf, kind) for leaf, kind in _leaves(array, sql))


def _leaves(array: pa.Array, sql: Type) -> Iterator[tuple[pa.Array, Type]]:
    """The scalar columns of a column, at any depth."""
    if sql.kind not in NESTED:
        yield array, sql
    elif sql.kind in RECORDS:
        for part, (_, child) in zip(array.flatten(), sql.children, strict=True):
            yield from _leaves(part, child)
    else:
        yield from _leaves(list_items(array), sql.item)


def _exact(array: pa.Array, sql: Type) -> bool:
    """Whether a double holds every value exactly."""
    if sql.kind is Kind.HUGEINT:
        most = _EXACT_INTEGER
    elif sql.kind is Kind.DECIMAL and sql.precision > _EXACT_DIGITS:
        most = 10**_EXACT_DIGITS - 1
    else:
        return True
    raw = raw_values(array, sql)
    if sql.width == 8:
        low, beyond = raw, np.zeros(len(raw), np.bool_)
    else:
        halves = np.ascontiguousarray(raw).view("<i8").reshape(-1, 2)
        low, beyond = halves[:, 0], halves[:, 1] != halves[:, 0] >> 63
    wrong = beyond | (low > most) | (low < -most)
    nulls = nulls_of(array)
    return not (wrong if nulls is None else wrong & ~nulls).any()


# ------------------------------------------------------------------ DuckDB under its own settings


class _Defaults:
    """A connection to DuckDB with its default settings. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0
        closed_at_exit(self)

    def was_idle(self) -> bool:
        """Whether the lock is free; renews it. Called in a forked child, where no other thread can release it."""
        free = self._lock.acquire(blocking=False)
        self._lock = threading.Lock()
        return free

    def _opened(self) -> duckdb.DuckDBPyConnection:
        if self._process != os.getpid():
            self._connection = connect(arrow_lossless_conversion=False, disabled_optimizers="")
            self._process = os.getpid()
        return self._connection

    def fetched(self, array: pa.Array) -> list[Any]:
        """The values of a column, as ``fetchall`` gives them."""
        return [row[0] for row in self._asked({0: array}, lambda rows: rows.fetchall())]

    def series(self, arrays: dict[int, pa.Array]) -> dict[int, pd.Series]:
        """Columns as ``df`` gives them."""
        if not arrays:
            return {}
        found = self._asked(arrays, lambda rows: rows.df())
        return {at: found[f"c{at}"] for at in arrays}

    def _asked(self, arrays: dict[int, pa.Array], ask: Callable[[duckdb.DuckDBPyRelation], Any]) -> Any:
        table = pa.table([*arrays.values()], names=[f"c{at}" for at in arrays])
        with self._lock:
            connection = self._opened()
            register(connection, "leaving", table)
            try:
                return ask(connection.sql("FROM leaving"))
            finally:
                unregister(connection, "leaving", table)

    def close(self) -> None:
        """Close the connection."""
        if self._process:
            self._connection.close()
            self._process = 0


@functools.cache
def _defaults() -> _Defaults:
    return _Defaults()
