"""Experiments in processes of their own.

A process that dies, hangs or raises costs the rest of its experiment, never a row that was found
before nor the experiments after it.

Measured for figures, every experiment has a process to itself: what one leaves behind in memory, in caches of
Java or in settings does not meet the next. Quick ones share a process, because starting Spark would take longer
than they do; if it dies, another one goes on with those that are left.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.processes import family
from bench.report.experiment import Found, Row, Value
from bench.report.registry import ROOT
from bench.report.results import Result

POLL = 0.5
END = 60.0
"""Seconds in which a process that has nothing left to do must end."""
LINES = 15
"""Of what a process said before it failed."""
WIDTH = 150


@dataclass(frozen=True)
class Job:
    """An experiment to be run, the seconds it may take, and the rows that are reported as they come."""

    name: str
    module: str
    limit: float
    shown: Callable[[Row], bool] = lambda row: True


@dataclass(frozen=True)
class Runner:
    """How experiments are run, and where progress is reported."""

    seed: int
    quick: bool
    install: bool
    machine: dict[str, Value]
    versions: dict[str, str]
    report: Callable[[str], None]

    def run(self, jobs: Sequence[Job]) -> Iterator[Result]:
        """Run experiments in one process, or in as many as it takes when some die."""
        left = list(jobs)
        while left:
            with tempfile.TemporaryDirectory(prefix="everview-bench-", ignore_cleanup_errors=True) as folder:
                for result in self._in_one_process(tuple(left), Path(folder)):
                    left.pop(0)
                    yield result

    def _in_one_process(self, jobs: Sequence[Job], folder: Path) -> Iterator[Result]:
        """The results of one process: of all experiments, or up to the one that ended it."""
        log = folder / "log"
        receive, send = os.pipe()
        options = ["--to", str(send), "--seed", str(self.seed), "--folder", str(folder)]
        options += ["--quick"] * self.quick + ["--install"] * self.install
        with log.open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.report.child", *options, *(job.module for job in jobs)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=[send],
            )
        os.close(send)
        words = _words(process, receive)
        try:
            for job in jobs:
                result, goes_on = self._one(job, process, words, log)
                yield result
                if not goes_on:
                    return
            with suppress(subprocess.TimeoutExpired):
                process.wait(END)
        finally:
            end(process)
            os.close(receive)

    def _one(
        self, job: Job, process: subprocess.Popen[bytes], words: Iterator[dict | None], log: Path
    ) -> tuple[Result, bool]:
        """What is said of one experiment, and whether the process is still there for the next."""
        began, load = f"{datetime.now(UTC):%Y-%m-%d %H:%M}", round(os.getloadavg()[0], 2)
        started, before = time.monotonic(), log.stat().st_size
        found: list[Found] = []
        failed, goes_on = "", False
        self.report(f"{job.name}: begins")
        for said in words:
            seconds = time.monotonic() - started
            if seconds > job.limit:
                failed = f"given up after {job.limit:,.0f} seconds"
                break
            if said is not None and "found" in said:
                found.append(Found(**said["found"]))
                if found[-1].wrong or job.shown(found[-1].row):
                    self.report(f"{job.name}: {seconds:,.0f} s: {_short(found[-1])}")
            elif said is not None and "end" in said:
                failed, goes_on = said["end"], True
                break
        else:
            failed = f"its process ended before it did, with {process.wait(END)}"
        failed = failed or ("" if found else "it found nothing")
        seconds = round(time.monotonic() - started, 1)
        self.report(f"{job.name}: {'failed' if failed else 'done'} after {seconds:,.1f} s, {len(found)} rows")
        if failed:
            self.report(f"{job.name}: {failed}")
            for line in log.read_bytes()[before:].decode("utf-8", "replace").splitlines()[-LINES:]:
                self.report(f"  | {line}")
        result = Result(
            job.name, self.machine, self.versions, self.seed, self.quick, began, seconds, load, tuple(found), failed
        )
        return result, goes_on


def _words(process: subprocess.Popen[bytes], receive: int) -> Iterator[dict | None]:
    """What a process says, line by line, and None now and then while it says nothing. A process that is gone
    says nothing more, even where one that it started still has its end of the pipe."""
    rest = b""
    while True:
        ended = process.poll() is not None
        ready, _, _ = select.select([receive], [], [], 0 if ended else POLL)
        if not ready:
            if ended:
                return
            yield None
            continue
        piece = os.read(receive, 1 << 16)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from map(json.loads, lines)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started: Java, daemons, workers, drivers."""
    if process.poll() is None:
        for one in reversed(family(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        process.wait()


def _short(found: Found) -> str:
    """A row in a line; one that is wrong without its figures."""
    shown = {name: it for name, it in found.row.items() if it is not None and (isinstance(it, str) or not found.wrong)}
    mark = "WRONG: " + found.wrong + ": " if found.wrong else ""
    text = " ".join((mark + ", ".join(f"{name} {_value(value)}" for name, value in shown.items())).split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _value(value: Value) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
