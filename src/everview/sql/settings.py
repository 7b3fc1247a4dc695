"""How SQL is evaluated: the settings that every evaluation shares.

A view is what DuckDB with its own defaults answers, in UTC, wherever and whenever it is
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
| ``temp_directory`` | what does not fit into memory goes to the private directory of this process |
| the rest | nothing outside is read, written, installed, loaded, or found among Python's variables |

No other place connects to DuckDB, and no connection can be set otherwise once it is made: stored definitions are
evaluated here too, and a store may come from somebody else. A file that a user loads or dumps has a connection of
its own, which opens that file and no other (:func:`connect_to_file`).

What another dialect means by the same words is written into the text (:mod:`everview.sql.dialects`).

JSON, ICU (time zones, collations) and Parquet are built into DuckDB's Python package; no
other extension is there.
"""

from __future__ import annotations

import atexit
import os
import secrets
import weakref
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeAlias

import duckdb

from everview.scratch import scratch_of_process

Setting: TypeAlias = str | bool | int

SETTINGS = MappingProxyType[str, Setting](
    {
        "disabled_optimizers": "common_subplan,aggregate_function_rewriter",
        "threads": 1,
        "async_threads": 0,
        "arrow_lossless_conversion": True,
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
    }
)
"""What every connection that evaluates an expression is made with."""
FIXED = "SET TimeZone = 'UTC'; SET lock_configuration = true"
"""What it is set to then. (The time zone is an extension's, which is there when the database is.)"""


def connect(spill: Path | None = None, **more: Setting) -> duckdb.DuckDBPyConnection:
    """A new database in memory, under the fixed settings and more of them. ``spill`` is an empty directory for what
    does not fit into memory."""
    directory = _spill_directory() if spill is None else str(spill)
    connection = duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": directory, **more})
    connection.execute(FIXED)
    return connection


def connect_to_file(file: str) -> duckdb.DuckDBPyConnection:
    """A connection that opens one file, which the user has named, and no other."""
    connection = duckdb.connect(
        ":memory:", config={**SETTINGS, "temp_directory": _spill_directory(), "enable_external_access": True}
    )
    allowed = file.replace("'", "''")
    connection.execute(f"SET allowed_paths = ['{allowed}']; SET enable_external_access = false; {FIXED}")
    return connection


def _spill_directory() -> str:
    """A new name in the private directory of this process, for DuckDB to make when it needs it; none where no
    directory can be made."""
    try:
        return str(scratch_of_process() / f"duckdb-{secrets.token_hex(8)}")
    except OSError:
        return ""


class Closing(Protocol):
    """An object that keeps a connection for as long as the process lives."""

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
