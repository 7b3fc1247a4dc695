"""Files of several suites, read and tried by two processes that may hang or die without harm.

A file is one unit of work whose lines are written to the report when all of its queries have an outcome,
so a campaign that is interrupted goes on where it was.

A process that does not answer in time is killed, and its batch is tried in halves, until the query that hangs or kills
the process is alone: that one is recorded as ``timed out`` or ``crashed``.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.strangers.repositories import Repository
from tests.strangers.suites import suites_of
from tests.strangers.worker import seed_of

READING = 120.0
"""Seconds for reading a file, and for making a history smaller."""
TRYING = 40.0
"""Seconds for a batch, and for each of its queries:"""
EACH = 2.0
PROCESSES = 2
FAILURES = frozenset({"refused", "wrong", "crashed", "timed out", "harness"})

Line = dict[str, Any]


class HungError(Exception):
    """A process did not answer in time."""


class DiedError(Exception):
    """A process ended without an answer."""


class Process:
    """A worker process, started again where it hung or died."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def ask(self, job: Line, seconds: float) -> Any:
        """The answer to a job. Raises where there is none."""
        child = self._child or self._start()
        assert child.stdin and child.stdout
        answers: queue.Queue[str] = queue.Queue()
        try:
            child.stdin.write(json.dumps(job) + "\n")
            child.stdin.flush()
        except BrokenPipeError as error:
            self.end()
            raise DiedError("the process was gone") from error
        threading.Thread(target=lambda out=child.stdout: answers.put(out.readline()), daemon=True).start()
        try:
            line = answers.get(timeout=seconds)
        except queue.Empty:
            self.end()
            raise HungError(f"no answer after {seconds:.0f} s") from None
        if not line:
            code = child.wait()
            self.end()
            raise DiedError(f"the process ended with {code}")
        answer = json.loads(line)
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer["answer"]

    def _start(self) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.strangers.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        return self._child

    def end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe:
                    pipe.close()
            self._child = None


@dataclass
class Campaign:
    """Which files, how many queries of each, and where the lines go."""

    places: tuple[Path, ...]
    suites: frozenset[str]
    limit: int
    """Queries of a suite."""
    per_file: int
    seed: int
    report: Path
    shrinks: bool = True
    say: Callable[[str], None] = print
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._done: set[tuple[str, str]] = set()
        for line in lines_of(self.report):
            if line["kind"] == "file":
                self._done.add((line["suite"], line["path"]))
                self._tried[line["suite"]] += line["queries"]

    def run(self) -> None:
        """Try the files of all suites in turn, until each suite has its number of queries."""
        waiting: queue.Queue[tuple[str, str, str]] = queue.Queue()
        for work in self._files():
            waiting.put(work)
        threads = [threading.Thread(target=self._work, args=(waiting,)) for _ in range(PROCESSES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _files(self) -> Iterator[tuple[str, str, str]]:
        """Places, suites and paths, in an order that the seed decides; the suites take turns."""
        found: list[tuple[float, str, str, str]] = []
        for place in self.places:
            for suite, files in suites_of(Repository(place), self.suites):
                shuffled = random.Random(seed_of(self.seed, suite.name)).sample(files, len(files))
                found += [(at / len(files), suite.name, str(place), path) for at, path in enumerate(shuffled)]
        for _, suite_name, place_name, path in sorted(found):
            yield place_name, suite_name, path

    def _work(self, waiting: queue.Queue[tuple[str, str, str]]) -> None:
        process = Process()
        try:
            while True:
                try:
                    place, suite, path = waiting.get_nowait()
                except queue.Empty:
                    return
                if (suite, path) in self._done or self._tried[suite] >= self.limit:
                    continue
                lines = self._file(process, place, suite, path)
                with self._lock:
                    self._tried[suite] += lines[-1]["queries"]
                    with self.report.open("a") as out:
                        out.writelines(json.dumps(line) + "\n" for line in lines)
                counts = Counter(line["outcome"] for line in lines[:-1])
                self.say(f"{suite}: {path}: {dict(counts)}")
        finally:
            process.end()

    def _file(self, process: Process, place: str, suite: str, path: str) -> list[Line]:
        """The lines of a file: one for each query, and one for the file at the end."""
        about = {"kind": "file", "suite": suite, "path": path, "queries": 0}
        job = {"do": "read", "place": place, "suite": suite, "path": path, "most": self.per_file, "seed": self.seed}
        try:
            read = process.ask(job, READING)
        except (HungError, DiedError, RuntimeError) as error:
            return [about | {"unread": str(error)}]
        lines: list[Line] = []
        for batch in read["batches"]:
            for line in self._batch(process, batch):
                tables = [table for table in batch["tables"] if table["name"] in line["reads"]]
                shape = json.dumps([line["query"], [[table["name"], table["columns"]] for table in tables]])
                key = hashlib.sha256(shape.encode()).hexdigest()[:16]
                lines.append({"kind": "query", "suite": suite, "path": path, "id": key, **line})
        return [*lines, about | {"queries": len(lines), "others": read["others"], "asked": read["asked"]}]

    def _batch(self, process: Process, batch: Line) -> list[Line]:
        """The lines of a batch; where the process hangs or dies, of its halves."""
        queries = batch["queries"]
        try:
            job = {"do": "try", "batch": batch, "seed": self.seed}
            found: list[Line] = process.ask(job, TRYING + EACH * len(queries))
        except (HungError, DiedError, RuntimeError) as error:
            if len(queries) > 1:
                middle = len(queries) // 2
                halves = queries[:middle], queries[middle:]
                return [line for half in halves for line in self._batch(process, batch | {"queries": half})]
            return [self._alone(batch, error)]
        for line in found:
            if line["outcome"] in ("wrong", "crashed"):
                line["reproduction"] = self._reproduction(process, batch, line)
        return found

    def _reproduction(self, process: Process, batch: Line, line: Line) -> Line:
        job = {"do": "reproduce", "batch": batch, "seed": self.seed, "shrinks": self.shrinks}
        try:
            found: Line = process.ask(job | {"query": line["query"], "extreme": line["extreme"]}, READING)
        except (HungError, DiedError, RuntimeError) as error:
            return {"query": line["query"], "unreproduced": str(error)}
        return found

    def _alone(self, batch: Line, error: Exception) -> Line:
        """The line of a query with which the process hung, died or failed."""
        kind = {HungError: "timed out", DiedError: "crashed"}.get(type(error), "harness")
        tables = [[table["name"], table["columns"], table["rows"][:6]] for table in batch["tables"]]
        return {
            "query": batch["queries"][0],
            "outcome": kind,
            "detail": str(error),
            "round": -1,
            "notices": [],
            "reads": [table["name"] for table in batch["tables"]],
            "reproduction": {"tables": tables, "named": batch["named"], "query": batch["queries"][0]},
        }


def forget_failures(report: Path) -> int:
    """Leave the files of which a query was not right out of a report, so that they are tried again; returns how
    many."""
    lines = list(lines_of(report))
    failed = {(line["suite"], line["path"]) for line in lines if line.get("outcome", "right") in FAILURES}
    failed |= {(line["suite"], line["path"]) for line in lines if "unread" in line}
    kept = [line for line in lines if (line["suite"], line["path"]) not in failed]
    report.write_text("".join(json.dumps(line) + "\n" for line in kept))
    return len(failed)


def lines_of(report: Path) -> Iterator[Line]:
    """The lines of a report, without one that was cut off."""
    if not report.exists():
        return
    with report.open() as held:
        for text in held:
            try:
                yield json.loads(text)
            except json.JSONDecodeError:
                continue
