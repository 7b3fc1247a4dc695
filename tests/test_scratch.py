"""Scratch directories: private, removed at the end, and removed by the next process after a kill."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from everview.scratch import DEMO, SCRATCH, Scratch, scratch, sweep

OWNER = """
import sys
from pathlib import Path
from everview.scratch import scratch_of_process
path = scratch_of_process(sys.argv[1])
(path / "deep").mkdir()
(path / "deep" / "file").write_text("rows")
print(path, flush=True)
sys.stdin.read()
"""


def owner(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a scratch directory in a folder, and ends when its input does."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def ended(process: subprocess.Popen[str]) -> None:
    process.communicate()


def test_a_directory_is_private_and_gone_at_the_end(tmp_path: Path) -> None:
    with scratch(tmp_path) as path:
        (path / "file").write_text("rows")
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_ends_removes_its_directory(tmp_path: Path) -> None:
    process, path = owner(tmp_path)
    assert path.parent == tmp_path and path.is_dir()
    ended(process)
    assert list(tmp_path.iterdir()) == []


def test_the_next_process_removes_what_killed_ones_left_and_nothing_else(tmp_path: Path) -> None:
    living, used = owner(tmp_path)
    killed = [owner(tmp_path) for _ in range(2)]
    for process, _ in killed:
        process.send_signal(signal.SIGKILL)
        ended(process)
    (tmp_path / "everview-of-the-user").mkdir()
    next_one, path = owner(tmp_path)
    assert set(tmp_path.iterdir()) == {used, path, tmp_path / "everview-of-the-user"}
    assert (used / "deep" / "file").read_text() == "rows"
    ended(next_one)
    ended(living)


def test_a_process_killed_before_it_locked_its_directory(tmp_path: Path) -> None:
    (tmp_path / f"{SCRATCH}a").mkdir()
    unlocked = tmp_path / f"{SCRATCH}b"
    unlocked.mkdir()
    (unlocked / ".owner").touch()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_kept_stays(tmp_path: Path) -> None:
    found = Scratch(tmp_path, DEMO)
    (found.path / "store").mkdir()
    found.keep()
    found.close()
    sweep(tmp_path)
    assert [entry.name for entry in found.path.iterdir()] == ["store"]


def test_links_and_what_they_lead_to_stay(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / ".owner").touch()
    (target / "rows").touch()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / f"{SCRATCH}link").symlink_to(target)
    dead = temporary / f"{SCRATCH}dead"
    dead.mkdir()
    (dead / ".owner").touch()
    (dead / "link").symlink_to(target)
    sweep(temporary)
    assert [entry.name for entry in temporary.iterdir()] == [f"{SCRATCH}link"]
    assert (target / "rows").exists()


def test_a_forked_child_leaves_the_directory_to_its_parent(tmp_path: Path) -> None:
    found = Scratch(tmp_path)
    child = os.fork()
    if child == 0:
        found.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert found.path.is_dir()
    found.close()
    assert list(tmp_path.iterdir()) == []


def test_the_next_process_waits_for_nobody_while_directories_come_and_go(tmp_path: Path) -> None:
    """Owners and sweepers at the same time: every owner has a directory of its own until it ends."""
    owners = [owner(tmp_path) for _ in range(4)]
    assert len({path for _, path in owners}) == 4
    assert all((path / "deep" / "file").exists() for _, path in owners)
    for process, _ in owners:
        ended(process)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_owner_has_started_is_ended(tmp_path: Path) -> None:
    process, path = owner(tmp_path)
    pause = [sys.executable, "-c", "import signal; signal.pause()"]
    with (
        subprocess.Popen(pause, env={**os.environ, "TMPDIR": str(path)}) as orphan,
        subprocess.Popen(pause, env={**os.environ, "TMPDIR": str(tmp_path)}) as other,
    ):
        sweep(tmp_path)
        assert orphan.poll() is None, "its owner lives"
        process.send_signal(signal.SIGKILL)
        ended(process)
        sweep(tmp_path)
        assert orphan.wait(60) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
    assert list(tmp_path.iterdir()) == []


STARTING = """
import os, signal
for number in range(1000):
    if not os.fork():
        signal.alarm(60)
        signal.pause()
    open(os.path.join(os.environ["TMPDIR"], str(number)), "w").close()
"""
"""A process that starts others until it is ended."""


def test_processes_that_others_start_before_they_are_ended_are_ended_too(tmp_path: Path) -> None:
    process, path = owner(tmp_path)
    mark = f"TMPDIR={path}".encode()
    with subprocess.Popen([sys.executable, "-c", STARTING], env={**os.environ, "TMPDIR": str(path)}):
        while not list(path.glob("[0-9]*")):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        ended(process)
        sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert [one for one in Path("/proc").glob("[0-9]*/environ") if mark in _read(one).split(b"\0")] == []


def _read(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""
