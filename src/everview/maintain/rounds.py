"""Loops that end: each round changes something, waits for something that has a name, or is the last.

A loop of the maintainer passes a :class:`Rounds` once in each round, which ends it when its
deadline is over, or when a round has left everything as an earlier one had.

::

    rounds = Rounds("view sales of group main is not built yet", deadline)
    while there_is_work():
        work()
        rounds.changed(state())     # the round must have led to a state that no earlier round led to
    while another_process_works():
        rounds.pause(0.005)         # the round waits for another process, until the deadline

The maintainer decides by what the store holds, so from a state that comes again it would go on as before:
that is a loop without an end, found after one turn of it. How long a round takes does not matter.

Deadlines are times of :func:`time.monotonic`; None: there is none. They are checked between two epochs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from everview.errors import DeadlineError, StalledError


def deadline_in(timeout: float | None) -> float | None:
    """The deadline that is so many seconds from now."""
    return None if timeout is None else time.monotonic() + timeout


class Rounds:
    """The rounds of one loop. For the error that ends it, ``waits_for`` is what is not done yet, and ``why``
    explains who does it."""

    def __init__(
        self,
        waits_for: str | Callable[[], str],
        deadline: float | None = None,
        why: Callable[[], str] | None = None,
    ) -> None:
        self._waits_for = waits_for
        self._deadline = deadline
        self._why = why
        self._seen: set[Hashable] = set()

    def check(self) -> None:
        """Raise a :class:`DeadlineError` where the deadline is over."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise DeadlineError(
                self._waiting(),
                detail=None if self._why is None else self._why(),
                hint="wait longer, or see in the status who maintains the views and how far they are",
            )

    def changed(self, state: Hashable) -> None:
        """A round is over, and has led to this state."""
        self.check()
        if state in self._seen:
            raise StalledError(
                self._waiting(),
                detail="the maintainer comes to the same state again and again",
                hint="end other processes that work for an earlier maintainer of the store, and try again; if that "
                "does not help, rebuild the views, and report this",
            )
        self._seen.add(state)

    def pause(self, seconds: float) -> None:
        """Wait a moment for what another process does, but not past the deadline."""
        self.check()
        time.sleep(seconds if self._deadline is None else max(0.0, min(seconds, self._deadline - time.monotonic())))

    def _waiting(self) -> str:
        return self._waits_for if isinstance(self._waits_for, str) else self._waits_for()
