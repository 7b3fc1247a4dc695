"""Epochs that are only computed: what their steps would write is laid over the states of the last committed epoch.

    state as of the last epoch   +   writes of runs so far   =   state that the next run reads

A run reads what was there when it began, and :meth:`Overlay.end` lets what it has written take effect. So a reader
that has seen the logs up to a frontier goes on from there with the entries that came later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from everview.operators.work import Dry
from everview.store.contract import BagEnds, BagRows, Deletes, Puts, StateTable
from everview.store.encoding.ragged import BINARY, Bytes

Bag = Counter[bytes]
"""Entries with the difference of their counts, which is not 0."""


@dataclass
class Overlay:
    """What runs have written into the states of one plan since an epoch."""

    records: dict[int, dict[bytes, bytes | None]] = field(default_factory=lambda: defaultdict(dict))
    """By table and key; None: there is none any more."""
    bags: dict[int, dict[bytes, Bag]] = field(default_factory=lambda: defaultdict(dict))
    """By table and key of the bag."""

    def __len__(self) -> int:
        """How many records and entries it holds."""
        return sum(map(len, self.records.values())) + sum(
            len(bag) for bags in self.bags.values() for bag in bags.values()
        )

    def end(self, run: Run) -> None:
        """Let what a run has written take effect."""
        for id, written in run.records.items():
            self.records[id].update(written)
        for id, changed in run.bags.items():
            self.bags[id].update(added(self.bags[id], changed))

    def run(self, below: Dry) -> Run:
        """The states of the next run, over those of the epoch."""
        return Run(below, self)


def added(bags: dict[bytes, Bag], changes: dict[bytes, Bag]) -> dict[bytes, Bag]:
    """The bags that change, with their changes."""
    found: dict[bytes, Bag] = {}
    for key, change in changes.items():
        bag = Counter(bags.get(key, {}))
        for entry, count in change.items():
            bag[entry] += count
        found[key] = Counter({entry: count for entry, count in bag.items() if count})
    return found


@dataclass
class Run:
    """The states of one run."""

    below: Dry
    over: Overlay
    keeps: bool = True
    records: dict[int, dict[bytes, bytes | None]] = field(default_factory=lambda: defaultdict(dict))
    bags: dict[int, dict[bytes, Bag]] = field(default_factory=lambda: defaultdict(dict))

    # -------------------------------------------------------------- records

    def read(self, table: StateTable, keys: Bytes) -> Bytes:
        found = self.below.read(table, keys)
        over = self.over.records.get(table.id)
        if not over:
            return found
        plain = zip(keys.to_pylist(), found.to_pylist(), strict=True)
        return pa.array([over.get(key, value) for key, value in plain], BINARY)

    def write(self, table: StateTable, puts: Puts, deletes: Deletes) -> None:
        written = self.records[table.id]
        written.update(dict.fromkeys(deletes.keys.to_pylist()))
        written.update(zip(puts.keys.to_pylist(), puts.values.to_pylist(), strict=True))

    # -------------------------------------------------------------- bags

    def read_bags(self, table: StateTable, keys: Bytes, first: pa.Int64Array | None = None) -> BagRows:
        over = self._over(table, keys.to_pylist())
        if not over:
            return self.below.read_bags(table, keys, first)
        limits = [None] * len(keys) if first is None else first.to_pylist()
        wanted = dict(zip(keys.to_pylist(), limits, strict=True))
        more = None if first is None else pa.array([_enough(wanted[k], over.get(k)) for k in wanted], pa.int64())
        found = self.below.read_bags(table, pa.array(list(wanted), BINARY) if first is not None else keys, more)
        bags: dict[bytes, Bag] = defaultdict(Counter)
        for key, entry, count in _rows(found):
            bags[key][entry] = count
        for key, bag in added(bags, over).items():
            bags[key] = bag
        rows = [(key, *one) for key in sorted(bags) for one in _beginning(bags[key], wanted[key])]
        return _bag_rows(rows)

    def bag_ends(self, table: StateTable, keys: Bytes) -> tuple[Bytes, Bytes]:
        first, last = self.below.bag_ends(table, keys)
        named = keys.to_pylist()
        over = self._over(table, named)
        if not over:
            return first, last
        ends = self.below.write_bags(table, _bag_rows(_flat(over)))
        known = dict(zip(ends.keys.to_pylist(), _pairs(ends.first_after, ends.last_after), strict=True))
        found = [known.get(key, pair) for key, pair in zip(named, _pairs(first, last), strict=True)]
        return pa.array([one for one, _ in found], BINARY), pa.array([one for _, one in found], BINARY)

    def write_bags(self, table: StateTable, changes: BagRows) -> BagEnds:
        self.add_to_bags(table, changes)
        touched = sorted(set(changes.keys.to_pylist()))
        over = self._over(table, touched)
        if not over:
            return self.below.write_bags(table, changes)
        before = self.bag_ends(table, pa.array(touched, BINARY))
        both = added(over, _summed(changes))
        moved = {key: bag for key, bag in both.items() if bag}
        ends = self.below.write_bags(table, _bag_rows(_flat(moved)))
        after = dict(zip(ends.keys.to_pylist(), _pairs(ends.first_after, ends.last_after), strict=True))
        settled = [key for key in touched if key not in after]  # all changes cancel: the bag is as it was
        if settled:
            was = _pairs(*self.below.bag_ends(table, pa.array(settled, BINARY)))
            after |= dict(zip(settled, was, strict=True))
        ends_after = [after[key] for key in touched]
        return BagEnds(
            pa.array(touched, BINARY),
            *before,
            pa.array([one for one, _ in ends_after], BINARY),
            pa.array([one for _, one in ends_after], BINARY),
        )

    def add_to_bags(self, table: StateTable, changes: BagRows) -> None:
        self.bags[table.id].update(added(self.bags[table.id], _summed(changes)))

    def _over(self, table: StateTable, keys: Iterable[bytes]) -> dict[bytes, Bag]:
        """Of these bags, those that runs have changed."""
        bags = self.over.bags.get(table.id, {})
        return {key: bag for key in keys if (bag := bags.get(key))}


def _enough(limit: int | None, bag: Bag | None) -> int | None:
    """How many rows of a bag of the epoch are needed for the first so many of now."""
    if limit is None or bag is None:
        return limit
    return limit + sum(-count for count in bag.values() if count < 0)


def _beginning(bag: Bag, limit: int | None) -> Iterable[tuple[bytes, int]]:
    """The rows of a bag, or the first that bring the sum of their counts to a limit."""
    passed = 0
    for entry, count in sorted(bag.items()):
        if limit is not None and passed >= limit:
            return
        passed += count
        yield entry, count


def _rows(found: BagRows) -> Iterable[tuple[bytes, bytes, int]]:
    return zip(found.keys.to_pylist(), found.entries.to_pylist(), found.counts.to_pylist(), strict=True)


def _summed(changes: BagRows) -> dict[bytes, Bag]:
    found: dict[bytes, Bag] = defaultdict(Counter)
    for key, entry, count in _rows(changes):
        found[key][entry] += count
    return dict(found)


def _flat(bags: dict[bytes, Bag]) -> list[tuple[bytes, bytes, int]]:
    return [(key, entry, count) for key in sorted(bags) for entry, count in sorted(bags[key].items())]


def _bag_rows(rows: list[tuple[bytes, bytes, int]]) -> BagRows:
    keys, entries, counts = zip(*rows, strict=True) if rows else ((), (), ())
    return BagRows(pa.array(keys, BINARY), pa.array(entries, BINARY), pa.array(counts, pa.int64()))


def _pairs(first: Bytes, last: Bytes) -> list[tuple[bytes | None, bytes | None]]:
    return list(zip(first.to_pylist(), last.to_pylist(), strict=True))
