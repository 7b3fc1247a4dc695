"""The embedded store: LMDB files in one directory, open to many processes at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from everview.boundary import fast, public
from everview.change.frontier import Frontier
from everview.store.contract import Table
from everview.store.embedded.backup import back_up
from everview.store.embedded.base_tables import EmbeddedBatch, EmbeddedTable
from everview.store.embedded.codecs import TableCodecs
from everview.store.embedded.core import Core, Handle, acquire, release
from everview.store.embedded.environment import FULL_SIZE, Transaction
from everview.store.embedded.inspection import Inspection, inspect_contents
from everview.store.embedded.layout import Settings
from everview.store.embedded.lease import EmbeddedLease, holder
from everview.store.embedded.logs import EmbeddedLog
from everview.store.embedded.metadata import EmbeddedMetadata
from everview.store.embedded.reads import EmbeddedReader
from everview.store.embedded.table_writes import Writer
from everview.store.embedded.topology import EmbeddedTopology, ends
from everview.store.embedded.unusable import closed
from everview.store.embedded.views import EmbeddedSnapshot, EmbeddedViews

T = TypeVar("T")

_DROP_ROWS = 10_000


@public
@fast
class StoreSnapshot(EmbeddedSnapshot):
    """One version of views and base tables, readable until it is closed."""

    def __init__(self, handle: Handle, topology: EmbeddedTopology, codecs: Callable[[Table], TableCodecs]) -> None:
        super().__init__(handle)
        self._environment = handle.base
        self._codecs = codecs
        self.frontier: Frontier = ends(self.base(), topology.current(self.base()))

    def __enter__(self) -> StoreSnapshot:
        return self

    def table(self, table: Table) -> EmbeddedReader:
        """The rows of a table as they were when the snapshot was taken."""
        return EmbeddedReader(self._environment, self._codecs(table), self.base)


@public
@fast
class EmbeddedStore:
    """A store in a directory. See :meth:`open`."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._open = True
        self._codecs: dict[Table, TableCodecs] = {}
        self.topology = EmbeddedTopology(self._update_base, self._read_base)
        self.metadata = EmbeddedMetadata(handle)
        self.views = EmbeddedViews(handle)
        self.log = EmbeddedLog(handle, self.topology, self._codecs_of)

    @staticmethod
    def open(
        path: str | Path,
        *,
        create: bool = False,
        durability: str = "group",
        before_images: bool = True,
        nodes: int = 4,
        shards: int = 4,
        map_size: int = FULL_SIZE,
    ) -> EmbeddedStore:
        """Open the store in a directory.

        ``create`` makes it where there is none; ``before_images``, ``nodes`` and ``shards``
        take effect only then. ``durability`` is this handle's: ``fsync`` (a write is durable
        when the call returns), ``group`` (within a tenth of a second and the time a flush
        takes), ``none`` (some time later, on :meth:`sync` and on :meth:`close`). None of them
        loses anything when a process is killed. ``map_size`` is the address space to reserve
        for each file; a smaller one grows by itself.
        """
        settings = Settings(shards=shards, before_images=before_images, nodes=nodes)
        core = acquire(Path(path), settings if create else None, map_size)
        try:
            return EmbeddedStore(Handle(core, durability))
        except BaseException:
            release(core)
            raise

    @property
    def directory(self) -> Path:
        return self._handle.core.directory

    def _codecs_of(self, table: Table) -> TableCodecs:
        found = self._codecs.get(table)
        if found is None:
            found = self._codecs[table] = TableCodecs(table)
        return found

    def table(self, table: Table) -> EmbeddedTable:
        return EmbeddedTable(self._handle, self.topology, self._codecs_of(table))

    def batch(self) -> EmbeddedBatch:
        """Writes that take effect together, at the end of a ``with`` block."""
        return EmbeddedBatch(self._handle, self._writer)

    def _writer(self, table: Table) -> Writer:
        return Writer(
            self._codecs_of(table), self.topology, self._handle.core.times, self._handle.settings.before_images
        )

    def snapshot(self) -> StoreSnapshot:
        """One version of all tables and views, for as long as it is held."""
        return StoreSnapshot(self._handle, self.topology, self._codecs_of)

    def drop_table(self, table: Table) -> None:
        """Remove the rows of a table that the catalog has dropped; may be repeated."""
        codecs = self._codecs_of(table)

        def some(transaction: Transaction) -> bool:
            cursor = transaction.cursor()
            for _ in range(_DROP_ROWS):
                if not cursor.set_range(codecs.prefix) or not cursor.key().startswith(codecs.prefix):
                    transaction.delete(codecs.count_key)
                    return False
                cursor.delete()
            return True

        while self._update_base(some):
            pass

    def lease(self, name: str, wait: float | None = 0) -> EmbeddedLease:
        """Be the only process that does what is called so, until the lease is closed."""
        return EmbeddedLease(self.directory, name, wait)

    def holder(self, name: str) -> str | None:
        """The process that holds a lease; None if no process does."""
        return holder(self.directory, name)

    @property
    def _core(self) -> Core:
        if not self._open:
            raise closed(self.directory)
        return self._handle.core

    def inspect(self) -> Inspection:
        """Visit every page and every entry of all files, at one cut, while others write."""
        return inspect_contents(self._core)

    def backup(self, target: Path) -> int:
        """Copy the store to a place where nothing is, while others write; returns the number of bytes."""
        return back_up(self._core, target)

    def sync(self) -> None:
        """Return when everything acknowledged so far is durable."""
        self._core.durability.make_point()

    @property
    def gone(self) -> bool:
        """Whether the directory was removed since it was opened, even if another is in its place now."""
        return self._handle.core.durability.gone

    def close(self) -> None:
        """Let go of the store. What this process wrote is durable then, in every mode."""
        if self._open:
            self._open = False
            release(self._handle.core)

    def __enter__(self) -> EmbeddedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _update_base(self, work: Callable[[Transaction], T]) -> T:
        return self._handle.update(self._handle.base, work)

    def _read_base(self, work: Callable[[Transaction], T]) -> T:
        with self._handle.base.read() as transaction:
            return work(transaction)
