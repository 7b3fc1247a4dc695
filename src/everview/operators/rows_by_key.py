"""Rows by key: the bags that joins, windows, top-k and re-evaluation read.

A PARTITION (or REVERSE-JOIN) step keeps the rows of its input in a bag for each key
and hands its changes on; a step that reads those can ask for the rows that the bags held before.

    B(k) as of E  =  B(k) as of E − 1  +  changes of E with key k

Readers never see what the step writes in the epoch: the rows after it are the rows before and the
changes, which they have both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import KEY, WEIGHT
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Evaluated, one_array
from everview.operators.flow import condensed
from everview.operators.members import MEMBER, Numbers
from everview.operators.stored import StoredBags
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import KeyedRowsOperator
from everview.store.contract import BagRows
from everview.store.encoding.ragged import Bytes, column_of, glue


class PartitionWorker(StepWorker):
    """Keeps rows by key, in an order where one is asked for."""

    condenses = True

    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self.stored = StoredBags(bound.state_table(step), step.states[0], self.members)
        state = step.states[0]
        operator = step.operator_as(KeyedRowsOperator)
        self._key = [(sql, part.type) for sql, part in zip(operator.key, state.key, strict=True)]
        self._order = [(one.sql, part.type) for one, part in zip(operator.order or (), state.order, strict=True)]

    def reads(self, number: int) -> Iterable[str]:
        return [*super().reads(number), *(sql for sql, _ in self._key), *(sql for sql, _ in self._order)]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        rows = self.gathered(0, inputs[0])
        changes, rows = self.computed(work, rows)
        if not len(rows):
            return changes
        beside = work.evaluator.columns([*self._key, *self._order], rows)
        if beside.failed:
            work.quarantine.add(self.step, "row", rows, beside.failed)
            kept = np.ones(len(rows), np.bool_)
            kept[list(beside.failed)] = False
            mask = pa.array(kept)
            changes, rows = changes.filter(mask), rows.filter(mask)
            beside = Evaluated([column.filter(mask) for column in beside.columns])
        if not work.states.keeps:
            return changes
        key, order = beside.columns[: len(self._key)], beside.columns[len(self._key) :]
        members = rows[MEMBER] if self.members is not None else None
        keys = self.stored.keys(key, len(rows), members)
        entries = self.stored.entries(changes, order)
        work.states.add_to_bags(self.stored.table, BagRows(keys, entries, one_array(rows[WEIGHT])))
        return changes


class Bags:
    """The bags of an input, for a worker that reads them: as of the last epoch, under the numbers
    of the worker's own members."""

    def __init__(self, worker: StepWorker, number: int) -> None:
        self.source = worker.sources[number]
        self.members = worker.members
        bound = worker.bound
        theirs = bound.members(self.source)
        self.stored = StoredBags(bound.state_table(self.source), self.source.states[0], theirs)
        self._from = worker.members.from_inputs[number] if worker.members is not None else None
        self.key_columns = key_columns_of(self.source)
        """The columns of the input's changes that hold the key, one for each part."""
        self.columns = [field.name for field in self.source.fields]
        """The columns of the input's rows."""

    def with_keys(self, changes: Changes) -> pa.Table:
        """Changes with the key of their bag (KEY): equal for rows of one bag and one member."""
        keys = self.stored.bare([changes[n] for n in self.key_columns], len(changes))
        if self.members is not None:
            keys = glue(_numbers(changes[MEMBER]), keys)
        return changes.append_column(KEY, keys)

    def touched(self, keyed: pa.Table) -> pa.Table:
        """Of keyed changes (or of several such tables, one after the other): each bag once, with
        the values of its key."""
        beside = [MEMBER] if self.members is not None else []
        names = list(dict.fromkeys(self.key_columns))
        first = pc.unique(keyed[KEY])
        return keyed.select([KEY, *names, *beside]).take(pc.index_in(first, value_set=one_array(keyed[KEY])))

    def rows(self, work: Work, groups: pa.Table, first: pa.Int64Array | None = None) -> pa.Table:
        """The rows of bags as of the last epoch, in the order of the bags given and of their
        entries: KEY, the input's columns, the member, and as weight how often the row is there."""
        members = groups[MEMBER] if self.members is not None else None
        found, group = self.read(work, [groups[n] for n in self.key_columns], len(groups), members, first)
        return self._table(groups, found, pa.array(group))

    def read(
        self,
        work: Work,
        key: Sequence[pa.Array | pa.ChunkedArray],
        count: int,
        members: pa.ChunkedArray | pa.Array | None = None,
        first: pa.Int64Array | None = None,
    ) -> tuple[BagRows, Numbers]:
        """The bags with different keys, given in a column for each part, as of the last epoch; and
        for each row the number of its bag among those asked for."""
        asked = self.stored.bare(key, count)
        if self._from is not None:
            assert self.stored.members is not None and members is not None
            asked = self.stored.members.before(asked, self._from[one_array(members).to_numpy()].astype(np.int32))
        if self.members is not None:
            distinct = pc.unique(asked)
            if len(distinct) < len(asked):
                return self._shared(work, asked, distinct, first)
        found = work.states.read_bags(self.stored.table, asked, first)
        group: Numbers = pc.index_in(found.keys, value_set=asked).to_numpy().astype(np.int64)
        return found, group

    def _shared(
        self, work: Work, asked: Bytes, distinct: Bytes, first: pa.Int64Array | None
    ) -> tuple[BagRows, Numbers]:
        """Several members read one bag: read it once, and give it to each."""
        place = pc.index_in(asked, value_set=distinct).to_numpy()
        if first is not None:
            most = np.zeros(len(distinct), np.int64)
            np.maximum.at(most, place, first.to_numpy())
            first = pa.array(most)
        found = work.states.read_bags(self.stored.table, distinct, first)
        bag = pc.index_in(found.keys, value_set=distinct).to_numpy()
        count = np.bincount(bag, minlength=len(distinct))
        start = np.cumsum(count) - count
        order = np.argsort(bag, kind="stable")
        size = count[place]
        group = np.repeat(np.arange(len(place)), size)
        within = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
        chosen = pa.array(order[np.repeat(start[place], size) + within])
        return BagRows(found.keys.take(chosen), found.entries.take(chosen), found.counts.take(chosen)), group

    def _table(self, groups: pa.Table, found: BagRows, group: pa.Array) -> pa.Table:
        held = dict(zip((f.name for f in self.stored.state.fields), self.stored.columns(found.entries), strict=True))
        beside = groups.take(group)
        columns = {name: held[name] if name in held else beside[name] for name in self.columns}
        member = {MEMBER: beside[MEMBER]} if self.members is not None else {}
        return pa.table({KEY: beside[KEY], **columns, **member, WEIGHT: found.counts})


def key_columns_of(step: Step) -> list[str]:
    """The fields of a step that hold the key of its state, one for each part."""
    fields = {field.name for field in step.fields}
    names = (part.name for part in step.states[0].key)
    return [name if name in fields else name.rpartition("#")[0] for name in names]


def after(before: pa.Table, keyed: pa.Table) -> pa.Table:
    """The rows of bags once changes are applied: both with KEY, the same columns and weights."""
    return condensed(pa.concat_tables([before, keyed.select(before.column_names)]))


def _numbers(members: pa.ChunkedArray) -> Bytes:
    numbers = one_array(members).to_numpy().astype(">u4")
    return column_of(numbers.tobytes(), 4 * np.arange(len(numbers) + 1))
