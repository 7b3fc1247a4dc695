"""UNION, INTERSECT and EXCEPT, with and without ALL: equal rows of both sides counted.

With l copies on the left and r on the right the result has n copies::

              ALL              without
    UNION     l + r            1 if l + r > 0
    INTERSECT min(l, r)        1 if l > 0 and r > 0
    EXCEPT    max(l − r, 0)    1 if l > 0 and r = 0

Copies are numbered where rows may come several times: n copies are those from 1 to n, so when n
changes, the last numbers come or go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from everview.change.entries import WEIGHT
from everview.operators.bound import BoundPlan
from everview.operators.distinct import Copies, Counts
from everview.operators.evaluation import one_array
from everview.operators.flow import columns_of, empty_changes
from everview.operators.members import MEMBER, Numbers
from everview.operators.stored import StoredRecords
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import SetOperator
from everview.plan.relations.sets import SetKind

_COPY = "set.copy"


class SetWorker(StepWorker):
    condenses = True

    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self.operator = step.operator_as(SetOperator)
        state = step.states[0]
        self.copies = Copies(StoredRecords(bound.state_table(step), state, self.members))
        self._sides = [next(n for n, f in enumerate(state.fields) if f.name == f"{side} copies") for side in _SIDES]
        """The places of the counts of either side in a record."""
        self._sent = [
            [(sql, part.type) for sql, part in zip(sent, state.key, strict=True)] for sent in self.operator.inputs
        ]

    def reads(self, number: int) -> Iterable[str]:
        return self.operator.inputs[number]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        names = self.copies.stored.key_names
        parts, changes = [], []
        for number, packed in enumerate(inputs):
            rows, weights = self._rows(work, number, self.gathered(number, packed))
            side = np.zeros((len(weights), 2), np.int64)
            side[:, self._sides[number]] = weights
            parts.append(rows)
            changes.append(side)
        rows = pa.concat_tables(parts)
        if not len(rows):
            return empty_changes(self.step)
        members = one_array(rows[MEMBER]) if self.members is not None else None
        counted = self.copies.counted(work, [rows[name] for name in names], members, np.concatenate(changes))
        row, weight, copy = self._numbered(self._result(counted.before), self._result(counted.after))
        chosen = pa.array(row)
        columns = {name: column.take(chosen) for name, column in zip(names, counted.columns, strict=True)}
        columns |= {_COPY: pa.array(copy), WEIGHT: pa.array(weight)}
        if counted.members is not None:
            columns[MEMBER] = counted.members.take(chosen)
        return pa.table({name: columns[name] for name in columns_of(self.step)})

    def _rows(self, work: Work, number: int, rows: pa.Table) -> tuple[pa.Table, Numbers]:
        """What a side sends, as rows of the result, with their weights."""
        found = work.evaluator.columns(self._sent[number], rows)
        work.quarantine.add(self.step, "row", rows, found.failed)
        beside = {MEMBER: rows[MEMBER]} if self.members is not None else {}
        made = pa.table(dict(zip(self.copies.stored.key_names, found.columns, strict=True)) | beside)
        weights = one_array(rows[WEIGHT]).to_numpy()
        if found.failed:
            kept = np.ones(len(rows), np.bool_)
            kept[list(found.failed)] = False
            made, weights = made.filter(pa.array(kept)), weights[kept]
        return made, weights

    def _result(self, counts: Counts) -> Numbers:
        """How many copies the result has."""
        left, right = counts[:, self._sides[0]], counts[:, self._sides[1]]
        many = self.operator.all
        match self.operator.kind:
            case SetKind.UNION:
                found = left + right
            case SetKind.INTERSECT:
                found = np.minimum(left, right)
            case SetKind.EXCEPT:
                found = np.maximum(left - right, 0) if many else left * (right == 0)
        return found if many else np.minimum(found, 1)

    def _numbered(self, before: Numbers, after: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Which rows come and go, with their weights and the numbers of their copies."""
        change = after - before
        size = np.abs(change)
        row = np.repeat(np.arange(len(change)), size)
        within = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
        copy = np.minimum(before, after)[row] + within + 1
        return row, np.sign(change)[row], copy


_SIDES = ("left", "right")
