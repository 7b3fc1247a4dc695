"""UNION ALL, and the rows that a query itself holds.

Δ(A ⊎ B)  =  ΔA + ΔB
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from everview.change.entries import WEIGHT
from everview.change.types import Type
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Unevaluable
from everview.operators.flow import columns_of, empty_changes, together
from everview.operators.members import MEMBER
from everview.operators.recursion import bounded_query
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import RowsOperator, UnionOperator


class UnionWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self.operator = step.operator_as(UnionOperator)

    def reads(self, number: int) -> Iterable[str]:
        return self.operator.inputs[number]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        parts = []
        for number, packed in enumerate(inputs):
            rows = self.gathered(number, packed)
            if len(rows):
                sent = dict(zip(self.operator.columns, self.operator.inputs[number], strict=True))
                outputs = [(_typed(sent[field.name], field.type), field.type) for field in self.step.fields]
                parts.append(self.computed(work, rows, outputs)[0])
        return together(self.step, parts)


def _typed(sql: str, kind: Type) -> str:
    """A part of a key that another input has and this one lacks is NULL of that type."""
    return f"CAST(NULL AS {kind})" if sql == "NULL" else sql


class RowsWorker(StepWorker):
    """VALUES, generate_series and the like: there from the beginning, and never changed."""

    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self.operator = step.operator_as(RowsOperator)

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        if not (work.first(self.step) and work.leads):
            return empty_changes(self.step)
        kinds = {field.name: field.type for field in self.step.fields}
        named = sorted((name for name in kinds if name != "rows.number"), key=lambda name: int(name.partition(".")[2]))
        try:
            found = work.evaluator.query(bounded_query(self.operator), [(name, kinds[name]) for name in named], {})
        except Unevaluable as error:
            work.quarantine.add(self.step, "rows", pa.table({WEIGHT: [1]}), {0: str(error)})
            return empty_changes(self.step)
        if "rows.number" in kinds:
            found = found.append_column("rows.number", pa.array(np.arange(1, len(found) + 1)))
        found = found.append_column(WEIGHT, pa.array(np.ones(len(found), np.int64)))
        if self.members is not None:
            found = found.append_column(MEMBER, pa.array(np.zeros(len(found), np.int32)))
        return found.select(columns_of(self.step))
