"""Bars for what takes a while.

A bar is drawn on standard error where that is a terminal, and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Advance: TypeAlias = Callable[[int, int], None]
"""Called with how much is done, and with how many rows that is."""


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Advance]:
    """A bar that is gone at the end."""
    if not sys.stderr.isatty():
        yield lambda done, rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %" if total else ""),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr, emoji=False),
        transient=True,
    ) as progress:
        task = progress.add_task(title, total=total or None, rows=0)
        yield lambda done, rows: progress.update(task, completed=done, rows=rows)
