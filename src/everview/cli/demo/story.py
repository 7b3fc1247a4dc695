"""What happens in the demonstration, in which order.

The shop is filled and its views are created, a pipeline and a writer start, the pipeline is
killed while an epoch is under way, another one finishes that epoch, the writer stops, and all views are
recomputed.

Everything that is shown is read from the store as any client reads it. The store is open to readers all the
time, also while nobody maintains it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from everview.catalog import MAIN
from everview.change.frontier import Frontier
from everview.cli.demo.children import Child
from everview.cli.demo.ending import Ending
from everview.cli.demo.outcome import STORE, Crash, DemoOutcome, verified
from everview.cli.demo.screen import Look, Screen
from everview.cli.demo.shop import AGREEMENT, TABLES, VIEWS, Clerk
from everview.client.database import open as open_database
from everview.client.status import GroupState
from everview.errors import DeadlineError
from everview.maintain.maintainer import LEASE
from everview.store.contract import Begun

BEAT = 0.02
LOOK = 0.5
"""Seconds between two looks."""
PATIENCE = 600.0
"""Seconds that anything may take; on two quiet cores it is some seconds."""
SETTLED = 3
"""Epochs that a pipeline has done before it is killed."""
LONGEST_HALF = 1.0
"""Seconds that an epoch is left to work before the kill, at most."""


class Story:
    """One demonstration in a directory that is new or empty."""

    def __init__(self, place: Path, seconds: float, seed: int, screen: Screen, ending: Ending) -> None:
        self._place = place
        self._seconds = seconds
        self._seed = seed
        self._screen = screen
        self._ending = ending
        self._children: dict[str, Child] = {}
        self._began = time.monotonic()
        self._written_before = 0
        self._looked = 0.0
        self._snapshots = 0
        self._disagreed = 0

    def play(self) -> DemoOutcome:
        """All of it. However it ends, no process is left."""
        with open_database(self._place / STORE) as db, ExitStack() as held:
            held.callback(self._kill_all)
            self._db = db
            self._set_up()
            started = db.store.views.committed(MAIN).epoch
            self._start("pipeline")
            self._until("Spark starts", lambda: db.store.holder(LEASE) is not None)
            self._written_before = _operations(db.store.log.latest())
            self._began = time.monotonic()
            self._start("writer")
            self._live("the shop is open", self._seconds / 3, started + SETTLED)
            crash = self._crash()
            self._live("the shop is open", self._seconds, 0)
            self._screen.say("the shop closes: the writer stops, and its last writes are maintained")
            self._finish("writer")
            end = db.store.log.latest()
            self._until("what was written last is awaited", lambda: self._shows(end))
            seconds = time.monotonic() - self._began
            self._screen.say("all views are recomputed from the base tables and compared, while the pipeline runs")
            report = verified(db)
            self._finish("pipeline", signal.SIGTERM)
            epochs = sum(commit.epoch > started for commit in db.store.views.history(MAIN, 10_000))
            written = _operations(end) - self._written_before
            return DemoOutcome(seconds, written, epochs, crash, self._snapshots, self._disagreed, report)

    def _set_up(self) -> None:
        db, say = self._db, self._screen.say
        db.sql(TABLES)
        Clerk(db, self._seed).fill()
        counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in db.status().tables)
        say(f"a shop in {self._place}: {counts}")
        for view in VIEWS:
            say(f"{view.name}: {view.kind}\n  {view.query}", "dim")
        began = time.monotonic()
        db.sql(";\n".join(view.statement for view in VIEWS))
        db.flush()
        say(f"{len(VIEWS)} views built in {time.monotonic() - began:.1f} s; now a pipeline starts, and then a writer")

    # -------------------------------------------------------------- processes

    def _start(self, name: str, *options: str) -> None:
        store = str(self._place / STORE)
        arguments = {
            "pipeline": ("everview.cli", "run", store, *options),
            "writer": ("everview.cli.demo.writer", store, str(self._seed + 1)),
        }[name]
        with self._ending.later():
            self._children[name] = Child(name, self._place / f"{name}.log", *arguments)

    def _finish(self, name: str, number: int | None = None) -> None:
        """A child is known until it is gone: a signal that comes meanwhile kills it."""
        self._children[name].finish(number)
        del self._children[name]

    def _kill_all(self) -> None:
        for child in self._children.values():
            child.kill()

    def _crash(self) -> Crash:
        """Kill the pipeline in the middle of an epoch, and start another."""
        begun = self._in_the_middle()
        pipeline = self._children["pipeline"]
        killed = time.monotonic()
        pipeline.crash()
        del self._children["pipeline"]
        left = self._db.store.views.begun(MAIN)
        unfinished = left is not None and left.epoch == begun.epoch
        self._screen.say(
            f"SIGKILL for the pipeline (process {pipeline.id}), with epoch {begun.epoch} under way", "bold red"
        )
        shown = self._db.store.views.committed(MAIN)
        self._start("pipeline", "--wait", str(PATIENCE))
        phase = "killed: nobody maintains the views, and they can be read"
        self._until(phase, lambda: self._db.store.holder(LEASE) is not None)
        goal = self._db.store.log.latest()
        self._until("another pipeline finishes the epoch", lambda: self._epoch() > shown.epoch)
        resumed = time.monotonic() - killed
        self._until("it takes in what was written meanwhile", lambda: self._shows(goal))
        caught_up = time.monotonic() - killed
        self._screen.say(
            f"first commit {resumed:.1f} s after the kill, caught up after {caught_up:.1f} s", "bold green"
        )
        return Crash(begun.epoch, unfinished, resumed, caught_up, shown.frontier.operations_to(goal))

    def _in_the_middle(self) -> Begun:
        """Return when an epoch has been under way for half of the time that the last one took."""
        last = self._group().last
        half = min(LONGEST_HALF, last.seconds / 2 if last is not None else LONGEST_HALF)
        seen: tuple[int, float] = (0, 0.0)
        found: list[Begun] = []

        def reached() -> bool:
            nonlocal seen
            begun = self._db.store.views.begun(MAIN)
            if begun is None:
                return False
            if begun.epoch != seen[0]:
                seen = begun.epoch, time.monotonic()
            found[:] = [begun]
            return time.monotonic() - seen[1] >= half

        self._until("the shop is open", reached, beat=BEAT / 10)
        return found[0]

    # -------------------------------------------------------------- watching

    def _live(self, phase: str, seconds: float, epoch: int) -> None:
        """Until so many seconds after the beginning, and at least until an epoch."""
        self._until(phase, lambda: time.monotonic() - self._began >= seconds and self._epoch() >= epoch)

    def _until(self, phase: str, reached: Callable[[], bool], beat: float = BEAT) -> None:
        """Watch until something is so, for as long as everybody lives."""
        ends = time.monotonic() + max(PATIENCE, self._seconds)
        while not reached():
            for child in self._children.values():
                child.check()
            if time.monotonic() >= ends:
                raise DeadlineError(f"{phase}, and nothing else happened for {PATIENCE:g} s", hint=f"see {self._place}")
            self._look(phase)
            time.sleep(beat)

    def _look(self, phase: str) -> None:
        if time.monotonic() - self._looked < LOOK:
            return
        with self._db.snapshot() as snapshot:
            rows = {view.name: snapshot.view(view.name).count() for view in VIEWS}
            ((agreed,),) = snapshot.sql(AGREEMENT).rows()
        self._snapshots += 1
        self._disagreed += not agreed
        written = _operations(self._db.store.log.latest()) - self._written_before
        seconds = time.monotonic() - self._began
        look = Look(seconds, phase, max(0, written), self._group(), rows, self._snapshots, self._disagreed)
        self._screen.show(look)
        self._looked = time.monotonic()

    def _group(self) -> GroupState:
        return next(group for group in self._db.status().groups if group.name == MAIN)

    def _epoch(self) -> int:
        return self._db.store.views.committed(MAIN).epoch

    def _shows(self, goal: Frontier) -> bool:
        return goal <= self._db.store.views.committed(MAIN).frontier


def _operations(frontier: Frontier) -> int:
    return sum(frontier.values())
