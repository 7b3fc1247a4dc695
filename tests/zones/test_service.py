"""A store maintained as a service: in this process, and by processes that are asked to end, or killed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import everview
from everview.errors import DamagedEntryError, StoreFullError
from everview.maintain import executor
from everview.maintain.builds import builds_of
from everview.maintain.plans import PAUSES
from everview.zones import service
from everview.zones.events import Event
from everview.zones.service import Ended, Service
from tests.cli.served import Served, served
from tests.zones.shop import assert_all_is_right, trade, wrong

LAZY = "CREATE MATERIALIZED VIEW many WITH (refresh = 'lazy') AS SELECT count(*) AS n FROM orders"
NUMBERS = "CREATE MATERIALIZED VIEW numbers AS SELECT id, CAST(note AS INTEGER) AS n FROM orders"


class Reports:
    """Remembers what a service reports, and may do something about it."""

    def __init__(self, reactions: Mapping[str, Callable[[], object]] | None = None) -> None:
        self.events: list[Event] = []
        self._reactions = reactions or {}

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        reaction = self._reactions.get(event.name)
        if reaction is not None:
            reaction()

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]

    def one(self, name: str) -> Event:
        (found,) = (event for event in self.events if event.name == name)
        return found


# ------------------------------------------------------------------ in this process


def test_once_brings_all_groups_to_the_end_of_the_logs(db: everview.Database, store: Path) -> None:
    db.sql(LAZY)
    trade(db, 10, seed=1)
    reports = Reports()
    assert Service(store, reports, local=True, once=True, operations=50).run() is Ended.CLEAN
    assert_all_is_right(db)
    assert {group.lag for group in db.status().groups} == {0}
    assert reports.names[0] == "started" and reports.names[-1] == "stopped"
    started = reports.one("started")
    assert started.records[0]["process"] == os.getpid() and "totals" in started.text
    done = [record for event in reports.events if event.name == "epoch" for record in event.records]
    taken = sum(int(str(record["operations"])) for record in done if record["group"] == "main")
    assert taken == sum(db.store.log.latest().values())
    assert len(done) > 2


def test_builds_and_quarantined_rows_are_reported(
    db: everview.Database, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LOOK", 0.0)
    db.table("orders").put_many([{"id": 1, "note": "7"}, {"id": 2, "note": "x"}])
    db.flush()

    def aside() -> None:
        if "seven" in reports.events[-1].text:
            running.stop("test")

    reports = Reports(
        {
            "started": lambda: db.sql(NUMBERS),
            "built": lambda: db.table("orders").put({"id": 3, "note": "seven"}),
            "quarantined": aside,
        }
    )
    running = Service(store, reports, local=True)
    assert running.run() is Ended.CLEAN
    assert reports.one("built").records == ({"views": ["numbers"], "group": "main"},)
    quarantined = [event for event in reports.events if event.name == "quarantined"]
    assert len(quarantined) == 2 and all(event.wrong for event in quarantined)
    assert [record["values"] for record in quarantined[1].records] == [{"orders.id": "3", "orders.note": "seven"}]
    assert quarantined[1].records[0]["views"] == ["numbers"]


def test_an_error_that_may_pass_is_reported_and_tried_again(
    db: everview.Database, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = executor.LocalExecutor.work
    full = iter(range(2))

    def sometimes(*asked: object) -> object:
        if next(full, None) is not None:
            raise StoreFullError("the disk is full", hint="free some space")
        return work(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(executor.LocalExecutor, "work", sometimes)
    monkeypatch.setattr(service, "AGAIN", (0.0, 0.125))
    trade(db, 1, seed=1)
    reports = Reports()
    assert Service(store, reports, local=True, once=True).run() is Ended.CLEAN
    assert [event.records[0]["retry_in"] for event in reports.events if event.name == "error"] == [0.0, 0.125]
    assert "the disk is full" in reports.events[1].text and "free some space" in reports.events[1].text
    assert_all_is_right(db)


def test_a_service_asked_to_end_while_an_epoch_cannot_be_finished_has_failed(
    db: everview.Database, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreFullError("the disk is full")

    monkeypatch.setattr(executor.LocalExecutor, "work", full)
    trade(db, 1, seed=1)
    reports = Reports({"error": lambda: running.stop("test")})
    running = Service(store, reports, local=True)
    assert running.run() is Ended.FAILED
    assert reports.names == ["started", "error"] and under_way(db) == ["main"]


def test_what_is_not_known_to_pass_is_tried_a_few_times(
    db: everview.Database, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no worker")

    monkeypatch.setattr(executor.LocalExecutor, "work", fail)
    monkeypatch.setattr(service, "AGAIN", (0.0,))
    trade(db, 1, seed=1)
    reports = Reports()
    assert Service(store, reports, local=True).run() is Ended.FAILED
    assert [event.records[0]["retry_in"] for event in reports.events if event.name == "error"] == [0.0, 0.0, 0.0, None]
    assert "the operating system refuses: no worker" in reports.events[-1].text


def test_an_error_that_does_not_pass_ends_it(
    db: everview.Database, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DamagedEntryError("group 7 does not add up", hint="rebuild the view")

    monkeypatch.setattr(executor.LocalExecutor, "work", fail)
    trade(db, 1, seed=1)
    reports = Reports()
    assert Service(store, reports, local=True).run() is Ended.FAILED
    record = reports.one("error").records[0]
    assert (record["error"], record["do"], record["retry_in"]) == ("DamagedEntryError", "rebuild the view", None)
    assert "stopped" not in reports.names


def test_who_comes_second_is_refused_or_waits(db: everview.Database, store: Path) -> None:
    with db.store.lease("maintenance"):
        reports = Reports()
        assert Service(store, reports, local=True).run() is Ended.TAKEN
        assert reports.names == ["error"] and f"maintained by process {os.getpid()}" in reports.events[0].text
        reports = Reports()
        assert Service(store, reports, local=True, wait=0.01).run() is Ended.TAKEN
        assert reports.names == ["waiting", "error"]
        reports = Reports({"waiting": lambda: running.stop("test")})
        running = Service(store, reports, local=True, wait=None)
        assert running.run() is Ended.CLEAN
        assert reports.names == ["waiting", "stopped"]
    lease = db.store.lease("maintenance")
    reports = Reports({"waiting": lambda: lease.__exit__(None, None, None)})
    assert Service(store, reports, local=True, wait=None, once=True).run() is Ended.CLEAN
    assert reports.names[:2] == ["waiting", "started"]


# ------------------------------------------------------------------ processes


def under_way(db: everview.Database) -> list[str]:
    """The groups in which an epoch is under way."""
    return [group.name for group in db.catalog.groups() if db.store.views.begun(group.name) is not None]


@contextmanager
def writing(db: everview.Database) -> Iterator[None]:
    """While orders are written."""
    over = threading.Event()

    def write() -> None:
        seed = 0
        while not over.wait(0.01):
            trade(db, 1, seed := seed + 1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def assert_ends_cleanly(db: everview.Database, service: Served, why: str) -> None:
    assert service.end() == 0
    assert under_way(db) == [] and db.store.holder("maintenance") is None
    assert not db.store.metadata.documents(PAUSES)[1], "the next process begins epochs at once"
    assert service.events[-1]["event"] == "stopped" and service.events[-1]["why"] == why
    assert not (found := wrong(db)), found


@pytest.mark.parametrize("means", [("--local",), ()], ids=["local", "spark"])
def test_a_service_is_ended_killed_and_taken_over_under_a_running_writer(
    db: everview.Database, store: Path, means: tuple[str, ...]
) -> None:
    options = (*means, "--operations", "40")
    with served(store, *options) as first:
        process = first.until("started")["process"]
        with writing(db), served(store, *options, "--wait", "forever") as standby:
            assert standby.until("waiting")["holder"] == f"process {process}"
            first.until("epoch")
            with served(store, *options) as second:
                assert second.end() == os.EX_TEMPFAIL
                assert f"process {process}" in second.events[-1]["message"]
            if not means:
                assert standby.until("ready")["store"] == str(store), "Spark has started before it is its turn"
            first.signal(signal.SIGKILL)
            assert first.end() == -signal.SIGKILL
            standby.until("started")
            standby.until("epoch")
            standby.signal(signal.SIGTERM)
            assert_ends_cleanly(db, standby, "SIGTERM")
    fill(db, 150_000)
    with served(store, *means) as third:
        third.until("started")
        db.sql("CREATE MATERIALIZED VIEW large AS SELECT k % 10 AS g, count(*) AS n FROM many GROUP BY g")
        while not builds_of(db.store):
            assert third.process.poll() is None
        third.interrupt()
        assert_ends_cleanly(db, third, "SIGINT")
        (build,) = builds_of(db.store)
        assert not build.phase.holds_group, "the rest is for the next one"
    assert Service(store, Reports(), local=True, once=True).run() is Ended.CLEAN
    assert_all_is_right(db)
    assert db.view("large").count() == 10


def fill(db: everview.Database, rows: int) -> None:
    db.create_table("many", {"k": "BIGINT"}, key=["k"]).put_many(pa.table({"k": pa.array(range(rows))}))


def test_a_spark_that_does_not_start_is_reported(db: everview.Database, store: Path) -> None:
    with served(store, environment={"JAVA_HOME": "/nowhere"}) as service:
        found = service.until("error")
        assert found["message"] == "Spark does not start on this machine" and "Java 17" in found["do"]
        service.signal(signal.SIGTERM)
        assert service.end() == 1
    assert db.store.holder("maintenance") is None


def test_a_standby_without_spark_is_reported_before_it_matters(db: everview.Database, store: Path) -> None:
    with (
        db.store.lease("maintenance"),
        served(store, "--wait", "forever", environment={"JAVA_HOME": "/nowhere"}) as service,
    ):
        service.until("waiting")
        assert service.until("error")["message"] == "Spark does not start on this machine"
        assert service.end() == 1


def test_a_second_signal_gives_up_at_once(db: everview.Database, store: Path) -> None:
    trade(db, 1, seed=1)
    with served(store, "--local", module="tests.cli.stuck") as service:
        service.until("inside")
        service.signal(signal.SIGTERM)
        service.until("stopping")
        service.signal(signal.SIGINT)
        assert service.end() == 128 + signal.SIGINT
    assert under_way(db) == ["main"]
    assert Service(store, Reports(), local=True, once=True).run() is Ended.CLEAN
    assert_all_is_right(db)
