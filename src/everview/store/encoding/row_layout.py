"""Where the parts of a record lie.

A record is a null bitmap, then one fixed-width slot per column, then the
bytes of the columns whose values differ in length; a :class:`Layout` knows the offsets.

A slot holds the value itself, or for a column of differing length a u32: where the
column's bytes end, counted from the end of the slots. They begin where those of the
column before end. The whole format is described in :mod:`everview.store.encoding.rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.change.types import Type
from everview.errors import InputError

END_WIDTH = 4
"""Bytes of an end offset, and of the count of a list."""

VAR_LIMIT = (1 << 32) - 1
"""What an end offset can count."""


class Broken(ValueError):
    """Stored bytes are not what they should be; the text is the reason. Callers wrap it."""


class NoPythonValue(ValueError):
    """Stored bytes are fine, but Python has no value for them (a date after the year 9999)."""


class Layout:
    """The layout of a record: offsets count from the first byte of its bitmap."""

    __slots__ = ("bitmap", "size", "slots", "types", "variable")

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        self.bitmap = bitmap_size(len(self.types))
        self.slots: list[int] = []
        """The offset of each column's slot."""
        at = self.bitmap
        for sql in self.types:
            self.slots.append(at)
            at += slot_width(sql)
        self.size = at
        """Bytes before the variable part."""
        self.variable = [i for i, sql in enumerate(self.types) if sql.width is None]
        """The columns whose values differ in length, in order."""


def bitmap_size(bits: int) -> int:
    return (bits + 7) // 8


def slot_width(sql: Type) -> int:
    """Bytes a value takes in a slot or in the slots of a list."""
    return END_WIDTH if sql.width is None else sql.width


def too_long() -> InputError:
    return InputError("a row is too long", detail="its text, blobs and lists take more than 4 GiB")
