"""Errors for names that a query uses and nobody defined.

Such an error is an :class:`UnknownObjectError` like any other of its kind, and
its message and detail show the place in the text as those of statements do.
"""

from __future__ import annotations

from everview.errors import UnknownObjectError
from everview.sql.positions import excerpt, position


def unknown_at(
    text: str, offset: int | None, what: str, *, width: int = 1, hint: str | None = None
) -> UnknownObjectError:
    if offset is None:
        return UnknownObjectError(what, hint=hint)
    return UnknownObjectError(
        f"{what} at {position(text, offset)}", detail=f"see the mark\n{excerpt(text, offset, width)}", hint=hint
    )
