"""The lazy-maintenance paper's experiments: what an update of customers waits for, and what the work is in all.

The same updates of TPC-H's customers are timed as the client sees them, and the maintenance that they
cause is timed apart, at once after each of them or merged for many.

An update waits for no view here, so *eager* is what it would take if it did: the put, and the epoch right after it.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

import everview
from bench.beside import await_shown, maintained
from bench.epochs import seconds_by_part, wrong
from bench.measure import seconds
from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, row_of, times
from bench.rows import seconds as said
from bench.tpch_views import opened
from bench.workloads.tpch import CUSTOMERS, files
from bench.workloads.tpch_copy import Copy
from tests.queries.corpora import corpus
from tests.queries.tpch_rows import SEGMENTS

NATIONS = 25
VIEWS = corpus("papers/001").queries
ONE, BOTH = "V1", "V1 and V2"
SIZES = (1, 10, 100, 1_500, 15_000)
"""Customers of one update; the last is all of them at scale 0.1."""
STATEMENTS = 100
"""Small updates, one after another."""
MOST = 10
"""Customers of a small update."""
UPDATE, MANY, QUERY = "an update", "100 small updates", "an update, then a query"
ANYWHERE, NARROW = "scattered", "among 100 customers"
AFTER_EACH, MERGED = "an epoch for each", "one epoch for all"
WAITS, FRESH, PLAIN = "waits for the epoch", "fresh=True", "as it is"
PAUSES = (0.0, 0.5, 2.0)


@dataclass
class Customers:
    """Updates of customers: each moves to another nation and another market segment."""

    db: everview.Database
    draw: np.random.Generator
    count: int

    def some(self, size: int) -> pa.Table:
        return self.moved(self.draw.choice(self.count, size, replace=False) + 1)

    def small(self, within: int) -> pa.Table:
        """One to ten that follow each other, somewhere among the first so many."""
        size = int(self.draw.integers(1, MOST + 1))
        first = int(self.draw.integers(1, within - size + 2))
        return self.moved(np.arange(first, first + size))

    def moved(self, keys: np.ndarray) -> pa.Table:
        columns = {
            "c_custkey": keys,
            "c_nationkey": self.draw.integers(0, NATIONS, len(keys)).astype(np.int32),
            "c_mktsegment": self.draw.choice(SEGMENTS, len(keys)),
        }
        return pa.table(columns)

    def put(self, rows: pa.Table) -> float:
        return seconds(partial(self.db.table("customer").put_many, rows))

    def maintain(self) -> float:
        return seconds(self.db.flush)


def measure(setting: Setting) -> Iterator[Found]:
    scale = setting.pick(0.1, 0.01)
    path = setting.folder / "store"
    again = _recomputed(scale)
    with opened(path, scale) as db:
        customers = Customers(db, np.random.default_rng(setting.seed), round(CUSTOMERS * scale))
        yield from _updated(customers, ONE, [one for one in SIZES if one <= customers.count], again, setting)
        for within, spread in ((customers.count, ANYWHERE), (100, NARROW)):
            for how in (AFTER_EACH, MERGED):
                yield _many(customers, within, spread, how, setting.pick(STATEMENTS, 10))
        with maintained(db, path, local=setting.quick):
            yield from _queried(customers, setting)
        yield from _updated(customers, BOTH, SIZES[:3], again, setting)


def _recomputed(scale: float) -> dict[str, float]:
    """Seconds in which DuckDB, with all tables in memory, computes each of the views."""
    copy = Copy(files(scale))
    try:
        return {name: statistics.median(copy.seconds(query) for _ in range(3)) for name, query in VIEWS.items()}
    finally:
        copy.close()


def _updated(
    customers: Customers, views: str, sizes: Sequence[int], again: dict[str, float], setting: Setting
) -> Iterator[Found]:
    """Create one more view, and update customers. The views are recomputed after all of it."""
    db, name = customers.db, {ONE: "v1", BOTH: "v2"}[views]
    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    db.flush()
    found = []
    for size in sizes:
        before = seconds_by_part(db)
        spent = []
        for _ in range(setting.pick(7 if size <= 100 else 4, 2)):
            rows = customers.some(size)
            spent.append((customers.put(rows), customers.maintain()))
        put, maintain = (statistics.median(times_of[1:]) for times_of in zip(*spent, strict=True))
        row: Row = {
            "what": UPDATE,
            "views": views,
            "customers": size,
            "how": "",
            "update_ms": _ms(put),
            "maintain_ms": _ms(maintain),
            "again_ms": _ms(sum(again[one] for one in ("v1", "v2")[: 1 + (views == BOTH)])),
        }
        parts = {part: (total - before.get(part, 0.0)) / len(spent) for part, total in seconds_by_part(db).items()}
        found.append((row, parts))
    mistaken = wrong(db)
    for row, parts in found:
        yield Found(row, mistaken, parts)


def _many(customers: Customers, within: int, spread: str, how: str, statements: int) -> Found:
    table, flush = customers.db.table("customer"), customers.db.flush
    put, maintain, rows = 0.0, 0.0, 0
    gc.collect()
    for number_of in range(statements):
        batch = customers.small(within)
        rows += len(batch)
        begun = time.perf_counter()
        table.put_many(batch)
        written = time.perf_counter()
        if how == AFTER_EACH or number_of == statements - 1:
            flush()
        put += written - begun
        maintain += time.perf_counter() - written
    row: Row = {
        "what": MANY,
        "views": ONE,
        "customers": rows,
        "spread": spread,
        "how": how,
        "update_ms": _ms(put),
        "maintain_ms": _ms(maintain),
    }
    return Found(row, wrong(customers.db))


def _queried(customers: Customers, setting: Setting) -> Iterator[Found]:
    """An update of 100 customers, a pause, and a query over V1 that must show it (or need not)."""
    db = customers.db
    found: dict[tuple[float, str], list[float]] = {}
    for turn in range(setting.pick(6, 2)):  # the first is there to warm up
        for pause in setting.pick(PAUSES, (0.0,)):
            for how in (WAITS, FRESH, PLAIN):
                await_shown(db)
                customers.put(customers.some(100))
                frontier = db.store.log.latest()
                time.sleep(pause)
                begun = time.perf_counter()
                if how == WAITS:
                    await_shown(db, frontier)
                shown = db.sql("SELECT n_name, sum(totalprice) FROM v1 GROUP BY n_name", fresh=how == FRESH).rows()
                spent = time.perf_counter() - begun
                if len(list(shown)) != NATIONS:
                    raise AssertionError("a nation is missing in V1")
                if turn:
                    found.setdefault((pause, how), []).append(spent)
    await_shown(db)
    mistaken = wrong(db)
    for (pause, how), times_of in found.items():
        row: Row = {
            "what": QUERY,
            "views": ONE,
            "customers": 100,
            "how": how,
            "pause_ms": round(1000 * pause),
            "query_ms": _ms(statistics.median(times_of)),
        }
        yield Found(row, mistaken)


def _ms(value: float) -> float:
    return float(f"{1000 * value:.3g}")


# ------------------------------------------------------------------ telling


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    sentences = []
    for maker in (_response, _work, _queries, _merged, _large):
        try:
            sentences.append(maker(rows))
        except Missing:
            continue
    return sentences


def _times(row: Row) -> tuple[float, float]:
    """Seconds of an update, and of the maintenance that it causes."""
    return number(row, "update_ms") / 1000, number(row, "maintain_ms") / 1000


def _response(rows: Sequence[Row]) -> Comparison:
    one, both = (_times(row_of(rows, what=UPDATE, views=views, customers=100)) for views in (ONE, BOTH))
    return Comparison(
        "001, Figure 5 (update response time)",
        "lazy maintenance cuts the response time of an update of 1, 10 or 100 customers to almost nothing, for 100 of "
        "them 125 times, and a second view leaves it as it is, where an eager update waits for both",
        f"100 customers are updated in {said(one[0])} with V1 and in {said(both[0])} with V1 and V2; waiting for the "
        f"views would make that {said(sum(one))} and {said(sum(both))}, {times(sum(one) / one[0])} and "
        f"{times(sum(both) / both[0])} as long",
        "The same: a put writes rows and log and knows no view",
    )


def _work(rows: Sequence[Row]) -> Comparison:
    parts = []
    for size in (1, 10, 100):
        put, maintain = _times(row_of(rows, what=UPDATE, views=BOTH, customers=size))
        parts.append(f"{said(put)} and {said(maintain)} for {size}")
    return Comparison(
        "001, Figure 6 (total work of an update)",
        "the work of an update and its lazy maintenance is slightly more than that of an eager update, for delta "
        "tables and old versions",
        f"the update and the maintenance of V1 and V2 take {', '.join(parts)} customers",
        "There is no eager way to compare with: the log with the rows before each change is the store's own, and is "
        "written whether there are views or not. An epoch has a fixed price, which few rows do not make smaller",
    )


def _queries(rows: Sequence[Row]) -> Comparison:
    def query(how: str, pause: float) -> str:
        found = row_of(rows, what=QUERY, how=how, pause_ms=round(1000 * pause))
        return said(number(found, "query_ms") / 1000)

    last = PAUSES[-1]
    return Comparison(
        "001, Figure 7 (query response time)",
        "a query right after an update of 100 customers waits until the view has been maintained; one that comes 50 s "
        "later waits for nothing, and update and query together are faster than with eager maintenance in any case",
        f"a query that waits for the epoch takes {query(WAITS, 0.0)} at once after the update, and "
        f"{query(WAITS, last)} after {last:g} s; with fresh=True, which computes what is missing itself, "
        f"{query(FRESH, 0.0)} and {query(FRESH, last)}; as the view is, without waiting, {query(PLAIN, 0.0)}",
        "The same, in other measures: an epoch on Spark takes some hundred milliseconds, so nobody has to wait longer",
    )


def _merged(rows: Sequence[Row]) -> Comparison:
    spent = {
        (spread, how): number(row_of(rows, what=MANY, spread=spread, how=how), "maintain_ms") / 1000
        for spread in (ANYWHERE, NARROW)
        for how in (AFTER_EACH, MERGED)
    }
    gains = {spread: spent[spread, AFTER_EACH] / spent[spread, MERGED] for spread in (ANYWHERE, NARROW)}
    return Comparison(
        "001, Figure 8 (100 updates of 1 to 10 customers)",
        "maintaining merged updates takes much less time than one after another, where rows are scattered since plans "
        "are started once, where they are few since most changes condense to nothing: 13 times less than eager",
        "; ".join(
            f"{spread}: {said(spent[spread, AFTER_EACH])} with {AFTER_EACH}, {said(spent[spread, MERGED])} with "
            f"{MERGED}, {times(gain)} less"
            for spread, gain in gains.items()
        ),
        "The same reasons. An epoch's fixed price is paid once, and the versions of a row in between are gone before "
        "any join sees them",
    )


def _large(rows: Sequence[Row]) -> Comparison:
    parts = []
    for size in SIZES[2:]:
        put, maintain = _times(row_of(rows, what=UPDATE, views=ONE, customers=size))
        parts.append(f"{said(put)} and {said(maintain)} for {size:,}")
    return Comparison(
        "001, Figure 9 (large updates)",
        "the larger the update, up to all customers, the more an update under lazy maintenance takes, since delta "
        "table and version store are written, and the work in all is more than with eager maintenance",
        f"an update and the maintenance of V1 take {', '.join(parts)}, which are all customers",
        "The log has a block of up to 4,096 rows in columns where their delta table has a row for each, so the client "
        "waits for little of it even where every customer moves",
    )


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    for views in (ONE, BOTH):
        updates = [row for row in rows if row["what"] == UPDATE and row["views"] == views]
        lost = [row for row in updates if number(row, "maintain_ms") > number(row, "again_ms")]
        if lost:
            listed = ", ".join(f"{number(row, 'maintain_ms'):,.0f} ms for {row['customers']:,}" for row in lost)
            found.append(
                f"Where we lose: DuckDB, with all tables in memory, recomputes {views} in "
                f"{number(lost[0], 'again_ms'):,.0f} ms, and maintenance takes {listed} customers. A customer has "
                "about ten orders of four lines: the orders leave and enter the rows that are kept by join key for the "
                "lines, and with V2 the lines its view, at places that are far apart."
            )
    if found:
        found.append(
            "What closed most of it: joined in the written order, with all lines kept once more by the nation of their "
            "customer, V1 took 407 ms for 100 customers and 4.7 s for all 15,000 on the machine of this report; now "
            "nations are joined to customers first (`plan/rules/join_dimensions.py`)."
        )
    return found


def headline(rows: Sequence[Row]) -> str:
    try:
        put, maintain = _times(row_of(rows, what=UPDATE, views=BOTH, customers=100))
    except Missing:
        return ""
    return (
        f"an update of 100 customers takes {said(put)}; if it waited for two views over joins, it would take "
        f"{said(put + maintain)}"
    )


EXPERIMENT = Experiment(
    name="lazy",
    title="Updates that do not wait for views, as in the lazy-maintenance paper",
    text=(
        "The experiments of section 5 of the lazy-maintenance paper (001) over TPC-H at scale 0.1, a tenth of theirs: "
        "customers move to other nations and market segments, which changes V1 (lines, orders and customers joined, "
        "summed up by nation and segment) and V2 (five tables joined, customers and suppliers of different nations). "
        "*An update*: one put_many of some customers, and the epoch that brings the views there, both in this process "
        "on one core; the median of six (three for more than 100 customers), after one that does not count; beside it "
        "what DuckDB takes to recompute the views from tables in memory, on one core. *100 small updates*: 1 to 10 "
        "customers that follow each other, anywhere or among the first 100, with an epoch after each or one for all. "
        "*An update, then a query*: 100 customers are updated, and after a pause V1 is summed up by nation, while a "
        "service maintains V1 on Spark; the median of five. All rows of the views are recomputed and compared after "
        "each of these."
    ),
    measure=measure,
    columns={
        "what": "what",
        "views": "views",
        "customers": "customers",
        "spread": "which",
        "how": "how",
        "pause_ms": "pause, ms",
        "update_ms": "update, ms",
        "maintain_ms": "maintenance, ms",
        "again_ms": "recomputed, ms",
        "query_ms": "query, ms",
    },
    plots=(
        Plot(
            "maintenance",
            "Maintenance of an update, ms, by customers updated",
            "customers",
            "maintain_ms",
            "views",
            log_x=True,
            log_y=True,
            where=lambda row: row["what"] == UPDATE,
        ),
        Plot(
            "update",
            "Update as the client sees it, ms, by customers updated",
            "customers",
            "update_ms",
            "views",
            log_x=True,
            log_y=True,
            where=lambda row: row["what"] == UPDATE,
        ),
        Plot(
            "merged",
            "Maintenance of 100 small updates, ms",
            "spread",
            "maintain_ms",
            "how",
            kind="bars",
            where=lambda row: row["what"] == MANY,
        ),
        Plot(
            "queries",
            "Query by pause after the update, ms",
            "pause_ms",
            "query_ms",
            "how",
            where=lambda row: row["what"] == QUERY,
        ),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
