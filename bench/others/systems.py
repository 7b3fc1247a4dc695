"""Everview beside the systems a user would pick instead: the same stream, the same views, one machine, one run.

Each system runs in a process of its own, takes the same operations from files written before, and
leaves a view that is compared with a recomputation; what it takes to start is separated from what an operation
takes, by a run over a part of the stream beside the run over all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.others.system import System
from bench.others.views import CENTS, EVERY
from bench.report.experiment import Experiment, Found, Plot, Row, Setting

MILLION = 1_000_000
SPARK = "Everview on Spark"
PROCESS = "Everview in process"


def _sizes(q1: int, q2: int, q3: int, q4: int, amounts: int) -> dict[str, int]:
    return dict(zip(EVERY, (q1, q2, q3, q4, amounts), strict=True))


SYSTEMS = (
    System(
        SPARK,
        "everview_spark",
        "arrow",
        "parquet",
        "the view, stored, and its changes",
        _sizes(4 * MILLION, 4 * MILLION, 4 * MILLION, 4 * MILLION, MILLION),
        ours=True,
    ),
    System(
        PROCESS,
        "everview_process",
        "arrow",
        "parquet",
        "the view, stored, and its changes",
        _sizes(4 * MILLION, 4 * MILLION, 4 * MILLION, 4 * MILLION, MILLION),
        ours=True,
    ),
    System(
        "Flink SQL",
        "flink",
        "changes",
        "flink",
        "a stream of changes",
        _sizes(MILLION, MILLION, MILLION, MILLION, 200_000),
        needs="flink",
        foreign=True,
    ),
    System(
        "Pathway",
        "pathway_table",
        "arrow",
        "pathway",
        "a stream of changes",
        _sizes(200_000, 200_000, 100_000, 200_000, 100_000),
        needs="pathway",
        foreign=True,
    ),
    System(
        "DuckDB, again every 10,000",
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
        needs="postgres",
    ),
    System(
        "Structured Streaming",
        "structured",
        "signed",
        "spark",
        "a stream of changes",
        _sizes(MILLION, MILLION, 200_000, 200_000, 200_000),
        batch=100_000,
    ),
)


OURS = tuple(system.name for system in SYSTEMS if system.ours)


def measure(setting: Setting) -> Iterator[Found]:
    from bench.others.measured import measured

    yield from measured(SYSTEMS, setting)


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
    exact = [str(row["system"]) for row in rows if row["view"] == CENTS and row.get("sums") == "exact"]
    rounded = [
        f"{row['system']} ({row['sums']})"
        for row in rows
        if row["view"] == CENTS and str(row.get("sums") or "").startswith("rounded")
    ]
    if exact:
        exactly = f"Sums and means of amounts are exact in {', '.join(exact)}"
        found.append(exactly + (f"; within rounding in {', '.join(rounded)}." if rounded else "."))
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
    small = " DuckDB's time is that of the query over all rows, of which there are few here, whatever has changed."
    cause = small if any(one.startswith("DuckDB") for one in ahead) else ""
    return [f"{view}: faster than our best ({ours['system']}) are {', '.join(ahead)}.{where}{cause}"]


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
    Every system takes in a part of the stream three times (a tenth, or one of its batches where that is more), and
    then all of it, each time from nothing; *operations/s* is of those by which the shortest of the three and the last
    run differ, so what a run takes to start is not in it, but in *start*; where a run is mostly start, it is of
    the whole run, and *start* is empty. *Warming up* is the first run. Where a system writes base tables as well,
    that is separated too: in PostgreSQL by runs without triggers. *Memory* is the most that its processes had,
    without mapped files.

    Everview chooses the sizes of its epochs. On Spark it has two view servers, chooses which epochs it does there and
    which in its driver, and its pipeline runs before the logs are filled; in process it has one core.
    Flink has parallelism 2, mini-batches of 10,000 rows for each task, state on the heap, no checkpoints;
    it reads Debezium's JSON and writes the view's changes to CSV with `TO_CHANGELOG`. Pathway
    has two threads, and gets puts and deletes by key from its Python connector with a commit every 10,000. DuckDB
    recomputes the view every 10,000 operations, on two threads, in memory. PostgreSQL takes 10,000 operations in a
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
        "first": "warming up, s",
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
        Plot(
            "whole",
            "Operations per second where base tables are written as well",
            x="view",
            y="whole",
            by="system",
            kind="bars",
            log_y=True,
        ),
    ),
    headline=headline,
    notes=notes,
    limit=1500,
)
