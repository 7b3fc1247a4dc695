"""Dropping what a view left in the shards.

The keys that begin with a prefix are runs of neighbours in every shard, and
each transaction removes the next bounded number of them.

Records of a table that begin with a prefix are one run. Chunks of bags stand under the length
of their bag's key first (see bags.py), so there is one run for each length that occurs::

    table | 0009 | prefix x  …        bags whose keys have nine bytes
    table | 0011 | prefix xyz …       bags whose keys have eleven

A dropped record leaves no tombstone: nothing is to be read there as of any epoch. What the
index of tombstones still says about it is passed over by the sweep, which finds no tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from typing import TYPE_CHECKING, TypeAlias

from everview.store.contract import StateTable
from everview.store.embedded.bag_regions import FRAME
from everview.store.embedded.environment import KEY_LIMIT, Transaction
from everview.store.embedded.records import space_of
from everview.store.embedded.snapshots import StoreFiles
from everview.store.embedded.tombstones import BOUNDED

if TYPE_CHECKING:
    import lmdb

Cursor: TypeAlias = "lmdb.Cursor[bytes]"


def drop_records(core: StoreFiles, table: StateTable, prefix: bytes) -> None:
    space = space_of(table)
    _drop(core, lambda cursor: _run(cursor, space + prefix))


def drop_bags(core: StoreFiles, table: StateTable, prefix: bytes) -> None:
    space = space_of(table)
    _drop(core, lambda cursor: _runs(cursor, space, prefix))


def _drop(core: StoreFiles, keys_to_drop: Callable[[Cursor], Iterator[bytes]]) -> None:
    def some(txn: Transaction) -> int:
        with txn.cursor() as cursor:
            keys = list(islice(keys_to_drop(cursor), BOUNDED))
        return sum(map(txn.delete, keys))

    for shard in core.shards:
        while core.update(shard, some):
            pass


def _run(cursor: Cursor, start: bytes) -> Iterator[bytes]:
    """The keys that begin so."""
    if len(start) <= KEY_LIMIT and cursor.set_range(start):
        yield from takewhile(lambda key: key.startswith(start), cursor.iternext(values=False))


def _runs(cursor: Cursor, space: bytes, prefix: bytes) -> Iterator[bytes]:
    """The keys of chunks of bags whose keys begin so; lengths that do not occur are skipped."""
    size = len(prefix)
    while size <= KEY_LIMIT - FRAME:
        start = space + size.to_bytes(2, "big")
        if not cursor.set_range(start) or not cursor.key().startswith(space):
            return
        found = int.from_bytes(cursor.key()[len(space) : FRAME], "big")
        if found == size:
            yield from _run(cursor, start + prefix)
            size += 1
        else:
            size = found
