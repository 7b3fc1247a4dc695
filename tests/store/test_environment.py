"""Files that grow, fill up, and are shared between processes."""

import multiprocessing
import resource
import signal
from pathlib import Path

import lmdb
import pytest

from everview.errors import NotAStoreError, StoreFullError
from everview.store.embedded import environment
from everview.store.embedded.environment import SMALLEST, Environment, Transaction

SPAWN = multiprocessing.get_context("spawn")


def fill(file: Environment, first: int, count: int) -> None:
    """Rows of one page each, some in every transaction."""
    for start in range(first, first + count, 64):
        part = [(number.to_bytes(8, "big"), bytes(3000)) for number in range(start, min(start + 64, first + count))]

        def work(transaction: Transaction, rows: list[tuple[bytes, bytes]] = part) -> None:
            transaction.cursor().putmulti(rows)

        file.update(work)


def entries(file: Environment) -> int:
    with file.read() as transaction:
        return int(transaction.stat()["entries"])


def test_a_small_map_grows_by_itself(tmp_path: Path) -> None:
    file = Environment(tmp_path / "data.mdb", SMALLEST)
    fill(file, 0, 2000)
    assert entries(file) == 2000
    assert file.lmdb.info()["map_size"] > SMALLEST
    file.close()


def fill_elsewhere(path: Path, first: int, count: int) -> None:
    file = Environment(path, SMALLEST)
    fill(file, first, count)
    file.close()


def test_a_map_that_another_process_enlarged_is_adopted(tmp_path: Path) -> None:
    path = tmp_path / "data.mdb"
    file = Environment(path, SMALLEST)
    fill(file, 0, 10)
    process = SPAWN.Process(target=fill_elsewhere, args=(path, 10, 2000))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert entries(file) == 2010
    fill(file, 2010, 10)
    assert entries(file) == 2020
    file.close()


def grow_in_small_steps(path: Path, megabytes: int) -> None:
    """Make the map larger for every few rows, as no store does: so that others often meet it."""
    with lmdb.open(str(path), subdir=False, map_size=SMALLEST, sync=False, metasync=False) as file:
        number = 0
        while file.info()["map_size"] < megabytes * SMALLEST:
            try:
                with file.begin(write=True) as transaction:
                    transaction.put(number.to_bytes(8, "big"), bytes(300_000))
                number += 1
            except lmdb.MapFullError:
                file.set_mapsize(file.info()["map_size"] + SMALLEST)


def test_a_file_is_opened_while_another_process_makes_it_larger(tmp_path: Path) -> None:
    path = tmp_path / "data.mdb"
    Environment(path, SMALLEST).close()
    process = SPAWN.Process(target=grow_in_small_steps, args=(path, 256))
    process.start()
    while process.is_alive():
        Environment(path, SMALLEST).close()
    assert process.exitcode == 0
    file = Environment(path, SMALLEST)
    assert entries(file) > 256
    file.close()


def test_a_held_reader_makes_growth_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "PATIENCE", 0.05)
    file = Environment(tmp_path / "data.mdb", SMALLEST)
    fill(file, 0, 10)
    held = file.begin_read()
    with pytest.raises(StoreFullError, match="snapshot") as caught:
        fill(file, 10, 2000)
    assert caught.value.retryable
    assert held.stat()["entries"] == 10
    file.end_read(held)
    there = entries(file)
    fill(file, there, 2000)
    assert entries(file) == there + 2000
    file.close()


def test_a_full_map_that_may_not_grow_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "FULL_SIZE", SMALLEST)
    file = Environment(tmp_path / "data.mdb", SMALLEST)
    with pytest.raises(StoreFullError, match="reached"):
        fill(file, 0, 2000)
    assert entries(file) % 64 == 0
    file.close()


def fill_until_refused(path: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    file = Environment(path)
    fill(file, 0, 128)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, resource.RLIM_INFINITY))
    with pytest.raises(StoreFullError, match="free some disk space"):
        fill(file, 128, 2000)
    assert entries(file) >= 128, "readers go on"
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    there = entries(file)
    fill(file, there, 100)
    assert entries(file) == there + 100
    file.close()


def test_a_full_disk_is_an_error_and_readers_go_on(tmp_path: Path) -> None:
    process = SPAWN.Process(target=fill_until_refused, args=(tmp_path / "data.mdb",))
    process.start()
    process.join()
    assert process.exitcode == 0


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    file = Environment(tmp_path / "data.mdb")

    def work(transaction: Transaction) -> None:
        transaction.put(b"k", b"v")
        raise KeyError("no")

    with pytest.raises(KeyError):
        file.update(work)
    assert entries(file) == 0
    file.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.mdb"
    path.write_bytes(b"something else " * 1000)
    with pytest.raises(NotAStoreError, match=r"data\.mdb"):
        Environment(path)
