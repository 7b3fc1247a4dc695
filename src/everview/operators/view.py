"""View tables and indexes: the end of a view's steps.

Changes carry the old and the new row of a key, so a record is written (E, new, old)
without being read.

    ΔV  →  V(k) := new row, before that old row

A row that changes in nothing that is kept is not written at all. What is written is also what the
step emits: views on this view read the same changes.

A reader of a view gets its shown columns (:class:`StoredView`). Nothing is computed for that: they are
stored under the names that the plan gave them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.errors import DamagedEntryError
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import one_array, readable
from everview.operators.flow import condensed, empty
from everview.operators.members import MEMBER
from everview.operators.stored import StoredRecords
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.maintenance import PlannedView, Step
from everview.plan.maintenance.operator_definitions import WrittenRowsOperator
from everview.store.contract import Deletes, Puts, StateReader
from everview.store.encoding.ragged import Bytes

Numbers = npt.NDArray[np.int32]


class ViewWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        stored = {column.name: column.sql for column in step.operator_as(WrittenRowsOperator).columns}
        self.outputs = tuple((stored[field.name], field.type) for field in step.fields)
        self.stored = StoredRecords(bound.state_table(step), step.states[0], self.members)
        self._read_on = bool(bound.consumers[step.fingerprint])

    def reads(self, number: int) -> Iterable[str]:
        return [sql for sql, _ in self.outputs]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        changes, _ = self.computed(work, self.gathered(0, inputs[0]))
        if not work.states.keeps:
            return condensed(changes)
        sides = _ReplacedRows.of(self.stored, changes)
        if sides is None:
            changes = condensed(changes)
            sides = _ReplacedRows.of(self.stored, changes)
            if sides is None:
                raise self._twice(changes)
        sides.write(work, self.step)
        return condensed(changes) if self._read_on else changes

    def _twice(self, changes: Changes) -> DamagedEntryError:
        keys = self.stored.keys_in(changes)
        for sign in (1, -1):
            chosen = keys.filter(pc.equal(pc.sign(changes[WEIGHT]), sign).combine_chunks())
            counts = pc.value_counts(chosen)
            twice = counts.filter(pc.greater(counts.field("counts"), 1))
            if len(twice):
                row = changes.filter(pc.equal(keys, twice[0]["values"]))
                shown = {name: readable(row[name][:1])[0] for name in self.stored.key_names}
                break
        else:
            shown = {}
        return DamagedEntryError(
            f"{self.stored.state.name}: two rows have the key {shown}",
            detail="what the view is computed from does not fit its changes",
            hint="rebuild the view",
        )


class _ReplacedRows:
    """Rows that go and rows that come, at most one of each for a key."""

    def __init__(
        self,
        stored: StoredRecords,
        old: tuple[Bytes, Bytes],
        new: tuple[Bytes, Bytes],
        members: tuple[Numbers, Numbers] | None,
    ) -> None:
        self.stored, self.old, self.new, self.members = stored, old, new, members

    @staticmethod
    def of(stored: StoredRecords, changes: Changes) -> _ReplacedRows | None:
        """None where a key comes or goes more than once."""
        weights = one_array(changes[WEIGHT]).to_numpy()
        if not np.isin(weights, (-1, 1)).all():
            return None
        keys, values = stored.keys_in(changes), stored.values_in(changes)
        parts = []
        for sign in (-1, 1):
            chosen = pa.array(weights == sign)
            there = keys.filter(chosen)
            if len(there) != len(pc.unique(there)):
                return None
            parts.append((there, values.filter(chosen)))
        members = None
        if MEMBER in changes.column_names:
            numbers = one_array(changes[MEMBER]).to_numpy()
            members = numbers[weights == 1], numbers[weights == -1]
        return _ReplacedRows(stored, parts[0], parts[1], members)

    def write(self, work: Work, step: Step) -> None:
        old_keys, old_values = self.old
        new_keys, new_values = self.new
        place = pc.index_in(new_keys, value_set=old_keys)
        previous = old_values.take(place)
        same = pc.fill_null(pc.equal(previous, new_values), False)
        gone = np.ones(len(old_keys), np.bool_)
        gone[place.drop_null().to_numpy()] = False
        changed = pc.invert(same)
        written = changed.to_numpy(zero_copy_only=False)
        known = previous.is_valid().to_numpy(zero_copy_only=False)
        work.updates.add(step, written & ~known, written & known, gone, self.members)
        work.states.write(
            self.stored.table,
            Puts(new_keys.filter(changed), new_values.filter(changed), previous.filter(changed)),
            Deletes(old_keys.filter(pa.array(gone)), old_values.filter(pa.array(gone))),
        )


def replaced_records(stored: StoredRecords, changes: Changes) -> dict[bytes, bytes | None]:
    """Of each place that changes, the record that is there afterwards; None: there is none."""
    weights = one_array(changes[WEIGHT]).to_pylist()
    keys, values = stored.keys_in(changes).to_pylist(), stored.values_in(changes).to_pylist()
    found: dict[bytes, bytes | None] = {key: None for key, weight in zip(keys, weights, strict=True) if weight < 0}
    found.update((key, value) for key, value, weight in zip(keys, values, weights, strict=True) if weight > 0)
    return found


@dataclass(frozen=True)
class StoredView:
    """Reads one view of a bound plan."""

    bound: BoundPlan
    name: str

    @property
    def view(self) -> PlannedView:
        return self.bound.plan.view(self.name)

    @functools.cached_property
    def stored(self) -> StoredRecords:
        step = self.bound.plan.step(self.view.step)
        return StoredRecords(self.bound.state_table(step), step.states[0], self.bound.members(step))

    @functools.cached_property
    def prefix(self) -> bytes:
        """What the keys of this view's records begin with."""
        if self.stored.members is None:
            return b""
        tag: bytes = self.stored.members.tags[self.bound.number_of(self.view)].as_py()
        return tag

    def begins(self, values: Sequence[object]) -> bytes:
        """What the keys of all rows begin with whose row key begins with these values. Other rows'
        keys may begin so too, where keys are too long for the store."""
        return self.prefix + self.stored.begins(values)

    def scan(
        self, reader: StateReader, as_of: int, prefix: bytes | None = None, block: int = 65_536
    ) -> Iterator[pa.Table]:
        """Rows in the order of the row key, block by block: all stored columns."""
        after: bytes | None = None
        while True:
            found = reader.scan(self.stored.table, self.prefix if prefix is None else prefix, as_of, block, after)
            if len(found.keys):
                yield self.stored.table_of(found.keys, found.values)
            if len(found.keys) < block:
                return
            after = found.keys[-1].as_py()

    def rows(self, reader: StateReader, as_of: int) -> pa.Table:
        """All rows."""
        return pa.concat_tables([empty(self.schema), *map(self.shown, self.scan(reader, as_of))])

    @functools.cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(one.name, one.type.arrow) for one in self.view.columns])

    def shown(self, stored: pa.Table) -> pa.Table:
        """Stored rows as a reader sees them."""
        return pa.table([stored[one.stored] for one in self.view.columns], schema=self.schema)
