"""EXTREME: the least and the greatest value of each group.

The values of a group are a bag in their own order, and its ends are min and max, so
losing the extreme costs a look at the next one and never at the group.

    min(g)  =  first of V(g)        V(g) as of E  =  V(g) as of E − 1  +  changes of E
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.change.types import BOOLEAN
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Typed, one_array
from everview.operators.flow import condensed, together
from everview.operators.limbs import Mask
from everview.operators.members import MEMBER
from everview.operators.stored import Keys, StoredBags
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import ExtremeOperator
from everview.store.contract import BagRows
from everview.store.encoding.ragged import BINARY, Bytes

_VALUE = "value"


class ExtremeWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        state = step.states[0]
        self.stored = StoredBags(bound.state_table(step), state, self.members)
        operator = step.operator_as(ExtremeOperator)
        self._key: list[Typed] = [(sql, part.type) for sql, part in zip(operator.key, state.key, strict=True)]
        self._value: Typed = (operator.value, state.order[0].type)
        self._filter = operator.filter
        self._values = Keys((replace(state.order[0], nullable=False),), state.name)  # nulls are no values
        self._ends = operator.ends
        self.key_names = operator.key_names

    def reads(self, number: int) -> Iterable[str]:
        return [*(sql for sql, _ in self._key), self._value[0], *([self._filter] if self._filter else [])]

    def pack(self, work: Work, number: int, changes: Changes) -> pa.Table:
        """The values that come and go, each once for its group."""
        asked = [*self._key, self._value, *([(self._filter, BOOLEAN)] if self._filter else [])]
        found = work.evaluator.columns(asked, changes)
        work.quarantine.add(self.step, "row", changes.select([*self.needed(0), WEIGHT]), found.failed, source=0)
        *key, value = found.columns[: len(self._key) + 1]
        wanted = value.is_valid()
        if self._filter:
            wanted = pc.and_(wanted, found.columns[-1].fill_null(False))
        made = {f"k{n}": column for n, column in enumerate(key)} | {_VALUE: value}
        beside = {name: one_array(changes[name]) for name in (MEMBER, WEIGHT) if name in changes.column_names}
        return condensed(pa.table(made | beside).filter(wanted))

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        filled = [part for part in inputs[0] if len(part)]
        if not filled:
            return together(self.step, ())
        rows = filled[0] if len(filled) == 1 else condensed(pa.concat_tables(filled))
        if self.members is not None:
            rows = self.members.translated(0, rows)
        members = rows[MEMBER] if self.members is not None else None
        keys = self.stored.keys([rows[f"k{n}"] for n, _ in enumerate(self._key)], len(rows), members)
        entries = self._values.encode([rows[_VALUE]], len(rows))
        ends = work.states.write_bags(self.stored.table, BagRows(keys, entries, one_array(rows[WEIGHT])))
        groups = rows.take(pc.index_in(ends.keys, value_set=keys))
        same = pc.and_(_same(ends.first_before, ends.first_after), _same(ends.last_before, ends.last_after))
        parts = []
        for first, last, weight in ((ends.first_before, ends.last_before, -1), (ends.first_after, ends.last_after, 1)):
            shown = {name: one_array(groups[f"k{n}"]) for n, name in enumerate(self.key_names)}
            shown |= self._shown(first, last)
            if members is not None:
                shown[MEMBER] = one_array(groups[MEMBER])
            shown[WEIGHT] = pa.array(np.full(len(groups), weight, np.int64))
            there = pc.and_not(first.is_valid(), same)
            parts.append(pa.table(shown).filter(there))
        return together(self.step, parts)

    def _shown(self, first: Bytes, last: Bytes) -> dict[str, pa.Array]:
        """The ends that are asked for, null where there is none."""
        return {end.name: self._decoded(first if end.function == "min" else last) for end in self._ends}

    def _decoded(self, entries: Bytes) -> pa.Array:
        (found,) = self._values.decode(entries.drop_null())
        if not entries.null_count:
            return found
        there: Mask = entries.is_valid().to_numpy(zero_copy_only=False)
        place = np.cumsum(there) - 1
        return found.take(pa.array(np.maximum(place, 0), mask=~there))

    def values(self, work: Work, groups: pa.Table) -> pa.Table:
        members = groups[MEMBER] if self.members is not None else None
        keys = self.stored.keys([groups[name] for name in self.key_names], len(groups), members)
        first, last = work.states.bag_ends(self.stored.table, keys)
        return pa.table(self._shown(first, last))


def _same(a: Bytes, b: Bytes) -> pa.Array:
    """Where two ends are equal, absent ones included."""
    nothing = pa.scalar(b"", BINARY)
    both = pc.equal(a.is_valid(), b.is_valid())
    return pc.and_(both, pc.equal(pc.coalesce(a, nothing), pc.coalesce(b, nothing)))
