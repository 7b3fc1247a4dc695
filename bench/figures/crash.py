"""View servers and the driver are killed while a client writes: what stops, for how long, and that nothing
is lost.

A service on Spark, a writer and a reader are processes that know nothing of each other, SIGKILL comes in
the middle of an epoch, and afterwards the commits show second by second what readers saw.

Nothing is lost if the views equal their recomputation, and nothing was taken in twice if the operations of all
epochs add up to the writes that were acknowledged.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import everview
from bench.beside import await_shown, await_started, service
from bench.epochs import wrong
from bench.processes import family
from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, numbers, row_of, seconds
from bench.workloads.filled import filled
from bench.workloads.paced import PacedWriter, Written
from everview.catalog import MAIN
from everview.cli.demo.children import Child
from everview.errors import EverviewError
from everview.store.contract import Commit
from everview.store.embedded import EmbeddedStore

KEYS = 100_000
DAEMON = b"everview.zones.daemon"
READY = b'"event": "ready"'
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java machines that live for seconds are not worth compiling for."""
LOOK = 0.01
"""Seconds between two reads."""
ONE_WORKER, ALL_WORKERS = "a view server is killed", "all view servers are killed"
READYING = "another one starts Spark, to stand by"
DRIVER, STANDBY = "the driver is killed, and started again", "the driver is killed, and another one stands by"
NOTHING = "nothing is killed"
WRITTEN, SHOWN = "written", "shown"


@dataclass
class Struck:
    """Something was killed."""

    what: str
    at: float
    unfinished: bool
    """Whether an epoch was under way."""
    slowest: float = 0.0
    """Seconds of the slowest read from then on."""
    reads: int = 0


class Scene:
    """A store, its maintainer, and a reader."""

    def __init__(self, folder: Path, held: ExitStack, keys: int, seed: int, java: str) -> None:
        self.path = folder / "store"
        self.db, (self.stream,) = filled(self.path, "q2", keys, seed)
        held.enter_context(self.db)
        self._held = held
        self._java = java
        self._view = self.db.view("q2")
        self._logs = 0
        self.struck: list[Struck] = []

    def service(self) -> tuple[Child, Path]:
        """Another one that maintains the store, or waits for its turn."""
        self._logs += 1
        log = self.path.with_name(f"service-{self._logs}.log")
        child = service(self.path, log, java=self._java)
        self._held.callback(child.kill)
        return child, log

    def strike(self, what: str, kill: Callable[[], object]) -> None:
        """Kill in the middle of an epoch; where none begins within a second, between two."""
        ends = time.monotonic() + 1.0
        while self.db.store.views.begun(MAIN) is None and time.monotonic() < ends:
            time.sleep(0.0005)
        self.struck.append(Struck(what, time.time(), self.db.store.views.begun(MAIN) is not None))
        kill()

    def watch(self, until: Callable[[], bool]) -> None:
        """Read now and then, as a client would."""
        while not until():
            begun = time.perf_counter()
            self._view.get(self.struck[-1].reads % self.stream.groups)
            self.struck[-1].slowest = max(self.struck[-1].slowest, time.perf_counter() - begun)
            self.struck[-1].reads += 1
            time.sleep(LOOK)

    def watch_for(self, seconds: float) -> None:
        """For so long, and until two epochs more are committed: a busy machine may take longer."""
        ends, wanted = time.monotonic() + seconds, self.db.store.views.committed(MAIN).epoch + 2
        self.watch(lambda: time.monotonic() > ends and self.db.store.views.committed(MAIN).epoch >= wanted)


def view_servers(driver: Child) -> list[int]:
    """The Python workers of a driver: forks of the daemon that Spark starts, which look as it does."""
    lines: dict[int, bytes] = {}
    parents: dict[int, int] = {}
    for process in family(driver.id):
        with suppress(OSError):
            lines[process] = Path(f"/proc/{process}/cmdline").read_bytes()
            parents[process] = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return [one for one, line in lines.items() if DAEMON in line and lines.get(parents[one]) == line]


def killed(processes: Sequence[int]) -> None:
    if not processes:
        raise EverviewError("there is no view server to kill", hint="the pipeline has none before its first epoch")
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def measure(setting: Setting) -> Iterator[Found]:
    rate = setting.pick(50_000, 2_000)
    apart = setting.pick(12.0, 1.5)
    with ExitStack() as held:
        scene = Scene(setting.folder, held, setting.pick(KEYS, 5_000), setting.seed, setting.pick("", SHORT_LIVED))
        db = scene.db
        before = _taken_in(db)
        driver, log = scene.service()
        await_started(driver, log)
        writer = PacedWriter(rate, scene.path, scene.stream)
        held.callback(writer.kill)
        writer.begun()
        for _ in range(setting.pick(10, 3)):  # warm-up
            await_shown(db)
        scene.struck.append(Struck(NOTHING, time.time(), False))
        scene.watch_for(apart)
        scene.strike(ONE_WORKER, lambda: killed(view_servers(driver)[:1]))
        scene.watch_for(apart)
        scene.strike(ALL_WORKERS, lambda: killed(view_servers(driver)))
        scene.watch_for(apart)
        scene.strike(DRIVER, lambda: os.kill(driver.id, signal.SIGKILL))
        following, _ = scene.service()
        _caught_up(scene, following, setting.pick(15.0, 0.0))
        if not setting.quick:
            scene.struck.append(Struck(READYING, time.time(), db.store.views.begun(MAIN) is not None))
            standby, log = scene.service()
            scene.watch(lambda: READY in log.read_bytes())
            scene.watch_for(5.0)
            scene.strike(STANDBY, lambda: os.kill(following.id, signal.SIGKILL))
            _caught_up(scene, standby, 15.0)
        written = writer.finish()
        await_shown(db)
        mistaken = wrong(db, "q2")
        taken, given = _taken_in(db) - before, int(written.operations.sum())
        if not mistaken and taken != given:
            mistaken = f"{given:,} operations were written, and {taken:,} taken in"
        assert isinstance(db.store, EmbeddedStore)
        commits = sorted(db.store.views.history(MAIN), key=lambda commit: commit.epoch)
        overhead = _overhead(db)
    for row in _events(scene.struck, written, commits):
        yield Found({**row, "operations": given, **overhead}, wrong=mistaken)
    for row in _series(scene.struck, written, commits):
        yield Found(row, wrong=mistaken)


def _caught_up(scene: Scene, child: Child, at_least: float) -> None:
    """Watch until all is shown that had been written when the next one began to maintain."""
    ends = time.monotonic() + at_least
    before = scene.db.store.views.committed(MAIN).epoch

    def resumed() -> bool:
        child.check()
        return scene.db.store.views.committed(MAIN).epoch > before

    scene.watch(resumed)
    wanted = scene.db.store.log.latest()
    scene.watch(lambda: wanted <= scene.db.store.views.committed(MAIN).frontier and time.monotonic() > ends)


def _taken_in(db: everview.Database) -> int:
    """Operations of all epochs so far."""
    ((operations,),) = db.sql("SELECT operations FROM everview.groups WHERE group_name = ?", [MAIN]).rows()
    return int(operations)


def _overhead(db: everview.Database) -> Row:
    """What an epoch and its commit take, of those since the last start."""
    found = db.sql(
        "SELECT median(seconds), median(last_commit_seconds) FROM everview.epochs WHERE last_commit_seconds IS NOT "
        "NULL AND group_name = ?",
        [MAIN],
    ).rows()
    ((epoch, commit),) = found
    return {} if epoch is None else {"epoch": round(1000 * epoch, 1), "commit": round(1000 * commit, 1)}


def _events(struck: Sequence[Struck], written: Written, commits: Sequence[Commit]) -> list[Row]:
    """An operation belongs to the last thing that was killed before it was seen."""
    waits = written.waits(commits)
    seen = written.times[: len(waits)] + waits
    edges = [*(one.at for one in struck), float("inf")]
    within = [(seen > low) & (seen <= high) for low, high in itertools.pairwise(edges)]
    if not within[0].any():
        raise EverviewError("no epoch was committed before the first kill", hint="is the machine busy otherwise?")
    usual = float(np.percentile(waits[within[0]], 99))
    rows: list[Row] = []
    for one, mine in zip(struck, within, strict=True):
        row: Row = {
            "event": one.what,
            "at": round(one.at - struck[0].at, 1),
            "longest": round(float(waits[mine].max()), 2) if mine.any() else None,
            "slowest read": round(1000 * one.slowest, 1),
            "reads": one.reads,
        }
        if one.what != NOTHING:
            resumed = next(commit.time for commit in commits if commit.time > one.at)
            late = mine & (waits > 1.5 * usual)
            row["in epoch"] = one.unfinished
            row["still"] = round(resumed - one.at, 2)
            row["caught up"] = round(float(seen[late].max()) - one.at, 2) if late.any() else 0.0
        rows.append(row)
    return rows


def _series(struck: Sequence[Struck], written: Written, commits: Sequence[Commit]) -> list[Row]:
    """Operations of each second, from the moment at which the watching began."""
    start, end = struck[0].at, float(written.times[-1])
    edges = np.arange(start, end, 1.0)
    inside = [commit for commit in commits if commit.time > start - 5.0]
    shown = [one.frontier.operations_to(two.frontier) for one, two in itertools.pairwise(inside)]
    moments = [commit.time for commit in inside[1:]]
    rows: list[Row] = []
    for name, when, what in ((WRITTEN, written.times, written.operations), (SHOWN, moments, shown)):
        counted, _ = np.histogram(when, edges, weights=what)
        rows += [{"second": at, "series": name, "operations/s": int(count)} for at, count in enumerate(counted)]
    return rows


# ------------------------------------------------------------------ what to say


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    said = []
    for sentence in (_crash, _signatures):
        with suppress(Missing):
            said.append(sentence(rows))
    return said


def _crash(rows: Sequence[Row]) -> Comparison:
    calm, one, every, driver = (row_of(rows, event=event) for event in (NOTHING, ONE_WORKER, ALL_WORKERS, DRIVER))
    return Comparison(
        "003, Figure 14",
        "one view manager that crashes makes maintenance slower: its log is replayed, and the others take its load; "
        "further ones of other region servers hardly matter, and the more managers there are the less one matters",
        f"operations wait {seconds(number(calm, 'longest'))} at most while nothing is killed, "
        f"{seconds(number(one, 'longest'))} when a view server is, {seconds(number(every, 'longest'))} when all are, "
        f"and {seconds(number(driver, 'longest'))} when the driver is, which has to start Java and Spark again; "
        f"caught up with the writer {_after(every)} and {_after(driver)}. All {number(calm, 'operations'):,.0f} "
        "operations were taken in once, and the view equals its recomputation",
        "a view server keeps nothing: its task is tried again by a process that Spark forks, and what the dead one "
        "wrote is written again. There is no log to replay, and it does not matter how many die",
    )


def _after(row: Row) -> str:
    late = number(row, "caught up")
    return f"after {seconds(late)}" if late else "at once"


def _signatures(rows: Sequence[Row]) -> Comparison:
    row = row_of(rows, event=NOTHING)
    share = 100 * number(row, "commit") / number(row, "epoch")
    return Comparison(
        "002, Figures 5 and 6",
        "update signatures, which keep updates from being applied twice after a failure, cost about 9 % of the "
        "throughput",
        f"of an epoch of {number(row, 'epoch'):.0f} ms, committing and tidying take {number(row, 'commit'):.1f} ms "
        f"({share:.1f} %)",
        "a signature for each record and update there, a number for each epoch here: what is written carries the "
        "epoch, and one commit makes all of it count",
    )


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    events = [row for row in rows if row.get("event") is not None and row["event"] != NOTHING]
    with suppress(Missing):
        slowest, reads = max(numbers(events, "slowest read")), sum(numbers(events, "reads"))
        found.append(
            f"Readers go on: {reads:,.0f} reads of the view were made after the kills, none failed, and the slowest "
            f"took {slowest:,.1f} ms."
        )
    with suppress(Missing):
        driver, standby = (row_of(rows, event=event) for event in (DRIVER, STANDBY))
        found.append(
            f"Where we lose: without a driver views stand still for {seconds(number(driver, 'still'))}, nearly all "
            f"of it Java and Spark starting beside the writer. With one that stands by it is "
            f"{seconds(number(standby, 'still'))}: it has Spark running before its turn comes. The paper's coordinator "
            "does not fail in its experiment."
        )
    return found


def headline(rows: Sequence[Row]) -> str:
    try:
        every, driver = (row_of(rows, event=event) for event in (ALL_WORKERS, DRIVER))
        return (
            f"with all view servers killed views stand still for {seconds(number(every, 'still'))}, with the driver "
            f"killed for {seconds(number(driver, 'still'))}; nothing is lost or taken in twice"
        )
    except Missing:
        return ""


EXPERIMENT = Experiment(
    name="crash",
    title="Killing view servers and the driver",
    text=(
        "A writer updates random rows of 100,000 at 50,000 operations/s, and a service on Spark maintains a view "
        "(count and sum by group) on the same two cores. In the middle of epochs, one Python worker (a view server) "
        "is killed with SIGKILL, then all of them, then the driver, which is started again at once. Another service is "
        "started then, to stand by, and when it is ready the driver is killed once more. Stood still is from the kill "
        "to the next commit; caught up is when the last operation was shown that had waited half as long again as 99 "
        "in 100 do while nothing is killed; the longest wait is from the put to the commit. A reader reads the view a "
        "hundred times a second meanwhile. In the end the view is recomputed, and the operations of all epochs are "
        "counted: both must be what was written."
    ),
    measure=measure,
    columns={
        "event": "what happens",
        "at": "at, s",
        "in epoch": "in an epoch",
        "still": "stood still, s",
        "caught up": "caught up after, s",
        "longest": "longest wait, s",
        "slowest read": "slowest read, ms",
        "reads": "reads",
        "second": "second",
        "series": "operations",
        "operations/s": "operations/s",
    },
    plots=(
        Plot(
            "series",
            "Operations per second, written and shown",
            x="second",
            y="operations/s",
            by="series",
            where=lambda row: row.get("second") is not None,
        ),
        Plot(
            "waits",
            "Longest wait from put to seen, in s",
            x="event",
            y="longest",
            kind="bars",
            log_y=True,
            where=lambda row: row.get("event") is not None,
        ),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
    listed=lambda row: row.get("event") is not None,
)
