"""Metrics: figures of every epoch, kept in the store beside the views.

Before an epoch is committed its figures are written as state of that epoch, into a table of
the group with as many slots as epochs are remembered, so they are there exactly when the epoch is.

::

    maintenance/figures/<group>     a document: the id of the group's table of figures

    s <slot>      an epoch's figures; the slot is its number in the group, modulo :data:`SLOTS`
    t             the sums over all epochs since the group's first, and of each view the rows inserted,
                  updated and deleted since it was created

EpochSums are those as of the last epoch plus this one's, like any other state: an epoch that is tried twice is
counted once. Two attempts may measure different times; the one that commits is the one that is kept.

Nothing here changes a document after a group's first epoch, so an epoch wakes no process that
watches the catalog. All keys are made to lie in one part of the state, and an epoch's figures are one
transaction.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa

from everview.catalog import Catalog, Draft
from everview.maintain.builds import builds_of
from everview.maintain.epoch_sums import EpochSums, ViewSums
from everview.maintain.figures import NAMED, EpochFigures, StageFigures, Totals
from everview.maintain.plans import BUILDS, GROUPS, Plans
from everview.maintain.staleness import Pace, staleness
from everview.maintain.tasks import EpochTask
from everview.operators.runner import Outcome
from everview.operators.tally import Taken, Tally, Three
from everview.store.contract import Begun, Puts, StateReader, StateTable, Store
from everview.store.encoding.ragged import BINARY

FIGURES = "maintenance/figures/"
SLOTS = 1000
"""Epochs of a group that are remembered one by one."""


@dataclass(frozen=True)
class Timing:
    """What only the one who does the epochs knows."""

    since: float
    """When it began to do epochs: one that was begun before was left behind by another process."""
    commit: float | None = None
    """Seconds that the last commit of the group took."""


class Metrics:
    """The figures of a store's groups."""

    def __init__(self, store: Store, catalog: Catalog, plans: Plans, slots: int = SLOTS) -> None:
        self.store = store
        self.catalog = catalog
        self.plans = plans
        self.slots = slots
        self._epochs: dict[str, int] = {}
        """How many epochs a group had when this process last looked."""

    # -------------------------------------------------------------- writing

    def taken(self, begun: Begun) -> Taken:
        """The time and the queue when work on an epoch begins."""
        return Taken(time.time(), begun.start.operations_to(begun.start | self.store.log.latest()))

    def record(self, begun: Begun, task: EpochTask, outcome: Outcome, timing: Timing) -> None:
        """Write the figures of an epoch whose work is done and which is not committed."""
        table = self.table(begun.group) or self._allotted(begun.group)
        if table is None:
            return
        views = self.store.views
        sums_key, slot = self._key(b"t"), self._slot(self._epochs.get(begun.group, 0))
        known = [views.get(table, key, begun.epoch - 1) for key in (sums_key, slot)]
        sums = EpochSums.from_bytes(known[0])
        updates = outcome.tally.updates
        changed = updates.by_view(self.plans.load(task.plan).views) if updates else {}
        figures, usual = self._figures(begun, task, outcome, timing, sums.totals, changed)
        held = (
            sums.views if task.adopted is None else sums.views.adopted(self._of_build(task.adopted.group), begun.epoch)
        )
        again = EpochSums(sums.totals.after(figures, pace=usual), self._pruned(held, task).after(changed, begun.epoch))
        previous = pa.array(known, BINARY)
        if slot != self._slot(sums.totals.epochs):  # another process has run epochs of the group
            slot, previous = self._slot(sums.totals.epochs), None
        self._epochs[begun.group] = again.totals.epochs
        values = pa.array([again.to_bytes(), figures.to_json()], BINARY)
        views.write(table, begun.epoch, Puts(pa.array([sums_key, slot], BINARY), values, previous))

    def _pruned(self, held: ViewSums, task: EpochTask) -> ViewSums:
        """Without views that are in the plan no more. As long as there are not more than the plan has views, they stay:
        to look for them takes as long as there are views."""
        if held.plan == task.plan:
            return held
        names = self.plans.load(task.plan).plan.by_name
        return held.of(names, task.plan) if len(held.rows) > len(names) else ViewSums(held.rows, task.plan)

    def _figures(
        self,
        begun: Begun,
        task: EpochTask,
        outcome: Outcome,
        timing: Timing,
        totals: Totals,
        changed: Mapping[str, Three],
    ) -> tuple[EpochFigures, bool]:
        """The figures, and whether they say how fast epochs are: not those of an epoch that was resumed,
        that is one of a build, or that is the first that a process does, which gets ready meanwhile."""
        log, tally = self.store.log, outcome.tally
        now = time.time()
        taken = outcome.taken or Taken(now, 0)
        latest = begun.frontier | log.latest()
        lag = begun.frontier.operations_to(latest)
        operations = 0
        if task.chunk is None or task.chunk.reads_log:
            operations = begun.start.operations_to(begun.frontier)
        opened = None if task.begun is None or task.begun < timing.since else task.begun
        began = tally.began or taken.time
        ended = max((span.ended for span in tally.spans.values()), default=now)
        shown = task.chunk is None and operations > 0
        age = _age(now, log.written_after(begun.start)) if shown else None
        seconds = max(0.0, now - (opened or taken.time))
        most = heapq.nsmallest(NAMED, ((-sum(three), name) for name, three in changed.items()))
        figures = EpochFigures(
            epoch=begun.epoch,
            time=now,
            servers=tally.servers,
            operations=operations,
            rows=tally.rows,
            changes=tally.changes,
            updates=_sum(changed.values()),
            views={name: changed[name] for _, name in most},
            shuffled=tally.sent,
            quarantined=outcome.quarantined,
            unreadable=len(outcome.damaged),
            seconds=seconds,
            waited=None if opened is None else max(0.0, began - opened),
            worked=max(0.0, ended - began),
            commit=timing.commit,
            stages=_stages(tally),
            written=sum(latest.values()),
            lag=lag,
            lag_seconds=_age(now, log.written_after(begun.frontier)) or 0.0 if lag else 0.0,
            queue=taken.queue if shown else 0,
            staleness=age,
            predicted=_predicted(totals.pace, tally.servers, operations, age, seconds),
        )
        return figures, shown and opened is not None and timing.commit is not None

    def _of_build(self, group: str) -> dict[str, Three]:
        """What a build has written into the views that it built: they bring it along."""
        build = next((one for one in builds_of(self.store) if one.group == group), None)
        if build is None:
            return {}
        names = [one.name for one in build.views_of(self.catalog.definitions())]
        found = self.sums(self.store.views, group)
        return {name: (0, 0, 0) if found is None else found.views[name].updates for name in names}

    # -------------------------------------------------------------- tables of figures

    def table(self, group: str) -> StateTable | None:
        """Where the figures of a group are; None where it has none."""
        found = self.store.metadata.documents(FIGURES + group)[1].get(FIGURES + group)
        return None if found is None else StateTable(json.loads(found), "figures", group)

    def allot(self, draft: Draft, group: str) -> None:
        """A table for the figures of a group."""
        table = draft.number_state(StateTable(0, "figures", group))
        draft.puts[FIGURES + group] = json.dumps(table.id).encode()

    def _allotted(self, group: str) -> StateTable | None:
        """A table for the figures of a group that has none, unless the group has gone meanwhile."""

        def work(draft: Draft) -> None:
            if self.table(group) is None and self._is_there(group):
                self.allot(draft, group)

        self.catalog.change(work)
        return self.table(group)

    def _is_there(self, group: str) -> bool:
        """Whether the group has a plan, is a build, or is being joined by one."""
        documents = self.store.metadata.documents
        if any(name in documents(name)[1] for name in (GROUPS + group, BUILDS + group)):
            return True
        return any(build.target == group and build.epoch is not None for build in builds_of(self.store))

    def leave(self, draft: Draft, group: str) -> None:
        """The group goes, or has no views any more: so do its figures."""
        table = self.table(group)
        if table is not None:
            draft.deletes.add(FIGURES + group)
            draft.discard([table])

    # -------------------------------------------------------------- reading

    def sums(self, reader: StateReader, group: str) -> EpochSums | None:
        """The sums over all epochs; None where there are no figures."""
        table = self.table(group)
        found = None if table is None else reader.get(table, self._key(b"t"), reader.committed(group).epoch)
        return None if found is None else EpochSums.from_bytes(found)

    def last(self, reader: StateReader, group: str, limit: int = SLOTS) -> list[EpochFigures]:
        """The last epochs, the newest at the end."""
        table, sums = self.table(group), self.sums(reader, group)
        if table is None or sums is None:
            return []
        epochs = sums.totals.epochs
        numbers = range(max(0, epochs - min(limit, self.slots)), epochs)
        keys = pa.array([self._slot(number) for number in numbers], BINARY)
        found = reader.read(table, keys, reader.committed(group).epoch).to_pylist()
        return [EpochFigures.from_json(value) for value in found if value is not None]

    # -------------------------------------------------------------- keys

    def _slot(self, number: int) -> bytes:
        return self._key(b"s" + (number % self.slots).to_bytes(4, "big"))

    def _key(self, plain: bytes) -> bytes:
        return _in_first_part(plain, self.store.views.parts)


@functools.lru_cache(1 << 12)
def _in_first_part(key: bytes, parts: int) -> bytes:
    """The key with two bytes behind it that bring it into the first part of the state."""
    endings = (number.to_bytes(2, "big") for number in itertools.count())
    return next(key + ending for ending in endings if crc32(key + ending) % parts == 0)


def _sum(threes: Collection[Three]) -> Three:
    inserted, updated, deleted = np.array(list(threes), np.int64).reshape(-1, 3).sum(axis=0).tolist()
    return inserted, updated, deleted


def _age(now: float, written: float | None) -> float | None:
    return None if written is None else max(0.0, now - written)


def _predicted(pace: Pace, servers: int, operations: int, age: float | None, seconds: float) -> float | None:
    """How old the oldest operation would be at the end, as it looked at the beginning: what it had waited
    until then, and what equation 2 says of the epoch's own operations."""
    if age is None or not pace.known:
        return None
    return max(0.0, age - seconds) + staleness(operations, servers, pace.latency, pace.rest)


def _stages(tally: Tally) -> tuple[StageFigures, ...]:
    found: list[StageFigures] = []
    for number, span in tally.spans.items():
        named = f"stage {number}: "
        parts = {name.removeprefix(named): s for name, s in tally.seconds.items() if name.startswith(named)}
        found.append(StageFigures(number, span.tasks, span.seconds, parts))
    return tuple(found)
