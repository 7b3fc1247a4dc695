"""Aggregates that are neither added up nor found at the end of a bag: the group is evaluated again.

    Δγ(R)  =  Σ over touched groups g of  γ(R(g) + ΔR(g)) − γ(R(g))

A change costs what the rows of its group cost. Of a group, the row before goes and the row after
comes; a group without rows has none, but the group of a query, or of a grouping set, without any
column, which is there over nothing too.

A part of an aggregate: the step that puts parts together asks for the values of groups that only other
parts saw a change of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import KEY
from everview.change.types import BIGINT
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Unevaluable, one_array
from everview.operators.flow import condensed, together
from everview.operators.members import MEMBER
from everview.operators.partitions import UNIT, Numbers, Partitions, TouchedPartitions, answered, emitted
from everview.operators.rows_by_key import Bags
from everview.operators.stored import Keys
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.expressions import fields_of, quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import GroupReevaluationOperator

ANSWERED = "__answered"
"""Whether a group could be evaluated. Nulls may be its values."""


class GroupReevaluationWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        kinds = {field.name: field.type for field in step.fields}
        self.operator = step.operator_as(GroupReevaluationOperator)
        self.key_names = self.operator.key_names
        calls = {call.name: call.sql for call in self.operator.calls}
        self._calls = [(name, kinds[name]) for name in calls]
        self._nothing = f"SELECT {', '.join(calls.values())} FROM input"
        self._query = f"SELECT {', '.join([UNIT, *calls.values()])} FROM input GROUP BY {UNIT}"
        read = {name for sql in calls.values() for name in fields_of(sql)}
        self._bags = Bags(self, 0)
        self._partitions = Partitions(self._bags, [name for name in self._bags.columns if name in read])

    def reads(self, number: int) -> Iterable[str]:
        return [quoted(field.name) for field in self.sources[number].fields]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        changes = self.gathered(0, inputs[0])
        parts = [self._changes(work, touched) for touched in self._partitions.touched(work, changes)]
        if self.operator.always and work.first(self.step):
            parts.append(self._beginning(work, changes))
        return condensed(together(self.step, parts))

    def values(self, work: Work, groups: pa.Table) -> pa.Table:
        """The values of groups as of the last epoch, row by row, and which have any: null where there is none."""
        named = {column: groups[name] for column, name in zip(self._bags.key_columns, self.key_names, strict=True)}
        if self.members is not None:
            named[MEMBER] = groups[MEMBER]
        if not named:
            named["__n"] = pa.chunked_array([np.zeros(len(groups), np.int32)])
        keyed = self._bags.with_keys(pa.table(named))
        different = self._bags.touched(keyed)
        touched = self._partitions.read(work, different)
        units, found, _ = self._answers(work, touched, (False,))
        place = np.full(len(different), -1, np.int64)
        place[units // 2] = np.arange(len(units))
        row = place[pc.index_in(one_array(keyed[KEY]), value_set=one_array(different[KEY])).to_numpy()]
        there = pa.array(np.ones(len(found), np.bool_))
        return found.append_column(ANSWERED, there).take(pa.array(row, mask=row < 0))

    # -------------------------------------------------------------- groups before and after

    def _changes(self, work: Work, touched: TouchedPartitions) -> Changes:
        first = work.first(self.step)
        units, found, failed = self._answers(work, touched, (True,) if first else (False, True))
        self._partitions.quarantine(work, self.step, "group", touched.groups, failed)
        return self._rows(touched.groups, units, found)

    def _rows(self, groups: pa.Table, units: Numbers, found: pa.Table) -> Changes:
        place = pa.array(units // 2)
        for name, column in zip(self.key_names, self._partitions.keys(groups), strict=True):
            if name not in found.column_names:
                found = found.append_column(name, column.take(place))
        return emitted(self.step, found, units, groups)

    def _answers(
        self, work: Work, touched: TouchedPartitions, sides: Sequence[bool]
    ) -> tuple[Numbers, pa.Table, dict[int, str]]:
        """The units that have an answer, and their answers; and the reasons of those without."""
        rows = touched.units(sides)

        def evaluate(part: pa.Table) -> pa.Table:
            return work.evaluator.query(self._query, [(UNIT, BIGINT), *self._calls], {"input": part})

        parts, failed = answered(evaluate, rows)
        there = np.array([], np.int64) if not parts else pa.concat_tables([p.select([UNIT]) for p in parts])[UNIT]
        units = np.asarray(there, np.int64)
        found = pa.concat_tables([part.drop_columns([UNIT]) for part in parts]) if parts else self._none()
        if self.operator.always:
            ever = pc.is_in(touched.groups[KEY], value_set=one_array(self._always(work)[KEY]))
            wanted = 2 * np.flatnonzero(ever.to_numpy())[:, None] + np.array(sides, np.int64)
            empty = np.setdiff1d(wanted, one_array(rows[UNIT]).to_numpy())
            over_nothing = self._over_nothing(work)
            if len(empty) and over_nothing is not None:
                units = np.concatenate([units, empty])
                found = pa.concat_tables([found, over_nothing.take(pa.array(np.zeros(len(empty), np.int64)))])
        return units, found, failed

    # -------------------------------------------------------------- over nothing

    def _beginning(self, work: Work, changes: Changes) -> Changes:
        """The groups that are always there and that no change touches when the step begins."""
        groups = self._always(work)
        touched = one_array(self._bags.with_keys(changes)[KEY])
        parts = tuple(replace(part, nullable=True) for part in self._bags.stored.state.key)
        keys = Keys(parts, self.step.title).encode([groups[name] for name in self._bags.key_columns], len(groups))
        new = ~pc.is_in(groups[KEY], value_set=touched).to_numpy() & work.owns(self.step, keys)
        groups = groups.filter(pa.array(new))
        found = self._over_nothing(work)
        if not len(groups) or found is None:
            return together(self.step, ())
        numbers = np.arange(len(groups))
        return self._rows(groups, 2 * numbers + 1, found.take(pa.array(0 * numbers)))

    def _always(self, work: Work) -> pa.Table:
        """The groups that are there even over nothing: the columns of the key, the member, KEY."""
        rows = self.operator.always
        members = 1 if self.members is None else len(self.members)
        spread = pa.array(np.tile(np.arange(len(rows)), members))
        found: dict[str, pa.Array] = {}
        for number, (name, part) in enumerate(zip(self._bags.key_columns, self._bags.stored.state.key, strict=True)):
            query = " UNION ALL ".join(f"SELECT CAST({row[number]} AS {part.type})" for row in rows)
            found[name] = one_array(work.evaluator.query(query, [(name, part.type)], {})[name]).take(spread)
        if self.members is not None:
            found[MEMBER] = pa.array(np.repeat(np.arange(members, dtype=np.int32), len(rows)))
        return self._bags.with_keys(pa.table(found or {"__n": spread}))

    def _over_nothing(self, work: Work) -> pa.Table | None:
        kinds = {field.name: field.type.arrow for field in self.sources[0].fields}
        empty = pa.table(
            {name: pa.nulls(0, kinds[name]) for name in self._partitions.wanted} or {"__n": pa.array([], pa.int64())}
        )
        try:
            return work.evaluator.query(self._nothing, self._calls, {"input": empty})
        except Unevaluable:
            return None

    def _none(self) -> pa.Table:
        return pa.table([pa.nulls(0, kind.arrow) for _, kind in self._calls], names=[name for name, _ in self._calls])
