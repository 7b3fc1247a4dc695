"""Batches of the stream: what Spark calls when the source offers it an epoch.

A batch has no rows, and its data frame is never executed. The store decides which epoch it does, whatever
Spark's number of the batch is; where no epoch of the stream is under way, this batch was committed before.

In a session of this process Spark calls the pipeline itself. Through Spark Connect the function is
pickled and called in a lasting child of the server, where there is no pipeline: then :class:`RemoteBatches`
opens the store, does the epoch and commits it there::

    client   lease, mover (begins epochs, does small ones), scheduler (builds, lazy groups), drain(), check()
    server   source: offers large epochs    RemoteBatches: does and commits them

The client stays the one that holds the lease. The server works for it, and stops when it is gone
(:mod:`everview.maintain.coordination`). How far the views are the client sees in the store; what fails in the
server ends the query, whose exception the client turns into the error it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from everview.catalog import Catalog
from everview.errors import EverviewError
from everview.maintain import Plans
from everview.maintain.coordination import require_holder, servers_of
from everview.maintain.epochs import Epochs, offered
from everview.store.contract import Store
from everview.store.opened import opened
from everview.zones.failures import error_of
from everview.zones.spark_executor import SparkExecutor


@dataclass(frozen=True)
class RemoteBatches:
    """The function of ``foreachBatch`` where it is not called in the process of the pipeline."""

    place: str
    machine: str
    group: str
    holder: str
    executor: type[SparkExecutor]

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        try:
            store = opened(self.place, self.machine)
            require_holder(store, self.holder)
            begun = offered(store, self.group)
            if begun is not None:
                self._epochs(store, batch.sparkSession).run(begun)
        except EverviewError:
            raise
        except Exception as error:
            raise error_of(error, f"an epoch of group {self.group} failed") from None

    def _epochs(self, store: Store, spark: SparkSession) -> Epochs:
        """The same from batch to batch: epochs have figures since when they are done here."""
        kept = _at_work.get(self)
        if kept is None:
            catalog = Catalog(store.metadata, store.views)
            plans = Plans(store, catalog)
            executor = self.executor(store, plans, spark, self.place, lambda: servers_of(store))
            kept = _at_work[self] = Epochs(store, catalog, plans, executor), executor
        kept[1].spark = spark
        return kept[0]


_at_work: dict[RemoteBatches, tuple[Epochs, SparkExecutor]] = {}
