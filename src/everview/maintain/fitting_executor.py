"""An executor that fits the epoch: small ones are done in this process, larger ones on Spark once it is there.

What either costs is measured with every epoch (:mod:`everview.maintain.epoch_sizes`), and the steps are the same,
so where an epoch is done shows in nothing but its time.
"""

from __future__ import annotations

import time

from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.executor import Executor
from everview.maintain.tasks import EpochTask
from everview.operators.runner import Outcome
from everview.store.contract import Begun, TableSnapshot


class FittingExecutor:
    """Does the work of epochs here, or on Spark where that is sooner."""

    def __init__(self, here: Executor, sizes: EpochSizes) -> None:
        self.here = here
        self.sizes = sizes
        self.spark: Executor | None = None
        """Does the work of large epochs, once Spark is there."""

    def work(self, begun: Begun, task: EpochTask, snapshot: TableSnapshot | None = None) -> Outcome:
        """Do the work where it takes less time."""
        spark, sizes = self.spark, self.sizes.of(begun.group)
        load = load_of(begun, task)
        here = spark is None or sizes.fits_here(load)
        started = time.perf_counter()
        outcome = (self.here if here or spark is None else spark).work(begun, task, snapshot)
        sizes.measured(load, time.perf_counter() - started, here=here)
        return outcome


def load_of(begun: Begun, task: EpochTask) -> int:
    """How much an epoch has to do: log entries, and rows that a build takes in."""
    entries = begun.start.operations_to(begun.frontier) if task.reads_log else 0
    return entries + (0 if task.chunk is None else task.chunk.rows)
