"""Epochs on Spark: a Python stage for each stage of the plan, a shuffle between them, one commit.

The epoch under way in the store is run over descriptors of what to read, and
committed when the reports of its tasks say that all of it was read.

::

    descriptors ──mapInArrow──▶ blocks ──repartitionById──▶ blocks ──mapInArrow──▶ … ──▶ reports
                   stage 1              (one shuffle each)            stage 2                │
                                                                                 commit ◀────┘
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from everview.catalog import Catalog
from everview.log.shares import Share, described, share_out
from everview.log.source import DESCRIPTOR
from everview.maintain.epochs import Epochs
from everview.maintain.plans import Plans
from everview.maintain.tasks import EpochTask
from everview.operators.bound import QUARANTINE
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.runner import Outcome
from everview.operators.stages import Clock
from everview.operators.work import Written
from everview.store.contract import Begun, Store
from everview.store.opened import machine
from everview.zones import blocks
from everview.zones.blocks import REPORT
from everview.zones.failures import told
from everview.zones.reports import EpochReport, Report, require_whole, tally_of, total
from everview.zones.stage_task import StageTask


class SparkEpochs(Epochs):
    """Does epochs of a store's groups on Spark. ``servers`` tells how many view servers there are."""

    def __init__(
        self, store: Store, catalog: Catalog, plans: Plans, spark: SparkSession, place: str, servers: Callable[[], int]
    ) -> None:
        super().__init__(store, catalog, plans)
        self.spark = spark
        self.place = place
        self.machine = machine()
        self.servers = servers
        self.reported: Callable[[EpochReport], None] = lambda report: None
        """Told of every epoch that was done."""

    def worked(self, begun: Begun, task: EpochTask) -> Outcome:
        """The work of an epoch that no stream hands us: a build's chunk, a joining, one that somebody
        left behind."""
        shares = share_out(begun, task, self.servers())
        spread = self.spark.range(0, len(shares), 1, len(shares))
        return self.over(begun, task, spread.mapInArrow(Describe(tuple(shares)), DESCRIPTOR))

    def over(self, begun: Begun, task: EpochTask, descriptors: DataFrame) -> Outcome:
        """The work of an epoch over descriptors of its slices."""
        clock, taken = Clock(), self.metrics.taken(begun)
        started = time.perf_counter()
        servers = self.servers()
        with clock("spark job"):
            reports = self._tasks(begun, task, descriptors, servers)
        report = total(reports)
        require_whole(begun, task, report)
        with clock("quarantine"):
            set_aside = self._set_aside(begun, task, reports)
        steps = {name.removeprefix("step "): n for name, n in report.counts.items() if name.startswith("step ")}
        self.reported(
            EpochReport(
                begun.epoch,
                begun.start,
                begun.frontier,
                report.damaged,
                report.counts,
                report.seconds | clock.seconds,
                time.perf_counter() - started,
            )
        )
        return Outcome({}, steps, report.damaged, set_aside, tally_of(reports, report, servers), taken)

    def _set_aside(self, begun: Begun, task: EpochTask, reports: Sequence[Report]) -> int:
        """Write down what has no value, once for all tasks."""
        bound = self.plans.load(task.plan)
        quarantine = QuarantineChanges(bound.plan)
        for report in reports:
            quarantine.merge(report.set_aside)
        states = Written(self.store.views, begun.epoch)
        return quarantine.write(states, bound.states[QUARANTINE], begun.frontier)

    def _tasks(self, begun: Begun, task: EpochTask, descriptors: DataFrame, servers: int) -> list[Report]:
        stages = len(self.plans.load(task.plan).stages)
        frame = descriptors
        for stage in range(1, stages + 1):
            work = self.stage_task(begun, stage, servers)
            frame = (frame if stage == 1 else frame.repartitionById(servers, "server")).mapInArrow(
                work, blocks.SPARK_SCHEMA
            )
        try:
            found = frame.filter(f"subject = {REPORT}").select("content").collect()
        except Exception as error:
            # Spark chokes on the long texts of Java's errors where they are a cause
            raise told(error, f"an epoch of group {begun.group} failed") from None
        return [Report.from_json(bytes(row.content)) for row in found]

    def stage_task(self, begun: Begun, stage: int, servers: int) -> StageTask:
        """What each task of a stage does."""
        return StageTask(
            self.place, begun.group, begun.epoch, str(begun.frontier), begun.plan, stage, servers, self.machine
        )


@dataclass(frozen=True)
class Describe:
    """Hands each task its share of what an epoch reads."""

    shares: tuple[Share, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield described(self.shares[number])
