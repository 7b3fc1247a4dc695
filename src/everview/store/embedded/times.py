"""When log entries were written, roughly, in a bounded space.

A writer that has not done so for ten milliseconds notes the number of its batch and the
time, so the time of any entry is known to ten milliseconds, and of old ones less exactly.

Notes are kept in rings, the fine one for what is young and coarser ones behind it::

    ring   a note at most every   notes    reaches back (while somebody writes all the time)
    0      10 ms                  1,024    10 seconds
    1      1 s                    4,096    an hour
    2      1 min                  4,096    three days

Nothing is noted while no process writes, so the first entry after a pause always has its own note.
Keys in the base file::

    W <ring> # <slot>      the batch that is noted in this slot
    W <ring> b <batch>     its time
    W <ring> n             how many notes there were, and the time of the last one
"""

from __future__ import annotations

import struct
import time

from everview.store.embedded.environment import Transaction

RINGS = ((0.01, 1024), (1.0, 4096), (60.0, 4096))
"""Seconds between two notes, and how many are kept."""

_SPACE = b"W"
_BATCH = struct.Struct(">Q")
_TIME = struct.Struct("<d")
_LAST = struct.Struct("<Qd")


class Times:
    """What a process knows of its last note: most writes need not look."""

    def __init__(self) -> None:
        self._batch = -1
        self._since = self._until = 0.0

    def note(self, transaction: Transaction) -> None:
        """Called in every transaction that appends to a log."""
        now = time.time()
        batch = transaction.id()
        # a transaction that was given up leaves its number to the next one, and no note
        if self._since <= now < self._until and batch != self._batch:
            return
        self._batch, self._since, self._until = batch, now, now + RINGS[0][0]
        for ring, (period, slots) in enumerate(RINGS):
            _note(transaction, ring, period, slots, batch, now)


def _note(transaction: Transaction, ring: int, period: float, slots: int, batch: int, now: float) -> None:
    space = _SPACE + bytes([ring])
    found = transaction.get(space + b"n")
    count, last = _LAST.unpack(found) if found else (0, 0.0)
    number = _BATCH.pack(batch)
    if last <= now < last + period or transaction.get(space + b"b" + number) is not None:
        return
    slot = space + b"#" + _BATCH.pack(count % slots)
    gone = transaction.get(slot)
    if gone is not None:
        transaction.delete(space + b"b" + gone)
    transaction.put(slot, number)
    transaction.put(space + b"b" + number, _TIME.pack(now))
    transaction.put(space + b"n", _LAST.pack(count + 1, now))


def time_of(transaction: Transaction, batch: int) -> float | None:
    """When a batch was written: at this time or a little later. One that is older than all notes was
    written before the time that is given. None: nothing was ever noted."""
    earliest = None
    for ring in range(len(RINGS)):
        space = _SPACE + bytes([ring]) + b"b"
        cursor = transaction.cursor()
        before = cursor.prev() if cursor.set_range(space + _BATCH.pack(batch + 1)) else cursor.last()
        if before and cursor.key().startswith(space):
            return float(_TIME.unpack(cursor.value())[0])
        if cursor.set_range(space) and cursor.key().startswith(space):
            earliest = float(_TIME.unpack(cursor.value())[0])
    return earliest
