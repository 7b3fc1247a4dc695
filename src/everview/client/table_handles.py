"""Tables by name, and batches over them.

A handle whose definition another process has changed looks it up again and repeats the
call. It never returns a hidden key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import NoReturn, TypeVar

import pyarrow as pa

from everview.boundary import fast, public
from everview.catalog import Catalog
from everview.change.schema import ROW_ID, Schema
from everview.client.exported_arrow import exported_table
from everview.client.result import Result, ResultColumn
from everview.errors import ConflictError, DefinitionError, UnknownColumnError, UnknownObjectError
from everview.store.contract import BaseTable, Batch, Row, Store, Table, TableWriter

T = TypeVar("T")


@public
class TableHandle:
    """One base table: puts, deletes and reads. A table with a hidden key has
    no access by key: a put inserts; read rows with ``scan``, change and delete them in SQL."""

    def __init__(self, store: Store, catalog: Catalog, name: str) -> None:
        self._store = store
        self._catalog = catalog
        self._name = name
        self._known = self._look_up()

    def _look_up(self) -> BaseTable:
        table = self._catalog.table(self._name)
        found = self._store.table(table)
        return KeylessTable(found) if table.schema.hidden_key else found

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

    @fast
    def put(self, row: Row) -> None:
        """Set columns of the row with this key: a column that is not named keeps its value (null
        in a new row), an explicit None clears it. With a hidden key: insert a row."""
        try:
            self._known.put(row)
        except (ConflictError, UnknownObjectError):
            self._do(lambda table: table.put(row))

    def put_many(self, rows: pa.Table | Sequence[Row]) -> int:
        """Put many rows as one atomic batch; of rows with the same key, the last one wins."""
        return self._do(lambda table: table.put_many(rows))

    @fast
    def delete(self, *key: object) -> None:
        """Delete the row with this key, if it exists."""
        self._do(lambda table: table.delete(*key))

    def delete_many(self, keys: pa.Table | Sequence[object]) -> int:
        """Delete many rows as one atomic batch."""
        return self._do(lambda table: table.delete_many(keys))

    @fast
    def get(self, *key: object) -> Row | None:
        """The row with this key, or None."""
        try:
            return self._known.get(*key)
        except DefinitionError:
            return self._refreshed().get(*key)

    def get_many(self, keys: pa.Table | Sequence[object]) -> pa.Table:
        """The rows that exist, in the order of the keys."""
        try:
            return self._exported(self._known.get_many(keys))
        except DefinitionError:
            return self._exported(self._refreshed().get_many(keys))

    def scan(
        self,
        prefix: Sequence[object] = (),
        *,
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> Result:
        """Rows in key order: with this prefix of the key, from ``start`` to before ``stop``. With
        a hidden key: all rows, those of one process in the order in which it inserted them."""
        known = self._refreshed()
        return scanned(known.table, known.scan(prefix, start=start, stop=stop, limit=limit))

    def count(self) -> int:
        return self._known.count()

    def _exported(self, rows: pa.Table) -> pa.Table:
        return exported_table(rows, self._known.table.schema.columns)

    def _refreshed(self) -> BaseTable:
        self._known = self._look_up()
        return self._known


@public
class BatchHandle:
    """Writes to several tables that take effect together."""

    def __init__(self, catalog: Catalog, context: AbstractContextManager[Batch]) -> None:
        self._catalog = catalog
        self._context = context
        self._batch: Batch | None = None

    def table(self, name: str) -> TableWriter:
        if self._batch is None:
            raise DefinitionError("a batch is used inside its with block", hint="with db.batch() as batch: …")
        table = self._catalog.table(name)
        writer = self._batch.table(table)
        return KeylessWriter(table, writer) if table.schema.hidden_key else writer

    def __enter__(self) -> BatchHandle:
        self._batch = self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, trace)


@public
class KeylessWriter:
    """The writes of a table with a hidden key: rows are inserted."""

    def __init__(self, table: Table, writer: TableWriter) -> None:
        self._definition = table
        self._writer = writer

    def put(self, row: Row) -> None:
        self._writer.put(row)

    def put_many(self, rows: pa.Table | Sequence[Row]) -> int:
        if hasattr(rows, "__arrow_c_stream__"):  # mappings are checked later
            self._refuse_row_ids(pa.RecordBatchReader.from_stream(rows).schema)
        return self._writer.put_many(rows)

    def delete(self, *key: object) -> NoReturn:
        raise no_key(self._definition, "delete")

    def delete_many(self, keys: pa.Table | Sequence[object]) -> NoReturn:
        raise no_key(self._definition, "delete_many")

    def _refuse_row_ids(self, given: pa.Schema) -> None:
        if ROW_ID in given.names:
            table = self._definition
            columns = ", ".join(column.name for column in table.schema.shown)
            raise UnknownColumnError(f"table {table.name} has no column {ROW_ID}", hint=f"the columns are {columns}")


class KeylessTable(KeylessWriter):
    """A table with a hidden key, as users see it."""

    def __init__(self, stored: BaseTable) -> None:
        super().__init__(stored.table, stored)
        self._stored = stored
        self.count = stored.count

    @property
    def table(self) -> Table:
        return self._definition

    def get(self, *key: object) -> NoReturn:
        raise no_key(self._definition, "get")

    def get_many(self, keys: pa.Table | Sequence[object]) -> NoReturn:
        raise no_key(self._definition, "get_many")

    def scan(
        self,
        prefix: Sequence[object] = (),
        *,
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        if prefix or start is not None or stop is not None:
            raise no_key(self._definition, "scan by key")
        return map(shown, self._stored.scan(limit=limit))


def shown(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows without their hidden key."""
    return rows.drop_columns([ROW_ID]) if ROW_ID in rows.schema.names else rows


def scanned(table: Table, batches: Iterator[pa.RecordBatch]) -> Result:
    """Rows of a table as a result: without a hidden key, and all columns nullable, as those of every
    result."""
    columns = [ResultColumn(column.name, column.type) for column in table.schema.shown]
    names = [column.name for column in columns]
    return Result(columns, (pa.RecordBatch.from_arrays(rows.columns, names) for rows in map(shown, batches)))


def no_key(table: Table, call: str) -> DefinitionError:
    """The error of an access by key to a table with a hidden key."""
    return DefinitionError(
        f"table {table.name} has no primary key, so there is no {call}",
        hint=f"use SQL: … FROM {table.name} WHERE …",
    )
