"""The town whose views are maintained while everybody is killed: a bank, a shop, and a list of what was done.

Every step of a writer is one batch that also notes its number, money is only moved, and
one state of the town has the same totals however they are counted.

The bank's writer moves money between accounts, the shop's writes orders and customers. A step's
number stands in ``done`` with the rows that it wrote, so the numbers of a writer have no gap, and
a view that counts them counts each once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from everview.client.database import Database
from everview.client.database import open as open_database
from everview.client.snapshot_handles import Snapshot

ACCOUNTS = 40
EACH = 100
BRANCHES = 7
CUSTOMERS = 20
ORDERS = 200
NOTES = ("gift", "return", "urgent", None)

RETENTION = 1000
"""Operations of the log that are kept, besides those that a view has not seen."""

BANK, SHOP = 0, 1
WRITERS = (BANK, SHOP)

TABLES = """
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, branch INTEGER, money BIGINT);
    CREATE TABLE customers (id INTEGER PRIMARY KEY, city INTEGER, name VARCHAR);
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(12, 2), weight DOUBLE, note VARCHAR);
    CREATE TABLE done (writer INTEGER, number BIGINT, PRIMARY KEY (writer, number));
"""

VIEWS = {
    "total": "SELECT sum(money) AS money, count(*) AS n FROM accounts",
    "branches": "SELECT branch, sum(money) AS money, count(*) AS n FROM accounts GROUP BY branch",
    "above": "SELECT sum(money) AS money, sum(n) AS n FROM branches",
    "steps": "SELECT writer, count(*) AS n, max(number) AS last FROM done GROUP BY writer",
    "sold": "SELECT count(*) AS n, sum(amount) AS amount FROM orders",
    "sales": """SELECT customer, count(*) AS n, sum(amount) AS amount, avg(weight) AS weight
                FROM orders GROUP BY customer""",
    "extremes": """SELECT customer, min(amount) AS low, max(amount) AS high, max(note) AS note
                   FROM orders GROUP BY customer""",
    "placed": "SELECT o.id, o.amount, c.city, c.name FROM orders o JOIN customers c ON o.customer = c.id",
    "cities": """SELECT c.city, count(*) AS n, sum(o.amount) AS amount
                 FROM orders o LEFT JOIN customers c ON o.customer = c.id GROUP BY c.city""",
    "ranked": """SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place
                 FROM orders""",
    "dearest": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10",
    "idle": "SELECT id FROM customers EXCEPT SELECT customer FROM orders",
    "notes": "SELECT DISTINCT note FROM orders",
    "popular": "SELECT n, count(*) AS customers FROM sales GROUP BY n",
    **{f"of_{customer}": f"SELECT id, amount FROM orders WHERE customer = {customer}" for customer in range(4)},
}
"""Aggregates, extremes, joins, a window, a top-k, sets, views on views, and a family."""

LATE = "SELECT note, count(*) AS n FROM orders GROUP BY note"

VISITORS = (
    "SELECT id, amount FROM orders WHERE customer = {}",
    "SELECT c.city, max(amount) AS high FROM orders o JOIN customers c ON customer = c.id WHERE o.id > {} GROUP BY 1",
    "SELECT branch, count(*) AS n FROM accounts WHERE money > {} GROUP BY branch",
    "SELECT customer, id, rank() OVER (PARTITION BY note ORDER BY weight, id) AS place FROM orders WHERE id > {}",
)
"""Views that come and go."""


def open_town(path: Path | str) -> Database:
    return open_database(path, map_size=1 << 30)


def found_town(path: Path, seed: int) -> Database:
    """A new town with all its views."""
    db = open_town(path)
    created = [f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()]
    db.sql(";\n".join([TABLES, *created, f"CREATE MATERIALIZED VIEW late WITH (refresh = 'lazy') AS {LATE}"]))
    db.sql(f"SET GLOBAL log_retention_operations = {RETENTION}; SET GLOBAL log_retention_age = '0 seconds'")
    db.table("accounts").put_many([{"id": id, "branch": id % BRANCHES, "money": EACH} for id in range(ACCOUNTS)])
    for number in range(1, 11):
        step(db, seed, SHOP, number)
    db.flush()
    return db


def next_step(db: Database, writer: int) -> int:
    """The number of the writer's first step that is not done."""
    return len(numbers(db, writer)) + 1


def numbers(db: Database, writer: int) -> list[int]:
    """The numbers of the writer's steps that are done, in their order."""
    return [row["number"] for row in db.table("done").scan([writer]).dicts()]


def step(db: Database, seed: int, writer: int, number: int) -> None:
    """One batch of a writer."""
    rng = random.Random(f"{seed}/{writer}/{number}")
    with db.batch() as batch:
        batch.table("done").put({"writer": writer, "number": number})
        if writer == BANK:
            for row in _transfers(db, rng):
                batch.table("accounts").put(row)
            return
        for _ in range(rng.randint(1, 5)):
            id = rng.randrange(ORDERS)
            if rng.random() < 0.25:
                batch.table("orders").delete(id)
            else:
                batch.table("orders").put(_order(id, rng))
        if rng.random() < 0.3:
            id = rng.randrange(CUSTOMERS)
            if rng.random() < 0.3:
                batch.table("customers").delete(id)
            else:
                batch.table("customers").put({"id": id, "city": rng.randrange(5), "name": f"c{number}"})


def _transfers(db: Database, rng: random.Random) -> Iterator[dict[str, object]]:
    """Money between two accounts; now and then an account moves to another branch."""
    accounts = db.table("accounts")
    amount = rng.randint(1, 50)
    for id, change in zip(rng.sample(range(ACCOUNTS), 2), (-amount, amount), strict=True):
        row = accounts.get(id)
        assert row is not None and isinstance(row["money"], int)
        branch = rng.randrange(BRANCHES) if rng.random() < 0.2 else row["branch"]
        yield {"id": id, "branch": branch, "money": row["money"] + change}


def _order(id: int, rng: random.Random) -> dict[str, object]:
    row: dict[str, object] = {"id": id, "customer": rng.choice([None, *range(CUSTOMERS)])}
    if rng.random() < 0.8:
        row["amount"] = Decimal(rng.randrange(-9999, 99999)) / 100
    if rng.random() < 0.8:
        row["weight"] = rng.randrange(100) / 4  # sums of which are exact in any order
    if rng.random() < 0.5:
        row["note"] = rng.choice(NOTES)
    return row


# ------------------------------------------------------------------ what every reader must see


def disagreement(snapshot: Snapshot) -> str:
    """What does not add up in one snapshot; nothing if all is well."""

    def one(view: str) -> dict[str, object]:
        return snapshot.view(view).get() or {}

    def summed(view: str, *columns: str) -> int:
        return sum(math.prod(map(row.__getitem__, columns)) for row in snapshot.view(view).scan().dicts())

    counts = {
        "money": {
            "accounts": sum(row["money"] for row in snapshot.table("accounts").scan().dicts()),
            "total": one("total")["money"],
            "branches": summed("branches", "money"),
            "above": one("above")["money"],
        },
        "accounts": {
            "accounts": snapshot.table("accounts").count(),
            "total": one("total")["n"],
            "branches": summed("branches", "n"),
            "above": one("above")["n"],
        },
        "orders": {
            "sold": one("sold")["n"],
            "sales": summed("sales", "n"),
            "cities": summed("cities", "n"),
            "popular": summed("popular", "n", "customers"),
            "ranked": snapshot.view("ranked").count(),
        },
    }
    fixed = {"money": ACCOUNTS * EACH, "accounts": ACCOUNTS, "orders": counts["orders"]["sold"]}
    wrong = [f"{what}: {found}" for what, found in counts.items() if set(found.values()) != {fixed[what]}]
    return f"epoch {snapshot.epoch('total')}: {'; '.join(wrong)}" if wrong else ""
