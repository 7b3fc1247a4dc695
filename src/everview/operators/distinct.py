"""DISTINCT: equal rows counted, and told when the first appears and when the last one goes.

Δδ(R)(r)  =  [ n(r) + Δn(r) > 0 ]  −  [ n(r) > 0 ]             n(r) copies of r before
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from everview.change.entries import WEIGHT
from everview.operators.bound import BoundPlan
from everview.operators.copies import Copies, crossings
from everview.operators.evaluation import one_array
from everview.operators.flow import columns_of
from everview.operators.members import MEMBER
from everview.operators.stored import StoredRecords
from everview.operators.work import Changes, Work
from everview.operators.worker import StepWorker
from everview.plan.maintenance import Step


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
