"""Reads of single records of state tables, by the shortest way there is.

The base file holds what a reader must know (the last committed epoch, and whether a definition has changed): that
is read in one transaction, the record and the fence in another.

The two files may be read at different moments. If an epoch was committed in between, the shard's
fence says so as soon as the version asked for may be gone; then both are read again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import lmdb

from everview.store.contract import Lookup, StateTable
from everview.store.embedded.environment import KEY_LIMIT, Environment, Transaction
from everview.store.embedded.epoch_records import committed_epoch, committed_key, fence_key, number_of, require_kept
from everview.store.embedded.layout import DOCUMENT
from everview.store.embedded.records import space_of
from everview.store.embedded.snapshots import StoreFiles
from everview.store.embedded.versions import ABSENT, value_as_of

Door = Callable[[], AbstractContextManager[Transaction]]


def read_one(doors: Sequence[Door], table: StateTable, key: bytes, as_of: int) -> bytes | None:
    place = space_of(table) + key
    with doors[zlib.crc32(key) % len(doors)]() as txn:
        require_kept(txn, table.group, as_of)
        return value_as_of(txn.get(place, ABSENT), as_of, table.name) if len(place) <= KEY_LIMIT else None


def lookup(core: StoreFiles, table: StateTable) -> Lookup:
    """A function that reads records of one table as of the last committed epoch."""
    shards = core.shards
    committed, fenced, space, name = committed_key(table.group), fence_key(table.group), space_of(table), table.name
    count, read_base, read_shard = len(shards), _pair_reader(core.base), [_pair_reader(shard) for shard in shards]

    def find(key: bytes) -> tuple[int, int, bytes | None]:
        place = (space + key)[:KEY_LIMIT]
        read = read_shard[zlib.crc32(key) % count]
        while True:
            counter, commit = read_base(DOCUMENT, committed)
            fence, record = read(fenced, place)
            epoch = committed_epoch(commit)
            if number_of(fence) <= epoch:
                break
        if record is None or len(space) + len(key) > KEY_LIMIT:
            return int.from_bytes(counter or b"", "big"), epoch, None
        return int.from_bytes(counter or b"", "big"), epoch, value_as_of(record, epoch, name)

    return find


def _pair_reader(environment: Environment) -> Callable[[bytes, bytes], tuple[bytes | None, bytes | None]]:
    """Reads two keys of a file at one moment."""

    def counted(one: bytes, other: bytes) -> tuple[bytes | None, bytes | None]:
        with environment.read() as transaction:
            return transaction.get(one), transaction.get(other)

    def uncounted(one: bytes, other: bytes) -> tuple[bytes | None, bytes | None]:
        try:
            transaction = environment.begin()
        except lmdb.Error as error:
            transaction = environment.begin_after(error)
        found = transaction.get(one), transaction.get(other)
        transaction.abort()
        return found

    return uncounted if environment.fixed else counted
