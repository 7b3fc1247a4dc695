"""The mover: takes one group along the logs, epoch after epoch, in a thread of its own.

As soon as the logs have grown it begins the group's next epoch. A small one it does itself, in this process; a
large one it leaves to the group's stream, where there is one, and waits for its commit::

    the logs grow ──▶ begin ──▶ small, or no stream: done here ──────────────▶ commit
                          ╰───▶ large: the stream finds it in the store ─ Spark ─▶ commit

Whether an epoch is small follows from what epochs have cost (:mod:`everview.maintain.epoch_sizes`). That an epoch
is the mover's, and where it is done, is recorded with its begin, so that the scheduler beside it and the stream know
which epochs are not theirs. An epoch that a killed mover left is finished by the next process before it moves on.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable

from everview.errors import EverviewError
from everview.maintain.epochs import begin_next
from everview.maintain.maintainer import Maintainer
from everview.maintain.rebuilding import is_rebuilt
from everview.maintain.scheduler import POLL, RETRY, as_everview_error
from everview.maintain.tasks import EpochTask
from everview.store.contract import Begun

WAIT = 0.002
"""Seconds after which it looks again whether the stream has committed."""
LOOK = 0.1
"""Seconds after which it looks again whether the stream still runs."""


class Mover:
    """Moves a group of a maintainer's store until it is stopped. ``failed`` is called with every error, and with None
    when a turn has succeeded; it returns whether to try again."""

    def __init__(
        self,
        maintainer: Maintainer,
        group: str,
        failed: Callable[[EverviewError | None], bool],
    ) -> None:
        self.group = group
        self._maintainer = maintainer
        self._failed = failed
        self._check_stream: Callable[[], None] | None = None
        """Raises what the stream has failed with; None while there is no stream."""
        self._regions = ""
        """Of nodes and regions, as they were before the frontier of the last epoch was chosen."""
        self._over = threading.Event()
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="everview-mover", daemon=True)

    # -------------------------------------------------------------- life

    def start(self) -> None:
        self._thread.start()

    def hand_over(self, check_stream: Callable[[], None]) -> None:
        """From now on a stream does the epochs that are too large to be done here. ``check_stream`` raises what it has
        failed with."""
        self._check_stream = check_stream

    def stop(self, *, finish: bool = True) -> None:
        """Return when it begins no epoch any more and the one under way is over. Without ``finish``, one that the
        stream has is left as it is."""
        self._over.set()
        if not finish:
            self._given_up.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                if not self.turn():
                    self._over.wait(POLL)
                self._failed(None)
            except Exception as error:
                if self._is_rebuilt(error):
                    self._over.wait(POLL)
                elif not self._failed(as_everview_error(error)):
                    return
                else:
                    self._over.wait(RETRY)

    def _is_rebuilt(self, error: Exception) -> bool:
        """Whether a group fails that is being rebuilt as a whole: it goes on once it is."""
        if isinstance(error, EverviewError) and error.retryable:
            return False
        maintainer = self._maintainer
        return is_rebuilt(maintainer.store, maintainer.catalog.definitions(), self.group)

    # -------------------------------------------------------------- one epoch

    def turn(self) -> bool:
        """Take the group one epoch further; False where there is nothing to do."""
        begun = self._begun()
        if begun is None:
            return False
        task, started = EpochTask.from_bytes(begun.plan), time.monotonic()
        check_stream = self._check_stream
        here = task.here or check_stream is None
        if here or check_stream is None:
            self._maintainer.epochs.run(begun, self._maintainer.executor.here)
        elif not self._committed(begun, check_stream):
            return False
        if not begun.resumed:
            operations = begun.start.operations_to(begun.frontier)
            self._maintainer.executor.sizes.of(self.group).measured(operations, time.monotonic() - started, here=here)
        return True

    def _begun(self) -> Begun | None:
        """The mover's epoch that is under way, or the next one, begun now."""
        maintainer = self._maintainer
        store = maintainer.store
        begun = store.views.begun(self.group)
        if begun is not None:
            return begun if EpochTask.from_bytes(begun.plan).streamed else None
        reached, latest = store.views.committed(self.group).frontier, store.log.latest()
        if latest <= reached:
            return None  # the common case
        pending = reached.operations_to(reached | latest)
        size = self._maintainer.executor.sizes.of(self.group).next(pending, spark=self._check_stream is not None)
        before, last = self._topology(), self._regions
        begun = begin_next(
            store,
            maintainer.catalog,
            maintainer.plans,
            self.group,
            size.operations,
            here=size.here,
            alone=lambda: store.log.guarantees.duplicates or self._topology() != last,
        )
        if begun is not None:
            self._regions = "" if begun.resumed else before
        return begun

    def _topology(self) -> str:
        """A region that changed hands since before the last frontier has keys in two logs, and where logs repeat one
        another every key may; then one task reads all of them."""
        regions = self._maintainer.store.topology.regions()
        return hashlib.blake2b(repr(regions).encode(), digest_size=16).hexdigest()

    def _committed(self, begun: Begun, check_stream: Callable[[], None]) -> bool:
        """Wait until the stream has committed an epoch; False where it is given up before."""
        views, looked = self._maintainer.store.views, time.monotonic()
        while views.committed(self.group).epoch < begun.epoch:
            if self._given_up.wait(WAIT):
                return False
            if time.monotonic() > looked + LOOK:
                check_stream()
                looked = time.monotonic()
        return True
