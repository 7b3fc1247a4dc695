"""A stage of an epoch as a Spark task.

A task takes blocks, or in the first stage the number of its share of what the epoch reads, runs the
steps of its stage for the keys it owns, writes their state stamped with the epoch, and yields
blocks for the stages after it, and a report.

::

    share number ──▶ stage 1 ──blocks──▶ stage 2 ──blocks──▶ … ──▶ reports
                     (where a log         (repartitionById
                      slice is read)       between stages)

A task does nothing but that, so it may be tried again, run twice at the same time, or be left
half done: what it writes is a function of the state as of the last epoch and of its input.
"""

from __future__ import annotations

import gc
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from everview.catalog import Catalog
from everview.change.frontier import Frontier
from everview.maintain.executor import read_input
from everview.maintain.plans import Plans
from everview.maintain.tasks import EpochTask
from everview.operators.bound import BoundPlan, Edge
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.routing import Route, owners
from everview.operators.stages import Clock, Packed, Stage, Workshop, sources_of
from everview.operators.tally import Span
from everview.operators.work import Changes, Mask, Work, Written
from everview.plan.maintenance import Step
from everview.store.contract import Store
from everview.store.encoding.ragged import Bytes
from everview.store.opened import opened
from everview.zones.reports import TaskReport
from everview.zones.shares import Share
from everview.zones.shuffle_blocks import REPORT, Block, blocks_of, from_spark, in_batches

KEPT = 8
"""Plans whose workers a process keeps ready."""


@dataclass(frozen=True)
class StageTask:
    """One stage of an epoch: a function for ``mapInArrow``."""

    place: str
    group: str
    epoch: int
    frontier: str
    task: bytes
    stage: int
    servers: int
    machine: str = ""
    """Where the store is, if it is known."""
    shares: tuple[Share, ...] = ()
    """What the tasks of the first stage read, by the number in the row that each of them gets."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        if self.stage == 1:
            for share in (self.shares[row] for batch in batches for row in batch.column(0).to_pylist()):
                yield from in_batches(self.first(opened(self.place, self.machine), number, share))
            return
        blocks = [block for batch in batches for block in from_spark(batch)]
        yield from in_batches(self.later(opened(self.place, self.machine), number, blocks))

    # -------------------------------------------------------------- what tasks do

    def first(self, store: Store, number: int, share: Share) -> Iterator[Block]:
        """Read the log slices, and the rows that a build takes in; run the first stage."""
        clock, began = Clock(), time.time()
        with clock("plan"):
            workshop = self._workshop(store)
        task = EpochTask.from_bytes(self.task)
        work = self._work(store, workshop.bound, number, leads=share.leads)
        frontier = Frontier.parse(self.frontier)
        read = read_input(store, workshop.bound, task, frontier, share.slices, share.pieces, clock)
        with clock("delta"):
            sources = sources_of(workshop, work, read.batches, read.rows)
        counts = {"entries": read.entries, "rows": sum(map(len, read.rows.values()))}
        counts["changes"] = sum(map(len, sources.values()))
        read_report = TaskReport(share.slices, read.damaged, counts, pieces=share.pieces)
        yield from self._run(workshop, work, {}, sources, clock, began, read_report)

    def later(self, store: Store, number: int, blocks: Sequence[Block]) -> Iterator[Block]:
        """Run a later stage; what is for stages further on is passed on."""
        clock, began = Clock(), time.time()
        with clock("plan"):
            workshop = self._workshop(store)
        edges = workshop.bound.edges
        received: Packed = defaultdict(list)
        for block in blocks:
            if block.subject == REPORT or workshop.bound.stage_of(edges[block.subject][1]) != self.stage:
                yield block
            else:
                received[edges[block.subject][0]].append(block.table)
        if received or EpochTask.from_bytes(self.task).first:
            work = self._work(store, workshop.bound, number, leads=number == 0)
            yield from self._run(workshop, work, received, {}, clock, began, TaskReport())

    def _run(
        self,
        workshop: Workshop,
        work: Work,
        received: Packed,
        sources: dict[str, Changes],
        clock: Clock,
        began: float,
        so_far: TaskReport,
    ) -> Iterator[Block]:
        stage = Stage(workshop, self.stage, work, received, clock=clock)
        numbers = {edge: number for number, (edge, _) in enumerate(workshop.bound.edges)}
        sent = 0
        for edge, target, changes in stage.run(sources):
            with clock("send"):
                for block in self._blocks(workshop, work, edge, target, changes, numbers[edge]):
                    sent += len(block.content)
                    yield block
        counts = dict(so_far.counts)
        counts["bytes sent"] = sent
        for step, count in stage.emitted.items():
            counts[f"step {step}"] = count
        seconds = {f"stage {self.stage}: {name}": spent for name, spent in clock.seconds.items()}
        span = Span(1, began, time.time())
        report = TaskReport(
            so_far.slices,
            so_far.damaged,
            counts,
            seconds,
            work.quarantine.to_json(),
            work.updates.to_json(),
            ((self.stage, span),),
            so_far.pieces,
        )
        yield Block(0, REPORT, report.to_json().encode())

    def _blocks(
        self, workshop: Workshop, work: Work, edge: Edge, target: Step, changes: Changes, subject: int
    ) -> Iterator[Block]:
        """Changes for a step of a later stage, packed, for each server."""
        worker = workshop.worker(target)
        if self.servers == 1:
            yield from blocks_of(0, subject, worker.pack(work, edge.number, changes))
            return
        route = self._route(workshop, edge, target, work)
        zone = workshop.bound.zone_name(target)
        placed = owners(route.keys(work.evaluator, changes), zone, self.servers)
        order = np.argsort(placed, kind="stable")
        ordered = changes.take(pa.array(order))
        edges = np.searchsorted(placed[order], np.arange(self.servers + 1)).tolist()
        for server in range(self.servers):
            part = ordered[edges[server] : edges[server + 1]]
            if len(part):
                yield from blocks_of(server, subject, worker.pack(work, edge.number, part))

    # -------------------------------------------------------------- what tasks have

    def _workshop(self, store: Store) -> Workshop:
        task = EpochTask.from_bytes(self.task)
        found = _ready.get((self.place, task.plan, task.first))
        if found is None:
            plans = Plans(store, Catalog(store.metadata, store.views))
            found = Workshop(plans.load(task.plan, first=task.first))
            _ready[self.place, task.plan, task.first] = found
            while len(_ready) > KEPT:
                _ready.popitem(last=False)
        return found

    def _route(self, workshop: Workshop, edge: Edge, target: Step, work: Work) -> Route:
        found = workshop.routes.get(edge)
        if found is None:
            key = target.inputs[edge.number].key
            assert key is not None
            source = workshop.bound.plan.step(edge.source)
            found = workshop.routes[edge] = Route(source, key, work.evaluator)
        return found

    def _work(self, store: Store, bound: BoundPlan, number: int, *, leads: bool) -> Work:
        def owned(zone: str, keys: Bytes) -> Mask:
            found: Mask = owners(keys, zone, self.servers) == number
            return found

        return Work(bound, Written(store.views, self.epoch), QuarantineChanges(bound.plan), owned=owned, leads=leads)


_ready: OrderedDict[tuple[str, str, bool], Workshop] = OrderedDict()


def settle() -> None:
    """Spark's worker loop runs a full garbage collection after every task, 40 ms over all the
    modules that are loaded. What is there when the first task begins will stay: it is taken
    out of the collector's sight."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
