"""Figures as a user reads them: tables of the schema everview, and the status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.client.database import Database
from everview.errors import UnknownObjectError

SETUP = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount INTEGER);
    CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
    CREATE MATERIALIZED VIEW dear AS SELECT * FROM orders WHERE amount > 15;
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path: Path = tmp_path_factory.mktemp("metrics") / "store"
    with everview.open(path, durability="none", map_size=1 << 28) as found:
        found.sql(SETUP)
        found.flush()
        found.sql("INSERT INTO orders VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)")
        found.flush()
        found.sql("UPDATE orders SET amount = 5 WHERE id = 3")
        found.flush()
        yield found


def test_epochs(db: Database) -> None:
    rows = db.sql(
        """SELECT operations, changes, inserted, updated, deleted, lag_operations, servers, queue
           FROM everview.epochs WHERE group_name = 'main' AND operations > 0 ORDER BY epoch"""
    ).rows()
    assert rows == [(3, 3, 4, 0, 0, 0, 1, 3), (1, 2, 0, 1, 1, 0, 1, 1)]
    ages = db.sql("SELECT staleness, seconds FROM everview.epochs WHERE operations > 0").rows()
    assert all(staleness >= 0 and seconds >= 0 for staleness, seconds in ages)
    (committed,) = db.sql("SELECT max(committed) FROM everview.epochs").rows()[0]
    assert abs(committed.timestamp() - db.store.views.committed("main").time) < 60


def test_updates_of_views(db: Database) -> None:
    query = """SELECT view_name, u.inserted, u.updated, u.deleted FROM everview.view_updates AS u
               JOIN everview.epochs USING (epoch) WHERE operations > 0 ORDER BY epoch, view_name"""
    assert db.sql(query).rows() == [("dear", 2, 0, 0), ("totals", 2, 0, 0), ("dear", 0, 0, 1), ("totals", 0, 1, 0)]
    totals = db.sql("SELECT view_name, inserted, updated, deleted FROM everview.views ORDER BY ALL").rows()
    assert totals == [("dear", 2, 0, 1), ("totals", 2, 1, 0)]


def test_groups_and_stages(db: Database) -> None:
    (group,) = db.sql("SELECT * FROM everview.groups").dicts()
    assert (group["group_name"], group["kind"], group["operations"], group["changes"]) == ("main", "continuous", 4, 5)
    stages = db.sql("SELECT DISTINCT stage, tasks FROM everview.stages ORDER BY ALL").rows()
    assert stages == [(1, 1), (2, 1)]


def test_names_are_found_in_any_spelling_and_columns_by_the_tables_name(db: Database) -> None:
    query = 'SELECT everview.epochs.epoch, epochs."operations" FROM Everview.EPOCHS WHERE epochs.operations = 3'
    assert [operations for _, operations in db.sql(query).rows()] == [3]


def test_a_snapshot_has_the_figures_of_its_epoch(db: Database) -> None:
    with db.snapshot() as snapshot:
        before = snapshot.sql("SELECT sum(operations), max(epoch) FROM everview.epochs").rows()
        db.sql("UPDATE orders SET amount = 5 WHERE id = 3")
        db.flush()
        assert snapshot.sql("SELECT sum(operations), max(epoch) FROM everview.epochs").rows() == before
    assert db.sql("SELECT sum(operations), max(epoch) FROM everview.epochs").rows() != before


def test_no_view_reads_them_and_nothing_lists_them(db: Database) -> None:
    for text in (
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM everview.epochs",
        "CREATE VIEW v AS SELECT * FROM everview.epochs",
        "EXPLAIN SELECT * FROM everview.epochs",
    ):
        with pytest.raises(UnknownObjectError, match=r"everview\.epochs cannot be read here at line 1"):
            db.sql(text)
    with pytest.raises(UnknownObjectError, match=r"there is no table everview\.nothing") as error:
        db.sql("SELECT * FROM everview.nothing")
    assert "everview.view_updates" in str(error.value)
    assert db.tables() == ("orders",)
    assert db.sql("SHOW TABLES").rows()[0][0] == "orders"
    assert "everview" not in str(db.sql("EXPLAIN SELECT customer FROM orders").rows())


def test_a_table_of_the_users_may_have_the_same_name(db: Database) -> None:
    db.sql("CREATE TABLE epochs (id INTEGER PRIMARY KEY)")
    db.sql("INSERT INTO epochs VALUES (7)")
    assert db.sql("SELECT * FROM epochs").rows() == [(7,)]
    assert db.sql("SELECT count(*) > 1 FROM everview.epochs").rows() == [(True,)]
    db.sql("DROP TABLE epochs")


def test_the_status_says_how_fast_and_how_old(db: Database) -> None:
    db.flush()
    db.sql("UPDATE orders SET amount = amount + 1")
    db.flush()
    found = db.status()
    (main,) = found.groups
    assert main.last is not None and main.last.operations == 3
    assert main.throughput > 0 and main.staleness is not None and main.predicted is not None
    assert main.totals is not None and main.totals.operations == sum(found.latest.values())
    assert (main.lag, main.behind) == (0, 0)
    dear = found.view("dear")
    assert dear.inserted - dear.deleted == db.view("dear").count()
    assert dear.rate > 0
    assert "operations/s" in repr(found) and "last epoch" in repr(found)
    assert json.loads(json.dumps(found.to_dict()))["groups"][0]["last"]["operations"] == 3


def test_how_far_behind_is_the_age_of_the_oldest_operation(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.flush()
    with db.store.lease("maintenance"):
        db.table("orders").put({"id": 9, "customer": 1, "amount": 1})
        written = db.store.log.written_after(db.store.views.committed("main").frontier)
        assert written is not None
        monkeypatch.setattr("time.time", lambda: written + 42.0)
        (main,) = db.status().groups
    assert main.lag == 1 and main.behind == pytest.approx(42.0)
