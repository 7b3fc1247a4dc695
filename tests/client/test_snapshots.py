"""Snapshots: one version of views and tables, for as long as it is held."""

from __future__ import annotations

import random
import threading

import pytest

import everview
from everview.errors import DefinitionError, SnapshotExpiredError, SqlRefusedError, UnknownObjectError
from tests.client.kinds import VIEWS, define, write
from tests.oracle.maintained import bag


@pytest.fixture
def totals(shop: everview.Database) -> everview.Database:
    shop.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    return shop


def test_what_is_read_of_a_snapshot_stays(totals: everview.Database) -> None:
    with totals.snapshot() as held:
        frontier = totals.store.log.latest()
        for customer in range(5):
            totals.sql("INSERT INTO orders VALUES (?, 10, 1, 'x')", [100 + customer])
            totals.flush()
        totals.sql("ALTER TABLE orders ADD COLUMN weight INTEGER; DELETE FROM orders WHERE id = 1; FLUSH")
        assert held.view("totals").get(10) == {"customer": 10, "n": 1}
        assert held.view("totals").scan((10,)).rows() == [(10, 1)]
        assert held.view("totals").count() == 3
        assert held.view("totals").get_many([20, 99]).num_rows == 1
        assert held.table("orders").get(1) is not None
        assert held.table("orders").count() == 3
        assert held.table("orders").scan(start=(2,)).names == ("id", "customer", "amount", "note")
        assert held.sql("SELECT sum(n), (SELECT count(*) FROM orders) FROM totals").rows() == [(3, 3)]
        assert held.frontier == frontier
        assert held.epoch("totals") < totals.store.views.committed("main").epoch
    with totals.snapshot() as now:
        assert now.view("totals").get(10) == {"customer": 10, "n": 5}


def test_what_came_later_is_not_there(totals: everview.Database) -> None:
    with totals.snapshot() as held:
        totals.sql(
            "CREATE MATERIALIZED VIEW later AS SELECT id FROM orders; CREATE TABLE more (id INTEGER PRIMARY KEY)"
        )
        for call in (lambda: held.view("later"), lambda: held.table("more"), lambda: held.sql("SELECT * FROM later")):
            with pytest.raises(UnknownObjectError):
                call()
        totals.sql("DROP MATERIALIZED VIEW totals")
        totals.sql("DROP MATERIALIZED VIEW later; FLUSH")
        assert held.view("totals").count() == 3, "what was there is still there"
        assert held.sql("SELECT sum(n) FROM totals").rows() == [(3,)]


def test_a_snapshot_is_only_read(totals: everview.Database) -> None:
    with totals.snapshot() as held:
        with pytest.raises(SqlRefusedError, match="read with SELECT only"):
            held.sql("DELETE FROM orders")
        with pytest.raises(DefinitionError, match="no primary key"):
            held.table("visits").get(1)
        assert len(held.table("visits").scan().rows()) == 4
        left = held.view("totals").scan()
    with pytest.raises(SnapshotExpiredError, match="closed"):
        left.rows()
    with pytest.raises(SnapshotExpiredError, match="closed"):
        held.view("totals").get(10)


def test_views_of_every_kind(db: everview.Database) -> None:
    define(db)
    rng = random.Random(1)
    write(db, rng, 30)
    db.flush()
    expected = {name: bag(db.view(name).scan().arrow()) for name in VIEWS}
    with db.snapshot() as held:
        write(db, rng, 30)
        db.flush()
        assert {name: bag(held.view(name).scan().arrow()) for name in VIEWS} == expected
        assert {name: bag(held.sql(f"SELECT * FROM {name}").arrow()) for name in VIEWS} == expected


def test_views_of_a_group_agree_in_every_snapshot(db: everview.Database) -> None:
    """Money moves between accounts; the total, and a view on the view of balances, never change."""
    db.sql("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER, branch INTEGER)")
    db.table("accounts").put_many([{"id": i, "balance": 100, "branch": i % 3} for i in range(20)])
    db.sql("CREATE MATERIALIZED VIEW branches AS SELECT branch, sum(balance) AS s FROM accounts GROUP BY branch")
    db.sql("CREATE MATERIALIZED VIEW bank AS SELECT sum(s) AS s FROM branches")
    over = threading.Event()
    wrong: list[object] = []
    seen: list[int] = []

    def read() -> None:
        while not over.is_set():
            with db.snapshot() as held:
                total = held.view("bank").get()
                parts = sum(row[1] for row in held.view("branches").scan())
                rows = held.sql("SELECT sum(balance) FROM accounts").rows()[0][0]
                if total != {"s": 2000} or parts != 2000 or rows != 2000:
                    wrong.append((total, parts, rows))
                seen.append(held.epoch("bank"))

    reader = threading.Thread(target=read)
    reader.start()
    rng = random.Random(2)
    accounts = dict.fromkeys(range(20), 100)
    for n in range(60):
        one, other, amount = rng.randrange(20), rng.randrange(20), rng.randrange(50)
        accounts[one] -= amount
        accounts[other] += amount
        with db.batch() as batch:
            for i in {one, other}:
                batch.table("accounts").put({"id": i, "balance": accounts[i]})
        if n % 3 == 0:
            db.flush()
    over.set()
    reader.join()
    assert not wrong and len(set(seen)) > 1
