"""A pipeline without Spark: the views of a store kept up to date in a thread of this process.

It holds the store's lease, and a scheduler does all the work here. It does what a pipeline on Spark does, in one
place: enough for a notebook, a test, or a small store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from everview.catalog import Catalog
from everview.change.frontier import Frontier
from everview.errors import DefinitionError, EverviewError
from everview.maintain.coordination import all_reflect, ask_lazy_groups
from everview.maintain.epochs import OPERATIONS
from everview.maintain.maintainer import LEASE, Maintainer
from everview.maintain.rounds import Rounds, deadline_in
from everview.maintain.scheduler import POLL, Scheduler, as_everview_error
from everview.store.contract import Store


class RunningPipeline(AbstractContextManager[object], Protocol):
    """What keeps the views up to date while its block lasts: a pipeline on Spark, or a local one."""

    def check(self) -> None: ...

    def drain(self, frontier: Frontier | None = None, timeout: float | None = None) -> Frontier: ...


class LocalPipeline:
    """Maintains the views of a store in this process. ``operations`` is the most log entries of an
    epoch, ``wait`` how long to wait for the process that maintains the store now."""

    def __init__(
        self, open_store: Callable[[], Store], *, operations: int = OPERATIONS, wait: float | None = 0
    ) -> None:
        self._open_store = open_store
        self._operations = operations
        self._wait = wait
        self._held = contextlib.ExitStack()
        self._maintainer: Maintainer | None = None
        self._scheduler: Scheduler | None = None
        self._failure: EverviewError | None = None

    def start(self) -> LocalPipeline:
        """Maintain the views until :meth:`stop`."""
        if self._scheduler is not None:
            raise DefinitionError("the views are maintained here already")
        self._failure = None
        try:
            store = self._open_store()
            self._held.callback(store.close)
            self._held.enter_context(store.lease(LEASE, self._wait))
            maintainer = Maintainer(store, Catalog(store.metadata, store.views), self._operations)
            maintainer.plans.resume()
            maintainer.recover()
        except BaseException as error:
            self._held.close()
            if isinstance(error, EverviewError) or not isinstance(error, Exception):
                raise
            raise as_everview_error(error) from error
        self._maintainer = maintainer
        self._scheduler = Scheduler(maintainer, self._failed)
        self._scheduler.start()
        return self

    def stop(self) -> None:
        """Return when nothing is under way any more; between two epochs."""
        scheduler, self._scheduler = self._scheduler, None
        if scheduler is not None:
            scheduler.stop()
        self._maintainer = None
        self._held.close()

    def __enter__(self) -> LocalPipeline:
        return self.start()

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise what made it fail, if it has failed."""
        if self._failure is not None:
            raise self._failure

    def drain(self, frontier: Frontier | None = None, timeout: float | None = None) -> Frontier:
        """Wait until all views are built and reflect a frontier, by default everything written so
        far."""
        maintainer = self._maintainer
        if maintainer is None:
            raise DefinitionError("the views are not maintained here", hint="start it first")
        wanted = maintainer.store.log.latest() if frontier is None else frontier
        rounds = Rounds(f"the views do not reflect {wanted} after {timeout} s", deadline_in(timeout))
        ask_lazy_groups(maintainer.store, maintainer.catalog, wanted)
        while not all_reflect(maintainer.store, maintainer.catalog, wanted):
            self.check()
            rounds.pause(POLL)
        return wanted

    def _failed(self, error: EverviewError | None) -> bool:
        """What a turn has failed with is raised to those who ask; after one that cannot be repaired by a retry,
        the store is given back, so that no process waits for this one."""
        self._failure = error
        if error is not None and not error.retryable:
            self._held.close()
            return False
        return True
