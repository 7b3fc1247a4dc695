"""From one view to 12,800: updates of views per second, and what creating them costs.

Views that differ in constants are one family, evaluated together, so what is measured is how
much of the work grows with the number of views, and how much only with the rows that they write.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.workloads.synthetic import BT1, Stream, Writer

if TYPE_CHECKING:
    import everview

MOST = 12_800
VALUES = 16_000
WIDTH = 3_200
"""Of the values that a view selects: a fifth of all."""
STRIDE = 7_919
"""Prime to MOST, so that the ranges of the first few views lie as evenly as those of all."""


@dataclass(frozen=True)
class Family:
    """Views that differ in constants: view n selects the values from ``low`` to before ``high``."""

    name: str
    counts: tuple[int, ...]
    keys: int
    epoch: int
    """Operations of an epoch."""
    epochs: int = 2
    """Of which the best is taken."""
    tables: int = 1
    narrow: bool = False
    """Whether each row is in one view, or each view has a fifth of all rows."""
    sums: bool = False

    def range(self, number: int) -> tuple[int, int]:
        if self.narrow:
            return number, number + 1
        low = number * STRIDE % MOST
        return low, low + WIDTH

    def values(self, count: int) -> int:
        return count if self.narrow else VALUES

    def query(self, number: int, table: str) -> str:
        low, high = self.range(number)
        condition = f"c2 = {low}" if self.narrow else f"c2 >= {low} AND c2 < {high}"
        if self.sums:
            return f"SELECT c1, count(*) AS n, sum(c2) AS s FROM {table} WHERE {condition} GROUP BY c1"
        return f"SELECT k, c2 FROM {table} WHERE {condition}"


ONE_EACH, FIFTHS, SUMS, TABLES = "a row in one view", "a fifth of rows each", "sums of a fifth", "over several tables"

FAMILIES = (
    Family(ONE_EACH, (1, 10, 100, 800, 3_200, MOST), 10_000, 10_000, 5, narrow=True),
    Family(FIFTHS, (1, 10, 100, 800, 3_200, MOST), 1_000, 1_000),
    Family(SUMS, (1, 10, 100, 800), 1_000, 1_000, sums=True),
    *(Family(TABLES, (100,), 20_000 // tables, 20_000, tables=tables) for tables in (1, 5, 10, 20)),
)


def measure(setting: Setting) -> Iterator[Found]:
    for family in FAMILIES:
        if not setting.quick:
            yield from _measured(family, setting)
        elif family.tables in (1, 5):
            few = (1, 20) if len(family.counts) > 1 else (20,)
            yield from _measured(replace(family, counts=few, keys=200, epoch=200), setting)


def _measured(family: Family, setting: Setting) -> Iterator[Found]:
    import everview
    from bench.epochs import in_process

    path = setting.folder / "store"
    names = [f"t{number}" for number in range(family.tables)]
    with everview.open(path) as db:
        for name in names:
            db.create_table(name, BT1)
        there = 0
        for count in family.counts:
            values = family.values(count)
            streams = [Stream(name, family.keys, 10, setting.seed + n, values=values) for n, name in enumerate(names)]
            writer = Writer(db, streams, family.epoch)
            if not there:
                writer.write(4 * family.keys * family.tables)
            views = {number: names[number % len(names)] for number in range(there, count)}
            started = time.perf_counter()
            db.sql(
                "; ".join(
                    f"CREATE MATERIALIZED VIEW v{number} AS {family.query(number, name)}"
                    for number, name in views.items()
                )
            )
            creating = (time.perf_counter() - started) / (count - there)
            there = count
            writer.write(family.epoch)
            started = time.perf_counter()
            db.flush()
            first = time.perf_counter() - started
            paces = []
            for _ in range(family.epochs):
                writer.write(family.epoch)
                paces.append(in_process(db))
            pace = max(paces, key=lambda one: one.rate)
            row: Row = {
                "family": family.name,
                "views": count,
                "tables": family.tables,
                "creating": 1000 * creating,
                "first": round(first, 2),
                "rate": round(pace.rate),
                "updates": round(pace.updates / pace.seconds),
                "evaluated": round(pace.rate * count / family.tables),
            }
            yield Found(row, _wrong(db, family, count, names))
    shutil.rmtree(path)


def _wrong(db: everview.Database, family: Family, count: int, names: Sequence[str]) -> str:
    """How many rows of all views differ from a recomputation over the base rows."""
    from everview.sql.settings import connect

    columns = "c1, n, s" if family.sums else "k, c2"
    ranges = [(number, number % len(names), *family.range(number)) for number in range(count)]
    shown: list[pa.Table] = []
    with db.snapshot() as snapshot:
        for number in range(count):
            rows = snapshot.view(f"v{number}").scan().arrow()
            shown.append(rows.append_column("view", pa.array([number] * rows.num_rows, pa.int64())))
        base = [snapshot.table(name).scan().arrow() for name in names]
    with connect() as connection:
        connection.register("shown", pa.concat_tables(shown))
        kinds = ("view", "number", "low", "high")
        connection.register("ranges", pa.table(dict(zip(kinds, zip(*ranges, strict=True), strict=True))))
        parts = [table.append_column("number", pa.array([n] * len(table), pa.int64())) for n, table in enumerate(base)]
        connection.register("base", pa.concat_tables(parts))
        selects = "c2 = low" if family.narrow else "c2 >= low AND c2 < high"
        pairs = f"FROM base JOIN ranges USING (number) WHERE {selects}"
        grouped = f"SELECT view, c1, count(*) AS n, sum(c2) AS s {pairs} GROUP BY view, c1"
        connection.execute(f"CREATE TABLE should AS {grouped if family.sums else f'SELECT view, k, c2 {pairs}'}")
        connection.execute(f"CREATE TABLE have AS SELECT view, {columns} FROM shown")
        both = [f"(SELECT view, {columns} FROM {one})" for one in ("should", "have")]
        differ = [f"(SELECT count(*) FROM ({one} EXCEPT ALL {other}))" for one, other in (both, both[::-1])]
        ((missing, extra),) = connection.execute(f"SELECT {', '.join(differ)}").fetchall()
    return f"{missing} rows are missing and {extra} too many in {count} views" if missing or extra else ""


# ------------------------------------------------------------------ telling


def _of(rows: Sequence[Row], family: str, column: str, by: str = "views") -> dict[int, float]:
    return {int(str(row[by])): float(str(row[column])) for row in rows if row["family"] == family}


def _listed(found: dict[int, float], what: str) -> str:
    return ", ".join(f"{value:,.0f} with {key:,} {what if key != 1 else what[:-1]}" for key, value in found.items())


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    compared = []
    updates = _of(rows, FIFTHS, "updates")
    if updates:
        rates = _of(rows, ONE_EACH, "rate")
        compared.append(
            Comparison(
                "004, Figure 12 (up to 12,800 views)",
                "a peak of 1.1 million view updates/s with 400 view servers; with 12,800 views a third of the peak, "
                "since each server has to reach many tables",
                f"updates of views/s on one core, each view with a fifth of the rows: {_listed(updates, 'views')}; "
                f"operations/s where each row is in one view: {_listed(rates, 'views')}",
                "One core instead of 400 machines. Views that differ in constants are one family with one table: a "
                "change finds the views it concerns by a join with their constants, and their rows are written in "
                "one pass, so there are no more places to reach with more views. What grows is the number of rows "
                "that are written, and their places: rows of one view lie together. Each view that an epoch changed is "
                "also counted by itself",
            )
        )
    by_tables = _of(rows, TABLES, "rate", "tables")
    if by_tables:
        compared.append(
            Comparison(
                "004, Figure 11 (100 queries over several base tables)",
                "twice the base tables, twice the operations/s: each operation concerns half as many of the 100 "
                "queries",
                f"operations/s: {_listed(by_tables, 'tables')}",
                "The same reason, as long as writing rows of views is most of the work; with few views for each "
                "table reading the log and the steps of each table weigh more",
            )
        )
    return compared


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    creating = _of(rows, ONE_EACH, "creating")
    if creating:
        most = max(creating)
        found.append(
            f"Creating views is not part of these rates. In one text it takes {creating[most]:.1f} ms a view on the "
            f"way to {most:,} of them, nearly all of it reading, checking and planning each text; the first epoch "
            f"with them takes {_of(rows, ONE_EACH, 'first')[most]:.1f} s. How long it takes to create them one at a "
            "time: [One more view](#one-more-view)."
        )
    evaluated = _of(rows, ONE_EACH, "evaluated")
    if evaluated:
        found.append(
            "The papers count an update for each view that an operation is tried on, whether its row is in the view "
            f"or not. By that measure it is {max(evaluated.values()):,.0f} a second with {max(evaluated):,} views."
        )
    sums = _of(rows, SUMS, "rate")
    fifths = _of(rows, FIFTHS, "rate")
    both = sorted(sums.keys() & fifths.keys())
    if both:
        most = both[-1]
        found.append(
            f"{most:,} sums take in {sums[most]:,.0f} operations/s, {most:,} selections of as many rows "
            f"{fifths[most]:,.0f}. Sums write a row for each group instead of one for each row, but every row is "
            "added up once for each view that has it."
        )
    return found


def headline(rows: Sequence[Row]) -> str:
    updates = _of(rows, FIFTHS, "updates")
    if not updates:
        return ""
    return f"{updates[max(updates)]:,.0f} updates of views/s with {max(updates):,} views, on one core"


EXPERIMENT = Experiment(
    name="many_views",
    title="From one view to 12,800",
    text=(
        "Views over one table that differ in constants, as the papers' selections do, in this process on one core: "
        "what a plan of many views costs is the same on Spark, where each task would do it for its share of the "
        "keys, and two cores are too few to show more. *A row in one view*: view n has the rows with c2 = n, so that "
        "an operation concerns one or two of them, in epochs of 10,000 operations over 10,000 row keys. *A fifth of "
        "rows each*: every view has another range with a fifth of all values, so that an operation concerns two in "
        "five of all views, in epochs of 1,000 operations over 1,000 row keys. *Sums of a fifth*: count and sum by "
        "c1 of such ranges. *Over several tables*: 100 views of such ranges, spread over 1 to 20 tables of 20,000 "
        "row keys together, in epochs of 20,000 operations. The views of a line are created by one text, over rows "
        "that are there, which is timed apart; so is the first epoch with them, which loads the new plan; of the two "
        "after it (five where a row is in one view) the best is taken. All rows of all views are compared with a "
        "recomputation after every line."
    ),
    measure=measure,
    columns={
        "family": "views",
        "views": "number of views",
        "tables": "tables",
        "creating": "ms to create one",
        "first": "s of the first epoch",
        "rate": "operations/s",
        "updates": "updates of views/s",
        "evaluated": "views × operations/s",
    },
    plots=(
        Plot(
            "updates",
            "Updates of views/s by number of views",
            "views",
            "updates",
            "family",
            log_x=True,
            log_y=True,
            where=lambda row: row["family"] != TABLES,
        ),
        Plot(
            "operations",
            "Operations/s by number of views",
            "views",
            "rate",
            "family",
            log_x=True,
            log_y=True,
            where=lambda row: row["family"] != TABLES,
        ),
        Plot(
            "tables",
            "Operations/s of 100 views by number of tables",
            "tables",
            "rate",
            kind="bars",
            where=lambda row: row["family"] == TABLES,
        ),
        Plot(
            "creating",
            "Milliseconds to create a view",
            "views",
            "creating",
            "family",
            log_x=True,
            log_y=True,
            where=lambda row: row["family"] != TABLES,
        ),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
