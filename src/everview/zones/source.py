"""The streaming source: Spark's offsets are epochs of the store.

The mover of a group begins an epoch in the store (:mod:`everview.maintain.mover`); if it is large enough for Spark, the
source finds it there, and the offset that it returns to Spark is that epoch's number. It has no rows: what an epoch
reads is shared out by the driver (:mod:`everview.zones.shares`), so that no Python worker runs for the source, and no
log byte passes through the JVM.

Spark calls three methods of its source::

    initialOffset            the last committed epoch
    latestOffset(start)      the stream's epoch under way, else start (nothing new)
    partitions(start, end)   none

That epochs begin in the store makes Spark's bookkeeping a mere echo. Whatever Spark remembers
or has forgotten (a checkpoint that was lost, one that lags behind a crash, one that is ahead
of a store which a power loss has set back), a batch does the epoch that is
under way in the store, with the frontier it was begun with::

    store: committed 6, begun 7     Spark replays the batch of 7     7 is finished
    store: committed 7              Spark replays the batch of 7     nothing to do
    store: committed 7, begun 8     Spark lost everything            8 is finished, as begun
    store: begun 7 (set back)       Spark has 7 as done              offered again, marked so

Spark loads this module in several processes when a query starts, most of which only ask for the
schema: what talks to the store is imported where it is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import LongType, StructField, StructType

from everview.zones.workers import settle_in

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.zones.offers import Offers

NAME = "everview_log"

SCHEMA = StructType([StructField("epoch", LongType())])
"""A stream needs a column."""

Offset = dict[str, int | str]


class LogReader(DataSourceStreamReader):
    """The reader Spark talks to, in a process of its own."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._place = options["path"]
        self._group = options["group"]
        self._machine = options.get("machine", "")
        self._holder = options.get("holder", "")

    @functools.cached_property
    def _offers(self) -> Offers:
        from everview.zones.offers import Offers

        return Offers(self._place, self._group, self._machine, self._holder)

    def initialOffset(self) -> Offset:
        return {"epoch": self._offers.committed()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The epoch that is under way; ``start`` if nothing is new. How large it is was decided when it was begun."""
        begun = self._offers.begun()
        if begun is None:
            return start
        offset: Offset = {"epoch": begun.epoch, "frontier": str(begun.frontier)}
        if start["epoch"] == begun.epoch:
            offset["again"] = int(start.get("again", 0)) + 1
        return offset

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """None: a batch has no rows, so nothing runs for the source."""
        return []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from ()

    def stop(self) -> None:
        self._offers.close()


class LogSource(DataSource):
    """``spark.readStream.format("everview_log")`` with the options path and group; machine and holder are where
    the store is, and the process for which all of it is done."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return SCHEMA

    def streamReader(self, schema: StructType) -> LogReader:
        return LogReader(self.options)


settle_in()
