"""Uneven updates: from evenly over all rows to a single row, and from many groups to one.

The same number of updates is written with keys drawn more and more unevenly, and what is measured
is how fast they are written, how fast the views take them in, and how many updates of views are left of them.

Every update moves its row to another group, so the view key changes each time: what paper 000 finds hard.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import everview
from bench.report.experiment import Comparison, Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, row_of, times
from bench.workloads.filled import filled
from bench.workloads.synthetic import UNIFORM, Skew, Stream, Zipf
from everview.client.table_handles import TableHandle

KEYS = 100_000
GROUPS = 10_000
MANY = 1_000
"""Rows of a batch."""
SERVERS = 2
VIEWS = ("q2", "q3")
EVEN = "all rows evenly"
HOT = "one row"
ONE_GROUP = "all rows evenly, in one group"


@dataclass(frozen=True)
class Load:
    """How updates are drawn."""

    name: str
    width: int | None = None
    """So many rows, evenly; without it all rows."""
    skew: Skew = UNIFORM
    """Of rows."""
    groups: int = GROUPS
    of_groups: Skew = UNIFORM
    """Skew of groups."""

    def batches(self, keys: int, seed: int, operations: int) -> list[pa.Table]:
        """Updates, in batches."""
        rows = Stream("bt1", min(self.width or keys, keys), self.groups, seed, skew=self.skew)
        groups = Stream("bt1", self.groups, 1, seed, skew=self.of_groups)
        rng = np.random.default_rng([seed, 2])
        found = []
        for _ in range(0, operations, MANY):
            table = rows.rows(rng, rows.drawn(rng, MANY))
            drawn = pa.array(groups.drawn(rng, MANY).astype(np.int32))
            found.append(table.set_column(table.schema.get_field_index("c1"), "c1", drawn))
        return found


LOADS = (
    Load(EVEN, KEYS),
    Load("10,000 rows", 10_000),
    Load("1,000 rows", 1_000),
    Load("100 rows", 100),
    Load("10 rows", 10),
    Load(HOT, 1),
    Load("Zipf 1.0", skew=Zipf(1.0)),
    Load("Zipf 1.5", skew=Zipf(1.5)),
    Load("all rows evenly, Zipf 1.0 over groups", of_groups=Zipf(1.0)),
    Load(ONE_GROUP, groups=1),
)
QUICK = (EVEN, HOT, "Zipf 1.0")


class Writes:
    """Batches that are written when it is called, and the seconds that took."""

    def __init__(self, table: TableHandle, batches: Sequence[pa.Table]) -> None:
        self._table = table
        self._batches = batches
        self.seconds = 0.0

    def __call__(self) -> None:
        began = time.perf_counter()
        for rows in self._batches:
            self._table.put_many(rows)
        self.seconds = time.perf_counter() - began


def measure(setting: Setting) -> Iterator[Found]:
    for name in setting.pick(VIEWS, ("q2",)):
        yield from of_view(setting, name)


def of_view(setting: Setting, name: str) -> Iterator[Found]:
    """One view under all loads."""
    from bench.epochs import Turns, wrong
    from bench.report.sessions import session

    keys, operations = setting.pick((KEYS, 400_000), (5_000, 10_000))
    path = setting.folder / name
    db, _ = filled(path, name, keys, setting.seed)
    with db:
        table = db.table("bt1")
        with Turns(path, db, session(), per_epoch=operations // 8) as turns:
            if not setting.quick:
                turns.take(Writes(table, LOADS[0].batches(keys, setting.seed + 1, operations)), SERVERS)  # warm-up
            for load in LOADS:
                if setting.quick and load.name not in QUICK:
                    continue
                write = Writes(table, load.batches(keys, setting.seed, operations))
                before = _done(db)
                pace = turns.take(write, SERVERS)
                changes, updates = (now - then for now, then in zip(_done(db), before, strict=True))
                row: Row = {
                    "view": name,
                    "updated": load.name,
                    "width": None if load.width is None else min(load.width, keys),
                    "operations/s": round(pace.rate),
                    "written": round(operations / write.seconds),
                    "changes": round(1000 * changes / operations, 3),
                    "view updates": round(1000 * updates / operations, 3),
                }
                yield Found(row, wrong=wrong(db, name), profile=pace.profile)


def _done(db: everview.Database) -> tuple[int, int]:
    """Changes of base rows and updates of views, of all epochs."""
    ((changes, updates),) = db.sql(
        "SELECT sum(changes), sum(inserted + updated + deleted) FROM everview.groups WHERE group_name = 'main'"
    ).rows()
    return int(changes), int(updates)


# ------------------------------------------------------------------ what to say


def comparisons(rows: Sequence[Row]) -> list[Comparison]:
    said = []
    for sentence in (_ranges, _zipf, _contention, _minimum, _balance):
        with suppress(Missing):
            said.append(sentence(rows))
    return said


def _rate(rows: Sequence[Row], view: str, updated: str) -> float:
    return number(row_of(rows, view=view, updated=updated), "operations/s")


def _ranges(rows: Sequence[Row]) -> Comparison:
    even, hot = row_of(rows, view="q2", updated=EVEN), row_of(rows, view="q2", updated=HOT)
    return Comparison(
        "000, Figure 8",
        "the narrower the range of rows that clients update, from 100,000 rows to one, the fewer updates per second: "
        "significantly fewer, since chains of stale rows become long",
        f"{number(even, 'operations/s'):,.0f} operations/s evenly over all rows, {number(hot, 'operations/s'):,.0f} "
        f"where all are of one row ({times(number(hot, 'operations/s') / number(even, 'operations/s'))} as many); "
        f"written are {number(even, 'written'):,.0f} and {number(hot, 'written'):,.0f} rows/s",
        "there are no chains: the writes of a row in one epoch become at most one row that goes and one that comes. "
        f"Of 1,000 operations {number(even, 'view updates'):,.0f} updates of the view are left evenly, and "
        f"{number(hot, 'view updates'):.2g} with one row",
    )


def _zipf(rows: Sequence[Row]) -> Comparison:
    even, zipf = _rate(rows, "q2", EVEN), _rate(rows, "q2", "Zipf 1.0")
    written = [number(row_of(rows, view="q2", updated=name), "written") for name in (EVEN, "Zipf 1.0")]
    return Comparison(
        "003, Figure 11",
        "creating tables and views took much longer with keys from a Zipf distribution than from a uniform one, and "
        "more view managers helped",
        f"with Zipf 1.0 the views take in {zipf:,.0f} operations/s, evenly {even:,.0f}: {times(zipf / even)} as "
        f"many; written are {written[1]:,.0f} and {written[0]:,.0f} rows/s",
        "their hot keys are on one region server and one view manager, one operation after another; ours are "
        "condensed where the log is read, before anything is sent to a view server",
    )


def _contention(rows: Sequence[Row]) -> Comparison:
    many, one = _rate(rows, "q2", EVEN), _rate(rows, "q2", ONE_GROUP)
    return Comparison(
        "002, Figures 2 and 3",
        "with few records in the SUM view, view managers contend for them: throughput falls when more managers are "
        "added, while with thousands of records there is next to no contention",
        f"with {GROUPS:,} groups {many:,.0f} operations/s, with a single one {one:,.0f} ({times(one / many)} as "
        "many), on two view servers",
        "a record has one owner in an epoch, so nobody contends; and partial sums are made where the log is read, so "
        "a group costs the owner as many additions as there are readers, however many operations it had",
    )


def _minimum(rows: Sequence[Row]) -> Comparison:
    even, zipf, one = (_rate(rows, "q3", name) for name in (EVEN, "Zipf 1.0", ONE_GROUP))
    return Comparison(
        "002, Figures 4 and 7",
        "a MIN view is maintained as fast as others where values are uniform or normal; under a Zipf distribution "
        "the minimum often goes and is searched in the base table, and more managers do not help. Counting how often "
        "the minimum occurs makes it scale again, at a lower level",
        f"least and greatest values (q3): {even:,.0f} operations/s evenly, {zipf:,.0f} with Zipf 1.0, {one:,.0f} "
        "with all rows in one group",
        "all values of a group are kept in order, so the next one is found without the base table, whatever goes. "
        "What a change costs grows with the logarithm of its group",
    )


def _balance(rows: Sequence[Row]) -> Comparison:
    even, zipf = _rate(rows, "q2", EVEN), _rate(rows, "q2", "Zipf 1.5")
    hot = _rate(rows, "q2", HOT)
    return Comparison(
        "002, Figure 8",
        "with flow control an unbalanced load levels off at 1,500 updates/s, where a balanced one grows with the "
        "number of view managers",
        f"evenly {even:,.0f} operations/s, with Zipf 1.5 {zipf:,.0f}, all in one row {hot:,.0f}",
        "here too a log is read by one task, so a single row keeps one task busy and leaves the other idle; that costs "
        + ("less than condensing saves" if hot >= even else "more than condensing saves"),
    )


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    for view in VIEWS:
        mine = [row for row in rows if row["view"] == view]
        with suppress(Missing):
            even = _rate(mine, view, EVEN)
            slow = [row for row in mine if number(row, "operations/s") < 0.9 * even]
            if slow:
                what = ", ".join(f"{row['updated']} {number(row, 'operations/s'):,.0f}" for row in slow)
                found.append(f"Slower than evenly over all rows ({even:,.0f} operations/s), in {view}: {what}.")
            else:
                found.append(f"In {view} no load is slower than the even one by more than a tenth.")
    return found


def headline(rows: Sequence[Row]) -> str:
    try:
        even, zipf, hot = (_rate(rows, "q2", name) for name in (EVEN, "Zipf 1.0", HOT))
    except Missing:
        return ""
    return (
        f"{even:,.0f} operations/s evenly, {zipf:,.0f} with Zipf 1.0, {hot:,.0f} where every update is of one row: "
        "the writes of a row become one change"
    )


EXPERIMENT = Experiment(
    name="skew",
    title="Uneven updates, and a hot row",
    text=(
        "A table of 100,000 rows in 10,000 groups gets 400,000 updates, in batches of 1,000, each of which moves its "
        "row to another group: evenly over all rows, over fewer and fewer of them down to a single one, drawn from "
        "Zipf distributions, and evenly but with uneven groups. The logs are filled first; then the pipeline on "
        "Spark takes them in epochs of 50,000 with two view servers, and operations/s is from the first commit to "
        "the last, after one such run that does not count. Changes are rows of the base table that came or went "
        "after condensing, and view updates rows of the view that were written, for 1,000 operations."
    ),
    measure=measure,
    columns={
        "view": "view",
        "updated": "updated",
        "width": "rows that are updated",
        "operations/s": "operations/s",
        "written": "written, rows/s",
        "changes": "changes of 1,000 operations",
        "view updates": "view updates of 1,000 operations",
    },
    plots=(
        Plot(
            "range",
            "Operations/s taken in, by how many rows the updates fall on",
            x="width",
            y="operations/s",
            by="view",
            log_x=True,
            where=lambda row: row.get("width") is not None,
        ),
        Plot("skew", "Operations/s taken in, by distribution", x="updated", y="operations/s", by="view", kind="bars"),
    ),
    comparisons=comparisons,
    notes=notes,
    headline=headline,
)
