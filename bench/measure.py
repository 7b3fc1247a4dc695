"""Timing: the same thing several times, the best taken, and two things in turn so that both
meet the same machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def seconds(work: Callable[[], object]) -> float:
    """How long one run takes, without the garbage collector's turns."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    finally:
        gc.enable()


def best_of(rounds: int, *works: Callable[[], object]) -> tuple[float, ...]:
    """The best time of each piece of work, taken in turns."""
    times = [[seconds(work) for work in works] for _ in range(rounds)]
    return tuple(min(column) for column in zip(*times, strict=True))
