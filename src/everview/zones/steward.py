"""The steward: what a pipeline does beside its stream.

While the stream takes the main group from epoch to epoch, the steward follows the
catalog (views that were dropped), builds what is new chunk by chunk, moves lazy groups that are
due, cleans up, and trims the logs.

It works in a thread of the driver, with Spark jobs of its own, so that the stream goes on. Only
where a build makes its views the group's own does the stream pause, for the time of one small epoch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from everview.catalog import GroupKind, Maintained
from everview.change.frontier import Frontier
from everview.errors import EverviewError
from everview.maintain import Maintainer
from everview.maintain.asks import answered, asked
from everview.maintain.builds import Build
from everview.maintain.epochs import streamed
from everview.maintain.tasks import EpochTask

POLL = 0.05
LAZY = 1.0
"""Seconds without a write after which lazy groups are moved."""


class Steward:
    """Tends the groups of a store until it is told to stop. ``streamed`` is the group that a stream
    moves; the others are the steward's own."""

    def __init__(self, maintainer: Maintainer, streamed: str, failed: Callable[[EverviewError], None]) -> None:
        self._maintainer = maintainer
        self._streamed = streamed
        self._failed = failed
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tend, name="everview-steward", daemon=True)
        self._version = -1
        """Of the catalog, when there was last nothing to do for it."""
        self._latest = (Frontier(), 0.0)
        """Where the logs ended when they had last grown, and when that was."""
        self._moved: Frontier | None = None
        """Where lazy groups have been moved to."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Return when nothing is under way any more: after the epoch, or the chunk of a build, that is."""
        self._over.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _tend(self) -> None:
        try:
            while not self._over.is_set():
                if not self.turn():
                    self._over.wait(POLL)
        except EverviewError as error:
            self._failed(error)
        except Exception as error:
            self._failed(EverviewError("the pipeline's steward failed", detail=f"{type(error).__name__}: {error}"))

    # -------------------------------------------------------------- one turn

    def turn(self) -> bool:
        """Do one piece of work; False where there is none."""
        maintainer = self._maintainer
        self._move_asked()
        maintainer.trimmer.turn()
        version = maintainer.store.metadata.version()
        builds = maintainer.builder.builds()
        if version == self._version and not builds:
            self._move_lazy()
            return False
        self._moved = None
        self._follow()
        if builds:
            self._advance(builds[0])
            return True
        waiting = maintainer.builder.waiting()
        if not waiting:
            if not self._tidy():
                return False
            self._version = version  # of the beginning: what came meanwhile is for the next turn
            return True
        started = [self._start(target, found) for target, found in waiting.items()]
        return any(started)

    def _start(self, target: str, found: Sequence[Maintained]) -> bool:
        """Begin to build views. False where an epoch of the stream must be over first, which the stream does."""
        maintainer = self._maintainer
        if maintainer.start(target, found) is not None:
            return True
        return streamed(maintainer.store, target) is None and maintainer.finish(target)

    def _follow(self) -> None:
        for group in self._maintainer.groups():
            self._maintainer.plan_of(group)

    def _advance(self, build: Build) -> None:
        maintainer = self._maintainer
        if maintainer.builder.abandoned(build):
            maintainer.builder.abandon(build)
        elif build.joined is None and not maintainer.builder.near(build):
            maintainer.builder.advance(build)
        else:
            self._join(build)

    def _join(self, build: Build) -> None:
        """Wait until the stream has ended the target's epoch, if it has one, and let it begin no other."""
        maintainer = self._maintainer
        maintainer.plans.pause(build.target)
        try:
            while streamed(maintainer.store, build.target) is not None and build.target == self._streamed:
                if self._over.wait(0.002):
                    return
            maintainer.finish(build.target)
            maintainer.builder.join(build)
        finally:
            maintainer.plans.resume(build.target)

    def _tidy(self) -> bool:
        """Clean up, unless the stream does an epoch that was begun with an older plan: then later."""
        maintainer = self._maintainer
        for group in maintainer.groups():
            begun = maintainer.store.views.begun(group)
            if begun is not None and EpochTask.from_bytes(begun.plan).plan != maintainer.plan_of(group):
                if group == self._streamed and streamed(maintainer.store, group) is not None:
                    return False
                maintainer.finish(group)
        maintainer.tidy()
        return True

    def _move_asked(self) -> None:
        """Move the groups that a reader waits for."""
        maintainer = self._maintainer
        for group, goal in asked(maintainer.store).items():
            if group != self._streamed and group in maintainer.groups():
                maintainer.advance(group, goal, over=self._over.is_set)
            answered(maintainer.store, group)

    def _move_lazy(self) -> None:
        """Move the groups that no stream moves, once nothing has been written for a while."""
        maintainer = self._maintainer
        latest, since = maintainer.store.log.latest(), self._latest[1]
        if latest != self._latest[0]:
            self._latest = (latest, time.monotonic())
        elif latest != self._moved and time.monotonic() - since >= LAZY:
            kinds = {group.name: group.kind for group in maintainer.catalog.groups()}
            for group in maintainer.groups():
                if group != self._streamed and kinds.get(group) is not GroupKind.BUILDING:
                    maintainer.advance(group, latest, over=self._over.is_set)
            self._moved = latest
