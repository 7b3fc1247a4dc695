"""One epoch on Spark: two Python stages, one shuffle, one commit.

One sentence: the epoch under way in the store is run over the slice descriptors Spark hands
us, and committed when the reports of its tasks say that all of it was read.

::

    descriptors ──mapInArrow──▶ blocks ──repartitionById──▶ blocks ──mapInArrow──▶ reports
                  Distributor           (the one shuffle)            ViewServer       │
                                                                      commit ◀────────┘
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import DataFrame

from everview.catalog import Catalog
from everview.catalog.quarantine import UNKNOWN, QuarantineEntry
from everview.store.contract import Begun, Damage, Store
from everview.zones import blocks, view_server
from everview.zones.distributor import Distributor
from everview.zones.reports import Clock, EpochReport, Report, require_whole, total
from everview.zones.view_server import ViewServer


@dataclass(frozen=True)
class EpochRunner:
    """Runs the epochs of a group."""

    place: str
    group: str
    servers: int

    def run(self, store: Store, begun: Begun, descriptors: DataFrame) -> EpochReport:
        """Run the epoch under way over the descriptors of its slices, and commit it."""
        clock = Clock()
        started = time.perf_counter()
        with clock("spark job"):
            report = self._tasks(begun, descriptors)
        require_whole(begun, report.slices)
        with clock("commit"):
            _set_aside(store, report.damaged)
            store.views.commit(self.group, begun.epoch)
        with clock("sweep"):
            store.views.sweep(self.group)
        return EpochReport(
            begun.epoch,
            begun.start,
            begun.frontier,
            report.damaged,
            report.counts,
            report.seconds | clock.seconds,
            time.perf_counter() - started,
        )

    def _tasks(self, begun: Begun, descriptors: DataFrame) -> Report:
        placed = (
            descriptors.mapInArrow(self.distributor(begun), blocks.SPARK_SCHEMA)
            .repartitionById(self.servers, "server")
            .mapInArrow(self.view_server(begun), view_server.SPARK_SCHEMA)
        )
        return total(Report.from_json(row.report) for row in placed.collect())

    def distributor(self, begun: Begun) -> Distributor:
        return Distributor(self.place, begun.epoch, begun.plan, self.servers)

    def view_server(self, begun: Begun) -> ViewServer:
        return ViewServer(self.place, begun.epoch, begun.base, begun.plan)


def _set_aside(store: Store, damaged: tuple[Damage, ...]) -> None:
    """Log entries that could not be read are recorded before the epoch that passes them is
    committed; a retry records them again under the same names."""
    if damaged:
        now = time.time()
        Catalog(store.metadata).quarantine.add(
            QuarantineEntry(UNKNOWN if entry.table is None else entry.table, entry.position, entry.reason, now)
            for entry in damaged
        )
