"""Base tables and batches of the embedded store, as its users meet them.

Outside a batch every call is a transaction of its own; inside, calls are
checked at once and collected, and the end of the batch applies them all in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import pyarrow as pa

from everview.boundary import fast, internal, public
from everview.errors import InputError
from everview.store.contract import Row, Table
from everview.store.embedded.codecs import TableCodecs
from everview.store.embedded.core import Handle
from everview.store.embedded.environment import Transaction
from everview.store.embedded.reads import EmbeddedReader
from everview.store.embedded.table_writes import Work, Writer
from everview.store.embedded.topology import EmbeddedTopology


@public
@fast
class EmbeddedTable:
    """One base table."""

    def __init__(self, handle: Handle, topology: EmbeddedTopology, codecs: TableCodecs) -> None:
        self._handle = handle
        self._codecs = codecs
        self._writer = Writer(codecs, topology, handle.core.times, handle.settings.before_images)
        reader = EmbeddedReader(handle.base, codecs)
        self.get: Callable[..., Row | None] = reader.get
        self.get_many = reader.get_many
        self.scan = reader.scan
        self.count = reader.count

    @property
    def table(self) -> Table:
        return self._codecs.table

    def put(self, row: Row) -> None:
        self._apply(self._writer.put_one(row))

    def put_many(self, rows: pa.Table | Sequence[Row]) -> int:
        incoming = self._codecs.intake.many(rows)
        count = len(incoming.keys[0])
        if count:
            self._apply(self._writer.put_many(incoming))
        return count

    def delete(self, *key: object) -> None:
        self._apply(self._writer.delete_one(key))

    def delete_many(self, keys: pa.Table | Sequence[object]) -> int:
        columns = self._codecs.intake.keys(keys)
        count = len(columns[0])
        if count:
            self._apply(self._writer.delete_many(columns))
        return count

    def _apply(self, work: Work) -> None:
        self._handle.update(self._handle.base, work)


@dataclass
class _Run:
    """Consecutive puts, or consecutive deletes, of single rows."""

    puts: bool
    rows: list[Row] = field(default_factory=list)


@public
@fast
class TableInBatch:
    """The writes of one table that a batch collects, in their order."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._codecs = writer.codecs
        self._works: list[Work | _Run] = []

    def put(self, row: Row) -> None:
        key, given = self._codecs.intake.row(row)
        self._codecs.checked_key(self._codecs.keys.encode(key))
        schema = self._codecs.table.schema
        named: Row = {} if schema.hidden_key else dict(zip(schema.key, key, strict=True))
        self._run(puts=True).rows.append(named | given)

    def put_many(self, rows: pa.Table | Sequence[Row]) -> int:
        """Check many rows, and keep them for the end of the batch; returns how many there are."""
        incoming = self._codecs.intake.many(rows)
        count = len(incoming.keys[0])
        if count:
            self._works.append(self._writer.put_many(incoming))
        return count

    def delete(self, *key: object) -> None:
        self._codecs.keys.encode(key)
        self._run(puts=False).rows.append(dict(zip(self._codecs.table.schema.key, key, strict=True)))

    def delete_many(self, keys: pa.Table | Sequence[object]) -> int:
        columns = self._codecs.intake.keys(keys)
        count = len(columns[0])
        if count:
            self._works.append(self._writer.delete_many(columns))
        return count

    def _run(self, *, puts: bool) -> _Run:
        last = self._works[-1] if self._works else None
        if not isinstance(last, _Run) or last.puts != puts:
            last = _Run(puts)
            self._works.append(last)
        return last

    @internal
    def works(self) -> Iterator[Work]:
        for work in self._works:
            if not isinstance(work, _Run):
                yield work
            elif work.puts:
                yield self._writer.put_many(self._codecs.intake.many(work.rows))
            else:
                yield self._writer.delete_many(self._codecs.intake.keys(work.rows))


@public
@fast
class EmbeddedBatch:
    """Writes over several tables that take effect together when the ``with`` block ends,
    and not at all when it ends with an exception."""

    def __init__(self, handle: Handle, writer: Callable[[Table], Writer]) -> None:
        self._handle = handle
        self._writer = writer
        self._tables: dict[int, TableInBatch] = {}
        self._open = True

    def table(self, table: Table) -> TableInBatch:
        """Collects the writes of the batch to one table."""
        if not self._open:
            raise InputError("the batch has ended", hint="write inside its with block")
        found = self._tables.get(table.id)
        if found is None:
            found = self._tables[table.id] = TableInBatch(self._writer(table))
        return found

    def __enter__(self) -> EmbeddedBatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self._open = False
        if kind is not None:
            return
        works = [work for table in self._tables.values() for work in table.works()]
        if not works:
            return

        def all_of_it(transaction: Transaction) -> None:
            for work in works:
                work(transaction)

        self._handle.update(self._handle.base, all_of_it)
