"""Where commands print.

What was asked for goes to standard output, what went wrong and what a user should know
beside it to standard error, in colours and with a bar for what takes a while where that is a terminal.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

    from everview.errors import EverviewError


Advance: TypeAlias = Callable[[int, int], None]
"""Called with the amount that is done, and with the number of rows."""


def console(stream: TextIO | None = None) -> Console:
    """For standard output, unless another is given. Text and the length of lines do not change."""
    from rich.console import Console

    return Console(file=stream or sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """A number of things: 1 row, 2,000 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def show_error(error: EverviewError) -> None:
    """What went wrong, why, and what to do; nothing if the output is closed."""
    with contextlib.suppress(OSError):
        console(sys.stderr).print(f"error: {error}", style="red")


@contextlib.contextmanager
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
