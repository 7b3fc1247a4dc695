"""A database: a store, its catalog, and its tables by name.

Names are looked up in the catalog. A handle whose definition another process has
changed looks it up again and repeats the call.

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
    >>> db.sql("SELECT sum(amount) FROM orders WHERE id > ?", [2]).rows()
    [(Decimal('4.00'),)]
    >>> db.close()
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from everview.boundary import public
from everview.catalog import Catalog
from everview.change.schema import Column, Schema
from everview.change.types import Type, parse_type
from everview.check.on_spark import verify_on
from everview.check.recording import Recording
from everview.check.report import Report
from everview.check.states import verify_states
from everview.check.verify import SAMPLES, chosen, verify
from everview.client.freshness import Asked, Freshness
from everview.client.maintaining import Maintaining
from everview.client.reading import SessionContext
from everview.client.result import Result
from everview.client.sessions import FreshVersions, Session
from everview.client.snapshot_handles import Snapshot
from everview.client.statements import execute
from everview.client.status import Status, status
from everview.client.table_handles import BatchHandle, TableHandle
from everview.client.verifying import KeptViews
from everview.client.view_handles import ViewHandle
from everview.errors import DefinitionError, InputError
from everview.sql.parameters import Values
from everview.store.contract import Store, Table, Topology
from everview.store.embedded import EmbeddedStore
from everview.store.embedded.environment import FULL_SIZE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST = 1 << 63
"""The most bytes that LMDB can reserve."""


@public
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
    """Open the embedded store in a directory; it is created if the directory is new or empty.

    ``durability`` is ``"fsync"``, ``"group"`` or ``"none"``. ``before_images``, ``nodes`` and
    ``shards`` take effect when the store is created.
    """
    if not 0 <= map_size < MOST:
        raise InputError(f"a map cannot have {map_size} bytes", hint=f"give at most {MOST - 1}")
    store = EmbeddedStore.open(
        _directory(path),
        create=create,
        durability=durability,
        before_images=before_images,
        nodes=nodes,
        shards=shards,
        map_size=map_size,
    )
    return Database(store)


def _directory(path: str | Path) -> Path:
    """The path, if it can be the name of a directory."""
    try:
        named = os.fsencode(path)
    except UnicodeEncodeError:
        named = b""
    if not named or b"\0" in named:
        raise InputError(f"{str(path)!r} is not the name of a directory")
    return Path(path)


def _refuse_other_than_sessions(spark: object) -> None:
    if spark is not None and spark is not False and not hasattr(spark, "readStream"):
        raise InputError(f"{spark!r} is not a session of Spark", hint="give a SparkSession")


@public
class Database:
    """An open store with its catalog."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.catalog = Catalog(store.metadata, store.views)
        self._context = SessionContext(store, self.catalog, self._clean_up)
        self._freshness = Freshness(self._context.views)

    def sql(
        self,
        text: str,
        params: Values | None = None,
        dialect: str | None = None,
        *,
        fresh: bool = False,
        max_staleness: float | None = None,
        deadline: float | None = None,
    ) -> Result:
        """Execute the statements of a text, separated by semicolons; the result is the last one's.

        ``params`` are the values of ``?`` and ``$1`` (a list) or of ``:name`` (a dict);
        ``dialect`` is the SQL dialect of the text, by default that of ``SET dialect``, else
        DuckDB's. A SELECT is computed as its result is read.

        Views are read as of their last epochs, unless they are to be ``fresh`` (reflect everything
        written before the call) or at most ``max_staleness`` seconds behind; the call raises a
        DeadlineError after ``deadline`` seconds.
        """
        context = self._context
        if fresh or max_staleness is not None or deadline is not None:
            context = copy.copy(context)
            asked = Asked(fresh, max_staleness, deadline)
            context.versions = FreshVersions(self._context, self._freshness, asked)
        return execute(context, text, params, dialect)

    def create_table(
        self,
        name: str,
        columns: Mapping[str, Type | str] | Schema,
        key: Sequence[str] = (),
        *,
        not_null: Sequence[str] = (),
        if_not_exists: bool = False,
    ) -> TableHandle:
        """Define a table by its columns (types as objects or SQL text) and the names of its key.
        Without a key a hidden id distinguishes rows, and the table may contain equal rows
        several times."""
        schema = columns if isinstance(columns, Schema) else Schema.of(columns, key, not_null)
        self.catalog.create_table(name, schema, if_not_exists=if_not_exists)
        return self.table(name)

    def add_column(self, table: str, name: str, kind: Type | str) -> TableHandle:
        """Add a nullable column; existing rows read as null in it."""
        column = Column(name, parse_type(kind) if isinstance(kind, str) else kind)
        self.catalog.add_column(table, column)
        return self.table(table)

    def drop_table(self, name: str) -> None:
        """Drop a table and its rows."""
        self.catalog.drop_table(name)
        self._clean_up()

    def _clean_up(self) -> None:
        """Remove what dropped tables left in the store, also those of a drop that was killed. The
        maintainer removes what dropped views left."""
        discarded = [table for table in self.catalog.discarded() if isinstance(table, Table)]
        for table in discarded:
            self.store.drop_table(table)
        self.catalog.forget(discarded)

    def table(self, name: str) -> TableHandle:
        return TableHandle(self.store, self.catalog, name)

    def view(self, name: str) -> ViewHandle:
        """A view by name: its rows as of the last committed epoch, or as fresh as asked for."""
        return ViewHandle(self._freshness, name)

    def tables(self) -> tuple[str, ...]:
        return tuple(table.name for table in self.catalog.tables())

    def batch(self) -> BatchHandle:
        """Writes over several tables, atomic: ``with db.batch() as b: b.table(name).put(…)``."""
        return BatchHandle(self.catalog, self.store.batch())

    def snapshot(self) -> Snapshot:
        """One version of all views and tables, kept until it is closed."""
        return Snapshot(self._context)

    def session(self, token: str | None = None) -> Session:
        """A session, which sees what it writes in all views; with a token it goes on where the
        session that gave it was."""
        return Session(self._context, self._freshness, token)

    @property
    def topology(self) -> Topology:
        """Nodes and regions."""
        return self.store.topology

    def maintain(
        self,
        spark: SparkSession | Literal[False] | None = None,
        *,
        servers: int = 2,
        operations: int | None = None,
        in_driver: int | None = None,
        checkpoint: str | Path | None = None,
        wait: float | None = 0,
    ) -> Maintaining:
        """Keep all views up to date in this process: ``with db.maintain(): …``.

        ``spark`` is the session on which large epochs are done, by default one of our own on two cores of this
        machine, which starts while views are maintained already; False: threads of this process do all of it, without
        Spark. ``servers`` is the number of view servers on Spark, ``operations`` the most log entries of an epoch,
        ``in_driver`` the most of one that is done in this process (by default as many as are done here sooner than on
        Spark), ``checkpoint`` a directory for Spark's checkpoint, ``wait`` how many seconds to wait for the current
        maintainer of the store to end (None: forever).
        """
        _refuse_other_than_sessions(spark)
        return Maintaining(
            self._embedded.directory,
            spark,
            servers=servers,
            operations=operations,
            in_driver=in_driver,
            checkpoint=checkpoint,
            wait=wait,
        )

    def verify(
        self, *names: str, state: bool = False, spark: SparkSession | None = None, samples: int = SAMPLES
    ) -> Report:
        """Recompute views from the base tables and compare: those with these names, or all. Views are
        maintained and rows written meanwhile; every group is judged at one frontier.

        On Spark where a session is given, else in this process. ``samples`` is how many missing, extra
        and differing rows of a view are named; all are counted. With ``state`` the state of
        maintenance is compared too, with the same state rebuilt in this process.
        """
        _refuse_other_than_sessions(spark)
        kept = KeptViews(self._context)
        found = (
            verify(kept, names, samples)
            if spark is None
            else verify_on(spark, str(self._embedded.directory), kept, names, samples)
        )
        return Report((*found.views, *verify_states(kept, names, samples).views)) if state else found

    def rebuild(self, *names: str, timeout: float | None = None) -> None:
        """Rebuild views and indexes from the base tables, with all state below them: those with these
        names, or all. Returns when the maintainer has done it, or this process, if no other maintains
        the views. Readers see the old rows until one commit replaces them."""
        self._context.maintenance.rebuild(chosen(self.catalog.definitions(), names), timeout)

    def recording(self, view: str) -> Recording:
        """Record what a view shows while a ``with`` block lasts, and judge how consistent that was:
        see ``everview.check.recording``."""
        return Recording(KeptViews(self._context), view)

    @property
    def _embedded(self) -> EmbeddedStore:
        if not isinstance(self.store, EmbeddedStore):
            raise DefinitionError("this call needs a store in a directory")
        return self.store

    def status(self) -> Status:
        """The progress of all views and builds, what is quarantined, and which process maintains the views."""
        return status(self.store, self.catalog, self._freshness.views.plans)

    def flush(self, timeout: float | None = None) -> None:
        """Return when every view reflects every write that was acknowledged before. If no process
        maintains the views, this one does it now."""
        self._context.maintenance.flush(timeout)

    def backup(self, target: str | Path) -> int:
        """Copy the store to a directory that does not exist yet, while others write and maintain it; returns the
        number of bytes. The copy contains everything that was acknowledged before the call, and is a store itself."""
        return self._embedded.backup(_directory(target))

    def sync(self) -> None:
        """Return when everything acknowledged so far is durable."""
        self.store.sync()

    def close(self) -> None:
        self._context.connections.close()
        self.store.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
