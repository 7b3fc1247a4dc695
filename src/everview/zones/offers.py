"""Offers: the epochs of a store that its streaming source hands to Spark.

The mover of a group begins its epochs (:mod:`everview.maintain.mover`), and what it does not do itself is offered
here. Everything follows from what the store holds.
"""

from __future__ import annotations

import time

from everview.maintain.coordination import require_holder
from everview.maintain.epochs import offered
from everview.store.contract import Begun, Store
from everview.store.opened import close_opened, opened

ASK_AGAIN = 1.0
"""Seconds after which a source checks again that its maintainer is still there."""


class Offers:
    """The epochs of one group of the store at a place, on a machine if it is known. ``holder`` is the
    maintainer that all of this is for, where that may be gone without our noticing."""

    def __init__(self, place: str, group: str, machine: str = "", holder: str = "") -> None:
        self._place = place
        self._group = group
        self._machine = machine
        self._holder = holder
        self._asked = 0.0

    @property
    def _store(self) -> Store:
        return opened(self._place, self._machine)

    def committed(self) -> int:
        """The last committed epoch."""
        return self._store.views.committed(self._group).epoch

    def begun(self) -> Begun | None:
        """The epoch to do; None where there is nothing to do, which is the common case: Spark asks all the time."""
        begun = offered(self._store, self._group)
        if self._holder and (begun is not None or time.monotonic() > self._asked + ASK_AGAIN):
            require_holder(self._store, self._holder)
            self._asked = time.monotonic()
        return begun

    def close(self) -> None:
        close_opened(self._place)
