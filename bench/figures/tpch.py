"""TPC-H's 22 queries as views at scale 0.1: what they cost to build and to refresh, and to ask again instead.

A view is worth its state where asking again takes longer than taking in what has changed, so both
are measured after the same changes, query by query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench.report.experiment import Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, numbers, times
from bench.tpch_views import ALL, OURS, SHARED, SPARK, THEIRS, Size, measure
from bench.workloads.tpch import QUERIES

QUICK = Size(scale=0.01, pairs=1, together=(SHARED,), each=("q13",))

TEXT = """\
The 22 queries of TPC-H as views over its eight tables at scale {scale:g} (rows by tpchgen). A change is
one row that is written or deleted. After the tables are filled, the views are built over them; then come {pairs} pairs
of the benchmark's refresh functions: RF1 inserts a thousandth of the orders with their lines, RF2 deletes as many
others, and beside them a thousandth of the customers and of the parts is updated. After each pair every view is brought
up to date, which is timed (the median, without the first pair). Then five new orders come one by one with
their lines, and the views are brought up to date after each.

{each} first a view by itself, in a group of its own, maintained in one process on one core ("{ours}"). Then all
22 are views of one group and share what they remember: {together}. "Recomputed" is DuckDB asked the same query again
over the same rows, on one thread (beside Spark on two), with its tables in memory, and the time in which it takes in
the changes left out. Recomputed ÷ view above 1 says that
the view is that much faster. After every pair all 22
views are compared with the recomputation, row by row. A view is brought up to date once for all who
read it, and asked again by each of them: the last column is what one reader waits for. State is what the view and all
that is remembered for it takes in the store."""

COLUMNS = {
    "query": "query",
    "system": "how",
    "base_rows": "rows it reads",
    "build_s": "built in, s",
    "rows_s": "rows/s",
    "view_rows": "rows of the view",
    "state_mb": "state, MB",
    "changes": "changes of a pair",
    "refresh_ms": "up to date after a pair, ms",
    "changes_s": "changes/s",
    "ratio": "recomputed ÷ view",
    "order_ms": "up to date after one order, ms",
    "order_ratio": "recomputed ÷ view",
    "read_ms": "read whole, ms",
}


def _of_one(row: Row) -> bool:
    return row["query"] != ALL


PLOTS = (
    Plot("pairs", "A pair of refreshes: the view brought up to date, or asked again", "query", "refresh_ms", "system",
         "bars", log_y=True, where=_of_one),
    Plot("order", "One new order: the view brought up to date, or asked again", "query", "order_ms", "system",
         "bars", log_y=True, where=_of_one),
    Plot("build", "Rows per second while a view is built", "query", "rows_s", kind="bars", where=_of_one),
)  # fmt: skip


def headline(rows: Sequence[Row]) -> str:
    ours = [row for row in rows if row["system"] == OURS]
    try:
        won, won_order = (sum(value > 1 for value in numbers(ours, name)) for name in ("ratio", "order_ratio"))
    except Missing:
        right = sum(row["system"] in (SHARED, SPARK) for row in rows)
        return "all 22 views equal their recomputation" if right else ""
    return (
        f"after a thousandth of all orders {won} of {len(ours)} views are faster to refresh than to ask again, "
        f"after one order {won_order}"
    )


def notes(rows: Sequence[Row]) -> list[str]:
    ours = [row for row in rows if row["system"] == OURS]
    found = [
        _lost(ours, "ratio", "a pair of refreshes"),
        _lost(ours, "order_ratio", "one order"),
        *(_together(row, ours) for row in rows if row["system"] in (SHARED, SPARK)),
    ]
    idle = [row for row in ours if not row["changes"]]
    if idle:
        names, least = ", ".join(str(row["query"]) for row in idle), min(number(row, "refresh_ms") for row in idle)
        found.append(f"No change concerns a table of {names}: an epoch with nothing to do takes {least:.3g} ms.")
    if ours:
        order, again = (
            median(number(row, "order_ms") for row in rows if row["system"] == how) for how in (OURS, THEIRS)
        )
        found.append(
            f"Half of the views are up to date within {order:.3g} ms after one order: an epoch and each of its steps "
            f"have a price, however few changes there are and however large the tables. Half of the queries take at "
            f"least {again:.3g} ms to ask again, which grows with the tables."
        )
    return [said for said in found if said]


def _lost(ours: Sequence[Row], ratio: str, after: str) -> str:
    """Where asking again is faster, the worst first; and where the view gains most."""
    if not ours:
        return ""
    by_ratio = sorted(ours, key=lambda row: number(row, ratio))
    lost = [f"{row['query']} ({times(1 / number(row, ratio))})" for row in by_ratio if number(row, ratio) < 1]
    best = by_ratio[-1]
    said = f"After {after}, asking again is faster than the view for {len(lost)} of {len(ours)} queries"
    said += f": {', '.join(lost)}." if lost else "."
    if number(best, ratio) > 1:
        said += f" The view gains most with {best['query']}: {times(number(best, ratio))}."
    return said


def _together(row: Row, ours: Sequence[Row]) -> str:
    """All views of one group, beside the sum of those by themselves."""
    if len(ours) < len(QUERIES):
        return ""
    built, refreshed, state = (sum(number(one, name) for one in ours) for name in ("build_s", "refresh_ms", "state_mb"))
    return (
        f"All 22 together ({row['system']}): built in {number(row, 'build_s'):.0f} s (one by one {built:.0f} s), "
        f"up to date after a pair in {number(row, 'refresh_ms'):.0f} ms (one by one {refreshed:.0f} ms), "
        f"{number(row, 'state_mb'):.0f} MB of state (one by one {state:.0f} MB)."
    )


def experiment(name: str, size: Size, *, always: bool = True, limit: float = 900) -> Experiment:
    """The experiment at a scale."""

    def run(setting: Setting) -> Iterator[Found]:
        return measure(setting.pick(size, QUICK), setting)

    ways = {SHARED: "in one process", SPARK: "on Spark, on two cores"}
    together = " and ".join(ways[how] for how in size.together)
    each = "Each query is" if len(size.each) == len(QUERIES) else f"Each of {', '.join(size.each)} is"
    text = TEXT.format(scale=size.scale, pairs=size.pairs, ours=OURS, together=together, each=each)
    return Experiment(
        name=name,
        title=f"TPC-H's 22 queries as views, at scale {size.scale:g}",
        text=text.replace("\n\n", "\0").replace("\n", " ").replace("\0", "\n\n"),
        measure=run,
        columns=COLUMNS,
        plots=PLOTS,
        notes=notes,
        headline=headline,
        always=always,
        limit=limit,
    )


EXPERIMENT = experiment(name="tpch", size=Size(scale=0.1, pairs=4, together=(SHARED, SPARK)))
