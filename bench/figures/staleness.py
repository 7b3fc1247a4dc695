"""How long a write takes to be seen: by offered load, by view, and as paper 004 predicts it.

A writer in a process of its own writes at a fixed pace, and when a batch was seen is the time of the
first commit that has it.

Two things are measured:

- *by load*: from a few operations a second to more than the pipeline can take in. Beside what every batch waited
  stand the staleness of epochs as the store measures it, and as the equations of the paper predict it when an epoch
  begins (``everview.epochs``).
- *by view*: a change now and then, which meets a pipeline that has nothing else to do; on Spark, and in a process
  without it. Afterwards large epochs show what one operation costs a view server.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import everview
from bench.beside import await_shown
from bench.epochs import wrong
from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, row_of, seconds, times
from bench.workloads.filled import filled
from bench.workloads.paced import PacedWriter, Written
from bench.workloads.queries import QUERIES
from bench.workloads.synthetic import Stream, Writer
from everview.catalog import MAIN
from everview.store.embedded import EmbeddedStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = 100_000
KEEPS = 0.95
"""What a writer must come to of its pace, or the load is not the one that was meant."""
WAIT = "put to seen"
MEASURED = "staleness of epochs, measured"
PREDICTED = "staleness of epochs, predicted"
SPARK, LOCAL = "on Spark", "without Spark"
Seconds = npt.NDArray[np.float64]


def measure(setting: Setting) -> Iterator[Found]:
    from bench.report.sessions import session

    spark = session()
    yield from by_load(setting, spark)
    for name in setting.pick(tuple(QUERIES), ("q2",)):
        for how in (SPARK, LOCAL):
            yield by_view(setting, spark if how == SPARK else None, name)


# ------------------------------------------------------------------ by load


def by_load(setting: Setting, spark: SparkSession) -> Iterator[Found]:
    from everview.zones.pipeline import Pipeline

    rates = setting.pick((10, 100, 1_000, 10_000, 50_000, 100_000, 200_000, 400_000), (100, 5_000))
    path = setting.folder / "by-load"
    db, (stream,) = filled(path, "q2", setting.pick(KEYS, 10_000), setting.seed)
    with db, Pipeline(path, spark=spark) as pipeline:
        for _ in range(setting.pick(20, 3)):  # warm-up
            db.table("bt1").put({"k": 0, "c1": 0, "c2": 1, "c3": 1.0})
            pipeline.drain()
        for rate in rates:
            written = _written(setting, rate, path, stream)
            behind = db.store.views.committed(MAIN).frontier.operations_to(written.frontiers[-1])
            pipeline.drain()
            rows = _rows(db, written, rate, behind)
            mistaken = wrong(db, "q2")
            for row in rows:
                yield Found(row, wrong=mistaken)


def _written(setting: Setting, rate: float, path: Path, stream: Stream) -> Written:
    """What was written at a pace after the warm-up."""
    cold = setting.pick(2.0, 0.3)
    writer = PacedWriter(rate, path, stream)
    try:
        writer.begun()
        time.sleep(cold + setting.pick(7.0, 1.0))
        written = writer.finish()
    except BaseException:
        writer.kill()
        raise
    return written.after(float(written.times[0]) + cold)


def _rows(db: everview.Database, written: Written, rate: float, behind: int) -> list[Row]:
    assert isinstance(db.store, EmbeddedStore)
    began, stopped = float(written.times[0]), float(written.times[-1])
    commits = db.store.views.history(MAIN)
    inside = sorted((one for one in commits if began <= one.time <= stopped), key=lambda one: one.epoch)
    taken = sum(one.frontier.operations_to(other.frontier) for one, other in itertools.pairwise(inside))
    spent = inside[-1].time - inside[0].time if len(inside) > 1 else 0.0
    waits = written.waits(commits)
    epochs = db.sql(
        "SELECT operations, staleness, predicted_staleness FROM everview.epochs WHERE operations > 0 AND committed "
        ">= ? AND staleness IS NOT NULL AND predicted_staleness IS NOT NULL ORDER BY epoch",
        [datetime.fromtimestamp(began, UTC)],
    ).rows()
    sizes, measured, predicted = (np.array(column, np.float64) for column in zip(*epochs, strict=True))
    row: Row = {
        "view": "q2",
        "maintained": SPARK,
        "offered": rate,
        "written": round(written.rate),
        "taken in": round(taken / spent) if spent else None,
        "per epoch": round(float(np.median(sizes))),
        "left": behind,
        "follows": _follows(waits) and written.rate > KEEPS * rate,
        "off": round(100 * float(np.median(np.abs(predicted - measured) / measured))),
    }
    ((at_most,),) = db.sql("SELECT max_throughput FROM everview.groups WHERE group_name = ?", [MAIN]).rows()
    row["at most"] = None if at_most is None else round(at_most)
    same = {name: row[name] for name in ("view", "maintained", "offered")}
    return [
        {**row, "time": WAIT, **_percentiles(waits)},
        {**same, "time": MEASURED, **_percentiles(measured)},
        {**same, "time": PREDICTED, **_percentiles(predicted)},
    ]


def _follows(waits: Seconds) -> bool:
    """Whether the pipeline follows the writer: what is written late does not wait longer than what is written
    early, but for what one epoch more or less makes."""
    quarter = max(1, len(waits) // 4)
    early, late = float(np.median(waits[:quarter])), float(np.median(waits[-quarter:]))
    return late < 1.5 * early + 0.25


def _percentiles(values: Seconds) -> Row:
    return {name: round(float(np.percentile(values, at)), 4) for name, at in (("median", 50), ("p95", 95), ("p99", 99))}


# ------------------------------------------------------------------ by view


def by_view(setting: Setting, spark: SparkSession | None, name: str) -> Found:
    """A change now and then, and then some large epochs."""
    how = LOCAL if spark is None else SPARK
    path = setting.folder / f"{name}-{'local' if spark is None else 'spark'}"
    db, streams = filled(path, name, setting.pick(KEYS, 5_000), setting.seed)
    rng = random.Random(setting.seed)
    with db, db.maintain(spark=False if spark is None else spark):
        begun, frontiers = [], []
        for turn in range(setting.pick(25, 4)):
            time.sleep(rng.random() / 10)
            begun.append(time.time())
            key, group = rng.randrange(streams[0].keys), rng.randrange(streams[0].groups)
            db.table("bt1").put({"k": key, "c1": group, "c2": turn, "c3": float(turn)})
            frontiers.append(db.store.log.latest())
            await_shown(db, frontiers[-1])
        single = Written(np.array(begun), np.ones(len(begun), np.int64), tuple(frontiers))
        warm = single.after(begun[setting.pick(5, 1)])
        assert isinstance(db.store, EmbeddedStore)
        waits = warm.waits(db.store.views.history(MAIN))
        size = setting.pick(100_000, 5_000)
        writer = Writer(db, streams, size)
        for _ in range(setting.pick(4, 2)):
            writer.write(size)
            await_shown(db)
        ((latency,),) = db.sql("SELECT latency FROM everview.groups WHERE group_name = ?", [MAIN]).rows()
        row: Row = {"view": name, "maintained": how, "time": WAIT, **_percentiles(waits)}
        row["latency"] = None if not latency else round(1e6 * latency, 2)
        return Found(row, wrong=wrong(db, name))


# ------------------------------------------------------------------ what to say


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    said = []
    for sentence in (_update_latency, _most, _predicted, _more_than_most):
        with suppress(Missing):
            said.append(sentence(rows))
    return said


def _loads(rows: Sequence[Row], what: str = WAIT) -> list[Row]:
    found = [row for row in rows if row.get("offered") is not None and row["time"] == what]
    if not found:
        raise Missing("no load was measured")
    return found


def _update_latency(rows: Sequence[Row]) -> Comparison:
    alone = [row for row in rows if row.get("offered") is None]
    spark = [row for row in alone if row["maintained"] == SPARK]
    local = [row for row in alone if row["maintained"] == LOCAL]
    if not spark or not local:
        raise Missing("no view was measured alone")

    def each(found: Sequence[Row], column: str, unit: float) -> str:
        return ", ".join(f"{row['view']} {seconds(unit * number(row, column))}" for row in found)

    return Comparison(
        "004, Figure 15",
        "an operation takes 0.85 ms from the log to the view for q1, 0.8 to 1.5 ms for q2 and 2.5 to 3.5 ms for q3 "
        "and q4, queues aside",
        f"a single change is seen after (median) {each(spark, 'median', 1)} on Spark, and after "
        f"{each(local, 'median', 1)} in a process without it. In large epochs one operation takes one view server "
        f"{each(spark, 'latency', 1e-6)}",
        "they handle each operation by itself; an epoch on Spark plans and starts two or three small stages and "
        "commits, whether it has one operation or a hundred thousand. What we lose in the time of one we gain in the "
        "price of each",
    )


def _most(rows: Sequence[Row]) -> Comparison:
    loads = [row for row in _loads(rows) if row.get("at most") is not None and row.get("taken in") is not None]
    if not loads:
        raise Missing("no throughput is known")
    last = max(loads, key=lambda row: number(row, "taken in"))
    return Comparison(
        "004, equation 1",
        "max throughput = view servers / latency: 50 servers and 1.2 ms give 41,666 operations/s",
        f"two view servers and the latency fitted to the last epochs give {number(last, 'at most'):,.0f} "
        f"operations/s; the most that was taken in beside the writer is {number(last, 'taken in'):,.0f}",
        "the equation holds for a line through the times of epochs; the rest that every epoch costs is left out of "
        "it, and weighs the less the larger epochs are",
    )


def _predicted(rows: Sequence[Row]) -> Comparison:
    loads, measured, predicted = (_loads(rows, what) for what in (WAIT, MEASURED, PREDICTED))
    pairs = "; ".join(
        f"{number(one, 'offered'):,.0f}/s: {seconds(number(two, 'median'))} predicted, "
        f"{seconds(number(one, 'median'))} measured"
        for one, two in zip(measured, predicted, strict=True)
    )
    errors = [number(row, "off") for row in loads]
    return Comparison(
        "004, equation 2",
        "staleness = queue size / view servers · latency: 100,000 queued operations on 25 servers are seen after 5 "
        "s, on 200 within 1 s",
        f"{pairs}. Half of the epochs of a load are off by at most {min(errors):.0f} to {max(errors):.0f} %",
        "the same equation, with the rest that an epoch costs added: at small loads that is nearly all of it, so "
        "that staleness does not fall to zero with the queue",
    )


def _more_than_most(rows: Sequence[Row]) -> Comparison:
    loads = _loads(rows)
    followed = [row for row in loads if row["follows"]]
    if not followed:
        raise Missing("no load was followed")
    fast, first = followed[-1], loads[0]
    over = [row for row in loads if not row["follows"]]
    beyond = "; no load was too much"
    if over:
        wait, offered, written = (number(over[0], name) for name in ("median", "offered", "written"))
        what = "the queue grows" if written > KEEPS * offered else f"the writer itself comes to {written:,.0f}"
        beyond = f"; at {offered:,.0f} {what}, and the median wait is {seconds(wait)} after some seconds"
    return Comparison(
        "004, section 6 (staleness under load), and 003, section 5.2 (lag)",
        "above the max throughput operations queue up and views become stale, and the system goes on",
        f"up to {number(fast, 'offered'):,.0f} operations/s views follow: half of the operations are seen within "
        f"{seconds(number(first, 'median'))} at {number(first, 'offered'):,.0f}/s and "
        f"{seconds(number(fast, 'median'))} there, 99 of 100 within {seconds(number(fast, 'p99'))}{beyond}",
        "epochs become larger with the load, and a large one costs less for each operation, so staleness grows "
        "slowly up to where two cores, which the writer shares, have no time left",
    )


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    with suppress(Missing):
        spark = row_of(rows, view="q2", maintained=SPARK, offered=None)
        local = row_of(rows, view="q2", maintained=LOCAL, offered=None)
        ratio = number(spark, "median") / number(local, "median")
        found.append(
            f"Where we are behind: a single change is seen {times(number(spark, 'median') / 0.0015)} later on Spark "
            f"than the paper's 1.5 ms for q2. In a process without Spark it is {times(ratio)} faster than on Spark; "
            "a reader who cannot wait asks for a fresh read or a session, which does not wait for an epoch."
        )
    return found


def headline(rows: Sequence[Row]) -> str:
    try:
        followed = [row for row in _loads(rows) if row["follows"]]
        first, last = followed[0], followed[-1]
        return (
            f"from put to seen {seconds(number(first, 'median'))} (median) at {number(first, 'offered'):,.0f} "
            f"operations/s, {seconds(number(last, 'median'))} at {number(last, 'offered'):,.0f}"
        )
    except (Missing, IndexError):
        return ""


EXPERIMENT = Experiment(
    name="staleness",
    title="How long a write takes to be seen",
    text=(
        "By load: a writer in a process of its own updates random rows (100,000 keys, 10,000 groups) at a fixed "
        "pace, and a pipeline on Spark with two view servers maintains q2 (count and sum by group) on the same two "
        "cores. Nine seconds for each load, the first two left out. From put to seen is from the beginning of the "
        "call to the first commit whose frontier has it, batch by batch; the staleness of epochs is what the store "
        "itself measures (the age of the oldest operation when its epoch was committed), and predicts when the epoch "
        "begins. Left are operations that were not yet seen when the writer stopped; a load is followed if the "
        "writer keeps its pace and late writes do not wait longer than early ones. By view: single changes, each "
        "after the last one was seen and a random pause, twenty after five that do not count; latency is the time "
        "that one operation takes one view server, fitted over these and four epochs of 100,000."
    ),
    measure=measure,
    columns={
        "view": "view",
        "maintained": "maintained",
        "offered": "offered, operations/s",
        "time": "what",
        "median": "median, s",
        "p95": "95 in 100 within, s",
        "p99": "99 in 100 within, s",
        "written": "written, operations/s",
        "taken in": "taken in, operations/s",
        "per epoch": "operations of an epoch, median",
        "left": "left",
        "follows": "followed",
        "off": "prediction off by, %, median",
        "at most": "at most (equation 1), operations/s",
        "latency": "latency, µs",
    },
    plots=(
        Plot(
            "load",
            "Seconds until a write is seen, median, by offered load",
            x="offered",
            y="median",
            by="time",
            log_x=True,
            log_y=True,
            where=lambda row: row.get("offered") is not None,
        ),
        Plot(
            "tail",
            "Seconds within which 99 in 100 are seen, by offered load",
            x="offered",
            y="p99",
            by="time",
            log_x=True,
            log_y=True,
            where=lambda row: row.get("offered") is not None,
        ),
        Plot(
            "views",
            "Seconds until a single change is seen, median",
            x="view",
            y="median",
            by="maintained",
            kind="bars",
            log_y=True,
            where=lambda row: row.get("offered") is None,
        ),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
