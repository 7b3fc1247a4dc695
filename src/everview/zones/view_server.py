"""The view server: from blocks to the new state of the groups it owns.

One sentence: a view server adds the partials of its groups to their state as of the last
epoch and writes the sum stamped with this epoch, so that running it twice writes the same
bytes twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from everview.change.entries import KEY
from everview.operators.plan import AggregatePlan, EpochPlan
from everview.store.contract import Store
from everview.store.opened import opened
from everview.zones.blocks import REPORT, from_spark
from everview.zones.distributor import settle
from everview.zones.reports import Clock, Report

SPARK_SCHEMA = StructType([StructField("report", StringType(), nullable=False)])
_SCHEMA = pa.schema([("report", pa.string())])


@dataclass(frozen=True)
class ViewServer:
    """The task after the shuffle: a function for ``mapInArrow`` from blocks to reports."""

    place: str
    epoch: int
    base: int
    plan: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        passed_on: list[str] = []
        tables: dict[int, list[pa.Table]] = defaultdict(list)
        for batch in batches:
            for block in from_spark(batch):
                if block.subject == REPORT:
                    passed_on.append(block.content.decode())
                else:
                    tables[block.subject].append(block.table)
        if tables:
            passed_on.append(self.run(opened(self.place), tables).to_json())
        yield pa.record_batch([passed_on], schema=_SCHEMA)

    def run(self, store: Store, partials: dict[int, list[pa.Table]]) -> Report:
        """Bring the state of all groups in the partials to this epoch."""
        clock = Clock()
        plan = EpochPlan.from_bytes(self.plan)
        counts = {"groups": 0, "groups gone": 0}
        for number in sorted(partials):
            written, gone = self._maintain(store, plan.views[number], partials[number], clock)
            counts = {"groups": counts["groups"] + written, "groups gone": counts["groups gone"] + gone}
        return Report(counts=counts, seconds=clock.seconds)

    def _maintain(self, store: Store, view: AggregatePlan, partials: list[pa.Table], clock: Clock) -> tuple[int, int]:
        target = view.target
        with clock("combine"):
            delta = target.aggregate.combine(partials)
            keys = delta[KEY].combine_chunks()
        with clock("read state"):
            before = store.views.read(view.state, keys, self.base)
        with clock("step"):
            step = target.step(before, delta)
            puts, deletes = target.writes(step, before)
        with clock("write state"):
            store.views.write(view.state, self.epoch, puts, deletes)
        return len(puts.keys), len(deletes.keys)
