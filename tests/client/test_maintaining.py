"""Views kept up to date for as long as a block lasts, and the status of everything."""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter
from decimal import Decimal

import pytest

import everview
from everview import ViewChange
from everview.errors import DefinitionError, EverviewError, LeaseTakenError
from everview.maintain import executor
from everview.maintain.scheduler import Scheduler
from tests.client.kinds import VIEWS, define, write
from tests.oracle.maintained import bag


@pytest.fixture
def counted(shop: everview.Database) -> everview.Database:
    shop.sql("CREATE MATERIALIZED VIEW counted AS SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    shop.sql("CREATE MATERIALIZED VIEW many WITH (refresh = 'lazy') AS SELECT count(*) AS n FROM orders")
    return shop


def test_views_follow_the_writes_of_the_block(counted: everview.Database) -> None:
    with counted.maintain(spark=False) as running:
        changes = counted.view("counted").subscribe(timeout=60)
        counted.table("orders").put({"id": 10, "customer": 10})
        assert next(changes).came.to_pylist() == [{"customer": 10, "n": 2}]
        counted.table("orders").put({"id": 11, "customer": 10})
        running.drain(60)
        assert counted.view("counted").get(10) == {"customer": 10, "n": 3}
        assert counted.view("many").get() == {"n": 5}
        counted.sql("CREATE MATERIALIZED VIEW totals AS SELECT sum(amount) AS total FROM orders")
        running.drain(60)
        assert counted.view("totals").get() == {"total": Decimal("12.50")}
        counted.sql("DROP MATERIALIZED VIEW totals; CREATE INDEX by_customer ON orders (customer); FLUSH")
        counted.flush(60)
        running.check()
    epoch = counted.store.views.committed("main").epoch
    counted.table("orders").put({"id": 12, "customer": 10})
    assert counted.store.views.committed("main").epoch == epoch, "nobody maintains them any more"


def test_a_lazy_group_moves_when_a_reader_asks(counted: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.client.freshness.LITTLE", 0)
    monkeypatch.setattr("everview.maintain.scheduler.IDLE", 1e9)
    with counted.maintain(spark=False):
        group = counted.catalog.view("many").group
        before = counted.store.views.committed(group).epoch
        counted.table("orders").put({"id": 10, "customer": 10})
        assert counted.view("many").get(fresh=True, deadline=60) == {"n": 4}
        assert counted.store.views.committed(group).epoch > before


def test_there_is_one_maintainer_at_a_time(counted: everview.Database) -> None:
    with counted.maintain(spark=False):
        assert counted.status().maintainer == f"process {os.getpid()}"
        with pytest.raises(LeaseTakenError), counted.maintain(spark=False):
            pass
    with counted.maintain(spark=False, wait=5) as running:
        running.drain(60)


def test_failures_are_raised(counted: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise EverviewError("no more")

    with pytest.raises(EverviewError, match="no more"), counted.maintain(spark=False) as running:
        running.drain(60)
        monkeypatch.setattr(executor.LocalExecutor, "work", fail)
        counted.table("orders").put({"id": 10, "customer": 10})
        running.drain(60)


def test_readers_beside_a_maintainer(db: everview.Database) -> None:
    """Sessions, snapshots and subscriptions while views of all kinds are kept up to date."""
    define(db)
    rng = random.Random(3)
    over = threading.Event()
    received: dict[str, list[ViewChange]] = {"grouped": [], "outer_joined": []}

    def follow(name: str) -> None:
        changes = db.view(name).subscribe(snapshot=True, timeout=0.05)
        while True:
            ended = over.is_set()
            received[name] += changes
            if ended:
                return

    with db.maintain(spark=False) as running:
        followers = [threading.Thread(target=follow, args=(name,)) for name in received]
        for follower in followers:
            follower.start()
        with db.session() as session:
            for n in range(25):
                write(db, rng, 3)
                session.table("a").put({"id": 50, "x": n, "k": 1})
                assert session.view("over_1").get(50) == ({"id": 50, "x": n} if n > 1 else None)
        running.drain(60)
        over.set()
        for follower in followers:
            follower.join()
    for name, changes in received.items():
        rows: Counter[tuple[object, ...]] = Counter()
        for change in changes:
            rows = rows - bag(change.went) + bag(change.came)
        assert rows == bag(db.view(name).scan().arrow())
    fresh = {name: bag(db.view(name).scan(fresh=True).arrow()) for name in VIEWS}
    assert fresh == {name: bag(db.view(name).scan().arrow()) for name in VIEWS}


def test_the_status_of_everything(counted: everview.Database) -> None:
    counted.sql("CREATE MATERIALIZED VIEW numbers AS SELECT id, CAST(note AS INTEGER) AS n FROM orders; FLUSH")
    counted.sql("CREATE INDEX by_note ON orders (note)")
    counted.table("orders").put({"id": 10, "customer": 10})
    found = counted.status()
    assert found.maintainer is None
    main, lazy = found.groups
    assert (main.name, main.kind, main.lag, main.under_way) == ("main", "continuous", 1, None)
    assert (lazy.kind, lazy.lag, [view.name for view in lazy.views]) == ("lazy", 1, ["many"])
    assert main.epoch == counted.store.views.committed("main").epoch and main.behind >= 0 and main.committed > 0
    assert found.view("numbers").quarantined == 2, "two notes are no numbers"
    assert found.view("counted").quarantined == 0
    assert found.view("by_note").kind == "index"
    assert ("orders", 4) in found.tables
    assert found.latest == counted.store.log.latest()
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["groups"][0]["frontier"] == str(main.frontier)
    assert plain["latest"] == str(found.latest)
    text = repr(found)
    assert "group main (continuous): epoch" in text and "1 operations" in text
    assert "view numbers, 2 quarantined" in text and "by nobody" in text
    counted.flush()
    assert {group.lag for group in counted.status().groups} == {0}
    assert "up to date" in repr(counted.status())


def test_the_status_of_a_build(counted: everview.Database) -> None:
    with counted.store.lease("maintenance"):
        counted.sql("CREATE MATERIALIZED VIEW late AS SELECT count(*) AS n FROM orders, lines")
    maintainer = counted._freshness._maintainer
    with maintainer.lease():
        assert counted.status().maintainer == f"process {os.getpid()}"
        maintainer.recover()
        maintainer.start("main", maintainer.builder.waiting()["main"])
        (build,) = counted.status().builds
        assert (build.target, build.views, build.tables) == ("main", ("late",), (0, 2))
        assert build.phase == "takes in lines"
        for _ in range(2):
            maintainer.step(maintainer.builder.builds()[0])
        (build,) = counted.status().builds
        assert build.tables == (1, 2) and build.phase == "takes in orders"
        assert counted.status().view("late").status == "building"
        assert "building late for main: takes in orders" in repr(counted.status())
    counted.flush()
    assert counted.status().builds == () and counted.status().view("late").status == "live"


def test_only_inside_the_block(counted: everview.Database) -> None:
    running = counted.maintain(spark=False)
    with running:
        pass
    with pytest.raises(DefinitionError, match="not maintained here"):
        running.drain(1)


def test_what_comes_while_it_tidies_is_not_missed(counted: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    maintainer = counted._freshness._maintainer
    scheduler = Scheduler(maintainer, lambda error: False)
    tidy = maintainer.tidy

    def tidy_and_more() -> None:
        tidy()
        monkeypatch.undo()
        counted.sql("CREATE MATERIALIZED VIEW more AS SELECT count(*) AS n FROM lines")

    with maintainer.lease():
        monkeypatch.setattr(maintainer, "tidy", tidy_and_more)
        for _ in range(20):
            scheduler.turn()
        assert counted.view("more").get() == {"n": 4}
        while scheduler.turn():
            pass
