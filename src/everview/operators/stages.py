"""Stages: the steps that run between two redistributions, in one place.

A stage takes what was packed for its steps, runs them one after another, and packs
what steps of later stages read.

The same code runs in a Spark task, where a place is one of several view servers, and in the
user's process, where there is one place.

A :class:`Clock` measures where the time goes.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import duckdb
import pyarrow as pa

from everview.errors import EverviewError
from everview.operators.aggregate import AggregateWorker
from everview.operators.bound import BoundPlan, Edge
from everview.operators.delta import DeltaWorker
from everview.operators.distinct import DistinctWorker
from everview.operators.evaluation import Unevaluable
from everview.operators.expand import ExpandWorker
from everview.operators.extreme import ExtremeWorker
from everview.operators.filter_project import FilterProjectWorker
from everview.operators.group_reevaluation import GroupReevaluationWorker
from everview.operators.join import JoinWorker
from everview.operators.pre_aggregation import PreAggregationWorker
from everview.operators.reevaluation import ReevaluationWorker
from everview.operators.routing import Route
from everview.operators.rows_by_key import PartitionWorker
from everview.operators.set_operation import SetWorker
from everview.operators.top_k import TopKWorker
from everview.operators.union import RowsWorker, UnionWorker
from everview.operators.unnest import UnnestWorker
from everview.operators.view import ViewWorker
from everview.operators.window import WindowWorker
from everview.operators.work import Changes, Work, Worker
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    DeltaOperator,
    DistinctOperator,
    ExpandOperator,
    ExtremeOperator,
    FilterProjectOperator,
    GroupReevaluationOperator,
    IndexOperator,
    JoinOperator,
    PartitionOperator,
    PreAggregationOperator,
    ReevaluationOperator,
    ReverseJoinOperator,
    RowsOperator,
    SetOperator,
    TopKOperator,
    UnionOperator,
    UnnestOperator,
    ViewOperator,
    WindowOperator,
)
from everview.store.contract import LogBatch


class Clock:
    """Seconds by the name of what they were spent on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


WORKERS: Mapping[type[Operator], Callable[[Step, BoundPlan], Worker]] = {
    DeltaOperator: DeltaWorker,
    RowsOperator: RowsWorker,
    FilterProjectOperator: FilterProjectWorker,
    ExpandOperator: ExpandWorker,
    UnnestOperator: UnnestWorker,
    UnionOperator: UnionWorker,
    PreAggregationOperator: PreAggregationWorker,
    ExtremeOperator: ExtremeWorker,
    AggregateOperator: AggregateWorker,
    PartitionOperator: PartitionWorker,
    ReverseJoinOperator: PartitionWorker,
    JoinOperator: JoinWorker,
    DistinctOperator: DistinctWorker,
    SetOperator: SetWorker,
    GroupReevaluationOperator: GroupReevaluationWorker,
    WindowOperator: WindowWorker,
    TopKOperator: TopKWorker,
    ReevaluationOperator: ReevaluationWorker,
    ViewOperator: ViewWorker,
    IndexOperator: ViewWorker,
}
"""What does the work of each operator."""


Packed = dict[Edge, list[pa.Table]]
"""Tables on their way."""


class Workshop:
    """The workers of a bound plan, each made when it is first needed."""

    def __init__(self, bound: BoundPlan) -> None:
        self.bound = bound
        self._workers: dict[str, Worker] = {}
        self.routes: dict[Edge, Route] = {}
        """By which keys changes were sent before."""

    def worker(self, step: Step) -> Worker:
        """What does the work of a step, made at the first call."""
        found = self._workers.get(step.fingerprint)
        if found is None:
            found = self._workers[step.fingerprint] = WORKERS[type(step.operator)](step, self.bound)
        return found

    def delta(self, table: str) -> DeltaWorker | None:
        """The worker of a base table's delta; None where the plan does not read the table."""
        for use in self.bound.plan.tables:
            if use.name == table:
                found = self.worker(self.bound.plan.step(use.step))
                assert isinstance(found, DeltaWorker)
                return found
        return None

    @functools.cached_property
    def edges(self) -> dict[str, tuple[tuple[Edge, Step], ...]]:
        """For each step the ways from it, with the steps they lead to."""
        return {
            source: tuple((Edge(source, step.fingerprint, number), step) for step, number in readers)
            for source, readers in self.bound.consumers.items()
        }


_DEFECTS: tuple[type[Exception], ...] = (
    duckdb.Error,
    pa.ArrowException,
    Unevaluable,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What no step raises for what rows hold: that is quarantined."""


Only: TypeAlias = Callable[[Step, Changes], Changes]
"""Takes what a step emits, and returns what of it matters."""


def whole(step: Step, changes: Changes) -> Changes:
    """All of it."""
    return changes


@dataclass
class Stage:
    """One stage in one place. ``sources`` are changes of base tables, by the name of the table."""

    workshop: Workshop
    number: int
    work: Work
    received: Packed = field(default_factory=dict)
    emitted: dict[str, int] = field(default_factory=dict)
    """How many changes each step emitted, for reports."""
    kept: dict[str, Changes] | None = None
    """Where to leave what each step emitted."""
    clock: Clock = field(default_factory=Clock)
    only: Only = whole
    """Of what a step emits, what matters."""

    def run(self, sources: Mapping[str, Changes] | None = None) -> Iterator[tuple[Edge, Step, Changes]]:
        """Run the steps; yields what steps of later stages are to be sent, not yet packed."""
        bound = self.workshop.bound
        packed: Packed = defaultdict(list, {edge: list(parts) for edge, parts in self.received.items()})
        for step in bound.stages[self.number - 1]:
            worker = self.workshop.worker(step)
            with self.clock(step.operator.name):
                changes = self._changes(step, worker, packed, sources or {})
            changes = None if changes is None else self.only(step, changes)
            if changes is None or not len(changes):
                continue
            self.emitted[step.fingerprint] = len(changes)
            if self.kept is not None:
                self.kept[step.fingerprint] = changes
            for edge, target in self.workshop.edges[step.fingerprint]:
                if bound.stage_of(target) == self.number:
                    with self.clock(target.operator.name):
                        packed[edge].append(self.workshop.worker(target).pack(self.work, edge.number, changes))
                else:
                    yield edge, target, changes

    def _changes(self, step: Step, worker: Worker, packed: Packed, sources: Mapping[str, Changes]) -> Changes | None:
        if isinstance(step.operator, DeltaOperator):
            return sources.get(step.operator.table)
        inputs: list[Sequence[pa.Table]] = [
            [part for part in packed.get(Edge(one.step, step.fingerprint, number), ()) if len(part)]
            for number, one in enumerate(step.inputs)
        ]
        if not any(inputs) and not self.work.first(step):
            return None
        try:
            return worker.run(self.work, inputs)
        except _DEFECTS as error:
            views = ", ".join(self.workshop.bound.plan.users[step.fingerprint])
            raise EverviewError(
                f"{views} cannot be maintained",
                detail=f"{step.operator.name} {step.title} failed: {type(error).__name__}: {error}",
                hint="drop what is named, and report it: no view should go live that fails like this",
            ) from error


def log_changes(workshop: Workshop, work: Work, batches: Sequence[LogBatch]) -> dict[str, Changes]:
    """The changes of each base table in log entries."""
    by_table: dict[str, list[LogBatch]] = defaultdict(list)
    for batch in batches:
        by_table[batch.table.name].append(batch)
    found: dict[str, Changes] = {}
    for name, entries in by_table.items():
        worker = workshop.delta(name)
        if worker is not None:
            found[name] = worker.of_log(work, entries)
    return found


def sources_of(
    workshop: Workshop, work: Work, batches: Sequence[LogBatch], rows: Mapping[str, pa.Table]
) -> dict[str, Changes]:
    """The changes of each base table in log entries, and in rows that come in as they are."""
    found = log_changes(workshop, work, batches)
    for table, fresh in rows.items():
        worker = workshop.delta(table)
        if worker is not None:
            changes = worker.of_rows(work, fresh)
            found[table] = pa.concat_tables([found[table], changes]) if table in found else changes
    return found
