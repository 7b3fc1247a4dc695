"""A pipeline: the views of a store kept up to date, until it is stopped.

It holds the store's lease. A mover takes the main group along the logs, and a scheduler does everything else beside it:
builds, lazy groups, what was dropped, trimming. Both work in this process: enough for a notebook, a test, or a
store of moderate size. :class:`everview.zones.pipeline.Pipeline` is the same, and has large epochs done on Spark.

::

    lease ──▶ finish what was begun ──▶ mover      main: begin, do, commit, …
                                   ╰──▶ scheduler  other groups, builds, drops, trimming
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol, Self

from everview.catalog import MAIN, Catalog
from everview.change.frontier import Frontier
from everview.errors import DefinitionError, EverviewError
from everview.maintain.coordination import all_reflect, ask_lazy_groups
from everview.maintain.epoch_sizes import CEILING, EpochSizes
from everview.maintain.epochs import EpochReport
from everview.maintain.maintainer import LEASE, Maintainer
from everview.maintain.mover import Mover
from everview.maintain.rounds import Rounds, deadline_in
from everview.maintain.scheduler import POLL, Scheduler, as_everview_error
from everview.store.contract import Store

BESIDE = 0.02
"""Seconds between two turns of the scheduler in which there was nothing to do."""
KEPT_REPORTS = 1000


class RunningPipeline(AbstractContextManager[object], Protocol):
    """What keeps the views up to date while its block lasts: a pipeline on Spark, or a local one."""

    def check(self) -> None: ...

    def drain(self, frontier: Frontier | None = None, timeout: float | None = None) -> Frontier: ...


class LocalPipeline:
    """Maintains the views of a store in this process. ``operations`` is the most log entries of an epoch (a batch is
    never cut, so one larger batch is an epoch of its own), ``wait`` how long to wait for the process that maintains
    the store now."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        *,
        group: str = MAIN,
        operations: int = CEILING,
        wait: float | None = 0,
    ) -> None:
        self.group = group
        self.reports: deque[EpochReport] = deque(maxlen=KEPT_REPORTS)
        """The last epochs that this process has done, the newest at the end."""
        self._open_store = open_store
        self._operations = operations
        self._wait = wait
        self._held = contextlib.ExitStack()
        """What is given back at the end: the store, the lease."""
        self._maintainer: Maintainer | None = None
        self._scheduler: Scheduler | None = None
        self._mover: Mover | None = None
        self._failures: dict[str, EverviewError] = {}
        """What the parts have failed with last."""
        self._ending = threading.RLock()
        self._is_over = False
        """Whether it has failed for good, and gives everything back."""

    # -------------------------------------------------------------- life

    def start(self) -> Self:
        """Maintain the views until :meth:`stop`."""
        self._prepare()
        self._go()
        return self

    def _prepare(self) -> None:
        """Become the maintainer of the store, and finish what another one has begun."""
        with self._ending:
            if self._maintainer is not None:
                raise DefinitionError("the views are maintained here already")
            self._failures.clear()
            self._is_over = False
            try:
                maintainer = self._open()
            except BaseException as error:
                self._held.close()
                if isinstance(error, EverviewError) or not isinstance(error, Exception):
                    raise
                raise as_everview_error(error) from error
            self._maintainer = maintainer
            self._mover = Mover(maintainer, self.group, partial(self._failed, "mover"))
            self._scheduler = Scheduler(maintainer, partial(self._failed, "scheduler"), self.group, BESIDE)

    def _go(self) -> None:
        """Begin to work. What was stopped meanwhile ends at once."""
        mover, scheduler = self._mover, self._scheduler
        if mover is not None and scheduler is not None:
            mover.start()
            scheduler.start()

    def _open(self) -> Maintainer:
        store = self._open_store()
        self._held.callback(store.close)
        self._held.enter_context(store.lease(LEASE, self._wait))
        maintainer = Maintainer(store, Catalog(store.metadata, store.views), self._sizes())
        maintainer.epochs.report = self.reports.append
        maintainer.epochs.sweeps_at_once = False  # the scheduler does it, while the next epoch is under way
        maintainer.plans.resume()
        maintainer.recover()
        if store.views.begun(self.group) is not None:
            maintainer.build()  # the epoch fails: all views of the group are to be rebuilt
        return maintainer

    def _sizes(self) -> EpochSizes:
        return EpochSizes(self._operations)

    @property
    def on_spark(self) -> bool:
        """Whether Spark does large epochs."""
        return False

    def stop(self, *, finish: bool = True) -> None:
        """Return when nothing is under way any more: between two epochs. Without ``finish``, an epoch that Spark does
        is given up, and resumed by the next start."""
        with self._ending:
            scheduler, self._scheduler = self._scheduler, None
            mover, self._mover = self._mover, None
            try:
                if mover is not None:
                    mover.stop(finish=finish)
                if scheduler is not None:
                    scheduler.stop()
                self._end()
                if finish and self._maintainer is not None:
                    self._maintainer.epochs.sweep()
            finally:
                self._maintainer = None
                self._held.close()

    def _end(self) -> None:
        """End what was started beside mover and scheduler."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """At the end of the block what is under way is finished, and what has failed is raised; where an error ends
        the block, all is given up at once."""
        self.stop(finish=kind is None)
        if kind is None:
            self.check()

    # -------------------------------------------------------------- progress

    def check(self) -> None:
        """Raise what made it fail, if it has failed."""
        for error in tuple(self._failures.values()):
            raise error

    def drain(self, frontier: Frontier | None = None, timeout: float | None = None) -> Frontier:
        """Wait until all views are built and reflect a frontier, by default everything written so
        far."""
        self.check()
        maintainer = self._maintainer
        if maintainer is None:
            raise DefinitionError("the views are not maintained here", hint="start it first")
        store, catalog = maintainer.store, maintainer.catalog
        wanted = store.log.latest() if frontier is None else frontier
        rounds = Rounds(
            f"the views do not reflect {wanted} after {timeout} s",
            deadline_in(timeout),
            lambda: f"group {self.group} has reached {store.views.committed(self.group).frontier}",
        )
        try:
            ask_lazy_groups(store, catalog, wanted)
            while not all_reflect(store, catalog, wanted):
                self.check()
                rounds.pause(POLL)
        except EverviewError:
            self.check()  # where it has failed, the store is given back under our hands
            raise
        return wanted

    def _failed(self, part: str, error: EverviewError | None) -> bool:
        """What a part has failed with is raised to those who ask; after an error that cannot be repaired by a retry,
        the store is given back, so that no process waits for this one."""
        if error is None:
            self._failures.pop(part, None)
            return True
        self._failures[part] = error
        if error.retryable:
            return True
        if not self._is_over:
            self._is_over = True
            threading.Thread(target=self.stop, kwargs={"finish": False}, name="everview-end", daemon=True).start()
        return False
