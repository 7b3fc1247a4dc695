"""Window functions: touched partitions are evaluated before and after.

    Δω(R)  =  Σ over touched partitions p of  ω(R(p) + ΔR(p)) − ω(R(p))

A change may move the numbers, ranks and sums of all rows of its partition, so a change costs what
its partition costs. Rows whose values stay the same are in both answers and are not emitted.

Partitions are distinguished by their bags, in which SQL's equality already is (nulls are one
partition), so the functions' PARTITION BY is replaced by the number of the unit. Where a function
adds floats frame by frame, each unit is evaluated by itself (:mod:`everview.operators.rounding`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from sqlglot import exp

from everview.change.types import BIGINT
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import one_array
from everview.operators.flow import condensed, together
from everview.operators.partitions import UNIT, Partitions, answered, emitted
from everview.operators.rounding import frame_rounds
from everview.operators.rows_by_key import Bags
from everview.operators.work import Changes, StepWorker, Work
from everview.plan.expressions import fields_of, parsed, quoted, written
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import WindowOperator


class WindowWorker(StepWorker):
    def __init__(self, step: Step, bound: BoundPlan) -> None:
        super().__init__(step, bound)
        asked = step.operator_as(WindowOperator).calls
        calls = {call.name: by_unit(call.sql) for call in asked}
        texts = [calls.get(field.name, quoted(field.name)) for field in step.fields]
        self._query = f"SELECT {', '.join([UNIT, *texts])} FROM input"
        self._types = [(UNIT, BIGINT), *((field.name, field.type) for field in step.fields)]
        kinds = {field.name: field.type for field in self.sources[0].fields}
        self._alone = any(frame_rounds(call.sql, kinds) for call in asked)
        read = {name for sql in texts for name in fields_of(sql)}
        bags = Bags(self, 0)
        self._partitions = Partitions(bags, [name for name in bags.columns if name in read])

    def reads(self, number: int) -> Iterable[str]:
        return [quoted(field.name) for field in self.sources[number].fields]

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        parts = []
        for touched in self._partitions.touched(work, self.gathered(0, inputs[0])):
            found, failed = answered(lambda rows: self._evaluated(work, rows), touched.units(), alone=self._alone)
            self._partitions.quarantine(work, self.step, "partition", touched.groups, failed)
            for answer in found:
                units = one_array(answer[UNIT]).to_numpy()
                parts.append(emitted(self.step, answer.drop_columns([UNIT]), units, touched.groups))
        return condensed(together(self.step, parts))

    def _evaluated(self, work: Work, rows: pa.Table) -> pa.Table:
        return work.evaluator.query(self._query, self._types, {"input": rows})


def by_unit(sql: str) -> str:
    """A call of a window function, over the rows of each unit.

    >>> by_unit('SUM("t.a") OVER (PARTITION BY "t.b" ORDER BY "t.c")')
    'SUM("t.a") OVER (PARTITION BY "__unit" ORDER BY "t.c")'
    """
    tree = parsed(sql).copy()
    for window in tree.find_all(exp.Window):
        window.set("partition_by", [exp.column(exp.to_identifier(UNIT, quoted=True))])
    return written(tree)
