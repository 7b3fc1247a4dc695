"""Grouping sets: each change once for every set, with nulls for the columns outside it.

Δ(G₁ ∪ G₂ ∪ …)  =  ΔG₁ + ΔG₂ + …
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from everview.operators.flow import together
from everview.operators.work import Changes, Work
from everview.operators.worker import StepWorker
from everview.plan.expressions import quoted


class ExpandWorker(StepWorker):
    def reads(self, number: int) -> Iterable[str]:
        made = {*self.told["columns"], self.told["number"]}
        return [*self.told["groups"], *(quoted(field.name) for field in self.step.fields if field.name not in made)]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        told = self.told
        kinds = {field.name: field.type for field in self.step.fields}
        groups = dict(zip(told["columns"], told["groups"], strict=True))
        outputs = [
            (groups.get(name, "CAST(0 AS BIGINT)" if name == told["number"] else quoted(name)), kind)
            for name, kind in kinds.items()
        ]
        whole, _ = self.computed(work, self.gathered(0, inputs[0]), outputs)
        names = whole.column_names
        parts = []
        for number, columns in enumerate(told["sets"]):
            part = whole
            for place, name in enumerate(told["columns"]):
                if name in kinds and place not in columns:
                    part = part.set_column(names.index(name), name, pa.nulls(len(whole), kinds[name].arrow))
            if told["number"] in kinds:
                numbers = pa.array(np.full(len(whole), number, np.int64))
                part = part.set_column(names.index(told["number"]), told["number"], numbers)
            parts.append(part)
        return together(self.step, parts)
