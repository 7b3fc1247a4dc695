"""What sqlglot would log while it works for us.

Everything that is wrong with a text is said by the error that is raised, so
while a statement is read or checked sqlglot's warnings about it go nowhere; at other times, and
in other threads, its logger does what the application wants of it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

_AT_WORK: ContextVar[bool] = ContextVar("everview_reads_sql", default=False)


def _is_for_the_application(record: logging.LogRecord) -> bool:
    return not _AT_WORK.get()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let sqlglot log nothing inside."""
    logger = logging.getLogger("sqlglot")
    if _is_for_the_application not in logger.filters:
        logger.addFilter(_is_for_the_application)
    token = _AT_WORK.set(True)
    try:
        yield
    finally:
        _AT_WORK.reset(token)
