"""Zone 1: from log slices to blocks for view servers.

One sentence: the task that is handed slice descriptors reads those slices itself, reduces
them to their net effect on each group of each view, and addresses that to the view server
that owns the group.

It only reads: running it again, or twice at once, has no effect.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from everview.change.condense import net_changes
from everview.change.entries import HAD, INCARNATION, KEY, KIND, OLD
from everview.change.frontier import Slice
from everview.change.schema import Schema
from everview.errors import DefinitionError, StaleEpochError
from everview.operators.plan import EpochPlan
from everview.store.contract import Damage, LogBatch, Store, Table
from everview.store.opened import opened
from everview.zones.blocks import REPORT, Block, cut, to_spark
from everview.zones.reports import Clock, Report
from everview.zones.servers import owners

REPORTS_TO = 0
"""The server that passes the reports of this zone on."""


@dataclass(frozen=True)
class Distributor:
    """The task of zone 1: a function for ``mapInArrow`` from descriptors to blocks."""

    place: str
    epoch: int
    plan: bytes
    servers: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        slices = tuple(piece for batch in batches for piece in self._slices(batch))
        if slices:
            yield to_spark(list(self.run(opened(self.place), slices)))

    def _slices(self, batch: pa.RecordBatch) -> Iterator[Slice]:
        epochs, *columns = (column.to_pylist() for column in batch.columns)
        if set(epochs) - {self.epoch}:
            raise StaleEpochError(
                f"a task of epoch {self.epoch} was handed slices of epoch {max(epochs)}",
                hint="is another pipeline maintaining the same group? one of them must stop",
            )
        return map(Slice, *columns)

    def run(self, store: Store, slices: tuple[Slice, ...]) -> Iterator[Block]:
        """Read the slices, and yield the blocks of every view and one report."""
        clock = Clock()
        plan = EpochPlan.from_bytes(self.plan)
        damaged: list[Damage] = []
        partials: list[list[pa.Table]] = [[] for _ in plan.views]
        entries = changes = 0
        for piece in slices:
            with clock("read log"):
                content = store.log.read(piece, list(plan.tables))
            damaged += content.damaged
            for batch in content.batches:
                with clock("condense"):
                    net = net_changes(_with_images(batch, plan.tables), plan.tables[batch.table])
                entries, changes = entries + len(batch.entries), changes + len(net)
                with clock("aggregate"):
                    for view, found in zip(plan.views, partials, strict=True):
                        if view.table == batch.table:
                            found.append(view.target.partial(net))
        for number, (view, found) in enumerate(zip(plan.views, partials, strict=True)):
            if found:
                with clock("aggregate"):
                    together = view.target.aggregate.combine(found) if len(found) > 1 else found[0]
                with clock("cut"):
                    keys = together[KEY].combine_chunks()
                    yield from cut(together, owners(keys, store.views.parts, self.servers), number)
        report = Report(slices, tuple(damaged), {"entries": entries, "changes": changes}, clock.seconds)
        yield Block(REPORTS_TO, REPORT, report.to_json().encode())


def _with_images(batch: LogBatch, tables: dict[Table, Schema]) -> pa.Table:
    """The columns that matter of entries with before-images."""
    if not batch.before_images:
        raise DefinitionError(
            f"table {batch.table.name} has log entries without before-images",
            detail="the change of a view needs the row before the write",
            hint="make the store with before_images=True",
        )
    schema = tables[batch.table]
    olds = [OLD + column.name for column in schema.values]
    return batch.entries.select([KEY, KIND, INCARNATION, HAD, *schema.names, *olds])


def settle() -> None:
    """Spark's worker loop runs a full garbage collection after every task, 40 ms over all the
    modules that are loaded. What is there when the first task begins will stay: it is taken
    out of the collector's sight."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
