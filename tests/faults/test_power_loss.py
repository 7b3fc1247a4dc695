"""The machine loses power: what was durable is there, and the store is whole.

An image of the disk as a power loss may leave it opens at its durable point, where rows,
logs and views fit each other, and work goes on from there.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from everview.change.frontier import Frontier
from everview.store.contract import Store, Table
from everview.store.embedded import durability
from tests.adapters import workload
from tests.faults.images import Film
from tests.faults.processes import Nursery
from tests.faults.test_killed_epochs import Ledger
from tests.faults.victims import open_store, run_epoch

SEED = int(os.environ.get("EVERVIEW_FAULT_SEED", "1"))
IMAGES = 12

boots = itertools.count()


@dataclass(frozen=True)
class Moment:
    """Where logs and epochs stood."""

    end: Frontier
    committed: int
    begun: int | None

    @staticmethod
    def of(store: Store) -> Moment:
        begun = store.views.begun("main")
        return Moment(store.log.latest(), store.views.committed("main").epoch, begun.epoch if begun else None)


@dataclass
class Work:
    """One process's work, step by step, and every moment it passed through."""

    arguments: dict[str, object]
    rng: random.Random
    moments: list[Moment] = field(default_factory=list)
    ledger: Ledger = field(default_factory=lambda: Ledger("main"))
    step: int = 0

    def __post_init__(self) -> None:
        self.store = open_store(self.arguments)
        self.tables = workload.create(self.store)
        self.moments.append(Moment.of(self.store))

    def do(self, note: Callable[[], object]) -> None:
        """A step of a writer, a change of topology, or an epoch; ``note`` is called on the way."""
        what = self.rng.randrange(12)
        if what == 0:
            self.store.topology.move(self.rng.randrange(2**32), self.rng.choice(self.store.topology.nodes()))
        elif what <= 3:
            run_epoch(self.store, "main", lambda report: self._hear(report, note))
        else:
            self.step += 1
            workload.perform(self.store, self.tables, workload.step(SEED, 0, self.step))
        self.moments.append(Moment.of(self.store))

    def _hear(self, report: str, note: Callable[[], object]) -> None:
        self.ledger.learn([report])
        self.moments.append(Moment.of(self.store))
        note()


@pytest.fixture
def reboot(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on the machine is another boot of itself."""

    def boot() -> None:
        name = f"boot {next(boots)}"
        monkeypatch.setattr(durability, "boot_id", lambda: name)

    return boot


@pytest.mark.parametrize("mode", ["fsync", "group", "none"])
def test_a_store_opens_at_its_durable_point(
    tmp_path: Path, mode: str, reboot: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{SEED}/{mode}")
    arguments: dict[str, object] = {"directory": str(tmp_path / "store"), "durability": mode}
    work = Work(arguments, rng)
    film = Film(Path(str(arguments["directory"])))
    reached: dict[int, int] = {}
    """By frame: how many moments were surely durable when it was taken."""

    def durable_now() -> None:
        reached[film.take()] = len(work.moments)

    work.store.sync()
    film.watch(monkeypatch)
    durable_now()
    for number in range(60):
        work.do(film.take)
        if mode == "fsync":
            durable_now()
        elif number % 17 == 16:
            work.store.sync()
            durable_now()
        else:
            film.take()
    work.store.close()
    points = film.points()
    assert len(points) > 3
    for number in range(IMAGES):
        point = rng.choice(points)
        target = tmp_path / f"image{number}"
        film.develop(target, point, rng)
        least = max((moments for frame, moments in reached.items() if frame <= point), default=0)
        reboot()
        _check_image(arguments | {"directory": str(target)}, work, least)


def _check_image(arguments: dict[str, object], work: Work, least: int) -> None:
    """The image shows one moment of the past, none before the last that was durable."""
    store = open_store(arguments)
    tables = workload.tables_of(store)
    moment = Moment.of(store)
    passed = [number for number, past in enumerate(work.moments) if past == moment]
    assert passed, f"{moment} never was"
    assert passed[-1] >= least - 1, f"{moment} lies before what was durable: {work.moments[least - 1]}"
    tail = workload.check_all(store, tables)
    steps = [number for number in range(1, work.step + 1) if workload.took_effect(tail, workload.step(SEED, 0, number))]
    assert store.views.committed("main").frontier <= store.log.latest()
    ledger = Ledger("main", begun=dict(work.ledger.begun))
    ledger.check(store)
    ledger.learn([f"committed {moment.committed}"])
    _go_on(store, tables, ledger, max(steps, default=0))
    store.close()


def _go_on(store: Store, tables: dict[str, Table], ledger: Ledger, last: int) -> None:
    """Work on what is left, until every page that could be reused has been."""
    open_epoch = store.views.begun("main")
    later = Ledger("main", begun={e: begun for e, begun in ledger.begun.items() if e <= ledger.committed})
    reports: list[str] = []
    for number in range(last + 10, last + 40):
        workload.perform(store, tables, workload.step(SEED, 0, number))
        if number % 4 == 0:
            run_epoch(store, "main", reports.append)
    if open_epoch is not None:
        assert reports[0].startswith(f"begun {open_epoch.epoch} {open_epoch.base} {open_epoch.frontier} ")
    later.learn(reports)
    later.check(store)
    workload.check_all(store, tables)


@pytest.mark.parametrize("mode", ["fsync", "group"])
def test_power_is_lost_while_processes_write(
    tmp_path: Path, mode: str, nursery: Nursery, reboot: Callable[[], None]
) -> None:
    """Several writers, one of them killed before: acknowledged ``fsync`` writes are all there."""
    rng = random.Random(f"{SEED}/{mode}")
    arguments: dict[str, object] = {"directory": str(tmp_path / "store"), "durability": mode}
    store = open_store(arguments)
    tables = workload.create(store)
    store.close()
    writers = [nursery.start("write", writer=number, first=1, seed=SEED, **arguments) for number in range(3)]
    mover = nursery.start("move", seed=SEED, **arguments)
    epochs = nursery.start("epochs", group="main", **arguments)
    victims = [*writers, mover, epochs]
    film = Film(Path(str(arguments["directory"])))
    acknowledged: list[list[int]] = []
    """By frame: how many steps each writer had reported before it was taken."""
    for frame in range(16):
        for victim in rng.sample(victims, 3):
            victim.listen(len(victim.reports) + rng.randrange(8))
        acknowledged.append([max(len(writer.reports) - 1, 0) for writer in writers])
        film.take()
        if frame == 8:
            writers[0].kill(rng)
            victims.remove(writers[0])
    ledger = Ledger("main")
    attempted = [len(writer.reports) if writer.ended else len(writer.kill(rng)) for writer in writers]
    mover.kill(rng)
    ledger.learn(epochs.kill(rng))
    store = open_store(arguments)
    if (begun := store.views.begun("main")) is not None:
        ledger.learn([f"begun {begun.epoch} {begun.base} {begun.frontier} {begun.plan.hex()}"])
    store.close()
    points = film.points()
    assert len(points) > 2
    for number in range(IMAGES):
        point = rng.choice(points)
        target = tmp_path / f"image{number}"
        film.develop(target, point, rng)
        reboot()
        image = open_store(arguments | {"directory": str(target)})
        tail = workload.check_all(image, tables)
        for writer, least in enumerate(acknowledged[point]):
            sure = set(range(1, least + 1)) if mode == "fsync" else set()
            workload.check_steps(tail, SEED, writer, sure, attempted[writer] + 1)
        found = Ledger("main", begun=dict(ledger.begun))
        found.check(image)
        found.learn([f"committed {image.views.committed('main').epoch}"])
        _go_on(image, tables, found, max(attempted) + 1)
        image.close()
