"""Where something stands in a text of SQL, and the errors that show it.

A place is an offset into the text as the user wrote it; line, column and the
excerpt with a caret are worked out only when an error is made.

Trees carry offsets in ``node.meta["start"]`` of names, literals and functions; a node that
has none of its own stands where the first of its parts does::

    SELECT a + foo(b)
           ^   ^   ^        the sum stands at its first part, the call at its name

A tree without any (``SELECT ()``) stands where its statement begins, which
is in ``meta["statement"]`` of a query.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from everview.errors import SqlError, UnknownObjectError

_AROUND = 60
"""Characters of a line that an excerpt shows on each side of its caret."""


@dataclass(frozen=True, order=True)
class TextPosition:
    """A line and a column, both from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


START = TextPosition(1, 1)

STATEMENT = "statement"
"""The mark in ``meta`` of a query: the offset at which its statement begins."""


def position(text: str, offset: int) -> TextPosition:
    """The line and column of an offset; one past the end is the end."""
    offset = max(0, min(offset, len(text)))
    return TextPosition(text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1)


def offset_of(node: exp.Expr) -> int | None:
    """Where a node stands: at its own offset, else that of its first part, else that of
    what it is a part of, else where its statement begins."""
    own = node.meta.get("start")
    if own is not None:
        return int(own)
    parts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    if parts:
        return int(min(parts))
    if STATEMENT in node.meta or node.parent is None:
        return node.meta.get(STATEMENT)
    return offset_of(node.parent)


def position_of(node: exp.Expr, text: str) -> TextPosition | None:
    """The line and column of a node in the text that it was read from."""
    offset = offset_of(node)
    return None if offset is None else position(text, offset)


def excerpt(text: str, offset: int, width: int = 1) -> str:
    """The line of the text around an offset, with carets below ``width`` characters of it."""
    offset = max(0, min(offset, len(text)))
    begin = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    left, right = max(begin, offset - _AROUND), min(end, offset + _AROUND)
    before, after = "…" if left > begin else "", "…" if right < end else ""
    line = "".join(char if char.isprintable() else " " for char in text[left:right])
    carets = "^" * max(1, min(width, right - offset))
    return f"    {before}{line}{after}\n    {' ' * (len(before) + offset - left)}{carets}"


def error_at(
    kind: type[SqlError],
    text: str,
    offset: int | None,
    what: str,
    *,
    width: int = 1,
    why: str | None = None,
    hint: str | None = None,
) -> SqlError:
    """An error with what is wrong, and a mark where."""
    if offset is None:
        return kind(what, detail=why, hint=hint)
    at = position(text, offset)
    detail = f"{why or 'see the mark'}\n{excerpt(text, offset, width)}"
    return kind(f"{what} at {at}", detail=detail, hint=hint, line=at.line, column=at.column)


def unknown_at(
    text: str, offset: int | None, what: str, *, width: int = 1, hint: str | None = None
) -> UnknownObjectError:
    """The error for a name that a query uses and no table, view, column or function has: its message and detail show
    the place as those of statements do."""
    if offset is None:
        return UnknownObjectError(what, hint=hint)
    return UnknownObjectError(
        f"{what} at {position(text, offset)}", detail=f"see the mark\n{excerpt(text, offset, width)}", hint=hint
    )


@contextlib.contextmanager
def otherwise_at(text: str, offset: int | None) -> Iterator[None]:
    """Errors made inside that name no place of their own get this one."""
    try:
        yield
    except SqlError as error:
        if error.line:
            raise
        raise error_at(type(error), text, offset, error.message, why=error.detail, hint=error.hint) from None
