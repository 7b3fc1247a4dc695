"""View tables and indexes: the end of a view's steps.

Changes carry the old and the new row of a key, so a record is written (E, new, old)
without being read.

    ΔV  →  V(k) := new row, before that old row

A row that changes in nothing that is kept is not written at all. What is written is also what the
step emits: views on this view read the same changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.errors import DamagedEntryError
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import one_array
from everview.operators.flow import condensed
from everview.operators.members import MEMBER
from everview.operators.readable import readable
from everview.operators.stored import StoredRecords
from everview.operators.work import Changes, Work
from everview.operators.worker import StepWorker
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import WrittenRowsOperator
from everview.store.contract import Bytes, Deletes, Puts

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
