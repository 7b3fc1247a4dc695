"""A bank whose maintenance is killed: ``python -m tests.zones.bank <store>`` is the victim.

Money moves between accounts, two rows in one batch, so whoever sees the accounts in one state sees the
same total: a view of all accounts shows it, and so does a view on a view of them.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from everview.client.database import Database
from everview.client.database import open as open_database
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session

ACCOUNTS = 50
EACH = 100
TOTAL = ACCOUNTS * EACH

DEFINED = """
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, branch INTEGER, money BIGINT);
    CREATE MATERIALIZED VIEW total AS SELECT sum(money) AS money, count(*) AS n FROM accounts;
    CREATE MATERIALIZED VIEW branches AS
        SELECT branch, sum(money) AS money, count(*) AS n FROM accounts GROUP BY branch;
    CREATE MATERIALIZED VIEW above AS SELECT sum(money) AS money, sum(n) AS n FROM branches;
"""


def open_bank(path: Path) -> Database:
    db = open_database(path, map_size=1 << 30)
    if not db.tables():
        db.sql(DEFINED)
        db.table("accounts").put_many([{"id": id, "branch": id % 7, "money": EACH} for id in range(ACCOUNTS)])
        db.flush()
    return db


def transfer(db: Database, rng: random.Random) -> None:
    """Move money between two accounts; now and then an account moves to another branch."""
    one, other = rng.sample(range(ACCOUNTS), 2)
    amount = rng.randint(1, 50)
    accounts = db.table("accounts")
    rows = [accounts.get(one), accounts.get(other)]
    with db.batch() as batch:
        for row, change in zip(rows, (-amount, amount), strict=True):
            assert row is not None and isinstance(row["money"], int)
            branch = rng.randrange(7) if rng.random() < 0.2 else row["branch"]
            batch.table("accounts").put({"id": row["id"], "branch": branch, "money": row["money"] + change})


def seen(db: Database) -> tuple[int, list[tuple[int, int]]]:
    """The epoch of one snapshot, and the totals in it, counted in four ways."""
    with db.snapshot() as snapshot:
        totals = [
            snapshot.sql(f"SELECT {money}, {n} FROM {name}").rows()[0]
            for name, money, n in [
                ("total", "money", "n"),
                ("above", "money", "n"),
                ("branches", "sum(money)", "sum(n)"),
                ("accounts", "sum(money)", "count(*)"),
            ]
        ]
        return snapshot.epoch("total"), totals


def main(path: str) -> None:
    with Pipeline(path, spark=new_session(), operations=200, wait=60):
        print("running", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
