"""PRE-AGGREGATION: counts and sums by group.

A group is a few accumulators that can be added and taken away, so its new record is
the old one plus the weighted sum of its changes, whatever their order.

    record(g) as of E  =  record(g) as of E − 1  +  Σ weight · (1, x is there, x)

For ``SELECT customer, count(*), sum(amount) … GROUP BY customer``::

    as of E−1           changes of E                partial         as of E
    7: n 2  s 30.00     7  amount 10.00  −1         7: n −1  s −10  7: n 1  s 20.00
    8: n 1  s  5.00     8  amount  5.00  −1         8: n −1  s  −5  (8 is gone)
                        9  amount  1.00  +1         9: n +1  s  +1  9: n 1  s  1.00

The same addition serves three times: from changes to a partial, before they are sent, so that a
group travels once per task; from partials to one; and onto the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.change.entries import KEY, WEIGHT
from everview.change.types import BOOLEAN, Type
from everview.errors import DamagedEntryError
from everview.operators.accumulators import Accumulator, accumulator
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Typed, one_array, plain, readable
from everview.operators.flow import numbered, together
from everview.operators.limbs import Mask
from everview.operators.members import MEMBER
from everview.operators.stored import StoredRecords
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import PreAggregationOperator
from everview.store.contract import Deletes, Puts
from everview.store.encoding.ragged import Bytes


@dataclass(frozen=True)
class _Accumulated:
    """One column of the record."""

    name: str
    accumulator: Accumulator
    argument: Typed | None
    filter: str | None


class PreAggregationWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self.stored = StoredRecords(bound.state_table(step), step.states[0], self.members)
        operator = step.operator_as(PreAggregationOperator)
        known = {one.argument: one.argument_type for one in operator.accumulators if one.argument and one.argument_type}
        self._kept = tuple(
            _Accumulated(
                one.name,
                accumulator(one.function, one.argument_type),
                None if one.argument is None else self._argument(one.argument, known),
                one.filter,
            )
            for one in operator.accumulators
        )
        self._key: list[Typed] = [
            (sql, part.type) for sql, part in zip(operator.key, self.stored.state.key, strict=True)
        ]
        self.key_names = operator.key_names
        self._rows = next(one.name for one in self._kept if one.argument is None and one.filter is None)
        """The column that counts the rows of the group."""

    def _argument(self, sql: str, summed: Mapping[str, Type]) -> Typed:
        """An argument with its type. Of one that is only counted, nothing but its being null matters."""
        if sql in summed:
            return sql, summed[sql]
        name = plain(sql)
        if name is None:
            return f"CASE WHEN ({sql}) IS NOT NULL THEN TRUE END", BOOLEAN
        return sql, next(field.type for field in self.sources[0].fields if field.name == name)

    def reads(self, number: int) -> Iterable[str]:
        arguments = [one.argument[0] for one in self._kept if one.argument]
        return [*(sql for sql, _ in self._key), *arguments, *(one.filter for one in self._kept if one.filter)]

    # -------------------------------------------------------------- changes → partials

    def pack(self, work: Work, number: int, changes: Changes) -> pa.Table:
        """One row for each group: its key, and what to add to its record."""
        asked = _Asked()
        key = [asked.number(*typed) for typed in self._key]
        arguments = [None if one.argument is None else asked.number(*one.argument) for one in self._kept]
        filters = [None if one.filter is None else asked.number(one.filter, BOOLEAN) for one in self._kept]
        rows, columns = self._evaluated(work, asked, changes)
        keys = self.stored.bare([columns[at] for at in key], len(rows))
        weights = one_array(rows[WEIGHT]).to_numpy()
        groups, first = numbered(rows, keys)
        made: dict[str, pa.Array] = {KEY: keys.take(first)}
        made |= {f"k{n}": columns[at].take(first) for n, at in enumerate(key)}
        if MEMBER in rows.column_names:
            made[MEMBER] = one_array(rows[MEMBER]).take(first)
        for n, (one, argument, filtered) in enumerate(zip(self._kept, arguments, filters, strict=True)):
            weight = weights
            if filtered is not None:
                weight = np.where(columns[filtered].fill_null(False).to_numpy(zero_copy_only=False), weights, 0)
            values = None if argument is None else columns[argument]
            made[f"a{n}"] = one.accumulator.partial(values, weight, groups, len(first))
        return self._changing(pa.table(made))

    def _evaluated(self, work: Work, asked: _Asked, changes: Changes) -> tuple[pa.Table, list[pa.Array]]:
        found = work.evaluator.columns(asked.expressions, changes)
        if not found.failed:
            return changes, found.columns
        read = changes.select([*self.needed(0), WEIGHT])
        work.quarantine.add(self.step, "row", read, found.failed, source=0)
        kept = np.ones(len(changes), np.bool_)
        kept[list(found.failed)] = False
        mask = pa.array(kept)
        return changes.filter(mask), [column.filter(mask) for column in found.columns]

    def _changing(self, partials: pa.Table) -> pa.Table:
        """Without the groups to which nothing is added."""
        still = np.ones(len(partials), np.bool_)
        for n, one in enumerate(self._kept):
            still &= one.accumulator.is_zero(one_array(partials[f"a{n}"]))
        return partials.filter(pa.array(~still)) if still.any() else partials

    # -------------------------------------------------------------- partials → new records

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        partials = self._combined(inputs[0])
        if partials is None or not len(partials):
            return together(self.step, ())
        members = partials[MEMBER] if self.members is not None else None
        keys = self.stored.tagged(one_array(partials[KEY]), members)
        old = work.states.read(self.stored.table, keys)
        before = dict(zip((field.name for field in self.stored.fields), self.stored.columns(old), strict=True))
        after = {
            one.name: one.accumulator.add(before[one.name], one_array(partials[f"a{n}"]))
            for n, one in enumerate(self._kept)
        }
        was, stays = self._there(before, partials), self._there(after, partials)
        key = [one_array(partials[f"k{n}"]) for n, _ in enumerate(self._key)]
        if work.states.keeps:
            values = self.stored.values([after[field.name] for field in self.stored.fields], key, len(partials))
            self._write(work, keys, old, values, was, stays)
        parts = []
        for columns, there, weight in ((before, was, -1), (after, stays, 1)):
            rows = dict(zip(self.key_names, key, strict=True)) | columns
            if members is not None:
                rows[MEMBER] = members
            rows[WEIGHT] = pa.array(np.full(len(partials), weight, np.int64))
            parts.append(pa.table(rows).filter(pa.array(there)))
        return together(self.step, parts)

    def _combined(self, parts: Sequence[pa.Table]) -> pa.Table | None:
        filled = [part for part in parts if len(part)]
        if not filled:
            return None
        found = filled[0] if len(filled) == 1 else pa.concat_tables(filled)
        if self.members is not None:
            found = self.members.translated(0, found)
        if len(filled) == 1:
            return found
        groups, first = numbered(found, one_array(found[KEY]))
        if len(first) == len(found):
            return found
        made = {name: one_array(found[name]).take(first) for name in found.column_names if not _is_sum(name)}
        for n, one in enumerate(self._kept):
            made[f"a{n}"] = one.accumulator.combine(one_array(found[f"a{n}"]), groups, len(first))
        return self._changing(pa.table(made))

    def _there(self, columns: dict[str, pa.Array], partials: pa.Table) -> Mask:
        counts = columns[self._rows].fill_null(0).to_numpy()
        if len(counts) and counts.min() < 0:
            row = int(np.argmin(counts))
            group = {name: readable(partials[f"k{n}"][row : row + 1])[0] for n, name in enumerate(self.key_names)}
            raise DamagedEntryError(
                f"{self.stored.state.name}: the group {group} would have {int(counts[row])} rows",
                detail="more rows were taken from it than it had",
                hint="the state does not fit the changes: rebuild the view",
            )
        found: Mask = counts > 0
        return found

    def _write(self, work: Work, keys: Bytes, old: Bytes, values: Bytes, was: Mask, stays: Mask) -> None:
        stay, go = pa.array(stays), pa.array(was & ~stays)
        work.states.write(
            self.stored.table,
            Puts(keys.filter(stay), values.filter(stay), old.filter(stay)),
            Deletes(keys.filter(go), old.filter(go)),
        )

    # -------------------------------------------------------------- other groups

    def values(self, work: Work, groups: pa.Table) -> pa.Table:
        members = groups[MEMBER] if self.members is not None else None
        keys = self.stored.keys([groups[name] for name in self.key_names], len(groups), members)
        found = self.stored.columns(work.states.read(self.stored.table, keys))
        return pa.table(found, names=[field.name for field in self.stored.fields])


class _Asked:
    """Expressions to evaluate together, each once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.expressions: list[Typed] = []

    def number(self, sql: str, kind: Type) -> int:
        found = self._numbers.get(sql)
        if found is None:
            found = self._numbers[sql] = len(self.expressions)
            self.expressions.append((sql, kind))
        return found


def _is_sum(name: str) -> bool:
    return name[0] == "a" and name[1:].isdigit()
