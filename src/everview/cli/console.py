"""Where commands print.

What was asked for goes to standard output, what went wrong and what a user should know
beside it to standard error, in colours where that is a terminal.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from everview.errors import EverviewError


def console(stream: TextIO | None = None) -> Console:
    """For standard output, unless told otherwise: text stays as it is, and lines as long as they are."""
    from rich.console import Console

    return Console(file=stream or sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)


def counted(number: int, noun: str) -> str:
    """A number of things: 1 row, 2,000 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def show_error(error: EverviewError) -> None:
    """What went wrong, why, and what to do; nothing where nobody can read it."""
    with contextlib.suppress(OSError):
        console(sys.stderr).print(f"error: {error}", style="red")
