"""The items of each row's own list.

Δunnest(R)  =  unnest(ΔR)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from everview.change.types import BIGINT
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Unevaluable
from everview.operators.flow import columns_of
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.expressions import quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import UnnestOperator

_ROW = "__n"


class UnnestWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        self.operator = operator = step.operator_as(UnnestOperator)
        kinds = {field.name: field.type for field in step.fields}
        self._types = [(_ROW, BIGINT)]
        made = [_ROW]
        for name, sql in (
            (operator.item, f"UNNEST({operator.items})"),
            (operator.position, f"GENERATE_SUBSCRIPTS({operator.items}, 1)"),
        ):
            if name in kinds:
                self._types.append((name, kinds[name]))
                made.append(sql)
        if len(made) == 1:
            made.append(f"UNNEST({operator.items})")
            self._types.append(("__item", next(f.type for f in step.fields)))
        self._query = f"SELECT {', '.join(made)} FROM input"

    def reads(self, number: int) -> Iterable[str]:
        own = {self.operator.item, self.operator.position}
        return [self.operator.items, *(quoted(field.name) for field in self.step.fields if field.name not in own)]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        rows = self.gathered(0, inputs[0])
        numbered = rows.append_column(_ROW, pa.array(np.arange(len(rows))))
        failed: dict[int, str] = {}
        items = pa.concat_tables(self._items(work, numbered, 0, failed))
        work.quarantine.add(self.step, "row", rows, failed)
        chosen = items[_ROW]
        if self.operator.outer:
            alone = np.ones(len(rows), np.bool_)
            alone[[*failed]] = False
            alone[chosen.to_numpy()] = False
            empty = {name: pa.nulls(int(alone.sum()), kind.arrow) for name, kind in self._types[1:]}
            more = pa.table({_ROW: pa.array(np.flatnonzero(alone))} | empty)
            items = pa.concat_tables([items, more])
            chosen = items[_ROW]
        found = rows.take(chosen)
        for name, _ in self._types[1:]:
            found = found.append_column(name, items[name])
        return found.select(columns_of(self.step))

    def _items(self, work: Work, rows: pa.Table, at: int, failed: dict[int, str]) -> list[pa.Table]:
        nothing = pa.table([pa.nulls(0, k.arrow) for _, k in self._types], names=[n for n, _ in self._types])
        if not len(rows):
            return [nothing]
        try:
            return [work.evaluator.query(self._query, self._types, {"input": rows})]
        except Unevaluable as error:
            if len(rows) == 1:
                failed[at] = str(error)
                return [nothing]
        middle = len(rows) // 2
        return [*self._items(work, rows[:middle], at, failed), *self._items(work, rows[middle:], at + middle, failed)]
