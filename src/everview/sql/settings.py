"""How SQL is evaluated: the settings that every evaluation shares.

One sentence: a view is what DuckDB with its own defaults answers, in UTC, wherever and whenever it is
computed: while a statement is checked, in a maintenance step, in a recomputation.

No setting changes what an expression means:

| setting | why |
|---|---|
| ``TimeZone`` | UTC, whatever the time zone of the machine |
| ``disabled_optimizers`` | DuckDB 2.0.0 mixes up columns where two parts of a UNION ALL share a subquery, |
| | and rounds an AVG otherwise than in a group where there is no GROUP BY |
| ``threads`` | one, the caller's: Spark's tasks are the parallelism |
| ``async_threads`` | none: a database with threads of its own can neither be used nor closed after a fork |
| ``arrow_lossless_conversion`` | types such as HUGEINT and UUID cross into Arrow as themselves |
| the rest | nothing outside is read, installed, loaded, or found among Python's variables |

What another dialect means by the same words is written into the text (:mod:`everview.sql.dialects`).

JSON, ICU (time zones, collations) and Parquet are built into DuckDB's Python package; no
other extension is there.
"""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Protocol, TypeAlias

import duckdb

Setting: TypeAlias = str | bool | int

SETTINGS: dict[str, Setting] = {
    "TimeZone": "UTC",
    "disabled_optimizers": "common_subplan,aggregate_function_rewriter",
    "threads": 1,
    "async_threads": 0,
    "arrow_lossless_conversion": True,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
"""What every connection that evaluates an expression is set to."""


NO_THREADS: dict[str, str | int | bool | float | list[str]] = {"threads": 1, "async_threads": 0}
"""What every database in memory begins with, so that it never starts a thread."""


def connect() -> duckdb.DuckDBPyConnection:
    """A new database in memory, under the fixed settings."""
    connection = duckdb.connect(":memory:", config=NO_THREADS)
    for name, value in SETTINGS.items():
        written = f"'{value}'" if isinstance(value, str) else str(value).lower()
        connection.execute(f"SET {name} = {written}")
    return connection


class Closing(Protocol):
    """Whoever keeps a connection for as long as the process lives."""

    def close(self) -> None:
        """Close the connection, and let go of it."""

    def was_idle(self) -> bool:
        """In a forked child: whether no other thread of the parent was using the connection."""


_kept: weakref.WeakSet[Closing] = weakref.WeakSet()


def closed_at_exit(holder: Closing) -> None:
    """Have a holder let go of its connection when the process ends. Otherwise threads that outlive the
    interpreter (Spark's, in a driver) keep it, and DuckDB's bindings print what they call leaks."""
    _kept.add(holder)


@atexit.register
def _close() -> None:
    for holder in list(_kept):
        holder.close()


def _forget() -> None:
    """In a forked child: a connection that a thread of the parent was using waits for that thread, even to be
    closed, so it is left as it is."""
    for holder in list(_kept):
        if not holder.was_idle():
            _kept.discard(holder)


os.register_at_fork(after_in_child=_forget)
