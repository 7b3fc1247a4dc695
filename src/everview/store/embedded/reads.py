"""Reads of base tables.

A read is one LMDB read transaction, its own or one that a snapshot holds,
and what it finds is decoded into a dict for one row and into columns for many.
"""

from __future__ import annotations

import datetime
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import compress, islice

import lmdb
import pyarrow as pa

from everview.boundary import fast, public
from everview.change.types import INTEGERS, Kind
from everview.store.contract import Row
from everview.store.embedded.codecs import MAX_KEY, TableCodecs
from everview.store.embedded.environment import KEY_LIMIT, Environment, Transaction
from everview.store.embedded.layout import KEY_PREFIX
from everview.store.encoding.keys import successor
from everview.store.encoding.ragged import Bytes

SCAN_ROWS = 8192
SCAN_BYTES = 1 << 24
"""A batch of a scan has at most so many rows, and about so many bytes if they are large."""
FIRST_ROWS = 256
"""Of the first batch, before it is known how large they are."""

_CANONICAL: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    Kind.VARCHAR: str,
    Kind.JSON: str,
    Kind.BLOB: bytes,
    Kind.DATE: datetime.date,
    Kind.TIMESTAMP: datetime.datetime,
    **dict.fromkeys(INTEGERS, int),
}
"""Values of these classes stand in a row as the caller gave them in the key; others, such as
an integer for a DOUBLE or a time in another zone, are read back from the key."""


@public
@fast
class EmbeddedReader:
    """Reads of one table, each in a transaction of its own, or all in the one of a snapshot, which is asked for
    every time and never kept: the snapshot may be closed meanwhile."""

    def __init__(
        self, environment: Environment, codecs: TableCodecs, given: Callable[[], Transaction] | None = None
    ) -> None:
        self._environment = environment
        self._codecs = codecs
        self._given = given
        self.get = self._make_get()

    def _make_get(self) -> Callable[..., Row | None]:
        codecs, find = self._codecs, self._make_find()
        encode, decode_key, decode, prefix = (
            codecs.keys.encode,
            codecs.keys.decode,
            codecs.rows.decode_row,
            codecs.prefix,
        )
        classes = tuple(_CANONICAL.get(part.type.kind) for part in codecs.table.schema.key_parts)

        def get(*key: object) -> Row | None:
            encoded = encode(key)
            found = find(prefix + encoded)
            if found is None:
                return None
            return decode(key if tuple(map(type, key)) == classes else decode_key(encoded), found)

        return get

    def _make_find(self) -> Callable[[bytes], bytes | None]:
        """What stands at a place: by the shortest way there is."""
        environment, given = self._environment, self._given

        def find_in_given(place: bytes) -> bytes | None:
            assert given is not None
            return given().get(place) if len(place) <= KEY_LIMIT else None

        def find_counted(place: bytes) -> bytes | None:
            with environment.read() as transaction:
                return transaction.get(place) if len(place) <= KEY_LIMIT else None

        def find(place: bytes) -> bytes | None:
            if len(place) > KEY_LIMIT:
                return None
            try:
                transaction = environment.begin()
            except lmdb.Error as error:
                transaction = environment.begin_after(error)
            found = transaction.get(place)
            transaction.abort()
            return found

        if given is not None:
            return find_in_given
        return find if environment.fixed else find_counted

    def get_many(self, keys: pa.Table | Sequence[object]) -> pa.Table:
        """The rows of many keys as columns, without those that do not exist."""
        codecs = self._codecs
        encoded = codecs.keys.encode_columns(codecs.intake.keys(keys)).to_pylist()
        with self._transaction() as transaction:
            found = [transaction.get(codecs.prefix + key) if len(key) <= MAX_KEY else None for key in encoded]
        there = [row is not None for row in found]
        rows = [row for row in found if row is not None]
        return pa.Table.from_batches([codecs.decode(list(compress(encoded, there)), rows)])

    def scan(
        self,
        prefix: Sequence[object] = (),
        *,
        start: Sequence[object] | None = None,
        stop: Sequence[object] | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        codecs = self._codecs
        within = codecs.prefix + codecs.keys.encode_prefix(prefix)
        low = within if start is None else max(within, codecs.prefix + codecs.keys.encode_prefix(start))
        high = successor(within)
        if stop is not None:
            end = codecs.prefix + codecs.keys.encode_prefix(stop)
            high = end if high is None else min(high, end)
        return self._scan(low, high, limit)

    def _scan(self, low: bytes, high: bytes | None, limit: int | None) -> Iterator[pa.RecordBatch]:
        for found, _ in self._pages(low, high, limit):
            yield self._codecs.decode([key[KEY_PREFIX:] for key, _ in found], [row for _, row in found])

    def keys(self, after: bytes | None, limit: int, weight: int) -> tuple[Bytes, bool]:
        prefix = self._codecs.prefix
        low = prefix if after is None else prefix + after + b"\0"  # nothing stands between these two
        found: list[bytes] = []
        taken = 0
        for page, size in self._pages(low, successor(prefix), limit):
            found += [key[KEY_PREFIX:] for key, _ in page]
            taken += size
            if taken >= weight:
                break
        return pa.array(found, pa.large_binary()), len(found) >= limit or taken >= weight

    def _pages(
        self, low: bytes, high: bytes | None, limit: int | None
    ) -> Iterator[tuple[list[tuple[bytes, bytes]], int]]:
        """What is stored from ``low`` to before ``high``, some at a time: places and rows, and about how many
        bytes these are."""
        left, size = limit, FIRST_ROWS
        start: bytes | None = low
        with self._held_open() as transaction:
            while start is not None and (left is None or left > 0):
                found, start = _page(transaction(), start, high, size if left is None else min(left, size))
                weight = sum(len(row) for _, row in found)
                size = max(1, min(SCAN_ROWS, SCAN_BYTES // (weight // max(len(found), 1) + 1)))
                if left is not None:
                    left -= len(found)
                if found:
                    yield found, weight

    def count(self) -> int:
        with self._transaction() as transaction:
            return int.from_bytes(transaction.get(self._codecs.count_key) or b"", "big")

    def _transaction(self) -> AbstractContextManager[Transaction]:
        return self._environment.read() if self._given is None else nullcontext(self._given())

    @contextmanager
    def _held_open(self) -> Iterator[Callable[[], Transaction]]:
        """One transaction for several reads."""
        if self._given is not None:
            yield self._given
            return
        with self._environment.read() as transaction:
            yield lambda: transaction


def _page(
    transaction: Transaction, low: bytes, high: bytes | None, count: int
) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
    """At most so many places and rows from ``low`` to before ``high``, and where to go on, unless that is all."""
    with transaction.cursor() as cursor:
        more = cursor.set_range(low[:KEY_LIMIT])
        if more and len(low) > KEY_LIMIT and cursor.key() == low[:KEY_LIMIT]:
            more = cursor.next()  # the longest key there can be, and still before the bound
        if not more:
            return [], None
        found = list(islice(cursor.iternext(), count))
        following = cursor.key() if cursor.next() else None
    if high is not None and found[-1][0] >= high:
        del found[bisect_left(found, (high,)) :]
        following = None
    return found, following
