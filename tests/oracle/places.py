"""An epoch in several places, as view servers run it, one after another in any order.

Each log is read in a place of its own, changes go to the place that owns their key, and
what comes out of it all is what one place alone would make.

The places share the store and nothing else: each has workers, evaluations and a quarantine of its own.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.operators.bound import QUARANTINE, Edge
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.routing import Route, owners
from everview.operators.runner import Outcome
from everview.operators.stages import Packed, Stage, Workshop, sources_of
from everview.operators.work import Changes, Mask, Work, Written
from everview.plan.maintenance import Step
from everview.store.contract import Begun, LogBatch, Store
from everview.store.encoding.ragged import Bytes
from tests.oracle.maintained import EpochRunner
from tests.oracle.played import played
from tests.oracle.script import Script

Waiting = dict[int, Packed]
"""What each place has been sent."""


@dataclass(kw_only=True)
class Places(EpochRunner):
    """Runs epochs of a bound plan in some places."""

    servers: int
    rng: random.Random

    def __post_init__(self) -> None:
        super().__post_init__()
        self.workshops = [Workshop(self.bound) for _ in range(self.servers)]

    def epoch(self, store: Store, begun: Begun) -> Outcome:
        counts: dict[str, int] = defaultdict(int)
        quarantine = QuarantineChanges(self.bound.plan)
        stages: dict[int, Waiting] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        for number in range(1, len(self.bound.stages) + 1):
            for place in self.rng.sample(range(self.servers), self.servers):
                work = self._work(store, begun, place)
                sources = self._sources(store, begun, place, work) if number == 1 else {}
                stage = Stage(self.workshops[place], number, work, stages[number][place])
                for edge, target, changes in stage.run(sources):
                    for server, part in self._parts(work, place, edge, target, changes):
                        packed = self.workshops[place].worker(target).pack(work, edge.number, part)
                        stages[self.bound.stage_of(target)][server][edge].append(packed)
                for step, count in stage.emitted.items():
                    counts[step] += count
                quarantine.merge(work.quarantine.to_json())
        states = Written(store.views, begun.epoch)
        return Outcome({}, counts, (), quarantine.write(states, self.bound.states[QUARANTINE], begun.frontier))

    def _sources(self, store: Store, begun: Begun, place: int, work: Work) -> dict[str, Changes]:
        """What the logs that are read in this place say."""
        batches: list[LogBatch] = []
        for at, piece in enumerate(begun.start.slices_to(begun.frontier)):
            if at % self.servers == place:
                batches += store.log.read(piece, list(self.bound.tables.values())).batches
        return sources_of(self.workshops[place], work, batches, {})

    def _parts(
        self, work: Work, place: int, edge: Edge, target: Step, changes: Changes
    ) -> Iterable[tuple[int, Changes]]:
        """Changes by the place that they go to."""
        key = target.inputs[edge.number].key
        assert key is not None
        route = Route(self.bound.plan.step(edge.source), key, work.evaluator)
        placed = owners(route.keys(work.evaluator, changes), self.bound.zone_name(target), self.servers)
        for server in np.unique(placed).tolist():
            yield server, changes.filter(pa.array(placed == server))

    def _work(self, store: Store, begun: Begun, place: int) -> Work:
        def owned(zone: str, keys: Bytes) -> Mask:
            found: Mask = owners(keys, zone, self.servers) == place
            return found

        states = Written(store.views, begun.epoch)
        return Work(self.bound, states, QuarantineChanges(self.bound.plan), owned=owned, leads=place == 0)


def play(script: Script, seed: int = 0) -> None:
    """Play a script whose epochs run in several places, a different number each time."""
    rng = random.Random(seed)
    with played(script) as found:
        maintained = found.maintained
        for epoch in script.epochs:
            bound = maintained.later if maintained.epochs else maintained.first
            maintained.runner = Places(bound, servers=rng.randint(2, 5), rng=rng)
            found.epoch(epoch)
