"""The VMS paper's views on TPC-H's orders and customers: every order is inserted, none changes.

As in the paper the views are there first, then all rows are written, then the logs are taken in on
Spark, and operations per second are counted from commit to commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import everview
from bench.epochs import on_spark, state_megabytes, wrong
from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, row_of, times
from bench.workloads.tpch import OF_PAPER, SCHEMA, batches, files

SERVERS = 2
PER_EPOCH = 150_000
COLD = 2
"""Epochs that are not timed, after the first."""

HALF = "SELECT o_custkey FROM orders WHERE o_totalprice < 145000"
PROJECTION, SELECTION, SELECTION_HALF = "projection", "selection, x = 10,000", "selection, x = 145,000"
BY_CUSTOMER, BY_CLERK, JOIN = "aggregates by customer", "aggregates by clerk", "join with customers"
VIEWS = {
    PROJECTION: OF_PAPER["projection"],
    SELECTION: OF_PAPER["selection"],
    SELECTION_HALF: HALF,
    BY_CUSTOMER: OF_PAPER["by_custkey"],
    BY_CLERK: OF_PAPER["by_clerk"],
    JOIN: OF_PAPER["join"],
}
PER_SERVER = 1026
"""Operations per second of the paper's fastest view server in Figure 7."""
PAPER_SERVERS = 50


def measure(setting: Setting) -> Iterator[Found]:
    from bench.report.sessions import session

    spark = session()
    found = files(setting.pick(1, 0.01))
    for number_of, view in enumerate(setting.pick(list(VIEWS), [JOIN])):
        path = setting.folder / f"store-{number_of}"
        with everview.open(path) as db:
            db.sql(SCHEMA)
            db.sql(f"CREATE MATERIALIZED VIEW v AS {VIEWS[view]}")
            tables = ("customer", "orders") if view == JOIN else ("orders",)
            for name in tables:
                for rows in batches(found[name], setting.pick(50_000, 1_000)):
                    db.table(name).put_many(rows)
            written = sum(db.table(name).count() for name in tables)
            pace = on_spark(path, db, spark, SERVERS, setting.pick(PER_EPOCH, 2_000), setting.pick(COLD, 0))
            shown = db.view("v").count()
            row: Row = {
                "view": view,
                "operations": written,
                "operations_s": round(pace.rate),
                "view_rows": shown,
                "share": round(100 * shown / written, 1),
                "state_mb": round(state_megabytes(db.store), 1),
            }
            yield Found(row, wrong(db), pace.profile)


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    makers = (_projection, _selection, _aggregates, _join)
    compared = []
    for maker in makers:
        try:
            compared.append(maker(rows))
        except Missing:
            continue
    return compared


def _rate(rows: Sequence[Row], view: str) -> float:
    return number(row_of(rows, view=view), "operations_s")


def _projection(rows: Sequence[Row]) -> Comparison:
    rate = _rate(rows, PROJECTION)
    return Comparison(
        "004, Figure 7, TPC-H",
        f"902 to {PER_SERVER:,} operations/s for each view server, linear up to {PAPER_SERVERS} of them in "
        "all four configurations, TPC-H among them.",
        f"{rate:,.0f} operations/s with two view servers on two cores, "
        f"each of them {times(rate / SERVERS / PER_SERVER)} as many.",
        "They pay a remote read and write of HBase for every operation; we take 150,000 of them in one epoch, in "
        "columns, and write them to a store in the same machine.",
    )


def _selection(rows: Sequence[Row]) -> Comparison:
    small, half = (row_of(rows, view=view) for view in (SELECTION, SELECTION_HALF))
    faster = number(small, "operations_s") / number(half, "operations_s")
    return Comparison(
        "004, Figure 8, TPC-H",
        "A selection of half of the orders (o_totalprice, x = 10,000) is 9.6 % slower than one of half of the "
        "synthetic rows; a low selectivity is faster by up to 46 %.",
        f"x = 10,000 selects {number(small, 'share'):.1f} % of tpchgen's orders, at "
        f"{number(small, 'operations_s'):,.0f} operations/s; x = 145,000 selects {number(half, 'share'):.0f} %, at "
        f"{number(half, 'operations_s'):,.0f}: {times(faster)} as fast where little is selected.",
        "What is not selected is dropped before anything is written, with us as with them; reading and decoding the "
        "log is paid for every row.",
    )


def _aggregates(rows: Sequence[Row]) -> Comparison:
    customer, clerk = (_rate(rows, view) for view in (BY_CUSTOMER, BY_CLERK))
    return Comparison(
        "004, Figure 9, TPC-H",
        "Aggregates by o_custkey scale, those by o_clerk do not: each of the 1,000 clerks has 1,500 orders, whose "
        "pre-aggregates are loaded and taken apart for every operation.",
        f"{customer:,.0f} operations/s by customer and {clerk:,.0f} by clerk: the large groups are "
        f"{times(clerk / customer)} as fast.",
        "A group's count and sum are one record here, and its least and greatest value the ends of a sorted bag in "
        "chunks, so a large group costs no more than a small one; fewer groups mean fewer records in an epoch.",
    )


def _join(rows: Sequence[Row]) -> Comparison:
    join, customer = _rate(rows, JOIN), _rate(rows, BY_CUSTOMER)
    return Comparison(
        "004, Figure 10, TPC-H",
        "A join of orders and customers is about as fast as an aggregate.",
        f"{join:,.0f} operations/s, {times(join / customer)} as many as for the aggregates by customer.",
        "With both, an operation changes one place of a bag by customer; the join writes a row of the view for each "
        "order, the aggregate one for each customer that an epoch touches.",
    )


def headline(rows: Sequence[Row]) -> str:
    rates = sorted(number(row, "operations_s") for row in rows)
    return f"{rates[0]:,.0f} to {rates[-1]:,.0f} operations/s on two cores" if rates else ""


EXPERIMENT = Experiment(
    name="tpch_orders",
    title="Orders and customers of TPC-H, as in the VMS paper",
    text="The views of section 6 of the VMS paper (004) over TPC-H at scale 1: 1.5 million orders are inserted, for "
    "the join 150,000 customers before them, and nothing changes. The view is there first, all rows are in the logs "
    "before maintenance begins, and it runs on Spark with two view servers on two cores, in epochs of "
    f"{PER_EPOCH:,} operations; the first three epochs are not timed. The aggregates are sum, min, max, avg and count "
    "of o_totalprice. In the end each view is recomputed and compared row by row.",
    measure=measure,
    columns={
        "view": "view",
        "operations": "operations",
        "operations_s": "operations/s",
        "view_rows": "rows of the view",
        "share": "% of the operations",
        "state_mb": "state, MB",
    },
    plots=(
        Plot("rates", "Operations per second, by view of the paper", "view", "operations_s", kind="bars"),
    ),
    comparisons=comparisons,
    headline=headline,
    limit=600,
)  # fmt: skip
