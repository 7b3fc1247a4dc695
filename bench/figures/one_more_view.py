"""One more view: what CREATE, DROP and the first epoch after them cost when there are many views already.

Users create views one at a time, for each tenant, so the n-th view must cost what the first did.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from bench.report.experiment import Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, row_of
from bench.workloads.synthetic import BT1, Stream, Writer

if TYPE_CHECKING:
    import everview

SIZES = (100, 800, 3_200, 12_800)
KEYS = 1_000
TIMES = 40
"""Views that are created, and dropped, one at a time."""


def measure(setting: Setting) -> Iterator[Found]:
    import everview

    path = setting.folder / "store"
    times = setting.pick(TIMES, 6)
    with everview.open(path) as db:
        db.create_table("bt1", BT1)
        writer = Writer(db, [Stream("bt1", setting.pick(KEYS, 200), 10, setting.seed, values=SIZES[-1])], 100)
        writer.write(setting.pick(KEYS, 200))
        there = 0
        for size in setting.pick(SIZES, (10, 40)):
            db.sql("; ".join(map(_create, range(there, size))))
            there = size
            db.sql(_create(size))  # another process may have created all others
            creating: list[float] = []
            first: list[float] = []
            dropping: list[float] = []
            after: list[float] = []
            for view in range(size + 1, size + 1 + times):
                creating.append(_timed(partial(db.sql, _create(view))))
                first.append(_epoch(db, writer))
            differs = _wrong(db, [*range(0, there, max(1, there // 20)), *range(size, size + 1 + times)])
            for view in range(size, size + 1 + times):
                dropping.append(_timed(partial(_drop, db, view)))
                after.append(_epoch(db, writer))
            row: Row = {
                "views": size,
                "create": _median(creating),
                "epoch": _median(first),
                "drop": _median(dropping),
                "after": _median(after),
            }
            yield Found(row, differs or _wrong(db, range(0, there, max(1, there // 20))))


def _create(view: int) -> str:
    return f"CREATE MATERIALIZED VIEW v{view} AS SELECT k, c2 FROM bt1 WHERE c2 = {view}"


def _drop(db: everview.Database, view: int) -> None:
    """What is stored of the view is gone when this returns."""
    db.sql(f"DROP MATERIALIZED VIEW v{view}")
    db.flush()


def _epoch(db: everview.Database, writer: Writer) -> float:
    writer.write(1)
    return _timed(db.flush)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _median(seconds: Sequence[float]) -> float:
    return round(1000 * statistics.median(seconds), 2)


def _wrong(db: everview.Database, views: Sequence[int]) -> str:
    """Which of these views differ from their queries over the base rows."""
    for view in views:
        shown, said = (
            sorted(db.sql(f"SELECT k, c2 FROM {what}").rows()) for what in (f"v{view}", f"bt1 WHERE c2 = {view}")
        )
        if shown != said:
            return f"v{view} has {len(shown)} rows, its query {len(said)}"
    return ""


# ------------------------------------------------------------------ telling


def notes(rows: Sequence[Row]) -> list[str]:
    with suppress(Missing, ValueError):
        least, most = (min(number(row, "views") for row in rows), max(number(row, "views") for row in rows))
        few, many = (row_of(rows, views=size) for size in (least, most))
        return [
            f"From {int(least):,} to {int(most):,} views a CREATE goes from {few['create']} to {many['create']} ms, a "
            f"DROP with all that follows from it from {few['drop']} to {many['drop']} ms. The first epoch after a "
            f"CREATE goes from {few['epoch']} to {many['epoch']} ms: the family's constants are made a table again",
        ]
    return []


def headline(rows: Sequence[Row]) -> str:
    with suppress(Missing, ValueError):
        most = max(number(row, "views") for row in rows)
        found = row_of(rows, views=most)
        return f"One more view than {int(most):,}: {found['create']} ms to create, {found['drop']} ms to drop"
    return ""


EXPERIMENT = Experiment(
    name="one_more_view",
    title="One more view",
    text=(
        "Views over one table of 1,000 rows that differ in constants. The first are created by one text; then views "
        "are created one statement at a time, and an operation is written and made visible after each; then they are "
        "dropped again, one at a time. Medians, in this process, on one core. A CREATE reads and checks the text, "
        "plans it, tries it over a sample, records it, builds the view from the table, and joins it with the others; "
        "a DROP is timed until nothing of the view is stored. The rows of the new views and of a sample of the others "
        "are compared with their queries."
    ),
    measure=measure,
    columns={
        "views": "views there are",
        "create": "ms to create one",
        "epoch": "ms of the first epoch after",
        "drop": "ms to drop one",
        "after": "ms of the first epoch after it",
    },
    plots=(
        Plot("create", "Milliseconds to create one more view", "views", "create", log_x=True),
        Plot("epoch", "Milliseconds of the first epoch after a view was created", "views", "epoch", log_x=True),
    ),
    notes=notes,
    headline=headline,
)
