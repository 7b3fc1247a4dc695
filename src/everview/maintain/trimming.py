"""Log entries that no group needs any more are trimmed.

An entry of a log goes when every group and every build has passed it, and it is neither
among the last operations nor among those of the last time that are kept for readers.

::

    oldest                 limit                           latest
      │   may go             │   needed by a group,          │
      ▼                      ▼   or kept for readers         ▼
      ├──────────────────────┼───────────────────────────────┤

The readers of logs, and the point from which they need them:

- a group with views: from the frontier of its last epoch. One that lags (a lazy one, say) holds the
  logs back for as long as it does, and one whose views are gone until no process can begin an epoch of it;
- a build: from the frontier of its last chunk; of its first one from that chunk's frontier, since a
  chunk that was interrupted takes in the rows as they were there, by undoing what was written since;
- readers: subscribers, reads of an earlier epoch, snapshots that are compared with base rows. They
  hold nothing back. What is kept for them is a setting of the store (``SET GLOBAL
  log_retention_operations`` and ``log_retention_age``): by default the last million operations, and
  all operations younger than an hour. A reader that comes later gets an error that explains it.

The work is done in turns of bounded size by the maintainer, so writers never wait for long.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from everview.catalog import Catalog, GroupKind
from everview.change.frontier import Frontier
from everview.maintain.plans import GROUPS, commit
from everview.store.contract import Store

TURN = 100_000
"""Log entries that are trimmed in one turn."""
EVERY = 1.0
"""Seconds between two turns, where there is not more to do."""
SLACK = 60
"""Entries become older than they have to by a part of what is kept: then many go at once."""

_DOCUMENT = "setting/log_retention"


@dataclass(frozen=True)
class Retention:
    """What is kept for readers: an entry that is one of the last ``operations``, or is younger than
    ``age`` seconds."""

    operations: int = 1_000_000
    age: float = 3600.0


def retention_of(store: Store) -> Retention:
    """What is kept in a store."""
    found = store.metadata.documents(_DOCUMENT)[1].get(_DOCUMENT)
    return Retention() if found is None else Retention(**json.loads(found))


def set_retention(store: Store, *, operations: int | None = None, age: float | None = None) -> None:
    """Keep more, or less, from now on."""

    def change(_: int) -> tuple[Mapping[str, bytes], Collection[str]]:
        last = retention_of(store)
        now = Retention(last.operations if operations is None else operations, last.age if age is None else age)
        return {_DOCUMENT: json.dumps(asdict(now)).encode()}, ()

    commit(store, change)


def needed(store: Store, catalog: Catalog) -> dict[str, Frontier]:
    """From where on groups and builds need the logs; the others need nothing of them."""
    planned = {name.removeprefix(GROUPS) for name in store.metadata.documents(GROUPS)[1]}
    found: dict[str, Frontier] = {}
    for group in catalog.definitions().groups():
        done, begun = store.views.committed(group.name), store.views.begun(group.name)
        if done.epoch and (group.kind is GroupKind.BUILDING or group.name in planned or begun is not None):
            found[group.name] = done.frontier
        elif begun is not None:
            found[group.name] = begun.frontier
    return found


class Trimmer:
    """Trims the logs of a store, a turn at a time, with so many seconds in between. For the process that holds the
    store's lease."""

    def __init__(self, store: Store, catalog: Catalog, every: float = EVERY) -> None:
        self._store = store
        self._catalog = catalog
        self._every = every
        self._due = 0.0
        self._began = False

    def hurry(self) -> None:
        """Let the next turn come at once."""
        self._due = 0.0

    def turn(self) -> bool:
        """Trim some, if it is time to; whether there is more to do at once."""
        if time.monotonic() < self._due:
            return False
        if not self._began:
            self._store.log.trim(self._store.log.oldest())  # what a killed process left
            self._began = True
        more = self._trim(retention_of(self._store))
        self._due = 0.0 if more else time.monotonic() + self._every
        return more

    def _trim(self, keep: Retention) -> bool:
        log = self._store.log
        oldest, latest = log.oldest(), log.latest()
        room = min(oldest.operations_to(latest) - keep.operations, TURN)
        if room <= 0 or not self._old(oldest, keep.age * (1 + 1 / SLACK)):
            return False
        goal = log.advance(oldest, room)
        while not self._old(goal, keep.age):
            room //= 2
            if not room:
                return False
            goal = log.advance(oldest, room)
        for frontier in needed(self._store, self._catalog).values():
            goal &= frontier
        if goal <= oldest or (goal | oldest).operations_to(latest) < keep.operations:  # a batch larger than the room
            return False
        return log.trim(goal | oldest) >= TURN // 2

    def _old(self, frontier: Frontier, age: float) -> bool:
        """Whether all at or before the frontier is older than that."""
        if not age:
            return True
        written = self._store.log.written_after(frontier)
        return written is not None and written <= time.time() - age


@dataclass(frozen=True)
class KeptLogs:
    """What there is of the logs, and why."""

    operations: int
    """Entries that are kept."""
    since: float | None
    """When the oldest of them was written, as a time of :func:`time.time`; None: not known."""
    needed_by: Mapping[str, int]
    """For each group and build how many of the last entries it needs."""
    retention: Retention

    def __str__(self) -> str:
        """In a line; of those who need something, who needs most."""
        text = f"{self.operations:,} operations are kept"
        who, most = max(self.needed_by.items(), key=lambda one: one[1], default=("", 0))
        return f"{text}, group {who} needs the last {most:,}" if most else text


def kept(store: Store, catalog: Catalog) -> KeptLogs:
    """What is kept of a store's logs."""
    latest, oldest = store.log.latest(), store.log.oldest()
    holders = needed(store, catalog)
    counts = {name: (frontier & latest).operations_to(latest) for name, frontier in holders.items()}
    return KeptLogs(oldest.operations_to(latest), store.log.written_after(oldest), counts, retention_of(store))
