"""What a view will show after the next epoch, without an epoch.

One sentence: steps are pure, so the steps of one view are run over the logs from where its group is
to where a reader wants to be, and what they would have written to the view is laid over what is there.

    pending(view, F)  =  committed rows  ⊕  what the steps of the view make of the logs up to F

Nothing is written, and no step of another view is run: the plan is cut down to the view, of a family
to its member. It costs what an epoch of that one view would cost.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from everview.catalog import Catalog
from everview.change.frontier import Frontier
from everview.errors import DefinitionError
from everview.maintain.plans import Plans
from everview.operators.bound import BoundPlan
from everview.operators.runner import Runner
from everview.operators.work import Dry
from everview.plan.maintenance import restricted
from everview.store.contract import (
    BagEnds,
    BagRows,
    Bytes,
    Commit,
    Deletes,
    Puts,
    Records,
    Snapshot,
    StateReader,
    StateTable,
    Store,
)
from everview.store.ragged import BINARY

KEPT = 64
"""Views whose steps are kept ready."""


@dataclass(frozen=True)
class _Tried(Dry):
    """A dry run that remembers what it would have written to one table."""

    table: StateTable
    puts: list[Puts] = field(default_factory=list)
    deletes: list[Deletes] = field(default_factory=list)

    def write(self, table: StateTable, puts: Puts, deletes: Deletes) -> None:
        if table.id == self.table.id:
            self.puts.append(puts)
            self.deletes.append(deletes)


class Laid:
    """A reader of state in which one table has records beyond those of the last epoch. Like the
    reader below it, it is of use for as long as that one is."""

    def __init__(self, reader: StateReader, table: StateTable, keys: Bytes, values: Bytes) -> None:
        """``keys`` are in order; a null value says that the record is gone."""
        self._reader = reader
        self._table = table
        self._keys = keys
        self._values = values

    def read(self, table: StateTable, keys: Bytes, as_of: int) -> Bytes:
        found = self._reader.read(table, keys, as_of)
        if table.id != self._table.id or not len(self._keys):
            return found
        place = pc.index_in(keys, value_set=self._keys)
        return pc.if_else(place.is_valid(), self._values.take(place), found)

    def scan(
        self, table: StateTable, prefix: bytes, as_of: int, limit: int | None = None, after: bytes | None = None
    ) -> Records:
        if table.id != self._table.id or not len(self._keys):
            return self._reader.scan(table, prefix, as_of, limit, after)
        most = None if limit is None else limit + len(self._keys)  # so many of them may be gone
        below = self._reader.scan(table, prefix, as_of, most, after)
        ours = pc.starts_with(self._keys, pattern=prefix)
        if after is not None:
            ours = pc.and_(ours, pc.greater(self._keys, pa.scalar(after, BINARY)))
        if most is not None and len(below.keys) == most:
            ours = pc.and_(ours, pc.less_equal(self._keys, below.keys[-1]))
        stay = pc.invert(pc.is_in(below.keys, value_set=self._keys))
        come = pc.and_(ours, self._values.is_valid())
        keys = pa.concat_arrays([below.keys.filter(stay), self._keys.filter(come)])
        values = pa.concat_arrays([below.values.filter(stay), self._values.filter(come)])
        order = pc.array_sort_indices(keys)[:limit]
        return Records(keys.take(order), values.take(order))

    def read_bags(self, table: StateTable, keys: Bytes, as_of: int, first: pa.Int64Array | None = None) -> BagRows:
        return self._reader.read_bags(table, keys, as_of, first)

    def bag_ends(self, table: StateTable, keys: Bytes, as_of: int) -> tuple[Bytes, Bytes]:
        return self._reader.bag_ends(table, keys, as_of)

    def preview_bags(self, table: StateTable, changes: BagRows, as_of: int) -> BagEnds:
        return self._reader.preview_bags(table, changes, as_of)

    def get(self, table: StateTable, key: bytes, as_of: int) -> bytes | None:
        found: bytes | None = self.read(table, pa.array([key], BINARY), as_of)[0].as_py()
        return found

    def committed(self, group: str) -> Commit:
        return self._reader.committed(group)


class Pending:
    """Pending rows of the views of a store."""

    def __init__(self, store: Store, catalog: Catalog, plans: Plans) -> None:
        self._store = store
        self._catalog = catalog
        self._plans = plans
        self._runners: OrderedDict[tuple[str, str, tuple[int, ...]], Runner] = OrderedDict()

    def over(self, group: str, view: str, snapshot: Snapshot, frontier: Frontier | None = None) -> Laid:
        """A reader in which a view, or an index, is as it will be when its group is at the frontier,
        by default at that of the snapshot. Its records are read as of the snapshot's last committed
        epoch of the group."""
        wanted = snapshot.frontier if frontier is None else frontier
        commit = snapshot.committed(group)
        runner = self._runner(group, view, commit.epoch)
        step = runner.bound.plan.step(runner.bound.plan.view(view).step)
        states = _Tried(snapshot, commit.epoch, runner.bound.state_table(step))
        tables = list(runner.bound.tables.values())
        batches = [
            batch
            for piece in commit.frontier.slices_to(wanted | commit.frontier)
            for batch in self._store.log.read(piece, tables).batches
        ]
        if batches:
            runner.tried(states, batches)
        return _laid(snapshot, states)

    def _runner(self, group: str, view: str, epoch: int) -> Runner:
        """The steps of a view, ready to run; with schemas that are as new as all that is in the logs."""
        digest = self._plans.digest_at(group, epoch)
        bound = None if digest is None else self._plans.load(digest)
        if digest is None or bound is None or view not in bound.plan.by_name:
            raise DefinitionError(f"{view} is not built yet", hint="it can be read when it is built")
        bound = self._plans.as_defined(bound, self._catalog.definitions())
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


def _laid(reader: StateReader, states: _Tried) -> Laid:
    gone = [deletes.keys for deletes in states.deletes]
    come = [puts.keys for puts in states.puts]
    keys = pa.concat_arrays([pa.array([], BINARY), *gone, *come])
    dead = sum(map(len, gone))
    values = pa.concat_arrays([pa.nulls(dead, BINARY), *(puts.values for puts in states.puts)])
    order = pc.array_sort_indices(keys)
    return Laid(reader, states.table, keys.take(order), values.take(order))
