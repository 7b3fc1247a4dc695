"""Epochs by hand: the tasks of an epoch run one after another, in any order and any number of places.

What Spark does between :class:`StageTask` and :class:`StageTask` is done here by moving
blocks from list to list, so that every mishap of a task can be written in one line.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everview.catalog import MAIN
from everview.client.database import Database
from everview.maintain.epochs import begin_next
from everview.maintain.maintainer import Maintainer
from everview.maintain.tasks import EpochTask
from everview.operators.bound import QUARANTINE
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.work import Written
from everview.store.contract import Begun, Commit
from everview.zones.reports import TaskReport, require_whole, total
from everview.zones.shares import Share, share_out
from everview.zones.shuffle_blocks import REPORT, Block, from_spark, to_spark
from everview.zones.stage_task import StageTask


@dataclass
class ByHand:
    """The epochs of a database's main group."""

    db: Database

    def __post_init__(self) -> None:
        self.maintainer = Maintainer(self.db.store, self.db.catalog)

    def begin(self, operations: int | None = None, *, alone: bool = False) -> Begun | None:
        plans = self.maintainer.plans
        return begin_next(self.db.store, self.db.catalog, plans, MAIN, operations, alone=lambda: alone)

    def task(self, begun: Begun, stage: int, servers: int) -> StageTask:
        return StageTask("", begun.group, begun.epoch, str(begun.frontier), begun.plan, stage, servers)

    def stages(self, begun: Begun) -> int:
        return len(self.maintainer.plans.load(EpochTask.from_bytes(begun.plan).plan).stages)

    def shares(self, begun: Begun, tasks: int) -> list[Share]:
        return share_out(begun, EpochTask.from_bytes(begun.plan), tasks)

    def read(self, begun: Begun, shares: Sequence[Share], servers: int) -> list[Block]:
        """The first stage, a task for each share."""
        task = self.task(begun, 1, servers)
        made = [list(task.first(self.db.store, number, share)) for number, share in enumerate(shares)]
        return travelled(itertools.chain(*made))

    def serve(self, begun: Begun, stage: int, servers: int, server: int, blocks: Iterable[Block]) -> list[Block]:
        """One view server's task of a later stage."""
        mine = [block for block in blocks if block.server == server]
        return travelled(self.task(begun, stage, servers).later(self.db.store, server, mine))

    def work(self, begun: Begun, shares: Sequence[Share], servers: int) -> list[TaskReport]:
        """All tasks of an epoch."""
        blocks = self.read(begun, shares, servers)
        for stage in range(2, self.stages(begun) + 1):
            made = [self.serve(begun, stage, servers, server, blocks) for server in range(servers)]
            blocks = list(itertools.chain(*made))
        assert all(block.subject == REPORT for block in blocks)
        return [TaskReport.from_json(block.content) for block in blocks]

    def finish(self, begun: Begun, servers: int = 2, tasks: int = 2) -> Commit:
        """The whole epoch, as the driver runs it on Spark."""
        reports = self.work(begun, self.shares(begun, tasks), servers)
        task = EpochTask.from_bytes(begun.plan)
        require_whole(begun, task, total(reports))
        bound = self.maintainer.plans.load(task.plan)
        quarantine = QuarantineChanges(bound.plan)
        for report in reports:
            quarantine.merge(report.quarantined)
        quarantine.write(Written(self.db.store.views, begun.epoch), bound.states[QUARANTINE], begun.frontier)
        commit = self.db.store.views.commit(begun.group, begun.epoch)
        self.db.store.views.sweep(begun.group)
        return commit


def beside(db: Database) -> Begun:
    """Begin an epoch of the main group as a build does that brings the group to where it is."""
    last = Maintainer(db.store, db.catalog).plans.last(MAIN)
    assert last is not None
    return db.store.views.begin(MAIN, db.store.log.latest(), EpochTask(last[0]).to_bytes())


def travelled(blocks: Iterable[Block]) -> list[Block]:
    """Blocks as they arrive after a shuffle."""
    return from_spark(to_spark(list(blocks)))
