"""Spark's Python workers, ended without a word.

When Spark closes the connection to a worker (its task was cancelled, or it was idle for
a minute), the worker ends, and prints no traceback about it.

Spark's own loop answers a closed connection with an error message, which over a unix domain socket
fails with a broken pipe, and prints that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from socket import socket
from types import TracebackType
from typing import Any

_Loop = Callable[[socket, bool], int]


def end_quietly(daemon: Any) -> None:
    """Replace the ``worker`` of Spark's daemon, in a process that it has forked or is about to fork."""
    loop: _Loop = daemon.worker

    def worker(connection: socket, authenticated: bool) -> int:
        try:
            return loop(connection, authenticated)
        except BrokenPipeError:
            os._exit(1)

    daemon.worker = worker


def settle_in() -> None:
    """Called wherever Spark loads code of ours: where that is a worker, it will end quietly."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    name = None if spec is None else spec.name
    if name == "pyspark.daemon":
        end_quietly(main)
    elif name == "pyspark.sql.streaming.python_streaming_source_runner":
        sys.excepthook = _unless_closed


def _unless_closed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The process of a source ends when Spark closes its connection; all other errors are printed as usual."""
    if not issubclass(kind, BrokenPipeError):
        sys.__excepthook__(kind, error, trace)
