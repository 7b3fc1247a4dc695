"""DELTA: from log entries, or the rows of a snapshot, to changes of a base table.

The old row goes, the new row comes; where the log has before-images nothing is
kept, where it does not the table's last rows are state.

    ΔT  =  −old  +new        however often the key was written in between

Logs come in three forms, and the columns of a batch show which it is:

| entries hold | old row | new row |
|---|---|---|
| what they found | in the key's first entry | in its last entry |
| which columns they set | the record of the key as of the last epoch | the same, with the writes in order |
| when they set each column | the same | the same, merged with the writes in any order |

A snapshot is changes with the weight +1, and makes the records that later entries need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.condense import net_changes, with_weight
from everview.change.entries import HAD, INCARNATION, KEY, KIND, OLD, PUT, SEQ, SET, WEIGHT
from everview.change.numbering import column_numbers, same_values
from everview.change.schema import Schema
from everview.errors import DefinitionError
from everview.operators import last_write, ordered_write
from everview.operators.bound import BoundPlan
from everview.operators.delta_record import DeltaRows, LastRows, WriteTimes
from everview.operators.evaluation import one_array
from everview.operators.flow import empty_changes, together
from everview.operators.work import Changes, Work
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import DeltaOperator
from everview.store.contract import Deletes, LogBatch, Puts
from everview.store.encoding.ragged import Bytes


class DeltaWorker:
    """The delta of one table."""

    def __init__(self, step: Step, bound: BoundPlan) -> None:
        self.step = step
        operator = step.operator_as(DeltaOperator)
        self.table = bound.tables[operator.table]
        names = {column.name: column.column for column in operator.columns}
        self._real = [names[field.name] for field in step.fields]
        """What the table calls the step's fields."""
        schema = self.table.schema
        used = [column for column in schema.columns if column.name in set(self._real)]
        self._used = Schema(tuple(used), schema.key, schema.version)
        self._kept: LastRows | None = None
        if step.states:
            state = step.states[0]
            self._key = [names[part.name] for part in state.key]
            self._values = [names[field.name] for field in state.fields]
            every = [column.name for column in schema.values]
            self._used_places = [(every.index(name), schema.column(name).type) for name in self._values]
            self._kept = LastRows(bound.state_table(step), state, [n for n, _ in self._used_places], len(every))

    # -------------------------------------------------------------- entries

    def of_log(self, work: Work, batches: Sequence[LogBatch]) -> Changes:
        """The net effect of log entries, each batch in the order of its log."""
        if self._kept is None:
            found = [self._renamed(self._net(batch)) for batch in batches]
            return together(self.step, found)
        return self.of_packed(work, [self._writes(batch.entries, batch.before_images) for batch in batches])

    def _net(self, batch: LogBatch) -> pa.Table:
        if not batch.before_images:
            raise DefinitionError(
                f"table {batch.table.name} has log entries without before-images, and its last rows are not kept",
                hint="plan the views for a log without before-images",
            )
        olds = [OLD + column.name for column in self._used.values]
        entries = batch.entries.select([KEY, KIND, INCARNATION, HAD, *self._used.names, *olds])
        return net_changes(entries, self._used)

    def _writes(self, entries: pa.Table, whole: bool) -> pa.Table:
        """Entries in the form in which they are put together; ``whole`` ones set all columns."""
        if last_write.has_times(entries):
            return last_write.writes(entries, self.table.schema, self._key, self._values)
        made = entries.select([KEY, SEQ, INCARNATION, KIND, *self._key, *self._values])
        for name in self._values:
            mask = pa.array(np.ones(len(entries), np.bool_)) if whole else entries[SET + name]
            made = made.append_column(SET + name, mask)
        return made

    def packed(self, batches: Sequence[LogBatch]) -> pa.Table:
        """Entries as they are sent to where the record of their key (``__key``) is: few for each key."""
        writes = self._together([self._writes(batch.entries, batch.before_images) for batch in batches])
        if last_write.STAMPS not in writes.column_names:
            return ordered_write.composed(writes, (KEY, INCARNATION)).as_entries()
        numbers = column_numbers(writes[KEY])
        found = last_write.merged(*self._timed(writes), self._used_places, numbers.of_rows, numbers.count)
        assert found.times is not None
        made = writes.select([KEY, *self._key]).take(pa.array(numbers.first()))
        for name, column in zip(self._values, found.columns, strict=True):
            made = made.append_column(name, column)
        return made.append_column(last_write.STAMPS, found.times.to_bytes())

    def of_packed(self, work: Work, parts: Sequence[pa.Table]) -> Changes:
        """The changes of what was packed: all parts that concern a key."""
        writes = self._together([part for part in parts if len(part)])
        if not len(writes):
            return empty_changes(self.step)
        assert self._kept is not None
        if last_write.STAMPS in writes.column_names:
            return self._merged(work, self._kept, writes)
        found = ordered_write.composed(writes)
        touched = _Touched.of(work, self._kept, found.entries.select(self._key).take(pa.array(found.first)))
        old = self._kept.decode(touched.records, timed=False)
        return self._changed(work, self._kept, touched, old, found.on(old))

    def _merged(self, work: Work, kept: LastRows, writes: pa.Table) -> Changes:
        numbers = column_numbers(writes[KEY])
        touched = _Touched.of(work, kept, writes.select(self._key).take(pa.array(numbers.first())))
        old = kept.decode(touched.records, timed=True)
        assert old.times is not None
        times, columns = self._timed(writes)
        codes = np.concatenate([np.arange(numbers.count), numbers.of_rows])
        every = [pa.concat_arrays([was, now]) for was, now in zip(old.columns, columns, strict=True)]
        new = last_write.merged(old.times.followed_by(times), every, self._used_places, codes, numbers.count)
        return self._changed(work, kept, touched, old, new)

    def _timed(self, writes: pa.Table) -> tuple[WriteTimes, list[pa.Array]]:
        width = len(self.table.schema.values)
        return WriteTimes.from_bytes(one_array(writes[last_write.STAMPS]), width), [
            one_array(writes[name]) for name in self._values
        ]

    def _together(self, parts: Sequence[pa.Table]) -> pa.Table:
        if len({last_write.STAMPS in part.column_names for part in parts}) > 1:
            raise DefinitionError(
                f"table {self.table.name} has log entries with the time of their write, and some without",
                hint="the entries of a table's log all have times, or none has",
            )
        return pa.concat_tables(parts) if parts else pa.table({})

    # -------------------------------------------------------------- rows

    def of_rows(self, work: Work, rows: pa.Table) -> Changes:
        """Rows of a snapshot. They have the times of their writes where the log has them."""
        if self._kept is None:
            return self._renamed(with_weight(rows.select(list(self._used.names)), 1))
        keys = self._kept.keys([one_array(rows[name]) for name in self._key])
        entries = rows.append_column(KEY, keys)
        if not last_write.has_times(rows):
            count = len(rows)
            entries = entries.append_column(KIND, pa.array(np.full(count, PUT, np.uint8)))
            entries = entries.append_column(SEQ, pa.array(np.zeros(count, np.uint64)))
            entries = entries.append_column(INCARNATION, pa.array(np.zeros(count, np.uint32)))
        return self.of_packed(work, [self._writes(entries, whole=True)])

    # -------------------------------------------------------------- what is kept and emitted

    def _changed(self, work: Work, kept: LastRows, touched: _Touched, old: DeltaRows, new: DeltaRows) -> Changes:
        """Write the records, and return the rows that go and come."""
        made = kept.encode(touched.key, new)
        there = new.there if new.times is None else ~new.times.nothing
        was = touched.records.is_valid().to_numpy(zero_copy_only=False)
        differs = pc.fill_null(pc.not_equal(made, touched.records), True).to_numpy(zero_copy_only=False)
        put, gone = pa.array(there & differs), pa.array(was & ~there)
        work.states.write(
            kept.table,
            Puts(touched.keys.filter(put), made.filter(put), touched.records.filter(put)),
            Deletes(touched.keys.filter(gone), touched.records.filter(gone)),
        )
        same = np.flatnonzero(old.there & new.there)
        for before, after in zip(old.columns, new.columns, strict=True):
            chosen = pa.array(same)
            same = same[same_values(before.take(chosen), after.take(chosen))]
        moved = np.ones(len(made), np.bool_)
        moved[same] = False
        parts = []
        for rows, weight in ((old, -1), (new, 1)):
            columns = pa.table([*touched.key, *rows.columns], names=[*self._key, *self._values])
            parts.append(with_weight(columns.filter(pa.array(rows.there & moved)), weight))
        return self._renamed(pa.concat_tables(parts))

    def forget(self, work: Work, keys: Bytes, before: int) -> int:
        """Drop what the records with these keys remember of deletions before a time; returns how
        many records go. It is right once no entry can come that is older, and belongs into an
        epoch that takes no entries of these keys. The policy is the caller's."""
        assert self._kept is not None
        records = work.states.read(self._kept.table, keys)
        known = records.is_valid()
        keys, records = keys.filter(known), records.filter(known)
        made, nothing = self._kept.without_deletions(keys, records, before)
        differs = pc.not_equal(made, records).to_numpy(zero_copy_only=False)
        put, gone = pa.array(differs & ~nothing), pa.array(nothing)
        work.states.write(
            self._kept.table,
            Puts(keys.filter(put), made.filter(put), records.filter(put)),
            Deletes(keys.filter(gone), records.filter(gone)),
        )
        return int(nothing.sum())

    def _renamed(self, changes: pa.Table) -> Changes:
        columns = [changes[name] for name in (*self._real, WEIGHT)]
        return pa.table(columns, names=[*(field.name for field in self.step.fields), WEIGHT])

    def pack(self, work: Work, number: int, changes: Changes) -> pa.Table:
        raise AssertionError("a delta reads no other step")

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        return empty_changes(self.step)


@dataclass(frozen=True)
class _Touched:
    """Keys that were written, with their records as of the last epoch."""

    key: list[pa.Array]
    keys: Bytes
    records: Bytes

    @staticmethod
    def of(work: Work, kept: LastRows, rows: pa.Table) -> _Touched:
        key = [one_array(column) for column in rows.columns]
        keys = kept.keys(key)
        return _Touched(key, keys, work.states.read(kept.table, keys))
