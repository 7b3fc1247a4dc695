"""Executors: where the work of an epoch is done.

An executor brings all state that an epoch's plan keeps to the epoch, and does nothing else. Beginning
the epoch and committing it belong to :class:`~everview.maintain.epochs.Epochs`, whichever executor it has, so an
epoch is the same wherever its work is done.

================================================================  ==============================================
:class:`LocalExecutor`                                            all stages in this process, one after another
:class:`~everview.zones.spark_executor.SparkExecutor`             a Spark stage for each stage of the plan
================================================================  ==============================================

Both read with :func:`read_input`: the local executor everything at once, a task its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from everview.change.frontier import Frontier, Slice
from everview.maintain.plans import Plans
from everview.maintain.table_chunks import loaded_entries, rows_at
from everview.maintain.tasks import EpochTask
from everview.operators.bound import BoundPlan
from everview.operators.runner import Outcome, Runner
from everview.operators.stages import Clock
from everview.store.contract import Begun, Damage, LogBatch, Store, TableSnapshot

KEPT = 8
"""Plans whose workers are kept ready."""


class Executor(Protocol):
    """Does the work of epochs that have begun."""

    def work(self, begun: Begun, task: EpochTask, snapshot: TableSnapshot | None = None) -> Outcome:
        """Bring all state to an epoch. ``snapshot`` is one at the epoch's frontier, if the caller holds one."""


@dataclass(frozen=True)
class EpochInput:
    """What an epoch, or one task of it, takes in."""

    batches: Sequence[LogBatch] = ()
    damaged: tuple[Damage, ...] = ()
    rows: dict[str, pa.Table] = field(default_factory=dict)
    """Rows of base tables that a build takes in, by the name of the table."""
    entries: int = 0
    """Log entries that were read, with those of rows that a build has not taken in yet."""


def read_input(
    store: Store,
    bound: BoundPlan,
    task: EpochTask,
    frontier: Frontier,
    slices: Sequence[Slice],
    pieces: Sequence[int],
    clock: Clock,
    snapshot: TableSnapshot | None = None,
) -> EpochInput:
    """Read slices of the logs, and pieces of a build's chunk as they were at the epoch's frontier."""
    batches: list[LogBatch] = []
    damaged: list[Damage] = []
    rows: dict[str, pa.Table] = {}
    with clock("read log"):
        for piece in slices if task.reads_log else ():
            content = store.log.read(piece, list(bound.tables.values()))
            batches += content.batches
            damaged += content.damaged
    entries = sum(len(batch.entries) for batch in batches)
    chunk = task.chunk
    if chunk is not None:
        batches = [loaded for batch in batches if (loaded := loaded_entries(batch, chunk)) is not None]
    if chunk is not None and chunk.table is not None and pieces:
        table = bound.tables[chunk.table]
        held = snapshot is not None and snapshot.frontier == frontier
        with clock("read rows"), nullcontext(snapshot) if held and snapshot else store.snapshot() as at:
            parts = [rows_at(store, at, table, part, frontier) for part in chunk.ranges(pieces)]
        rows[chunk.table] = pa.concat_tables(parts)
    return EpochInput(batches, tuple(damaged), rows, entries)


class LocalExecutor:
    """Does the work of epochs in this process."""

    def __init__(self, store: Store, plans: Plans) -> None:
        self._store = store
        self._plans = plans
        self._runners: dict[tuple[str, bool], Runner] = {}

    def work(self, begun: Begun, task: EpochTask, snapshot: TableSnapshot | None = None) -> Outcome:
        runner, clock = self._runner(task), Clock()
        slices = begun.start.slices_to(begun.frontier)
        read = read_input(self._store, runner.bound, task, begun.frontier, slices, range(task.pieces), clock, snapshot)
        outcome = runner.take(self._store, begun, read.batches, read.rows, clock)
        return replace(outcome, damaged=read.damaged)

    def _runner(self, task: EpochTask) -> Runner:
        runner = self._runners.get((task.plan, task.first))
        if runner is None:
            if len(self._runners) > KEPT:
                self._runners.clear()
            runner = self._runners[task.plan, task.first] = Runner(self._plans.load(task.plan, first=task.first))
        return runner
