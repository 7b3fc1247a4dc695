"""Creating a store touches nothing that another made, and starts over where it was interrupted."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import everview
from everview.errors import NotAStoreError
from everview.store.embedded import EmbeddedStore


def contents(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
        if path.name != "lock"
    }


def used(directory: Path) -> Path:
    """A store with a row in it, closed."""
    with everview.open(directory) as db:
        db.create_table("t", {"k": "BIGINT", "v": "VARCHAR"}, key=["k"]).put({"k": 1, "v": "kept"})
    return directory


def test_a_store_that_lost_its_marker_is_not_overwritten(tmp_path: Path) -> None:
    store = used(tmp_path / "store")
    marker = (store / "everview.json").read_bytes()
    (store / "everview.json").unlink()
    before = contents(store)
    for create in (True, False):
        with pytest.raises(NotAStoreError, match=r"no everview\.json") as caught:
            EmbeddedStore.open(store, create=create)
        assert "base.mdb" in str(caught.value) and "restore everview.json" in str(caught.value)
    assert contents(store) == before
    (store / "everview.json").write_bytes(marker)
    with everview.open(store) as db:
        assert db.table("t").get(1) == {"k": 1, "v": "kept"}


@pytest.mark.parametrize(
    "name",
    ["state-of-the-union.txt", "state-backup/", "state-0.mdb", "base.mdb", "durable", "base.mdb-lock",
     "everview.json.new", "creating.json", "lock", "lock/", "everview.json.new/", "x-lock"],
)  # fmt: skip
def test_what_is_there_is_left_alone(tmp_path: Path, name: str) -> None:
    if name.endswith("/"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "letter").write_text("mine")
    else:
        (tmp_path / name).write_text("mine")
    before = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(NotAStoreError, match="holds") as caught:
        everview.open(tmp_path)
    assert name.rstrip("/") in str(caught.value)
    assert {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    """A creation that was interrupted, and somebody else's file under one of its names since."""
    place, letter = tmp_path / "store", tmp_path / "letter"
    letter.write_text("mine")
    killed_at(place, 8)
    assert (place / "creating.json").exists() and not (place / "everview.json").exists()
    (place / "durable").unlink(missing_ok=True)
    (place / "durable").symlink_to(letter)
    with pytest.raises(NotAStoreError):
        everview.open(place)
    assert letter.read_text() == "mine" and (place / "durable").is_symlink()


def killed_at(place: Path, call: int) -> bool:
    """Whether a process that creates a store was killed at so many calls that change the directory."""
    process = os.fork()
    if process == 0:
        calls = itertools.count(1)

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            opens = event == "open" and str(place) in str(arguments[0])
            if (opens or event in ("os.rename", "os.remove", "os.chmod")) and next(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        EmbeddedStore.open(place, create=True).close()
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status != 0


def test_a_creation_that_was_killed_anywhere_is_started_over(tmp_path: Path) -> None:
    calls = 0
    for call in range(1, 100):
        place = tmp_path / str(call)
        if not killed_at(place, call):
            break
        calls += 1
        used(place)
        with everview.open(place) as db:
            assert db.table("t").get(1) == {"k": 1, "v": "kept"}
        assert not (place / "creating.json").exists()
        shutil.rmtree(place)
    assert calls > 10


def test_an_interrupted_creation_beside_a_stranger_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "store"
    assert killed_at(place, 8)
    (place / "notes.txt").write_text("mine")
    before = contents(place)
    with pytest.raises(NotAStoreError, match=r"notes\.txt"):
        everview.open(place)
    assert contents(place) == before


def test_a_used_store_is_never_taken_for_an_interrupted_creation(tmp_path: Path) -> None:
    """Even with the list of a creation in it, and without its marker."""
    assert killed_at(tmp_path / "other", 8)
    store = used(tmp_path / "store")
    shutil.copy(tmp_path / "other" / "creating.json", store)
    (store / "everview.json").unlink()
    before = contents(store)
    with pytest.raises(NotAStoreError):
        everview.open(store)
    assert contents(store) == before


def test_two_processes_create_one_store(tmp_path: Path) -> None:
    code = "import everview, sys; everview.open(sys.argv[1]).close()"
    children = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s")]) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert not (tmp_path / "s" / "creating.json").exists()
