"""Epochs in this process: begun, done, committed.

The epoch under way in the store is done as it was begun, whoever began it, and the
next one takes the logs a bounded step further.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from everview.catalog import Catalog, QuarantineEntry
from everview.catalog.quarantine import UNKNOWN
from everview.change.frontier import Frontier
from everview.errors import ConflictError, EverviewError, LogTrimmedError
from everview.maintain.chunks import loaded_entries, rows_at
from everview.maintain.metrics import Metrics, Timing
from everview.maintain.plans import Plans
from everview.maintain.rebuilding import replace_aside
from everview.maintain.tasks import Chunk, EpochTask
from everview.operators.bound import QUARANTINE
from everview.operators.runner import Outcome, Runner
from everview.operators.stages import Clock
from everview.store.contract import Begun, Commit, Damage, Snapshot, Store

OPERATIONS = 100_000
"""Log entries that an epoch takes at most, unless told otherwise."""
BYTES = 1 << 27
"""Bytes of the logs that it takes at most, however few entries they are: what it holds in memory is a
multiple of that."""


@dataclass(frozen=True)
class Done:
    """An epoch that was done here."""

    begun: Begun
    commit: Commit
    outcome: Outcome


class Epochs:
    """Does epochs of a store's groups, in one place, one after another."""

    def __init__(self, store: Store, catalog: Catalog, plans: Plans) -> None:
        self.store = store
        self.catalog = catalog
        self.plans = plans
        self.metrics = Metrics(store, catalog, plans)
        self._since = time.time()
        self._closing: dict[str, float] = {}
        """Seconds that the last commit of each group took."""
        self._runners: dict[tuple[str, bool], Runner] = {}
        self._held: Snapshot | None = None

    def finish(self, group: str) -> Done | None:
        """Do the epoch that is under way, if one is."""
        begun = self.store.views.begun(group)
        return None if begun is None else self.run(begun)

    def step(self, group: str, plan: str, target: Frontier, operations: int = OPERATIONS) -> Done | None:
        """Take the group one epoch further, at most to the target: by the epoch that is under way, if one is, or by
        the next. None where the group is there, and where it has no plan: its views have just been dropped."""
        under_way = self.finish(group)
        if under_way is not None:
            return under_way
        if not plan:
            return None
        frontier = next_frontier(self.store, self.catalog, group, operations, target)
        if frontier is None:
            return None
        task = EpochTask(plan, begun=time.time())
        return self.run(self.store.views.begin(group, frontier, task.to_bytes()))

    def fence(self, group: str, plan: str) -> None:
        """Let nobody begin an epoch that was planned before now, however long ago: an epoch without work is
        committed, of which there are no figures, and their base is not the group's any more. Where an epoch is
        under way, its commit does the same. ``plan`` is for whoever finds the fence half done."""
        views = self.store.views
        reached = views.committed(group)
        task = EpochTask(plan, chunk=Chunk(None), begun=time.time()).to_bytes()
        with suppress(ConflictError):  # another one was committed this very moment
            begun = views.begin(group, reached.frontier, task, base=reached.epoch)
            if begun.plan == task:
                views.commit(group, begun.epoch)

    def run(self, begun: Begun) -> Done:
        """Do an epoch and commit it."""
        task = EpochTask.from_bytes(begun.plan)
        try:
            return self.ended(begun, task, self.worked(begun, task))
        except EverviewError:
            reached = self.store.views.committed(begun.group)
            if reached.epoch < begun.epoch:
                raise
            return Done(begun, reached, Outcome({}, {}))  # somebody else has done it meanwhile

    def worked(self, begun: Begun, task: EpochTask) -> Outcome:
        """Bring all state to an epoch."""
        taken = self.metrics.taken(begun)
        runner = self._runner(task)
        done = runner.epoch(self.store, begun) if task.chunk is None else self._chunk(runner, begun, task)
        return replace(done, taken=taken)

    def ended(self, begun: Begun, task: EpochTask, outcome: Outcome) -> Done:
        """Commit an epoch whose work is done."""
        if task.built is not None:
            aside = self.plans.load(task.plan).states[QUARANTINE]
            replace_aside(self.store, aside, begun, self.plans.load(task.built))
        set_aside(self.catalog, outcome.damaged)
        self.metrics.record(begun, task, outcome, Timing(self._since, self._closing.get(begun.group)))
        started = time.perf_counter()
        commit = self.store.views.commit(begun.group, begun.epoch)
        self.store.views.sweep(begun.group)
        self._closing[begun.group] = time.perf_counter() - started
        return Done(begun, commit, outcome)

    def _runner(self, task: EpochTask) -> Runner:
        found = self._runners.get((task.plan, task.first))
        if found is None:
            if len(self._runners) > 8:
                self._runners.clear()
            found = self._runners[task.plan, task.first] = Runner(self.plans.load(task.plan, first=task.first))
        return found

    def _chunk(self, runner: Runner, begun: Begun, task: EpochTask) -> Outcome:
        """Take in the next rows of a table, and what was written to those that are in already."""
        assert task.chunk is not None
        chunk = task.chunk
        clock = Clock()
        with clock("read log"):
            batches, damaged = runner.read(self.store, begun) if chunk.reads_log else ([], ())
        known = [found for batch in batches if (found := loaded_entries(batch, chunk)) is not None]
        rows: dict[str, pa.Table] = {}
        if chunk.table is not None:
            with clock("read rows"), self._at(begun.frontier) as snapshot:
                table = runner.bound.tables[chunk.table]
                rows[chunk.table] = rows_at(self.store, snapshot, table, chunk, begun.frontier)
        return replace(runner.take(self.store, begun, known, rows, clock), damaged=damaged)

    @contextmanager
    def holding(self, snapshot: Snapshot) -> Iterator[None]:
        """Let epochs at the snapshot's frontier read it: then nothing is to be undone."""
        self._held = snapshot
        try:
            yield
        finally:
            self._held = None

    @contextmanager
    def _at(self, frontier: Frontier) -> Iterator[Snapshot]:
        """A snapshot that has reached a frontier."""
        if self._held is not None and self._held.frontier == frontier:
            yield self._held
            return
        with self.store.snapshot() as snapshot:
            yield snapshot


def begin_next(
    store: Store,
    catalog: Catalog,
    plans: Plans,
    group: str,
    operations: int | None,
    target: Frontier | None = None,
    *,
    alone: Callable[[], bool] = bool,
) -> Begun | None:
    """The epoch of the group's stream that is under way, or the next one, begun now; None where there is
    nothing to do, also while somebody else does an epoch of the group. ``alone`` is asked after the frontier
    is chosen whether the logs must be read in one place.

    Whoever gives the group another plan commits an epoch, with views that come one that makes them the
    group's own, with views that go a fence. We look at the group's base first, then whether somebody is
    about to give it a plan, then at the plan. So one that was replaced since we looked is not begun, however
    late we are: its base is not the group's any more."""
    if store.views.begun(group) is not None:
        return streamed(store, group)
    base = store.views.committed(group).epoch
    if plans.joining(group):
        return None
    last = plans.last(group)
    if last is None:
        return None
    try:
        frontier = next_frontier(store, catalog, group, operations, target)
    except LogTrimmedError:
        if store.views.committed(group).epoch == base:
            raise
        return None  # the group has gone on meanwhile, and the logs behind it
    if frontier is None:
        return None
    plan = plans.with_tables(*last, catalog.definitions())
    task = EpochTask(plan, alone=alone(), begun=time.time(), streamed=True)
    try:
        return store.views.begin(group, frontier, task.to_bytes(), base=base)
    except ConflictError:
        return streamed(store, group)


def streamed(store: Store, group: str) -> Begun | None:
    """The epoch under way that is for the group's stream. One that somebody does beside the stream (a build
    that brings the group to where it is, and joins it) is none of its business: a batch that was planned
    before has nothing of it."""
    begun = store.views.begun(group)
    return begun if begun is not None and EpochTask.from_bytes(begun.plan).streamed else None


def next_frontier(
    store: Store, catalog: Catalog, group: str, operations: int | None, target: Frontier | None = None
) -> Frontier | None:
    """Where the group's next epoch takes it: so many operations and BYTES further at most (but at least one
    batch), and not past the target; None where there is nothing to do."""
    start = store.views.committed(group).frontier
    try:
        frontier = store.log.latest() if operations is None else store.log.advance(start, operations, BYTES)
    except LogTrimmedError as error:
        views = ", ".join(view.name for view in catalog.views() if view.group == group)
        raise LogTrimmedError(
            f"group {group} cannot go on from {start}", detail=error.message, hint=f"rebuild its views: {views}"
        ) from error
    if target is not None and not frontier <= target:
        frontier = target
    return None if frontier <= start else frontier


def set_aside(catalog: Catalog, damaged: tuple[Damage, ...]) -> None:
    """Log entries that could not be read are recorded before the epoch that passes them is
    committed; a retry records them again under the same names."""
    if damaged:
        now = time.time()
        catalog.quarantine.add(
            QuarantineEntry(UNKNOWN if entry.table is None else entry.table, entry.position, entry.reason, now)
            for entry in damaged
        )
