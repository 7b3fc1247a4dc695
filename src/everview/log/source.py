"""The streaming source: Spark's offsets are epochs of the store.

One sentence: when the logs have grown, the source begins the group's next epoch in the
store, and what it tells Spark is that epoch's number; the rows it yields are descriptors of
log slices, so that no log byte passes through the JVM.

Spark asks its source four things, and the store answers all of them::

    initialOffset            the last committed epoch
    latestOffset(start)      the epoch under way; else begin one; else start (nothing new)
    partitions(start, end)   the slices of the epoch under way, shared out among tasks
    read(partition)          rows (epoch, node, after, upto)

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
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from everview.catalog import Catalog
from everview.change.frontier import Frontier, Slice
from everview.errors import LogTrimmedError
from everview.operators.plan import AggregatePlan, EpochPlan
from everview.store.contract import Begun, Store
from everview.store.opened import close_opened, opened

NAME = "everview_log"

DESCRIPTOR = StructType(
    [
        StructField("epoch", LongType()),
        StructField("node", IntegerType()),
        StructField("after", LongType()),
        StructField("upto", LongType()),
    ]
)
_DESCRIPTOR = pa.schema([("epoch", pa.int64()), ("node", pa.int32()), ("after", pa.int64()), ("upto", pa.int64())])

WORTH_A_TASK = 10_000
"""Log entries below which another task costs more than it saves."""

Offset = dict[str, int | str]


def next_epoch(
    store: Store, catalog: Catalog, group: str, operations: int | None, target: Frontier | None = None
) -> Begun | None:
    """The group's epoch under way, or a new one of at most so many operations (at least one
    batch) and not past the target; None where there is nothing to do."""
    under_way = store.views.begun(group)
    if under_way is not None:
        return under_way
    start = store.views.committed(group).frontier
    try:
        frontier = store.log.latest() if operations is None else store.log.advance(start, operations)
    except LogTrimmedError as error:
        views = ", ".join(view.name for view in catalog.views(group))
        raise LogTrimmedError(
            f"group {group} cannot go on from {start}", detail=error.message, hint=f"rebuild its views: {views}"
        ) from error
    if target is not None and not frontier <= target:
        frontier = target
    if frontier <= start:
        return None
    return store.views.begin(group, frontier, _plan(catalog, group).to_bytes())


def _plan(catalog: Catalog, group: str) -> EpochPlan:
    known = catalog.definitions()
    return EpochPlan(
        tuple(
            AggregatePlan.of(view.name, view.plan, known.table_by_id(view.depends_on[0]), view.state[0])
            for view in known.views(group)
        )
    )


def share_out(slices: Sequence[Slice], tasks: int) -> list[tuple[Slice, ...]]:
    """Slices for at most so many tasks, all with nearly the same number of entries: the logs
    are laid end to end and cut at equal distances."""
    total = sum(map(len, slices))
    tasks = max(1, min(tasks, total // WORTH_A_TASK))
    edges = [total * task // tasks for task in range(tasks + 1)]
    shares = []
    for low, high in itertools.pairwise(edges):
        share = []
        at = 0
        for piece in slices:
            first, last = max(low - at, 0), min(high - at, len(piece))
            if first < last:
                share.append(Slice(piece.node, piece.after + first, piece.after + last))
            at += len(piece)
        shares.append(tuple(share))
    return shares


@dataclass(frozen=True)
class LogPartition(InputPartition):
    """What one task reads."""

    epoch: int
    slices: tuple[Slice, ...]


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader Spark talks to. It lives in a process of its own; tasks have others, for
    which only :meth:`read` is called."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._place = options["path"]
        self._group = options["group"]
        self._operations = int(options["operations"])
        self._tasks = int(options["tasks"])
        self._target: Frontier | None = None

    @property
    def _store(self) -> Store:
        return opened(self._place)

    @functools.cached_property
    def _catalog(self) -> Catalog:
        return Catalog(self._store.metadata, self._store.views)

    def initialOffset(self) -> Offset:
        return {"epoch": self._store.views.committed(self._group).epoch}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._operations)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._store.log.latest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        operations = limit.max_rows if isinstance(limit, ReadMaxRows) else self._operations
        everything = isinstance(limit, ReadAllAvailable) and self._target is None
        most = None if everything else operations
        begun = next_epoch(self._store, self._catalog, self._group, most, self._target)
        if begun is None:
            return start
        offset: Offset = {"epoch": begun.epoch, "frontier": str(begun.frontier)}
        if start["epoch"] == begun.epoch:
            offset["again"] = int(start.get("again", 0)) + 1
        return offset

    def partitions(self, start: Offset, end: Offset) -> Sequence[LogPartition]:
        begun = self._store.views.begun(self._group)
        if begun is None:
            return []
        shares = share_out(begun.start.slices_to(begun.frontier), self._tasks)
        return [LogPartition(begun.epoch, share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPartition)
        rows = [(partition.epoch, piece.node, piece.after, piece.upto) for piece in partition.slices]
        yield pa.record_batch([list(column) for column in zip(*rows, strict=True)], schema=_DESCRIPTOR)

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
