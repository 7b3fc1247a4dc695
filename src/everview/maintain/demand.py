"""How often readers ask for lazy groups: those that are asked for most are moved first.

A fresh read of a view whose group lags counts as one. Reads are forgotten by half every minute, so what counts is
the recent past::

    maintenance/demand/<group>      {"reads": 12.5, "time": 1718000000.0}       12.5 as of that time

A reader counts in memory and writes now and then: a document that is written makes every process look up its
definitions again, which takes a millisecond. What a process has counted and not written is lost with it.
"""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping

from everview.errors import EverviewError
from everview.maintain.plans import commit
from everview.store.contract import Store

DEMAND = "maintenance/demand/"
HALF_LIFE = 60.0
"""Seconds after which a read counts half."""
EVERY = 5.0
"""Seconds between two writes of what a process has counted."""
FORGOTTEN = 0.01
"""Less than so many reads is none."""


def demand(store: Store, now: float | None = None) -> dict[str, float]:
    """The groups that are asked for, each with how many reads of now its reads count as."""
    now = time.time() if now is None else now
    found = {}
    for name, document in store.metadata.documents(DEMAND)[1].items():
        recorded = json.loads(document)
        found[name.removeprefix(DEMAND)] = recorded["reads"] * 0.5 ** (max(0.0, now - recorded["time"]) / HALF_LIFE)
    return found


def by_demand(groups: Iterable[str], asked: Mapping[str, float]) -> list[str]:
    """Groups, those first that are asked for most; those asked for equally often in the order of their names."""
    return sorted(groups, key=lambda group: (-asked.get(group, 0.0), group))


def per_minute(reads: float) -> float:
    """How often a group is asked for each minute whose reads count as so many."""
    return reads * 60.0 / HALF_LIFE * math.log(2)


def record_reads(store: Store, counts: Mapping[str, int], now: float | None = None) -> None:
    """Add reads of groups, and forget groups that are hardly asked for any more."""
    now = time.time() if now is None else now

    def documents(_: int) -> tuple[dict[str, bytes], list[str]]:
        known = demand(store, now)
        reads = {group: known.get(group, 0.0) + count for group, count in counts.items()}
        puts = {
            DEMAND + group: json.dumps({"reads": round(count, 3), "time": now}).encode()
            for group, count in reads.items()
        }
        return puts, [DEMAND + group for group, left in known.items() if left < FORGOTTEN and group not in counts]

    commit(store, documents)


class ReadCounts:
    """Reads of lazy groups that this process has not recorded yet. Safe for many threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._last: float | None = None

    def add(self, group: str) -> None:
        """Count a read, in memory."""
        with self._lock:
            self._counts[group] += 1

    def record(self, *, at_once: bool = False) -> None:
        """Write what was counted, unless that was done in the last seconds."""
        if not self._counts:
            return
        with self._lock:
            now = time.monotonic()
            if not at_once and self._last is not None and now - self._last < EVERY:
                return
            self._last = now
            counts, self._counts = self._counts, Counter()
        with contextlib.suppress(EverviewError):  # a full disk, say: no read fails because it cannot be counted
            record_reads(self._store, counts)
