"""Rows of a view at another frontier than its last epoch's, computed by the reader.

One sentence: steps are pure, so a reader can run the steps of one view over a slice of the logs, write
nothing, and lay what comes out over the rows of a snapshot.

::

    committed rows at frontier C        {a: 1, b: 2}
    the logs from C to F say            b → 3, c → 4
    laid over                           {a: 1, b: 3, c: 4}        what the epoch to F will commit

It goes the other way round as well, where the logs tell what writes found: from the rows at C back to
what they were at an earlier frontier. That is how a version that is no longer kept is read
(:mod:`everview.client.subscriptions`).
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.change.frontier import Frontier
from everview.client.known_views import KnownViews
from everview.client.view_rows import ViewRows
from everview.errors import DefinitionError
from everview.operators.bound import BoundPlan
from everview.operators.flow import condensed, empty_changes
from everview.operators.runner import Runner
from everview.operators.view_reader import ViewReader
from everview.operators.work import Changes
from everview.plan.maintenance import restricted
from everview.store.contract import (
    BagEnds,
    BagRows,
    Bytes,
    Commit,
    LogBatch,
    Records,
    Snapshot,
    StateReader,
    StateTable,
    Table,
    TableReader,
)
from everview.store.keys import successor
from everview.store.ragged import BINARY

KEPT = 64
"""Views whose steps are kept ready, and pending changes that are kept for the next reader."""


@dataclass(frozen=True)
class Pending:
    """What the log between two frontiers changes in one view."""

    reader: ViewReader
    """Of the view, in the part of the plan that maintains it."""
    changes: Changes
    """Stored rows that come and go, condensed."""

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

    @cached_property
    def places(self) -> list[bytes]:
        """The touched places, in order."""
        return sorted(self.records)


class Overlays:
    """Runs the steps of single views. Safe for many threads."""

    def __init__(self, views: KnownViews) -> None:
        self._views = views
        self._lock = threading.Lock()
        self._runners: OrderedDict[tuple[object, ...], tuple[BoundPlan, Runner]] = OrderedDict()
        self._last: OrderedDict[tuple[object, ...], Pending] = OrderedDict()

    def pending(self, rows: ViewRows, snapshot: StateReader, goal: Frontier) -> Pending:
        """What changes in a view from the snapshot's committed rows to a frontier at or after them."""
        commit = snapshot.committed(rows.view.group)
        asked = (rows.view.id, rows.view.version, rows.table.id, commit.epoch, goal)
        with self._lock:
            found = self._last.get(asked)
            if found is None:
                found = self._last[asked] = self._dry(rows, snapshot, commit, goal)
                while len(self._last) > KEPT:
                    self._last.popitem(last=False)
            return found

    def undone(self, rows: ViewRows, snapshot: StateReader, back_to: Frontier) -> Pending:
        """What changes in a view from the snapshot's committed rows back to an earlier frontier."""
        if not self._views.store.log.guarantees.before_images:
            raise DefinitionError(
                f"earlier rows of view {rows.view.name} cannot be computed",
                detail="the logs of this store do not tell what writes found",
                hint="make the store with before_images=True",
            )
        with self._lock:
            return self._dry(rows, snapshot, snapshot.committed(rows.view.group), back_to)

    def _dry(self, rows: ViewRows, snapshot: StateReader, commit: Commit, goal: Frontier) -> Pending:
        undo = goal < commit.frontier
        start, end = (goal, commit.frontier) if undo else (commit.frontier, goal)
        runner = self._runner(rows)
        batches: list[LogBatch] = []
        for piece in start.slices_to(end):
            batches += self._views.store.log.read(piece, list(runner.bound.tables.values())).batches
        outcome = runner.dry(snapshot, commit.epoch, batches, undo=undo)
        step = runner.bound.plan.step(rows.planned.step)
        changes = outcome.changes.get(step.fingerprint)
        return Pending(
            ViewReader(runner.bound, rows.view.name), empty_changes(step) if changes is None else condensed(changes)
        )

    def _runner(self, rows: ViewRows) -> Runner:
        """The steps of one view, under the schemas that its tables have now: looked up after the
        frontier is known, so nothing up to it was written under a newer one."""
        whole = rows.reader.bound
        bound = self._views.plans.as_defined(whole, self._views.catalog.definitions())
        versions = tuple(sorted((table.id, table.schema.version) for table in bound.tables.values()))
        asked = (rows.view.name, id(whole), versions)
        known = self._runners.get(asked)
        if known is None:
            plan = restricted(bound.plan, [rows.view.name])
            used = {use.name: bound.tables[use.name] for use in plan.tables}
            known = self._runners[asked] = (whole, Runner(BoundPlan(plan, used, bound.states)))
            while len(self._runners) > KEPT:
                self._runners.popitem(last=False)
        return known[1]


class Laid:
    """A snapshot with pending changes of views laid over it."""

    def __init__(self, snapshot: Snapshot, over: Mapping[int, Pending | list[Pending]]) -> None:
        self._snapshot = snapshot
        self._records: dict[int, dict[bytes, bytes | None]] = {}
        for table, found in over.items():
            records = self._records.setdefault(table, {})
            for one in found if isinstance(found, list) else [found]:
                records.update(one.records)
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

    def bag_ends(self, table: StateTable, keys: Bytes, as_of: int) -> tuple[Bytes, Bytes]:
        return self._snapshot.bag_ends(table, keys, as_of)

    def preview_bags(self, table: StateTable, changes: BagRows, as_of: int) -> BagEnds:
        return self._snapshot.preview_bags(table, changes, as_of)

    def committed(self, group: str) -> Commit:
        return self._snapshot.committed(group)

    @property
    def frontier(self) -> Frontier:
        return self._snapshot.frontier

    def table(self, table: Table) -> TableReader:
        return self._snapshot.table(table)

    def close(self) -> None:
        self._snapshot.close()

    def __enter__(self) -> Laid:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
