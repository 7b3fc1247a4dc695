"""DELTA: from log entries, or the rows of a snapshot, to changes of a base table.

One sentence: the old row goes, the new row comes; where the log tells the old row nothing is
kept, where it does not the table's last rows are state.

    ΔT  =  −old  +new        however often the key was written in between

A snapshot is changes with the weight +1.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from everview.change.condense import net_changes, with_weight
from everview.change.entries import HAD, INCARNATION, KEY, KIND, OLD, WEIGHT
from everview.change.schema import Schema
from everview.errors import DefinitionError
from everview.operators.bound import BoundPlan
from everview.operators.flow import empty_changes, together
from everview.operators.work import Changes, Work
from everview.plan.maintenance import Step
from everview.store.contract import LogBatch


class DeltaWorker:
    """The delta of one table."""

    def __init__(self, step: Step, bound: BoundPlan) -> None:
        self.step = step
        self.table = bound.tables[step.parameters["table"]]
        names: dict[str, str] = dict(step.parameters["columns"])
        self._real = [names[field.name] for field in step.fields]
        """What the table calls the step's fields."""
        used = [column for column in self.table.schema.columns if column.name in set(self._real)]
        self._used = Schema(tuple(used), self.table.schema.key, self.table.schema.version)

    def of_log(self, work: Work, batches: Sequence[LogBatch]) -> Changes:
        """The net effect of log entries, each batch in the order of its log."""
        found = [self._net(batch) for batch in batches]
        return together(self.step, [self._renamed(part) for part in found])

    def _net(self, batch: LogBatch) -> pa.Table:
        if not batch.before_images:
            raise DefinitionError(f"table {batch.table.name} has log entries without before-images")
        olds = [OLD + column.name for column in self._used.values]
        entries = batch.entries.select([KEY, KIND, INCARNATION, HAD, *self._used.names, *olds])
        return net_changes(entries, self._used)

    def of_rows(self, work: Work, rows: pa.Table) -> Changes:
        """Rows of a snapshot."""
        return self._renamed(with_weight(rows.select(list(self._used.names)), 1))

    def _renamed(self, changes: pa.Table) -> Changes:
        columns = [changes[name] for name in (*self._real, WEIGHT)]
        return pa.table(columns, names=[*(field.name for field in self.step.fields), WEIGHT])

    def pack(self, work: Work, number: int, changes: Changes) -> pa.Table:
        raise AssertionError("a delta reads no other step")

    def run(self, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        return empty_changes(self.step)
