"""A database: a store, its catalog, and the tables in it by name.

One sentence: names are looked up in the catalog, and a handle whose definition was changed
by another process looks it up again and repeats the call.

    >>> import everview, tempfile
    >>> db = everview.open(tempfile.mkdtemp())
    >>> columns = {"id": "BIGINT", "customer": "VARCHAR", "amount": "DECIMAL(10,2)"}
    >>> orders = db.create_table("orders", columns, key=["id"])
    >>> orders.put({"id": 1, "customer": "ada", "amount": 5})
    >>> orders.put({"id": 1, "customer": None})
    >>> orders.get(1)
    {'id': 1, 'customer': None, 'amount': Decimal('5.00')}
    >>> with db.batch() as batch:
    ...     batch.table("orders").put_many([{"id": 2, "amount": 3}, {"id": 3, "amount": 4}])
    ...     batch.table("orders").delete(1)
    2
    >>> orders.count()
    2
    >>> db.close()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import pyarrow as pa

from everview.catalog import Catalog
from everview.change.schema import Column, Schema
from everview.change.types import Type, parse_type
from everview.errors import ConflictError, DefinitionError, UnknownObjectError
from everview.store.contract import BaseTable, Batch, Row, Snapshot, Store, Table, TableWriter, Topology
from everview.store.embedded import EmbeddedStore
from everview.store.embedded.environment import FULL_SIZE

T = TypeVar("T")


def open(
    path: str | Path,
    *,
    durability: str = "group",
    create: bool = True,
    before_images: bool = True,
    nodes: int = 4,
    shards: int = 4,
    map_size: int = FULL_SIZE,
) -> Database:
    """Open the embedded store in a directory; it is made if the directory is new or empty.

    ``durability`` is ``"fsync"``, ``"group"`` or ``"none"``. ``before_images``, ``nodes`` and
    ``shards`` take effect when the store is made.
    """
    store = EmbeddedStore.open(
        path,
        create=create,
        durability=durability,
        before_images=before_images,
        nodes=nodes,
        shards=shards,
        map_size=map_size,
    )
    return Database(store)


class TableHandle:
    """One base table: puts, deletes and reads."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name
        self._known = self._look_up()

    def _look_up(self) -> BaseTable:
        return self._database.store.table(self._database.catalog.table(self._name))

    def _do(self, call: Callable[[BaseTable], T]) -> T:
        """Make the call; if the definition was changed meanwhile, once more under the new one.
        A refused call has written nothing."""
        try:
            return call(self._known)
        except (ConflictError, UnknownObjectError):
            known = self._look_up()
            if known.table == self._known.table:
                raise
            self._known = known
            return call(known)

    @property
    def name(self) -> str:
        return self._known.table.name

    @property
    def schema(self) -> Schema:
        return self._known.table.schema

    def put(self, row: Row) -> None:
        """Set columns of the row with this key: a column that is not named keeps its value (null
        in a new row), an explicit None clears it."""
        try:
            self._known.put(row)
        except (ConflictError, UnknownObjectError):
            self._do(lambda table: table.put(row))

    def put_many(self, rows: pa.Table | Sequence[Row]) -> int:
        """Put many rows as one atomic batch; a later row of the same key comes after an earlier."""
        return self._do(lambda table: table.put_many(rows))

    def delete(self, *key: object) -> None:
        """Delete the row with this key, if it is there."""
        self._do(lambda table: table.delete(*key))

    def delete_many(self, keys: pa.Table | Sequence[object]) -> int:
        """Delete many rows as one atomic batch."""
        return self._do(lambda table: table.delete_many(keys))

    def get(self, *key: object) -> Row | None:
        """The row with this key, or None."""
        try:
            return self._known.get(*key)
        except DefinitionError:
            return self._refreshed().get(*key)

    def get_many(self, keys: pa.Table | Sequence[object]) -> pa.Table:
        """The rows that are there, in the order of the keys."""
        try:
            return self._known.get_many(keys)
        except DefinitionError:
            return self._refreshed().get_many(keys)

    def scan(
        self,
        prefix: Sequence[object] = (),
        *,
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Rows in key order: with this prefix of the key, from ``start`` to before ``stop``."""
        return self._refreshed().scan(prefix, start=start, stop=stop, limit=limit)

    def count(self) -> int:
        return self._known.count()

    def _refreshed(self) -> BaseTable:
        self._known = self._look_up()
        return self._known


class BatchHandle:
    """Writes to several tables that take effect together."""

    def __init__(self, database: Database, context: AbstractContextManager[Batch]) -> None:
        self._database = database
        self._context = context
        self._batch: Batch | None = None

    def table(self, name: str) -> TableWriter:
        if self._batch is None:
            raise DefinitionError("a batch is used inside its with block", hint="with db.batch() as batch: …")
        return self._batch.table(self._database.catalog.table(name))

    def __enter__(self) -> BatchHandle:
        self._batch = self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, trace)


class Database:
    """An open store with its catalog."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.catalog = Catalog(store.metadata, store.views)

    def create_table(
        self,
        name: str,
        columns: Mapping[str, Type | str] | Schema,
        key: Sequence[str] = (),
        *,
        not_null: Sequence[str] = (),
        if_not_exists: bool = False,
    ) -> TableHandle:
        """Define a table by its columns (types as objects or SQL text) and the names of its key."""
        schema = columns if isinstance(columns, Schema) else Schema.of(columns, key, not_null)
        self.catalog.create_table(name, schema, if_not_exists=if_not_exists)
        return TableHandle(self, name)

    def add_column(self, table: str, name: str, kind: Type | str) -> TableHandle:
        """Add a nullable column; rows that are there read as null in it."""
        column = Column(name, parse_type(kind) if isinstance(kind, str) else kind)
        self.catalog.add_column(table, column)
        return TableHandle(self, table)

    def drop_table(self, name: str) -> None:
        """Drop a table and its rows."""
        self.catalog.drop_table(name)
        self._clean_up()

    def _clean_up(self) -> None:
        """Remove what dropped tables left in the store, also those of a drop that was killed."""
        discarded = self.catalog.discarded()
        for table in discarded:
            if isinstance(table, Table):
                self.store.drop_table(table)
            else:
                self.store.views.drop(table)
        self.catalog.forget(discarded)

    def table(self, name: str) -> TableHandle:
        return TableHandle(self, name)

    def tables(self) -> tuple[str, ...]:
        return tuple(table.name for table in self.catalog.tables())

    def batch(self) -> BatchHandle:
        """Writes over several tables, atomic: ``with db.batch() as b: b.table(name).put(…)``."""
        return BatchHandle(self, self.store.batch())

    def snapshot(self) -> Snapshot:
        """One version of all views and tables, for as long as it is held."""
        return self.store.snapshot()

    @property
    def topology(self) -> Topology:
        """Nodes and regions."""
        return self.store.topology

    def sync(self) -> None:
        """Return when everything acknowledged so far is durable."""
        self.store.sync()

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
