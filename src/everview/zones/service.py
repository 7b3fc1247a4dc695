"""A store maintained as a service: from a command to a signal.

The service waits until no other process maintains the store, maintains it on Spark or by a
thread of this process until it is stopped, and then ends between two epochs.

::

    wait for the lease ──▶ start ──▶ watch ──▶ stop: the epoch under way is finished
          ▲                           │
          └──── tried again ◀─────────┘ an error that may pass (a full disk, a lost executor)

A service that waits forever keeps Spark ready, so that taking over takes seconds less.

It reports what it does as events (:mod:`everview.zones.events`).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from everview.catalog import Catalog
from everview.change.frontier import Frontier
from everview.errors import EverviewError, InternalError, LeaseTakenError, StoreError
from everview.maintain.coordination import all_reflect, ask_lazy_groups
from everview.maintain.epoch_sizes import CEILING
from everview.maintain.local_pipeline import LocalPipeline
from everview.maintain.maintainer import LEASE
from everview.scratch import sweep
from everview.store.contract import Store
from everview.store.opened import open_store
from everview.zones.events import Event, Watch, failed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEAT = 0.05
LOOK = 1.0
"""Seconds between two checks for new events."""
AGAIN = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds to wait after the first, second, … error that may pass; then always the last number."""


ATTEMPTS = 3
"""Attempts after an error that may not pass, unless an epoch was committed in between."""


class Ended(Enum):
    """How a service ended."""

    CLEAN = "clean"
    FAILED = "failed"
    TAKEN = "taken"


class Service:
    """Maintains the views of the store in a directory.

    With ``local`` threads of this process do all of it; else large epochs are done on Spark, with ``master``,
    ``servers`` and ``checkpoint``. ``operations`` is the most log entries of an epoch, ``in_driver`` the most of one
    that is done in this process; None: as many as are done sooner here. ``wait`` is how many seconds to wait for the
    process that maintains the store now; None: forever. With ``once`` it ends when the views reflect what was written
    before it started.
    """

    def __init__(
        self,
        place: str | Path,
        report: Callable[[Event], None],
        *,
        local: bool = False,
        master: str | None = None,
        servers: int = 2,
        operations: int | None = None,
        in_driver: int | None = None,
        checkpoint: str | Path | None = None,
        wait: float | None = 0,
        once: bool = False,
    ) -> None:
        self._place = str(Path(place).absolute())
        self._report = report
        self._local = local
        self._master = master
        self._servers = servers
        self._operations = operations
        self._in_driver = in_driver
        self._checkpoint = checkpoint
        self._ends = None if wait is None else time.monotonic() + wait
        self._once = once
        self._held = ExitStack()
        self._spark: SparkSession | None = None
        self._why = ""
        """Why it is over; empty while it is not. A plain value: a signal handler may come at any point."""

    def stop(self, why: str) -> None:
        """End after the epoch that is under way. Called by signal handlers and other threads."""
        self._why = self._why or why

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        return bool(self._why)

    def _over_in(self, seconds: float) -> bool:
        """Whether it is over, at the latest after so many seconds."""
        ends = time.monotonic() + seconds
        while not self._why and (left := ends - time.monotonic()) > 0:
            time.sleep(min(BEAT, left))
        return self.stopping

    def run(self) -> Ended:
        """Maintain the store until it is over."""
        sweep()
        try:
            with self._held, closing(open_store(self._place)) as store:
                ended = self._run(store)
        except EverviewError as error:
            self._report(failed(error))
            return Ended.FAILED
        if ended is Ended.CLEAN:
            self._report(Event("stopped", "stopped: nothing is under way", ({"why": self._why or "done"},)))
        return ended

    def _run(self, store: Store) -> Ended:
        catalog = Catalog(store.metadata, store.views)
        failures = 0
        while not self.stopping:
            ended = self._wait(store)
            if ended is not None:
                return ended
            before = _committed(store, catalog)
            try:
                self._maintain(store, catalog)
                return Ended.CLEAN
            except LeaseTakenError:
                continue  # another process was quicker
            except EverviewError as error:
                failures = 0 if _committed(store, catalog) > before else failures
                if self._over_in(0) or not _may_pass(error, failures):
                    raise
                pause = AGAIN[min(failures, len(AGAIN) - 1)]
                failures += 1
                self._report(failed(error, pause))
                self._over_in(pause)
        return Ended.FAILED if failures else Ended.CLEAN

    # -------------------------------------------------------------- whose turn it is

    def _wait(self, store: Store) -> Ended | None:
        """Wait until no other process maintains the store; returns how the service ends where that takes too long."""
        announced = None
        while not self.stopping:
            holder = store.holder(LEASE)
            if holder is None:
                return None
            if self._ends is not None and time.monotonic() >= self._ends:
                error = LeaseTakenError(
                    f"{self._place} is maintained by {holder}",
                    hint="stop it first, or wait until it is gone: with --wait forever this one takes over then",
                )
                self._report(failed(error))
                return Ended.TAKEN
            if holder != announced:
                announced = holder
                text = f"{self._place} is maintained by {holder}: waiting until it is gone"
                self._report(Event("waiting", text, ({"store": self._place, "holder": holder},)))
                if self._stands_by:
                    self._warm()
            self._over_in(BEAT)
        return Ended.CLEAN

    # -------------------------------------------------------------- the work

    def _maintain(self, store: Store, catalog: Catalog) -> None:
        watch = Watch(store, catalog)
        running = self._running()
        with running:
            self._report(self._started(catalog))
            goal = _asked(store, catalog) if self._once else None
            looked = time.monotonic()
            is_announced = False
            while not self._over_in(BEAT):
                running.check()
                if running.on_spark and not is_announced:
                    is_announced = True
                    self._report(self._handed_over())
                if time.monotonic() - looked >= LOOK:
                    looked = time.monotonic()
                    self._see(watch)
                if goal is not None and all_reflect(store, catalog, goal):
                    break
            if self.stopping:
                text = f"stopping ({self._why}): what is under way is finished first"
                self._report(Event("stopping", text, ({"why": self._why},)))
        self._see(watch)

    def _see(self, watch: Watch) -> None:
        for event in watch.look():
            self._report(event)

    def _running(self) -> LocalPipeline:
        operations = self._operations or CEILING
        if self._local:
            return LocalPipeline(lambda: open_store(self._place), operations=operations)
        from everview.zones.pipeline import Pipeline

        return Pipeline(
            self._place,
            spark=self._session,
            servers=self._servers,
            operations=operations,
            in_driver=self._in_driver,
            checkpoint=self._checkpoint,
        )

    def _session(self) -> SparkSession:
        """Spark, imported and started here, where it is needed."""
        if self._spark is None:
            from everview.zones.failures import error_of
            from everview.zones.session import new_session

            try:
                with _own_handlers():
                    self._spark = new_session(self._master)
            except Exception as error:
                why = error_of(error, "").detail
                hint = "Spark needs Java 17 or newer, and the master must run; --local does without Spark"
                where = "on this machine" if self._master is None else f"with the master {self._master}"
                raise EverviewError(f"Spark does not start {where}", detail=why, hint=hint) from error
            self._held.callback(_end, self._spark)
        return self._spark

    @property
    def _stands_by(self) -> bool:
        """Whether Spark is started while another one maintains the store, so that the turn is taken at once: if
        this one waits forever and Spark runs in this process. On a cluster it would keep cores."""
        return self._ends is None and not self._local and (self._master or "local").startswith("local")

    def _warm(self) -> None:
        """Start Spark, and all that a first epoch would start, unless that is done."""
        if self._spark is None:
            spark = self._session()
            from everview.zones.rehearsal import rehearse

            with suppress(EverviewError):  # what fails here fails again when it matters, and is reported then
                rehearse(spark)
            text = "standing by: Spark has started, and this one takes over as soon as the other is gone"
            self._report(Event("ready", text, ({"store": self._place, "process": os.getpid()},)))

    def _started(self, catalog: Catalog) -> Event:
        found: dict[str, list[str]] = {}
        for one in catalog.definitions().maintained():
            found.setdefault(one.group, []).append(one.name)
        views = "; ".join(f"{group}: {', '.join(names)}" for group, names in found.items()) or "there are no views yet"
        master = None if self._local else self._master or "local"
        means = "in this process"
        if master is not None:
            means += f", and large epochs on Spark ({master}) with {self._servers} view servers once it has started"
        record = {
            "store": self._place,
            "process": os.getpid(),
            "master": master,
            "servers": None if self._local else self._servers,
            "groups": found,
        }
        return Event("started", f"maintaining {self._place} {means}, process {os.getpid()}; {views}", (record,))

    def _handed_over(self) -> Event:
        assert self._spark is not None
        master = self._spark.conf.get("spark.master")
        text = f"Spark has started ({master}): it does large epochs from now on"
        return Event("spark", text, ({"store": self._place, "master": master, "servers": self._servers},))


def _end(spark: SparkSession) -> None:
    """Let go of Spark; it may be gone already."""
    with suppress(Exception):
        spark.stop()


_UNFORESEEN = (EverviewError, StoreError, InternalError)
"""Errors that show only where something failed; what is known to last has a class of its own."""


def _may_pass(error: EverviewError, failures: int) -> bool:
    """Whether another attempt is worth it. What Spark itself or the operating system could not do (start a Python
    process in time, say) cannot be distinguished from what they never will: that is tried a few times."""
    return error.retryable or (type(error) in _UNFORESEEN and failures < ATTEMPTS)


@contextmanager
def _own_handlers() -> Iterator[None]:
    """While Spark starts, which puts a handler of its own in the place of ours."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _committed(store: Store, catalog: Catalog) -> int:
    return max((store.views.committed(group.name).epoch for group in catalog.groups()), default=0)


def _asked(store: Store, catalog: Catalog) -> Frontier:
    """Where the logs end now; lazy groups are asked to go there."""
    goal = store.log.latest()
    ask_lazy_groups(store, catalog, goal)
    return goal
