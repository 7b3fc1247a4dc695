"""Lazy groups that are asked for most are moved first, and every other one is moved in the same turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.client import freshness
from everview.maintain import Maintainer
from everview.maintain.coordination import ask, asked
from everview.maintain.demand import DEMAND, HALF_LIFE, ReadCounts, demand, record_reads
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.scheduler import IDLE, Scheduler

NAMES = ("first", "second", "third")


@pytest.fixture
def lazy(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path, durability="none") as db:
        db.sql(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER); INSERT INTO t SELECT range, range % 3 FROM range(30)"
        )
        for name in NAMES:
            db.sql(
                f"CREATE MATERIALIZED VIEW {name} WITH (refresh = 'lazy') AS SELECT k, count(*) AS n FROM t GROUP BY k"
            )
        db.flush()
        yield db


def group_of(db: everview.Database, name: str) -> str:
    return db.catalog.view(name).group


def moved_in_order(db: everview.Database) -> list[str]:
    """The views in the order in which their groups committed their last epochs."""
    return sorted(NAMES, key=lambda name: db.store.views.committed(group_of(db, name)).epoch)


def scheduler(db: everview.Database) -> Scheduler:
    return Scheduler(Maintainer(db.store, db.catalog, EpochSizes(1_000)), lambda error: True)


def test_the_group_that_is_asked_for_most_moves_first(lazy: everview.Database) -> None:
    for name, reads in (("second", 7), ("third", 2)):
        record_reads(lazy.store, {group_of(lazy, name): reads})
    lazy.table("t").put({"id": 1, "k": 2})
    goal = lazy.store.log.latest()
    for name in NAMES:
        ask(lazy.store, group_of(lazy, name), goal)
    with lazy.store.lease("maintenance"):
        assert scheduler(lazy).move_asked()
    assert moved_in_order(lazy) == ["second", "third", "first"]
    assert not asked(lazy.store), "the one that nobody else asks for was moved in the same turn"


def test_an_idle_maintainer_moves_all_lazy_groups_in_that_order(
    lazy: everview.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("everview.maintain.scheduler.time.monotonic", lambda: now[0])
    record_reads(lazy.store, {group_of(lazy, "third"): 3, group_of(lazy, "first"): 1})
    lazy.table("t").put({"id": 1, "k": 2})
    with lazy.store.lease("maintenance"):
        loop = scheduler(lazy)
        assert not loop.move_groups(), "something was written just now"
        now[0] += IDLE
        assert loop.move_groups()
    assert moved_in_order(lazy) == ["third", "first", "second"]
    assert all(lazy.view(name).get(2) == {"k": 2, "n": 11} for name in NAMES)


def test_fresh_reads_of_a_group_that_lags_are_counted(lazy: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    view, group = lazy.view("second"), group_of(lazy, "second")
    view.get(1, fresh=True)
    assert demand(lazy.store) == {}, "the last epoch was fresh enough"
    lazy.table("t").put({"id": 1, "k": 2})
    counter = lazy.store.metadata.version()
    for _ in range(50):
        assert view.get(2, fresh=True) == {"k": 2, "n": 11}
    assert demand(lazy.store)[group] == pytest.approx(1, abs=0.1), "the first is recorded, the others are counted"
    assert lazy.store.metadata.version() == counter + 1
    monkeypatch.setattr("everview.maintain.demand.EVERY", 0.0)
    assert view.get(2, fresh=True) == {"k": 2, "n": 11}
    assert demand(lazy.store)[group] == pytest.approx(50, abs=1)
    assert f"group {group} (lazy)" in repr(lazy.status()) and "times a minute" in repr(lazy.status())
    (state,) = [one for one in lazy.status().groups if one.name == group]
    assert state.asked == pytest.approx(35, abs=2)


def test_reads_that_wait_are_counted(lazy: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LITTLE", 0)
    lazy.table("t").put({"id": 1, "k": 2})
    assert lazy.view("first").get(2, fresh=True) == {"k": 2, "n": 11}
    assert demand(lazy.store).keys() == {group_of(lazy, "first")}


def test_reads_are_forgotten(lazy: everview.Database) -> None:
    record_reads(lazy.store, {"a": 8, "b": 1}, now=1000.0)
    assert demand(lazy.store, now=1000.0 + 3 * HALF_LIFE) == {"a": pytest.approx(1), "b": pytest.approx(0.125)}
    assert demand(lazy.store, now=900.0) == {"a": 8, "b": 1}, "a clock that was set back changes nothing"
    record_reads(lazy.store, {"a": 1}, now=1000.0 + 10 * HALF_LIFE)
    assert demand(lazy.store, now=1000.0 + 10 * HALF_LIFE).keys() == {"a"}
    (document,) = lazy.store.metadata.documents(DEMAND)[1].values()
    assert json.loads(document)["reads"] == pytest.approx(1.008, abs=0.001)


def test_two_processes_count_together(lazy: everview.Database) -> None:
    for counts in (ReadCounts(lazy.store), ReadCounts(lazy.store)):
        counts.add("a")
        counts.record()
        counts.add("a")
        counts.record()
    assert demand(lazy.store)["a"] == pytest.approx(2, abs=0.1), "of each process the first read, so far"
