"""When log entries were written: notes by writers, exact for what is young, bounded in number."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.change.frontier import Frontier
from everview.store.embedded.store import EmbeddedStore
from everview.store.embedded.times import RINGS, time_of

START = 1_700_000_000.0


class Written:
    """A table whose rows are written at the times a test says."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.db = everview.open(path, durability="none", map_size=1 << 28)
        self.table = self.db.create_table("t", {"id": "BIGINT"}, key=["id"])
        self.now = START
        patch.setattr(time, "time", lambda: self.now)
        self.rows = 0

    def put(self, after: float) -> Frontier:
        """Write a row; returns where the logs ended before it."""
        self.now += after
        before = self.db.store.log.latest()
        self.rows += 1
        self.table.put({"id": self.rows})
        return before

    def age(self, start: Frontier) -> float:
        found = self.db.store.log.written_after(start)
        assert found is not None
        return self.now - found

    def notes(self) -> int:
        store = self.db.store
        assert isinstance(store, EmbeddedStore)
        with store._handle.base.read() as txn:
            cursor = txn.cursor()
            assert cursor.set_range(b"W")
            return sum(key.startswith(b"W") for key in cursor.iternext(values=False))


@pytest.fixture
def w(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    found = Written(tmp_path / "store", monkeypatch)
    yield found
    found.db.close()


def test_nothing_is_known_of_what_was_not_written(w: Written) -> None:
    log = w.db.store.log
    assert log.written_after(log.latest()) is None


def test_the_first_entry_after_a_pause_has_its_own_time(w: Written) -> None:
    first = w.put(0.0)
    second = w.put(3600.0)
    w.now += 2.0
    assert w.age(second) == pytest.approx(2.0)
    assert w.age(first) == pytest.approx(3602.0)


def test_entries_in_quick_succession_are_known_to_ten_milliseconds(w: Written) -> None:
    starts = [(w.put(0.003), w.now) for _ in range(200)]
    for start, written in starts:
        assert 0 <= w.age(start) - (w.now - written) < 0.01 + 1e-6


def test_a_transaction_that_is_given_up_leaves_no_note_and_the_next_one_does(w: Written) -> None:
    w.put(0.0)
    before = w.db.store.log.latest()
    w.now += 100.0
    with pytest.raises(RuntimeError), w.db.batch() as batch:
        batch.table("t").put({"id": 1000})
        raise RuntimeError("given up")
    w.put(0.001)
    assert w.age(before) < 0.01


def test_a_long_batch_has_the_time_of_its_beginning(w: Written) -> None:
    before = w.db.store.log.latest()
    store = w.db.store
    assert isinstance(store, EmbeddedStore)
    with store._handle.base.writing() as txn:
        for _ in range(3):
            store._handle.core.times.note(txn)
            w.now += 5.0
        noted = time_of(txn, txn.id())
    assert noted == START
    assert store.log.latest() == before


def test_notes_are_bounded_and_old_entries_are_known_roughly(w: Written) -> None:
    fine = RINGS[0][1]
    old = w.put(0.0)
    for _ in range(fine + 500):
        w.put(0.0101)
    assert w.notes() <= 2 * (fine + 20) + 8
    # the fine ring has forgotten it; the one behind it is right to a second
    assert 0 <= w.age(old) - (w.now - START) < 1.0


def test_a_clock_that_is_set_back_is_noted(w: Written) -> None:
    w.put(0.0)
    start = w.put(-50.0)
    assert w.age(start) == pytest.approx(0.0)
