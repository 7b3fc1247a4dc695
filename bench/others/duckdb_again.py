"""DuckDB, which recomputes the view after every round of operations.

Nothing is incremental here, so a round costs what the query costs over the whole tables, and not
more; tables without a key take the round by DELETE and INSERT, the last operation of each key alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from bench.others.child import Take, Taken
from bench.others.stream import rounds
from bench.others.views import COLUMNS, columns, query, tables


@contextmanager
def system() -> Iterator[Take]:
    yield take


def take(view: str, stream: Path, out: Path) -> Taken:
    found = list(rounds(stream, view))
    base = again = 0.0
    with duckdb.connect() as connection:
        for name in tables(view):
            connection.sql(f"CREATE TABLE {name} ({columns(name)})")
        for parts in found:
            started = time.perf_counter()
            for name, rows in parts:
                connection.register("operations", rows)
                connection.sql(
                    "CREATE OR REPLACE TEMP TABLE last AS SELECT * FROM operations "
                    "QUALIFY row_number() OVER (PARTITION BY k ORDER BY number DESC) = 1"
                )
                connection.sql(f"DELETE FROM {name} WHERE k IN (SELECT k FROM last)")
                connection.sql(f"INSERT INTO {name} SELECT {', '.join(COLUMNS[name])} FROM last WHERE put")
            base += time.perf_counter() - started
            started = time.perf_counter()
            connection.sql(f"CREATE OR REPLACE TABLE v AS {query(view)}")
            again += time.perf_counter() - started
        connection.sql("SELECT * FROM v").write_parquet(str(out / "rows.parquet"))
    return Taken(again, base)
