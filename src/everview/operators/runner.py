"""A whole plan run in this process, stage after stage.

One sentence: the runner takes changes of base tables through all stages of a plan in one place,
with the same workers that view servers run on Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.quarantine import Quarantine
from everview.operators.stages import Packed, Stage, Workshop, sources_of
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
    set_aside: int = 0


@dataclass
class Runner:
    """Runs the stages of one bound plan."""

    bound: BoundPlan
    _workshop: Workshop = field(init=False)

    def __post_init__(self) -> None:
        self._workshop = Workshop(self.bound)

    def epoch(self, store: Store, begun: Begun) -> Outcome:
        """Do the work of an epoch that has begun: read its slices, bring all state to it. The
        commit is the caller's."""
        batches, damaged = self.read(store, begun)
        return replace(self.take(store, begun, batches), damaged=damaged)

    def take(
        self, store: Store, begun: Begun, batches: Sequence[LogBatch], rows: Mapping[str, pa.Table] | None = None
    ) -> Outcome:
        """Do the work of an epoch over given log entries, and rows of base tables that come in as
        they are."""
        states = Written(store.views, begun.epoch)
        work = self.work(states)
        done = self._run(work, sources_of(self._workshop, work, batches, rows or {}), keep=False)
        return replace(done, set_aside=work.quarantine.write(states, self.bound.states[QUARANTINE], begun.frontier))

    def dry(self, reader: StateReader, as_of: int, batches: Sequence[LogBatch], *, undo: bool = False) -> Outcome:
        """What the log entries would change in every view: computed, and nothing written. With
        ``undo`` the state has seen them already, and the changes lead back to before them; that
        takes a log that tells the old rows."""
        return self.tried(Dry(reader, as_of), batches, keep=True, undo=undo)

    def tried(self, states: States, batches: Sequence[LogBatch], *, keep: bool = False, undo: bool = False) -> Outcome:
        """Run log entries through all steps over states that may be nobody's."""
        work = self.work(states)
        sources = sources_of(self._workshop, work, batches, {})
        return self._run(work, {name: _undone(found) if undo else found for name, found in sources.items()}, keep=keep)

    def read(self, store: Store, begun: Begun) -> tuple[list[LogBatch], tuple[Damage, ...]]:
        """The log entries of an epoch."""
        batches: list[LogBatch] = []
        damaged: list[Damage] = []
        for piece in begun.start.slices_to(begun.frontier):
            content = store.log.read(piece, list(self.bound.tables.values()))
            batches += content.batches
            damaged += content.damaged
        return batches, tuple(damaged)

    def work(self, states: States) -> Work:
        return Work(self.bound, states, Quarantine(self.bound.plan))

    def _run(self, work: Work, sources: Mapping[str, Changes], *, keep: bool) -> Outcome:
        waiting: dict[int, Packed] = defaultdict(lambda: defaultdict(list))
        changes: dict[str, Changes] = {}
        counts: dict[str, int] = {}
        for number in range(1, len(self.bound.stages) + 1):
            stage = Stage(self._workshop, number, work, waiting.pop(number, {}), kept=changes if keep else None)
            for edge, target, emitted in stage.run(sources if number == 1 else None):
                packed = self._workshop.worker(target).pack(work, edge.number, emitted)
                waiting[self.bound.stage_of(target)][edge].append(packed)
            counts |= stage.emitted
        return Outcome(changes, counts)


def _undone(changes: Changes) -> Changes:
    """What came goes, and what went comes."""
    return changes.set_column(changes.column_names.index(WEIGHT), WEIGHT, pc.negate(changes[WEIGHT]))
