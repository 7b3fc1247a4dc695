"""Writes to base tables: rows and their log entries, in one transaction.

One sentence: a write is checked and encoded first, then applied in one transaction that
looks up the old rows, puts the new ones, and appends both to the log of the node that
owns each key.

Single puts and large batches take different roads to the same bytes: a single put is
plain Python over one row, a batch is columns until the last moment, when LMDB wants its
keys and values one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.errors import MissingColumnError
from everview.store.columns import merge_columns, to_python
from everview.store.contract import EntryKind, Row, Table
from everview.store.embedded import blocks
from everview.store.embedded.codecs import MAX_KEY, TableCodecs, shown_key, split, too_long
from everview.store.embedded.environment import Transaction
from everview.store.embedded.layout import LOG
from everview.store.embedded.topology import EmbeddedTopology, Map, last_sequence, log_key
from everview.store.intake import Incoming

Work = Callable[[Transaction], None]


@dataclass(frozen=True)
class Writer:
    """Turns checked input into work for one write transaction."""

    codecs: TableCodecs
    topology: EmbeddedTopology
    images: bool

    def put_one(self, row: Row) -> Work:
        codecs, images = self.codecs, self.images
        key_values, given = codecs.intake.row(row)
        key = codecs.checked_key(codecs.keys.encode(key_values))
        whole = len(given) == len(codecs.names)
        complete = codecs.rows.encode([given[name] for name in codecs.names]) if whole else None

        def work(transaction: Transaction) -> None:
            codecs.check_definition(transaction)
            at = codecs.prefix + key
            old = transaction.get(at)
            new = complete if complete is not None else self._patched(key_values, old, given)
            logged = new if images else codecs.rows.encode_patch(given)
            self._append_one(transaction, EntryKind.PUT, key, old, logged)
            transaction.put(at, new)
            if old is None:
                codecs.add_to_count(transaction, 1)

        return work

    def _patched(self, key: tuple[object, ...], old: bytes | None, given: Row) -> bytes:
        codecs = self.codecs
        if old is None:
            for name in codecs.required:
                if name not in given:
                    raise _no_value(codecs.table, key, name)
            return codecs.rows.encode([given.get(name) for name in codecs.names])
        before = codecs.rows.decode_row(key, old)
        return codecs.rows.encode([given[name] if name in given else before[name] for name in codecs.names])

    def delete_one(self, key_values: Sequence[object]) -> Work:
        codecs = self.codecs
        key = codecs.keys.encode(key_values)

        def work(transaction: Transaction) -> None:
            codecs.check_definition(transaction)
            at = codecs.prefix + key
            old = transaction.get(at) if len(key) <= MAX_KEY else None
            if old is not None:
                self._append_one(transaction, EntryKind.DELETE, key, old, None)
                transaction.delete(at)
                codecs.add_to_count(transaction, -1)

        return work

    def _append_one(
        self, transaction: Transaction, kind: EntryKind, key: bytes, old: bytes | None, new: bytes | None
    ) -> None:
        map_ = self.topology.current(transaction)
        region = map_.region(crc32(key))
        sequence = last_sequence(transaction, map_, region.node) + 1
        block = blocks.encode_one(
            self.codecs.table.id, transaction.id(), sequence, region.incarnation, kind, self.images, key, old, new
        )
        transaction.put(log_key(LOG, region.node, sequence), block)

    def put_many(self, incoming: Incoming) -> Work:
        codecs = self.codecs
        keys = self._split_keys(codecs.keys.encode_columns(incoming.keys))
        rounds = _rounds(keys)
        whole = all(given is True for given in incoming.given)
        patches = None if self.images else codecs.rows.encode_patch_columns(incoming.values, incoming.given)
        complete = codecs.rows.encode_columns(incoming.values) if whole else None

        def work(transaction: Transaction) -> None:
            codecs.check_definition(transaction)
            for chosen in rounds:
                at = [codecs.prefix + keys[index] for index in chosen]
                old = list(map(transaction.get, at))
                if complete is None:
                    part = _take(incoming, chosen)
                    self._check_required(part, old)
                    rows = self._merged(part, old)
                else:
                    rows = _taken(complete, chosen)
                logged = rows if patches is None else _taken(patches, chosen)
                self._append_many(transaction, EntryKind.PUT, [keys[i] for i in chosen], old, split(logged))
                transaction.cursor().putmulti(zip(at, split(rows), strict=True))
                codecs.add_to_count(transaction, old.count(None))

        return work

    def _merged(self, incoming: Incoming, old: Sequence[bytes | None]) -> pa.LargeBinaryArray:
        before = self.codecs.rows.decode_columns(pa.array(old, pa.large_binary()))
        return self.codecs.rows.encode_columns(merge_columns(before, incoming.values, incoming.given))

    def _check_required(self, incoming: Incoming, old: Sequence[bytes | None]) -> None:
        """A new row must name every NOT NULL column."""
        table = self.codecs.table
        for name, given in zip(self.codecs.names, incoming.given, strict=True):
            if name not in self.codecs.required or given is True:
                continue
            lacking = np.fromiter((row is None for row in old), np.bool_, len(old)) & ~np.asarray(given, np.bool_)
            if lacking.any():
                at = int(np.argmax(lacking))
                parts = zip(incoming.keys, table.schema.key_parts, strict=True)
                raise _no_value(table, tuple(to_python(c.slice(at, 1), p.type)[0] for c, p in parts), name)

    def delete_many(self, key_columns: Sequence[pa.Array]) -> Work:
        codecs = self.codecs
        keys = list(dict.fromkeys(split(codecs.keys.encode_columns(key_columns))))
        keys = sorted(key for key in keys if len(key) <= MAX_KEY)

        def work(transaction: Transaction) -> None:
            codecs.check_definition(transaction)
            at = [codecs.prefix + key for key in keys]
            old = list(map(transaction.get, at))
            there = [row is not None for row in old]
            self._append_many(
                transaction, EntryKind.DELETE, list(compress(keys, there)), list(compress(old, there)), None
            )
            for position in compress(at, there):
                transaction.delete(position)
            codecs.add_to_count(transaction, -sum(there))

        return work

    def _split_keys(self, encoded: pa.LargeBinaryArray) -> list[bytes]:
        keys = split(encoded)
        longest = max(map(len, keys), default=0)
        if longest > MAX_KEY:
            key = next(key for key in keys if len(key) == longest)
            raise too_long(self.codecs.table, self.codecs.keys.decode(key), longest)
        return keys

    def _append_many(
        self,
        transaction: Transaction,
        kind: EntryKind,
        keys: list[bytes],
        old: list[bytes | None],
        new: list[bytes] | None,
    ) -> None:
        if not keys:
            return
        map_ = self.topology.current(transaction)
        nodes, incarnations = map_.locate(np.fromiter(map(crc32, keys), np.uint32, len(keys)))
        for node in np.unique(nodes).tolist():
            mine = nodes == node
            picks = mine.tolist()
            entries = blocks.Entries(
                kind,
                list(compress(keys, picks)),
                list(compress(old, picks)),
                None if new is None else list(compress(new, picks)),
                incarnations[mine],
            )
            self._append_node(transaction, map_, node, entries)

    def _append_node(self, transaction: Transaction, map_: Map, node: int, entries: blocks.Entries) -> None:
        first = last_sequence(transaction, map_, node) + 1
        encoded = blocks.encode_many(self.codecs.table.id, transaction.id(), first, self.images, entries)
        transaction.cursor().putmulti((log_key(LOG, node, last), block) for last, block in encoded)


def _no_value(table: Table, key: tuple[object, ...], name: str) -> MissingColumnError:
    return MissingColumnError(
        f"table {table.name}, key {shown_key(key)}: column {name} has no value",
        detail="the row is new, and the column is NOT NULL",
        hint=f"name {name} in the put",
    )


def _rounds(keys: list[bytes]) -> list[list[int]]:
    """Positions in key order, each key at most once a round: the second write of a key in a
    batch goes to the second round, and so on."""
    count = len(keys)
    order = list(range(count))
    if any(map(bytes.__ge__, keys, keys[1:])):
        order.sort(key=keys.__getitem__)
    if len(set(keys)) == count:
        return [order]
    rounds: list[list[int]] = []
    seen: dict[bytes, int] = {}
    for index in order:
        turn = seen.get(keys[index], 0)
        seen[keys[index]] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(index)
    return rounds


def _take(incoming: Incoming, chosen: list[int]) -> Incoming:
    indices = pa.array(chosen, pa.int64())
    positions: npt.NDArray[np.int64] = np.asarray(chosen, np.int64)
    return Incoming(
        keys=[column.take(indices) for column in incoming.keys],
        values=[column.take(indices) for column in incoming.values],
        given=[given if isinstance(given, bool) else given[positions] for given in incoming.given],
    )


def _taken(rows: pa.LargeBinaryArray, chosen: list[int]) -> pa.LargeBinaryArray:
    if len(chosen) == len(rows) and chosen[0] == 0 and chosen[-1] == len(rows) - 1 and chosen == list(range(len(rows))):
        return rows
    return rows.take(pa.array(chosen, pa.int64()))
