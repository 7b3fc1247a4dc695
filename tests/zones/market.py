"""The shop with customers, views of several kinds, and a writer that does not stop.

Whatever happens to the pipeline, every view is at every epoch what its query says.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from everview.client.database import Database
from everview.errors import SnapshotExpiredError
from tests.zones.shop import open_shop, trade, wrong

PATIENCE = 120.0
POLL = 0.005
PAUSE = 0.1

DEFINED = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, city VARCHAR);
    CREATE MATERIALIZED VIEW dear AS SELECT id, customer, amount FROM orders WHERE amount > 10;
    CREATE MATERIALIZED VIEW extremes AS
        SELECT customer, min(amount) AS least, max(amount) AS most FROM orders GROUP BY customer;
    CREATE MATERIALIZED VIEW cities AS
        SELECT c.city, count(*) AS orders, sum(o.amount) AS total
        FROM orders o LEFT JOIN customers c ON o.customer = c.id GROUP BY c.city;
    CREATE MATERIALIZED VIEW popular AS SELECT orders, count(*) AS customers FROM totals GROUP BY orders;
    CREATE MATERIALIZED VIEW places AS
        SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders;
"""
KINDS = 6


def open_market(path: Path) -> Database:
    db = open_shop(path)
    db.sql(DEFINED)
    db.table("customers").put_many([{"id": id, "city": f"c{id % 5}"} for id in range(20)])
    return db


def do_business(db: Database, seed: int) -> None:
    """Orders come, change and go, and somebody moves."""
    trade(db, 1, seed)
    rng = random.Random(seed)
    db.table("customers").put({"id": rng.randrange(20), "city": f"c{rng.randrange(5)}"})


@contextmanager
def business(db: Database, seed: int) -> Iterator[None]:
    """While somebody writes all the time."""
    over = threading.Event()

    def work() -> None:
        day = seed
        while not over.wait(PAUSE):
            do_business(db, day)
            day += 1

    writer = threading.Thread(target=work)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def check_now(db: Database) -> int:
    """Every view is right at the epoch that it has reached; which that is."""
    while True:
        with contextlib.suppress(SnapshotExpiredError):
            found = wrong(db)
            assert not found, found
            return epoch(db)


def epoch(db: Database) -> int:
    return db.store.views.committed("main").epoch


def wait_for(state: Callable[[], bool], check: Callable[[], object]) -> None:
    """Return when something is so; ``check`` raises what makes that impossible."""
    ends = time.monotonic() + PATIENCE
    checked = 0.0
    while not state():
        now = time.monotonic()
        assert now < ends, "it never came to that"
        if now > checked + 0.5:
            check()
            checked = now
        time.sleep(POLL)
