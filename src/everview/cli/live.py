"""``everview status --watch``: the status as it changes.

The status is redrawn each second on a screen of its own, and the terminal is as it was when
that ends.

What does not fit the screen is counted: views that are being built, that lack rows, or that change most come
first.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from everview.client.database import Database
    from everview.client.status import BuildState, GroupState, Status, ViewState

EVERY = 1.0
"""Seconds between two looks."""
_WIDE = 100
"""Columns of a terminal that shows all figures of views."""
_HEAD = 2
"""Lines of a table above its rows."""


def watch(db: Database, place: str) -> None:
    """Show the status until Ctrl-C or SIGTERM."""
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    with _ended_by_signals() as ended, Live(console=console, screen=True, auto_refresh=False) as live:
        while not ended.is_set():
            looked = time.monotonic()
            live.update(screen(db.status(), place, console.width, console.height), refresh=True)
            ended.wait(max(0.0, looked + EVERY - time.monotonic()))


@contextmanager
def _ended_by_signals() -> Iterator[threading.Event]:
    ended = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def screen(found: Status, place: str, width: int, height: int) -> RenderableType:
    """A status in so many columns and lines."""
    by = found.maintainer or "nobody at the moment"
    title = Text.assemble((place, "bold"), f" is maintained by {by}", f"   {time.strftime('%H:%M:%S')}")
    ends = Text(f"logs: {found.log}; Ctrl-C ends this", "dim", no_wrap=True, overflow="ellipsis")
    tables = [_groups(found)]
    if found.builds:
        tables.append(_builds(found.builds))
    parts: list[RenderableType] = [title, Text()]
    for table in tables:
        parts += [table, Text()]
    if found.unreadable:
        parts += [Text(f"{found.unreadable:,} log entries cannot be read", "red"), Text()]
    taken = len(parts) - len(tables) + sum(table.row_count + _HEAD for table in tables) + _HEAD + 1
    return Group(*parts, _views(found, width >= _WIDE, max(1, height - taken)), ends)


# ------------------------------------------------------------------ tables


def _groups(found: Status) -> Table:
    table = _table("group", "epoch", "lag", "behind", "taken in", "written", "at most", "stale", "predicted")
    for group in found.groups:
        table.add_row(
            group.name if group.kind == "continuous" else f"{group.name} ({group.kind})",
            f"{group.epoch:,}" + ("" if group.under_way is None else "…"),
            Text(_count(group.lag), "yellow" if group.lag else "green"),
            f"{group.behind:.1f} s" if group.lag else "",
            _rate(group.throughput),
            _rate(group.arrival),
            _rate(group.max_throughput),
            _seconds(group.staleness),
            _seconds(group.predicted),
        )
    return table


def _builds(builds: tuple[BuildState, ...]) -> Table:
    table = _table("building", "now", "tables", "", "to follow", left=("building", "now", ""))
    for build in builds:
        done, of = build.tables
        table.add_row(
            f"{', '.join(build.views)} for {build.target}",
            build.phase,
            f"{done} of {of}",
            ProgressBar(max(of, 1), done, 16),
            _count(build.lag),
        )
    return table


def _views(found: Status, wide: bool, most: int) -> Table:
    """At most so many rows; on a wide screen also what came and went since a view is there."""
    totals = ("came", "changed", "went") if wide else ()
    table = _table("view", "kind", "group", "state", "fresh", "changes", *totals, "quarantined")
    views = [(group, view) for group in found.groups for view in group.views]
    views.sort(key=lambda one: _order(one[1]))
    fit = len(views) if len(views) <= most else most - 1
    for group, view in views[:fit]:
        table.add_row(
            view.name,
            view.kind,
            group.name,
            Text(view.status, "green" if view.status == "live" else "yellow"),
            _freshness(group, view),
            _rate(view.rate),
            *(map(_count, (view.inserted, view.updated, view.deleted)) if wide else ()),
            Text(_count(view.quarantined), "red" if view.quarantined else ""),
        )
    if fit < len(views):
        table.add_row(Text(f"… {len(views) - fit:,} more", "dim"))
    return table


def _order(view: ViewState) -> tuple[bool, bool, float, str]:
    return view.status == "live", not view.quarantined, -view.rate, view.name


def _freshness(group: GroupState, view: ViewState) -> Text:
    """How old what the view does not show yet is."""
    if view.status != "live":
        return Text("not yet", "yellow")
    return Text("up to date", "green") if not group.lag else Text(f"{group.behind:.1f} s behind", "yellow")


def _table(*columns: str, left: tuple[str, ...] = ("group", "view", "kind", "state", "fresh")) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", no_wrap=True, overflow="ellipsis")
    return table


def _count(number: float) -> str:
    """A number in at most six characters: 99,999, then 123 k, 12.3 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= 100 * size or (number >= size and size > 1e3):
            return f"{number / size:.3g} {unit}" if number < 999.5 * size else f"{number / size:,.0f} {unit}"
    return f"{number:,.0f}"


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{_count(rate)}/s"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f} s"
