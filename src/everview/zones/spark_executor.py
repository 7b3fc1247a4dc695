"""The work of epochs on Spark: a Python stage for each stage of the plan, a shuffle between them.

The first stage runs over numbers, one for each share of what the epoch reads; the shares travel with its tasks. The
work is done when the reports of the tasks show that all of it was read exactly once.

::

    0, 1, … ──mapInArrow──▶ blocks ──repartitionById──▶ blocks ──mapInArrow──▶ … ──▶ reports
               stage 1              (one shuffle each)            stage 2                │
                                                                             outcome ◀───┘
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from everview.maintain.plans import Plans
from everview.maintain.tasks import EpochTask
from everview.operators.bound import QUARANTINE
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.runner import Outcome
from everview.operators.stages import Clock
from everview.operators.work import Written
from everview.store.contract import Begun, Store, TableSnapshot
from everview.store.opened import machine
from everview.zones import shuffle_blocks
from everview.zones.failures import error_of
from everview.zones.reports import TaskReport, require_whole, tally_of, total
from everview.zones.shares import Share, share_out
from everview.zones.stage_task import StageTask


class SparkExecutor:
    """Does the work of epochs on Spark. ``servers`` returns how many view servers there are."""

    def __init__(self, store: Store, plans: Plans, spark: SparkSession, place: str, servers: Callable[[], int]) -> None:
        self.store = store
        self.plans = plans
        self.spark = spark
        self.place = place
        self.machine = machine()
        self.servers = servers

    def work(self, begun: Begun, task: EpochTask, snapshot: TableSnapshot | None = None) -> Outcome:
        """Do the work of an epoch with a Spark job: one of the stream, a chunk of a build, a joining."""
        clock, servers = Clock(), self.servers()
        with clock("spark job"):
            reports = self._tasks(begun, task, servers)
        whole = total(reports)
        require_whole(begun, task, whole)
        with clock("quarantine"):
            quarantined = self._quarantine(begun, task, reports)
        steps = {name.removeprefix("step "): n for name, n in whole.counts.items() if name.startswith("step ")}
        tally = tally_of(reports, whole, servers, clock.seconds)
        return Outcome({}, steps, whole.damaged, quarantined, tally)

    def _quarantine(self, begun: Begun, task: EpochTask, reports: Sequence[TaskReport]) -> int:
        """Record the rows whose expressions failed, once for all tasks."""
        bound = self.plans.load(task.plan)
        quarantine = QuarantineChanges(bound.plan)
        for report in reports:
            quarantine.merge(report.quarantined)
        states = Written(self.store.views, begun.epoch)
        return quarantine.write(states, bound.states[QUARANTINE], begun.frontier)

    def _tasks(self, begun: Begun, task: EpochTask, servers: int) -> list[TaskReport]:
        shares = tuple(share_out(begun, task, servers))
        frame: DataFrame = self.spark.range(0, len(shares), 1, len(shares))
        for stage in range(1, len(self.plans.load(task.plan).stages) + 1):
            if stage > 1:
                frame = frame.repartitionById(servers, "server")
            work = self.stage_task(begun, stage, servers, shares if stage == 1 else ())
            frame = frame.mapInArrow(work, shuffle_blocks.SPARK_SCHEMA)
        try:
            found = frame.collect()  # the last stage sends nothing on: all of it is reports
        except Exception as error:
            # Spark chokes on the long texts of Java's errors where they are a cause
            raise error_of(error, f"an epoch of group {begun.group} failed") from None
        return [TaskReport.from_json(bytes(row.content)) for row in found]

    def stage_task(self, begun: Begun, stage: int, servers: int, shares: tuple[Share, ...]) -> StageTask:
        """What each task of a stage does. Only the first stage has shares."""
        return StageTask(
            self.place, begun.group, begun.epoch, str(begun.frontier), begun.plan, stage, servers, self.machine, shares
        )
