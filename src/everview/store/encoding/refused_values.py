"""Refused values: what a checker raises, and the words for it.

A checker (:mod:`everview.store.encoding.values`) raises :class:`Refused` with the reason, and its caller
adds the table, the column and the key.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable

from everview.change.types import Type

Checker = Callable[[object], object]


class Refused(ValueError):
    """A value does not fit its type; the text is the reason. Callers wrap it."""


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def shown(value: object) -> str:
    """A value as short text for a message."""
    try:
        return _REPR.repr(value)
    except Exception:  # a repr that fails must not hide the error being reported
        return a(type(value).__name__)


def a(noun: object) -> str:
    return f"{'an' if str(noun)[0] in 'aeioAEIO' else 'a'} {noun}"


def wrong_class(value: object, sql: Type) -> Refused:
    """For a value of a Python class that the type does not take."""
    if value is None:
        return Refused(f"null is not a value of {sql}")
    return Refused(f"{a(type(value).__name__)} is not {a(sql)}")
