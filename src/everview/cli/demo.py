"""A view maintained live: ``python -m everview.cli.demo``.

One process writes orders: new ones, changed ones, single columns, batches, deletes. This one
maintains the view

    SELECT customer, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY customer

on Spark, and prints the top of it as it changes. At the end the view is computed anew from the
orders, and the command fails if a single row differs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from multiprocessing.synchronize import Event
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from everview.catalog import MAIN
from everview.cli.recompute import differences, recomputed
from everview.client.database import Database
from everview.client.database import open as open_database
from everview.client.tables import TableHandle
from everview.errors import EverviewError
from everview.store.contract import Row
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session

TABLE = """CREATE TABLE IF NOT EXISTS orders
  (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(12,2), note VARCHAR)"""
VIEW = """CREATE MATERIALIZED VIEW IF NOT EXISTS totals AS
  SELECT customer, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY customer"""
IDS = 20_000
CUSTOMERS = 200
PAUSE = 0.01
"""Seconds the writer rests after a write, so that there is something to watch."""
TOP = 3


# ------------------------------------------------------------------ the writer


def write_orders(path: str, seconds: float, operations: int | None, stop: Event) -> None:
    """The writer process: random writes until the time or the operations are used up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    rng = random.Random(time.time_ns())
    until = time.monotonic() + seconds
    left = sys.maxsize if operations is None else operations
    with open_database(path, create=False) as db:
        orders = db.table("orders")
        while left > 0 and time.monotonic() < until and not stop.is_set():
            left -= _write_something(orders, rng, left)
            stop.wait(PAUSE)


def _write_something(orders: TableHandle, rng: random.Random, most: int) -> int:
    """One write of a random kind; returns how many operations it was."""
    size = min(most, rng.randint(1, 100))
    kind = rng.random()
    if kind < 0.3:
        orders.put(_order(rng))
    elif kind < 0.5:
        orders.put({"id": rng.randrange(IDS), "amount": _amount(rng)})
    elif kind < 0.6:
        orders.delete(rng.randrange(IDS))
    elif kind < 0.9:
        return orders.put_many([_order(rng) for _ in range(size)])
    else:
        return orders.delete_many([rng.randrange(IDS) for _ in range(size)])
    return 1


def _order(rng: random.Random) -> Row:
    customer = None if rng.random() < 0.02 else rng.randrange(CUSTOMERS)
    return {"id": rng.randrange(IDS), "customer": customer, "amount": _amount(rng), "note": "demo"}


def _amount(rng: random.Random) -> Decimal | None:
    return None if rng.random() < 0.02 else Decimal(rng.randrange(1, 100_000)) / 100


# ------------------------------------------------------------------ the reader


def show(db: Database, since: float) -> None:
    """One line: how fresh the view is, and its largest rows."""
    commit = db.store.views.committed(MAIN)
    behind = commit.frontier.operations_to(db.store.log.latest())
    rows = db.sql("SELECT * FROM totals ORDER BY total DESC NULLS LAST").dicts()
    top = " · ".join(f"customer {row['customer']}: {row['orders']} orders, {row['total']:,}" for row in rows[:TOP])
    print(
        f"{time.monotonic() - since:6.1f} s  epoch {commit.epoch}, {time.time() - commit.time:.2f} s ago, "
        f"{behind} operations behind | {len(rows)} customers | {top}",
        flush=True,
    )


# ------------------------------------------------------------------ the whole


def run(path: str, seconds: float, operations: int | None, spark: SparkSession) -> int:
    """The whole demonstration; returns the exit code."""
    with open_database(path) as db:
        for statement in (TABLE, VIEW):
            print(statement, flush=True)
            db.sql(statement)
        orders = db.table("orders")
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        writer = context.Process(target=write_orders, args=(path, seconds, operations, stop))
        with _ended_by_signals(stop), Pipeline(path, spark=spark) as pipeline:
            _warm_up(orders, pipeline)
            since = time.monotonic()
            writer.start()
            try:
                while writer.is_alive():
                    writer.join(timeout=1)
                    pipeline.check()
                    show(db, since)
            finally:
                stop.set()
                writer.join()
            pipeline.drain()
            show(db, since)
        wrong = compare(db)
        written = sum(db.store.log.latest().values())
        print(
            f"{orders.count():,} orders after {written:,} operations, maintained in {len(pipeline.reports)} epochs; "
            f"the view against its recomputation: {len(wrong)} differences"
        )
        for line in wrong[:20]:
            print(f"  {line}")
        if writer.exitcode:
            print(f"the writer failed: {writer.exitcode}")
        return 1 if wrong or writer.exitcode else 0


def _warm_up(orders: TableHandle, pipeline: Pipeline) -> None:
    """The first epoch starts the Python workers, which takes seconds; then the clock runs."""
    started = time.monotonic()
    orders.put({"id": 0, "customer": 0, "amount": 1})
    pipeline.drain()
    print(f"the pipeline is warm after {time.monotonic() - started:.1f} s", flush=True)


def compare(db: Database) -> list[str]:
    """The rows in which the view and its recomputation differ; prints the first rows of the view."""
    shown = db.sql("SELECT * FROM totals").arrow()
    commit = db.store.views.committed(MAIN)
    print(f"the view as of epoch {commit.epoch}, {commit.frontier}:")
    for row in _first(shown):
        print(f"  {row}")
    with db.store.snapshot() as snapshot:
        return differences(recomputed(db.catalog.definitions(), snapshot, "totals"), shown)


def _first(shown: pa.Table) -> Iterator[str]:
    for row in shown.slice(0, 2 * TOP).to_pylist():
        yield ", ".join(f"{name} {value}" for name, value in row.items())
    if len(shown) > 2 * TOP:
        yield f"… {len(shown)} rows in all"


@contextmanager
def _ended_by_signals(stop: Event) -> Iterator[None]:
    """SIGTERM and ctrl-C end the writing; the comparison at the end takes place all the same."""
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m everview.cli.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="how long orders are written (15)")
    parser.add_argument("--operations", type=int, help="at most so many operations")
    parser.add_argument("--path", help="directory of the store; a temporary one if not given")
    asked = parser.parse_args()
    print("starting Spark …", flush=True)
    spark = new_session()
    try:
        if asked.path is not None:
            return run(str(Path(asked.path).absolute()), asked.seconds, asked.operations, spark)
        with tempfile.TemporaryDirectory(prefix="everview-demo-") as folder:
            return run(folder, asked.seconds, asked.operations, spark)
    except EverviewError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
