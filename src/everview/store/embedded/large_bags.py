"""Bags of more than one chunk: finding the chunks that changes fall into.

The chunks of a bag stand side by side in its shard, each under the bag's key
and its own lower bound, so the chunk of an entry is the last one whose bound is not
greater.

A bag with the bounds "", "f" and "p" as of the base epoch, and changes to "b", "c", "q"::

    key of the bag + ""     [ a … e ]     region 0: b, c
    key of the bag + "f"    [ f … o ]     not touched, not read
    key of the bag + "p"    [ p … z ]     region 1: q

Records that were not there as of the base epoch (tombstones, chunks that a failed attempt
made) are passed over.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from everview.store.embedded.chunks import damaged_chunk, ends_of, size_of
from everview.store.embedded.environment import KEY_LIMIT, Transaction
from everview.store.embedded.versions import is_there, value_as_of

T = TypeVar("T")

Ends = tuple[bytes, bytes] | None
"""First and last entry, or nothing."""

Chunk = tuple[bytes, bytes]
"""A bound and the record that stands under it."""

WALK = 2
"""Chunks to pass over one by one before looking for the next one that changes fall into."""


class TouchedChunk(NamedTuple):
    """A chunk that changes fall into, and the changes (a range of the bag's sorted ones)."""

    bound: bytes
    record: bytes
    following: bytes | None
    """The bound of the bag's next chunk."""
    first: int
    stop: int


class LargeBag:
    """The chunks of one bag as of one epoch, in one transaction."""

    def __init__(self, txn: Transaction, table: str, prefix: bytes, as_of: int) -> None:
        self._cursor = txn.cursor()
        self._table = table
        self._prefix = prefix
        self._as_of = as_of

    def chunks(self, most: int | None) -> Iterator[bytes]:
        """The records of the chunks, in order: all, or until they hold ``most`` entries together."""
        self._cursor.set_range(self._prefix)
        for key, record in self._cursor.iternext():
            if not key.startswith(self._prefix):
                break
            if not is_there(record, self._as_of, self._table):
                continue
            yield record
            if most is not None:
                most -= self._checked(size_of, self._value(record) or b"")
                if most <= 0:
                    break

    def ends(self) -> Ends:
        """First and last entry of the bag. Only the first chunk may stand there empty."""
        first = self.ends_in(b"")
        if first is None and self._cursor.set_key(self._prefix):
            following = self._step(forward=True)
            first = None if following is None else self.ends_in(following[0])
        last = self.ends_in(self.last())
        return (first[0], last[1]) if first and last else None

    def regions(self, entries: Sequence[bytes]) -> list[TouchedChunk]:
        """The chunks that the sorted entries fall into. The first chunk is among them where
        it is empty, so that a bag which loses its last entry loses that chunk too."""
        found: list[TouchedChunk] = []
        at, steps = 0, 0
        first_too = self.ends_in(b"") is None
        if not first_too:
            self._find(entries[0])
        here: Chunk | None = self._here()
        while here is not None and (at < len(entries) or first_too):
            following = self._step(forward=True)
            stop = len(entries) if following is None else bisect_left(entries, following[0], at)
            if stop > at or first_too:
                found.append(TouchedChunk(*here, following and following[0], at, stop))
                at, steps, here, first_too = stop, 0, following, False
            elif steps < WALK:
                steps, here = steps + 1, following
            else:
                self._find(entries[at])
                steps, here = 0, self._here()
        return found

    def _find(self, entry: bytes) -> None:
        """Puts the cursor on the chunk of the entry. Bounds are never longer than the key
        limit allows, so what an entry has beyond that does not matter."""
        place = (self._prefix + entry)[:KEY_LIMIT]
        if self._cursor.set_range(place) and self._cursor.key() == place and self._is_there():
            return
        if self.before(entry) is None:
            self._cursor.set_key(self._prefix)

    def before(self, bound: bytes) -> bytes | None:
        """The bound of the last chunk whose bound is smaller."""
        place = (self._prefix + bound)[:KEY_LIMIT]
        if not self._cursor.set_range(place):
            if not self._cursor.last():
                return None
            if self._ours() and self._is_there():
                return self._here()[0]
        found = self._step(forward=False)
        return None if found is None else found[0]

    def last(self) -> bytes:
        """The bound of the last chunk."""
        after = (int.from_bytes(self._prefix, "big") + 1).to_bytes(len(self._prefix), "big")
        if not self._cursor.set_range(after):
            self._cursor.last()
            if self._ours() and self._is_there():
                return self._here()[0]
        found = self._step(forward=False)
        return b"" if found is None else found[0]

    def chunk(self, bound: bytes) -> bytes | None:
        """The chunk with this bound."""
        found = self._cursor.set_key(self._prefix + bound)
        return self._value(self._cursor.value()) if found else None

    def ends_in(self, bound: bytes) -> Ends:
        """First and last entry of the chunk with this bound."""
        chunk = self.chunk(bound)
        return None if chunk is None else self._checked(ends_of, chunk)

    def _checked(self, of: Callable[[bytes], T], chunk: bytes) -> T:
        try:
            return of(chunk)
        except struct.error:
            raise damaged_chunk(self._table) from None

    def _step(self, *, forward: bool) -> Chunk | None:
        """Moves the cursor to the next or the previous chunk that is there."""
        move = self._cursor.next if forward else self._cursor.prev
        while move():
            key, record = self._cursor.item()
            if not key.startswith(self._prefix):
                break
            if is_there(record, self._as_of, self._table):
                return key[len(self._prefix) :], record
        return None

    def _here(self) -> Chunk:
        key, record = self._cursor.item()
        return key[len(self._prefix) :], record

    def _ours(self) -> bool:
        return self._cursor.key().startswith(self._prefix)

    def _is_there(self) -> bool:
        return is_there(self._cursor.value(), self._as_of, self._table)

    def _value(self, record: bytes) -> bytes | None:
        return value_as_of(record, self._as_of, self._table)
