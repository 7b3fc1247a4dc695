"""A thread that keeps the views of a store up to date, without Spark.

The keeper holds the store's lease and does the next small piece of work, over and over:
what a reader waits for, a chunk of a build, an epoch of each continuous group, and of the lazy ones
when nobody writes.

It does what a pipeline on Spark does, in one place: enough for a notebook, a test, or a small store.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from everview.boundary import translated
from everview.catalog import Catalog, GroupKind, ViewStatus
from everview.change.frontier import Frontier
from everview.errors import DefinitionError, EverviewError
from everview.maintain.asks import answered, ask, asked
from everview.maintain.epochs import OPERATIONS
from everview.maintain.maintainer import LEASE, Maintainer
from everview.maintain.rebuilding import is_rebuilt
from everview.maintain.rounds import Rounds, deadline_in
from everview.maintain.unfinished import may_pass
from everview.store.contract import Store

POLL = 0.005
IDLE = 1.0
"""Seconds without a write after which lazy groups are moved."""
AGAIN = 1.0
"""Seconds after which what failed for a reason that may pass is tried again."""


class Keeper:
    """Maintains the views of a store in this process. ``operations`` is the most log entries of an
    epoch, ``wait`` how long to wait for whoever maintains the store now."""

    def __init__(
        self, open_store: Callable[[], Store], *, operations: int = OPERATIONS, wait: float | None = 0
    ) -> None:
        self._open_store = open_store
        self._operations = operations
        self._wait = wait
        self._held = contextlib.ExitStack()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._maintainer: Maintainer | None = None
        self._failure: EverviewError | None = None
        self._settled = -1
        """The counter of all documents when there was nothing to build or to clean up."""
        self._latest = (0.0, Frontier())
        """The end of the logs, and since when it has been there."""

    # -------------------------------------------------------------- life

    def start(self) -> Keeper:
        """Maintain the views until :meth:`stop`."""
        if self._thread is not None:
            raise DefinitionError("the views are maintained here already")
        self._failure, self._settled = None, -1
        self._over.clear()
        try:
            store = self._open_store()
            self._held.callback(store.close)
            self._held.enter_context(store.lease(LEASE, self._wait))
            self._maintainer = Maintainer(store, Catalog(store.metadata, store.views), self._operations)
            self._maintainer.plans.resume()
            self._maintainer.recover()
        except BaseException as error:
            self._held.close()
            if isinstance(error, EverviewError) or not isinstance(error, Exception):
                raise
            raise _failed(error) from error
        self._thread = threading.Thread(target=self._keep, name="everview-keeper", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Return when nothing is under way any more; between two epochs."""
        self._over.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self._maintainer = None
        self._held.close()

    def __enter__(self) -> Keeper:
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
        for group in maintainer.catalog.groups():
            if group.kind is GroupKind.LAZY and group.name in maintainer.groups():
                ask(maintainer.store, group.name, wanted)
        while not _reached(maintainer, wanted):
            self.check()
            rounds.pause(POLL)
        return wanted

    # -------------------------------------------------------------- work

    def _keep(self) -> None:
        assert self._maintainer is not None
        while not self._over.is_set():
            try:
                if not self.turn(self._maintainer):
                    self._over.wait(POLL)
                self._failure = None
            except Exception as error:
                self._failure = _failed(error)
                if not self._failure.retryable:
                    break
                self._over.wait(AGAIN)
        if self._failure is not None:
            self._held.close()  # so that nobody waits for us

    def turn(self, maintainer: Maintainer) -> bool:
        """Do one piece of work of each kind; False where there is none."""
        did = self._asked(maintainer)
        did = self._built(maintainer) or did
        latest = maintainer.store.log.latest()
        now = time.monotonic()
        if latest != self._latest[1]:
            self._latest = now, latest
        kinds = {group.name: group.kind for group in maintainer.catalog.groups()}
        for group in maintainer.groups():
            if kinds[group] is GroupKind.CONTINUOUS or now - self._latest[0] >= IDLE:
                with _rebuilt_in_time(maintainer, group):
                    plan = maintainer.plan_of(group)
                    did = maintainer.epochs.step(group, plan, latest, self._operations) is not None or did
        return maintainer.trimmer.turn() or did

    def _asked(self, maintainer: Maintainer) -> bool:
        """Move the groups that a reader waits for."""
        found = asked(maintainer.store)
        for group, goal in found.items():
            if group in maintainer.groups():
                with _rebuilt_in_time(maintainer, group):
                    maintainer.advance(group, goal, over=self._over.is_set)
            answered(maintainer.store, group)
        return bool(found)

    def _built(self, maintainer: Maintainer) -> bool:
        """Follow the catalog: a chunk of what is being built, what is new, what is gone."""
        version = maintainer.store.metadata.version()
        if version == self._settled:
            return False
        builds, waiting = maintainer.builder.builds(), maintainer.builder.waiting()
        if builds:
            maintainer.step(builds[0])
        for target, found in () if builds else waiting.items():
            if maintainer.start(target, found) is None:
                maintainer.finish(target)
        if not builds and not waiting:
            maintainer.tidy()
            self._settled = version  # where tidying changed something, or somebody did meanwhile: once more
        return True


@contextlib.contextmanager
def _rebuilt_in_time(maintainer: Maintainer, group: str) -> Iterator[None]:
    """Let a group fail that is being rebuilt as a whole: then it goes on."""
    try:
        yield
    except Exception as error:
        if may_pass(error) or not is_rebuilt(maintainer.store, maintainer.catalog.definitions(), group):
            raise


def _failed(error: Exception) -> EverviewError:
    """What made it fail, as an error of ours."""
    if isinstance(error, EverviewError):
        return error
    found = translated(error)
    found.__cause__ = error
    return found


def _reached(maintainer: Maintainer, wanted: Frontier) -> bool:
    found = maintainer.catalog.definitions().maintained()
    return all(one.status is ViewStatus.LIVE for one in found) and all(
        wanted <= maintainer.store.views.committed(group).frontier for group in {one.group for one in found}
    )
