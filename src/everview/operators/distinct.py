"""DISTINCT: equal rows are counted, and a row is emitted when its first copy appears and when its last one goes.

Δδ(R)(r)  =  [ n(r) + Δn(r) > 0 ]  −  [ n(r) > 0 ]             n(r) copies of r before

:class:`Copies` counts equal rows, for set operations too. The state is a record of counts under the row
itself, and what is emitted depends only on the counts before and after.

Rows are compared by their encoding as a key. Values that are equal in SQL and do not look the
same (0.0 and -0.0, 1 month and 30 days) are made the same before anything else, so that what is
taken away is always what was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.errors import DamagedEntryError
from everview.operators.bound import BoundPlan
from everview.operators.equal_values import canonical
from everview.operators.evaluation import one_array, readable
from everview.operators.flow import columns_of
from everview.operators.members import MEMBER, Numbers
from everview.operators.stored import StoredRecords
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.maintenance import Step
from everview.store.contract import Deletes, Puts
from everview.store.encoding.ragged import Bytes

Counts = npt.NDArray[np.int64]
"""A row of counts for each record, one for each field of the state."""


@dataclass(frozen=True)
class Counted:
    """Rows whose counts change."""

    columns: list[pa.Array]
    """The values of each part of the key."""
    members: pa.Array | None
    before: Counts
    after: Counts


class Copies:
    """The counts that a state keeps."""

    def __init__(self, stored: StoredRecords) -> None:
        self.stored = stored

    def counted(
        self, work: Work, columns: Sequence[pa.Array | pa.ChunkedArray], members: pa.Array | None, changes: Counts
    ) -> Counted:
        """Add changes to the counts of rows, which may come several times, and write them."""
        size = len(changes)
        keys = self.stored.keys(columns, size, members)
        encoded = pc.dictionary_encode(keys)
        number = encoded.indices.to_numpy().astype(np.int64)
        first = np.empty(len(encoded.dictionary), np.int64)
        first[number[::-1]] = np.arange(size)[::-1]
        net = np.stack([np.bincount(number, one, len(first)).astype(np.int64) for one in changes.T], 1)
        chosen = np.flatnonzero(net.any(1))
        row = pa.array(first[chosen])
        values = [
            canonical(one_array(column).take(row), part.type)
            for column, part in zip(columns, self.stored.state.key, strict=True)
        ]
        keys = encoded.dictionary.take(pa.array(chosen))
        old = work.states.read(self.stored.table, keys)
        before = self._counts(old)
        after = before + net[chosen]
        self._check(after, values)
        if work.states.keeps:
            self._write(work, keys, values, old, after)
        return Counted(values, members.take(row) if members is not None else None, before, after)

    def _counts(self, records: Bytes) -> Counts:
        found = [column.fill_null(0).to_numpy() for column in self.stored.columns(records)]
        return np.stack(found, 1) if found else np.zeros((len(records), 0), np.int64)

    def _check(self, after: Counts, values: list[pa.Array]) -> None:
        wrong = np.flatnonzero((after < 0).any(1))
        if len(wrong):
            at = int(wrong[0])
            named = zip(self.stored.key_names, values, strict=True)
            shown = {name: readable(column[at : at + 1])[0] for name, column in named}
            raise DamagedEntryError(
                f"{self.stored.state.name}: more rows {shown} go than were there",
                detail="what is counted does not fit its changes",
                hint="rebuild the view",
            )

    def _write(self, work: Work, keys: Bytes, values: list[pa.Array], old: Bytes, after: Counts) -> None:
        there = after.any(1)
        kept, gone = pa.array(np.flatnonzero(there)), pa.array(np.flatnonzero(~there))
        columns = [pa.array(np.ascontiguousarray(column[there])) for column in after.T]
        records = self.stored.values(columns, [column.take(kept) for column in values], len(kept))
        work.states.write(
            self.stored.table,
            Puts(keys.take(kept), records, old.take(kept)),
            Deletes(keys.take(gone), old.take(gone)),
        )


def crossings(before: Numbers, after: Numbers) -> Numbers:
    """The weights of rows that appear and of rows of which the last one goes."""
    found: Numbers = (after > 0).astype(np.int64) - (before > 0)
    return found


class DistinctWorker(StepWorker):
    condenses = True

    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        state = step.states[0]
        self.copies = Copies(StoredRecords(bound.state_table(step), state, self.members))
        fields = {field.name for field in step.fields}
        names = [part.name for part in state.key]
        self._held = [name if name in fields else name.rpartition("#")[0] for name in names]
        """The step's field that holds each part of the key."""

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        rows, _ = self.computed(work, self.gathered(0, inputs[0]))
        members = one_array(rows[MEMBER]) if self.members is not None else None
        weights = one_array(rows[WEIGHT]).to_numpy()
        counted = self.copies.counted(work, [rows[name] for name in self._held], members, weights[:, None])
        weights = crossings(counted.before[:, 0], counted.after[:, 0])
        columns = dict(zip(self._held, counted.columns, strict=True))
        columns |= {WEIGHT: pa.array(weights), **({} if counted.members is None else {MEMBER: counted.members})}
        found = pa.table({name: columns[name] for name in columns_of(self.step)})
        return found.filter(pa.array(np.not_equal(weights, 0)))
