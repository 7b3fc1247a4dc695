"""The growth of the logs, epoch by epoch: what the streaming source asks the store.

Where the stream of a group has an epoch under way that is the one to do, and else the next
one is begun as soon as the logs have grown.
"""

from __future__ import annotations

import functools
import hashlib
import time

from everview.catalog import Catalog
from everview.change.frontier import Frontier
from everview.maintain.coordination import require_holder, servers_of
from everview.maintain.epochs import begin_next, streamed
from everview.maintain.plans import Plans
from everview.maintain.tasks import EpochTask
from everview.store.contract import Begun, Store
from everview.store.opened import close_opened, opened
from everview.zones.shares import Share, share_out

ASK_AGAIN = 1.0
"""Seconds after which a source asks again whether anybody still waits for what it finds."""


class Growth:
    """The epochs of one group of the store at a place, on a machine if it is known. ``holder`` is the
    maintainer that all of this is for, where that may be gone without our noticing."""

    def __init__(self, place: str, group: str, machine: str = "", holder: str = "") -> None:
        self._place = place
        self._group = group
        self._machine = machine
        self._holder = holder
        self._asked = 0.0
        self._target: Frontier | None = None
        self._topology = ""
        """Of nodes and regions, as they were before the frontier of the last epoch was chosen."""

    @property
    def _store(self) -> Store:
        return opened(self._place, self._machine)

    @functools.cached_property
    def _plans(self) -> Plans:
        return Plans(self._store, Catalog(self._store.metadata, self._store.views))

    def committed(self) -> int:
        """The last committed epoch."""
        return self._store.views.committed(self._group).epoch

    def end_here(self) -> None:
        """Take what is in the logs now, and nothing that comes later."""
        self._target = self._store.log.latest()

    @property
    def ends(self) -> bool:
        return self._target is not None

    def begun(self, operations: int | None) -> Begun | None:
        """The epoch to do, of at most so many operations if it is a new one; None where there is
        nothing to do. A region that changed hands since before the last frontier has keys in
        two logs, and where logs repeat one another every key may; then one task reads all of them."""
        views = self._store.views
        idle = views.begun(self._group) is None and self._store.log.latest() <= views.committed(self._group).frontier
        if self._holder and (not idle or time.monotonic() > self._asked + ASK_AGAIN):
            require_holder(self._store, self._holder)
            self._asked = time.monotonic()
        if idle:
            return None  # the common case: Spark asks all the time
        before, last = self._regions(), self._topology
        plans = self._plans
        begun = begin_next(
            self._store,
            plans.catalog,
            plans,
            self._group,
            operations,
            self._target,
            alone=lambda: self._store.log.guarantees.duplicates or self._regions() != last,
        )
        if begun is not None:
            self._topology = "" if begun.resumed else before
        return begun

    def _regions(self) -> str:
        regions = self._store.topology.regions()
        return hashlib.blake2b(repr(regions).encode(), digest_size=16).hexdigest()

    def shares(self) -> list[Share]:
        """What tasks read in the stream's epoch that is under way, as many as there are view servers at
        most; nothing where none is."""
        begun = streamed(self._store, self._group)
        if begun is None:
            return []
        return share_out(begun, EpochTask.from_bytes(begun.plan), servers_of(self._store))

    def close(self) -> None:
        close_opened(self._place)
