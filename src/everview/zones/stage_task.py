"""A stage of an epoch as a Spark task.

A task takes blocks, or in the first stage descriptors of what to read, runs the
steps of its stage for the keys it owns, writes their state stamped with the epoch, and yields
blocks for the stages after it, and a report.

::

    descriptors ──▶ stage 1 ──blocks──▶ stage 2 ──blocks──▶ … ──▶ reports
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
from everview.change.frontier import Frontier, Slice
from everview.errors import StaleEpochError
from everview.maintain.chunks import loaded_entries, rows_at
from everview.maintain.plans import Plans
from everview.maintain.tasks import EpochTask
from everview.operators.bound import BoundPlan, Edge
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.routing import Route, owners
from everview.operators.stages import Clock, Packed, Stage, Workshop, sources_of
from everview.operators.tally import Span
from everview.operators.work import Changes, Mask, Work, Written
from everview.plan.maintenance import Step
from everview.store.contract import Bytes, Damage, LogBatch, Store
from everview.store.opened import opened
from everview.zones.blocks import REPORT, Block, blocks_of, from_spark, in_batches
from everview.zones.reports import Report

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

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        if self.stage == 1:
            read = Reading.of(self.epoch, batches)
            if read.leads or read.slices or read.pieces:
                yield from in_batches(self.first(opened(self.place, self.machine), number, read))
            return
        blocks = [block for batch in batches for block in from_spark(batch)]
        yield from in_batches(self.later(opened(self.place, self.machine), number, blocks))

    # -------------------------------------------------------------- what tasks do

    def first(self, store: Store, number: int, read: Reading) -> Iterator[Block]:
        """Read the log slices, and the rows that a build takes in; run the first stage."""
        clock, began = Clock(), time.time()
        with clock("plan"):
            workshop = self._workshop(store)
        task = EpochTask.from_bytes(self.task)
        work = self._work(store, workshop.bound, number, leads=read.leads)
        batches: list[LogBatch] = []
        damaged: list[Damage] = []
        with clock("read log"):
            for piece in read.slices if task.chunk is None or task.chunk.reads_log else ():
                content = store.log.read(piece, list(workshop.bound.tables.values()))
                batches += content.batches
                damaged += content.damaged
        entries = sum(len(batch.entries) for batch in batches)
        rows: dict[str, pa.Table] = {}
        if task.chunk is not None:
            batches = [found for batch in batches if (found := loaded_entries(batch, task.chunk)) is not None]
            if task.chunk.table is not None and read.pieces:
                with clock("read rows"):
                    rows[task.chunk.table] = self._rows(store, workshop.bound, task, read.pieces)
        with clock("delta"):
            sources = sources_of(workshop, work, batches, rows)
        counts = {"entries": entries, "rows": sum(map(len, rows.values()))}
        counts["changes"] = sum(map(len, sources.values()))
        said = Report(read.slices, tuple(damaged), counts, pieces=read.pieces)
        yield from self._run(workshop, work, {}, sources, clock, began, said)

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
            yield from self._run(workshop, work, received, {}, clock, began, Report())

    def _run(
        self,
        workshop: Workshop,
        work: Work,
        received: Packed,
        sources: dict[str, Changes],
        clock: Clock,
        began: float,
        said: Report,
    ) -> Iterator[Block]:
        stage = Stage(workshop, self.stage, work, received, clock=clock)
        numbers = {edge: number for number, (edge, _) in enumerate(workshop.bound.edges)}
        sent = 0
        for edge, target, changes in stage.run(sources):
            with clock("send"):
                for block in self._blocks(workshop, work, edge, target, changes, numbers[edge]):
                    sent += len(block.content)
                    yield block
        counts = dict(said.counts)
        counts["bytes sent"] = sent
        for step, count in stage.emitted.items():
            counts[f"step {step}"] = count
        seconds = {f"stage {self.stage}: {name}": spent for name, spent in clock.seconds.items()}
        span = Span(1, began, time.time())
        report = Report(
            said.slices,
            said.damaged,
            counts,
            seconds,
            work.quarantine.to_json(),
            work.updates.to_json(),
            ((self.stage, span),),
            said.pieces,
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

    def _rows(self, store: Store, bound: BoundPlan, task: EpochTask, pieces: Sequence[int]) -> pa.Table:
        """The rows of the given pieces of a chunk, as they were at the epoch's frontier."""
        assert task.chunk is not None and task.chunk.table is not None
        table = bound.tables[task.chunk.table]
        every = task.chunk.pieces()
        with store.snapshot() as snapshot:
            parts = [rows_at(store, snapshot, table, every[piece], Frontier.parse(self.frontier)) for piece in pieces]
        return pa.concat_tables(parts)


@dataclass(frozen=True)
class Reading:
    """What a task of the first stage reads: log slices, and pieces of a chunk by number."""

    slices: tuple[Slice, ...]
    pieces: tuple[int, ...]
    leads: bool

    @staticmethod
    def of(epoch: int, batches: Iterator[pa.RecordBatch]) -> Reading:
        slices: list[Slice] = []
        pieces: list[int] = []
        leads = False
        for batch in batches:
            epochs, nodes, afters, uptos, numbers, leading = (column.to_pylist() for column in batch.columns)
            if set(epochs) - {epoch}:
                raise StaleEpochError(
                    f"a task of epoch {epoch} was handed slices of epoch {max(epochs)}",
                    hint="is another pipeline maintaining the same group? one of them must stop",
                )
            leads = leads or any(leading)
            for node, after, upto, number in zip(nodes, afters, uptos, numbers, strict=True):
                if number is not None:
                    pieces.append(number)
                elif node is not None:
                    slices.append(Slice(node, after, upto))
        return Reading(tuple(slices), tuple(pieces), leads)


_ready: OrderedDict[tuple[str, str, bool], Workshop] = OrderedDict()


def settle() -> None:
    """Spark's worker loop runs a full garbage collection after every task, 40 ms over all the
    modules that are loaded. What is there when the first task begins will stay: it is taken
    out of the collector's sight."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
