"""DuckDB asked in the words of a user, over rows that are given.

An :class:`Asking` is a connection that is kept, under the settings of every evaluation, in which
given tables have the names that the words call them by.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from everview.change.schema import Column
from everview.check.compare import Comparison
from everview.sql.patience import given_up
from everview.sql.settings import closed_at_exit, connect
from everview.store.encoding.registering import register, unregister

PATIENCE = 2.0
"""Seconds after which a query is given up."""
MEMORY = "200MB"
"""What a query may take: one that makes a series up to its greatest value has no answer here."""


class Asking:
    """Asks one query at a time."""

    def __init__(self) -> None:
        self._connection = connect(memory_limit=MEMORY)
        self._thread = threading.get_ident()
        closed_at_exit(self)

    def was_idle(self) -> bool:
        """In a forked child: whether this is the connection of the thread that lives on here."""
        return self._thread == threading.get_ident()

    def close(self) -> None:
        """Nothing can be asked any more."""
        self._connection.close()
        del self._connection

    def answer(self, sql: str, tables: Mapping[str, pa.Table], patience: float = PATIENCE) -> pa.Table:
        """The answer of a query over tables by name. Raises a :class:`duckdb.Error` where it has none, or
        where it takes too long."""
        with self._given(tables), given_up(self._connection, patience):
            return self._connection.sql(sql).to_arrow_table()

    def differ(self, names: list[str], expected: pa.Table, found: pa.Table) -> bool:
        """Whether two bags of rows differ, as DuckDB compares values."""
        if _spelled(expected) == _spelled(found):
            return False
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        with self._given({"__expected": expected, "__found": found}):
            for one, other in (("__expected", "__found"), ("__found", "__expected")):
                sql = f"SELECT 1 FROM (SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}) LIMIT 1"
                if self._connection.execute(sql).fetchall():
                    return True
        return False

    def agree(self, columns: Sequence[Column], expected: pa.Table, found: pa.Table) -> bool:
        """Whether two bags of rows are the same but for the last digits of floating-point numbers."""
        with self._given({"__expected": expected, "__found": found}):
            compared = Comparison(columns, None, exact=False, samples=0).of(self._connection, "__expected", "__found")
        return not compared.differs

    @contextmanager
    def _given(self, tables: Mapping[str, pa.Table]) -> Iterator[None]:
        for name, table in tables.items():
            register(self._connection, name, table)
        try:
            yield
        finally:
            for name, table in tables.items():
                unregister(self._connection, name, table)


def _spelled(rows: pa.Table) -> Counter[str] | object:
    """Rows as they are printed: those that are equal without being printed alike DuckDB is asked about, and so
    are those with values beyond what Python has."""
    try:
        columns = [column.to_pylist() for column in rows.columns]
    except (OverflowError, ValueError):
        return object()
    return Counter(map(repr, zip(*columns, strict=True))) if columns else Counter({"": len(rows)})


_held = threading.local()


def asking() -> Asking:
    """This thread's connection, which is not kept over a fork."""
    found: Asking | None = getattr(_held, "asking", None)
    if found is None or _held.process != os.getpid():
        found = Asking()
        _held.asking, _held.process = found, os.getpid()
    return found


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
