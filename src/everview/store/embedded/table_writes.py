"""Writes to base tables: rows and their log entries, in one transaction.

A write is checked and encoded first, then applied in one transaction that
looks up the old rows, puts the new ones, and appends both to the log of the node that
owns each key.

Single puts and large batches take different roads to the same bytes: a single put is
plain Python over one row, a batch is columns until the last moment, when LMDB wants its
keys and values one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import MissingColumnError
from everview.store.contract import EntryKind, Row, Table
from everview.store.embedded import blocks
from everview.store.embedded.codecs import MAX_KEY, TableCodecs, shown_key, too_long
from everview.store.embedded.environment import Transaction
from everview.store.embedded.layout import LOG
from everview.store.embedded.times import Times
from everview.store.embedded.topology import EmbeddedTopology, log_end, log_key
from everview.store.encoding.columns import merge_columns, to_python
from everview.store.encoding.ragged import BINARY, Bytes, Ints, Mask, lengths, null_column, nulls, prefixed
from everview.store.encoding.tokens import tokens_of
from everview.store.intake import Incoming

Work = Callable[[Transaction], None]


@dataclass(frozen=True)
class Writer:
    """Turns checked input into work for one write transaction."""

    codecs: TableCodecs
    topology: EmbeddedTopology
    times: Times
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
        return codecs.rows.apply(old, given)

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
        end = log_end(transaction, map_, region.node)
        block = blocks.encode_one(
            self.codecs.table.id, transaction.id(), end, region.incarnation, kind, self.images, key, old, new
        )
        transaction.put(log_key(LOG, region.node, end.sequence + 1), block)
        self.times.note(transaction)

    def put_many(self, incoming: Incoming) -> Work:
        codecs = self.codecs
        keys = self._checked(codecs.keys.encode_columns(incoming.keys))
        whole = all(given is True for given in incoming.given)
        count = len(incoming)
        patches = None if self.images else codecs.rows.encode_patch_columns(incoming.values, incoming.given, count)
        if whole:
            whole_rows = _WholeRows(keys, codecs.rows.encode_columns(incoming.values, count), patches, codecs.prefix)
            return lambda transaction: self._put_whole(transaction, whole_rows)
        parts = [
            _Part(_take(incoming, chosen), _taken(keys, chosen), _taken(patches, chosen), codecs.prefix)
            for chosen in _rounds(keys)
        ]

        def work(transaction: Transaction) -> None:
            codecs.check_definition(transaction)
            for part in parts:
                self._put_part(transaction, part)

        return work

    def _put_whole(self, transaction: Transaction, given: _WholeRows) -> None:
        self.codecs.check_definition(transaction)
        stored, last = _stored(transaction, given.places)
        logged = given.rows if given.patches is None else given.patches
        self._append_many(transaction, EntryKind.PUT, given.keys, given.before(stored), logged)
        transaction.cursor().putmulti(zip(given.places, given.last.to_pylist(), strict=True), append=last)
        self.codecs.add_to_count(transaction, stored.null_count)

    def _put_part(self, transaction: Transaction, part: _Part) -> None:
        old, last = _stored(transaction, part.places)
        self._check_required(part.incoming, old)
        rows = self._merged(part.incoming, old)
        logged = rows if part.patches is None else part.patches
        self._append_many(transaction, EntryKind.PUT, part.keys, old, logged)
        transaction.cursor().putmulti(zip(part.places, rows.to_pylist(), strict=True), append=last)
        self.codecs.add_to_count(transaction, old.null_count)

    def _merged(self, incoming: Incoming, old: Bytes) -> Bytes:
        before = self.codecs.rows.decode_columns(old)
        return self.codecs.rows.encode_columns(merge_columns(before, incoming.values, incoming.given))

    def _check_required(self, incoming: Incoming, old: Bytes) -> None:
        """A new row must name every NOT NULL column."""
        table = self.codecs.table
        for name, given in zip(self.codecs.names, incoming.given, strict=True):
            if name not in self.codecs.required or given is True:
                continue
            lacking = nulls(old) & ~np.asarray(given, np.bool_)
            if lacking.any():
                at = int(np.argmax(lacking))
                parts = zip(incoming.keys, table.schema.key_parts, strict=True)
                raise _no_value(table, tuple(to_python(c.slice(at, 1), p.type)[0] for c, p in parts), name)

    def delete_many(self, key_columns: Sequence[pa.Array]) -> Work:
        codecs = self.codecs
        wanted = pc.unique(codecs.keys.encode_columns(key_columns))
        wanted = wanted.filter(pa.array(lengths(wanted) <= MAX_KEY))
        keys = _taken(wanted, _rounds(wanted)[0])
        positions = prefixed(codecs.prefix, keys).to_pylist()

        def work(transaction: Transaction) -> None:
            codecs.check_definition(transaction)
            old, _ = _stored(transaction, positions)
            there = ~nulls(old)
            mask = pa.array(there)
            gone = old.filter(mask)
            self._append_many(transaction, EntryKind.DELETE, keys.filter(mask), gone, null_column(len(gone)))
            for position in compress(positions, there.tolist()):
                transaction.delete(position)
            codecs.add_to_count(transaction, -len(gone))

        return work

    def _checked(self, keys: Bytes) -> Bytes:
        """Keys none of which is too long."""
        sizes = lengths(keys)
        longest = int(sizes.max(initial=0))
        if longest > MAX_KEY:
            key = keys[int(sizes.argmax())].as_py()
            raise too_long(self.codecs.table, self.codecs.keys.decode(key), longest)
        return keys

    def _append_many(self, transaction: Transaction, kind: EntryKind, keys: Bytes, old: Bytes, new: Bytes) -> None:
        if not len(keys):
            return
        map_ = self.topology.current(transaction)
        nodes, incarnations = map_.locate(tokens_of(keys))
        owners, turns = np.unique(nodes, return_inverse=True)
        order = np.argsort(turns.astype(np.uint16), kind="stable")
        entries = blocks.LogEntries(kind, keys, old, new, incarnations).take(order)
        packed = blocks.Packed(self.codecs.table.id, transaction.id(), self.images, entries)
        edges = [0, *np.cumsum(np.bincount(turns)).tolist()]
        for node, (start, end) in zip(owners.tolist(), pairwise(edges), strict=True):
            run = packed.blocks(start, end, log_end(transaction, map_, node))
            transaction.cursor().putmulti((log_key(LOG, node, last), block) for last, block in run)
        self.times.note(transaction)


def _no_value(table: Table, key: tuple[object, ...], name: str) -> MissingColumnError:
    return MissingColumnError(
        f"table {table.name}, key {shown_key(key)}: column {name} has no value",
        detail="the row is new, and the column is NOT NULL",
        hint=f"name {name} in the put",
    )


class _WholeRows:
    """Rows of a batch that name every column, in key order, those of one key as they came: what a later one of them
    finds is the one before it, so only the first of a key has to be looked up, and only the last is stored."""

    def __init__(self, keys: Bytes, rows: Bytes, patches: Bytes | None, prefix: bytes) -> None:
        order, repeats = _ordered(keys)
        self.keys = _taken(keys, order)
        self.rows = _taken(rows, order)
        self.patches = _taken(patches, order)
        """What the log takes, where it takes no before-images."""
        self._repeats = repeats
        distinct = self.keys if repeats is None else self.keys.filter(pa.array(~repeats))
        self.places: list[bytes] = prefixed(prefix, distinct).to_pylist()
        self.last = self.rows if repeats is None else self.rows.filter(pa.array(~np.append(repeats[1:], False)))
        """The last row of each key."""

    def before(self, stored: Bytes) -> Bytes:
        """What each row finds, where the first of each key finds what is stored."""
        if self._repeats is None:
            return stored
        position = np.arange(len(self.rows))
        found = np.where(self._repeats, len(stored) + position - 1, np.cumsum(~self._repeats) - 1)
        return pa.concat_arrays([stored, self.rows]).take(pa.array(found))


class _Part:
    """Rows of a batch that old rows must be merged into, in key order, each key once."""

    def __init__(self, incoming: Incoming, keys: Bytes, patches: Bytes | None, prefix: bytes) -> None:
        self.incoming = incoming
        self.keys = keys
        self.patches = patches
        """What the log takes, where it takes no before-images."""
        self.places: list[bytes] = prefixed(prefix, keys).to_pylist()


def _ordered(keys: Bytes) -> tuple[Ints | None, Mask | None]:
    """Positions in key order, those of one key as they stand (None: all of them, as they stand), and which of them
    have the key of the one before (None: no key comes twice)."""
    if len(keys) < 2 or pc.all(pc.less(keys[:-1], keys[1:])).as_py():
        return None, None
    order: Ints = pc.array_sort_indices(keys).to_numpy().astype(np.int64)
    ordered = keys.take(pa.array(order))
    repeats = pc.equal(ordered[:-1], ordered[1:]).to_numpy(zero_copy_only=False)
    return order, np.concatenate([[False], repeats]) if repeats.any() else None


def _rounds(keys: Bytes) -> list[Ints | None]:
    """Positions in key order, each key at most once a round: the second write of a key in a
    batch goes to the second round, and so on. None: all of them, as they stand."""
    order, repeats = _ordered(keys)
    if order is None or repeats is None:
        return [order]
    position = np.arange(len(order))
    turn = position - np.maximum.accumulate(np.where(repeats, 0, position))
    return [order[turn == number] for number in range(int(turn.max()) + 1)]


def _take(incoming: Incoming, chosen: Ints | None) -> Incoming:
    if chosen is None:
        return incoming
    indices = pa.array(chosen)
    return Incoming(
        keys=[column.take(indices) for column in incoming.keys],
        values=[column.take(indices) for column in incoming.values],
        given=[given if isinstance(given, bool) else given[chosen] for given in incoming.given],
    )


def _taken(column: Bytes, chosen: Ints | None) -> Bytes:
    """The values at these positions; a column that is not there stays so."""
    return column if column is None or chosen is None else column.take(pa.array(chosen))


def _stored(transaction: Transaction, places: list[bytes]) -> tuple[Bytes, bool]:
    """What stands at the places, which ascend; null where nothing does. And whether they lie
    behind everything else. A run of places with nothing in between, as in a first load,
    costs one look-up."""
    cursor = transaction.cursor()
    last = not places or not cursor.set_range(places[0])
    if last or cursor.key() > places[-1]:
        return null_column(len(places)), last
    return pa.array(list(map(transaction.get, places)), BINARY), False
