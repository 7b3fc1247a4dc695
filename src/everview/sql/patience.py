"""Queries that are given up when they take too long.

One thread of the process watches all queries that may only take so long, and interrupts a
connection whose time is over. (A timer for each, which is a thread, costs more than most queries do.)
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb


class _Watch:
    """The queries of one process that are watched."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._watched: dict[int, tuple[float, duckdb.DuckDBPyConnection]] = {}
        self._next_look = math.inf
        threading.Thread(target=self._run, name="everview-patience", daemon=True).start()

    def add(self, deadline: float, connection: duckdb.DuckDBPyConnection) -> int:
        with self._changed:
            number = next(self._numbers)
            self._watched[number] = deadline, connection
            if deadline < self._next_look:
                self._changed.notify()
            return number

    def remove(self, number: int) -> None:
        """From here on the query's connection is not interrupted any more for it."""
        with self._changed:
            self._watched.pop(number, None)

    def _run(self) -> None:
        with self._changed:
            while True:
                self._changed.wait(self._looked())

    def _looked(self) -> float:
        """Give up what is due; how long there is nothing more to do. (In a frame of its own: the one of a thread
        that waits until the process ends would keep the last connection.)"""
        now = time.monotonic()
        for number, (deadline, connection) in list(self._watched.items()):
            if deadline <= now:
                del self._watched[number]
                connection.interrupt()
        self._next_look = min((deadline for deadline, _ in self._watched.values()), default=math.inf)
        return min(self._next_look - now, threading.TIMEOUT_MAX)


_lock = threading.Lock()
_watch: _Watch | None = None


def _watching() -> _Watch:
    global _watch
    with _lock:
        if _watch is None:
            _watch = _Watch()
        return _watch


@contextmanager
def given_up(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt what runs on a connection inside if it takes longer than this."""
    watch = _watching()
    number = watch.add(time.monotonic() + seconds, connection)
    try:
        yield
    finally:
        watch.remove(number)


def _forked() -> None:
    """A child has neither the watching thread nor the one that may have held the lock."""
    global _lock, _watch
    _lock, _watch = threading.Lock(), None


os.register_at_fork(after_in_child=_forked)
