"""The streaming source: Spark's offsets are epochs of the store.

One sentence: when the logs have grown, the source begins the group's next epoch in the
store, and what it tells Spark is that epoch's number; the rows it yields are descriptors of
log slices, so that no log byte passes through the JVM.

Spark asks its source four things, and the store answers all of them::

    initialOffset            the last committed epoch
    latestOffset(start)      the epoch under way; else begin one; else start (nothing new)
    partitions(start, end)   the slices of the epoch under way, shared out among tasks
    read(partition)          rows (epoch, node, after, upto, piece, leads)

Beginning the epoch *here* makes Spark's bookkeeping a mere echo. Whatever Spark remembers
or has forgotten (a checkpoint that was lost, one that lags behind a crash, one that is ahead
of a store which a power loss has set back), the slices are those of the epoch the store says
is under way, with the frontier it was begun with::

    store: committed 6, begun 7     Spark replays the batch of 7     7 is finished
    store: committed 7              Spark replays the batch of 7     no slices, nothing to do
    store: committed 7, begun 8     Spark lost everything            8 is finished, as begun
    store: begun 7 (set back)       Spark says 7 is done             offered again, marked so

Admission control: an epoch takes at most ``operations`` log entries, and never a part of a
batch.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BooleanType, IntegerType, LongType, StructField, StructType

from everview.catalog import Catalog
from everview.change.frontier import Frontier, Slice
from everview.log.workers import settle_in
from everview.maintain.epochs import begin_next
from everview.maintain.plans import Plans
from everview.maintain.tasks import EpochTask
from everview.store.contract import Begun, Store
from everview.store.opened import close_opened, opened

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
_DESCRIPTOR = pa.schema(
    [
        ("epoch", pa.int64()),
        ("node", pa.int32()),
        ("after", pa.int64()),
        ("upto", pa.int64()),
        ("piece", pa.int32()),
        ("leads", pa.bool_()),
    ]
)

WORTH_A_TASK = 10_000
"""Log entries below which another task costs more than it saves."""

Offset = dict[str, int | str]


@dataclass(frozen=True)
class Share(InputPartition):
    """What one task of the first stage reads."""

    epoch: int
    slices: tuple[Slice, ...] = ()
    pieces: tuple[int, ...] = ()
    leads: bool = False
    """Whether the task tells what belongs to no key."""


def share_out(begun: Begun, task: EpochTask, tasks: int) -> list[Share]:
    """Shares for at most so many tasks. A log is read in one place, so that a key is: the largest
    slices are dealt out first, each to the task that has least."""
    slices = begun.start.slices_to(begun.frontier) if task.chunk is None or task.chunk.reads_log else ()
    pieces = range(len(task.chunk.pieces())) if task.chunk is not None and task.chunk.table is not None else range(0)
    worth = min(len(slices), sum(map(len, slices)) // WORTH_A_TASK)
    count = 1 if task.alone else max(1, min(tasks, max(worth, len(pieces))))
    dealt: list[list[Slice]] = [[] for _ in range(count)]
    load = [0] * count
    for piece in sorted(slices, key=len, reverse=True):
        least = load.index(min(load))
        dealt[least].append(piece)
        load[least] += len(piece)
    return [
        Share(begun.epoch, tuple(dealt[number]), tuple(pieces[number::count]), leads=number == 0)
        for number in range(count)
    ]


def described(share: Share) -> pa.RecordBatch:
    """A share as rows for a task."""
    rows: list[tuple[object, ...]] = [
        (share.epoch, piece.node, piece.after, piece.upto, None, share.leads) for piece in share.slices
    ]
    rows += [(share.epoch, None, None, None, piece, share.leads) for piece in share.pieces]
    rows = rows or [(share.epoch, None, None, None, None, share.leads)]
    return pa.record_batch([list(column) for column in zip(*rows, strict=True)], schema=_DESCRIPTOR)


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader Spark talks to. It lives in a process of its own; tasks have others, for
    which only :meth:`read` is called."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._place = options["path"]
        self._group = options["group"]
        self._operations = int(options["operations"])
        self._tasks = int(options["tasks"])
        self._target: Frontier | None = None
        self._topology = ""
        """Of nodes and regions, as they were before the frontier of the last epoch was chosen."""

    @property
    def _store(self) -> Store:
        return opened(self._place)

    @functools.cached_property
    def _plans(self) -> Plans:
        return Plans(self._store, Catalog(self._store.metadata, self._store.views))

    def initialOffset(self) -> Offset:
        return {"epoch": self._store.views.committed(self._group).epoch}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._operations)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._store.log.latest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        operations = limit.max_rows if isinstance(limit, ReadMaxRows) else self._operations
        everything = isinstance(limit, ReadAllAvailable) and self._target is None
        begun = self._begun(None if everything else operations)
        if begun is None:
            return start
        offset: Offset = {"epoch": begun.epoch, "frontier": str(begun.frontier)}
        if start["epoch"] == begun.epoch:
            offset["again"] = int(start.get("again", 0)) + 1
        return offset

    def _begun(self, operations: int | None) -> Begun | None:
        """The epoch to do. A region that changed hands since before the last frontier has keys in
        two logs, and where logs repeat one another every key may; then one task reads all of them."""
        views = self._store.views
        if views.begun(self._group) is None and self._store.log.latest() <= views.committed(self._group).frontier:
            return None  # the common case: Spark asks all the time
        before, last = self._regions(), self._topology
        plans = self._plans
        begun = begin_next(
            self._store,
            plans.catalog,
            plans,
            self._group,
            operations,
            self._target,
            alone=lambda: self._store.log.guarantees.duplicates or self._regions() != last,
        )
        if begun is not None:
            self._topology = "" if begun.resumed else before
        return begun

    def _regions(self) -> str:
        regions = self._store.topology.regions()
        return hashlib.blake2b(repr(regions).encode(), digest_size=16).hexdigest()

    def partitions(self, start: Offset, end: Offset) -> Sequence[Share]:
        begun = self._store.views.begun(self._group)
        if begun is None:
            return []
        return share_out(begun, EpochTask.from_bytes(begun.plan), self._tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        yield described(partition)

    def stop(self) -> None:
        close_opened(self._place)


class LogSource(DataSource):
    """``spark.readStream.format("everview_log")`` with the options path, group, operations
    (per epoch) and tasks."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return DESCRIPTOR

    def streamReader(self, schema: StructType) -> LogReader:
        return LogReader(self.options)


settle_in()
