"""Processes that are killed at any moment leave nothing that slows the next one or must be cleaned by hand."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import everview
from bench.processes import family
from tests.cli.served import ROOT, Served, served
from tests.zones.exposure import command_lines
from tests.zones.market import wait_for
from tests.zones.shop import assert_all_is_right, trade

KILLS = 5
QUICK = {"JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
"""For Java processes that live for a minute."""
Reached = Callable[[int], bool]
"""Whether a process has come to some point of its start."""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The temporary directory of the processes of a test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def of_folder(folder: Path) -> list[int]:
    """The processes whose temporary directory is a directory, or below it."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}".encode() in environment.read_bytes():
                found.append(int(environment.parent.name))
        except OSError:
            continue
    return found


def kill_all(service: Served) -> None:
    """At once, and with everything that it has started."""
    for process in reversed(family(service.process.pid)):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    service.end()


def kill_one(service: Served) -> None:
    """Only the first process: the others find out by themselves."""
    service.signal(signal.SIGKILL)
    service.end()


def has_started(words: bytes) -> Reached:
    return lambda process: any(words in line for line in command_lines(process))


def test_starting_pipelines_are_killed_and_the_next_one_commits(
    db: everview.Database, store: Path, temporary: Path
) -> None:
    left: set[Path] = set()
    states: dict[str, Reached] = {
        "a directory of its own": lambda _: bool(set(temporary.iterdir()) - left),
        "Spark's command": has_started(b"spark-submit"),
        "Java's launcher": has_started(b"org.apache.spark.launcher.Main"),
        "Java": lambda process: any(
            b"SparkSubmit" in line and line.partition(b"\0")[0].endswith(b"java") for line in command_lines(process)
        ),
        "Spark's context": lambda _: any(path.parent not in left for path in temporary.glob("*/blockmgr-*")),
        "the lease": lambda _: db.store.holder("maintenance") is not None,
        "the source": has_started(b"python_streaming_source_runner"),
        "workers": has_started(b"everview.zones.daemon"),
    }
    environment = {"TMPDIR": str(temporary), **QUICK}
    draws = random.Random(1)
    trade(db, 5, seed=1)
    for reached in draws.sample(list(states.values()), KILLS):
        with served(store, environment=environment) as service:
            _await(service.process, partial(reached, service.process.pid))
            draws.choice([kill_one, kill_all])(service)
        assert not left & set(temporary.iterdir()), "each start removes what the last one left"
        left = set(temporary.iterdir())
    trade(db, 5, seed=2)
    with served(store, environment=environment) as service:
        service.until("started")
        others = set(of_folder(temporary)) - set(family(service.process.pid))
        still = others.intersection(of_folder(temporary))  # of a start some processes live for a moment only
        assert not still, "nothing runs for those that were killed"
        service.until("epoch")
        db.flush(timeout=300)
        assert_all_is_right(db)
        service.signal(signal.SIGTERM)
        assert service.end() == 0
    assert list(temporary.iterdir()) == [] and of_folder(temporary) == []


def test_killed_processes_of_every_kind_leave_nothing_behind_the_next_start(
    db: everview.Database, store: Path, temporary: Path
) -> None:
    environment = {"TMPDIR": str(temporary), **QUICK}
    trade(db, 20, seed=1)
    with served(store, environment=environment) as service:
        service.until("epoch")
        with served(store, "--wait", "forever", environment=environment) as standby:
            standby.until("ready")
            for words in (b"everview.zones.daemon", b"python_streaming_source_runner"):
                _kill_in(service.process.pid, words)
            kill_all(standby)
        kill_all(service)
    with command("verify", str(store), "--spark", environment=environment) as verifying:
        _await(verifying, lambda: len(list(temporary.glob("*/blockmgr-*"))) == 1)
    with command("demo", environment=environment) as demo:
        _await(demo, lambda: any(temporary.glob("everview-demo-*/everview-scratch-*/blockmgr-*")))
    left = list(temporary.iterdir())
    assert any("demo" in path.name for path in left), "what is killed cannot clean up"
    with served(store, "--local", "--once", environment=environment) as last:
        assert last.end() == 0
    _await(None, lambda: of_folder(temporary) == [])
    assert list(temporary.iterdir()) == []
    assert_all_is_right(db)


@contextmanager
def command(*arguments: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command that is killed at the end of the block, alone."""
    path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-m", "everview.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _await(process: subprocess.Popen[Any] | None, reached: Callable[[], bool]) -> None:
    def check() -> None:
        assert process is None or process.poll() is None, "it has ended"

    wait_for(reached, check)


def _kill_in(process: int, words: bytes) -> None:
    """Kill those of a process and its descendants whose command line contains some words."""
    for one in family(process):
        try:
            if words in Path(f"/proc/{one}/cmdline").read_bytes():
                os.kill(one, signal.SIGKILL)
        except (ProcessLookupError, FileNotFoundError):
            continue
