"""A whole plan run in this process, stage after stage.

The runner takes changes of base tables through all stages of a plan in one place,
with the same workers that view servers run on Spark.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.stages import Clock, Only, Packed, Stage, Workshop, sources_of, whole
from everview.operators.tally import Span, Taken, Tally
from everview.operators.work import Changes, Dry, States, Work, Written
from everview.store.contract import Begun, Damage, LogBatch, StateReader, Store


@dataclass(frozen=True)
class Outcome:
    """What an epoch did."""

    changes: Mapping[str, Changes]
    """What every step emitted, by fingerprint, where asked for."""
    counts: Mapping[str, int]
    """How many changes every step emitted."""
    damaged: tuple[Damage, ...] = ()
    quarantined: int = 0
    tally: Tally = field(default_factory=Tally)
    taken: Taken | None = None
    """When its work began; None: not measured."""


@dataclass
class Runner:
    """Runs the stages of one bound plan."""

    bound: BoundPlan
    workshop: Workshop = field(init=False)

    def __post_init__(self) -> None:
        self.workshop = Workshop(self.bound)

    def take(
        self,
        store: Store,
        begun: Begun,
        batches: Sequence[LogBatch],
        rows: Mapping[str, pa.Table] | None = None,
        clock: Clock | None = None,
    ) -> Outcome:
        """Do the work of an epoch over given log entries, and rows of base tables that come in as
        they are. ``clock`` has timed what the first stage has done already."""
        clock = clock or Clock()
        states = Written(store.views, begun.epoch)
        work = self.work(states)
        rows = rows or {}
        with clock("delta"):
            sources = sources_of(self.workshop, work, batches, rows)
        done = self.run(work, sources, keep=False, clock=clock)
        quarantined = work.quarantine.write(states, self.bound.states[QUARANTINE], begun.frontier)
        tally = replace(done.tally, rows=sum(map(len, rows.values())), changes=sum(map(len, sources.values())))
        return replace(done, quarantined=quarantined, tally=tally)

    def dry(
        self, reader: StateReader, as_of: int, batches: Sequence[LogBatch], *, undo: bool = False, only: Only = whole
    ) -> Outcome:
        """What the log entries would change in every view: computed, and nothing written. With
        ``undo`` the state has seen them already, and the changes lead back to before them; that
        takes a log with before-images. ``only`` leaves of what a step emits what matters."""
        return self.tried(Dry(reader, as_of), batches, keep=True, undo=undo, only=only)

    def tried(
        self,
        states: States,
        batches: Sequence[LogBatch],
        *,
        keep: bool = False,
        undo: bool = False,
        only: Only = whole,
    ) -> Outcome:
        """Run log entries through all steps over states that need not be stored."""
        work = self.work(states)
        sources = sources_of(self.workshop, work, batches, {})
        sources = {name: _undone(found) if undo else found for name, found in sources.items()}
        return self.run(work, sources, keep=keep, only=only)

    def work(self, states: States) -> Work:
        return Work(self.bound, states, QuarantineChanges(self.bound.plan))

    def run(
        self,
        work: Work,
        sources: Mapping[str, Changes],
        *,
        keep: bool = False,
        clock: Clock | None = None,
        only: Only = whole,
    ) -> Outcome:
        """Take changes of base tables through all stages."""
        waiting: dict[int, Packed] = defaultdict(lambda: defaultdict(list))
        changes: dict[str, Changes] = {}
        counts: dict[str, int] = {}
        seconds: dict[str, float] = {}
        spans: dict[int, Span] = {}
        clock = clock or Clock()
        now = time.time() - sum(clock.seconds.values())
        for number in range(1, len(self.bound.stages) + 1):
            received = waiting.pop(number, {})
            kept = changes if keep else None
            stage = Stage(self.workshop, number, work, received, kept=kept, clock=clock, only=only)
            for edge, target, emitted in stage.run(sources if number == 1 else None):
                packed = self.workshop.worker(target).pack(work, edge.number, emitted)
                waiting[self.bound.stage_of(target)][edge].append(packed)
            counts |= stage.emitted
            seconds |= {f"stage {number}: {name}": spent for name, spent in clock.seconds.items()}
            before, now = now, time.time()
            spans[number] = Span(1, before, now)
            clock = Clock()
        return Outcome(changes, counts, tally=Tally(updates=work.updates, seconds=seconds, spans=spans))


def _undone(changes: Changes) -> Changes:
    """What came goes, and what went comes."""
    return changes.set_column(changes.column_names.index(WEIGHT), WEIGHT, pc.negate(changes[WEIGHT]))
