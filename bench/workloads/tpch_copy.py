"""The rows of TPC-H in DuckDB, beside those in a store: what its queries say of them, and how long that takes.

A copy gets the same changes as the store, so the answer to a query over it is what the view
must show, and the time that takes is what recomputation costs.

What recomputation is spared: reading rows out of a store, and taking in changes. Its tables are in memory, in columns,
and only the query is timed. It has all of DuckDB's optimizers then; an answer that is compared is asked for under the
settings that views have (:mod:`everview.sql.settings`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.workloads.tpch import CORPUS, Refresh
from everview.sql.settings import SETTINGS

_OPTIMIZERS = "disabled_optimizers"


class Copy:
    """TPC-H's tables in a database of DuckDB's, in memory."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._connection = duckdb.connect(":memory:", config={**SETTINGS, "enable_external_access": True})
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute(CORPUS.schema_text)
        for name, path in files.items():
            # without its primary key: no query uses the index, and every change pays for it
            self._connection.execute(f"CREATE TABLE plain AS FROM {name}; DROP TABLE {name}")
            self._connection.execute(f"ALTER TABLE plain RENAME TO {name}")
            self._connection.execute(f"INSERT INTO {name} BY NAME FROM read_parquet('{path}')")

    def apply(self, refresh: Refresh) -> None:
        for name, rows in refresh.puts.items():
            key, columns = CORPUS.tables[name].key, rows.column_names
            with self._incoming(rows):
                if len(columns) == len(CORPUS.tables[name].schema):
                    self._connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM incoming")
                else:
                    changed = ", ".join(f"{one} = incoming.{one}" for one in columns if one not in key)
                    self._connection.execute(f"UPDATE {name} SET {changed} FROM incoming WHERE {_same(name, key)}")
        for name, keys in refresh.deletes.items():
            with self._incoming(keys):
                self._connection.execute(f"DELETE FROM {name} USING incoming WHERE {_same(name, keys.column_names)}")

    @contextmanager
    def _incoming(self, rows: pa.Table) -> Iterator[None]:
        self._connection.register("incoming", rows)
        try:
            yield
        finally:
            self._connection.unregister("incoming")

    def seconds(self, query: str, threads: int = 1) -> float:
        """How long a query takes, with all of its rows."""
        self._connection.execute(f"SET {_OPTIMIZERS} = ''")
        self._connection.execute(f"SET threads = {threads}")
        started = time.perf_counter()
        self._connection.sql(query).to_arrow_table()
        took = time.perf_counter() - started
        self._connection.execute(f"SET threads = {SETTINGS['threads']}")
        self._connection.execute(f"SET {_OPTIMIZERS} = '{SETTINGS[_OPTIMIZERS]}'")
        return took

    def answer(self, query: str) -> pa.Table:
        """What a view must show."""
        return self._connection.sql(query).to_arrow_table()

    def close(self) -> None:
        self._connection.close()


def _same(name: str, key: Sequence[str]) -> str:
    return " AND ".join(f"{name}.{one} = incoming.{one}" for one in key)
