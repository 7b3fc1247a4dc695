"""View servers and the driver are killed while a client writes: what stops, for how long, and that nothing
is lost.

Nothing is lost if the views equal their recomputation, and nothing was taken in twice if the operations of all
epochs add up to the writes that were acknowledged.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from statistics import median

import numpy as np

import everview
from bench.beside import await_event, await_shown
from bench.epochs import wrong
from bench.kills import Scene, Struck, killed, view_servers
from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, numbers, row_of, seconds
from bench.workloads.paced import PacedWriter, Written
from everview.catalog import MAIN
from everview.cli.demo.children import Child
from everview.errors import EverviewError
from everview.store.contract import Commit
from everview.store.embedded import EmbeddedStore

KEYS = 100_000
READY, ON_SPARK = "ready", "spark"
"""Events of a service: it stands by; it does large epochs on Spark."""
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java machines that live for seconds are not worth compiling for."""
ONE_WORKER, ALL_WORKERS = "a view server is killed", "all view servers are killed"
READYING = "another one starts Spark, to stand by"
DRIVER, STANDBY = "the driver is killed, and started again", "the driver is killed, and another one stands by"
REPEATED = "the driver is killed again and again"
NOTHING = "nothing is killed"
WRITTEN, SHOWN = "written", "shown"


def measure(setting: Setting) -> Iterator[Found]:
    rate = setting.pick(50_000, 2_000)
    apart = setting.pick(12.0, 1.5)
    with ExitStack() as held:
        scene = Scene(setting.folder, held, setting.pick(KEYS, 5_000), setting.seed, setting.pick("", SHORT_LIVED))
        db = scene.db
        before = _taken_in(db)
        driver, log = scene.service(in_driver=0)
        await_event(driver, log, ON_SPARK)
        writer = PacedWriter(rate, scene.path, scene.stream)
        held.callback(writer.kill)
        writer.begun()
        for _ in range(setting.pick(10, 3)):  # warm-up
            await_shown(db)
        scene.begin(NOTHING)
        scene.watch_for(apart)
        scene.strike(ONE_WORKER, lambda: killed(view_servers(driver)[:1]))
        scene.watch_for(apart)
        scene.strike(ALL_WORKERS, lambda: killed(view_servers(driver)))
        scene.watch_for(apart)
        scene.strike(DRIVER, lambda: killed([driver.id]))
        following, log = scene.service()
        _caught_up(scene, following, setting.pick(15.0, 0.0))
        if not setting.quick:
            scene.watch_until(ON_SPARK, following, log)
            scene.begin(READYING)
            standby, log = scene.service()
            scene.watch_until(READY, standby, log)
            scene.watch_for(5.0)
            scene.strike(STANDBY, lambda: killed([following.id]))
            following = standby
            _caught_up(scene, following, 15.0)
        series = _again_and_again(scene, following, setting.pick(24, 3), setting.pick(5.0, 1.5))
        written = writer.finish()
        await_shown(db)
        mistaken = wrong(db, "q2")
        taken, given = _taken_in(db) - before, int(written.operations.sum())
        if not mistaken and taken != given:
            mistaken = f"{given:,} operations were written, and {taken:,} taken in"
        assert isinstance(db.store, EmbeddedStore)
        commits = scene.commits()
        overhead = _overhead(db)
    of_kills = _kills(series, commits)
    for row in _events(scene.struck, written, commits, of_kills):
        yield Found({**row, "operations": given, **overhead}, wrong=mistaken)
    for row in (*of_kills, *_series(scene.struck, written, commits)):
        yield Found(row, wrong=mistaken)


def _again_and_again(scene: Scene, driver: Child, kills: int, apart: float) -> list[float]:
    """Kill one driver after another, so many seconds apart whatever has been committed meanwhile; when each was
    killed."""
    moments: list[float] = []
    following = time.monotonic()
    scene.begin(REPEATED)
    while len(moments) < kills:
        scene.watch_to(following)
        killed([driver.id])
        moments.append(time.time())
        following += apart
        driver, _ = scene.service()
    _caught_up(scene, driver, apart)
    return moments


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


def _events(
    struck: Sequence[Struck], written: Written, commits: Sequence[Commit], of_kills: Sequence[Row] = ()
) -> list[Row]:
    """An operation belongs to the last thing that was killed before it was seen. ``of_kills`` are the rows of kills in
    a row, of which the slowest counts."""
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
            late = mine & (waits > 1.5 * usual)
            row["in epoch"] = one.unfinished
            row["still"] = _first_after(commits, one.at)
            row["caught up"] = round(float(seen[late].max()) - one.at, 2) if late.any() else 0.0
        if one.what == REPEATED:
            row["in epoch"] = None
            row["still"] = max(numbers(of_kills, "until a commit"))
        rows.append(row)
    return rows


def _first_after(commits: Sequence[Commit], moment: float) -> float:
    """Seconds from a moment to the next commit."""
    return round(next(commit.time for commit in commits if commit.time > moment) - moment, 2)


def _kills(moments: Sequence[float], commits: Sequence[Commit]) -> list[Row]:
    """Of each of some kills in a row, when the next commit came, and how far the view moved before the next kill."""
    rows: list[Row] = []
    for kill, (at, until) in enumerate(itertools.zip_longest(moments, moments[1:]), 1):
        row: Row = {"kill": kill, "until a commit": _first_after(commits, at)}
        if until is not None:
            before, after = (max(one.frontier for one in commits if one.time <= moment) for moment in (at, until))
            row["moved on"] = before.operations_to(after)
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
    compared = []
    for sentence in (_crash, _signatures):
        with suppress(Missing):
            compared.append(sentence(rows))
    return compared


def _crash(rows: Sequence[Row]) -> Comparison:
    calm, one, every, driver = (row_of(rows, event=event) for event in (NOTHING, ONE_WORKER, ALL_WORKERS, DRIVER))
    return Comparison(
        "003, Figure 14",
        "one view manager that crashes makes maintenance slower: its log is replayed, and the others take its load; "
        "further ones of other region servers hardly matter, and the more managers there are the less one matters",
        f"operations wait {seconds(number(calm, 'longest'))} at most while nothing is killed, "
        f"{seconds(number(one, 'longest'))} when a view server is, {seconds(number(every, 'longest'))} when all are, "
        f"and {seconds(number(driver, 'longest'))} when the driver is; "
        f"caught up with the writer {_after(every)} and {_after(driver)}. All {number(calm, 'operations'):,.0f} "
        "operations were taken in once, and the view equals its recomputation",
        "a view server keeps nothing: its task is tried again by a process that Spark forks, and what the dead one "
        "wrote is written again. There is no log to replay, and it does not matter how many die. A driver keeps "
        "nothing either: the next one maintains the view in its own process at once, while Java and Spark start beside",
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
        found.append(_moved_on(rows))
    with suppress(Missing):
        driver, standby = (row_of(rows, event=event) for event in (DRIVER, STANDBY))
        found.append(
            f"Where we lose: without a driver views stand still for {seconds(number(driver, 'still'))}, in which a "
            "Python process starts and opens the store; Spark starts after that, and takes a core from the writer "
            f"and the views while it does. With a driver that stands by it is {seconds(number(standby, 'still'))}: it "
            "has started before its turn comes. The paper's coordinator does not fail in its experiment."
        )
    return found


def _moved_on(rows: Sequence[Row]) -> str:
    """What happened between kills in a row."""
    kills = [row for row in rows if row.get("kill") is not None]
    moved, still = numbers(kills, "moved on"), numbers(kills, "until a commit")
    went_on = sum(map(bool, moved))
    found = (
        f"The view moved on, by {min(moved):,.0f} to {max(moved):,.0f} operations, in {went_on} of the {len(moved)} "
        f"times from a kill of the driver to the next one. The first commit came {seconds(min(still))} to "
        f"{seconds(max(still))} after a kill, {seconds(median(still))} in the median."
    )
    return found if went_on == len(moved) else f"Where we lose: not every driver lived long enough. {found}"


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
        "(count and sum by group) on the same two cores. The first service does all epochs on Spark, so that it needs "
        "its view servers; the later ones choose where each epoch is done. In the middle of epochs, one Python worker "
        "(a view server) is killed with SIGKILL, then all of them, then the driver, which is started again at once: "
        "it maintains the view in its own process from the first moment, and Spark starts beside that. When Spark has "
        "started, another service is started, to stand by, and when that is ready the driver is killed once more. In "
        "the end the driver is killed every 5 s for two minutes, and started again each time, whatever it has come to. "
        "Stood still is from the kill to the next commit (of kills in a row, the longest); caught up is when the last "
        "operation was shown that had waited half as long again as 99 in 100 do while nothing is killed; the longest "
        "wait is from the put to the commit. A reader reads the view a hundred times a second meanwhile. In the end "
        "the view is recomputed, and the operations of all epochs are counted: both must be what was written."
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
        "kill": "kill",
        "until a commit": "until a commit, s",
        "moved on": "operations shown before the next kill",
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
        Plot(
            "kills",
            "The driver is killed every 5 s: from each kill to the next commit, in s",
            x="kill",
            y="until a commit",
            kind="bars",
            where=lambda row: row.get("kill") is not None,
        ),
        Plot(
            "progress",
            "The driver is killed every 5 s: operations shown from each kill to the next one",
            x="kill",
            y="moved on",
            kind="bars",
            where=lambda row: row.get("kill") is not None,
        ),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
    listed=lambda row: row.get("event") is not None,
)
