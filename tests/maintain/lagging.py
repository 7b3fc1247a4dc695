"""Processes that lag: they stop at one of their calls of the store while a maintainer goes on.

Every call of a store passes a gate, which can stop who makes it, or have something else
happen before it, so that two processes can be taken to any order of their calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from everview.catalog import MAIN, Catalog
from everview.change.frontier import Frontier
from everview.maintain.epochs import begin_next
from everview.maintain.plans import Plans
from everview.maintain.tasks import EpochTask
from everview.store.contract import Begun, Store

PARTS = frozenset({"views", "metadata", "log", "topology"})
PATIENCE = 60


class Gated:
    """A store, or a part of one, whose calls are announced before they are made."""

    def __init__(self, inner: Any, announce: Callable[[str], None], **instead: Callable[..., Any]) -> None:
        self._inner = inner
        self._announce = announce
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        if name in PARTS:
            return Gated(getattr(self._inner, name), self._announce, **self._instead)
        found = self._instead.get(name) or getattr(self._inner, name)
        if not callable(found):
            return found

        def called(*arguments: Any, **named: Any) -> Any:
            self._announce(name)
            return found(*arguments, **named)

        return called


class Stopped:
    """Work with a store that stops before its n-th call, until it may go on."""

    def __init__(
        self, store: Store, stop_before: int, work: Callable[[Any], object], **instead: Callable[..., Any]
    ) -> None:
        self.calls: list[str] = []
        self.found: object = None
        self.failed: BaseException | None = None
        self._stop_before = stop_before
        self._stopped, self._go = threading.Event(), threading.Event()

        def done() -> None:
            try:
                self.found = work(Gated(store, self._pass, **instead))
            except BaseException as error:
                self.failed = error
            self._stopped.set()

        self._thread = threading.Thread(target=done, daemon=True)
        self._thread.start()
        assert self._stopped.wait(PATIENCE)

    def _pass(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) == self._stop_before:
            self._stopped.set()
            assert self._go.wait(PATIENCE)

    def go_on(self) -> None:
        """To the end."""
        self._go.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self.failed is not None:
            raise self.failed


class Source(Stopped):
    """Begins the next epoch of the main group. One that only ``plans`` remembers what it would have begun."""

    def __init__(self, store: Store, stop_before: int, *, plans: bool = False) -> None:
        self.planned: tuple[EpochTask, int] | None = None
        """An epoch that would have been begun, and the one after which."""
        instead = {"begin": self._begin} if plans else {}
        super().__init__(store, stop_before, begin, **instead)

    def _begin(self, group: str, frontier: Frontier, plan: bytes, *, base: int) -> None:
        self.planned = EpochTask.from_bytes(plan), base


def begin(store: Store) -> Begun | None:
    """The next epoch of the main group."""
    catalog = Catalog(store.metadata, store.views)
    return begin_next(store, catalog, Plans(store, catalog), MAIN, 1000)
