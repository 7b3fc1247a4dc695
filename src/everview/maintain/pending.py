"""Rows of a view at another frontier than its last epoch's, without an epoch.

Steps are pure, so the steps of one view are run over a slice of the logs, nothing is
written, and what comes out is laid over the rows that are there (:mod:`everview.maintain.laid`).

It goes the other way round as well, where the logs have before-images: from the rows at C back to
what they were at an earlier frontier. That is how a version that is no longer kept is read.

No step of another view is run: the plan is cut down to the view, of a family to its member. What a read costs
depends on what it asks for, and on what was asked before:

=============================  ==============================================================================
asked                          worked off
=============================  ==============================================================================
rows by values of their key    of the entries, those that can touch such rows (:mod:`everview.operators.touching`);
                               none, if these are the same as at the last read of the same rows
all rows                       the entries since the last read (:mod:`everview.operators.overlay`)
an earlier frontier            all entries back to it
=============================  ==============================================================================

That holds as long as no epoch is committed and the plan stays the same; then the next read starts with the entries
that this epoch has left.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from everview.catalog import Catalog
from everview.change.frontier import Frontier
from everview.errors import DefinitionError
from everview.maintain.laid import Laid, Moved
from everview.maintain.pending_entries import PendingEntries
from everview.maintain.plans import Plans
from everview.operators.bound import BoundPlan
from everview.operators.flow import condensed, empty_changes
from everview.operators.overlay import Overlay
from everview.operators.runner import Runner
from everview.operators.sought import Sieve, SoughtRows
from everview.operators.touching import Touching, touching
from everview.operators.view import StoredView, replaced_records
from everview.operators.work import Changes, Dry
from everview.plan.maintenance import Step, restricted
from everview.store.contract import Commit, LogBatch, Store, TableSnapshot

KEPT = 64
"""Views whose steps, and whose pending entries, are kept ready."""
ENTRIES = 100_000
"""Log entries, and rows computed from them, that are kept for the next readers of all views."""
ANSWERS = 1_000
"""Rows asked for by their key that are remembered for each view."""


@dataclass
class _Ahead:
    """All rows of a view at a frontier that no epoch has reached."""

    epoch: int
    frontier: Frontier
    moved: Moved
    overlay: Overlay = field(default_factory=Overlay)


@dataclass(frozen=True)
class _Answer:
    """What changes in some rows of a view, up to a frontier."""

    frontier: Frontier
    entries: int
    """How many entries could touch them: as long as there are no more, nothing else changes."""
    moved: Moved


@dataclass
class _ReadView:
    """The part of a plan that maintains one view, and what was computed with it."""

    runner: Runner
    view: str
    reader: StoredView = field(init=False)
    entries: PendingEntries | None = None
    ahead: _Ahead | None = None
    answers: OrderedDict[SoughtRows, _Answer] = field(default_factory=OrderedDict)
    """By what was asked."""
    _touching: dict[tuple[str, ...], Touching] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = StoredView(self.runner.bound, self.view)

    def __len__(self) -> int:
        """How many entries and rows it keeps."""
        return len(self.entries or ()) + (len(self.ahead.overlay) if self.ahead else 0)

    def forget(self) -> None:
        """Keep the steps only."""
        self.entries = self.ahead = None
        self.answers.clear()

    def touching(self, fields: tuple[str, ...]) -> Touching:
        if fields not in self._touching:
            self._touching[fields] = touching(self.runner.bound.plan, self.view, fields)
        return self._touching[fields]

    def moved(self, changes: Changes | None) -> Moved:
        stored = self.reader.stored
        return Moved(stored.table, {} if changes is None else replaced_records(stored, changes))


class Pending:
    """Computes rows of the views of a store at other frontiers. Safe for many threads."""

    def __init__(self, store: Store, catalog: Catalog, plans: Plans) -> None:
        self._store = store
        self._catalog = catalog
        self._plans = plans
        self._lock = threading.Lock()
        self._parts: OrderedDict[tuple[str, str, tuple[int, ...]], _ReadView] = OrderedDict()

    def __len__(self) -> int:
        """How many views it has steps ready for."""
        return len(self._parts)

    @property
    def size(self) -> int:
        """How many entries and rows it keeps for the next reads."""
        return sum(map(len, self._parts.values()))

    def over(self, group: str, view: str, snapshot: TableSnapshot, frontier: Frontier | None = None) -> Laid:
        """A reader in which a view, or an index, is as it will be when its group is at the frontier,
        by default at that of the snapshot. Its records are read as of the snapshot's last committed
        epoch of the group."""
        wanted = snapshot.frontier if frontier is None else frontier
        return Laid(snapshot, [self.moved(group, view, snapshot, wanted)])

    def moved(
        self, group: str, view: str, snapshot: TableSnapshot, goal: Frontier, sought: SoughtRows | None = None
    ) -> Moved:
        """What changes in a view from the snapshot's committed rows to a frontier; nothing where they
        are there already. With ``sought`` only what changes in these rows is complete and right."""
        commit = snapshot.committed(group)
        digest, bound = self._planned(group, view, commit.epoch)
        with self._lock:
            part = self._part(digest, bound, view)
            goal = commit.frontier | goal
            ahead = part.ahead
            if ahead is not None and (ahead.epoch, ahead.frontier) == (commit.epoch, goal):
                found = ahead.moved
            elif sought is None or not part.touching(sought.fields).conditions:
                found = self._all(part, snapshot, commit, goal)
            else:
                found = self._sought(part, snapshot, commit, goal, sought)
            self._make_room(part)
            return found

    def moved_back(self, group: str, view: str, snapshot: TableSnapshot, goal: Frontier) -> Changes:
        """The stored rows that come and go from the snapshot's committed rows back to an earlier frontier."""
        if not self._store.log.guarantees.before_images:
            raise DefinitionError(
                f"earlier rows of view {view} cannot be computed",
                detail="the logs of this store have no before-images",
                hint="create the store with before_images=True",
            )
        commit = snapshot.committed(group)
        with self._lock:
            part = self._part(*self._planned(group, view, commit.epoch), view)
            batches = self._read(part.runner.bound, goal, commit.frontier)
            step = self._last_step(part)
            if not batches:
                return empty_changes(step)
            made = part.runner.dry(snapshot, commit.epoch, batches, undo=True).changes.get(step.fingerprint)
            return empty_changes(step) if made is None else condensed(made)

    def at(self, group: str, view: str, snapshot: TableSnapshot, frontier: Frontier) -> Laid:
        """A reader in which a view is as it was at an earlier frontier."""
        changes = self.moved_back(group, view, snapshot, frontier)
        with self._lock:
            part = self._part(*self._planned(group, view, snapshot.committed(group).epoch), view)
        return Laid(snapshot, [part.moved(changes)])

    # -------------------------------------------------------------- rows by their key

    def _sought(
        self, part: _ReadView, snapshot: TableSnapshot, commit: Commit, goal: Frontier, sought: SoughtRows
    ) -> Moved:
        """What changes in the rows sought: only entries that can touch them are worked off."""
        kept = part.entries
        if kept is None or kept.epoch != commit.epoch or not kept.frontier <= goal:
            kept = PendingEntries(part.runner.bound, commit.epoch, commit.frontier)
            part.entries = kept
            part.answers.clear()
        known = part.answers.get(sought)
        if known is not None and known.frontier == goal:
            return known.moved
        if kept.frontier != goal:
            kept.extend(self._store.log, goal)
        conditions = part.touching(sought.fields)
        batches = kept.that_matter(sought, conditions.conditions)
        count = sum(len(batch.entries) for batch in batches)
        if known is not None and known.entries == count:
            part.answers[sought] = replace(known, frontier=goal)
            return known.moved
        changes = None
        if batches:
            only = Sieve(sought, conditions)
            outcome = part.runner.dry(snapshot, commit.epoch, batches, only=only)
            changes = outcome.changes.get(self._last_step(part).fingerprint)
        found = part.moved(changes)
        part.answers[sought] = _Answer(goal, count, found)
        part.answers.move_to_end(sought)
        if len(part.answers) > ANSWERS:
            part.answers.popitem(last=False)
        return found

    # -------------------------------------------------------------- all rows

    def _all(self, part: _ReadView, snapshot: TableSnapshot, commit: Commit, goal: Frontier) -> Moved:
        """What changes in all rows: the entries since the last read are worked off."""
        ahead = part.ahead
        if ahead is None or ahead.epoch != commit.epoch or not ahead.frontier <= goal:
            ahead = _Ahead(commit.epoch, commit.frontier, Moved(part.reader.stored.table, {}))
        batches = self._read(part.runner.bound, ahead.frontier, goal)
        part.ahead = None  # nothing is kept of a run that fails
        if batches:
            run = ahead.overlay.run(Dry(snapshot, commit.epoch))
            part.runner.tried(run, batches)
            ahead.overlay.end(run)
            ahead.moved = Moved(ahead.moved.table, dict(ahead.overlay.records[ahead.moved.table.id]))
        ahead.frontier = goal
        part.ahead = ahead
        return ahead.moved

    def _read(self, bound: BoundPlan, start: Frontier, end: Frontier) -> list[LogBatch]:
        tables = list(bound.tables.values())
        return [batch for piece in start.slices_to(end) for batch in self._store.log.read(piece, tables).batches]

    # -------------------------------------------------------------- what is kept

    def _planned(self, group: str, view: str, epoch: int) -> tuple[str, BoundPlan]:
        found = self._plans.named_at(group, epoch)
        if found is None or view not in found[1].plan.by_name:
            raise DefinitionError(f"{view} is not built yet", hint="it can be read when it is built")
        return found

    def _part(self, digest: str, planned: BoundPlan, view: str) -> _ReadView:
        """The steps of a view, ready to run; with schemas that are as new as all that is in the logs."""
        bound = self._plans.as_defined(planned, self._catalog.definitions())
        versions = tuple(table.schema.version for table in bound.tables.values())
        kept = self._parts.get((digest, view, versions))
        if kept is None:
            kept = self._parts[digest, view, versions] = _ReadView(Runner(_cut(bound, view)), view)
        self._parts.move_to_end((digest, view, versions))
        return kept

    def _make_room(self, last: _ReadView) -> None:
        """Forget what was computed for the views that were read the longest time ago."""
        while len(self._parts) > KEPT:
            self._parts.popitem(last=False)
        total = self.size
        for part in self._parts.values():
            if total <= ENTRIES:
                return
            total -= len(part)
            part.forget()

    def _last_step(self, part: _ReadView) -> Step:
        plan = part.runner.bound.plan
        return plan.step(plan.view(part.view).step)


def _cut(bound: BoundPlan, view: str) -> BoundPlan:
    plan = restricted(bound.plan, [view])
    tables = {use.name: bound.tables[use.name] for use in plan.tables}
    return replace(bound, plan=plan, tables=tables)
