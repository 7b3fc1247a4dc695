"""Defining views: ``python -m bench.plan``. What trying a view before it goes live adds to its CREATE, and ten thousand
selection views of one family on one table, each from its text to a view that can be read; checked in the same run.

A view is tried once for its shape, so the views of the first part differ in more than their constants.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import everview
from everview.client.validating import Validation

BAR = 60.0
"""Seconds that ten thousand views may take."""
ROWS = 2_000

TABLES = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DOUBLE, status VARCHAR, day DATE);
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR, land VARCHAR)
"""
USUAL = (
    "SELECT id, customer, amount FROM orders WHERE amount > 10",
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer",
    "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON c.id = o.customer",
    "SELECT c.land, avg(o.amount) AS mean FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.land",
    "SELECT c.id, o.id AS order_id FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.status = 'open'",
    "SELECT DISTINCT customer, status FROM orders",
    "SELECT day, max(amount) AS largest, min(amount) AS smallest FROM orders GROUP BY day HAVING count(*) > 1",
    "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders",
    "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10",
    "SELECT id, name FROM customers WHERE id IN (SELECT customer FROM orders WHERE amount > 500)",
)


class Clock:
    """Seconds that trials took since it was set to zero."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def around_trials(self) -> Iterator[None]:
        real = Validation.of

        def timed(*args: object, **named: object) -> object:
            start = time.perf_counter()
            try:
                return real(*args, **named)  # type: ignore[arg-type]
            finally:
                self.seconds += time.perf_counter() - start

        Validation.of = timed  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Validation.of = real  # type: ignore[method-assign]


def usual(path: Path) -> None:
    """Each usual view: how long its CREATE takes, and of that the trial."""
    with everview.open(path, durability="none") as db:
        db.sql(TABLES)
        db.sql(f"INSERT INTO customers SELECT i, 'c' || i, 'l' || i % 7 FROM range({ROWS // 10}) r(i)")
        db.sql(
            "INSERT INTO orders SELECT i, i % 200, i % 997, if(i % 3 = 0, 'open', NULL), DATE '2020-01-01' + i::INT"
            f" FROM range({ROWS}) r(i)"
        )
        db.sql("EXPLAIN CREATE MATERIALIZED VIEW first AS SELECT id FROM orders")
        clock = Clock()
        shares = []
        with clock.around_trials():
            for number, query in enumerate(USUAL):
                clock.seconds = 0.0
                start = time.perf_counter()
                made = db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
                whole = time.perf_counter() - start
                assert not made.notices, made.notices
                assert db.catalog.view(f"v{number}").validated.startswith("validated on"), query
                shares.append((whole, clock.seconds))
                print(f"{whole * 1e3:6.0f} ms, without the trial {(whole - clock.seconds) * 1e3:5.0f} ms: {query}")
        print(
            f"median {median(whole for whole, _ in shares) * 1e3:.0f} ms to define and build a view of {ROWS:,} rows, "
            f"without the trial {median(whole - trial for whole, trial in shares) * 1e3:.0f} ms"
        )


def family(path: Path, count: int) -> float:
    """Seconds for ``count`` views that differ in a constant."""
    with everview.open(path, durability="none") as db:
        db.sql(TABLES)
        text = ";\n".join(
            f"CREATE MATERIALIZED VIEW v{n} AS SELECT id, customer FROM orders WHERE amount > {n}" for n in range(count)
        )
        clock = Clock()
        with clock.around_trials():
            start = time.perf_counter()
            db.sql(text)
            taken = time.perf_counter() - start
        db.sql("INSERT INTO orders VALUES (1, 2, 5.5, NULL, NULL)")
        db.flush()
        shown = [n for n in range(min(count, 20)) if db.view(f"v{n}").get(1)]
        assert shown == list(range(min(count, 6))), shown
        assert all(view.validated.startswith("validated on") for view in db.catalog.views())
    print(
        f"{count:,} views of one family: {taken:.1f} s, {taken / count * 1e3:.2f} ms each; "
        f"of that their trials {clock.seconds:.2f} s"
    )
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.plan", description=__doc__)
    parser.add_argument("--views", type=int, default=10_000)
    count = parser.parse_args().views
    with tempfile.TemporaryDirectory() as folder:
        usual(Path(folder) / "usual")
        taken = family(Path(folder) / "family", count)
    return 0 if taken <= BAR * count / 10_000 else 1


if __name__ == "__main__":
    sys.exit(main())
