"""Processes that lag behind what happens to the views: sources of a stream begin no epoch that was planned before,
and readers meet no plan that is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from everview.catalog import MAIN, Catalog
from everview.client.database import Database
from everview.client.status import status
from everview.maintain import Plans, plans
from everview.maintain.builds import builds_of
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.epochs import streamed
from everview.maintain.maintainer import Maintainer
from everview.maintain.pending import Pending
from everview.maintain.rebuilding import ask_rebuild
from everview.maintain.scheduler import Scheduler
from everview.maintain.tasks import EpochTask
from everview.maintain.trimming import Trimmer
from everview.store.contract import Store, TableSnapshot
from tests.maintain.kept import Kept, kept
from tests.maintain.lagging import Gated, Source, Stopped
from tests.maintain.test_building import ROWS, create, member, write

CHANGES = {
    "views come": member(3) + create("sums") + create("ends"),
    "a view goes": "DROP MATERIALIZED VIEW m2",
    "a view comes again": "DROP MATERIALIZED VIEW m2;" + member(2),
    "a column comes": "ALTER TABLE a ADD COLUMN extra INTEGER",
    "all go": "DROP MATERIALIZED VIEW m2; DROP MATERIALIZED VIEW m1; DROP MATERIALIZED VIEW joined",
}
"""What happens to views, as a user says it; and views that are rebuilt."""
REBUILT = {"a view is rebuilt": ["joined"], "all are rebuilt": ["joined", "m1", "m2"]}
MOST = 1000
"""Calls of a source: it makes fewer."""
SEEN_BY_OTHERS = frozenset({"begin", "commit", "drop", "trim"})


@pytest.fixture(autouse=True)
def processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that one has decoded are not there for the others."""
    monkeypatch.setattr(plans, "KEPT", 0)


@contextmanager
def shop(path: Path) -> Iterator[Kept]:
    """Two views of a family and another one, and rows that they have not seen."""
    with kept(path, chunk=100, operations=1000) as k:
        k.sql(ROWS + member(1) + member(2) + create("joined"))
        k.settle()
        write(k, 1)
        yield k


def calls_of_a_source(path: Path) -> int:
    with shop(path) as k:
        source = Source(k.store, MOST)
        assert source.found is not None and source.calls[-1] == "begin"
        return len(source.calls)


def scheduler_of(k: Kept, announce: Callable[[str], None] = lambda name: None) -> Scheduler:
    gated: Any = Gated(k.store, announce)
    maintainer = Maintainer(gated, Catalog(gated.metadata, gated.views), EpochSizes(1000), 100)
    maintainer.trimmer = Trimmer(gated, maintainer.catalog, every=0)
    return Scheduler(maintainer, lambda error: pytest.fail(str(error)), MAIN)


def make(k: Kept, change: str) -> None:
    """Ask for a change."""
    if change in REBUILT:
        ask_rebuild(k.store, [k.db.catalog.view(name).id for name in REBUILT[change]])
    else:
        k.sql(CHANGES[change])


def tend(scheduler: Scheduler) -> None:
    """Until there is nothing to do beside the stream."""
    while scheduler.turn():
        pass


def write_one(k: Kept, number: int) -> None:
    k.sql(f"INSERT INTO a (id, k, x, s) VALUES ({number % 13}, {number % 4}, {number % 9}, 'one')")


def stream(k: Kept) -> None:
    """What the stream does once its source has begun an epoch."""
    begun = streamed(k.store, MAIN)
    if begun is not None:
        k.maintainer.epochs.run(begun)
    if k.live():
        k.check()


@pytest.mark.parametrize("change", [*CHANGES, *REBUILT])
def test_a_source_that_lags_anywhere_begins_nothing_that_was_planned_before(tmp_path: Path, change: str) -> None:
    for call in range(1, calls_of_a_source(tmp_path / "counted") + 1):
        with shop(tmp_path / str(call)) as k:
            source = Source(k.store, call)
            make(k, change)
            tend(scheduler_of(k))
            k.check_nothing_is_left()
            write(k, 2)
            source.go_on()
            stream(k)
            k.settle()


@pytest.mark.parametrize("change", [*CHANGES, *REBUILT])
def test_the_epoch_of_a_lagging_source_comes_before_anything_that_is_done(tmp_path: Path, change: str) -> None:
    last = calls_of_a_source(tmp_path / "counted")
    for moment in moments(tmp_path / "scheduler", change):
        with shop(tmp_path / str(moment)) as k:
            source = Source(k.store, last)
            make(k, change)
            calls: list[str] = []

            def announce(
                name: str, k: Kept = k, source: Source = source, calls: list[str] = calls, moment: int = moment
            ) -> None:
                calls.append(name)
                if len(calls) == moment:
                    source.go_on()
                    stream(k)

            tend(scheduler_of(k, announce))
            write(k, 2)
            k.settle()


def moments(path: Path, change: str, *, writing: bool = False) -> list[int]:
    """The calls of a scheduler that change what sources see, by number; of one that works while rows are
    written before each of them."""
    calls: list[str] = []
    with shop(path) as k:

        def announce(name: str) -> None:
            calls.append(name)
            if writing and name in SEEN_BY_OTHERS:
                write_one(k, len(calls))

        make(k, change)
        tend(scheduler_of(k, announce))
    return [number for number, name in enumerate(calls, 1) if name in SEEN_BY_OTHERS]


@pytest.mark.parametrize("change", [*CHANGES, *REBUILT])
def test_sources_that_look_and_go_on_at_any_two_moments_plan_nothing_that_is_out_of_date(
    tmp_path: Path, change: str
) -> None:
    """Before each thing that a scheduler does some sources look, and stop before one of their calls; and those
    go on that have looked before one of the things done earlier."""
    last = calls_of_a_source(tmp_path / "counted")
    numbers = moments(tmp_path / "scheduler", change, writing=True)
    waiting: dict[int, list[Source]] = {number: [] for number in numbers}
    planned: list[Source] = []
    with shop(tmp_path) as k:
        make(k, change)
        calls: list[str] = []

        def announce(name: str) -> None:
            calls.append(name)
            if name in SEEN_BY_OTHERS:
                write_one(k, len(calls))
            for source in waiting.pop(len(calls), ()):
                source.go_on()
                if source.planned is not None:
                    assert_up_to_date(k, *source.planned)
                    planned.append(source)
            if name in SEEN_BY_OTHERS:
                for later in waiting.values():  # of the definitions it reads in between it wants the schemas alone
                    later.extend(Source(k.store, call, plans=True) for call in (*range(3, 10), last))

        tend(scheduler_of(k, announce))
    assert planned and not waiting


def assert_up_to_date(k: Kept, task: EpochTask, base: int) -> None:
    """An epoch that is begun now, if it is, has all views that can be read, and what it has is there."""
    plans, reached = k.maintainer.plans, k.store.views.committed(MAIN).epoch
    if base != reached or k.store.views.begun(MAIN) is not None:
        return
    joining = [build for build in builds_of(k.store) if build.phase.holds_group and build.base < reached]
    assert not joining, "views have become the group's own"
    bound = plans.load(task.plan)
    assert {one.name for one in k.live()} <= set(bound.plan.by_name)
    there = {table.id for running in plans.running(MAIN) for table in running.states.values()}
    assert {table.id for table in bound.states.values()} <= there, "what it keeps is gone"


# ------------------------------------------------------------------ readers


def listed_views(store: Store) -> tuple[str, ...]:
    """The views in the status of a store, those that are being built included."""
    catalog = Catalog(store.metadata, store.views)
    found = status(store, catalog, Plans(store, catalog))
    built = [name for build in found.builds for name in build.views]
    return (*(view.name for group in found.groups for view in group.views), *built)


@pytest.mark.parametrize("change", [*CHANGES, *REBUILT])
def test_the_status_is_returned_whatever_happens_meanwhile(tmp_path: Path, change: str) -> None:
    call = 0
    reader = None
    while reader is None or len(reader.calls) >= call:
        call += 1
        with shop(tmp_path / str(call)) as k:
            make(k, change)
            k.turn_of_build()
            reader = Stopped(k.store, call, listed_views)
            tend(scheduler_of(k))
            reader.go_on()
            assert isinstance(reader.found, tuple)
            assert "m1" in reader.found or change == "all go"


def test_rows_to_come_are_computed_with_a_plan_that_is_swept_meanwhile(tmp_path: Path) -> None:
    call = 0
    reader = None
    while reader is None or len(reader.calls) >= call:
        call += 1
        with shop(tmp_path / str(call)) as k, k.store.snapshot() as snapshot:

            def pending(store: Store, snapshot: TableSnapshot = snapshot) -> int:
                catalog = Catalog(store.metadata, store.views)
                moved = Pending(store, catalog, Plans(store, catalog)).moved(MAIN, "m1", snapshot, snapshot.frontier)
                return len(moved.records)

            expected = pending(k.store)
            reader = Stopped(k.store, call, pending)
            k.sql(CHANGES["a view goes"])
            tend(scheduler_of(k))
            reader.go_on()
            assert reader.found == expected > 0


QUERY = "SELECT id, x FROM a WHERE x > 1"
READS: dict[str, Callable[[Database], pa.Table]] = {
    "select": lambda db: db.sql("SELECT id, x FROM m1").arrow(),
    "fresh": lambda db: db.sql("SELECT id, x FROM m1", fresh=True).arrow(),
    "scan": lambda db: db.view("m1").scan().arrow(),
    "snapshot": lambda db: snapshot_of(db),
}


def snapshot_of(db: Database) -> pa.Table:
    with db.snapshot() as snapshot:
        return snapshot.view("m1").scan().arrow()


@pytest.mark.parametrize("read", READS)
def test_a_view_is_read_whatever_happens_meanwhile(tmp_path: Path, read: str) -> None:
    """Between two calls of a reader the view is rebuilt in other tables, another comes or goes, and epochs pass."""
    call = 0
    reader = None
    with shop(tmp_path) as k:
        while reader is None or len(reader.calls) >= call:
            call += 1
            start = k.store.views.committed(MAIN).frontier
            reader = Stopped(k.store, call, lambda store: READS[read](Database(store)))
            view = k.db.catalog.view("m1")
            ask_rebuild(k.store, [view.id])
            k.sql("DROP MATERIALIZED VIEW m3" if call % 2 == 0 else member(3))
            write(k, call)
            tend(scheduler_of(k))
            k.maintainer.catch_up()
            assert k.db.catalog.view("m1").state[-1] != view.state[-1]
            reader.go_on()
            assert isinstance(reader.found, pa.Table)
            assert k.was(QUERY, reader.found, start), f"{reader.calls[:call]}: {reader.found}"
        assert call > 10
