"""Everview beside the systems a user would pick instead: the same stream, the same views, one machine, one run.

One sentence: each system runs in a process of its own, takes the same operations from files written before, and
leaves a view that is compared with a recomputation; what it takes to start is told apart from what an operation
takes, by a run over a tenth of the stream beside the run over all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.others.child import Taken, outcomes
from bench.report.experiment import Experiment, Found, Plot, Row, Setting
from bench.report.registry import ROOT

MILLION = 1_000_000
QUICK_OPERATIONS = 20_000
EVERY = ("q1", "q2", "q3", "q4", "q3, amounts")
SAMPLE = 0.5
"""Seconds between two looks at memory."""
LIMIT = 240
"""Seconds a system may take for all its views."""
SPARK = "Everview on Spark"
PROCESS = "Everview in process"
OURS = (SPARK, PROCESS)


@dataclass(frozen=True)
class System:
    """A system that is measured: how it is run, what it reads, what it leaves, and over how many operations."""

    name: str
    module: str
    reads: str
    """The form of the stream (:mod:`bench.others.stream`)."""
    left: str
    """The form of what it leaves (:mod:`bench.others.judge`)."""
    leaves: str
    """What a user has in the end."""
    operations: Mapping[str, int]
    """By view: as many as it can take in some ten seconds, and a million at most."""
    needs: str | None = None
    """What :mod:`bench.others.setup` installs for it."""
    foreign: bool = False
    """Whether it runs in an environment of its own."""


def _sizes(q1: int, q2: int, q3: int, q4: int, amounts: int) -> dict[str, int]:
    return dict(zip(EVERY, (q1, q2, q3, q4, amounts), strict=True))


SYSTEMS = (
    System(
        SPARK,
        "everview_spark",
        "arrow",
        "parquet",
        "the view, stored, and its changes",
        _sizes(MILLION, MILLION, MILLION, MILLION, 200_000),
    ),
    System(
        PROCESS,
        "everview_process",
        "arrow",
        "parquet",
        "the view, stored, and its changes",
        _sizes(MILLION, MILLION, MILLION, MILLION, 200_000),
    ),
    System(
        "Flink SQL",
        "flink",
        "changes",
        "flink",
        "a stream of changes",
        _sizes(MILLION, MILLION, MILLION, MILLION, 200_000),
        "flink",
        foreign=True,
    ),
    System(
        "Pathway",
        "pathway_table",
        "arrow",
        "pathway",
        "a stream of changes",
        _sizes(200_000, 200_000, 100_000, 200_000, 100_000),
        "pathway",
        foreign=True,
    ),
    System(
        "DuckDB, anew every 10,000",
        "duckdb_again",
        "arrow",
        "parquet",
        "the view, stored",
        _sizes(MILLION, MILLION, MILLION, MILLION, 200_000),
    ),
    System(
        "PostgreSQL triggers",
        "postgres",
        "rounds",
        "csv",
        "the view, stored",
        _sizes(300_000, 300_000, 200_000, 200_000, 200_000),
        "postgres",
    ),
    System(
        "Structured Streaming",
        "structured",
        "signed",
        "spark",
        "a stream of changes",
        _sizes(MILLION, MILLION, 200_000, 200_000, 200_000),
    ),
)


def measure(setting: Setting) -> Iterator[Found]:
    streams = _Streams(setting)
    there = []
    for system in SYSTEMS:
        missing = _missing(system, setting)
        if missing:
            yield from (
                Found({"system": system.name, "view": view, "leaves": system.leaves, "said": missing}) for view in EVERY
            )
        else:
            there.append(system)
    if setting.quick:
        batches = [[system for system in there if not system.foreign], *([one] for one in there if one.foreign)]
    else:
        batches = [[system] for system in there]
    for systems in batches:
        yield from _measured(systems, streams, setting)


def _missing(system: System, setting: Setting) -> str:
    """Why a system cannot be measured."""
    from bench.others.setup import NotInstalled, install, installed

    if system.needs is None or installed(system.needs):
        return ""
    if not setting.install:
        return f"not installed: python -m bench.others.setup {system.needs}"
    try:
        install(system.needs)
    except NotInstalled as error:
        return f"not installed: {error}"
    return ""


# ------------------------------------------------------------------ streams


class _Streams:
    """Operations, made when they are first wanted, and their files."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._made: dict[str, dict[str, Any]] = {}
        self._left: dict[tuple[str, int], dict[str, Any]] = {}

    def count(self, system: System, view: str) -> int:
        return self._setting.pick(system.operations[view], QUICK_OPERATIONS)

    def short(self, count: int) -> int:
        """A tenth, in whole rounds."""
        from bench.others.views import ROUND

        return max(count // 10 // ROUND, 1) * ROUND

    def files(self, view: str, count: int, form: str) -> Path:
        from bench.others.stream import save

        kind = _kind(view)
        folder = self._setting.folder / "streams" / f"{_file(kind)}-{count}-{form}"
        if not folder.exists():
            save(self._operations(kind), count, form, folder)
        return folder

    def rows(self, view: str, count: int) -> dict[str, Any]:
        """The base rows in the end."""
        from bench.others.stream import left

        kind = _kind(view)
        if (kind, count) not in self._left:
            self._left[kind, count] = left(self._operations(kind), count)
        return self._left[kind, count]

    def _operations(self, kind: str) -> dict[str, Any]:
        from bench.others.stream import FULL, QUICK, operations

        if kind not in self._made:
            most = max(self.count(system, view) for system in SYSTEMS for view in EVERY if _kind(view) == kind)
            size = self._setting.pick(FULL, QUICK)
            self._made[kind] = operations(kind, most, size, self._setting.seed)
        return self._made[kind]


def _kind(view: str) -> str:
    """Views over one stream share it."""
    return "q1" if view in ("q1", "q2", "q3") else view


def _file(view: str) -> str:
    return view.replace(", ", "-")


# ------------------------------------------------------------------ a process


def _measured(systems: Sequence[System], streams: _Streams, setting: Setting) -> Iterator[Found]:
    """The views of systems that share a process, as they are found."""
    from bench.others.judge import judge
    from bench.others.setup import python_of

    by_name = {system.name: system for system in systems}
    out = setting.folder / "out"
    task = {"systems": [_asked(system, streams, out, setting.quick) for system in systems]}
    foreign = systems[0].foreign
    if setting.quick and not foreign:
        lines = outcomes(task)
    else:
        file = setting.folder / f"{systems[0].module}.json"
        file.write_text(json.dumps(task))
        lines = _Child(python_of(systems[0].needs or "") if foreign else Path(sys.executable), file).lines()
    for line in lines:
        system, view = by_name[line["system"]], line["view"]
        told: Row = {"system": system.name, "view": view, "leaves": system.leaves}
        if "failed" in line:
            yield Found(told, wrong=f"it failed: {line['failed']}")
            continue
        taken = [Taken(**one) for one in line["taken"]]
        count = streams.count(system, view)
        verdict = judge(view, streams.rows(view, count), system.left, _out(out, system, view) / str(len(taken) - 1))
        shutil.rmtree(_out(out, system, view))
        row: Row = {**told, "operations": count, "sums": verdict.sums or None}
        if not setting.quick:
            row |= pace(count, streams.short(count), *taken) | {"memory": line["megabytes"]}
        row["most"] = ", ".join(_most(taken[-1].profile)) or None
        yield Found(row, wrong=verdict.wrong, profile=taken[-1].profile)


def _asked(system: System, streams: _Streams, out: Path, quick: bool) -> dict[str, Any]:
    views = []
    for view in EVERY:
        count = streams.count(system, view)
        lengths = [count] if quick else [streams.short(count), streams.short(count), count]
        files = [str(streams.files(view, length, system.reads)) for length in lengths]
        views.append({"view": view, "streams": files, "out": str(_out(out, system, view))})
    return {"system": system.name, "module": system.module, "views": views}


def _out(out: Path, system: System, view: str) -> Path:
    return out / system.module / _file(view)


def pace(count: int, short: int, cold: Taken, tenth: Taken, long: Taken) -> Row:
    """What two runs tell: operations per second of those by which they differ, without and with the writing of
    base tables, and what is left over for a start."""

    def maintained(taken: Taken) -> float:
        return taken.seconds - (taken.base or 0.0) if taken.together else taken.seconds

    def altogether(taken: Taken) -> float:
        return taken.seconds if taken.together else taken.seconds + (taken.base or 0.0)

    def rate(seconds: float) -> int | None:
        return round((count - short) / seconds) if seconds > 0 else None

    found = rate(maintained(long) - maintained(tenth))
    return {
        "rate": found,
        "whole": None if long.base is None else rate(altogether(long) - altogether(tenth)),
        "start": None if found is None else round(max(maintained(tenth) - short / found, 0.0), 2),
        "first": round(cold.seconds, 2),
    }


def _most(profile: Mapping[str, float]) -> list[str]:
    """Where most of the time goes, in seconds."""
    found = sorted(profile.items(), key=lambda item: -item[1])[:4]
    return [f"{name} {seconds:.2f} s" for name, seconds in found]


class _Child:
    """A process that measures, what it prints, and the most memory it had since the last line."""

    def __init__(self, python: Path, task: Path) -> None:
        self._log = task.with_suffix(".log")
        environment = {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), "PATHWAY_THREADS": "2"}
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [python, "-m", "bench.others.child", str(task)],
                cwd=ROOT,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        wanted = json.loads(task.read_text())["systems"]
        self._waiting = [(one["system"], asked["view"]) for one in wanted for asked in one["views"]]
        self._limit = LIMIT * len(wanted)
        self._most = 0.0
        self._late = False
        self._over = threading.Event()

    def lines(self) -> Iterator[dict[str, Any]]:
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        assert self._process.stdout is not None
        try:
            for text in self._process.stdout:
                if text.startswith('{"system"'):
                    line = json.loads(text)
                    self._waiting.remove((line["system"], line["view"]))
                    yield {**line, "megabytes": round(self._most)}
                    self._most = 0.0
            code = self._process.wait()
        finally:
            self._over.set()
            self._end()
            watch.join()
        why = f"it took longer than {self._limit} s" if self._late else f"exit code {code}: {self._last_words()}"
        for system, view in self._waiting:
            yield {"system": system, "view": view, "failed": why}

    def _watch(self) -> None:
        from bench.processes import memory

        ends = time.monotonic() + self._limit
        while not self._over.wait(SAMPLE):
            self._most = max(self._most, memory(self._process.pid).own)
            if time.monotonic() > ends:
                self._late = True
                self._end()
                return

    def _end(self) -> None:
        """The process, and all that it has started and not ended."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"


# ------------------------------------------------------------------ what to say


def headline(rows: Sequence[Row]) -> str:
    """The best of ours beside the best of the others, view by view."""
    parts = []
    for view in EVERY[:4]:
        ours, theirs = _best(rows, view, True), _best(rows, view, False)
        if ours and theirs:
            parts.append(f"{view} {ours['rate'] / theirs['rate']:.1f} × {theirs['system']}")  # type: ignore[operator]
    return "our best beside the fastest of the others: " + ", ".join(parts) if parts else ""


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    for view in EVERY[:4]:
        found += _behind(rows, view)
    missing = sorted({f"{row['system']} ({row['said']})" for row in rows if row.get("said")})
    if missing:
        found.append(f"Not measured: {'; '.join(missing)}.")
    exact = [str(row["system"]) for row in rows if row["view"] == "q3, amounts" and row.get("sums") == "exact"]
    rounded = [
        f"{row['system']} ({row['sums']})"
        for row in rows
        if row["view"] == "q3, amounts" and str(row.get("sums") or "").startswith("rounded")
    ]
    if exact:
        said = f"Sums and means of amounts are exact in {', '.join(exact)}"
        found.append(said + (f"; within rounding in {', '.join(rounded)}." if rounded else "."))
    return found


def _behind(rows: Sequence[Row], view: str) -> list[str]:
    """Who is faster than the best of ours, and where ours spends its time."""
    ours = _best(rows, view, True)
    if ours is None:
        return []
    ahead = [
        f"{row['system']} {row['rate'] / ours['rate']:.1f} ×"  # type: ignore[operator]
        for row in rows
        if row["view"] == view and row["system"] not in OURS and (row.get("rate") or 0) > ours["rate"]  # type: ignore[operator]
    ]
    if not ahead:
        return []
    spark = next((row for row in rows if row["view"] == view and row["system"] == SPARK), None)
    where = f" Of an epoch on Spark: {spark['most']}." if spark and spark.get("most") else ""
    return [f"{view}: faster than our best ({ours['system']}) are {', '.join(ahead)}.{where}"]


def _best(rows: Sequence[Row], view: str, ours: bool) -> Row | None:
    found = [row for row in rows if row["view"] == view and (row["system"] in OURS) is ours and row.get("rate")]
    return max(found, key=lambda row: float(row["rate"] or 0), default=None)


EXPERIMENT = Experiment(
    name="others",
    title="Other systems on the same change stream",
    text="""
    The same operations (100,000 keys, 85 % puts and 15 % deletes; 10,000 groups, for the join two tables of 50,000
    keys and 50,000 join keys), written to files before, are taken in by each system in a process of its own, one
    after another. q1 is a selection, q2 count and sum, q3 count, sum, avg, min and max of a DOUBLE, q4 a join.
    Every system takes in a tenth of the stream to warm up, then the tenth again, then all of it, each time from
    nothing; *operations/s* is of the nine tenths by which the last two runs differ, so what a run takes to start is
    not in it, but told beside it. Where a system writes base tables as well, that is told apart too: in
    PostgreSQL by a run without triggers. *Memory* is the most that its processes had, without mapped files.

    Everview takes epochs of 250,000 operations on Spark with two view servers, and of 100,000 in process, on one core.
    Flink has parallelism 2, mini-batches of 10,000 rows for each task, state on the heap, no checkpoints;
    it reads Debezium's JSON and writes the view's changes to CSV with `TO_CHANGELOG`. Pathway
    has two threads, and gets puts and deletes by key from its Python connector with a commit every 10,000. DuckDB
    computes the view anew every 10,000 operations, on two threads, in memory. PostgreSQL takes 10,000 operations in a
    transaction and has triggers of statements; it does not wait for the disk (fsync is off), as Everview's default
    does not. Structured Streaming gets signed rows, 100,000 operations a batch, with RocksDB for state: min and max
    need a function in Python over all values of a group, and the join keeps every row there ever was.

    Views are compared with a recomputation exactly. *q3, amounts* sums amounts in cents from pennies to millions:
    there the sum that an order of adding could give is *rounded*, and what is further off has drifted and is wrong.
    """,
    measure=measure,
    columns={
        "view": "view",
        "system": "system",
        "operations": "operations",
        "rate": "operations/s",
        "whole": "with base tables written",
        "start": "start, s",
        "first": "first run of a tenth, s",
        "memory": "memory, MB",
        "sums": "sums of DOUBLE",
        "leaves": "what it leaves",
        "said": "",
    },
    plots=(
        Plot(
            "rate",
            "Operations per second by system and view",
            x="view",
            y="rate",
            by="system",
            kind="bars",
            log_y=True,
        ),
    ),
    headline=headline,
    notes=notes,
    limit=1500,
)
