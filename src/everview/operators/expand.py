"""Grouping sets: each change once for every set, with nulls for the columns outside it.

Δ(G₁ ∪ G₂ ∪ …)  =  ΔG₁ + ΔG₂ + …
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from everview.operators.bound import BoundPlan
from everview.operators.flow import together
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.expressions import quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import ExpandOperator


class ExpandWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self.operator = step.operator_as(ExpandOperator)

    def reads(self, number: int) -> Iterable[str]:
        made = {*self.operator.columns, self.operator.number}
        return [*self.operator.groups, *(quoted(field.name) for field in self.step.fields if field.name not in made)]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        operator = self.operator
        kinds = {field.name: field.type for field in self.step.fields}
        groups = dict(zip(operator.columns, operator.groups, strict=True))
        outputs = [
            (groups.get(name, "CAST(0 AS BIGINT)" if name == operator.number else quoted(name)), kind)
            for name, kind in kinds.items()
        ]
        whole, _ = self.computed(work, self.gathered(0, inputs[0]), outputs)
        names = whole.column_names
        parts = []
        for number, columns in enumerate(operator.sets):
            part = whole
            for place, name in enumerate(operator.columns):
                if name in kinds and place not in columns:
                    part = part.set_column(names.index(name), name, pa.nulls(len(whole), kinds[name].arrow))
            if operator.number in kinds:
                numbers = pa.array(np.full(len(whole), number, np.int64))
                part = part.set_column(names.index(operator.number), operator.number, numbers)
            parts.append(part)
        return together(self.step, parts)
