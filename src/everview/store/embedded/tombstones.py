"""The index of tombstones, and the sweep that removes them.

A sweep reads an index of what to remove, so it never looks for tombstones among the living.

The index lies in the space of table 0, which does not exist::

    00000000 T <group> 00 <epoch> <table> <digest>  ->  the keys of one write's tombstones

An entry names records that were tombstones when it was written. A record is removed only if it still is
one, of that same epoch: a later epoch that wrote the key again has an index entry of its own if it left a
tombstone. The digest makes the entry of a retried write the same entry.
"""

from __future__ import annotations

import hashlib
import struct
from itertools import pairwise, repeat

import numpy as np

from everview.store.contract import StateTable
from everview.store.embedded.environment import Environment, Transaction
from everview.store.embedded.epoch_records import RESERVED, fence_in, group_name
from everview.store.embedded.snapshots import StoreFiles
from everview.store.embedded.versions import ABSENT, Versions

BOUNDED = 10_000
"""Records that one transaction of a sweep or a drop touches, and that one index entry names."""

_INDEX = struct.Struct(">QI8s")


def note_tombstones(txn: Transaction, table: StateTable, epoch: int, keys: list[bytes]) -> None:
    """Enter what a write has deleted into the index, in the transaction of the write."""
    for first in range(0, len(keys), BOUNDED):
        part = keys[first : first + BOUNDED]
        packed = np.fromiter(map(len, part), "<u4", len(part)).tobytes() + b"".join(part)
        digest = hashlib.blake2b(packed, digest_size=8).digest()
        entry = _index_space(table.group) + _INDEX.pack(epoch, table.id, digest)
        txn.put(entry, struct.pack("<I", len(part)) + packed)


def _index_space(group: str) -> bytes:
    return RESERVED + b"T" + group_name(group) + b"\0"


def sweep_shard(core: StoreFiles, environment: Environment, group: str) -> int:
    """Remove the tombstones of the group's committed epochs from one shard."""
    space = _index_space(group)
    removed = 0
    while True:
        with environment.read() as txn:
            if _first_entry(txn, space, fence_in(txn, group)) is None:
                return removed
        removed += core.update(environment, lambda txn: _sweep(txn, space, fence_in(txn, group)))


def _first_entry(txn: Transaction, space: bytes, fence: int) -> tuple[bytes, int, bytes] | None:
    """The first index entry at or below the fence: its key, its epoch, its content."""
    with txn.cursor() as cursor:
        if not cursor.set_range(space) or not cursor.key().startswith(space):
            return None
        epoch = _INDEX.unpack(cursor.key()[len(space) :])[0]
        return (cursor.key(), epoch, cursor.value()) if epoch <= fence else None


def _sweep(txn: Transaction, space: bytes, fence: int) -> int:
    removed = touched = 0
    while touched < BOUNDED:
        entry = _first_entry(txn, space, fence)
        if entry is None:
            break
        name, epoch, packed = entry
        keys = _unpack(packed)
        found = Versions(list(map(txn.get, keys, repeat(ABSENT))), "tombstones")
        dead = np.flatnonzero(found.tombstone & (found.epoch == epoch)).tolist()
        removed += sum(map(txn.delete, [keys[i] for i in dead]))
        txn.delete(name)
        touched += len(keys) + 1
    return removed


def _unpack(packed: bytes) -> list[bytes]:
    count = struct.unpack_from("<I", packed)[0]
    ends = np.cumsum(np.frombuffer(packed, "<u4", count, 4)) + 4 + 4 * count
    edges = [4 + 4 * count, *ends.tolist()]
    return [packed[start:end] for start, end in pairwise(edges)]
