"""What epochs cost in one place, by their size: learned from the last ones.

For each size (a power of two) the seconds of the last epochs are remembered, and other sizes lie on
straight lines between those that were measured::

    seconds
      │                          ·  beyond the largest: as much for each operation as up to it
      │                    ●
      │          ●─────────╯
      │●─────────╯               before the smallest: down to what an empty epoch costs
      └──────────────────────── operations

A larger epoch never costs less, so one that was measured bounds all smaller ones: a first epoch in
which processes started and caches were empty is soon forgotten. So is what was measured long ago: then the machine
may have been busy with something else, and the plan another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

REMEMBERED = 300.0
"""Seconds for which a measurement is remembered."""
WEIGHT = 0.3
"""What the last epoch of a size counts for, against all before it."""
APART = 4
"""How many times larger an epoch must be than another for their difference to show what an operation costs."""


@dataclass(frozen=True)
class _Point:
    """Epochs of one size."""

    operations: float
    seconds: float
    time: float

    def after(self, operations: int, seconds: float, now: float) -> _Point:
        return _Point(
            self.operations + WEIGHT * (operations - self.operations),
            self.seconds + WEIGHT * (seconds - self.seconds),
            now,
        )


class EpochCosts:
    """What epochs cost in one place. Until it is measured, an empty one costs ``rest`` seconds, and an operation what
    ``slope`` returns."""

    def __init__(self, rest: float, slope: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._rest = rest
        self._slope = slope
        self._clock = clock
        self._points: dict[int, _Point] = {}

    def measured(self, operations: int, seconds: float) -> None:
        """An epoch of so many operations has taken so long."""
        now, size = self._clock(), max(1, operations).bit_length()
        known = self._points.get(size)
        fresh = known is None or now - known.time > REMEMBERED
        self._points[size] = (
            _Point(max(1, operations), seconds, now)
            if known is None or fresh
            else known.after(max(1, operations), seconds, now)
        )

    @property
    def largest(self) -> int:
        """The size of the largest epochs that are remembered."""
        return round(max((operations for operations, _ in self._known()), default=0))

    @property
    def slope(self) -> float:
        """Seconds of one more operation of a large epoch."""
        points = self._known()
        if len(points) > 1 and points[-1][0] >= APART * points[0][0]:
            (low, least), (high, most) = points[0], points[-1]
            return (most - least) / (high - low)
        return self._slope()

    def seconds(self, operations: int) -> float:
        """What an epoch of so many operations will cost."""
        points = self._known()
        if not points:
            return self._rest + operations * self._slope()
        before = 0.0, min(self._rest, points[0][1])
        for here in points:
            if operations <= here[0]:
                return before[1] + (operations - before[0]) * (here[1] - before[1]) / (here[0] - before[0])
            before = here
        return before[1] + (operations - before[0]) * self.slope

    def most_within(self, seconds: float, most: int) -> int:
        """How many operations an epoch may have, at most so many, to be done within a time; at least one."""
        low, high = 1, max(1, most)
        while low < high:
            middle = (low + high + 1) // 2
            if self.seconds(middle) <= seconds:
                low = middle
            else:
                high = middle - 1
        return low

    def _known(self) -> list[tuple[float, float]]:
        """Operations and seconds that are remembered, both rising."""
        oldest = self._clock() - REMEMBERED
        found: list[tuple[float, float]] = []
        bound = float("inf")
        for point in sorted(self._points.values(), key=lambda point: -point.operations):
            if point.time >= oldest:
                bound = min(bound, point.seconds)
                found.append((point.operations, bound))
        return found[::-1]
