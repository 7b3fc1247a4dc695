"""Tables and views as Spark reads them: all of it at one frontier, in parts.

The frontier is chosen once, when the read is planned, and every task gives the rows of
its range of keys as they were there, however far the store has gone on meanwhile.

    >>> spark.dataSource.register(EverviewSource)                                    # doctest: +SKIP
    >>> spark.read.format("everview").options(path=path, view="totals").load()      # doctest: +SKIP

Tasks run in other processes, at other times, and cannot share a snapshot. So each takes one of its own
and goes back from there: of a table what was written since is undone with what the writes found, of a
view its steps are run backwards over the logs in between (:mod:`everview.maintain.pending`).

Options: ``path``; ``table`` or ``view``; ``epoch`` (of the view's group, of the main one for a table) or
``frontier``, so that several reads show one state; ``partitions``, at most so many tasks.

Spark has fewer types. Unsigned integers become the next larger ones, those of 128 bits decimals; UUID,
TIME, TIMETZ, TIMESTAMP_NS, INTERVAL, BIT, BIGNUM, ENUM and JSON become texts, arrays lists, and tuples
structs with the fields ``_1``, ``_2``, ….
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import DataType, StructField, StructType

from everview.catalog import MAIN, Catalog, ViewDefinition, ViewStatus
from everview.change.frontier import Frontier
from everview.change.schema import Column
from everview.change.types import Kind, Type, decimal, list_of
from everview.errors import DefinitionError, InputError, SnapshotExpiredError
from everview.maintain.pending import Pending
from everview.maintain.plans import Plans
from everview.maintain.table_chunks import keys_of, rows_at
from everview.maintain.tasks import Chunk
from everview.operators.view import StoredView
from everview.plan.expressions import quoted
from everview.sql.settings import connect
from everview.store.contract import StateReader, Store, Table, TableSnapshot
from everview.store.encoding.registering import register, unregister
from everview.store.opened import opened

NAME = "everview"
PARTITIONS = 8
BLOCK = 16_384
"""Rows that are read at a time; a smaller part is not worth a task."""

_SPARK: Mapping[Kind, DataType] = {
    Kind.BOOLEAN: spark_types.BooleanType(),
    Kind.TINYINT: spark_types.ByteType(),
    Kind.SMALLINT: spark_types.ShortType(),
    Kind.INTEGER: spark_types.IntegerType(),
    Kind.BIGINT: spark_types.LongType(),
    Kind.REAL: spark_types.FloatType(),
    Kind.DOUBLE: spark_types.DoubleType(),
    Kind.VARCHAR: spark_types.StringType(),
    Kind.BLOB: spark_types.BinaryType(),
    Kind.DATE: spark_types.DateType(),
    Kind.TIMESTAMP: spark_types.TimestampNTZType(),
    Kind.TIMESTAMPTZ: spark_types.TimestampType(),
}
_INSTEAD: Mapping[Kind, Type] = {
    Kind.UTINYINT: Type(Kind.SMALLINT),
    Kind.USMALLINT: Type(Kind.INTEGER),
    Kind.UINTEGER: Type(Kind.BIGINT),
    Kind.UBIGINT: decimal(20),
    Kind.HUGEINT: decimal(38),
    Kind.UHUGEINT: decimal(38),
    **dict.fromkeys((Kind.TIMESTAMP_S, Kind.TIMESTAMP_MS), Type(Kind.TIMESTAMP)),
    **dict.fromkeys((Kind.UUID, Kind.TIME, Kind.INTERVAL, Kind.JSON), Type(Kind.VARCHAR)),
    **dict.fromkeys((Kind.TIMESTAMP_NS, Kind.TIMETZ, Kind.BIT, Kind.BIGNUM, Kind.ENUM), Type(Kind.VARCHAR)),
}


def for_spark(kind: Type) -> Type:
    """The type that values of a type have in Spark."""
    if kind.kind is Kind.ARRAY:
        return list_of(for_spark(kind.item))
    if kind.kind is Kind.TUPLE:
        parts = tuple((f"_{name}", for_spark(child)) for name, child in kind.children)
        return Type(Kind.STRUCT, children=parts)
    if kind.children:
        return Type(kind.kind, children=tuple((name, for_spark(child)) for name, child in kind.children))
    return _INSTEAD.get(kind.kind, kind)


def spark_type(kind: Type) -> DataType:
    """What Spark calls a type that it has."""
    if kind.kind is Kind.DECIMAL:
        return spark_types.DecimalType(kind.precision, kind.scale)
    if kind.kind is Kind.LIST:
        return spark_types.ArrayType(spark_type(kind.item))
    if kind.kind is Kind.MAP:
        (_, key), (_, value) = kind.children
        return spark_types.MapType(spark_type(key), spark_type(value))
    if kind.kind is Kind.STRUCT:
        return StructType([StructField(name, spark_type(child)) for name, child in kind.children])
    return _SPARK[kind.kind]


@dataclass(frozen=True)
class SnapshotPartition(InputPartition):
    """The rows whose keys are after ``after`` and not after ``upto``, at a frontier."""

    frontier: str
    after: bytes | None = None
    upto: bytes | None = None


class EverviewReader(DataSourceReader):
    """Reads a table or a view. Made in the driver, and again in every task."""

    def __init__(self, options: Mapping[str, str]) -> None:
        named = [options[kind] for kind in ("table", "view") if options.get(kind)]
        if "path" not in options or len(named) != 1:
            raise InputError("a read needs a path, and a table or a view", hint='.option("path", …).option("view", …)')
        self._path, self._name = options["path"], named[0]
        self._is_view = bool(options.get("view"))
        self._epoch, self._frontier = options.get("epoch"), options.get("frontier")
        self._most = int(options.get("partitions", PARTITIONS))

    @property
    def _store(self) -> Store:
        return opened(self._path)

    @property
    def _catalog(self) -> Catalog:
        return Catalog(self._store.metadata, self._store.views)

    def _found(self) -> Table | ViewDefinition:
        if not self._is_view:
            return self._catalog.table(self._name)
        view = self._catalog.view(self._name)
        if view.status is not ViewStatus.LIVE:
            raise DefinitionError(f"view {view.name} is not built yet", hint="wait until it is built")
        return view

    def columns(self) -> tuple[Column, ...]:
        found = self._found()
        return found.schema.shown if isinstance(found, Table) else found.columns

    # -------------------------------------------------------------- in the driver

    def partitions(self) -> Sequence[SnapshotPartition]:
        found = self._found()
        with self._store.snapshot() as snapshot:
            frontier = self._chosen(found, snapshot)
            if isinstance(found, Table):
                edges = [
                    keys_of(found.schema, pa.Table.from_batches([batch]))[-1].as_py()
                    for batch in snapshot.table(found).scan()
                    if batch.num_rows
                ]
            else:
                edges = self._edges(found, snapshot)
        inner = edges[:-1]
        wanted = max(1, min(self._most, len(edges)))
        cuts = [inner[len(edges) * number // wanted - 1] for number in range(1, wanted)]
        return [
            SnapshotPartition(str(frontier), low, high) for low, high in zip([None, *cuts], [*cuts, None], strict=True)
        ]

    def _chosen(self, found: Table | ViewDefinition, snapshot: TableSnapshot) -> Frontier:
        """The frontier to read at."""
        group = MAIN if isinstance(found, Table) else found.group
        reached = snapshot.frontier if isinstance(found, Table) else snapshot.committed(group).frontier
        frontier = reached
        if self._frontier is not None:
            frontier = Frontier.parse(self._frontier)
        elif self._epoch is not None:
            known = {commit.epoch: commit.frontier for commit in self._store.views.history(group)}
            if int(self._epoch) not in known:
                raise SnapshotExpiredError(
                    f"epoch {self._epoch} of group {group} is not known",
                    detail="it is not among the last commits",
                    hint="read without an epoch, at the last one",
                )
            frontier = known[int(self._epoch)]
        if not frontier <= reached:
            raise InputError(
                f"{self._name} cannot be read at {frontier}", detail=f"it has reached {reached}", hint="flush first"
            )
        if frontier != reached and not self._store.log.guarantees.before_images:
            raise SnapshotExpiredError(
                f"{self._name} cannot be read at {frontier} any more",
                detail="the logs of this store have no before-images",
                hint="create the store with before_images=True, or read while no client writes",
            )
        return frontier

    def _edges(self, view: ViewDefinition, snapshot: TableSnapshot) -> list[bytes]:
        """The last key of every block of the view's records."""
        epoch = snapshot.committed(view.group).epoch
        reader = self._view_reader(view, epoch)
        found: list[bytes] = []
        while True:
            keys = snapshot.scan(reader.stored.table, reader.prefix, epoch, BLOCK, found[-1] if found else None).keys
            if len(keys):
                found.append(keys[-1].as_py())
            if len(keys) < BLOCK:
                return found

    def _view_reader(self, view: ViewDefinition, epoch: int) -> StoredView:
        bound = Plans(self._store, self._catalog).at(view.group, epoch)
        if bound is None or view.name not in bound.plan.by_name:
            raise SnapshotExpiredError(f"view {view.name} was redefined", hint="read it again")
        return StoredView(bound, view.name)

    # -------------------------------------------------------------- in a task

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SnapshotPartition)
        found = self._found()
        rows = self._of_table(found, partition) if isinstance(found, Table) else self._of_view(found, partition)
        columns = self.columns()
        casts = ", ".join(f"CAST({quoted(c.name)} AS {for_spark(c.type)}) AS {quoted(c.name)}" for c in columns)
        with connect() as connection:
            for block in rows:
                register(connection, "rows", block)
                yield from connection.sql(f"SELECT {casts} FROM rows").to_arrow_table().to_batches()
                unregister(connection, "rows", block)

    def _of_table(self, table: Table, part: SnapshotPartition) -> Iterator[pa.Table]:
        with self._store.snapshot() as snapshot:
            chunk = Chunk(table.name, part.after, part.upto)
            yield rows_at(self._store, snapshot, table, chunk, Frontier.parse(part.frontier))

    def _of_view(self, view: ViewDefinition, part: SnapshotPartition) -> Iterator[pa.Table]:
        frontier = Frontier.parse(part.frontier)
        with self._store.snapshot() as snapshot:
            commit = snapshot.committed(view.group)
            reader = self._view_reader(view, commit.epoch)
            state: StateReader = snapshot
            if commit.frontier != frontier:
                pending = Pending(self._store, self._catalog, Plans(self._store, self._catalog))
                state = pending.at(view.group, view.name, snapshot, frontier)
            yield from _blocks(reader, state, commit.epoch, part)


def _blocks(reader: StoredView, state: StateReader, epoch: int, part: SnapshotPartition) -> Iterator[pa.Table]:
    """The rows of a part of a view."""
    after = part.after
    while True:
        found = state.scan(reader.stored.table, reader.prefix, epoch, BLOCK, after)
        keys, values = found.keys, found.values
        more = len(keys) == BLOCK
        if more:
            after = keys[-1].as_py()
        if part.upto is not None:
            inside = pc.less_equal(keys, pa.scalar(part.upto, keys.type))
            more = more and after is not None and after < part.upto
            keys, values = keys.filter(inside), values.filter(inside)
        if len(keys):
            yield reader.shown(reader.stored.table_of(keys, values))
        if not more:
            return


class EverviewSource(DataSource):
    """``spark.read.format("everview")``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        columns = EverviewReader(self.options).columns()
        return StructType([StructField(column.name, spark_type(for_spark(column.type))) for column in columns])

    def reader(self, schema: StructType) -> EverviewReader:
        return EverviewReader(self.options)
