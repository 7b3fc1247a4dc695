"""Scales of pictures: where a value is, and which values are written beside an axis.

An axis maps values to places between two ends, evenly, by their logarithms, or one after another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.report.experiment import Value

MANY = 6
"""Ticks that an axis has, about."""
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class Axis:
    """From ``low`` at ``start`` to ``high`` at ``stop``, with the ticks that are labelled."""

    low: float
    high: float
    start: float
    stop: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        low, high, value = (
            (math.log(self.low), math.log(self.high), math.log(value)) if self.log else (self.low, self.high, value)
        )
        return self.start + (value - low) / (high - low) * (self.stop - self.start)


def upright(values: Sequence[float], start: float, stop: float, log: bool) -> Axis:
    """For what was measured: from nothing on, or between round numbers around the values."""
    if log:
        low, high = _below(min(values) / 1.1), _above(max(values))
        return Axis(low, high, start, stop, True, tuple(_decades(low, high)))
    high = max(max(values), 0.0)
    low = min(min(values), 0.0)
    high = high if high > low else low + 1
    step = _step((high - low) / (MANY - 1))
    low, high = math.floor(low / step) * step, math.ceil(high / step - 1e-9) * step
    return Axis(low, high, start, stop, False, tuple(_steps(low, high, step)))


def along(values: Sequence[float], start: float, stop: float, log: bool, gap: float) -> Axis:
    """For what was set: from the first value to the last, each labelled if they are few and ``gap`` apart."""
    own = sorted(set(values))
    low, high = own[0], own[-1]
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - 1, high + 1)
    axis = Axis(low, high, start, stop, log, tuple(own))
    places = [axis.at(value) for value in own]
    if all(later - earlier >= gap for earlier, later in itertools.pairwise(places)):
        return axis
    if log:
        ticks = [tick for tick in _decades(_below(low), _above(high)) if low <= tick <= high]
    else:
        step = _step((high - low) / (MANY - 1))
        ticks = list(_steps(math.ceil(low / step - 1e-9) * step, high, step))
    return Axis(low, high, start, stop, log, tuple(ticks))


def label(value: Value) -> str:
    """A value beside an axis: 10k, 2.5M, 0.05; texts as they are."""
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    size = abs(value)
    for unit, name in UNITS:
        if size >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}" if size >= 0.001 or value == 0 else f"{value:.0e}"


def _step(least: float) -> float:
    """The first round number that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= least * (1 - 1e-9))


def _steps(low: float, high: float, step: float) -> list[float]:
    return [round(low + at * step, 12) for at in range(math.floor((high - low) / step + 1e-6) + 1)]


def _below(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(power * factor for factor in (1, 2, 5) if power * factor <= value * (1 + 1e-9))


def _above(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return min(power * factor for factor in (1, 2, 5, 10) if power * factor >= value * (1 - 1e-9))


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten, with numbers between them where they are few, every other one where they are many."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    every = 1 + (last - first) // (MANY + 3)
    ticks = [10.0**power * factor for power in range(first, last + 1, every) for factor in factors]
    return [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
