"""From every state that a killed process can leave, the next maintainer finishes, with every view right.

A state is made in three steps: a maintainer is killed at some moment of its work (``UNDER_WAY``), then statements
come (``MEANWHILE``), then somebody works (``WORK``). All states are tried with ``EVERVIEW_PROGRESS=all``, for about
an hour; else some of each kind.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everview.catalog import MAIN, ViewStatus
from everview.client.validating import Validation, ViewTrial
from everview.errors import DamagedEntryError, DeadlineError, EverviewError, StalledError
from everview.maintain import plans
from everview.maintain.epochs import Epochs, streamed
from everview.maintain.rebuilding import ask_rebuild, asked_rebuilds
from everview.maintain.rounds import Rounds, deadline_in
from everview.maintain.scheduler import Scheduler
from everview.operators.bound import BoundPlan
from tests.faults.processes import Nursery
from tests.maintain.interrupted import CHUNK, OPERATIONS, Bound, copied, database_of, killed, maintainer_of
from tests.maintain.kept import Kept, kept
from tests.maintain.lagging import begin
from tests.maintain.test_building import ROWS, create, member

EVERYTHING = os.environ.get("EVERVIEW_PROGRESS") == "all"
SHARE = 113
"""Of so many combinations of a state, statements and work one is tried."""

TRIED: dict[object, ViewTrial] = {}

Change = Callable[[Kept], object]


@pytest.fixture(autouse=True)
def processes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are there only as recorded, and nobody waits for time to pass. For speed, plans are decoded once, and
    views of one family are tried once."""
    monkeypatch.setattr(plans, "KEPT", 0)
    monkeypatch.setattr(BoundPlan, "from_bytes", staticmethod(functools.lru_cache(BoundPlan.from_bytes)))
    monkeypatch.setattr(Validation, "__post_init__", lambda one: setattr(one, "_known", TRIED), raising=False)
    monkeypatch.setattr("everview.maintain.scheduler.IDLE", 0.0)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a family of two views, another one, and a lazy one."""
    path = tmp_path_factory.mktemp("shop")
    late = create("late", "SELECT k, count(*) AS n FROM a GROUP BY k", "WITH (refresh = 'lazy')")
    with kept(path, chunk=CHUNK, operations=OPERATIONS) as k:
        k.sql(ROWS + member(1) + member(2) + create("whole") + late)
        k.settle()
    return path / "store"


# ------------------------------------------------------------------ what happens


def names(k: Kept) -> set[str]:
    return {view.name for view in k.db.catalog.views()}


def write(k: Kept) -> None:
    k.sql("INSERT INTO a (id, k, x, s) VALUES (3, 1, 6, 'w'), (30, 1, 5, 'w'); DELETE FROM b WHERE id = 2")


def drop(*which: str) -> Change:
    return lambda k: k.sql(";".join(f"DROP MATERIALIZED VIEW {name} CASCADE" for name in which if name in names(k)))


def come(*numbers: int) -> Change:
    return lambda k: k.sql("".join(member(number) for number in numbers if f"m{number}" not in names(k)))


def rebuild(*which: str) -> Change:
    return lambda k: ask_rebuild(k.store, [one.id for one in k.live() if not which or one.name in which])


def stream(k: Kept) -> None:
    """A source begins an epoch, and its stream does not do it."""
    write(k)
    begin(k.store)


def then(*changes: Change) -> Change:
    def done(k: Kept) -> None:
        for change in changes:
            change(k)

    return done


MAIN_VIEWS = ("m1", "m2", "whole")
UNDER_WAY: dict[str, Change] = {
    "an epoch": write,
    "views come": then(write, come(3)),
    "a view goes": then(write, drop("m2")),
    "a view goes and another comes": then(write, drop("m2"), come(3)),
    "all views go": then(write, drop(*MAIN_VIEWS, "late")),
    "a view is rebuilt": then(write, rebuild("whole")),
    "all views are rebuilt": then(write, rebuild()),
    "the epoch of a stream": stream,
}
MEANWHILE: dict[str, Change] = {
    "nothing": bool,
    "a view goes": drop("m2"),
    "views come": come(4),
    "what was built goes": drop("m3"),
    "a view goes and comes again": then(drop("m2"), come(2)),
    "all views are to be rebuilt": rebuild(),
    "a view goes, the others are to be rebuilt": then(drop("m2"), rebuild()),
    "all are to be rebuilt, one goes, one comes": then(rebuild(), drop("m2"), come(4)),
    "all views of a group go": drop(*MAIN_VIEWS),
    "the lazy view goes": drop("late"),
    "the epoch of a stream is begun": stream,
    "the epoch of a stream is begun, a view goes": then(stream, drop("m2")),
}


# ------------------------------------------------------------------ who comes next


def flush(k: Kept, bound: Bound) -> None:
    database_of(k.store, bound).flush()


def rebuild_all(k: Kept, bound: Bound) -> None:
    db = database_of(k.store, bound)
    if k.live():
        db.rebuild()
    db.flush()


def create_view(k: Kept, bound: Bound) -> None:
    db = database_of(k.store, bound)
    db.sql(member(5))
    db.flush()


def drop_view(k: Kept, bound: Bound) -> None:
    db = database_of(k.store, bound)
    if "m1" in names(k):
        db.sql("DROP MATERIALIZED VIEW m1")
    db.flush()


def keep(k: Kept, bound: Bound) -> None:
    """As a thread that maintains the views."""
    maintainer = maintainer_of(k.store, bound)
    maintainer.plans.resume()
    maintainer.recover()
    scheduler = Scheduler(maintainer, _never)
    while scheduler.turn():
        pass


def tend(k: Kept, bound: Bound) -> None:
    """As a pipeline: its scheduler, and its stream."""
    maintainer = maintainer_of(k.store, bound)
    maintainer.plans.resume()
    maintainer.recover()
    scheduler = Scheduler(maintainer, _never, MAIN)
    idle = 0
    while idle < 3:
        idle = 0 if scheduler.turn() or _streams(maintainer.epochs, bound) else idle + 1


def _never(error: EverviewError | None) -> bool:
    raise AssertionError(f"turns are taken here: {error}")


def _streams(epochs: Epochs, bound: Bound) -> bool:
    bound("stream")
    begun = streamed(epochs.store, MAIN) or begin(epochs.store)
    if begun is not None:
        epochs.run(begun)
    return begun is not None


WORK: dict[str, Callable[[Kept, Bound], None]] = {
    "flush": flush,
    "rebuild": rebuild_all,
    "create": create_view,
    "drop": drop_view,
    "scheduler": keep,
    "pipeline": tend,
}


def assert_all_is_right(k: Kept) -> None:
    """Every view is built and is what its query answers over the rows of now, and nothing is left over."""
    k.remember()
    maintained = k.db.catalog.definitions().maintained()
    assert [one.name for one in maintained if one.status is not ViewStatus.LIVE] == []
    assert {k.store.views.committed(one.group).frontier for one in maintained} <= {k.store.log.latest()}
    assert not asked_rebuilds(k.store)
    k.check()
    k.maintainer.tidy()
    k.check_nothing_is_left()


def pairs(under_way: str, state: int) -> Iterator[tuple[str, str]]:
    """All pairs, or for each state others."""
    chosen = (list(UNDER_WAY).index(under_way) * 11 + state * 29) % SHARE
    for number, pair in enumerate(itertools.product(MEANWHILE, WORK)):
        if EVERYTHING or number % SHARE == chosen:
            yield pair


@pytest.mark.parametrize("under_way", UNDER_WAY)
def test_from_every_state_of_a_killed_maintainer_all_work_ends_with_every_view_right(
    tmp_path: Path, shop: Path, under_way: str
) -> None:
    tried = 0
    for state, left in enumerate(killed(shop, tmp_path, UNDER_WAY[under_way])):
        for meanwhile, work in pairs(under_way, state):
            tried += 1
            with copied(left, tmp_path / "copy") as k:
                MEANWHILE[meanwhile](k)
                try:
                    WORK[work](k, Bound())
                    assert_all_is_right(k)
                except BaseException as error:
                    error.add_note(f"{under_way}, killed in state {left.name}; {meanwhile}; {work}")
                    raise
    assert tried > 1


# ------------------------------------------------------------------ what comes while somebody works

WORKED_ON: dict[str, Change] = {
    "views come": then(write, come(3)),
    "a view goes": then(write, drop("m2")),
    "all views are rebuilt": then(write, rebuild()),
}
COMES: dict[str, Change] = {
    "a view goes": drop("m2"),
    "what is built goes": drop("m3"),
    "all views go": drop(*MAIN_VIEWS, "m3"),
    "views come": come(4),
    "all views are to be rebuilt": rebuild(),
    "the epoch of a stream is begun": stream,
}


def said(k: Kept, change: Change) -> None:
    """What another process says while the lease is held here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(k, "sql", lambda text: [k.db.sql(one) for one in filter(str.strip, text.split(";"))])
        change(k)


@pytest.mark.parametrize("comes", COMES)
@pytest.mark.parametrize("worked_on", WORKED_ON)
def test_whatever_comes_before_any_change_that_a_flush_makes_it_ends(
    tmp_path: Path, shop: Path, worked_on: str, comes: str
) -> None:
    step = 1 if EVERYTHING else 17
    moment = changes = 1 if EVERYTHING else 1 + list(COMES).index(comes)
    while moment <= changes:
        with copied(shop, tmp_path / "copy") as k:
            WORKED_ON[worked_on](k)
            bound = Bound(moment, functools.partial(said, k, COMES[comes]))
            try:
                flush(k, bound)
                changes = bound.changes
                flush(k, Bound())
                assert_all_is_right(k)
            except BaseException as error:
                error.add_note(f"{worked_on}; {comes} before change {moment}")
                raise
        moment += step


# ------------------------------------------------------------------ a real kill


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    found = Nursery()
    yield found
    found.close()


@pytest.mark.parametrize("work", ["rebuild", "flush", "create"])
def test_a_process_is_killed_inside_an_epoch_and_a_view_of_its_group_is_dropped(
    nursery: Nursery, tmp_path: Path, shop: Path, work: str
) -> None:
    """All views that are left are to be rebuilt, and the epoch was begun with the one that is gone."""
    with copied(shop, tmp_path / "copy") as k:
        write(k)
        moment = 0
        while k.store.views.begun(MAIN) is None:
            moment += 1
            victim = nursery.start(
                "maintain", directory=str(k.store.directory), moment=moment, chunk=CHUNK, operations=OPERATIONS
            )
            victim.listen(10**6)
            victim.kill(random.Random(0))
            assert victim.reports[-1] != "done"
        drop("m2")(k)
        rebuild(*MAIN_VIEWS)(k)
        WORK[work](k, Bound())
        flush(k, Bound())
        assert_all_is_right(k)


# ------------------------------------------------------------------ epochs that fail


def damage(k: Kept) -> None:
    """No epoch of the main group can be done any more: the state of one of its views is gone."""
    for table in k.db.catalog.view("whole").state:
        k.store.views.drop(table)
    k.sql("DELETE FROM b WHERE id < 100")
    with pytest.raises(DamagedEntryError):
        k.maintainer.advance(MAIN, k.store.log.latest())
    assert k.store.views.begun(MAIN) is not None


FAILING: dict[str, Change] = {
    "a view goes, the others are to be rebuilt": then(drop("m2"), rebuild()),
    "all are to be rebuilt, one comes": then(rebuild(), come(4)),
    "all views go": drop(*MAIN_VIEWS),
    "all views go, one comes": then(drop(*MAIN_VIEWS), come(4)),
}


@pytest.mark.parametrize("change", FAILING)
@pytest.mark.parametrize("work", ["flush", "rebuild", "create", "drop", "scheduler", "pipeline"])
def test_an_epoch_that_fails_is_in_nobodys_way_where_nothing_of_its_group_is_kept(
    tmp_path: Path, shop: Path, change: str, work: str
) -> None:
    with copied(shop, tmp_path / "copy") as k:
        damage(k)
        FAILING[change](k)
        WORK[work](k, Bound())
        flush(k, Bound())
        assert_all_is_right(k)


def test_new_views_that_cannot_join_wait_for_the_rebuild_of_their_group(tmp_path: Path, shop: Path) -> None:
    with copied(shop, tmp_path / "copy") as k:
        come(3)(k)
        maintainer = maintainer_of(k.store, Bound())
        ((target, found),) = maintainer.builder.waiting().items()
        maintainer.start(target, found)
        damage(k)
        rebuild()(k)
        flush(k, Bound())
        assert_all_is_right(k)


def test_views_that_are_planned_otherwise_whenever_they_are_rebuilt_are_not_rebuilt_for_ever(
    tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = itertools.count()
    monkeypatch.setattr("everview.maintain.plans.planner", lambda: str(next(versions)))
    monkeypatch.setattr("everview.maintain.building._outgrown", lambda whole, held, live: live)
    with copied(shop, tmp_path / "copy") as k:
        with pytest.raises(StalledError, match="planned otherwise once more"):
            database_of(k.store, Bound()).sql(member(3))
        flush(k, Bound())
        assert_all_is_right(k)
        assert "m3" not in names(k)


# ------------------------------------------------------------------ deadlines


def test_a_deadline_ends_work_and_says_what_is_not_done(tmp_path: Path, shop: Path) -> None:
    with copied(shop, tmp_path / "copy") as k:
        then(write, come(3))(k)
        with pytest.raises(DeadlineError, match="views are still being built: m3"):
            k.db.flush(timeout=0)
        with pytest.raises(DeadlineError, match="views are still being built: m1"):
            k.db.rebuild("m1", timeout=0)
        with k.store.lease("maintenance"), pytest.raises(DeadlineError, match=r"(?s)whole could not.*process \d+ main"):
            k.db.rebuild("whole", timeout=0)
        k.db.flush()
        assert_all_is_right(k)
        k.db.flush(timeout=0)


def test_a_round_that_leads_to_an_earlier_state_ends_the_loop() -> None:
    rounds = Rounds("view v is not built yet")
    for state in (1, 2, 3):
        rounds.changed(state)
    with pytest.raises(StalledError, match="view v is not built yet"):
        rounds.changed(2)
    rounds = Rounds(lambda: "view v is not built yet", deadline_in(-1))
    with pytest.raises(DeadlineError, match="view v is not built yet"):
        rounds.changed(1)
    with pytest.raises(DeadlineError, match="view v is not built yet"):
        rounds.pause(60)
