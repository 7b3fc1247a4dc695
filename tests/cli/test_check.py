"""``everview check``: what it finds, what it prints, and how it ends."""

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import everview
from everview.store.embedded import EmbeddedStore
from everview.store.embedded.environment import Transaction
from everview.store.embedded.meta_pages import newest, read_metas
from everview.store.embedded.versions import encode_one
from tests.cli.conftest import Call


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "store"
    with everview.open(path, durability="none") as db:
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT, v VARCHAR)")
        db.sql("CREATE MATERIALIZED VIEW n AS SELECT g, count(*) AS n, max(v) AS v FROM t GROUP BY g")
        db.table("t").put_many([{"k": at, "g": at % 100, "v": "x" * (at % 7000)} for at in range(2000)])
        db.flush()
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "store")
    return tmp_path / "store"


def test_a_whole_store(store: Path, call: Call) -> None:
    said = call("check", store)
    assert said.code == 0 and "is whole: 5 files" in said.out and "2,000 rows" in said.out
    said = call("check", store, "--json")
    found = json.loads(said.out)
    assert (found["whole"], found["problems"]) == (True, [])
    assert {"files", "pages", "log blocks", "rows", "records", "tables", "views"} == set(found["visited"])


def test_what_is_no_store_is_an_error(tmp_path: Path, call: Call) -> None:
    (tmp_path / "notes").write_text("mine")
    for path in (tmp_path, tmp_path / "nowhere"):
        said = call("check", path)
        assert said.code == 1 and "store" in said.err


def test_all_files_that_do_not_belong_are_named(store: Path, call: Call) -> None:
    (store / "state-0.mdb").unlink()
    os.truncate(store / "state-2.mdb", 4096)
    said = call("check", store)
    assert said.code == 1
    assert "state-0.mdb is missing" in said.out and "state-2.mdb is cut short" in said.out


def test_no_damaged_page_in_use_goes_unnoticed(store: Path, call: Call) -> None:
    """Wherever the header of a page in use is overwritten, or its content is another page's."""
    base = store / "base.mdb"
    meta = newest(read_metas(base))
    with base.open("r+b") as file:
        file.seek(meta.main.root * 4096)
        root = file.read(4096)
        lower = int.from_bytes(root[12:14], "little")
        node = int.from_bytes(root[lower - 2 : lower], "little")
        child = int.from_bytes(root[node : node + 6], "little")
        file.seek(child * 4096)
        file.write(root)
    said = call("check", store)
    assert said.code == 1 and f"base.mdb: page {child} does not hold what it should" in said.out
    assert "Traceback" not in said.err


def write(store: Path, file: str, work: Callable[[Transaction], object]) -> None:
    with EmbeddedStore.open(store, durability="none") as opened:
        handle = opened._handle
        environment = {environment.path.name: environment for environment in (handle.base, *handle.shards)}[file]
        handle.update(environment, work)


def first(transaction: Transaction, prefix: bytes) -> tuple[bytes, bytes]:
    cursor = transaction.cursor()
    assert cursor.set_range(prefix)
    return cursor.item()


def lose_a_row(transaction: Transaction) -> None:
    transaction.delete(first(transaction, b"r")[0])


def damage_a_log_block(transaction: Transaction) -> None:
    key, block = first(transaction, b"L")
    transaction.put(key, block[:-5] + bytes([block[-5] ^ 1]) + block[-4:])


def damage_a_record(transaction: Transaction) -> None:
    key, record = first(transaction, b"\0\0\0\1")
    transaction.put(key, record[:-1])


def write_in_the_future(transaction: Transaction) -> None:
    transaction.put(first(transaction, b"\0\0\0\1")[0], encode_one(1 << 40, b"x", None))


def raise_a_fence(transaction: Transaction) -> None:
    transaction.put(b"\0\0\0\0Fmain", (1 << 40).to_bytes(8, "little"))


@pytest.mark.parametrize(
    ("file", "work", "problem"),
    [
        ("base.mdb", lose_a_row, "has 1999 rows, and counts 2000"),
        ("base.mdb", damage_a_log_block, "its checksum is wrong"),
        ("base.mdb", lambda txn: txn.delete(b"T"), "the topology cannot be read"),
        ("base.mdb", lambda txn: txn.put(b"EN", bytes(8)), "only 0 epochs were begun"),
        ("state-1.mdb", damage_a_record, "a record of state table"),
        ("state-1.mdb", write_in_the_future, "of an epoch that was never begun"),
        ("state-1.mdb", raise_a_fence, "the fence of group main"),
    ],
)
def test_entries_that_are_wrong(
    store: Path, call: Call, file: str, work: Callable[[Transaction], object], problem: str
) -> None:
    write(store, file, work)
    said = call("check", store, "--json")
    assert said.code == 1
    assert any(found.startswith(file) and problem in found for found in json.loads(said.out)["problems"])


def test_a_store_in_use_is_whole(store: Path, call: Call) -> None:
    """Pages are freed and used again while they are visited."""
    with everview.open(store, durability="group") as db:
        ended = threading.Event()

        def go_on() -> None:
            number = 0
            while not ended.is_set():
                number += 1
                db.table("t").put_many([{"k": at, "g": number % 5, "v": "y" * (at % 9000)} for at in range(50)])
                db.flush()

        writer = threading.Thread(target=go_on)
        writer.start()
        try:
            for _ in range(5):
                said = call("check", store)
                assert said.code == 0, said.out
        finally:
            ended.set()
            writer.join()
