"""A pipeline on Spark that we start is closed: to other machines, and to other users of this one."""

from __future__ import annotations

import secrets
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import everview
from bench.processes import family
from tests.cli.served import Served, served
from tests.zones.exposure import (
    answer,
    command_lines,
    containing,
    files,
    listening,
    open_files,
    readable_by_others,
    unix_listening,
    writable_by_others,
)

VALUE = secrets.token_hex(20)
"""In every row that is written, and what rows are grouped by: so it is shuffled."""
SOURCES = Path(__file__).parents[2]


@dataclass
class Place:
    """Where a pipeline writes, all of it open to others."""

    store: Path
    temporary: Path
    home: Path
    working: Path
    process: Served

    @property
    def folders(self) -> tuple[Path, ...]:
        return self.store.parent, self.temporary, self.home, self.working

    @property
    def id(self) -> int:
        return self.process.process.pid


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A pipeline that has shuffled some rows and goes on. A process that creates files without thinking of their
    mode creates them open to everybody here."""
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above)
        folder.chmod(0o755)
        store, *others = (folder / name for name in ("stores", "temporary", "home", "working"))
        for one in (store, *others):
            one.mkdir()
            one.chmod(0o777)
        store /= "store"
        temporary, home, working = others
        environment = {"TMPDIR": str(temporary), "HOME": str(home)}
        with everview.open(store) as db:
            db.sql("CREATE TABLE notes (id BIGINT PRIMARY KEY, note VARCHAR)")
            db.sql("CREATE MATERIALIZED VIEW counts AS SELECT note, count(*) AS n FROM notes GROUP BY note")
            db.sql("CREATE MATERIALIZED VIEW pairs AS SELECT a.id, b.note FROM notes a JOIN notes b USING (note)")
            with served(store, "--in-driver", "0", environment=environment, folder=working, umask=0) as process:
                process.until("started")
                for many in (1, 10):
                    for number in range(many):
                        db.table("notes").put({"id": number, "note": f"{VALUE}-{many}-{number}"})
                    db.flush(timeout=300)
                assert len(db.sql("SELECT * FROM counts").rows()) == 10
                yield Place(store, temporary, home, working, process)
                process.signal(signal.SIGTERM)
                assert process.end() == 0
        assert files(temporary, home, working) == [], "left behind by a process that ended well"


def test_no_socket_can_be_reached_from_another_machine(place: Place) -> None:
    found = listening(place.id)
    assert found, "Spark listens for its own processes at least"
    assert [one for one in found if not one.is_local] == []


def test_unix_sockets_are_in_private_directories(place: Place) -> None:
    found = unix_listening(place.id)
    assert found, "Python workers are reached by unix sockets"
    assert [path for path in found if writable_by_others(path) or readable_by_others(path)] == []


def test_no_file_can_be_read_by_others(place: Place) -> None:
    found = [path for path in files(*place.folders) if not path.is_symlink()]
    assert [path for path in found if readable_by_others(path)] == []
    assert [path for path in found if writable_by_others(path)] == []


def test_nothing_is_written_outside_of_private_directories(place: Place) -> None:
    assert files(place.home, place.working) == []
    written = [path for path in open_files(place.id) if path.parts[1] in ("tmp", "home", "root", "var")]
    ours = tuple(place.folders)
    elsewhere = [path for path in written if not path.is_relative_to(ours[0].parent)]
    assert [path for path in elsewhere if not path.is_relative_to(SOURCES)] == []
    assert [path for path in Path("/tmp").glob("hsperfdata_*/*") if int(path.name) in family(place.id)] == []


def test_values_of_rows_are_in_no_file_but_the_store(place: Place) -> None:
    found = containing(VALUE, *place.folders)
    assert found, "the store is not encrypted"
    assert any(path.suffix == ".data" for path in files(place.temporary)), "there are shuffle files"
    assert [path for path in found if not path.is_relative_to(place.store)] == []


def test_command_lines_contain_no_secret(place: Place) -> None:
    shown = b"\n".join(command_lines(place.id)).replace(b"\0", b" ")
    assert b"spark.authenticate=true" in shown
    assert b"secret" not in shown.lower()


def test_a_stranger_who_connects_is_not_served(place: Place) -> None:
    """Python's and Java's ends of Py4J listen on this machine: without the secret they do nothing."""
    remove_a_function = b"g\np0\ne\n"
    assert [one for one in listening(place.id) if answer(one.port, remove_a_function).startswith(b"!y")] == []
    with everview.open(place.store) as db:
        db.table("notes").put({"id": 1000, "note": VALUE})
        db.flush(timeout=300)
