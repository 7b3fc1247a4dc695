"""The scheduler: one loop that keeps all groups of a store moving.

The scheduler does the next small piece of each kind of work, over and over: what readers wait for, what the catalog
asks for (views to build, state to drop), the groups that have something to do, the logs that can be trimmed.

Where the work of epochs is done is up to the maintainer's executor. In a pipeline on Spark one group is moved by a
stream, beside which the scheduler works: it leaves that group's epochs alone, and only where a build joins the
group does the stream pause, for the time of one small epoch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from everview.boundary import translated
from everview.catalog import GroupKind, Maintained
from everview.change.frontier import Frontier
from everview.errors import EverviewError
from everview.maintain.builds import Build
from everview.maintain.coordination import answered, asked
from everview.maintain.demand import by_demand, demand
from everview.maintain.epochs import streamed
from everview.maintain.maintainer import Maintainer
from everview.maintain.rebuilding import is_rebuilt
from everview.maintain.tasks import EpochTask

POLL = 0.005
"""Seconds between two turns in which there was nothing to do."""
IDLE = 1.0
"""Seconds without a write after which lazy groups are moved."""
RETRY = 1.0
"""Seconds after which what failed for a reason that may pass is tried again."""


class Scheduler:
    """Does all work of a maintainer, in a thread, until it is stopped. ``streamed_group`` is the group whose epochs a
    stream does. ``failed`` is called with every error, and with None when a turn has succeeded; it returns whether
    to try again."""

    def __init__(
        self,
        maintainer: Maintainer,
        failed: Callable[[EverviewError | None], bool],
        streamed_group: str | None = None,
        poll: float = POLL,
    ) -> None:
        self._maintainer = maintainer
        self._failed = failed
        self._streamed_group = streamed_group
        self._poll = poll
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="everview-scheduler", daemon=True)
        self._settled = -1
        """The counter of all documents when there was nothing to build or to clean up."""
        self._latest = (Frontier(), time.monotonic())
        """Where the logs ended when they had last grown, and when that was."""
        self.work: Sequence[Callable[[], bool]] = (
            self.move_asked,  # a reader waits for it
            self.follow_catalog,  # before groups move, so that they move with the plans of now
            self.move_groups,
            self.sweep_tombstones,
            self.trim_logs,  # last, of what groups have passed
        )
        """What is done in a turn, in this order; each returns whether it did anything."""

    # -------------------------------------------------------------- life

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Return when nothing is under way any more: after the epoch, or the transition of a build, that is."""
        self._over.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                if not self.turn():
                    self._over.wait(self._poll)
                self._failed(None)
            except Exception as error:
                if not self._failed(as_everview_error(error)):
                    return
                self._over.wait(RETRY)

    def turn(self) -> bool:
        """Do one piece of work of each kind; False where there is none."""
        did = [work() for work in self.work]
        return any(did)

    # -------------------------------------------------------------- pieces of work

    def move_asked(self) -> bool:
        """Move the groups that readers wait for, all of them in each turn: those first that are asked for most."""
        maintainer, moved = self._maintainer, False
        goals = asked(maintainer.store)
        for group in by_demand(goals, demand(maintainer.store) if len(goals) > 1 else {}):
            goal = goals[group]
            if group != self._streamed_group and group in maintainer.groups():
                with self._unless_rebuilt(group):
                    maintainer.advance(group, goal, over=self._over.is_set)
                moved = True
            answered(maintainer.store, group)
        return moved

    def follow_catalog(self) -> bool:
        """Do a transition of a build, begin builds of what is new, or clean up after what is gone."""
        maintainer = self._maintainer
        version = maintainer.store.metadata.version()
        if version == self._settled:
            return False
        for group in maintainer.groups():
            with self._unless_rebuilt(group):
                maintainer.plan_of(group)
        builds = maintainer.builder.builds()
        if builds:
            return self._step(builds[0])
        waiting = maintainer.builder.waiting()
        if waiting:
            started = [self._start(target, views) for target, views in waiting.items()]
            return any(started)
        if not self._tidy():
            return False
        self._settled = version  # of the beginning: what came meanwhile is for the next turn
        return True

    def move_groups(self) -> bool:
        """Take each group one epoch further: continuous ones always, lazy ones once nothing has been written for a
        while, those first that are asked for most. So no group waits for more than one epoch of each other one."""
        maintainer, moved = self._maintainer, False
        latest, now = maintainer.store.log.latest(), time.monotonic()
        if latest != self._latest[0]:
            self._latest = latest, now
        idle = now - self._latest[1] >= IDLE
        kinds = {group.name: group.kind for group in maintainer.catalog.groups()}
        due = [group for group in maintainer.groups() if kinds[group] is GroupKind.CONTINUOUS or idle]
        for group in by_demand(due, demand(maintainer.store) if idle else {}):
            if group != self._streamed_group:
                with self._unless_rebuilt(group):
                    plan = maintainer.plan_of(group)
                    done = maintainer.epochs.step(group, plan, latest)
                    moved = done is not None or moved
        return moved

    def sweep_tombstones(self) -> bool:
        """Remove what committed epochs have deleted."""
        return self._maintainer.epochs.sweep()

    def trim_logs(self) -> bool:
        """Forget entries of the logs that no group needs any more."""
        return self._maintainer.trimmer.turn()

    # -------------------------------------------------------------- builds

    def _start(self, target: str, views: Sequence[Maintained]) -> bool:
        """Begin to build views. An epoch of the group that is under way may have to be over first; where the stream
        does it, that is for a later turn."""
        maintainer = self._maintainer
        if maintainer.start(target, views) is not None:
            return True
        return not self._is_streaming(target) and maintainer.finish(target)

    def _step(self, build: Build) -> bool:
        """Do the next transition of a build. Where its group has to wait, the stream ends its epoch and begins no
        other before."""
        maintainer = self._maintainer
        if build.target != self._streamed_group or not maintainer.builder.next(build).group_waits:
            maintainer.step(build)
            return True
        maintainer.plans.pause(build.target)
        try:
            while self._is_streaming(build.target):
                if self._over.wait(0.002):
                    return True
            maintainer.step(build)
        finally:
            maintainer.plans.resume(build.target)
        return True

    def _tidy(self) -> bool:
        """Clean up, unless the stream does an epoch that was begun with an older plan: then later."""
        maintainer = self._maintainer
        for group in maintainer.groups():
            begun = maintainer.store.views.begun(group)
            if begun is not None and EpochTask.from_bytes(begun.plan).plan != maintainer.plan_of(group):
                if self._is_streaming(group):
                    return False
                maintainer.finish(group)
        return maintainer.tidy()

    def _is_streaming(self, group: str) -> bool:
        """Whether the stream does an epoch of the group."""
        return group == self._streamed_group and streamed(self._maintainer.store, group) is not None

    @contextmanager
    def _unless_rebuilt(self, group: str) -> Iterator[None]:
        """Let a group fail that is being rebuilt as a whole: it goes on once it is."""
        try:
            yield
        except Exception as error:
            maintainer = self._maintainer
            retryable = isinstance(error, EverviewError) and error.retryable
            if retryable or not is_rebuilt(maintainer.store, maintainer.catalog.definitions(), group):
                raise


def as_everview_error(error: Exception) -> EverviewError:
    """What made it fail, as an error of ours."""
    if isinstance(error, EverviewError):
        return error
    ours = translated(error)
    ours.__cause__ = error
    return ours
