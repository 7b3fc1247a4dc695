"""Slots in the tables of readers: closing frees them, and so does the death of their holder."""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

import everview
from everview.errors import SnapshotExpiredError, StoreError
from everview.store.embedded import EmbeddedStore
from everview.store.embedded.environment import MAX_READERS, Environment, Transaction

SPAWN = multiprocessing.get_context("spawn")


def slots(environment: Environment) -> int:
    return max(0, environment.lmdb.readers().count("\n") - 1)


def test_a_closed_snapshot_takes_no_slot_however_long_it_is_kept(tmp_path: Path) -> None:
    with everview.open(tmp_path / "store") as db:
        table = db.create_table("t", {"k": "BIGINT", "v": "VARCHAR"}, key=["k"])
        table.put_many([{"k": number, "v": "x"} for number in range(1000)])
        environment = db.store._handle.base  # type: ignore[attr-defined]
        kept = []
        for _ in range(MAX_READERS + 100):
            snapshot = db.store.snapshot()
            reader = snapshot.table(db.catalog.table("t"))
            scan = reader.scan()
            next(scan)
            snapshot.close()
            kept.append((snapshot, reader, scan))
        assert slots(environment) < 20
        snapshot, reader, scan = kept[-1]
        for call in (lambda: reader.get(1), reader.count, lambda: next(scan), lambda: snapshot.committed("main")):
            with pytest.raises(SnapshotExpiredError):
                call()
        table.put({"k": 1, "v": "y"})
        db.store.sync()


def hold_slots(path: Path, ready: "multiprocessing.Queue[int]") -> None:
    store = EmbeddedStore.open(path)
    held = [store.snapshot() for _ in range(MAX_READERS // 2)]
    ready.put(len(held))
    signal.pause()


def write_and_sync(store: EmbeddedStore) -> None:
    def put(transaction: Transaction) -> None:
        transaction.put(b"x", b"")

    store._handle.update(store._handle.base, put)
    store.sync()


def test_a_full_table_is_an_error_and_is_usable_again_when_its_holders_are_killed(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path / "store", create=True) as store:
        holder = SPAWN.Process(target=hold_slots, args=(tmp_path / "store", queue := SPAWN.Queue()))
        holder.start()
        assert queue.get(timeout=300) == MAX_READERS // 2
        base, held = store._handle.base, []
        with pytest.raises(StoreError, match="readers already"):
            while True:
                held.append(base.begin_read())
        for call in (store.snapshot, store.log.latest, lambda: write_and_sync(store)):
            with pytest.raises(StoreError, match="readers already"):
                call()
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)
        holder.join()
        write_and_sync(store)
        store.snapshot().close()
        while held:
            base.end_read(held.pop())
        assert slots(base) < 20


def test_a_snapshot_that_nobody_refers_to_makes_room(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path / "store", create=True) as store:
        for _ in range(MAX_READERS + 100):
            circle: list[object] = [store.snapshot()]
            circle.append(circle)
        store.sync()
