"""Standard input, output and error as the command found them.

A stream that is closed when the command starts is not mistaken for a file that it opens later. A failure
to print is an error in one line, never a traceback.
"""

from __future__ import annotations

import contextlib
import os
import sys

_CLOSED = ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))
"""How a closed descriptor is opened: reading standard input and writing standard output fail, as they would."""


def fill_closed_streams() -> None:
    """Take the numbers of closed descriptors, so that no file of the store gets one of them."""
    for number, flags in _CLOSED:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def flush_output() -> OSError | None:
    """Flush standard output; returns the error if that failed. The interpreter does not try again when it ends."""
    failure = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            failure = failure or error
            _discard(stream.fileno())
        except ValueError:  # the stream was closed
            continue
    return failure


def _discard(number: int) -> None:
    """Discard the remaining output."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
