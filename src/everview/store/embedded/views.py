"""The view store of the embedded store: epochs, records and bags behind one contract.

Reads of the living store open a transaction per call and shard, reads of a
snapshot use the transactions it holds, and both are the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from types import TracebackType

import pyarrow as pa

from everview.boundary import fast, public
from everview.change.frontier import Frontier
from everview.errors import SnapshotExpiredError
from everview.store.contract import BagEnds, BagRows, Begun, Commit, Deletes, Lookup, Puts, Records, StateTable
from everview.store.embedded.bag_reads import bag_ends, bag_keys, read_bags
from everview.store.embedded.bags import add_to_bags, preview_bags, write_bags
from everview.store.embedded.drops import drop_bags, drop_records
from everview.store.embedded.environment import Transaction
from everview.store.embedded.epoch_records import HISTORY, EmbeddedEpochs, committed_in
from everview.store.embedded.records import Door, read_records, scan_records, write_records
from everview.store.embedded.single_reads import lookup, read_one
from everview.store.embedded.snapshots import StoreFiles, close_everywhere, open_everywhere
from everview.store.embedded.tombstones import sweep_shard
from everview.store.encoding.ragged import Bytes


@public
@fast
class _Reads:
    """Reads of state tables through doors to the shards."""

    def __init__(self, doors: Sequence[Door], base: Door) -> None:
        self._doors = doors
        self._base = base

    def read(self, table: StateTable, keys: Bytes, as_of: int) -> Bytes:
        return read_records(self._doors, table, keys, as_of)

    def scan(
        self, table: StateTable, prefix: bytes, as_of: int, limit: int | None = None, after: bytes | None = None
    ) -> Records:
        return scan_records(self._doors, table, prefix, as_of, limit, after)

    def read_bags(self, table: StateTable, keys: Bytes, as_of: int, first: pa.Int64Array | None = None) -> BagRows:
        return read_bags(self._doors, table, keys, as_of, first)

    def bag_ends(self, table: StateTable, keys: Bytes, as_of: int) -> tuple[Bytes, Bytes]:
        return bag_ends(self._doors, table, keys, as_of)

    def preview_bags(self, table: StateTable, changes: BagRows, as_of: int) -> BagEnds:
        return preview_bags(self._doors, table, changes, as_of)

    def get(self, table: StateTable, key: bytes, as_of: int) -> bytes | None:
        return read_one(self._doors, table, key, as_of)

    def committed(self, group: str) -> Commit:
        """The last commit of a group: its epoch and its frontier."""
        with self._base() as txn:
            return committed_in(txn, group)


@public
@fast
class EmbeddedSnapshot(_Reads):
    """One version of the whole store, readable until it is closed."""

    def __init__(self, core: StoreFiles) -> None:
        self._core = core
        self._held: tuple[Transaction, ...] | None = None
        """Of the base file, then of the shards. Nothing else keeps them: their slots in the tables of readers are
        free at once when the snapshot is closed, even if something still refers to it."""
        self._commits: dict[str, Commit] = {}
        base, shards = open_everywhere(core)
        self._held = (base, *shards)
        super().__init__([self._door(1 + number) for number in range(len(shards))], self._door(0))

    def committed(self, group: str) -> Commit:
        """The last commit of a group in this version."""
        self._transaction(0)  # a closed snapshot is refused
        found = self._commits.get(group)
        if found is None:
            found = self._commits[group] = super().committed(group)
        return found

    def bag_keys(self, table: StateTable, as_of: int, limit: int | None = None, after: bytes | None = None) -> Bytes:
        return bag_keys(self._doors, table, as_of, limit, after)

    def _door(self, number: int) -> Door:
        return lambda: nullcontext(self._transaction(number))

    def _transaction(self, number: int) -> Transaction:
        if self._held is None:
            raise SnapshotExpiredError("the snapshot is closed", hint="take a new one")
        if self._core.base.gone is not None:
            raise self._core.base.gone()
        return self._held[number]

    def base(self) -> Transaction:
        """The held version of the base file, to be used and not to be kept."""
        return self._transaction(0)

    def close(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            close_everywhere(self._core, held[0], held[1:])

    def __enter__(self) -> EmbeddedSnapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@public
@fast
class EmbeddedViews(_Reads):
    """Versioned tables of an embedded store and the epochs that move them."""

    def __init__(self, core: StoreFiles) -> None:
        super().__init__([shard.read for shard in core.shards], core.base.read)
        self._core = core
        self._epochs = EmbeddedEpochs(core)

    @property
    def parts(self) -> int:
        return len(self._core.shards)

    def begin(
        self, group: str, frontier: Frontier, plan: bytes, epoch: int | None = None, base: int | None = None
    ) -> Begun:
        return self._epochs.begin(group, frontier, plan, epoch, base)

    def begun(self, group: str) -> Begun | None:
        return self._epochs.begun(group)

    def commit(self, group: str, epoch: int) -> Commit:
        return self._epochs.commit(group, epoch)

    def lookup(self, table: StateTable) -> Lookup:
        return lookup(self._core, table)

    def history(self, group: str, limit: int = HISTORY) -> tuple[Commit, ...]:
        """The group's last commits, newest first."""
        return self._epochs.history(group, limit)

    def write(self, table: StateTable, epoch: int, puts: Puts | None = None, deletes: Deletes | None = None) -> None:
        self._epochs.require_begun(table.group, epoch)
        write_records(self._core, self._doors, table, epoch, puts, deletes)

    def write_bags(self, table: StateTable, epoch: int, changes: BagRows) -> BagEnds:
        self._epochs.require_begun(table.group, epoch)
        return write_bags(self._core, self._doors, table, epoch, changes)

    def add_to_bags(self, table: StateTable, epoch: int, changes: BagRows) -> None:
        self._epochs.require_begun(table.group, epoch)
        add_to_bags(self._core, self._doors, table, epoch, changes)

    def sweep(self, group: str) -> int:
        return sum(sweep_shard(self._core, shard, group) for shard in self._core.shards)

    def drop(self, table: StateTable, prefix: bytes = b"") -> None:
        self._epochs.close_committed(table.group)
        drop_records(self._core, table, prefix)

    def drop_bags(self, table: StateTable, prefix: bytes = b"") -> None:
        self._epochs.close_committed(table.group)
        drop_bags(self._core, table, prefix)

    def snapshot(self) -> EmbeddedSnapshot:
        return EmbeddedSnapshot(self._core)
