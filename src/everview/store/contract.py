"""What Everview asks of a store, as Protocols.

A store is base tables with a transaction log, and versioned state tables
with epochs; a class that fulfils these Protocols and passes ``tests/adapters`` is a store.

Bytes cross the contracts in columns: keys and values are Arrow ``large_binary`` arrays,
log entries are Arrow tables. Keys are the order-preserving encodings of ``store.keys``,
values the rows of ``store.rows`` or whatever the caller keeps; a state store looks into
neither.

The life of an epoch, in calls::

    begun = views.begin(group, frontier, plan)      # durable before the first write
    views.read(table, keys, as_of=begun.epoch - 1)  # what the last commit left
    views.write(table, begun.epoch, puts, deletes)  # invisible to readers
    views.commit(group, begun.epoch)                # visible, all at once
    views.sweep(group)                              # tombstones go

Epoch numbers of all groups come from one rising counter, so ``epoch - 1`` above is
shorthand: ``as_of`` names the newest epoch whose writes are wanted, and the last
committed epoch of the group is the one that is there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from everview.change import entries
from everview.change.frontier import Frontier, Position, Slice
from everview.change.schema import Schema
from everview.store.encoding.ragged import Bytes

Row = dict[str, object]
"""A row or a part of one: column name to Python value; None is an explicit null."""

# ------------------------------------------------------------------ definitions


@dataclass(frozen=True)
class Table:
    """A base table. ``stamp`` is the catalog's document of it: a store with transactions
    compares it inside every write, so that no client writes under a definition that is gone."""

    id: int
    name: str
    schema: Schema
    stamp: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class StateTable:
    """A versioned table of the view store: a view, or what its maintenance remembers."""

    id: int
    name: str
    group: str


# ------------------------------------------------------------------ the log


class EntryKind(enum.IntEnum):
    """The value of the ``__kind`` column."""

    PUT = entries.PUT
    DELETE = entries.DELETE


@dataclass(frozen=True)
class LogBatch:
    """Log entries of one table, in log order, as columns of one Arrow table (their names
    are in ``change.entries``):

    - ``__seq`` uint64, ``__incarnation`` uint32, ``__kind`` uint8, ``__key`` large_binary;
    - every column of the schema: the row after the write (of a delete only the key);
    - with before-images: ``__had`` bool (a row was there) and ``__old_<column>`` for
      every value column;
    - without: ``__set_<column>`` bool for every value column, true where the put named
      it; a column that was not named is null above and keeps its stored value.

    Where every replica logs every write, in any order and perhaps several times, entries carry
    times instead of an order (int64, larger is later; ``__seq`` and ``__incarnation`` are not
    looked at), in one of two forms:

    - ``__time`` and ``__set_<column>``: a put wrote the row and the columns it names then, a
      delete deleted all that was written then or before;
    - ``__time_<column>`` for every value column, null where the entry says nothing of it;
      ``__marked``, when it said that the row is there whatever its columns hold (null: it does
      not say so, like an UPDATE of CQL); ``__gone``, when it deleted the row (null: it does not).

    One of ``__time_<column>``, ``__marked`` and ``__gone`` beside ``__time`` is taken instead of
    it. How entries are merged is said in ``operators.last_write``. Rows of a snapshot of such a
    table carry the same columns.
    """

    table: Table
    node: int
    entries: pa.Table
    before_images: bool


@dataclass(frozen=True)
class Damage:
    """A log entry that cannot be decoded, for quarantine."""

    position: Position
    table: int | None
    reason: str


@dataclass(frozen=True)
class SliceContent:
    """What a slice of a log holds."""

    batches: tuple[LogBatch, ...]
    damaged: tuple[Damage, ...] = ()


@dataclass(frozen=True)
class LogGuarantees:
    """What a store's log promises; the plan is made accordingly."""

    before_images: bool
    atomic_batches: bool
    per_key_order: bool
    """The writes of a key are in the order (incarnation, sequence). Without it, or with
    duplicates, entries carry times."""
    duplicates: bool
    """A write may stand in the logs more than once."""
    retention: str


class Log(Protocol):
    """The transaction logs of all nodes."""

    @property
    def guarantees(self) -> LogGuarantees: ...

    def latest(self) -> Frontier:
        """The end of every log, as one cut between batches."""

    def oldest(self) -> Frontier:
        """What has been trimmed: entries at or before it are gone."""

    def written_after(self, start: Frontier) -> float | None:
        """When the first entry after the frontier that is not trimmed was written, as a time of
        :func:`time.time`, as far as the store knows it: a few milliseconds early rather than late. None
        where there is no such entry, or nothing is known."""

    def advance(self, start: Frontier, max_operations: int, max_bytes: int | None = None) -> Frontier:
        """The furthest cut between batches at most ``max_operations`` entries, and bytes of the log
        if so many are given, after ``start``; at least one batch if there is one, however large it is."""

    def read(self, piece: Slice, tables: Collection[Table]) -> SliceContent:
        """The entries of a slice that belong to the given tables."""

    def trim(self, frontier: Frontier) -> int:
        """Forget the entries at or before the frontier; returns how many."""


# ------------------------------------------------------------------ base tables


class TableWriter(Protocol):
    """The writes of one table, directly or as part of a batch."""

    def put(self, row: Row) -> None:
        """Set the named columns of the row with this key; a column that is not named keeps
        its value, an explicit None clears it."""

    def put_many(self, rows: pa.Table | Sequence[Row]) -> int: ...

    def delete(self, *key: object) -> None: ...

    def delete_many(self, keys: pa.Table | Sequence[object]) -> int: ...


class TableReader(Protocol):
    """The reads of one table, of the store as it is now or as a snapshot holds it."""

    def get(self, *key: object) -> Row | None: ...

    def get_many(self, keys: pa.Table | Sequence[object]) -> pa.Table:
        """The rows that are there, in the order of the keys asked for."""

    def scan(
        self,
        prefix: Sequence[object] = (),
        *,
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Rows in key order: with this prefix, from ``start`` (included) to ``stop`` (not)."""

    def count(self) -> int: ...


class HeldTable(TableReader, Protocol):
    """The reads of one table as a snapshot holds it."""

    def keys(self, after: bytes | None, limit: int, weight: int) -> tuple[Bytes, bool]:
        """Encoded keys in order, ``after`` excluded: so many at most, and no more of them once what is
        stored under them has about ``weight`` bytes; and whether there may be others behind them. Rows are not
        decoded."""


@runtime_checkable
class BaseTable(TableWriter, TableReader, Protocol):
    """One base table."""

    @property
    def table(self) -> Table: ...


class Batch(Protocol):
    """Writes that belong together: all of them or none."""

    def table(self, table: Table) -> TableWriter: ...


# ------------------------------------------------------------------ topology


@dataclass(frozen=True)
class Region:
    """A range of tokens [first, last] (hashes of keys), the node that owns it, and the
    number of times it changed hands: per-key order is (incarnation, sequence)."""

    first: int
    last: int
    node: int
    incarnation: int


class Topology(Protocol):
    """Nodes and regions, which may change while clients write."""

    def nodes(self) -> tuple[int, ...]: ...

    def regions(self) -> tuple[Region, ...]: ...

    def add_node(self) -> int: ...

    def remove_node(self, node: int) -> None: ...

    def split(self, token: int) -> None:
        """Cut the region that holds this token so that a region begins at it."""

    def move(self, token: int, node: int) -> None:
        """Give the region that holds this token to another node."""


# ------------------------------------------------------------------ state tables


@dataclass(frozen=True)
class Begun:
    """An epoch that has begun. ``resumed`` says that an earlier attempt began it: its
    frontier and plan are the ones to take, whatever the caller had in mind."""

    group: str
    epoch: int
    base: int
    """The epoch that was the last committed one when this began: what steps read."""
    start: Frontier
    frontier: Frontier
    plan: bytes
    resumed: bool


@dataclass(frozen=True)
class Commit:
    """The last committed epoch of a group. Epoch 0 is the empty beginning."""

    group: str
    epoch: int
    frontier: Frontier
    time: float


@dataclass(frozen=True)
class Puts:
    """Records to write: equally long columns. ``previous`` (null: none was there) spares
    the store a read; without it the store looks the previous values up."""

    keys: Bytes
    values: Bytes
    previous: Bytes | None = None


@dataclass(frozen=True)
class Deletes:
    """Records to delete, with their previous values where the caller knows them."""

    keys: Bytes
    previous: Bytes | None = None


@dataclass(frozen=True)
class Records:
    """Keys in order, and their values."""

    keys: Bytes
    values: Bytes


@dataclass(frozen=True)
class BagRows:
    """Rows of bags: the bag's key, the entry (bytes, ordered), and how often it stands there."""

    keys: Bytes
    entries: Bytes
    counts: pa.Int64Array


@dataclass(frozen=True)
class BagEnds:
    """First and last entry of each touched bag, before and after; null where it is empty.
    ``keys`` are distinct and sorted."""

    keys: Bytes
    first_before: Bytes
    last_before: Bytes
    first_after: Bytes
    last_after: Bytes


Lookup: TypeAlias = Callable[[bytes], tuple[int, int, bytes | None]]
"""Takes a key; gives the metadata's counter and the last committed epoch, both of one moment, and
the key's value as of that epoch."""


class StateReader(Protocol):
    """Reads of state tables as of one epoch."""

    def read(self, table: StateTable, keys: Bytes, as_of: int) -> Bytes:
        """The value of each key, null where there is none."""

    def scan(
        self, table: StateTable, prefix: bytes, as_of: int, limit: int | None = None, after: bytes | None = None
    ) -> Records:
        """Records whose key has the prefix, in key order, ``after`` excluded."""

    def read_bags(self, table: StateTable, keys: Bytes, as_of: int, first: pa.Int64Array | None = None) -> BagRows:
        """All rows of the given bags, ordered by key and entry. With ``first``, one number for
        each key (null: all rows; the keys are distinct then), only the rows at the beginning
        of each bag that bring the sum of their counts to that number; the last of them comes
        with its whole count. That costs what these rows cost, however large the bag is."""

    def bag_ends(self, table: StateTable, keys: Bytes, as_of: int) -> tuple[Bytes, Bytes]:
        """First and last entry of the bag of each key, null where it is empty."""

    def preview_bags(self, table: StateTable, changes: BagRows, as_of: int) -> BagEnds:
        """What :meth:`ViewStore.write_bags` of an epoch after ``as_of`` would return: for
        steps that are run without an epoch. Nothing is written."""

    def get(self, table: StateTable, key: bytes, as_of: int) -> bytes | None:
        """The value of one key: what :meth:`read` gives, without columns."""

    def committed(self, group: str) -> Commit: ...


class StateSnapshot(StateReader, AbstractContextManager["StateSnapshot"], Protocol):
    """A reader that stays on one version of the whole store until it is closed."""

    def bag_keys(self, table: StateTable, as_of: int, limit: int | None = None, after: bytes | None = None) -> Bytes:
        """The keys of the bags that hold something: shorter ones first, equally long ones in order,
        ``after`` excluded."""

    def close(self) -> None: ...


class TableSnapshot(StateSnapshot, Protocol):
    """One version of the whole store: views at their last committed epochs, and base tables
    at one frontier."""

    def __enter__(self) -> TableSnapshot: ...

    @property
    def frontier(self) -> Frontier:
        """Where the logs end in this version: what its base tables hold."""

    def table(self, table: Table) -> HeldTable: ...


class ViewStore(StateReader, Protocol):
    """Versioned tables and the epochs that move them."""

    @property
    def parts(self) -> int:
        """How many parts of the state can be written at the same time: the key k is in part
        ``crc32(k) % parts``. 1 where all keys can."""

    def begin(
        self, group: str, frontier: Frontier, plan: bytes, epoch: int | None = None, base: int | None = None
    ) -> Begun:
        """Begin the group's next epoch, or resume the one that was begun and not committed. With
        ``base``: begin only if that is still the last committed epoch, else raise ConflictError."""

    def begun(self, group: str) -> Begun | None:
        """The epoch that is under way, if one is."""

    def lookup(self, table: StateTable) -> Lookup:
        """A function for reading single records of a table, each as of the epoch that is the last
        committed one at that moment."""

    def history(self, group: str, limit: int = 10_000) -> tuple[Commit, ...]:
        """The group's last commits, the newest first: as many as are kept."""

    def commit(self, group: str, epoch: int) -> Commit:
        """Make the epoch visible. Committing the last committed epoch again changes nothing."""

    def write(self, table: StateTable, epoch: int, puts: Puts | None = None, deletes: Deletes | None = None) -> None:
        """Write records stamped with the epoch. Refused once the epoch is committed."""

    def write_bags(self, table: StateTable, epoch: int, changes: BagRows) -> BagEnds:
        """Add (or take away, where the count is negative) entries of bags. All changes of one
        bag in one epoch come in one call."""

    def add_to_bags(self, table: StateTable, epoch: int, changes: BagRows) -> None:
        """The same for callers who need not know where the bags begin and end."""

    def sweep(self, group: str) -> int:
        """Remove the tombstones of committed epochs; returns how many."""

    def drop(self, table: StateTable, prefix: bytes = b"") -> None:
        """Remove the records whose keys begin with the prefix: all epochs of them, at once for
        readers of the living store, never for snapshots that are already held.

        Views that share a table have a prefix each, and one is dropped while the others are
        written. A drop belongs to no epoch. It is called when the last epoch whose plan has
        the prefix is committed, and no process writes there again: a task that slept since is
        refused, for its epoch is closed (the store makes sure of that before it removes
        anything). Work is done in bounded transactions; a drop that was interrupted is
        called again."""

    def drop_bags(self, table: StateTable, prefix: bytes = b"") -> None:
        """The same for a table of bags, whose keys begin with the prefix."""

    def snapshot(self) -> StateSnapshot: ...


# ------------------------------------------------------------------ documents


class Metadata(Protocol):
    """Small named documents under one counter: the catalog's ground. Every commit adds one
    to the counter, so a process that polls it learns of every change."""

    def version(self) -> int: ...

    def documents(
        self, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> tuple[int, Mapping[str, bytes]]:
        """The counter and the documents whose names begin with the prefix, at one moment, in
        the order of their names (as UTF-8): those after ``after``, at most ``limit`` of them."""

    def commit(self, expected: int, puts: Mapping[str, bytes], deletes: Collection[str] = ()) -> int:
        """Apply if the counter still says ``expected``, else raise ConflictError. Returns the
        new counter."""


class Store(Protocol):
    """A store: everything above behind one door."""

    @property
    def log(self) -> Log: ...

    @property
    def views(self) -> ViewStore: ...

    @property
    def topology(self) -> Topology: ...

    @property
    def metadata(self) -> Metadata: ...

    def table(self, table: Table) -> BaseTable: ...

    def drop_table(self, table: Table) -> None: ...

    def batch(self) -> AbstractContextManager[Batch]: ...

    def snapshot(self) -> TableSnapshot: ...

    def lease(self, name: str, wait: float | None = 0) -> AbstractContextManager[object]:
        """Be the only process that does what is called so, until the end of the context; one that
        is gone holds nothing. Raises LeaseTakenError where another still does after ``wait``
        seconds (None: waits for ever)."""

    def holder(self, name: str) -> str | None:
        """The process that holds a lease, as far as it is known; None if no process does. Asking disturbs no one."""

    def sync(self) -> None:
        """Return when everything acknowledged so far is durable."""

    @property
    def gone(self) -> bool:
        """Whether the store was removed since it was opened, even if another is in its place now."""

    def close(self) -> None: ...
