"""Where commands write: devices, pipes and links are written into, and files are there when they are whole."""

from __future__ import annotations

import os
import secrets
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import everview
from everview.cli.files.output import written
from tests.cli.conftest import Call

COMMAND = [sys.executable, "-m", "everview.cli"]
CSV = "id\n1\n2\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def db(store: Path) -> Iterator[everview.Database]:
    with everview.open(store) as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
        yield db


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty directory to write into."""
    place = tmp_path / "place"
    place.mkdir()
    return place


def run(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, words)], text=True, timeout=120, **options)  # type: ignore[call-overload]


# ------------------------------------------------------------------ what is not a file


@pytest.mark.parametrize("command", ["dump", "explain"])
def test_a_pipe_is_written_into(call: Call, store: Path, place: Path, command: str) -> None:
    pipe = place / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    words = ("t", pipe, "--format", "csv") if command == "dump" else ("SELECT id FROM t", "-o", pipe)
    assert call(command, store, *words).code == 0
    with os.fdopen(reader, encoding="utf-8") as stream:
        read = stream.read()
    assert stat.S_ISFIFO(pipe.lstat().st_mode) and list(place.iterdir()) == [pipe]
    assert read == CSV if command == "dump" else "id" in read


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_device_is_written_into(call: Call, store: Path, place: Path, form: str) -> None:
    device(place / "null", 3)
    assert call("dump", store, "t", place / "null", "--format", form).code == 0
    assert (place / "null").is_char_device() and list(place.iterdir()) == [place / "null"]


def test_a_full_device_is_an_error(call: Call, store: Path, place: Path) -> None:
    device(place / "full", 7)
    for form in ("csv", "jsonl", "parquet"):
        said = call("dump", store, "t", place / "full", "--format", form)
        assert said.code == 1 and "full cannot be written" in said.err and "No space left" in said.err
    assert (place / "full").is_char_device()


def device(path: Path, minor: int) -> None:
    """A device of the kind of /dev/null (3) or /dev/full (7) that a test may lose."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))
    except PermissionError:
        pytest.skip("devices cannot be made here")


@pytest.mark.parametrize("name", ["stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_its_name_is_appended_to(store: Path, tmp_path: Path, place: Path, name: str) -> None:
    """As the shell has it: ``everview dump … /dev/stdout >> file``. The link is one that a test may lose."""
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    log = place / "log"
    log.write_text("before\n", "utf-8")
    with log.open("ab") as out:
        assert run("dump", store, "t", tmp_path / name, "--format", "csv", stdout=out).returncode == 0
    assert log.read_text("utf-8") == f"before\n{CSV}" and list(place.iterdir()) == [log]
    assert (tmp_path / "stdout").is_symlink()


def test_a_descriptor_is_written_into(store: Path) -> None:
    """As a shell passes ``>(gzip > file)``."""
    source, target = os.pipe()
    ended = run("dump", store, "t", f"/dev/fd/{target}", "--format", "csv", pass_fds=[target])
    os.close(target)
    with os.fdopen(source, encoding="utf-8") as read:
        assert read.read() == CSV
    assert ended.returncode == 0


# ------------------------------------------------------------------ links


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("command", ["dump", "explain"])
def test_a_link_is_written_through(call: Call, store: Path, place: Path, there: bool, command: str) -> None:
    (place / "far").mkdir()
    target = place / "far" / "target.csv"
    if there:
        target.write_text("before", "utf-8")
    link = place / "link.csv"
    link.symlink_to(Path("far") / "target.csv")
    said = (
        call("dump", store, "t", link) if command == "dump" else call("explain", store, "SELECT id FROM t", "-o", link)
    )
    assert said.code == 0 and link.is_symlink() and not target.is_symlink()
    assert target.read_text("utf-8") == CSV if command == "dump" else "before" not in target.read_text("utf-8")
    assert list((place / "far").iterdir()) == [target]
    assert command != "dump" or str(target) in said.out


def test_a_link_that_someone_else_planted_is_refused(call: Call, store: Path, place: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a link away")
    target = place / "precious"
    target.write_text("precious", "utf-8")
    shared = place / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "t.csv"
    link.symlink_to(target)
    os.chown(link, 12345, 12345, follow_symlinks=False)
    said = call("dump", store, "t", link)
    assert said.code == 1 and "cannot be written" in said.err and "Traceback" not in said.err
    assert target.read_text("utf-8") == "precious"


def test_links_that_lead_nowhere(call: Call, store: Path, place: Path) -> None:
    (place / "round.csv").symlink_to("round.csv")
    (place / "lost.csv").symlink_to(Path("nowhere") / "x.csv")
    for file in (place / "round.csv", place / "lost.csv", place):
        said = call("dump", store, "t", file, "--format", "csv")
        assert said.code == 1 and f"{file} cannot be written" in said.err and "Traceback" not in said.err


def test_a_link_at_a_predictable_name_is_not_followed(call: Call, store: Path, place: Path) -> None:
    precious = place.parent / "precious"
    precious.write_text("precious", "utf-8")
    (place / ".t.csv.partial").symlink_to(precious)
    assert call("dump", store, "t", place / "t.csv").code == 0
    assert precious.read_text("utf-8") == "precious" and (place / ".t.csv.partial").is_symlink()
    assert (place / "t.csv").read_text("utf-8") == CSV


def test_a_name_that_is_taken_is_not_opened(
    call: Call, store: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the name be guessed after all, the file is made under another one."""
    names = iter(["guessed", "guessed", "free"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(names, "free"))
    assert call("dump", store, "t", place / "a.csv").code == 0
    precious = place.parent / "precious"
    precious.write_text("precious", "utf-8")
    names = iter(["guessed", "free"])
    (place / ".everview-guessed.partial").symlink_to(precious)
    assert call("dump", store, "t", place / "t.csv").code == 0
    assert precious.read_text("utf-8") == "precious" and (place / "t.csv").read_text("utf-8") == CSV


# ------------------------------------------------------------------ files


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(call: Call, store: Path, place: Path) -> None:
    file = place / "t.csv"
    mask = os.umask(0o027)
    try:
        assert call("dump", store, "t", file).code == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        file.chmod(0o604)
        assert call("dump", store, "t", file).code == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o604
    finally:
        os.umask(mask)


def test_the_longest_name_can_be_written(call: Call, store: Path, place: Path) -> None:
    file = place / f"{'x' * 251}.csv"
    assert call("dump", store, "t", file).code == 0 and file.read_text("utf-8") == CSV


@contextmanager
def default_handler(number: signal.Signals) -> Iterator[None]:
    """A signal may be ignored where the tests run (by nohup), or have a handler in their process."""
    usual = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, usual)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_dump_that_is_ended_leaves_nothing(store: Path, place: Path, number: signal.Signals) -> None:
    file = place / "large.csv"
    file.write_text("before", "utf-8")
    query = "SELECT a.id + b.range AS n FROM t a, range(1000000000) b"
    command = [*COMMAND, "dump", str(store), "--query", query, str(file)]
    with default_handler(number), subprocess.Popen(command, stderr=subprocess.PIPE) as dump:
        while not any(one.name.endswith(".partial") and one.stat().st_size for one in place.iterdir()):
            assert dump.poll() is None
        (partial,) = (one for one in place.iterdir() if one != file)
        assert stat.S_IMODE(partial.stat().st_mode) == 0o600
        dump.send_signal(number)
        _, err = dump.communicate(timeout=120)
    assert dump.returncode and b"Traceback" not in err
    assert list(place.iterdir()) == [file] and file.read_text("utf-8") == "before"


class Finalized:
    """Raises a signal where exceptions are lost."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_is_not_complete_if_the_exception_of_the_signal_is_lost(place: Path) -> None:
    finalized = [Finalized()]
    with (
        default_handler(signal.SIGTERM),
        pytest.raises(SystemExit) as ended,
        written(str(place / "large.csv")) as (stream, _),
    ):
        stream.write(b"before")
        finalized.clear()
        stream.write(b"after" * 100_000)
    assert ended.value.code == 128 + signal.SIGTERM
    assert not list(place.iterdir())


def test_a_disk_that_fills_up_leaves_nothing(store: Path, place: Path, db: everview.Database) -> None:
    db.table("t").put_many([{"id": at} for at in range(10_000)])
    for form in ("csv", "jsonl", "parquet"):
        limited = f"ulimit -f 16; trap '' XFSZ; exec {' '.join(COMMAND)} dump {store} t {place}/t.{form}"
        ended = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=120)
        assert ended.returncode == 1 and "cannot be written" in ended.stderr and "Traceback" not in ended.stderr
        assert not list(place.iterdir())


# ------------------------------------------------------------------ what is printed


COMMANDS = [
    ("status",),
    ("sql", "-c", "SELECT * FROM range(100000)", "--json"),
    ("sql", "-c", "SELECT 1 AS a"),
    ("dump", "--query", "SELECT range AS n FROM range(100000)", "-", "--format", "jsonl"),
]


def words(store: Path, command: tuple[str, ...]) -> list[object]:
    return [command[0], store, *command[1:]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:40])
def test_a_full_output_is_an_error_in_one_line(store: Path, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = run(*words(store, command), stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1 and "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:40])
def test_a_reader_that_has_gone_away_is_no_traceback(store: Path, command: tuple[str, ...]) -> None:
    source, target = os.pipe()
    os.close(source)
    ended = run(*words(store, command), stdout=target, stderr=subprocess.PIPE)
    os.close(target)
    assert ended.returncode == 1 and ended.stderr == ""


def test_streams_that_are_closed_are_not_mistaken_for_files(store: Path) -> None:
    """A file of the store that is opened as descriptor 1 would be printed into."""
    for redirection, code in ((">&-", 1), ("2>&-", 0), ("<&-", 0), (">&- 2>&- <&-", 1)):
        line = f"exec {' '.join(COMMAND)} sql {store} -c 'SELECT 1 AS a' {redirection}"
        ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120)
        assert ended.returncode == code, ended
        assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr
    line = f"exec {' '.join(COMMAND)} sql {store} - <&-"
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
