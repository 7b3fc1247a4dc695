"""The reference model of state tables and epochs: a full copy of every table per committed epoch.

A step is a pure function, so an epoch's whole work is fixed when it begins,
and the model only remembers which part of it has been written so far.

``at(table, as_of)`` is the one question everything else asks: the newest committed copy at
or below ``as_of``, with the written part of the open epoch laid over it if ``as_of``
reaches that far.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from everview.change.frontier import Frontier
from everview.store.contract import StateTable

Contents = dict[bytes, Any]
"""Records: key to value. Bags: key to Counter of entries, never empty."""


@dataclass
class Open:
    """An epoch that has begun."""

    epoch: int
    base: int
    start: Frontier
    frontier: Frontier
    plan: bytes
    work: dict[int, dict[bytes, Any]]
    """By table id: what each touched key must become (records: value or None; bags: the
    changes of its entries)."""
    written: dict[int, set[bytes]] = field(default_factory=dict)


@dataclass
class Group:
    epoch: int = 0
    frontier: Frontier = field(default_factory=Frontier)
    open: Open | None = None


@dataclass
class Versions:
    """One state table: its copies by the epoch that committed them."""

    table: StateTable
    bags: bool
    copies: dict[int, Contents] = field(default_factory=lambda: {0: {}})
    dropped: set[bytes] = field(default_factory=set)
    """Prefixes under which nothing is written any more."""

    def newest(self, as_of: int) -> Contents:
        return self.copies[max(epoch for epoch in self.copies if epoch <= as_of)]


@dataclass
class StateModel:
    counter: int = 0
    groups: dict[str, Group] = field(default_factory=dict)
    tables: dict[int, Versions] = field(default_factory=dict)

    def begin(self, group: str, opened: Open) -> None:
        self.counter = opened.epoch
        self.groups[group].open = opened

    def commit(self, group: str) -> None:
        """The open epoch becomes the committed one; all its work must have been written."""
        state = self.groups[group]
        opened = state.open
        assert opened is not None
        for versions in self.tables.values():
            if versions.table.group == group:
                assert opened.written.get(versions.table.id, set()) == opened.work.get(versions.table.id, {}).keys()
                versions.copies[opened.epoch] = self.at(versions.table.id, opened.epoch)
        state.epoch, state.frontier, state.open = opened.epoch, opened.frontier, None

    def drop(self, table: int, prefix: bytes) -> None:
        """No copy has the keys any more, whatever its epoch."""
        versions = self.tables[table]
        for epoch, contents in versions.copies.items():
            versions.copies[epoch] = {key: held for key, held in contents.items() if not key.startswith(prefix)}
        versions.dropped.add(prefix)

    def at(self, table: int, as_of: int) -> Contents:
        """The table as of an epoch."""
        versions = self.tables[table]
        contents = dict(versions.newest(as_of))
        opened = self.groups[versions.table.group].open
        if opened is not None and opened.epoch <= as_of:
            for key in opened.written.get(table, ()):
                after = self.after(versions, contents.get(key), opened.work[table][key])
                contents.pop(key, None)
                if after is not None:
                    contents[key] = after
        return contents

    def after(self, versions: Versions, old: Any, work: Any) -> Any:
        """What a key becomes: for a bag, None when nothing is left in it."""
        if not versions.bags:
            return work
        bag: Counter[bytes] = Counter(old or {})
        for entry, count in work.items():
            bag[entry] += count
        assert all(count >= 0 for count in bag.values())
        return +bag or None
