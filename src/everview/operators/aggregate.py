"""Aggregates: the parts of a group put together.

A group's row before and after the epoch is made of what its parts held before and
hold after; parts that did not change are asked for what they held.

    SELECT customer, count(*), avg(amount), max(amount) … GROUP BY customer

    part                 changes of E                 group 7 as of E − 1      group 7 as of E
    pre-aggregation      7: n 2 → 3, s 30 → 34        (2, 15.0, 20)        →   (3, 11.33, 20)
    extreme              none for 7: asked, max 20

A group is there while it has rows; the groups of a query, or of a grouping set, without columns
are always there, also over nothing. A sum that does not fit its type leaves its group without a
row, and is recorded in quarantine; the sum itself is kept exactly, so the group comes back. A group that
could not be evaluated again, which that part has recorded in quarantine, has no row either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import KEY, WEIGHT
from everview.change.schema import KeyPart
from everview.change.types import Type
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import one_array
from everview.operators.extreme import ExtremeWorker
from everview.operators.flow import condensed, member_bytes, together
from everview.operators.group_reevaluation import ANSWERED, GroupReevaluationWorker
from everview.operators.limbs import Mask
from everview.operators.members import MEMBER
from everview.operators.pre_aggregation import PreAggregationWorker
from everview.operators.results import result
from everview.operators.stored import Keys
from everview.operators.work import AggregatePart, Changes, StepWorker, Work
from everview.plan.expressions import quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    ExtremeOperator,
    GroupReevaluationOperator,
    PreAggregationOperator,
)
from everview.plan.maintenance.operator_parts import PartColumn
from everview.store.encoding.fitting import fit
from everview.store.encoding.ragged import Bytes, glue

PARTS: Mapping[type[Operator], Callable[[Step, BoundPlan], AggregatePart]] = {
    PreAggregationOperator: PreAggregationWorker,
    ExtremeOperator: ExtremeWorker,
    GroupReevaluationOperator: GroupReevaluationWorker,
}

Columns = Mapping[str, pa.Array]


@dataclass(frozen=True)
class _ShownAggregate:
    """A shown column: a function of columns of parts."""

    name: str
    type: Type
    function: str
    held: tuple[PartColumn, ...]
    argument: Type | None
    """Of a sum or an average."""


class AggregateWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        kinds = {field.name: field.type for field in step.fields}
        self.operator = operator = step.operator_as(AggregateOperator)
        self.key_names = operator.key
        self._parts = [PARTS[type(source.operator)](source, bound) for source in self.sources]
        self._keys = Keys(tuple(KeyPart(name, kinds[name], nullable=True) for name in self.key_names), step.title)
        self._calls = tuple(
            _ShownAggregate(call.name, kinds[call.name], call.function, call.columns, self._argument(call.columns))
            for call in operator.calls
        )
        self._counted = operator.groups
        counted = self.sources[operator.groups].operator_as(PreAggregationOperator)
        self._rows = next(one.name for one in counted.accumulators if one.argument is None and one.filter is None)
        self._held = [
            list(dict.fromkeys(one.column for call in self._calls for one in call.held if one.part == number))
            for number, _ in enumerate(self.sources)
        ]
        if self._rows not in self._held[self._counted]:
            self._held[self._counted].append(self._rows)

    def _argument(self, held: tuple[PartColumn, ...]) -> Type | None:
        if len(held) < 2:
            return None
        sums = self.sources[held[0].part].operator_as(PreAggregationOperator)
        return next(one.argument_type for one in sums.accumulators if one.name == held[0].column)

    def reads(self, number: int) -> Iterable[str]:
        return [quoted(name) for name in (*self.key_names, *self._held[number])]

    # -------------------------------------------------------------- the epoch

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        changed = [self._keyed(self.gathered(number, parts)) for number, parts in enumerate(inputs)]
        groups = self._groups(work, changed)
        if not len(groups):
            return together(self.step, ())
        keys = one_array(groups[KEY])
        sides: tuple[list[Columns], list[Columns]] = ([], [])
        for number, rows in enumerate(changed):
            for side, columns in zip(sides, self._values(work, number, rows, groups), strict=True):
                side.append(columns)
        always = np.zeros(len(groups), np.bool_)
        if self.operator.always:
            always = pc.is_in(keys, value_set=one_array(self._always(work)[KEY])).to_numpy(zero_copy_only=False)
        first = work.first(self.step)
        parts = []
        for columns_of_parts, weight, ever in zip(sides, (-1, 1), (always & (not first), always), strict=True):
            counts = columns_of_parts[self._counted][self._rows].fill_null(0).to_numpy()
            there = (counts > 0) | ever
            for answered in (columns[ANSWERED] for columns in columns_of_parts if ANSWERED in columns):
                there &= answered.fill_null(False).to_numpy(zero_copy_only=False)
            parts.append(self._shown(work, groups, columns_of_parts, there, weight))
        return condensed(together(self.step, parts))

    def _keyed(self, rows: pa.Table) -> pa.Table:
        keys = self._keys.encode([rows[name] for name in self.key_names], len(rows))
        if self.members is not None:
            keys = glue(member_bytes(rows[MEMBER]), keys)
        return rows.append_column(KEY, keys)

    def _groups(self, work: Work, changed: Sequence[pa.Table]) -> pa.Table:
        """Each group that any part changed, once: its key, and its member."""
        names = [KEY, *self.key_names, *([MEMBER] if self.members is not None else [])]
        tables = [rows.select(names) for rows in changed if len(rows)]
        if work.first(self.step):
            there = self._always(work)
            tables.append(there.filter(pa.array(work.owns(self.step, self._bare(there)))).select(names))
        if not tables:
            return self._always(work).select(names)[:0]
        found = pa.concat_tables(tables)
        keys = one_array(found[KEY])
        return found.take(pc.index_in(pc.unique(keys), value_set=keys))

    def _bare(self, groups: pa.Table) -> Bytes:
        return self._keys.encode([groups[name] for name in self.key_names], len(groups))

    def _always(self, work: Work) -> pa.Table:
        """The groups that are there even over nothing."""
        kinds = {field.name: field.type for field in self.step.fields}
        rows = self.operator.always
        columns = [
            work.evaluator.query(
                " UNION ALL ".join(f"SELECT CAST({row[n]} AS {kinds[name]})" for row in rows), [(name, kinds[name])], {}
            )[name]
            if rows
            else pa.nulls(0, kinds[name].arrow)
            for n, name in enumerate(self.key_names)
        ]
        count = len(rows)
        members = 1 if self.members is None else len(self.members)
        spread = pa.array(np.tile(np.arange(count), members))
        found = {name: one_array(column).take(spread) for name, column in zip(self.key_names, columns, strict=True)}
        keys = self._keys.encode(list(found.values()), count * members)
        if self.members is not None:
            found[MEMBER] = pa.array(np.repeat(np.arange(members, dtype=np.int32), count))
            keys = glue(member_bytes(found[MEMBER]), keys)
        return pa.table({KEY: keys} | found)

    def _values(self, work: Work, number: int, rows: pa.Table, groups: pa.Table) -> tuple[Columns, Columns]:
        """What a part held and holds of each group, row by row."""
        names = self._held[number]
        keys, own = one_array(groups[KEY]), one_array(rows[KEY])
        weights = one_array(rows[WEIGHT]).to_numpy()
        held = {name: one_array(rows[name]) for name in names}
        if isinstance(self.sources[number].operator, GroupReevaluationOperator):
            held[ANSWERED] = pa.array(np.ones(len(rows), np.bool_))
        other = np.flatnonzero(~pc.is_in(keys, value_set=own).to_numpy(zero_copy_only=False))
        if len(other) and not work.first(self.sources[number]):
            asked = self._asked(work, number, groups.take(pa.array(other)))
            held = {name: pa.concat_arrays([column, one_array(asked[name])]) for name, column in held.items()}
        else:
            other = other[:0]
        sides: list[Columns] = []
        for sign in (-1, 1):
            chosen = np.flatnonzero(weights == sign)
            place = np.full(len(keys), -1, np.int64)
            at = pc.index_in(own.take(pa.array(chosen)), value_set=keys).to_numpy()
            place[at] = chosen
            place[other] = len(rows) + np.arange(len(other))
            taken = pa.array(place, mask=place < 0)
            sides.append({name: column.take(taken) for name, column in held.items()})
        return sides[0], sides[1]

    def _asked(self, work: Work, number: int, groups: pa.Table) -> pa.Table:
        theirs = self._parts[number].key_names
        named = {KEY: groups[KEY]}  # so that groups without key columns can be counted
        named |= {their: groups[own] for their, own in zip(theirs, self.key_names, strict=True)}
        if self.members is not None and (numbers := self.members.from_inputs[number]) is not None:
            named[MEMBER] = pa.array(numbers[one_array(groups[MEMBER]).to_numpy()].astype(np.int32))
        return self._parts[number].values(work, pa.table(named))

    # -------------------------------------------------------------- results

    def _shown(self, work: Work, groups: pa.Table, parts: Sequence[Columns], there: Mask, weight: int) -> Changes:
        """The rows of groups that are there, with a weight."""
        rows = {name: one_array(groups[name]) for name in self.key_names}
        failed: dict[int, str] = {}
        for call in self._calls:
            rows[call.name] = self._called(call, parts, there, failed)
        if self.members is not None:
            rows[MEMBER] = one_array(groups[MEMBER])
        rows[WEIGHT] = pa.array(np.full(len(groups), weight, np.int64))
        made = pa.table(rows)
        if failed:
            beside = [MEMBER, WEIGHT] if self.members is not None else [WEIGHT]
            work.quarantine.add(self.step, "group", made.select([*self.key_names, *beside]), failed)
            there = there.copy()
            there[list(failed)] = False
        return made.filter(pa.array(there))

    def _called(self, call: _ShownAggregate, parts: Sequence[Columns], there: Mask, failed: dict[int, str]) -> pa.Array:
        columns = [parts[one.part][one.column] for one in call.held]
        if call.argument is None:
            (value,) = columns
            if call.function == "count":
                return _as(value.fill_null(0), call.type)
            return _as(value, call.type)
        total, count = columns
        found = result(call.function, call.argument, total, count)
        for row in np.flatnonzero(found.overflow & there).tolist():
            failed[row] = found.message
        return _as(found.values, call.type)


def _as(values: pa.Array, kind: Type) -> pa.Array:
    return values if values.type == kind.arrow else fit(values, kind)
