"""State tables in memory, for a plan that is run only to see what it does.

Steps read what was there when the epoch began, and what they write is there when it ends.

Nothing here is kept, shared or versioned: it is for some dozens of rows, and for one reader. What a step claims to
have been there before is compared with what was: a store takes its word for it, and shows it to readers of the epoch
before and to views of the view.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from everview.errors import DamagedEntryError
from everview.store.contract import BagEnds, BagRows, Deletes, Puts, Records, StateTable
from everview.store.encoding.ragged import BINARY, Bytes

Bag = Counter[bytes]


@dataclass
class InMemory:
    """The states of one plan."""

    keeps: bool = True
    _records: dict[int, dict[bytes, bytes]] = field(default_factory=lambda: defaultdict(dict))
    _bags: dict[int, dict[bytes, Bag]] = field(default_factory=lambda: defaultdict(dict))
    _written: dict[int, dict[bytes, bytes | None]] = field(default_factory=lambda: defaultdict(dict))
    _added: dict[int, dict[bytes, Bag]] = field(default_factory=lambda: defaultdict(dict))

    def end(self) -> None:
        """Let what the epoch has written take effect."""
        for id, written in self._written.items():
            records = self._records[id]
            for key, value in written.items():
                if value is None:
                    records.pop(key, None)
                else:
                    records[key] = value
        for id, added in self._added.items():
            self._bags[id].update(added)
        self._written.clear()
        self._added.clear()

    # -------------------------------------------------------------- records

    def read(self, table: StateTable, keys: Bytes) -> Bytes:
        records = self._records[table.id]
        return pa.array([records.get(key) for key in keys.to_pylist()], BINARY)

    def write(self, table: StateTable, puts: Puts, deletes: Deletes) -> None:
        for change in (puts, deletes):
            self._check_previous(table, change)
        written = self._written[table.id]
        written.update(dict.fromkeys(deletes.keys.to_pylist()))
        written.update(zip(puts.keys.to_pylist(), puts.values.to_pylist(), strict=True))

    def _check_previous(self, table: StateTable, change: Puts | Deletes) -> None:
        if change.previous is not None and change.previous.to_pylist() != self.read(table, change.keys).to_pylist():
            raise DamagedEntryError(
                f"{table.name}: the row that a step takes away is not the row that was there",
                detail="what it emits does not fit what it emitted in the epoch before",
            )

    def records(self, table: StateTable) -> Records:
        """All records, in the order of their keys."""
        found = sorted(self._records[table.id].items())
        return Records(pa.array([key for key, _ in found], BINARY), pa.array([value for _, value in found], BINARY))

    # -------------------------------------------------------------- bags

    def read_bags(self, table: StateTable, keys: Bytes, first: pa.Int64Array | None = None) -> BagRows:
        limits = [None] * len(keys) if first is None else first.to_pylist()
        rows: list[tuple[bytes, bytes, int]] = []
        for key, limit in sorted(zip(keys.to_pylist(), limits, strict=True), key=lambda one: one[0]):
            rows += [(key, entry, count) for entry, count in _beginning(self._bags[table.id].get(key), limit)]
        keys_of, entries, counts = zip(*rows, strict=True) if rows else ((), (), ())
        return BagRows(pa.array(keys_of, BINARY), pa.array(entries, BINARY), pa.array(counts, pa.int64()))

    def bag_ends(self, table: StateTable, keys: Bytes) -> tuple[Bytes, Bytes]:
        ends = [_ends(self._bags[table.id].get(key)) for key in keys.to_pylist()]
        return pa.array([first for first, _ in ends], BINARY), pa.array([last for _, last in ends], BINARY)

    def write_bags(self, table: StateTable, changes: BagRows) -> BagEnds:
        bags, added = self._bags[table.id], self._added[table.id]
        touched = sorted(set(changes.keys.to_pylist()))
        for key in touched:
            added[key] = Counter(bags.get(key, Counter()))
        columns = (changes.keys.to_pylist(), changes.entries.to_pylist(), changes.counts.to_pylist())
        for key, entry, count in zip(*columns, strict=True):
            added[key][entry] += count
        for key in touched:
            added[key] = +added[key]
        before = [_ends(bags.get(key)) for key in touched]
        after = [_ends(added[key]) for key in touched]
        columns_of = [[one[end] for one in side] for side in (before, after) for end in (0, 1)]
        return BagEnds(pa.array(touched, BINARY), *(pa.array(column, BINARY) for column in columns_of))

    def add_to_bags(self, table: StateTable, changes: BagRows) -> None:
        self.write_bags(table, changes)


def _beginning(bag: Bag | None, limit: int | None) -> Iterator[tuple[bytes, int]]:
    """The rows of a bag, or the first that bring the sum of their counts to a limit."""
    passed = 0
    for entry, count in sorted((bag or Counter()).items()):
        if limit is not None and passed >= limit:
            return
        passed += count
        yield entry, count


def _ends(bag: Bag | None) -> tuple[bytes | None, bytes | None]:
    return (min(bag), max(bag)) if bag else (None, None)
