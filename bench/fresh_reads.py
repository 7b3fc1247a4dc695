"""Fresh reads by key: ``python -m bench.fresh_reads``. A put, then a fresh ``get`` of its key, while writes of other
keys are pending.

Without a maintainer, and with one in the same process, which takes its share of the interpreter. Every row that
was read is compared with the row after a flush.

| view | what it takes |
|---|---|
| filtered | one evaluation by DuckDB |
| totals | a record of its group |
| joined | the row of the other table |
| medians | all rows of its group, before and after |
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import everview

TABLES = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2));
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR);
    INSERT INTO orders SELECT range, range % 1000, range % 977 FROM range(20000);
    INSERT INTO customers SELECT range, 'n' || range FROM range(1000)
"""
VIEWS = {
    "filtered": "SELECT id, amount FROM orders WHERE amount > 0",
    "totals": "SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer",
    "joined": "SELECT o.id, c.id AS customer, c.name, o.amount FROM orders o JOIN customers c ON o.customer = c.id",
    "medians": "SELECT customer, median(amount) AS middle FROM orders GROUP BY customer",
}
KEYS = {"filtered": ("id",), "totals": ("customer",), "joined": ("id",), "medians": ("customer",)}

_numbers = count(1)
"""Amounts, each once: a put that changes nothing would be no change."""


def measured(db: everview.Database, name: str, pending: int, reads: int) -> tuple[float, float, float, bool]:
    """Milliseconds of a read, of processor time in it, and of reading the same again; and whether all was right."""
    orders, view = db.table("orders"), db.view(name)
    db.flush()
    for number in range(pending):
        orders.put({"id": 100_000 + number, "customer": number % 900, "amount": next(_numbers)})
    took, spent, again, seen = [], [], [], {}
    for number in range(reads):
        row: dict[str, object] = {"id": 200_000 + number, "customer": 950 + number % 50, "amount": next(_numbers)}
        orders.put(row)
        key = tuple(row[column] for column in KEYS[name])
        times = []
        for _ in range(2):
            start, busy = time.perf_counter(), time.thread_time()
            seen[key] = view.get(*key, fresh=True)
            times.append((time.perf_counter() - start, time.thread_time() - busy))
        took.append(times[0][0])
        spent.append(times[0][1])
        again.append(times[1][0])
    db.flush()
    right = all(view.get(*key) == row for key, row in seen.items())
    return *(1000 * statistics.median(one[5:]) for one in (took, spent, again)), right  # type: ignore[return-value]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fresh_reads", description=__doc__)
    parser.add_argument(
        "--pending", type=int, nargs="*", default=[0, 1_000, 9_000], help="pending writes of other keys"
    )
    parser.add_argument("--reads", type=int, default=100)
    asked = parser.parse_args()
    print(f"{'milliseconds, median':24}{'pending':>10}{'read':>10}{'processor':>12}{'again':>10}")
    all_right = True
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder, everview.open(Path(folder) / "store") as db:
        db.sql(TABLES)
        db.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()))
        for is_maintained in (False, True):
            with db.maintain(spark=False) if is_maintained else contextlib.nullcontext():
                for name in VIEWS:
                    for pending in [0] if is_maintained else asked.pending:
                        *times, right = measured(db, name, pending, asked.reads)
                        label = f"{name}{', maintained' if is_maintained else ''}"
                        print(f"{label:24}{pending:10,}{times[0]:10.2f}{times[1]:12.2f}{times[2]:10.2f}", flush=True)
                        all_right = all_right and right
    print("every row was right" if all_right else "ROWS WERE WRONG")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
