"""Views that share what is prepared for them, against the same views that do not.

Views of one group share equal steps and tables, views of different groups share nothing, so the
same views are maintained once in one group and once in a group each.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.workloads.synthetic import BATCH, RIGHT, Stream, Writer

if TYPE_CHECKING:
    pass

_CALLS = (
    "count(*) AS n",
    "sum(c2) AS s",
    "min(c2) AS lo",
    "max(c2) AS hi",
    "avg(c2) AS a",
    "sum(c3) AS t",
    "min(c3) AS low",
    "max(c3) AS high",
)
_PAIRS = "FROM bt1 JOIN bt2 ON bt1.c1 = bt2.c1"
_KEYS = ("c1", "c2", "c1 % 1000", "c2 % 500", "c1 // 10", "c2 // 10", "c1 % 100", "c2 % 100")


@dataclass(frozen=True)
class Setup:
    """Views that have something in common."""

    name: str
    queries: tuple[str, ...]
    keys: int
    groups: int

    def streams(self, quick: bool, seed: int) -> list[Stream]:
        keys, groups = (self.keys // 100, self.groups // 100) if quick else (self.keys, self.groups)
        tables = ("bt1", RIGHT) if any(RIGHT in query for query in self.queries) else ("bt1",)
        return [Stream(table, keys, groups, seed + number) for number, table in enumerate(tables)]

    @property
    def counts(self) -> list[int]:
        return [n for n in (1, 2, 4, 8) if n <= len(self.queries)]


SETUPS = (
    Setup("counts", tuple(f"SELECT {key} AS g, count(*) AS n FROM bt1 GROUP BY 1" for key in _KEYS), 100_000, 10_000),
    Setup("aggregates", tuple(f"SELECT c1, {call} FROM bt1 GROUP BY c1" for call in _CALLS), 100_000, 10_000),
    Setup(
        "joins",
        (
            f"SELECT bt1.k, bt2.k AS l, c2 {_PAIRS}",
            f"SELECT c4, count(*) AS n, sum(c2) AS s {_PAIRS} GROUP BY c4",
            "SELECT bt1.k, bt2.k AS l, c4 FROM bt1 LEFT JOIN bt2 ON bt1.c1 = bt2.c1",
            f"SELECT max(c2) AS most, max(c4) AS other {_PAIRS}",
        ),
        20_000,
        10_000,
    ),
    Setup(
        "figure 5",
        (
            f"SELECT bt1.k, bt2.k AS l, c2, c4 {_PAIRS}",
            "SELECT c1, sum(c2) AS s FROM bt1 GROUP BY c1",
            "SELECT c1, min(c2) AS lo FROM bt1 GROUP BY c1",
            "SELECT c1, sum(c4) AS s FROM bt2 GROUP BY c1",
        ),
        20_000,
        10_000,
    ),
)
"""What is measured. *figure 5* are the views of that figure in 003 and 004."""

ROUNDS = 2
"""Of which the best is taken."""
SHARED, APART = "one group", "a group each"


def measure(setting: Setting) -> Iterator[Found]:
    for setup in SETUPS:
        for count in setting.pick(setup.counts, [len(setup.queries)]):
            for how in (SHARED, APART):
                yield _measured(setup, count, how, setting)


def _measured(setup: Setup, count: int, how: str, setting: Setting) -> Found:
    import everview
    from bench.epochs import in_process, seconds_by_part, state_megabytes, wrong

    path = setting.folder / "store"
    streams = setup.streams(setting.quick, setting.seed)
    operations = setting.pick(2 * BATCH, 2_000)
    with everview.open(path) as db:
        for stream in streams:
            db.create_table(stream.table, stream.schema)
        for number, query in enumerate(setup.queries[:count]):
            option = "" if how == SHARED else f"WITH (\"group\" = 'g{number}') "
            db.sql(f"CREATE MATERIALIZED VIEW v{number} {option}AS {query}")
        writer = Writer(db, streams, operations // 2)
        writer.write(operations)
        db.flush()
        before = seconds_by_part(db)
        paces = []
        for _ in range(setting.pick(ROUNDS, 1)):
            writer.write(operations)
            paces.append(in_process(db))
        pace = max(paces, key=lambda one: one.rate)
        row: Row = {
            "setup": setup.name,
            "views": count,
            "sharing": how,
            "rate": round(pace.rate),
            "updates": round(pace.updates / pace.seconds),
            "tables": len({table.id for one in db.catalog.views() for table in one.state}),
            "state": round(state_megabytes(db.store), 1),
        }
        spent = {part: (seconds - before.get(part, 0.0)) / len(paces) for part, seconds in seconds_by_part(db).items()}
        found = Found(row, wrong(db), spent)
    shutil.rmtree(path)
    return found


# ------------------------------------------------------------------ telling


def _of(rows: Sequence[Row], setup: str, views: int, how: str, column: str = "rate") -> float | None:
    for row in rows:
        if (row["setup"], row["views"], row["sharing"]) == (setup, views, how):
            return float(str(row[column]))
    return None


def _most(rows: Sequence[Row], setup: str) -> int:
    return max((int(str(row["views"])) for row in rows if row["setup"] == setup), default=0)


def _gains(rows: Sequence[Row], setup: str) -> str:
    """What sharing brings, by number of views, in words."""
    found = []
    for views in sorted({int(str(row["views"])) for row in rows if row["setup"] == setup}):
        shared, apart = _of(rows, setup, views, SHARED), _of(rows, setup, views, APART)
        if shared and apart and views > 1:
            found.append(
                f"{views} views {shared / apart:.1f} times as fast ({shared:,.0f} to {apart:,.0f} operations/s)"
            )
    return "; ".join(found)


def _tried(rows: Sequence[Row], setup: str) -> str:
    """Operations times views per second, which the paper calls view updates: it counts one for each operation and
    view."""
    found = [(n, _of(rows, setup, n, SHARED)) for n in (1, 2, 4, 8)]
    return ", ".join(f"{n * rate:,.0f} with {n}" for n, rate in found if rate)


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    said = [
        Comparison(
            "003, Figure 13 (count views over one auxiliary table)",
            "a leap in view updates/s from one to two count views, since the auxiliary table is maintained only once; "
            "less with every further view",
            f"operations/s times the number of counts in one group: {_tried(rows, 'counts')}; against a group each "
            f"{_gains(rows, 'counts')}"
            if _gains(rows, "counts")
            else "",
            "The same: the counts have different keys, so what they share is the log, which is read once, and the old "
            "and new rows found in it, which is what the paper's auxiliary table holds",
        ),
        Comparison(
            "004, section 6 (PRE-AGGREGATION amortized over queries)",
            "several functions over one PRE-AGGREGATION view cost as much as one (under 1 %)",
            _gains(rows, "aggregates"),
            "The functions share one aggregation whose columns are merged. It is not free as in the paper: each view "
            "is a table of its own here, and min and max keep the values of each column",
        ),
        Comparison(
            "003, section 5.2, and 004, section 6 (REVERSE-JOIN amortized over joins)",
            "auxiliary tables of joins can be re-used by other joins; no figure",
            _gains(rows, "joins"),
            "Joins of the same sides by the same keys share the rows that are kept by join key, and where they ask "
            "for the same pairs also the pairs",
        ),
        Comparison(
            "003 and 004, Figure 5 (sum, min and join over one REVERSE-JOIN)",
            "the REVERSE-JOIN is updated once instead of three times; no figure",
            _gains(rows, "figure 5"),
            "Aggregates keep accumulators of their own instead of the rows by join key, so only the log, the old "
            "rows and the aggregation are shared here, not the REVERSE-JOIN",
        ),
    ]
    return [one for one in said if one.we]


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    for setup in SETUPS:
        views = _most(rows, setup.name)
        sizes = [_of(rows, setup.name, views, how, "state") for how in (SHARED, APART)]
        tables = [_of(rows, setup.name, views, how, "tables") for how in (SHARED, APART)]
        if all(sizes) and all(tables):
            found.append(
                f"{setup.name}, {views} views: {tables[0]:.0f} tables and {sizes[0]:,.1f} MB in one group, "
                f"{tables[1]:.0f} tables and {sizes[1]:,.1f} MB in a group each."
            )
    return found


def headline(rows: Sequence[Row]) -> str:
    views = _most(rows, "aggregates")
    shared, apart = _of(rows, "aggregates", views, SHARED), _of(rows, "aggregates", views, APART)
    if not shared or not apart:
        return ""
    return f"{views} aggregates of one table are maintained {shared / apart:.1f} times as fast together as apart"


EXPERIMENT = Experiment(
    name="sharing",
    title="Views that share pre-processing",
    text=(
        "The same views once in one group, where equal steps and tables are shared, and once in a group each, where "
        "nothing is. Everview has no switch that turns sharing off inside a group, so each group also reads the log "
        "and commits for itself, as separate systems would. In this process on one core, in epochs of 100,000 "
        "operations (15 % deletes, uniform keys), after 200,000 operations that are not timed; the best of two "
        "rounds of 200,000. *counts* are rows counted by different keys, *aggregates* eight functions by the same "
        "key, *joins* four views of one join, *figure 5* the join, sums and minimum of that figure. Tables are all "
        "that views and what is remembered for them are kept in."
    ),
    measure=measure,
    columns={
        "setup": "views of",
        "views": "views",
        "sharing": "in",
        "rate": "operations/s",
        "updates": "updates of views/s",
        "tables": "tables",
        "state": "MB of state",
    },
    plots=tuple(
        Plot(
            setup.name.replace(" ", ""),
            f"Operations/s by number of views: {setup.name}",
            "views",
            "rate",
            "sharing",
            kind="bars",
            where=lambda row, name=setup.name: row["setup"] == name,  # type: ignore[misc]
        )
        for setup in SETUPS
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
