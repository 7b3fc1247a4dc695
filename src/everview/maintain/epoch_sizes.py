"""How large the next epoch of a group is, and where its work is done.

Both follow from what epochs have cost so far (:mod:`everview.maintain.epoch_costs`).

*Where*: an epoch on Spark costs a tenth of a second or more, however little it does, but has more hands.
So small ones are done in the process that begins them, larger ones on Spark, and the border is where both take equally
long::

    seconds    here  ╱
      │             ╱      ╭──── Spark
      │        ────╱───────╯
      │      ╭────╯ ↑ the border
      └──────────────────────── operations

*How large*: all that waits, but no more than is done in about a second, so that views are never long behind
when many writes come, and the next process soon finishes what a killed one has begun. Where so much waits that it
takes many epochs anyway, they may take two seconds: the larger they are, the less an operation costs. Sizes of which
nothing is known yet are approached in steps: an epoch is at most a few times as large as the largest so far.
``operations`` is the ceiling, and the bytes of the logs have one of their own
(:data:`everview.maintain.epochs.BYTES`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from everview.errors import DefinitionError
from everview.maintain.epoch_costs import EpochCosts

CEILING = 1_000_000
"""Log entries that an epoch takes at most, by default, however many wait."""
LONGEST = 1.0
"""Seconds that an epoch is to take at most."""
LONGEST_OF_MANY = 2.0
"""Seconds that it may take where MANY epochs are needed for all that waits. A process that is killed every few seconds
must be able to finish one."""
MANY = 8
SURPRISE = 2.0
"""How many times longer than expected an epoch on Spark may take before it is doubted."""
REST_SHARE = 4
"""How many times longer than an empty one it may take at least: else most of the time would go into beginnings."""
FIRST = 10_000
"""Operations of a group's first epoch, at most."""
GROWTH = 4
"""How many times larger than all before it an epoch may be."""
KEPT = 64
"""Groups whose epochs are remembered."""

HERE_REST, HERE_OPERATION = 0.005, 2e-6
"""Seconds of an epoch in this process until it is measured: of an empty one, and of each operation."""
SPARK_REST = 0.15
"""Seconds of an empty epoch on Spark, until it is measured."""


@dataclass(frozen=True)
class EpochSize:
    """The next epoch."""

    operations: int
    """At most."""
    here: bool
    """Whether its work is done in this process."""


class GroupSizes:
    """The sizes of one group's epochs. With ``in_driver`` the border is given: epochs of at most so many operations are
    done here."""

    def __init__(self, ceiling: int, servers: Callable[[], int], in_driver: int | None = None) -> None:
        self._ceiling = ceiling
        self._in_driver = in_driver
        self.here = EpochCosts(HERE_REST, lambda: HERE_OPERATION)
        self.spark = EpochCosts(SPARK_REST, lambda: self.here.slope / servers())
        self._doubts = False
        """Whether the last epoch on Spark was surprisingly slow, and so is not remembered."""

    def next(self, pending: int, *, spark: bool) -> EpochSize:
        """The size of the next epoch where so many operations are pending; ``spark``: whether Spark is there."""
        largest = max(self.here.largest, self.spark.largest)
        most = min(pending, self._ceiling, max(FIRST, GROWTH * largest))
        if not spark:
            return EpochSize(_bounded(self.here, most, pending), here=True)
        if self._in_driver is not None:
            here = most <= self._in_driver
            return EpochSize(_bounded(self.here if here else self.spark, most, pending), here)
        one, other = (_bounded(costs, most, pending) for costs in (self.here, self.spark))
        here = one / self.here.seconds(one) >= other / self.spark.seconds(other)
        return EpochSize(one if here else other, here)

    def fits_here(self, operations: int) -> bool:
        """Whether an epoch of a given size is done here sooner than on Spark."""
        if self._in_driver is not None:
            return operations <= self._in_driver
        return self.here.seconds(operations) <= self.spark.seconds(operations)

    def measured(self, operations: int, seconds: float, *, here: bool) -> None:
        """An epoch was done. One on Spark that was surprisingly slow counts only if the next one is as well: the first
        one pays for what others find ready, and if it counted, Spark would not be tried again."""
        if here:
            self.here.measured(operations, seconds)
            return
        self._doubts = not self._doubts and seconds > SURPRISE * self.spark.seconds(operations)
        if not self._doubts:
            self.spark.measured(operations, seconds)


class EpochSizes:
    """The sizes of the epochs of all groups."""

    def __init__(
        self, ceiling: int = CEILING, servers: Callable[[], int] = lambda: 1, in_driver: int | None = None
    ) -> None:
        self.has_spark = False
        """Whether Spark is there."""
        self._ceiling = ceiling
        self._servers = servers
        self._in_driver = in_driver
        self._groups: OrderedDict[str, GroupSizes] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, group: str) -> GroupSizes:
        """Those of a group."""
        with self._lock:
            found = self._groups.get(group)
            if found is None:
                found = self._groups[group] = GroupSizes(self._ceiling, self._servers, self._in_driver)
                while len(self._groups) > KEPT:
                    self._groups.popitem(last=False)
            self._groups.move_to_end(group)
            return found


def require_border(operations: int | None) -> int | None:
    """A border that is given, if it is one."""
    if operations is not None and operations < 0:
        raise DefinitionError(
            f"epochs of {operations} operations cannot be done in the driver",
            hint="in_driver is the most operations of such an epoch: 0 has all of them done on Spark",
        )
    return operations


def _bounded(costs: EpochCosts, most: int, pending: int) -> int:
    """How many operations an epoch may have where so many are pending."""
    longest = min(max(LONGEST, costs.seconds(pending) / MANY), LONGEST_OF_MANY)
    return costs.most_within(max(longest, REST_SHARE * costs.seconds(1)), most)
