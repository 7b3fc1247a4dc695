"""The streaming source: Spark's offsets are epochs of the store.

When the logs have grown, the source begins the group's next epoch in the
store, and the offset that it returns to Spark is that epoch's number; the rows it yields are descriptors of
log slices, so that no log byte passes through the JVM.

Spark calls four methods of its source, and the store answers all of them::

    initialOffset            the last committed epoch
    latestOffset(start)      the stream's epoch under way; else begin one; else start (nothing new)
    partitions(start, end)   the slices of the epoch under way, shared out among tasks
    read(partition)          rows (epoch, node, after, upto, piece, leads)

Beginning the epoch *here* makes Spark's bookkeeping a mere echo. Whatever Spark remembers
or has forgotten (a checkpoint that was lost, one that lags behind a crash, one that is ahead
of a store which a power loss has set back), the slices are those of the epoch that is
under way in the store, with the frontier it was begun with::

    store: committed 6, begun 7     Spark replays the batch of 7     7 is finished
    store: committed 7              Spark replays the batch of 7     no slices, nothing to do
    store: committed 7, begun 8     Spark lost everything            8 is finished, as begun
    store: begun 7 (set back)       Spark has 7 as done              offered again, marked so

Admission control: an epoch takes at most ``operations`` log entries and a fixed number of bytes, and
never a part of a batch.

Spark loads this module in several processes when a query starts, most of which only ask for the
schema: what talks to the store is imported where it is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BooleanType, IntegerType, LongType, StructField, StructType

from everview.zones.workers import settle_in

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.zones.growth import Growth

NAME = "everview_log"

DESCRIPTOR = StructType(
    [
        StructField("epoch", LongType()),
        StructField("node", IntegerType()),
        StructField("after", LongType()),
        StructField("upto", LongType()),
        StructField("piece", IntegerType()),
        StructField("leads", BooleanType()),
    ]
)
"""A log slice, or a piece of the rows that a build takes in; or neither, for a task that only leads."""

Offset = dict[str, int | str]


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader Spark talks to. It lives in a process of its own; tasks have others, for
    which only :meth:`read` is called."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._place = options["path"]
        self._group = options["group"]
        self._operations = int(options["operations"])
        self._machine = options.get("machine", "")
        self._holder = options.get("holder", "")

    @functools.cached_property
    def _growth(self) -> Growth:
        from everview.zones.growth import Growth

        return Growth(self._place, self._group, self._machine, self._holder)

    def initialOffset(self) -> Offset:
        return {"epoch": self._growth.committed()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._operations)

    def prepareForTriggerAvailableNow(self) -> None:
        self._growth.end_here()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The epoch that is under way, or the next one, begun now; ``start`` if nothing is new."""
        operations = limit.max_rows if isinstance(limit, ReadMaxRows) else self._operations
        everything = isinstance(limit, ReadAllAvailable) and not self._growth.ends
        begun = self._growth.begun(None if everything else operations)
        if begun is None:
            return start
        offset: Offset = {"epoch": begun.epoch, "frontier": str(begun.frontier)}
        if start["epoch"] == begun.epoch:
            offset["again"] = int(start.get("again", 0)) + 1
        return offset

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The shares of the epoch under way, one for each task of the first stage."""
        return [InputPartition(share) for share in self._growth.shares()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield partition.value.to_descriptors()

    def stop(self) -> None:
        self._growth.close()


class LogSource(DataSource):
    """``spark.readStream.format("everview_log")`` with the options path, group and operations (per
    epoch); machine and holder are where the store is, and the process for which all of it is done."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return DESCRIPTOR

    def streamReader(self, schema: StructType) -> LogReader:
        return LogReader(self.options)


settle_in()
