"""What all workers have in common: their inputs, their members, and the columns they compute.

A worker is a step with its texts and codecs made ready once, so that an epoch costs
only what its changes cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from everview.change.entries import WEIGHT
from everview.operators.bound import BoundPlan
from everview.operators.evaluation import Typed
from everview.operators.flow import condensed, empty_changes
from everview.operators.members import MEMBER
from everview.operators.work import Changes, Work
from everview.plan.expressions import fields_of, quoted
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import ComputingOperator


class StepWorker:
    """A step that is made ready to work."""

    condenses = False
    """Whether what is sent to the step is condensed first: worth it where a row costs more than that."""

    def __init__(self, step: Step, bound: BoundPlan) -> None:
        self.step = step
        self.bound = bound
        self.sources = tuple(bound.plan.step(one.step) for one in step.inputs)
        self.members = bound.members(step)
        columns = step.operator.computed if isinstance(step.operator, ComputingOperator) else ()
        computed = {column.name: column.sql for column in columns}
        self.outputs: tuple[Typed, ...] = tuple(
            (computed.get(field.name, quoted(field.name)), field.type) for field in step.fields
        )
        """What the step's fields are in columns of its (one) input."""

    def reads(self, number: int) -> Iterable[str]:
        """The expressions that the step evaluates over an input."""
        return [sql for sql, _ in self.outputs]

    def needed(self, number: int) -> list[str]:
        """The columns of an input that the step reads, in their order there."""
        read = {name for sql in self.reads(number) for name in fields_of(sql)}
        source = self.sources[number]
        return [field.name for field in source.fields if field.name in read] + ([MEMBER] if source.constants else [])

    def pack(self, work: Work, number: int, changes: Changes) -> pa.Table:
        found = changes.select([*self.needed(number), WEIGHT])
        return condensed(found) if self.condenses else found

    def gathered(self, number: int, parts: Sequence[pa.Table]) -> Changes:
        """What was packed for an input, in one table, under the numbers of the step's own members."""
        filled = [part for part in parts if len(part)]
        if not filled:
            found = empty_changes(self.sources[number]).select([*self.needed(number), WEIGHT])
        elif len(filled) == 1:
            found = filled[0]
        else:
            found = pa.concat_tables(filled)
            found = condensed(found) if self.condenses else found
        return found if self.members is None else self.members.translated(number, found)

    def computed(self, work: Work, rows: pa.Table, outputs: Sequence[Typed] | None = None) -> tuple[Changes, pa.Table]:
        """The step's fields of rows, with members and weights; rows without a value are left out
        and set aside. Also those of the rows that have one."""
        found = work.evaluator.columns(self.outputs if outputs is None else outputs, rows)
        beside = [name for name in (MEMBER, WEIGHT) if name in rows.column_names]
        made = pa.table(
            [*found.columns, *(rows[name] for name in beside)],
            names=[*(field.name for field in self.step.fields), *beside],
        )
        if not found.failed:
            return made, rows
        work.quarantine.add(self.step, "row", rows, found.failed)
        kept = np.ones(len(rows), np.bool_)
        kept[list(found.failed)] = False
        return made.filter(pa.array(kept)), rows.filter(pa.array(kept))
