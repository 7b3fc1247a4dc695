"""Calls of a client, each with the time it took.

The clock is read before and after every single call, so what is prepared between calls, and what
is written between reads, does not count.

Reading the clock takes less than a tenth of a microsecond, of which about half is in what is measured: a
``get`` of two microseconds appears some percent too slow, in every setting alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True)
class Calls:
    """Calls of one kind."""

    seconds: np.ndarray
    """What each of them took."""
    rows: int = 1
    """Rows of each."""

    @property
    def rate(self) -> float:
        """Rows per second spent in calls."""
        return float(self.rows * len(self.seconds) / self.seconds.sum())

    def microseconds(self, percentile: float) -> float:
        """What so many percent of the calls took at most."""
        return 1e6 * float(np.percentile(self.seconds, percentile))


def timed(
    call: Callable[[T], object],
    arguments: Sequence[T],
    seconds: float,
    *,
    rows: int = 1,
    block: int = 1,
    between: Callable[[], object] | None = None,
) -> Calls:
    """Call again and again, until calls have taken so many seconds. ``between`` is done, and not
    counted, before every ``block`` calls."""
    clock = time.perf_counter_ns
    left = int(1e9 * seconds)
    source = cycle(arguments)
    spent: list[int] = []
    while left > 0:
        if between is not None:
            between()
        first = len(spent)
        for argument in islice(source, block):
            begun = clock()
            call(argument)
            spent.append(clock() - begun)
        left -= sum(spent[first:])
    return Calls(np.array(spent) / 1e9, rows)
