"""Opening, closing and sharing a store."""

import json
import multiprocessing
import os
import shutil
import stat
import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import everview
from everview.errors import InputError, NotAStoreError, StoreError, UnsupportedFormatError
from everview.store.embedded import EmbeddedStore, environment
from everview.store.embedded.layout import DURABLE, FORMAT
from everview.store.opened import close_opened, opened
from tests.store.test_creation import contents

COLUMNS = {"k": "BIGINT", "v": "VARCHAR"}
SPAWN = multiprocessing.get_context("spawn")


def test_the_directory_is_private_to_its_user(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        everview.open(tmp_path / "deep" / "store").close()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "deep" / "store").stat().st_mode) == 0o700
    for entry in (tmp_path / "deep" / "store").iterdir():
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600, entry.name


def test_a_directory_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotAStoreError, match="is not a store") as caught:
        everview.open(tmp_path)
    assert "notes.txt" in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for create in (True, False):
        with pytest.raises(NotAStoreError, match="is a file"):
            EmbeddedStore.open(tmp_path / "file", create=create)


def test_nothing_is_created_unless_asked_for(tmp_path: Path) -> None:
    with pytest.raises(NotAStoreError, match="there is no store"):
        EmbeddedStore.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("found", [1, FORMAT - 1, FORMAT + 1])
def test_a_store_of_another_format_is_refused_with_what_to_do(tmp_path: Path, found: int) -> None:
    everview.open(tmp_path).close()
    marker = tmp_path / "everview.json"
    plain = json.loads(marker.read_text())
    marker.write_text(json.dumps(plain | {"everview": found}))
    before = contents(tmp_path)
    with pytest.raises(UnsupportedFormatError, match=f"has format {found}, .* reads format {FORMAT} only") as caught:
        everview.open(tmp_path)
    assert caught.value.hint is not None
    assert "dump its tables with that version and load them into a new store" in caught.value.hint
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"everview": 3}', '{"everview": 3, "id": "a", "settings": {"moons": 2}}', "\udcff"]
)
def test_a_broken_marker_is_refused(tmp_path: Path, text: str) -> None:
    everview.open(tmp_path).close()
    (tmp_path / "everview.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(NotAStoreError):
        everview.open(tmp_path)


@pytest.mark.parametrize("option", [{"durability": "maybe"}, {"nodes": 0}, {"shards": 0}, {"shards": 65}])
def test_options_that_make_no_sense_are_refused(tmp_path: Path, option: dict[str, object]) -> None:
    with pytest.raises(InputError):
        EmbeddedStore.open(tmp_path, create=True, **option)  # type: ignore[arg-type]


def test_handles_in_one_process_share_the_files(tmp_path: Path) -> None:
    first, second = everview.open(tmp_path), everview.open(tmp_path)
    first.create_table("t", COLUMNS, key=["k"]).put({"k": 1, "v": "a"})
    first.close()
    assert second.table("t").get(1) == {"k": 1, "v": "a"}
    second.close()
    second.close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    db = everview.open(tmp_path)
    table = db.create_table("t", COLUMNS, key=["k"])
    db.close()
    for call in (lambda: table.get(1), lambda: table.put({"k": 1}), table.count, db.store.log.latest, db.snapshot):
        with pytest.raises(StoreError, match="is closed"):
            call()


def read_in_child(path: Path, results: "multiprocessing.Queue[object]") -> None:
    with everview.open(path) as db:
        results.put(db.table("t").get(1))
        db.table("t").put({"k": 2, "v": "from the child"})


def test_other_processes_open_it_at_the_same_time(tmp_path: Path) -> None:
    with everview.open(tmp_path) as db:
        table = db.create_table("t", COLUMNS, key=["k"])
        table.put({"k": 1, "v": "from the parent"})
        results = SPAWN.Queue()
        child = SPAWN.Process(target=read_in_child, args=(tmp_path, results))
        child.start()
        assert results.get(timeout=60) == {"k": 1, "v": "from the parent"}
        child.join()
        assert child.exitcode == 0
        assert table.get(2) == {"k": 2, "v": "from the child"}


def test_a_forked_child_opens_the_store_for_itself(tmp_path: Path) -> None:
    """What it inherited is refused, and whatever the child does, the parent's transactions stay."""
    with everview.open(tmp_path) as db:
        table = db.create_table("t", COLUMNS, key=["k"])
        table.put({"k": 1, "v": "from the parent"})
        with db.store.snapshot() as snapshot:
            process = os.fork()
            if process == 0:
                calls = (
                    lambda: table.get(1),
                    lambda: table.put({"k": 2}),
                    db.snapshot,
                )
                refused = 0
                for call in calls:
                    try:
                        call()
                    except StoreError as error:
                        refused += "forked from" in error.message and "everview.open" in str(error)
                with everview.open(tmp_path) as own:
                    own.table("t").put({"k": 3, "v": "from the child"})
                os._exit(0 if refused == len(calls) else 1)
            assert os.waitpid(process, 0)[1] == 0
            table.put({"k": 1, "v": "later"})
            assert snapshot.table(db.catalog.table("t")).get(1) == {"k": 1, "v": "from the parent"}
        assert table.get(1) == {"k": 1, "v": "later"}
        assert table.get(3) == {"k": 3, "v": "from the child"}


def test_a_store_that_was_removed_and_created_again_is_another(tmp_path: Path) -> None:
    """As in a notebook that begins again, while workers of Spark have the store open."""
    place = tmp_path / "store"
    old = everview.open(place)
    old.create_table("t", COLUMNS, key=["k"]).put({"k": 1, "v": "old"})
    theirs = opened(str(place))
    before = theirs.gone
    shutil.rmtree(place)
    assert (before, theirs.gone) == (False, True)
    with pytest.raises(StoreError, match="was removed while it is open"):
        old.store.sync()
    with everview.open(place) as new:
        assert new.tables() == () and new.store is not old.store
        table = new.create_table("t", COLUMNS, key=["k"])
        table.put({"k": 2, "v": "new"})
        new.store.sync()
        durable = (place / DURABLE).read_bytes()
        with pytest.raises(StoreError, match="was removed while it is open"):
            while True:  # it is noticed within a millisecond
                old.table("t").put({"k": 3, "v": "lost"})
        old.close()
        assert (place / DURABLE).read_bytes() == durable
        assert opened(str(place)) is not theirs and not opened(str(place)).gone
        assert [row["k"] for row in table.scan().dicts()] == [2]
    close_opened(str(place))
    with everview.open(place) as again:
        assert [row["k"] for row in again.table("t").scan().dicts()] == [2]


@pytest.mark.parametrize("how", ["removed", "moved", "replaced", "one file removed"])
@pytest.mark.parametrize("mode", ["fsync", "group", "none"])
def test_no_write_is_acknowledged_that_would_be_lost(
    tmp_path: Path, mode: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "LOOK_INTERVAL", 0.0)
    place = tmp_path / "store"
    with everview.open(place, durability=mode) as db:
        table = db.create_table("t", COLUMNS, key=["k"])
        table.put({"k": 1, "v": "kept"})
        if how == "moved":
            place.rename(tmp_path / "aside")
        elif how == "one file removed":
            (place / "base.mdb").unlink()
        else:
            shutil.rmtree(place)
        if how == "replaced":
            EmbeddedStore.open(tmp_path / "new", create=True).close()
            (tmp_path / "new").rename(place)
        for write in (
            lambda: table.put({"k": 2, "v": "lost"}),
            lambda: table.put_many([{"k": 2, "v": "lost"}]),
            lambda: table.delete(1),
            lambda: db.create_table("more", COLUMNS, key=["k"]),
        ):
            with pytest.raises(StoreError, match="was removed while it is open"):
                write()
        assert table.get(1) == {"k": 1, "v": "kept"}, "readers go on"
    if how == "moved":
        with everview.open(tmp_path / "aside") as db:
            assert [row["k"] for row in db.table("t").scan().dicts()] == [1]


def test_a_definition_changed_by_another_handle_is_picked_up(tmp_path: Path) -> None:
    with everview.open(tmp_path) as db:
        table = db.create_table("t", COLUMNS, key=["k"])
        table.put({"k": 1, "v": "a"})
        other = everview.open(tmp_path)
        other.add_column("t", "more", "INTEGER").put({"k": 2, "v": "b", "more": 7})
        assert table.get(2) == {"k": 2, "v": "b", "more": 7}
        assert table.get(1) == {"k": 1, "v": "a", "more": None}
        table.put({"k": 1, "more": 8})
        assert other.table("t").get(1) == {"k": 1, "v": "a", "more": 8}
        other.close()


def test_a_dropped_table_is_gone_for_all(tmp_path: Path) -> None:
    with everview.open(tmp_path) as db:
        table = db.create_table("t", COLUMNS, key=["k"])
        table.put({"k": 1, "v": "a"})
        db.drop_table("t")
        with pytest.raises(everview.EverviewError, match="t"):
            table.put({"k": 1, "v": "b"})
        assert db.create_table("t", COLUMNS, key=["k"]).get(1) is None
        assert db.table("t").count() == 0


def test_a_snapshot_holds_base_tables_at_one_frontier(tmp_path: Path) -> None:
    with everview.open(tmp_path) as db:
        table = db.create_table("t", COLUMNS, key=["k"])
        table.put_many([{"k": number, "v": "old"} for number in range(10)])
        with db.store.snapshot() as snapshot:
            frontier = db.store.log.latest()
            table.put_many([{"k": number, "v": "new"} for number in range(20)])
            held = snapshot.table(db.catalog.table("t"))
            assert snapshot.frontier == frontier
            assert held.count() == 10
            assert held.get(3) == {"k": 3, "v": "old"}
            assert held.get(12) is None
            assert {row["v"] for batch in held.scan() for row in batch.to_pylist()} == {"old"}
            assert len(held.get_many([1, 2, 15])) == 2
        assert table.count() == 20


def test_a_row_shows_its_key_as_it_is_stored(tmp_path: Path) -> None:
    with everview.open(tmp_path) as db:
        table = db.create_table(
            "t", {"d": "DOUBLE", "u": "UUID", "n": "DECIMAL(6,2)", "v": "BOOLEAN"}, key=["d", "u", "n"]
        )
        name = uuid.uuid4()
        table.put({"d": -0.0, "u": str(name), "n": 7, "v": True})
        row = table.get(np.float64(0), str(name), Decimal("7.0"))
        assert repr(row) == repr({"d": 0.0, "u": name, "n": Decimal("7.00"), "v": True})
