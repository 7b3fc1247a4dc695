"""Changes of views, epoch by epoch: added up they make the view, for every subscriber at any time."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path

import pytest

import everview
from everview.client import subscriptions
from everview.client.subscriptions import ViewChange
from everview.errors import DefinitionError, InputError, SnapshotExpiredError, UnknownObjectError
from everview.store.embedded import epoch_records
from tests.client.kinds import VIEWS, define, write
from tests.oracle.maintained import bag

Bag = Counter[tuple[object, ...]]


def applied(rows: Bag, change: ViewChange) -> Bag:
    went = bag(change.went)
    assert went <= rows, "only what is there goes"
    return rows - went + bag(change.came)


@pytest.fixture
def counted(shop: everview.Database) -> everview.Database:
    shop.sql("CREATE MATERIALIZED VIEW counted AS SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    shop.sql("CREATE MATERIALIZED VIEW pages AS SELECT page FROM visits")
    return shop


def order(db: everview.Database, id: int, customer: int | None) -> None:
    db.table("orders").put({"id": id, "customer": customer})
    db.flush()


def test_every_epoch_yields_what_it_changed(counted: everview.Database) -> None:
    changes = counted.view("counted").subscribe(timeout=0)
    assert list(changes) == []
    order(counted, 10, 10)
    order(counted, 11, 99)
    counted.table("visits").put({"page": "x"})
    counted.flush()
    counted.table("orders").delete(1)
    counted.table("orders").delete(11)
    counted.flush()
    first, second, third, fourth = changes
    assert first.came.to_pylist() == [{"customer": 10, "n": 2}]
    assert first.went.to_pylist() == [{"customer": 10, "n": 1}]
    assert (second.came.to_pylist(), len(second.went)) == ([{"customer": 99, "n": 1}], 0)
    assert len(third.came) == len(third.went) == 0, "an epoch that changed something else"
    assert fourth.came.to_pylist() == [{"customer": 10, "n": 1}]
    assert sorted(row["customer"] for row in fourth.went.to_pylist()) == [10, 99]
    assert [change.epoch for change in (first, second, third, fourth)] == sorted(
        change.epoch for change in (first, second, third, fourth)
    )
    assert fourth.frontier == counted.store.views.committed("main").frontier
    assert first.rows() == [(-1, {"customer": 10, "n": 1}), (1, {"customer": 10, "n": 2})]
    assert str(first) == f"counted epoch {first.epoch}: +1 −1 rows"


def test_equal_rows_come_and_go_as_often_as_they_do(counted: everview.Database) -> None:
    changes = counted.view("pages").subscribe(timeout=0)
    counted.sql("INSERT INTO visits VALUES (1, 'new'), (2, 'new'); DELETE FROM visits WHERE customer = 10; FLUSH")
    (change,) = changes
    assert change.came.to_pylist() == [{"page": "new"}] * 2
    assert change.went.to_pylist() == [{"page": "home"}] * 2


def test_a_subscription_goes_on_where_another_was(counted: everview.Database, tmp_path: Path) -> None:
    """In another process, after any number of epochs, the very same changes."""
    view = counted.view("counted")
    start = view.subscribe(timeout=0)
    received = []
    for id in range(20, 60):
        order(counted, id, id % 3)
        received += list(start)
    assert len(received) == 40
    with everview.open(tmp_path / "store") as other:
        for at in (0, 7, 38, 39):
            again = list(other.view("counted").subscribe(received[at].token, timeout=0))
            assert [change.epoch for change in again] == [change.epoch for change in received[at + 1 :]]
            for one, same in zip(again, received[at + 1 :], strict=True):
                assert (bag(one.came), bag(one.went), one.frontier) == (bag(same.came), bag(same.went), same.frontier)
        assert list(other.view("counted").subscribe(received[-1], timeout=0)) == []


@pytest.mark.parametrize("seed", range(2))
def test_changes_make_the_view(db: everview.Database, seed: int) -> None:
    """Of every kind of view, followed closely or from far behind, while others come and go."""
    rng = random.Random(seed)
    define(db, lazy=("joined",))
    write(db, rng, 30)
    db.flush()
    near, far = ({name: db.view(name).subscribe(snapshot=True, timeout=0) for name in VIEWS} for _ in range(2))
    rows: dict[str, Bag] = {name: Counter() for name in VIEWS}
    for round in range(5):
        write(db, rng, rng.choice([1, 5, 15]))
        if round == 2:
            db.sql("CREATE MATERIALIZED VIEW more AS SELECT k, sum(x) AS s, max(s) AS t FROM a GROUP BY k")
            db.sql("ALTER TABLE a ADD COLUMN extra INTEGER")
        if round == 4:
            db.sql("DROP MATERIALIZED VIEW more")
        db.flush()
        for name, changes in near.items():
            for change in changes:
                rows[name] = applied(rows[name], change)
            assert rows[name] == bag(db.view(name).scan().arrow()), f"{name} in round {round}"
    for name, changes in far.items():
        late: Bag = Counter()
        for change in changes:
            late = applied(late, change)
        assert late == rows[name], name


def test_all_rows_first(counted: everview.Database) -> None:
    view = counted.view("counted")
    changes = view.subscribe(snapshot=True, timeout=0)
    order(counted, 10, 10)
    whole, change = changes
    assert whole.whole and not change.whole
    assert applied(bag(whole.came), change) == bag(view.scan().arrow())
    assert str(whole) == f"counted epoch {whole.epoch}: all rows"


def test_a_subscriber_waits_for_the_next_epoch(counted: everview.Database) -> None:
    changes = counted.view("counted").subscribe(timeout=60)
    writer = threading.Thread(target=order, args=(counted, 10, 10))
    writer.start()
    assert next(changes).came.to_pylist() == [{"customer": 10, "n": 2}]
    writer.join()


def test_what_is_too_old_is_said(counted: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    view = counted.view("counted")
    order(counted, 10, 10)
    token = view.subscribe().token
    for id in range(11, 14):
        order(counted, id, 10)
    assert len(list(view.subscribe(token, timeout=0))) == 3
    counted.store.log.trim(counted.store.views.committed("main").frontier)
    with pytest.raises(SnapshotExpiredError, match=r"(?s)since epoch \d+ is not known any more.*snapshot=True"):
        view.subscribe(token)
    (whole,) = view.subscribe(token, snapshot=True, timeout=0)
    assert whole.whole and bag(whole.came) == bag(view.scan().arrow())
    monkeypatch.setattr(epoch_records, "HISTORY", 2)
    for id in range(14, 18):
        order(counted, id, 10)
    with pytest.raises(SnapshotExpiredError, match="not known any more"):
        view.subscribe(whole.token)
    monkeypatch.setattr(subscriptions, "MOST", 0)
    token = view.subscribe().token
    order(counted, 20, 10)
    with pytest.raises(SnapshotExpiredError, match="not known any more"):
        view.subscribe(token)


def test_a_view_that_is_gone_or_another(counted: everview.Database) -> None:
    view = counted.view("counted")
    changes = view.subscribe(timeout=0)
    token = changes.token
    counted.sql("CREATE OR REPLACE MATERIALIZED VIEW counted AS SELECT customer, sum(id) AS n FROM orders GROUP BY 1")
    for call in (lambda: next(changes), lambda: view.subscribe(token)):
        with pytest.raises(SnapshotExpiredError, match="is another one since"):
            call()
    with pytest.raises(InputError, match="not the position of a subscription"):
        view.subscribe("yesterday")
    counted.sql("DROP MATERIALIZED VIEW counted")
    with pytest.raises(UnknownObjectError):
        next(changes)


def test_logs_without_before_images(tmp_path: Path) -> None:
    with everview.open(tmp_path, before_images=False) as db:
        db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
        with pytest.raises(DefinitionError, match="cannot be subscribed to"):
            db.view("v").subscribe()
