"""How the demonstration is shown.

Events are lines that stay. The state of the views is a table that a terminal updates twice
a second; without a terminal it is a line every few seconds.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from everview.cli.console import console
from everview.cli.demo.shop import VIEWS
from everview.client.status import GroupState

EVERY = 2.0
"""Seconds between two lines where there is no terminal."""


@dataclass(frozen=True)
class Look:
    """How everything is at one moment."""

    seconds: float
    phase: str
    operations: int
    """Written since the writer began."""
    group: GroupState
    rows: Mapping[str, int]
    """Of each view, all at one epoch."""
    snapshots: int
    disagreed: int


class Screen(AbstractContextManager["Screen"]):
    """Where the demonstration is shown; plain lines unless there is a terminal."""

    def __init__(self) -> None:
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False) if sys.stdout.isatty() else None
        self._shown = -math.inf

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str, style: str | None = None) -> None:
        """A line that stays."""
        self._console.print(text, style=style)
        self._console.file.flush()

    def show(self, look: Look) -> None:
        """How it is now."""
        if self._live is not None:
            self._live.update(Group(*_picture(look)), refresh=True)
        elif time.monotonic() - self._shown >= EVERY:
            self._shown = time.monotonic()
            self.say(line(look))


def line(look: Look) -> str:
    """A look in one line."""
    rows = ", ".join(f"{name} {count:,}" for name, count in look.rows.items())
    group = look.group
    return (
        f"{look.seconds:5.1f} s  {look.phase}: epoch {group.epoch}, {behind(group)}; {look.operations:,} written, "
        f"{group.throughput:,.0f} operations/s; rows: {rows}"
    )


def behind(group: GroupState) -> str:
    """How fresh the views are."""
    return f"{group.lag:,} operations, {group.behind:.1f} s behind" if group.lag else "up to date"


def _picture(look: Look) -> tuple[Text | Table, ...]:
    group = look.group
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("view")
    table.add_column("what it is", style="dim")
    for name in ("rows", "changes", "changes/s", "behind"):
        table.add_column(name, justify="right")
    for view in VIEWS:
        state = next(one for one in group.views if one.name == view.name)
        changes = state.inserted + state.updated + state.deleted
        fresh = f"{group.behind:.1f} s" if group.lag else "0 s"
        counts = (f"{look.rows[view.name]:,}", f"{changes:,}", f"{state.rate:,.0f}")
        table.add_row(view.name, view.kind, *counts, fresh)
    shown = "" if group.staleness is None else f", a write is shown after {group.staleness:.2f} s"
    agreed = look.snapshots - look.disagreed
    return (
        Text(f"{look.seconds:5.1f} s  {look.phase}", style="bold"),
        table,
        Text(f"epoch {group.epoch}: {behind(group)}{shown}"),
        Text(f"{look.operations:,} operations written; {group.throughput:,.0f} a second maintained"),
        Text(f"snapshots in which all views agree: {agreed:,} of {look.snapshots:,}"),
    )
