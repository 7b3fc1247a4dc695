"""Reads that ask for more than the last epoch shows: what is laid over it is what the next epoch commits."""

from __future__ import annotations

import random
import threading
from decimal import Decimal
from pathlib import Path

import pytest

import everview
from everview.client import freshness
from everview.client.view_handles import ViewReader
from everview.errors import DeadlineError, InputError
from everview.maintain.coordination import asked
from everview.store.contract import TableSnapshot
from tests.client.kinds import VIEWS, define, write
from tests.oracle.maintained import bag


@pytest.fixture
def totals(shop: everview.Database) -> everview.Database:
    shop.sql("CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
    shop.sql("CREATE MATERIALIZED VIEW count_all WITH (refresh = 'lazy') AS SELECT count(*) AS n FROM orders")
    return shop


def epoch(db: everview.Database, group: str = "main") -> int:
    return db.store.views.committed(group).epoch


@pytest.mark.parametrize(("seed", "before_images"), [(0, True), (1, True), (2, False)])
def test_laid_over_is_what_the_next_epoch_commits(tmp_path: Path, seed: int, before_images: bool) -> None:
    """And back: what has been committed can be undone, where the logs have before-images."""
    rng = random.Random(seed)
    with everview.open(tmp_path, durability="none", before_images=before_images) as db:
        define(db, lazy=("joined", "best"))
        for round in range(3):
            write(db, rng, rng.choice([1, 6, 20]))
            before = {name: bag(db.view(name).scan().arrow()) for name in VIEWS}
            frontiers = {name: db.store.views.committed(db.view(name).definition.group).frontier for name in VIEWS}
            last = epoch(db)
            fresh = {name: bag(db.view(name).scan(fresh=True).arrow()) for name in VIEWS}
            counts = {name: db.view(name).count(fresh=True) for name in VIEWS}
            asked_by_sql = {name: bag(db.sql(f"SELECT * FROM {name}", fresh=True).arrow()) for name in VIEWS}
            assert epoch(db) == last, "a reader writes nothing"
            db.flush()
            after = {name: bag(db.view(name).scan().arrow()) for name in VIEWS}
            assert fresh == after, f"round {round}"
            assert asked_by_sql == after
            assert counts == {name: rows.total() for name, rows in after.items()}
            if before_images:
                undone = {name: bag(rows_at(db, name, frontiers[name])) for name in VIEWS}
                assert undone == before


def rows_at(db: everview.Database, name: str, frontier: everview.Frontier) -> object:
    """The rows of a view as they were at an earlier frontier."""
    known = db._freshness.views
    with db.store.snapshot() as snapshot:
        rows = known.last(db.catalog.view(name))
        laid: TableSnapshot = db._freshness.pending.at(rows.view.group, name, snapshot, frontier)
        return ViewReader(rows, laid).scan().arrow()


def test_ranges_and_keys_of_what_is_laid_over(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t SELECT range, 0 FROM range(1000)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
    db.sql(
        "DELETE FROM t WHERE id % 3 = 0; UPDATE t SET n = 1 WHERE id % 5 = 0; INSERT INTO t VALUES (2000, 7), (-5, 7)"
    )
    view = db.view("v")
    expected = db.sql("SELECT id, n FROM t ORDER BY id").rows()
    assert view.scan(fresh=True).rows() == expected
    assert view.count() == 1000
    for start in (-9, 0, 299, 300, 998, 1999):
        rows = [row for row in expected if row[0] >= start]
        assert view.scan(start=(start,), fresh=True).rows() == rows
        assert view.scan(start=(start,), limit=7, fresh=True).rows() == rows[:7]
        assert view.scan(start=(start,), stop=(start + 300,), fresh=True).rows() == [
            row for row in rows if row[0] < start + 300
        ]
    assert view.get(3) == {"id": 3, "n": 0} and view.get(3, fresh=True) is None
    assert view.get(5, fresh=True) == {"id": 5, "n": 1}
    assert view.get(2000, fresh=True) == {"id": 2000, "n": 7}
    assert view.get_many([3, 5, 2000, 7], fresh=True).to_pylist() == [
        {"id": 5, "n": 1},
        {"id": 2000, "n": 7},
        {"id": 7, "n": 0},
    ]


def test_a_column_is_added_before_the_epoch(totals: everview.Database) -> None:
    totals.sql("ALTER TABLE orders ADD COLUMN weight INTEGER; INSERT INTO orders VALUES (9, 10, 1, 'x', 5)")
    assert totals.view("totals").get(10, fresh=True) == {"customer": 10, "total": Decimal("6.50")}


def test_much_is_waited_for(totals: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no process maintains the views, the reader does: an epoch of that group, of no other."""
    monkeypatch.setattr(freshness, "LITTLE", 2)
    totals.sql("INSERT INTO orders SELECT range + 100, 10, 1, NULL FROM range(50)")
    main, lazy = epoch(totals), epoch(totals, totals.catalog.view("count_all").group)
    assert totals.view("count_all").get(fresh=True) == {"n": 53}
    assert epoch(totals) == main
    assert epoch(totals, totals.catalog.view("count_all").group) > lazy
    assert totals.view("totals").get(10, fresh=True) == {"customer": 10, "total": Decimal("55.50")}
    assert epoch(totals) > main


def test_a_deadline_says_how_far_it_is(totals: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LITTLE", 0)
    with totals.store.lease("maintenance"):
        totals.table("orders").put({"id": 7, "customer": 10, "amount": 1})
        view = totals.view("count_all")
        for call in (
            lambda: view.get(fresh=True, deadline=0.01),
            lambda: view.count(fresh=True, deadline=0),
            lambda: view.scan(max_staleness=0, deadline=0),
            lambda: totals.sql("SELECT * FROM count_all", fresh=True, deadline=0),
        ):
            with pytest.raises(DeadlineError, match=r"(?s)not as fresh as asked for.*1 operations are missing to f:"):
                call()
        assert asked(totals.store) == {view.definition.group: totals.store.log.latest()}
        assert view.get() == {"n": 3}
    assert view.get(fresh=True, deadline=10) == {"n": 4}


def test_a_reader_waits_for_the_maintainer(totals: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LITTLE", 0)
    held = totals.store.lease("maintenance")
    totals.table("orders").put({"id": 7, "customer": 10, "amount": 1})
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.append(totals.view("totals").get(10, fresh=True)))
    reader.start()
    held.__exit__(None, None, None)
    reader.join()
    assert found == [{"customer": 10, "total": Decimal("6.50")}]


def test_a_bound_on_staleness(totals: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("everview.client.freshness.time.monotonic", lambda: now[0])
    view = totals.view("totals")
    orders = totals.table("orders")

    def put(amount: int) -> None:
        orders.put({"id": 50, "customer": 50, "amount": amount})

    put(1)
    assert view.get(50, max_staleness=10) == {"customer": 50, "total": Decimal(1)}, "nobody knows how old it is"
    put(2)
    now[0] += 5
    assert view.get(50) is None
    assert view.get(50, max_staleness=10) == {"customer": 50, "total": Decimal(1)}, "what was there 5 s ago"
    assert view.get(50, max_staleness=4) == {"customer": 50, "total": Decimal(2)}
    now[0] += 20
    put(3)
    assert view.get(50, max_staleness=10) == {"customer": 50, "total": Decimal(3)}
    totals.flush()
    put(4)
    now[0] += 1
    assert view.get(50, max_staleness=2) == {"customer": 50, "total": Decimal(3)}, "the epoch is recent enough"
    with pytest.raises(InputError, match="cannot be -1 s behind"):
        view.get(50, max_staleness=-1)


def test_views_of_several_groups_and_tables_are_one_state(totals: everview.Database) -> None:
    """However far each group is, a fresh query sees them all where the tables are."""
    totals.table("orders").put({"id": 7, "customer": 10, "amount": 1})
    totals._freshness.wait("main", totals.store.log.latest())
    totals.table("orders").put({"id": 8, "customer": 10, "amount": 1})
    counts = "(SELECT n FROM count_all), (SELECT count(*) FROM orders)"
    query = f"SELECT {counts}, (SELECT total FROM totals WHERE customer = 10)"
    assert totals.sql(query, fresh=True).rows() == [(5, 5, Decimal("7.50"))]
    assert totals.sql(query).rows() == [(3, 5, Decimal("6.50"))]


def test_plain_views_are_as_fresh_as_what_they_name(totals: everview.Database) -> None:
    totals.sql("CREATE VIEW named AS SELECT n + 1 AS n FROM count_all; CREATE VIEW twice AS SELECT n FROM named")
    totals.table("orders").put({"id": 7, "customer": 10, "amount": 1})
    assert totals.sql("SELECT n FROM twice").rows() == [(4,)]
    assert totals.sql("SELECT n FROM twice", fresh=True).rows() == [(5,)]
    totals.sql("INSERT INTO lines SELECT n, 1, 'x' FROM twice", fresh=True)
    assert totals.table("lines").get(5, 1) is not None
