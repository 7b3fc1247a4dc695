"""Epochs: begun, done, committed.

The epoch under way in the store is done as it was begun, whichever process began it, and the next one takes
the logs a bounded step further. :meth:`Epochs.run` is the only way in which an epoch is done; where its work
is done is up to its executor (:mod:`everview.maintain.executor`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from everview.catalog import Catalog, QuarantineEntry
from everview.catalog.quarantine import UNKNOWN
from everview.change.frontier import Frontier
from everview.errors import ConflictError, LogTrimmedError
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.executor import Executor
from everview.maintain.metrics import Metrics, Timing
from everview.maintain.plans import Plans
from everview.maintain.rebuilding import replace_quarantine
from everview.maintain.tasks import Chunk, EpochTask
from everview.operators.bound import QUARANTINE
from everview.operators.runner import Outcome
from everview.store.contract import Begun, Commit, Damage, Store, TableSnapshot

BYTES = 1 << 27
"""Bytes of the logs that it takes at most, however few entries they are: what it holds in memory is a
multiple of that."""


@dataclass(frozen=True)
class Done:
    """An epoch that was done here."""

    begun: Begun
    commit: Commit
    outcome: Outcome


@dataclass(frozen=True)
class EpochReport:
    """What an epoch that was done here did, and what it took."""

    epoch: int
    start: Frontier
    frontier: Frontier
    counts: Mapping[str, int]
    """How many changes every step emitted."""
    seconds: Mapping[str, float]
    """By part, added up over tasks."""
    elapsed: float
    """From the beginning of the work to the commit."""
    on_spark: bool

    @property
    def operations(self) -> int:
        return self.start.operations_to(self.frontier)


class Epochs:
    """Does epochs of a store's groups: begins them, has an executor do their work, and commits them. ``sizes`` are
    those of the epochs that it begins."""

    def __init__(
        self, store: Store, catalog: Catalog, plans: Plans, executor: Executor, sizes: EpochSizes | None = None
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.plans = plans
        self.executor = executor
        self.sizes = sizes or EpochSizes()
        self.metrics = Metrics(store, catalog, plans)
        self.report: Callable[[EpochReport], None] = lambda report: None
        """Called for every epoch that was done here."""
        self.sweeps_at_once = True
        """Whether what an epoch has deleted is removed before the next one begins; if not, by :meth:`sweep`."""
        self._unswept: set[str] = set()
        self._since = time.time()
        self._closing: dict[str, float] = {}
        """Seconds that the last commit of each group took."""

    def finish(self, group: str) -> Done | None:
        """Do the epoch that is under way, if one is."""
        begun = self.store.views.begun(group)
        return None if begun is None else self.run(begun)

    def step(self, group: str, plan: str, target: Frontier) -> Done | None:
        """Take the group one epoch further, at most to the target: by the epoch that is under way, if one is, or by
        the next. None where the group is there, and where it has no plan: its views have just been dropped."""
        under_way = self.finish(group)
        if under_way is not None:
            return under_way
        if not plan:
            return None
        reached = self.store.views.committed(group).frontier
        pending = reached.operations_to(reached | target)
        size = self.sizes.of(group).next(pending, spark=self.sizes.has_spark)
        frontier = next_frontier(self.store, self.catalog, group, size.operations, target)
        if frontier is None:
            return None
        task = EpochTask(plan, begun=time.time())
        return self.run(self.store.views.begin(group, frontier, task.to_bytes()))

    def fence(self, group: str, plan: str) -> None:
        """Refuse every epoch that was planned before now, however long ago: an epoch without work is
        committed, of which there are no figures, and their base is not the group's any more. Where an epoch is
        under way, its commit does the same. ``plan`` is for the process that finds the fence half done."""
        views = self.store.views
        reached = views.committed(group)
        task = EpochTask(plan, chunk=Chunk(None), begun=time.time()).to_bytes()
        with suppress(ConflictError):  # another one was committed this very moment
            begun = views.begin(group, reached.frontier, task, base=reached.epoch)
            if begun.plan == task:
                views.commit(group, begun.epoch)

    def run(self, begun: Begun, executor: Executor | None = None, snapshot: TableSnapshot | None = None) -> Done:
        """Do an epoch and commit it: on the executor that these epochs have, unless another one is given. Where
        another process has committed it meanwhile, nothing is left to do."""
        task, started = EpochTask.from_bytes(begun.plan), time.perf_counter()
        try:
            taken = self.metrics.taken(begun)
            nothing = Outcome({}, {})
            outcome = nothing if task.is_empty else (executor or self.executor).work(begun, task, snapshot)
            done = self._commit(begun, task, replace(outcome, taken=taken))
        except Exception:
            reached = self.store.views.committed(begun.group)
            if reached.epoch < begun.epoch:
                raise
            return Done(begun, reached, Outcome({}, {}))
        elapsed, tally = time.perf_counter() - started, outcome.tally
        self.report(
            EpochReport(
                begun.epoch, begun.start, begun.frontier, outcome.counts, tally.seconds, elapsed, tally.on_spark
            )
        )
        return done

    def _commit(self, begun: Begun, task: EpochTask, outcome: Outcome) -> Done:
        """Commit an epoch whose work is done."""
        if task.built is not None:
            quarantine = self.plans.load(task.plan).states[QUARANTINE]
            replace_quarantine(self.store, quarantine, begun, self.plans.load(task.built))
        quarantine_damaged(self.catalog, outcome.damaged)
        self.metrics.record(begun, task, outcome, Timing(self._since, self._closing.get(begun.group)))
        started = time.perf_counter()
        commit = self.store.views.commit(begun.group, begun.epoch)
        self._unswept.add(begun.group)
        if self.sweeps_at_once:
            self.sweep()
        self._closing[begun.group] = time.perf_counter() - started
        return Done(begun, commit, outcome)

    def sweep(self) -> bool:
        """Remove the tombstones of committed epochs; whether there were any. What a process that is killed has not
        removed goes with those of a later epoch."""
        groups = list(self._unswept)
        self._unswept.difference_update(groups)  # those of epochs that are committed meanwhile are for the next time
        return sum(self.store.views.sweep(group) for group in groups) > 0


def begin_next(
    store: Store,
    catalog: Catalog,
    plans: Plans,
    group: str,
    operations: int | None,
    target: Frontier | None = None,
    *,
    here: bool = False,
    alone: Callable[[], bool] = bool,
) -> Begun | None:
    """The epoch that the group's mover has under way, or the next one, begun now; None where there is nothing to do,
    also while another part of the maintainer does an epoch of the group. ``here``: whether this process will do it.
    ``alone`` is asked after the frontier is chosen whether the logs must be read in one place.

    The process that gives the group another plan commits an epoch: the one that adopts views where views join, a
    fence where views go. Here the group's base is read first, then whether views are joining, then the plan. So a plan
    that was replaced since then is not begun, however late this process is: its base is not the group's any more."""
    if store.views.begun(group) is not None:
        return streamed(store, group)
    base = store.views.committed(group).epoch
    if plans.is_joined(group):
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
    task = EpochTask(plan, alone=alone(), begun=time.time(), streamed=True, here=here)
    try:
        return store.views.begin(group, frontier, task.to_bytes(), base=base)
    except ConflictError:
        return streamed(store, group)


def streamed(store: Store, group: str) -> Begun | None:
    """The epoch under way that the group's mover does, here or with its stream. One that is done beside (a build that
    brings the group to where it is, and joins it) is not the mover's."""
    begun = store.views.begun(group)
    return begun if begun is not None and EpochTask.from_bytes(begun.plan).streamed else None


def offered(store: Store, group: str) -> Begun | None:
    """The epoch under way that the group's stream does. A batch that was planned before another one was begun has
    nothing of that."""
    begun = streamed(store, group)
    return begun if begun is not None and not EpochTask.from_bytes(begun.plan).here else None


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


def quarantine_damaged(catalog: Catalog, damaged: tuple[Damage, ...]) -> None:
    """Log entries that could not be read are recorded before the epoch that passes them is
    committed; a retry records them again under the same names."""
    if damaged:
        now = time.time()
        catalog.quarantine.add(
            QuarantineEntry(UNKNOWN if entry.table is None else entry.table, entry.position, entry.reason, now)
            for entry in damaged
        )
