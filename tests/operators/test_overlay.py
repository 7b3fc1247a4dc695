"""Runs over an epoch's states read what epochs would read: the same changes, once in memory and once laid over."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import everview
from everview.operators.in_memory import InMemory
from everview.operators.overlay import Overlay, Run
from everview.operators.work import Dry, States
from everview.store.contract import BagEnds, BagRows, Deletes, Puts, StateTable, Store
from everview.store.encoding.ragged import BINARY

RECORDS, BAGS = StateTable(501, "records", "main"), StateTable(502, "bags", "main")
KEYS = [bytes([65 + number]) for number in range(5)]
ENTRIES = [bytes([97 + number]) * 2 for number in range(12)]

Changes = list[tuple[bytes, bytes, int]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with everview.open(tmp_path, durability="none") as db:
        yield db.store


def column(values: Sequence[bytes | None]) -> pa.Array:
    return pa.array(values, BINARY)


def bag_rows(changes: Changes) -> BagRows:
    keys, entries, counts = zip(*changes, strict=True)
    return BagRows(column(keys), column(entries), pa.array(counts, pa.int64()))


def plain(found: BagRows) -> Changes:
    return sorted(zip(found.keys.to_pylist(), found.entries.to_pylist(), found.counts.to_pylist(), strict=True))


def ends(found: BagEnds) -> list[list[bytes | None]]:
    columns = (found.keys, found.first_before, found.last_before, found.first_after, found.last_after)
    return [one.to_pylist() for one in columns]


class Both:
    """The same states twice, and what is in the bags."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self.rng, self.memory, self.overlay = rng, InMemory(), Overlay()
        self.held: Counter[tuple[bytes, bytes]] = Counter()
        begun = store.views.begin("main", store.log.latest(), b"")
        changes, puts = self.drawn(30), self.puts()
        store.views.write_bags(BAGS, begun.epoch, bag_rows(changes))
        store.views.write(RECORDS, begun.epoch, Puts(column(list(puts)), column(list(puts.values()))))
        store.views.commit("main", begun.epoch)
        self.memory.write_bags(BAGS, bag_rows(changes))
        self.memory.write(RECORDS, Puts(column(list(puts)), column(list(puts.values()))), Deletes(column([])))
        self.memory.end()
        self.below = Dry(store.views, begun.epoch)

    def drawn(self, count: int) -> Changes:
        """Changes of bags that take away what is there, some of them all of it, in several rows."""
        found: Changes = []
        for _ in range(count):
            there = [place for place, held in self.held.items() if held]
            if there and self.rng.random() < 0.6:
                place = self.rng.choice(there)
                weight = -self.rng.randint(1, self.held[place])
            else:
                place, weight = (self.rng.choice(KEYS), self.rng.choice(ENTRIES)), self.rng.randint(1, 3)
            self.held[place] += weight
            found.append((*place, weight))
        return found

    def puts(self) -> dict[bytes, bytes]:
        return {key: self.rng.randbytes(3) for key in self.rng.sample(KEYS, self.rng.randint(1, 4))}

    def check(self, run: Run) -> None:
        keys = self.rng.sample(KEYS, self.rng.randint(1, 5))
        first = pa.array([self.rng.choice([None, 0, 1, 2, 5]) for _ in keys], pa.int64())
        sides: list[States] = [self.memory, run]
        assert len({str(plain(one.read_bags(BAGS, column(keys)))) for one in sides}) == 1
        assert len({str(plain(one.read_bags(BAGS, column(keys), first))) for one in sides}) == 1
        assert len({str([end.to_pylist() for end in one.bag_ends(BAGS, column(keys))]) for one in sides}) == 1
        assert len({str(one.read(RECORDS, column(keys)).to_pylist()) for one in sides}) == 1

    def write(self, run: Run) -> None:
        changes = bag_rows(self.drawn(self.rng.randint(1, 8)))
        assert ends(self.memory.write_bags(BAGS, changes)) == ends(run.write_bags(BAGS, changes))
        puts = self.puts()
        was = self.memory.read(RECORDS, column(KEYS)).to_pylist()
        gone = [key for key, value in zip(KEYS, was, strict=True) if value is not None and key not in puts][:1]
        for one in (self.memory, run):
            one.write(RECORDS, Puts(column(list(puts)), column(list(puts.values()))), Deletes(column(gone)))


@pytest.mark.parametrize("seed", range(20))
def test_runs_see_what_epochs_would_see(store: Store, seed: int) -> None:
    both = Both(store, random.Random(seed))
    for _ in range(8):
        run = both.overlay.run(both.below)
        both.check(run)
        both.write(run)
        both.check(run)  # what a run writes is for the next one
        both.memory.end()
        both.overlay.end(run)
    both.check(both.overlay.run(both.below))


def test_its_size_is_that_of_what_differs(store: Store) -> None:
    both = Both(store, random.Random(1))
    changes = [(b"new", b"entry", 2)]
    run = both.overlay.run(both.below)
    run.add_to_bags(BAGS, bag_rows(changes))
    both.overlay.end(run)
    assert len(both.overlay) == 1
    run = both.overlay.run(both.below)
    run.add_to_bags(BAGS, bag_rows([(b"new", b"entry", -2)]))
    both.overlay.end(run)
    assert len(both.overlay) == 0
