"""Signals that end the demonstration at any point.

The first signal is raised as an exception wherever the program is, except while a process is
being started, which would be unknown otherwise; later signals are ignored while processes are ended.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal has come."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Ending(AbstractContextManager["Ending"]):
    """While its block lasts, a signal raises :class:`Interrupted` in it."""

    def __init__(self) -> None:
        self._number = 0
        self._later = False

    def __enter__(self) -> Ending:
        self._before = {number: signal.signal(number, self._came) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _came(self, number: int, frame: FrameType | None) -> None:
        if not self._number:
            self._number = number
            if not self._later:
                raise Interrupted(number)

    @contextmanager
    def later(self) -> Iterator[None]:
        """A signal that comes inside the block is raised at its end."""
        self._later = True
        try:
            yield
        finally:
            self._later = False
        if self._number:
            raise Interrupted(self._number)
