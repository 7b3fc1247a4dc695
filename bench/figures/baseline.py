"""Ways to an answer: scan the table in the client, scan it on Spark, read a view that is kept.

The same questions are asked of tables that grow, by every method in the same run, and what
keeping the view costs for each operation stands beside what reading it saves.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.workloads.synthetic import RIGHT, Stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    import everview

T = TypeVar("T")

LOAD = 1_000_000
"""Rows that are put at a time."""
IN_GROUP = 100
"""Rows of a group."""
RANGE = 100
"""Groups of a range."""
REGIONS = 100
CHANGES = 2_000
EPOCHS = 9
"""Of so many changes, in which keeping the views is timed."""
READS = 300
"""Of a view; scans are made three times, the long ones once."""

FOR_QUERIES = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.shuffle.partitions": "2",
}
"""What Spark needs for large queries, and what is switched off for epochs."""

COUNTS = "SELECT c1, count(*) AS n, sum(c2) AS s FROM bt1 GROUP BY c1"
REGIONAL = "SELECT c4, count(*) AS n, sum(c2) AS s FROM bt1 JOIN bt2 ON bt1.c1 = bt2.k GROUP BY c4"

Answer = list[tuple[int, int, int]]
"""Groups or regions with their count and sum, in order."""
Sums = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Question:
    """What is asked, and where the rows of the answer are in ``sql``."""

    name: str
    sql: str
    """Over base tables, with the first and the last group."""


QUESTIONS = (
    Question("one group", f"SELECT * FROM ({COUNTS}) WHERE c1 BETWEEN {{low}} AND {{high}}"),
    Question("a range of groups", f"SELECT * FROM ({COUNTS}) WHERE c1 BETWEEN {{low}} AND {{high}} ORDER BY c1"),
    Question("a join", f"{REGIONAL} ORDER BY c4"),
)
ONE, SOME, JOIN = (question.name for question in QUESTIONS)
WIDTH = {ONE: 1, SOME: RANGE, JOIN: 1}
CLIENT, SQL, SPARK, VIEW = "client scan", "SQL scan", "Spark scan", "view"


def measure(setting: Setting) -> Iterator[Found]:
    for rows in setting.pick((10_000, 100_000, 1_000_000, 10_000_000), (10_000,)):
        yield from _measured(rows, setting)


def _measured(rows: int, setting: Setting) -> Iterator[Found]:
    import everview
    from bench.report.sessions import session

    path = setting.folder / f"rows{rows}"  # Spark's workers keep stores open: each has a place of its own
    groups = max(rows // IN_GROUP, RANGE)
    spark = session()
    rng = np.random.default_rng(setting.seed)
    with everview.open(path) as db:
        left = Stream("bt1", rows, groups, setting.seed)
        right = Stream(RIGHT, groups, groups, setting.seed + 1, values=REGIONS)
        for stream in (left, right):
            db.create_table(stream.table, stream.schema)
        db.sql(f"CREATE MATERIALIZED VIEW counts AS {COUNTS}")
        db.sql(f"CREATE MATERIALIZED VIEW regional WITH (\"group\" = 'joined') AS {REGIONAL}")
        for stream in (right, left):
            for part in stream.loaded(LOAD):
                db.table(stream.table).put_many(_grouped(part) if stream is left else part)
                db.flush()
        keeping = _keeping(db, left, rng)
        wrong = _wrong(db, groups)
        spark_sql = _tables(spark, path)
        for question in QUESTIONS:
            width = WIDTH[question.name]
            lows = rng.integers(0, groups - width + 1, READS)

            def text(low: int, asked: Question = question, width: int = width) -> str:
                return asked.sql.format(low=low, high=low + width - 1)

            methods: dict[str, Callable[[int], Answer]] = {
                CLIENT: lambda low, asked=question.name, width=width: _scanned(db, groups, asked, low, width),  # type: ignore[misc]
                SQL: lambda low, text=text: [tuple(row) for row in db.sql(text(low)).rows()],  # type: ignore[misc]
                SPARK: lambda low, text=text: [tuple(row) for row in spark_sql(text(low))],  # type: ignore[misc]
                VIEW: _reader(db, question.name),
            }
            answers: dict[str, Answer] = {}
            for method, ask in methods.items():
                times = READS if method == VIEW else 3 if rows <= LOAD and not setting.quick else 1
                if times > 1:
                    ask(int(lows[0]))
                answers[method], seconds = _asked(ask, lows[:times])
                said = "" if answers[method] == answers[CLIENT] else f"its answer is not that of a {CLIENT}"
                kept = keeping["joined" if question.name == JOIN else "main"] if method == VIEW else None
                row: Row = {
                    "rows": rows,
                    "question": question.name,
                    "method": method,
                    "milliseconds": 1000 * seconds,
                    "keeping": None if kept is None else 1e6 * kept,
                }
                yield Found(row, said or (wrong if method == VIEW else ""))
    shutil.rmtree(path)


def _asked(ask: Callable[[int], Answer], lows: npt.NDArray[np.int64]) -> tuple[Answer, float]:
    """The first answer, and the seconds of an answer in the middle of all."""
    took: list[float] = []
    first: Answer = []
    for low in lows.tolist():
        started = time.perf_counter()
        found = ask(low)
        took.append(time.perf_counter() - started)
        first = found if len(took) == 1 else first
    return first, statistics.median(took)


def _grouped(rows: pa.Table) -> pa.Table:
    """The same rows, each hundred of neighbouring keys in one group: rows that belong together come together."""
    return rows.set_column(1, "c1", pa.array((rows["k"].to_numpy() // IN_GROUP).astype(np.int32)))


# ------------------------------------------------------------------ methods


def _reader(db: everview.Database, question: str) -> Callable[[int], Answer]:
    counts, regional = db.view("counts"), db.view("regional")

    def one(low: int) -> Answer:
        row: Any = counts.get(low)
        return [] if row is None else [(row["c1"], row["n"], row["s"])]

    if question == ONE:
        return one
    if question == SOME:
        return lambda low: [tuple(row) for row in counts.scan(start=[low], stop=[low + RANGE]).rows()]
    return lambda _: [tuple(row) for row in regional.scan().rows()]


def _scanned(db: everview.Database, groups: int, question: str, low: int, width: int) -> Answer:
    """What a client finds that reads all rows, in columns, and adds them up."""
    if question == JOIN:
        return _listed(*_regions(db, groups))
    return _listed(*_sums(db, groups, low, low + width), low)


def _sums(db: everview.Database, groups: int, low: int, high: int) -> tuple[Sums, Sums]:
    """Rows, and the sum of c2, of the groups from one to before another."""
    counts, sums = np.zeros(high - low, np.int64), np.zeros(high - low, np.int64)
    for batch in _batches(db, "bt1"):
        group, value = (batch.column(name).to_numpy() for name in ("c1", "c2"))
        if high - low < groups:
            wanted = (group >= low) & (group < high)
            group, value = group[wanted], value[wanted]
        counts += np.bincount(group - low, minlength=high - low)
        sums += np.bincount(group - low, weights=value, minlength=high - low).astype(np.int64)
    return counts, sums


def _regions(db: everview.Database, groups: int) -> tuple[Sums, Sums]:
    """Rows, and the sum of c2, of each region: the groups of the left table are the keys of the right one."""
    region = np.zeros(groups, np.int64)
    for batch in _batches(db, RIGHT):
        region[batch.column("k").to_numpy()] = batch.column("c4").to_numpy()
    counts, sums = _sums(db, groups, 0, groups)
    return (
        np.bincount(region, weights=counts, minlength=REGIONS).astype(np.int64),
        np.bincount(region, weights=sums, minlength=REGIONS).astype(np.int64),
    )


def _batches(db: everview.Database, table: str) -> Iterator[pa.RecordBatch]:
    return iter(pa.RecordBatchReader.from_stream(db.table(table).scan()))


def _listed(counts: Sums, sums: Sums, low: int = 0) -> Answer:
    """Groups that have rows."""
    there = np.flatnonzero(counts)
    return list(zip((there + low).tolist(), counts[there].tolist(), sums[there].tolist(), strict=True))


def _tables(spark: SparkSession, path: Path) -> Callable[[str], list[Any]]:
    """Ask Spark over both tables, as they are when they are asked for."""
    beside = spark.newSession()
    from everview.zones.batch_source import EverviewSource

    beside.dataSource.register(EverviewSource)
    for name, value in FOR_QUERIES.items():
        beside.conf.set(name, value)

    def ask(text: str) -> list[Any]:
        for table in ("bt1", RIGHT):
            read = beside.read.format("everview").options(path=str(path), table=table).load()
            read.createOrReplaceTempView(table)
        return beside.sql(text).collect()

    return ask


# ------------------------------------------------------------------ keeping, and judging


def _keeping(db: everview.Database, stream: Stream, rng: np.random.Generator) -> dict[str, float]:
    """Seconds that an operation costs the group of each view, in epochs of a few thousand updates."""
    last = max(commit for (commit,) in db.sql("SELECT max(epoch) FROM everview.epochs").rows())
    for _ in range(EPOCHS):
        db.table(stream.table).put_many(stream.rows(rng, stream.drawn(rng, CHANGES)))
        db.flush()
    asked = "SELECT group_name, median(seconds / operations) FROM everview.epochs WHERE epoch > ? GROUP BY 1"
    return {str(group): float(seconds) for group, seconds in db.sql(asked, [last]).rows()}


def _wrong(db: everview.Database, groups: int) -> str:
    """How the views differ from what a client adds up over all rows."""
    found = []
    views = {"counts": _listed(*_sums(db, groups, 0, groups)), "regional": _listed(*_regions(db, groups))}
    for view, expected in views.items():
        rows = [tuple(row) for row in db.view(view).scan().rows()]
        differ = len(set(rows) ^ set(expected))
        if differ:
            found.append(f"{differ} rows of {view} differ from a recomputation")
    return "; ".join(found)


# ------------------------------------------------------------------ telling


def _of(rows: Sequence[Row], count: int, question: str, method: str, column: str = "milliseconds") -> float | None:
    for row in rows:
        if (row["rows"], row["question"], row["method"]) == (count, question, method) and row[column] is not None:
            return float(str(row[column]))
    return None


def _time(milliseconds: float) -> str:
    if milliseconds < 1:
        return f"{1000 * milliseconds:.0f} µs"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _sizes(rows: Sequence[Row]) -> list[int]:
    return sorted({int(str(row["rows"])) for row in rows})


def _growth(rows: Sequence[Row], question: str, method: str) -> str:
    found = [(size, _of(rows, size, question, method)) for size in _sizes(rows)]
    return ", ".join(f"{_time(took)} over {size:,} rows" for size, took in found if took is not None)


def _overtaken(rows: Sequence[Row]) -> str:
    """From which size on Spark is faster than a client."""
    pairs = [(size, _of(rows, size, ONE, SPARK), _of(rows, size, ONE, CLIENT)) for size in _sizes(rows)]
    faster = [size for size, spark, client in pairs if spark is not None and client is not None and spark < client]
    return (
        f"it is faster than one client from {min(faster):,} rows on" if faster else "one client is faster at every size"
    )


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    if not rows:
        return []
    seen = "; ".join(f"{method}: {_growth(rows, ONE, method)}" for method in (CLIENT, SPARK, VIEW))
    return [
        Comparison(
            "004, Figure 13, and 003, Figure 9 (access time of a count)",
            "a client scan grows with the table and is the slowest; a parallel scan in the servers takes 5 s for a "
            "million rows; a view is read in under 1 ms, also over 10 million rows",
            f"the count of one group. {seen}",
            "The view is as flat here, and far below 1 ms because the store is in the process that reads. A client "
            "scan has no network to cross either, and reads columns instead of calling for rows. Spark has to start "
            f"tasks in other processes for each answer, on the same two cores: {_overtaken(rows)}",
        )
    ]


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    for question in (ONE, SOME, JOIN):
        for size in _sizes(rows)[-1:]:
            view, scan = _of(rows, size, question, VIEW), _of(rows, size, question, CLIENT)
            kept = _of(rows, size, question, VIEW, "keeping")
            sql, spark = _of(rows, size, question, SQL), _of(rows, size, question, SPARK)
            if view is None or scan is None or kept is None or sql is None or spark is None:
                continue
            best = min((scan, CLIENT), (sql, SQL), (spark, SPARK))
            found.append(
                f"{question.capitalize()} over {size:,} rows: {_time(view)} from the view, {_time(best[0])} by the "
                f"fastest scan ({best[1]}), {best[0] / view:,.0f} times as long. Keeping the view costs {kept:.0f} "
                "µs an operation: one such scan costs as much as keeping it for "
                f"{1000 * (best[0] - view) / kept:,.0f} operations, so where more are written between two questions, "
                "scanning is cheaper."
            )
    return found


def headline(rows: Sequence[Row]) -> str:
    size = max(_sizes(rows), default=0)
    view, scan = _of(rows, size, ONE, VIEW), _of(rows, size, ONE, CLIENT)
    if view is None or scan is None:
        return ""
    return f"{_time(view)} from a view, {_time(scan)} by a client scan, for a count over {size:,} rows"


EXPERIMENT = Experiment(
    name="baseline",
    title="Scans against a view",
    text=(
        "The time to an answer over tables that grow. The table bt1 has groups of a hundred rows, which come "
        "together; bt2 says for each group which of a hundred regions it belongs to. Asked are the count and sum of "
        "one group, of a range of a hundred groups, and of all regions by a join of both tables. A *client scan* "
        "reads all rows in columns and adds them up with NumPy; an *SQL scan* is the query as `db.sql` over the "
        "tables, which DuckDB computes in this process; a *Spark scan* the same query over "
        '`spark.read.format("everview")` on two cores; *view* a `get` or a `scan` of views that are kept, in this '
        "process, in two groups. Medians of 300 reads of a view, of three scans, of one over more than a million "
        "rows; each answers once before it is timed where it is timed more often. *Keeping* is what an operation "
        f"costs the group of that view, in epochs of {CHANGES:,} updates at random keys. All methods must give the "
        "same answers, and all rows of the views are compared with what the client adds up."
    ),
    measure=measure,
    columns={
        "rows": "rows",
        "question": "question",
        "method": "method",
        "milliseconds": "ms to the answer",
        "keeping": "µs an operation to keep it",
    },
    plots=(
        *(
            Plot(
                name,
                f"Milliseconds to the answer: {question}",
                "rows",
                "milliseconds",
                "method",
                log_x=True,
                log_y=True,
                where=lambda row, question=question: row["question"] == question,  # type: ignore[misc]
            )
            for name, question in (("one", ONE), ("range", SOME), ("join", JOIN))
        ),
        Plot(
            "keeping",
            "Microseconds of maintenance for an operation",
            "rows",
            "keeping",
            "question",
            log_x=True,
            where=lambda row: row["method"] == VIEW and row["question"] != SOME,
        ),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
