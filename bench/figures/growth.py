"""Growth: what a change costs while the base grows from ten thousand to ten million rows.

Maintained, a change costs what it touches; recomputed, it costs its share of everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from bench.report.experiment import Experiment, Found, Plot, Row, Setting
from bench.rows import Missing, number, row_of, times

OURS = "maintained"
THEIRS = "recomputed by DuckDB"
LMDB = "a put into plain LMDB"
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
SHOWN = ("q2", "q4")
"""The view that touches least of its state for a change, and the one that touches most."""


def measure(setting: Setting) -> Iterator[Found]:
    from bench import growing
    from bench.operators import VIEWS

    warm = setting.pick(growing.WARM, 0)
    for size in setting.pick(SIZES, (2_000, 10_000)):
        for view in SHOWN:
            query = VIEWS[view][view]
            cost = growing.recomputed(view, query, size, setting.seed)
            yield Found(_row(view, size, THEIRS, cost.microseconds, None), cost.wrong)
            cost = growing.maintained(view, query, size, setting.seed, warm)
            yield Found(_row(view, size, OURS, cost.microseconds, cost.pages), cost.wrong)
        cost = growing.plain_put(size, setting.seed, warm)
        yield Found(_row("", size, LMDB, cost.microseconds, cost.pages))


def _row(view: str, size: int, how: str, microseconds: float, pages: float | None) -> Row:
    return {
        "view": view,
        "size": size,
        "how": how,
        "line": f"{view}, {how}" if view else how,
        "microseconds": round(microseconds, 2),
        "pages": None if pages is None else round(pages, 1),
    }


def notes(rows: Sequence[Row]) -> list[str]:
    found = []
    sizes = sorted({int(number(row, "size")) for row in rows})
    with suppress(Missing, IndexError):
        for view in SHOWN:
            small, large = (row_of(rows, view=view, size=size, how=OURS) for size in (sizes[-2], sizes[-1]))
            plain, more = (row_of(rows, how=LMDB, size=size) for size in (sizes[-2], sizes[-1]))
            found.append(
                f"{view}: from {sizes[-2]:,} to {sizes[-1]:,} rows a change goes from {small['microseconds']} to "
                f"{large['microseconds']} µs ({times(number(large, 'microseconds') / number(small, 'microseconds'))}) "
                f"and from {small['pages']} to {large['pages']} pages written; a put into plain LMDB from "
                f"{plain['microseconds']} to {more['microseconds']} µs."
            )
    for view in SHOWN:
        with suppress(Missing, IndexError):
            ours, theirs = (row_of(rows, view=view, size=sizes[0], how=how) for how in (OURS, THEIRS))
            ratio = number(ours, "microseconds") / number(theirs, "microseconds")
            if ratio > 1:
                found.append(
                    f"{view}: over {sizes[0]:,} rows recomputation is cheaper, {times(ratio)}: an epoch has a price "
                    "however small the table is."
                )
    return found


def headline(rows: Sequence[Row]) -> str:
    sizes = sorted({int(number(row, "size")) for row in rows})
    said = []
    for view in SHOWN:
        with suppress(Missing, IndexError):
            ours, theirs = (row_of(rows, view=view, size=sizes[-1], how=how) for how in (OURS, THEIRS))
            ratio = number(theirs, "microseconds") / number(ours, "microseconds")
            said.append(f"{view} {ours['microseconds']} µs, recomputed {times(ratio)} that")
    return f"A change over {sizes[-1]:,} rows: {'; '.join(said)}" if said else ""


EXPERIMENT = Experiment(
    name="growth",
    title="What a change costs while the base grows",
    text=(
        "Tables of more and more rows get changes of random rows, a thousand at a time. Maintained: an epoch in one "
        "process, from reading the log to the commit. Recomputed: DuckDB applies the same thousand changes to its own "
        "tables and recomputes the view. Both on one core, in processor time for each change, the median of 15 epochs. "
        "Groups have ten rows at every size; with a change of q4, a join, five rows of the view come and five go. "
        "The larger the tables, the fewer changes of an epoch meet in a page of the store's B-trees; that is the price "
        "of any B-tree, so puts into a plain LMDB file of as many records stand beside it, and the pages written for "
        "each change."
    ),
    measure=measure,
    columns={
        "view": "view",
        "size": "rows",
        "how": "how",
        "microseconds": "µs for a change",
        "pages": "pages written",
    },
    plots=(
        Plot("cost", "Processor time for a change, µs", "size", "microseconds", by="line", log_x=True, log_y=True),
        Plot(
            "pages",
            "Pages written for a change",
            "size",
            "pages",
            by="line",
            log_x=True,
            where=lambda row: row["how"] != THEIRS,
        ),
    ),
    notes=notes,
    headline=headline,
)
