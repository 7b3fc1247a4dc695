"""What a change costs while the base grows: maintained, recomputed, and put into plain LMDB.

Tables of more and more rows get a thousand changes of random rows at a time, and what is measured
is processor time for each change, and pages that are written for it.

Groups have ten rows whatever the size, of q4 five in each table, so a change of q4 removes five rows of the join and
adds five others. Keys are drawn at random: the larger the tables, the fewer changes of an epoch share a page of the
B-trees, up to where each has pages of its own; from there on the number of pages stays, and what still grows is the
time for a page that no cache holds. A put into a plain LMDB file has the same price, so it is measured beside it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import lmdb
import numpy as np
import pyarrow as pa

from bench.workloads.synthetic import BT1, BT2, Stream
from everview.sql.settings import connect
from tests.oracle.maintained import Maintained

CHANGES = 1_000
"""Of an epoch."""
EPOCHS = 15
WARM = 25
"""Epochs before those that count: a store that was just filled has pages that are on disk only."""
LOAD = 1_000_000
"""Rows of an epoch that fills the tables."""
PAGE = 4096
ENOUGH = 10.0
"""Seconds after which recomputing again adds nothing."""


@dataclass(frozen=True)
class Cost:
    """Of one change: microseconds of processor time, and pages written."""

    microseconds: float
    pages: float
    wrong: str = ""


@dataclass(frozen=True)
class Base:
    """Tables of so many rows together, and changes of them."""

    tables: tuple[str, ...]
    rows: int
    """Of each table."""
    seed: int

    @staticmethod
    def of(view: str, size: int, seed: int) -> Base:
        tables = ("bt1", "bt2") if view == "q4" else ("bt1",)
        return Base(tables, size // len(tables), seed)

    def streams(self) -> dict[str, Stream]:
        groups = max(self.rows * len(self.tables) // 10, 1)
        return {table: Stream(table, self.rows, groups, self.seed + n) for n, table in enumerate(self.tables)}

    def loads(self, rng: np.random.Generator) -> Iterator[dict[str, pa.Table]]:
        """All rows, in pieces."""
        for low in range(0, self.rows, LOAD):
            ids = np.arange(low, min(low + LOAD, self.rows))
            yield {table: stream.rows(rng, ids) for table, stream in self.streams().items()}

    def changes(self, rng: np.random.Generator, epochs: int) -> Iterator[dict[str, pa.Table]]:
        """New rows at random keys, a thousand at a time."""
        for _ in range(epochs):
            count = CHANGES // len(self.tables)
            yield {
                table: stream.rows(rng, rng.integers(0, self.rows, count)) for table, stream in self.streams().items()
            }


def maintained(view: str, query: str, size: int, seed: int = 0, warm: int = WARM) -> Cost:
    """A change, maintained in this process; the view is compared with its query at the end."""
    base = Base.of(view, size, seed)
    rng = np.random.default_rng([seed, size])
    with tempfile.TemporaryDirectory() as folder:
        schemas = {name: schema for name, schema in (("bt1", BT1), ("bt2", BT2)) if name in base.tables}
        found = Maintained(Path(folder) / "store", schemas, {view: query})
        try:
            for part in base.loads(rng):
                for table, rows in part.items():
                    found.table(table).put_many(rows)
                found.epoch()
            costs = []
            for part in base.changes(rng, warm + EPOCHS):
                for table, rows in part.items():
                    found.table(table).put_many(rows)
                costs.append(_cost(found.epoch))
            return _median(costs[warm:], _difference(found, view))
        finally:
            found.close()


def recomputed(view: str, query: str, size: int, seed: int = 0) -> Cost:
    """A change where DuckDB has the tables and recomputes the view after every thousand changes."""
    base = Base.of(view, size, seed)
    rng = np.random.default_rng([seed, size])
    with connect() as connection:
        for number, part in enumerate(base.loads(rng)):
            for table, rows in part.items():
                into = f"CREATE TABLE {table} AS" if number == 0 else f"INSERT INTO {table}"
                _with(connection, rows, f"{into} SELECT * FROM given")
        costs: list[Cost] = []
        began = time.perf_counter()
        for part in base.changes(rng, EPOCHS):
            costs.append(_cost(lambda part=part: _again(connection, view, query, part)))  # type: ignore[misc]
            if time.perf_counter() - began > ENOUGH:
                break
        return _median(costs)


def _again(connection: duckdb.DuckDBPyConnection, view: str, query: str, part: dict[str, pa.Table]) -> None:
    for table, rows in part.items():
        last = rows.append_column("turn", pa.array(np.arange(len(rows))))
        of_key = "SELECT * EXCLUDE turn FROM given QUALIFY row_number() OVER (PARTITION BY k ORDER BY turn DESC) = 1"
        _with(connection, last, f"DELETE FROM {table} WHERE k IN (SELECT k FROM given)")
        _with(connection, last, f"INSERT INTO {table} {of_key}")
    connection.execute(f"CREATE OR REPLACE TABLE {view} AS {query}")


def _with(connection: duckdb.DuckDBPyConnection, rows: pa.Table, statement: str) -> None:
    connection.register("given", rows)
    connection.execute(statement)
    connection.unregister("given")


def plain_put(size: int, seed: int = 0, warm: int = WARM) -> Cost:
    """A put of a random key into a plain LMDB file of so many records, a thousand in a transaction."""
    with tempfile.TemporaryDirectory() as folder:
        environment = lmdb.open(folder, map_size=1 << 35, sync=False, metasync=False)
        with environment.begin(write=True) as transaction:
            first = ((number.to_bytes(8, "big"), bytes(60)) for number in range(size))
            transaction.cursor().putmulti(first, append=True)
        rng = np.random.default_rng([seed, size])
        costs = []
        for _ in range(warm + EPOCHS):
            keys = np.sort(rng.integers(0, size, CHANGES)).tolist()
            records = [(key.to_bytes(8, "big"), bytes(60)) for key in keys]
            costs.append(_cost(lambda records=records: _put(environment, records)))  # type: ignore[misc]
        environment.close()
    return _median(costs[warm:])


def _put(environment: lmdb.Environment, records: list[tuple[bytes, bytes]]) -> None:
    with environment.begin(write=True) as transaction:
        transaction.cursor().putmulti(records)


def _cost(work: Callable[[], object]) -> Cost:
    """Of an epoch, for each change."""
    written, busy = _written(), time.process_time()
    work()
    return Cost(1e6 * (time.process_time() - busy) / CHANGES, (_written() - written) / PAGE / CHANGES)


def _written() -> int:
    """Bytes that this process has written to files."""
    for line in Path("/proc/self/io").read_text().splitlines():
        name, _, value = line.partition(": ")
        if name == "wchar":
            return int(value)
    raise LookupError("the kernel does not say how many bytes a process has written")


def _median(costs: list[Cost], wrong: str = "") -> Cost:
    return Cost(
        statistics.median(cost.microseconds for cost in costs), statistics.median(cost.pages for cost in costs), wrong
    )


def _difference(found: Maintained, view: str) -> str:
    """How a view differs from its recomputation; large ones are compared by their number of rows and two digests
    of all of them."""
    said = []
    with connect() as connection:
        for rows in (found.recomputed()[view], found.view(view)):
            connection.register("given", rows)
            columns = ", ".join(f'"{name}"' for name in sorted(rows.column_names))
            digest = f"SELECT count(*), bit_xor(hash({columns})), sum(hash({columns}) % 1000003) FROM given"
            said.append(connection.execute(digest).fetchall()[0])
            connection.unregister("given")
    return "" if said[0] == said[1] else f"rows and digests are {said[1]} and should be {said[0]}"
