"""Versioned tables of records, spread over the shard files.

Keys are ordered by (shard, key) once, and from there on every shard is one
slice: one sorted run of gets, or one sorted run of puts in one transaction.

A record's key in its shard is the table's id (four bytes, big-endian) and the key; the
shard is the key's token modulo the number of shards. Table 0 does not exist; its space
holds the fences (:mod:`~everview.store.embedded.epoch_records`) and the index of tombstones
(:mod:`~everview.store.embedded.tombstones`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice, repeat
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import InputError, KeyTooLongError
from everview.store.contract import Deletes, Puts, Records, StateTable
from everview.store.embedded.bag_entries import narrow_width, to_codes
from everview.store.embedded.environment import KEY_LIMIT, Transaction
from everview.store.embedded.epoch_records import RESERVED, require_kept, require_open
from everview.store.embedded.snapshots import StoreFiles
from everview.store.embedded.tombstones import note_tombstones
from everview.store.embedded.versions import ABSENT, Versions, encode, encode_one, value_as_of
from everview.store.encoding.ragged import (
    BINARY,
    EMPTY,
    Bytes,
    Ints,
    Mask,
    concat,
    content,
    gather,
    lengths,
    null_column,
    nulls,
    places,
    prefixed,
)
from everview.store.encoding.tokens import tokens_of

Door: TypeAlias = Callable[[], AbstractContextManager[Transaction]]
"""Opens a read transaction on one shard: a new one, or the one a snapshot holds."""

RECORD_KEY_LIMIT = KEY_LIMIT - len(RESERVED)

SCAN_BLOCK = 4096

FEW = 32
"""Records up to which one after the other is faster than all in columns."""


def space_of(table: StateTable) -> bytes:
    """What the keys of a table's records begin with."""
    if not 0 < table.id < 1 << 32:
        raise InputError(f"state table {table.name} cannot have the id {table.id}", hint="ids are 1 to 2³² − 1")
    return struct.pack(">I", table.id)


@dataclass(frozen=True)
class ShardRoute:
    """Keys in the order (shard, key). Row i of the route is row ``order[i]`` of the caller."""

    order: Ints
    keys: Bytes
    edges: list[int]
    """Shard s has the rows ``edges[s]:edges[s + 1]``."""


def route(keys: Bytes, shards: int) -> ShardRoute:
    shard = (tokens_of(keys) % shards).astype(np.uint8 if shards <= 256 else np.uint16)
    if _ascending(keys):
        order = np.argsort(shard, kind="stable")
    else:
        by_key = order_of(keys)
        order = by_key[np.argsort(shard[by_key], kind="stable")]
    edges = np.searchsorted(shard[order], np.arange(shards + 1)).tolist()
    return ShardRoute(order, keys.take(pa.array(order)), edges)


def order_of(keys: Bytes) -> Ints:
    """The order of the keys; short ones of one length are sorted as numbers."""
    width = narrow_width(keys)
    order: Ints = (
        np.argsort(to_codes(keys, width)) if width else pc.array_sort_indices(keys).to_numpy().astype(np.int64)
    )
    return order


def _ascending(keys: Bytes) -> bool:
    return bool(pc.all(pc.less_equal(keys[:-1], keys[1:])).as_py()) if len(keys) > 1 else True


def inverse(order: Ints) -> Ints:
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return back


def check_types(table: StateTable, *columns: Bytes | None) -> None:
    """Refuse columns of another type, whose buffers would be misread."""
    for column in columns:
        if column is not None and not isinstance(column, pa.LargeBinaryArray):
            raise InputError(
                f"state table {table.name} takes bytes as large_binary arrays, not {type(column).__name__}",
                hint="cast the column to pyarrow.large_binary()",
            )


def check_keys(table: StateTable, keys: Bytes, limit: int) -> None:
    """Refuse what cannot be a key."""
    check_types(table, keys)
    if keys.null_count:
        raise InputError(f"a key of state table {table.name} is null")
    longest = int(lengths(keys).max(initial=0))
    if longest > limit:
        where = int(lengths(keys).argmax())
        raise KeyTooLongError(
            f"a key of state table {table.name} has {longest} bytes: {keys[where].as_py()[:32].hex()}…",
            detail=f"the store takes {limit}",
            hint="use a shorter key, for example a digest of a long text",
        )


# ------------------------------------------------------------------ reading


def read_records(doors: Sequence[Door], table: StateTable, keys: Bytes, as_of: int) -> Bytes:
    if len(keys) <= FEW:
        return _read_few(doors, table, keys, as_of)
    check_keys(table, keys, RECORD_KEY_LIMIT)
    path = route(keys, len(doors))
    found = fetch(doors, table, prefixed(space_of(table), path.keys).to_pylist(), path.edges, as_of)
    return Versions(found, table.name).values(as_of, inverse(path.order))


def _read_few(doors: Sequence[Door], table: StateTable, keys: Bytes, as_of: int) -> Bytes:
    check_types(table, keys)
    plain = keys.to_pylist()
    if any(key is None or len(key) > RECORD_KEY_LIMIT for key in plain):
        check_keys(table, keys, RECORD_KEY_LIMIT)
    prefix = space_of(table)
    values: list[bytes | None] = []
    for key in plain:
        with doors[zlib.crc32(key) % len(doors)]() as txn:
            require_kept(txn, table.group, as_of)
            values.append(value_as_of(txn.get(prefix + key, ABSENT), as_of, table.name))
    return pa.array(values, BINARY)


def fetch(doors: Sequence[Door], table: StateTable, keys: list[bytes], edges: list[int], as_of: int) -> list[bytes]:
    """The raw records of keys that are in the order of shards."""
    found: list[bytes] = []
    for shard, door in enumerate(doors):
        part = keys[edges[shard] : edges[shard + 1]]
        if part:
            with door() as txn:
                require_kept(txn, table.group, as_of)
                found += map(txn.get, part, repeat(ABSENT))
    return found


def scan_records(
    doors: Sequence[Door], table: StateTable, prefix: bytes, as_of: int, limit: int | None, after: bytes | None
) -> Records:
    """Every shard's first ``limit`` records, merged."""
    if limit is not None and limit < 0:
        raise InputError(f"a scan of state table {table.name} cannot have the limit {limit}")
    space = space_of(table)
    start = prefix if after is None else max(prefix, after + b"\0")
    parts = [_scan_shard(door, table, space + prefix, space + start, as_of, limit) for door in doors]
    keys, values = concat(*(part.keys for part in parts)), concat(*(part.values for part in parts))
    order = pc.array_sort_indices(keys)[:limit]
    return Records(keys.take(order), values.take(order))


def _scan_shard(door: Door, table: StateTable, prefix: bytes, start: bytes, as_of: int, limit: int | None) -> Records:
    keys, values, count = [EMPTY], [EMPTY], 0
    with door() as txn:
        require_kept(txn, table.group, as_of)
        cursor = txn.cursor()
        going = limit != 0 and cursor.set_range(start[:KEY_LIMIT])
        if going and len(start) > KEY_LIMIT and cursor.key() == start[:KEY_LIMIT]:
            going = cursor.next()  # the longest key there can be, and still before the start
        rows = cursor.iternext()
        while going:
            block = list(islice(rows, SCAN_BLOCK if limit is None else min(limit - count + 16, SCAN_BLOCK)))
            whole = len(block)
            if not whole:
                break
            if not block[-1][0].startswith(prefix):
                block = [row for row in block if row[0].startswith(prefix)]
            found = _living(table, block, as_of)
            keys.append(found.keys)
            values.append(found.values)
            count += len(found.keys)
            going = len(block) == whole and (limit is None or count < limit)
    return Records(concat(*keys)[:limit], concat(*values)[:limit])


def _living(table: StateTable, rows: list[tuple[bytes, bytes]], as_of: int) -> Records:
    """The keys and values of the rows that are there as of the epoch."""
    if len(rows) <= FEW:
        found = [(key[len(RESERVED) :], value_as_of(record, as_of, table.name)) for key, record in rows]
        living = [(key, value) for key, value in found if value is not None]
        return Records(pa.array([key for key, _ in living], BINARY), pa.array([value for _, value in living], BINARY))
    plain, records = zip(*rows, strict=True)
    versions = Versions(records, table.name)
    there = np.flatnonzero(~versions.as_of(as_of)[2])
    column = pa.array(plain, BINARY)
    edges = places(column)
    keys = gather(content(column), edges[:-1] + len(RESERVED), edges[1:], there)
    return Records(keys, versions.values(as_of, there))


# ------------------------------------------------------------------ writing


def write_records(
    core: StoreFiles, doors: Sequence[Door], table: StateTable, epoch: int, puts: Puts | None, deletes: Deletes | None
) -> None:
    puts = puts or Puts(EMPTY, EMPTY)
    deletes = deletes or Deletes(EMPTY)
    _check_columns(table, puts, deletes)
    if len(puts.keys) + len(deletes.keys) <= FEW and _write_few(core, doors, table, epoch, puts, deletes):
        return
    keys = concat(puts.keys, deletes.keys)
    check_keys(table, keys, RECORD_KEY_LIMIT)
    current = concat(puts.values, null_column(len(deletes.keys)))
    previous = concat(*(_previous(doors, table, epoch, part.keys, part.previous) for part in (puts, deletes)))
    path = route(keys, len(doors))
    _refuse_duplicates(table, path.keys)
    order = pa.array(path.order)
    write_routed(
        core,
        table,
        epoch,
        prefixed(space_of(table), path.keys),
        current.take(order),
        previous.take(order),
        path.edges,
    )


def _write_few(
    core: StoreFiles, doors: Sequence[Door], table: StateTable, epoch: int, puts: Puts, deletes: Deletes
) -> bool:
    """The same for a few records, one after the other; False where the keys are not to be written at all:
    the caller that writes many explains it."""
    keys: list[bytes | None] = [*puts.keys.to_pylist(), *deletes.keys.to_pylist()]
    plain = [key for key in keys if key is not None and len(key) <= RECORD_KEY_LIMIT]
    if len(set(plain)) < len(keys):
        return False
    current = [*puts.values.to_pylist(), *[None] * len(deletes.keys)]
    previous = [
        value
        for part in (puts, deletes)
        if len(part.keys)
        for value in _previous(doors, table, epoch, part.keys, part.previous).to_pylist()
    ]
    prefix, shards = space_of(table), len(core.shards)
    for shard, environment in enumerate(core.shards):
        rows = [row for row, key in enumerate(plain) if zlib.crc32(key) % shards == shard]
        if rows:
            rows.sort(key=plain.__getitem__)
            dead = np.array([current[row] is None for row in rows])
            void = np.array([current[row] is None and previous[row] is None for row in rows])
            records = [encode_one(epoch, current[row], previous[row]) for row in rows]
            core.update(environment, _Write(table, epoch, [prefix + plain[row] for row in rows], records, dead, void))
    return True


def _check_columns(table: StateTable, puts: Puts, deletes: Deletes) -> None:
    check_types(table, puts.keys, puts.values, puts.previous, deletes.keys, deletes.previous)
    wanted = [(puts.keys, puts.values), (puts.keys, puts.previous), (deletes.keys, deletes.previous)]
    if any(other is not None and len(keys) != len(other) for keys, other in wanted):
        raise InputError(f"the columns of a write to state table {table.name} differ in length")
    if puts.values.null_count:
        raise InputError(
            f"a put to state table {table.name} has no value", hint="name the key among the deletes instead"
        )


def _previous(doors: Sequence[Door], table: StateTable, epoch: int, keys: Bytes, known: Bytes | None) -> Bytes:
    """Values before the epoch: the caller's, or what the records say, which a failed
    attempt of this epoch has not changed."""
    return known if known is not None else read_records(doors, table, keys, epoch - 1)


def _refuse_duplicates(table: StateTable, routed: Bytes) -> None:
    same = pc.equal(routed[1:], routed[:-1]).to_numpy(zero_copy_only=False)
    if same.any():
        key = routed[int(same.argmax())].as_py()
        raise InputError(
            f"key {key.hex()} comes twice in one write to state table {table.name}",
            hint="condense the changes first: one put or one delete for each key",
        )


def write_routed(
    core: StoreFiles, table: StateTable, epoch: int, keys: Bytes, current: Bytes, previous: Bytes, edges: list[int]
) -> None:
    """Write records that are in the order of shards; no current value means a tombstone,
    neither current nor previous that the record should not be there at all."""
    dead = nulls(current)
    void = dead & nulls(previous) if dead.any() else dead
    plain = keys.to_pylist()
    records = encode(epoch, current, previous).to_pylist()
    for shard, environment in enumerate(core.shards):
        part = slice(edges[shard], edges[shard + 1])
        if part.start < part.stop:
            write = _Write(table, epoch, plain[part], records[part], dead[part], void[part])
            core.update(environment, write)


@dataclass(frozen=True)
class _Write:
    """What one write does to one shard."""

    table: StateTable
    epoch: int
    keys: list[bytes]
    records: list[bytes]
    dead: Mask
    void: Mask

    def __call__(self, txn: Transaction) -> None:
        require_open(txn, self.table.group, self.epoch)
        keys, records, dead = self.keys, self.records, self.dead
        if self.void.any():
            needed = ~self.void
            where = np.flatnonzero(self.void).tolist()
            needed[where] = self._left_behind(txn, [keys[i] for i in where])
            chosen = np.flatnonzero(needed).tolist()
            keys, records, dead = [keys[i] for i in chosen], [records[i] for i in chosen], dead[chosen]
        with txn.cursor() as cursor:
            cursor.putmulti(zip(keys, records, strict=True))
        if dead.any():
            note_tombstones(txn, self.table, self.epoch, [keys[i] for i in np.flatnonzero(dead).tolist()])

    def _left_behind(self, txn: Transaction, keys: list[bytes]) -> Mask:
        """Which of the keys, where nothing is to be, hold more than a tombstone: a failed
        attempt of this epoch wrote them."""
        found = Versions(list(map(txn.get, keys, repeat(ABSENT))), self.table.name)
        return ~found.as_of(self.epoch)[2]
