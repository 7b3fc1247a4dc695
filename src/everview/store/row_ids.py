"""Row ids: the hidden keys of tables that have none.

An id is a UUID of version 7, made by the process that inserts the row: the time in
milliseconds, then random bits in which the rows of a batch count upwards.

::

    0190f3c2 7a41   7   c3b   8 1f09b6c2d4e7a05
    milliseconds    |   12    | 62 bits: a random start, and one more for each row
                 version   variant

Why not a counter: that would be one place where all writers of all processes meet, in a
transaction of its own on stores that have no counters. An id that is made where the row comes
from needs no other process, and a batch that is sent again writes the same rows, not new ones.

Why no collisions: processes that insert in the same millisecond start at one of 2**73 places.
Inside a process ids only ever rise, also where the clock stands still or goes back, so rows are
scanned in the order in which one process inserted them, and a table grows at its end. A forked
process starts again.
"""

from __future__ import annotations

import os
import secrets
import threading
import time

import numpy as np
import pyarrow as pa

from everview.change.types import UUID

_VERSION = 7 << 12
_VARIANT = 2 << 62
_START_BITS = 61
"""Of the 62 bits that count, the highest is free at the start: there is room for every batch."""


class RowIds:
    """Makes the ids of one process."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._lock = threading.Lock()
        self._time = 0
        self._high = 0
        self._next = 0

    def column(self, count: int) -> pa.Array:
        """So many ids, ascending, and above all that this process has made."""
        high, first = self._taken(count)
        words = np.empty((count, 2), ">u8")
        words[:, 0] = high
        words[:, 1] = np.arange(first, first + count, dtype=np.uint64) | np.uint64(_VARIANT)
        stored = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), count, [None, pa.py_buffer(words.tobytes())])
        return pa.ExtensionArray.from_storage(UUID.arrow, stored)

    def _taken(self, count: int) -> tuple[int, int]:
        with self._lock:
            now = time.time_ns() // 1_000_000
            if now > self._time:
                self._time = now
                self._high = now << 16 | _VERSION | secrets.randbits(12)
                self._next = secrets.randbits(_START_BITS)
            first = self._next
            self._next += count
            return self._high, first


_IDS = RowIds()
os.register_at_fork(after_in_child=_IDS.restart)


def row_ids(count: int) -> pa.Array:
    """So many fresh ids."""
    return _IDS.column(count)
