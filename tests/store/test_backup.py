"""A backup is a store: whole, of one moment, and free to go its own way, whatever others do while it is made."""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.errors import InputError, NotAStoreError, StoreError, StoreFullError
from everview.store.embedded import backup, durability
from everview.store.embedded.inspection import inspect_files
from tests.faults.processes import Nursery, Victim
from tests.full_disk import full_disk

CLIENTS = 3
BACKUPS = 6
TABLES = """
    CREATE TABLE left (client BIGINT, n BIGINT, text VARCHAR, PRIMARY KEY (client, n));
    CREATE TABLE right (client BIGINT, n BIGINT, PRIMARY KEY (client, n));
    CREATE MATERIALIZED VIEW sums AS
        SELECT client, count(*) AS rows, sum(n) AS total, max(text) AS text FROM left GROUP BY client;
    CREATE MATERIALIZED VIEW pairs AS
        SELECT left.client, left.n FROM left JOIN right ON left.client = right.client AND left.n = right.n
"""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery("tests.store.backup_roles")
    yield nursery
    nursery.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with everview.open(tmp_path / "shop") as db:
        db.sql(TABLES.replace("left", '"left"').replace("right", '"right"'))
        db.table("left").put_many([{"client": 9, "n": number, "text": "x" * number} for number in range(500)])
        db.flush()
    return tmp_path / "shop"


def judged(path: Path) -> everview.Database:
    """The copy, opened, once everything in it has been looked at."""
    assert inspect_files(path).problems == []
    db = everview.open(path, create=False)
    assert db.store.inspect().problems == []  # type: ignore[attr-defined]
    report = db.verify(state=True)
    assert report.right, str(report)
    return db


def rows_of(db: everview.Database, table: str, client: int) -> list[int]:
    return [int(n) for (n,) in db.sql(f'SELECT n FROM "{table}" WHERE client = {client} ORDER BY n').rows()]


def acknowledged(client: Victim) -> int:
    client.hear(1_000_000)
    return len(client.reports)


# ------------------------------------------------------------------ while others work


def test_under_writers_and_a_maintainer(place: Path, nursery: Nursery, tmp_path: Path) -> None:
    """Every copy has a prefix of what each client wrote, no shorter than what was acknowledged before, and no half
    of a batch; its views are right as they are, and once they have caught up."""
    clients = [nursery.start("write pairs", directory=str(place), client=number) for number in range(CLIENTS)]
    maintainer = nursery.start("keep views", directory=str(place))
    maintainer.listen(1)
    with everview.open(place, create=False) as db:
        for number in range(BACKUPS):
            for client in clients:
                client.listen(acknowledged(client) + 20)
            before = [acknowledged(client) for client in clients]
            db.backup(tmp_path / f"copy {number}")
            with judged(tmp_path / f"copy {number}") as copy:
                for name, least in enumerate(before):
                    found = rows_of(copy, "left", name)
                    assert found == list(range(1, len(found) + 1)) and len(found) >= least
                    assert rows_of(copy, "right", name) == found
                copy.flush()
                assert copy.sql("SELECT client, rows FROM sums ORDER BY client").rows() == copy.sql(
                    'SELECT client, count(*) FROM "left" GROUP BY client ORDER BY client'
                ).rows()  # fmt: skip
                assert copy.verify(state=True).right
    for process in (*clients, maintainer):
        process.kill(random.Random(0))
    with judged(place) as db:
        for number, client in enumerate(clients):
            assert len(rows_of(db, "left", number)) >= len(client.reports)


def test_what_is_written_meanwhile_is_not_in_it(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each file is copied, rows are replaced, views follow, and durable points are made: none of it is in the
    copy, and the pages of the copied version are still there."""
    original = backup._copy

    def write_and_copy(source: int, path: Path, most: int) -> int:
        for number in range(5):
            rows = [{"client": 9, "n": n, "text": f"{number}" * n} for n in range(number, 500, 2)]
            db.table("left").put_many([*rows, {"client": 10, "n": number}])
            db.flush()
            db.sync()
        return original(source, path, most)

    monkeypatch.setattr(backup, "_copy", write_and_copy)
    with everview.open(place) as db:
        before = db.sql('SELECT * FROM "left" ORDER BY n').rows()
        db.backup(tmp_path / "copy")
    with judged(tmp_path / "copy") as copy:
        assert copy.sql('SELECT * FROM "left" ORDER BY n').rows() == before
        assert copy.sql("SELECT client, rows FROM sums").rows() == [(9, 500)]


@pytest.mark.parametrize("moment", [2, 4, 6, 8])
def test_inside_an_epoch(place: Path, nursery: Nursery, tmp_path: Path, moment: int) -> None:
    """An epoch that is under way is finished by the process that opens the copy, and by the one that finishes it in the
    store: once in each."""
    with everview.open(place) as db:
        db.sql("""INSERT INTO "left" VALUES (1, 1, 'a'), (1, 2, 'b'); INSERT INTO "right" VALUES (1, 1)""")
        nursery.start("maintain", directory=str(place), moment=moment, operations=1000, chunk=1000).bury()
        begun = db.store.views.begun("main")
        assert begun is not None, "the maintainer was killed inside an epoch"
        db.backup(tmp_path / "copy")
        for path in (tmp_path / "copy", place):
            with everview.open(path) as opened:
                assert opened.store.views.begun("main") == begun
                opened.flush()
                assert opened.store.views.committed("main").epoch == begun.epoch
                assert opened.sql("SELECT client, rows FROM sums ORDER BY client").rows() == [(1, 2), (9, 500)]
                assert opened.sql("SELECT n FROM pairs").rows() == [(1,)]
                assert opened.verify(state=True).right


def test_maps_may_grow_meanwhile(tmp_path: Path) -> None:
    """The pins of a backup are not in the way of a map that has to grow."""
    with everview.open(tmp_path / "small", map_size=1 << 20) as db:
        db.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        pinned = db.store._core.durability.pinned  # type: ignore[attr-defined]
        with pinned():
            db.table("t").put_many([{"k": k, "v": "x" * 1000} for k in range(3000)])
        db.backup(tmp_path / "copy")
    with judged(tmp_path / "copy") as copy:
        assert copy.table("t").count() == 3000


# ------------------------------------------------------------------ the copy


def test_a_copy_goes_its_own_way(place: Path, tmp_path: Path) -> None:
    """It is restored by being opened, and so is a copy of it; what happens in one is not seen in the other."""
    with everview.open(place) as db:
        size = db.backup(str(tmp_path / "copy"))
        assert size == sum(path.stat().st_size for path in (tmp_path / "copy").glob("*.mdb"))
        shutil.copytree(tmp_path / "copy", tmp_path / "restored")
        for number, path in enumerate((place, tmp_path / "copy", tmp_path / "restored")):
            with everview.open(path) as opened:
                opened.table("left").put({"client": number, "n": 1})
                opened.flush()
                assert opened.sql("SELECT client, rows FROM sums ORDER BY client").rows() == [(number, 1), (9, 500)]
    for path in (place, tmp_path / "copy", tmp_path / "restored"):
        judged(path).close()


def test_a_backup_of_a_backup(place: Path, tmp_path: Path) -> None:
    with everview.open(place) as db:
        db.backup(tmp_path / "one")
    with everview.open(tmp_path / "one") as db:
        db.backup(tmp_path / "two")
    with judged(tmp_path / "two") as db:
        assert db.table("left").count() == 500


def test_after_a_reboot(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy on another machine, or after a power loss, is what it was."""
    with everview.open(place) as db:
        db.backup(tmp_path / "copy")
    monkeypatch.setattr(durability, "boot_id", lambda: "another boot")
    with everview.open(tmp_path / "copy") as db:
        assert db.table("left").count() == 500 and db.verify(state=True).right


def test_other_users_cannot_read_it(place: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with everview.open(place) as db:
            db.backup(tmp_path / "copy")
    finally:
        os.umask(before)
    for path in (tmp_path / "copy", *(tmp_path / "copy").iterdir()):
        assert not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO), path


@pytest.mark.parametrize("name", ["base.mdb", "state-0.mdb", "durable"])
def test_files_of_a_store_and_its_backup_do_not_mix(place: Path, tmp_path: Path, name: str) -> None:
    with everview.open(place) as db:
        db.backup(tmp_path / "copy")
        for path in (place, tmp_path / "copy"):
            with everview.open(path) as opened:
                opened.table("left").put_many([{"client": 1, "n": n, "text": "y"} for n in range(50)])
                opened.flush()
    for mixed, other in ((place, tmp_path / "copy"), (tmp_path / "copy", place)):
        shutil.copytree(mixed, tmp_path / f"mixed {mixed.name}")
        shutil.copy(other / name, tmp_path / f"mixed {mixed.name}" / name)
        with pytest.raises(NotAStoreError, match="copy"):
            everview.open(tmp_path / f"mixed {mixed.name}")


# ------------------------------------------------------------------ what is refused, and what fails


def test_nothing_is_overwritten(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with everview.open(place) as db:
        for name in ("file", "empty", "link", "shop"):
            with pytest.raises(InputError, match="is there already"):
                db.backup(tmp_path / name)
        with pytest.raises(InputError, match="inside the store"):
            db.backup(place / "copy")
        with pytest.raises(StoreError, match="No such file or directory"):
            db.backup(tmp_path / "nowhere" / "copy")
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "link", "shop"]
    assert not list((tmp_path / "empty").iterdir())


def test_what_comes_to_the_target_meanwhile_stays(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = backup._fill

    def fill_late(*given: object) -> int:
        (tmp_path / "copy").mkdir()
        (tmp_path / "copy" / "mine").write_text("mine")
        return original(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(backup, "_fill", fill_late)
    with everview.open(place) as db, pytest.raises(StoreError, match="not empty"):
        db.backup(tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["mine"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "shop"]


def test_a_full_disk_leaves_nothing(place: Path, tmp_path: Path) -> None:
    with everview.open(place) as db:
        with full_disk(1 << 14), pytest.raises(StoreFullError):
            db.backup(tmp_path / "copy")
        assert [path.name for path in tmp_path.iterdir()] == ["shop"]
        db.backup(tmp_path / "copy")
    judged(tmp_path / "copy").close()


@pytest.mark.parametrize("files", [1, 3, 5])
def test_a_killed_backup_is_no_store(place: Path, nursery: Nursery, tmp_path: Path, files: int) -> None:
    target = tmp_path / "copy"
    nursery.start("back up and die", directory=str(place), target=str(target), files=files).bury()
    assert not target.exists()
    (left,) = (path for path in tmp_path.iterdir() if path != place)
    with pytest.raises(NotAStoreError, match=r"holds files of a store, but no everview\.json"):
        everview.open(left)
    with judged(place) as db:
        db.backup(target)
    judged(target).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", place.name], "the next one tidies up"
    assert not (target / ".owner").exists()


def test_a_closed_store(place: Path, tmp_path: Path) -> None:
    db = everview.open(place)
    db.close()
    with everview.open(place), pytest.raises(StoreError, match="is closed"):
        db.backup(tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]
