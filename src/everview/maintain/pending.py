"""Rows of a view at another frontier than its last epoch's, without an epoch.

Steps are pure, so the steps of one view are run over a slice of the logs, nothing is
written, and what comes out is laid over the rows that are there.

::

    committed rows at frontier C        {a: 1, b: 2}
    the logs from C to F hold           b → 3, c → 4
    laid over                           {a: 1, b: 3, c: 4}        what the epoch to F will commit

It goes the other way round as well, where the logs have before-images: from the rows at C back to
what they were at an earlier frontier. That is how a version that is no longer kept is read.

No step of another view is run: the plan is cut down to the view, of a family to its member. It costs
what an epoch of that one view would cost.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from everview.catalog import Catalog
from everview.change.entries import WEIGHT
from everview.change.frontier import Frontier
from everview.errors import DefinitionError
from everview.maintain.plans import Plans
from everview.operators.bound import BoundPlan
from everview.operators.flow import condensed, empty_changes
from everview.operators.runner import Runner
from everview.operators.view import StoredView
from everview.operators.work import Changes
from everview.plan.maintenance import restricted
from everview.store.contract import (
    BagEnds,
    BagRows,
    Commit,
    HeldTable,
    LogBatch,
    Records,
    StateTable,
    Store,
    Table,
    TableSnapshot,
)
from everview.store.encoding.keys import successor
from everview.store.encoding.ragged import BINARY, Bytes

KEPT = 64
"""Views whose steps are kept ready, and changes that are kept for the next reader."""


@dataclass(frozen=True)
class Moved:
    """What the logs between two frontiers change in one view."""

    reader: StoredView
    """Of the view, in the part of the plan that maintains it."""
    changes: Changes
    """Stored rows that come and go, condensed."""

    @property
    def table(self) -> StateTable:
        return self.reader.stored.table

    @cached_property
    def records(self) -> dict[bytes, bytes | None]:
        """Of each touched place the record that is there afterwards."""
        stored = self.reader.stored
        keys = stored.keys_in(self.changes).to_pylist()
        values = stored.values_in(self.changes).to_pylist()
        weights = self.changes[WEIGHT].to_pylist()
        found: dict[bytes, bytes | None] = {key: None for key, weight in zip(keys, weights, strict=True) if weight < 0}
        found.update((k, value) for k, value, weight in zip(keys, values, weights, strict=True) if weight > 0)
        return found


class Pending:
    """Computes rows of the views of a store at other frontiers. Safe for many threads."""

    def __init__(self, store: Store, catalog: Catalog, plans: Plans) -> None:
        self._store = store
        self._catalog = catalog
        self._plans = plans
        self._lock = threading.Lock()
        self._runners: OrderedDict[tuple[str, str, tuple[int, ...]], Runner] = OrderedDict()
        self._last: OrderedDict[tuple[str, str, int, Frontier], Moved] = OrderedDict()

    def over(self, group: str, view: str, snapshot: TableSnapshot, frontier: Frontier | None = None) -> Laid:
        """A reader in which a view, or an index, is as it will be when its group is at the frontier,
        by default at that of the snapshot. Its records are read as of the snapshot's last committed
        epoch of the group."""
        wanted = snapshot.frontier if frontier is None else frontier
        return Laid(snapshot, [self.moved(group, view, snapshot, wanted)])

    def moved(self, group: str, view: str, snapshot: TableSnapshot, goal: Frontier) -> Moved:
        """What changes in a view from the snapshot's committed rows to a frontier; nothing where they
        are there already."""
        commit = snapshot.committed(group)
        digest, bound = self._planned(group, view, commit.epoch)
        with self._lock:
            found = self._last.get((digest, view, commit.epoch, goal))
            if found is None:
                runner = self._runner(digest, bound, view)
                found = self._dry(runner, view, snapshot, commit, commit.frontier | goal)
                self._last[digest, view, commit.epoch, goal] = found
                while len(self._last) > KEPT:
                    self._last.popitem(last=False)
            return found

    def moved_back(self, group: str, view: str, snapshot: TableSnapshot, goal: Frontier) -> Moved:
        """What changes in a view from the snapshot's committed rows back to an earlier frontier."""
        if not self._store.log.guarantees.before_images:
            raise DefinitionError(
                f"earlier rows of view {view} cannot be computed",
                detail="the logs of this store have no before-images",
                hint="create the store with before_images=True",
            )
        commit = snapshot.committed(group)
        with self._lock:
            runner = self._runner(*self._planned(group, view, commit.epoch), view)
            return self._dry(runner, view, snapshot, commit, goal, undo=True)

    def _dry(
        self, runner: Runner, view: str, snapshot: TableSnapshot, commit: Commit, goal: Frontier, *, undo: bool = False
    ) -> Moved:
        start, end = (goal, commit.frontier) if undo else (commit.frontier, goal)
        tables = list(runner.bound.tables.values())
        batches: list[LogBatch] = []
        for piece in start.slices_to(end):
            batches += self._store.log.read(piece, tables).batches
        step = runner.bound.plan.step(runner.bound.plan.view(view).step)
        changes = None
        if batches:
            changes = runner.dry(snapshot, commit.epoch, batches, undo=undo).changes.get(step.fingerprint)
        return Moved(StoredView(runner.bound, view), empty_changes(step) if changes is None else condensed(changes))

    def _planned(self, group: str, view: str, epoch: int) -> tuple[str, BoundPlan]:
        found = self._plans.named_at(group, epoch)
        if found is None or view not in found[1].plan.by_name:
            raise DefinitionError(f"{view} is not built yet", hint="it can be read when it is built")
        return found

    def _runner(self, digest: str, planned: BoundPlan, view: str) -> Runner:
        """The steps of a view, ready to run; with schemas that are as new as all that is in the logs."""
        bound = self._plans.as_defined(planned, self._catalog.definitions())
        versions = tuple(table.schema.version for table in bound.tables.values())
        kept = self._runners.get((digest, view, versions))
        if kept is None:
            kept = self._runners[digest, view, versions] = Runner(_part(bound, view))
        self._runners.move_to_end((digest, view, versions))
        while len(self._runners) > KEPT:
            self._runners.popitem(last=False)
        return kept


def _part(bound: BoundPlan, view: str) -> BoundPlan:
    plan = restricted(bound.plan, [view])
    tables = {use.name: bound.tables[use.name] for use in plan.tables}
    return replace(bound, plan=plan, tables=tables)


class Laid:
    """A snapshot with changes of views laid over it: their records as of the last committed epoch are
    those at the frontier that they moved to."""

    def __init__(self, snapshot: TableSnapshot, moved: Sequence[Moved]) -> None:
        self._snapshot = snapshot
        self._records: dict[int, dict[bytes, bytes | None]] = {}
        for one in moved:
            self._records.setdefault(one.table.id, {}).update(one.records)
        self._places = {table: sorted(records) for table, records in self._records.items()}

    # -------------------------------------------------------------- records

    def get(self, table: StateTable, key: bytes, as_of: int) -> bytes | None:
        over = self._records.get(table.id)
        return over[key] if over is not None and key in over else self._snapshot.get(table, key, as_of)

    def read(self, table: StateTable, keys: Bytes, as_of: int) -> Bytes:
        found = self._snapshot.read(table, keys, as_of)
        over = self._records.get(table.id)
        if over is None:
            return found
        plain = zip(keys.to_pylist(), found.to_pylist(), strict=True)
        return pa.array([over.get(key, value) if key in over else value for key, value in plain], BINARY)

    def scan(
        self, table: StateTable, prefix: bytes, as_of: int, limit: int | None = None, after: bytes | None = None
    ) -> Records:
        if not self._records.get(table.id):
            return self._snapshot.scan(table, prefix, as_of, limit, after)
        parts: list[Records] = []
        left = limit
        while True:
            found = self._snapshot.scan(table, prefix, as_of, left, after)
            whole = left is None or len(found.keys) < left
            upto = None if whole else found.keys[-1].as_py()
            parts.append(self._with_changes(table.id, found, prefix, after, upto))
            if left is not None:
                left -= len(parts[-1].keys)
            if whole or left is None or left <= 0:
                break
            after = upto
        keys = pa.concat_arrays([part.keys for part in parts])
        values = pa.concat_arrays([part.values for part in parts])
        return Records(keys[:limit], values[:limit])

    def _with_changes(
        self, table: int, found: Records, prefix: bytes, after: bytes | None, upto: bytes | None
    ) -> Records:
        """Records of a stretch of keys, and what is laid over the same stretch."""
        over, places = self._records[table], self._places[table]
        first = max(bisect_left(places, prefix), 0 if after is None else bisect_right(places, after))
        beyond = successor(prefix)
        last = len(places) if beyond is None else bisect_left(places, beyond)
        if upto is not None:
            last = min(last, bisect_right(places, upto))
        touched = places[first:last]
        if not touched:
            return found
        kept = pc.invert(pc.is_in(found.keys, value_set=pa.array(touched, BINARY)))
        fresh = [place for place in touched if over[place] is not None]
        keys = pa.concat_arrays([found.keys.filter(kept), pa.array(fresh, BINARY)])
        values = pa.concat_arrays([found.values.filter(kept), pa.array([over[place] for place in fresh], BINARY)])
        order = pc.array_sort_indices(keys)
        return Records(keys.take(order), values.take(order))

    # -------------------------------------------------------------- as they are

    def read_bags(self, table: StateTable, keys: Bytes, as_of: int, first: pa.Int64Array | None = None) -> BagRows:
        return self._snapshot.read_bags(table, keys, as_of, first)

    def bag_keys(self, table: StateTable, as_of: int, limit: int | None = None, after: bytes | None = None) -> Bytes:
        return self._snapshot.bag_keys(table, as_of, limit, after)

    def bag_ends(self, table: StateTable, keys: Bytes, as_of: int) -> tuple[Bytes, Bytes]:
        return self._snapshot.bag_ends(table, keys, as_of)

    def preview_bags(self, table: StateTable, changes: BagRows, as_of: int) -> BagEnds:
        return self._snapshot.preview_bags(table, changes, as_of)

    def committed(self, group: str) -> Commit:
        return self._snapshot.committed(group)

    @property
    def frontier(self) -> Frontier:
        return self._snapshot.frontier

    def table(self, table: Table) -> HeldTable:
        return self._snapshot.table(table)

    def close(self) -> None:
        self._snapshot.close()

    def __enter__(self) -> Laid:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
