"""One component of a key, as bytes, one value at a time.

The bytes of a component order as its values do and mark where they end, so
components can simply be written one after the other.

- A component that may be null begins with a marker: 00 for null, and nothing follows, or
  01 and the value. Nulls come first.
- Fixed-width values are the words of :mod:`everview.store.encoding.key_words`.
- Text, bytes, the zeros and ones of a BIT and DuckDB's bytes of a BIGNUM end with 00 00, and a 00 inside is written
  00 FF: the end orders before any continuation, and the first 00 00 is the end. Where nothing can follow (the last,
  ascending component of a key that stands alone) they are written as they are.
- A descending component has every byte inverted, its marker and its end too.

For example VARCHAR, then a BIGINT that may be null and descends::

    ("ab", 1)      61 62 00 00  FE 7F FF FF FF FF FF FF FE
    ("ab", NULL)   61 62 00 00  FF
    ("ab\\0", 1)    61 62 00 FF 00 00  FE 7F FF FF FF FF FF FF FE
"""

from __future__ import annotations

import struct
from typing import Any

from everview.change.schema import KeyPart
from everview.change.types import FLOATS, TEXTS, Kind
from everview.store.encoding import bignums
from everview.store.encoding.key_words import words_of
from everview.store.encoding.values import Refused, checker

INVERT = bytes(255 - byte for byte in range(256))
END = b"\x00\x00"
ZERO, ESCAPED = b"\x00", b"\x00\xff"
NULL, PRESENT = 0, 1
"""Markers of a component that may be null, before inversion."""

_FORMAT = {1: "B", 2: "H", 4: "I", 8: "Q"}


def struct_of(widths: tuple[int, ...]) -> struct.Struct:
    """Unsigned words of these widths, big-endian and without gaps."""
    return struct.Struct(">" + "".join(_FORMAT[width] for width in widths))


class NullRefused(Refused):
    """Null in a component that cannot be null."""


class Component:
    """One component: its part of the definition, and how it stands in the key.

    ``open_ended`` says that it is text to which the key's end is the end."""

    def __init__(self, part: KeyPart, *, last: bool, allow_nan: bool) -> None:
        self.part = part
        self.words = words_of(part.type)
        self.open_ended = last and self.words is None and not part.descending
        self.refuses_nan = part.type.kind in FLOATS and not allow_nan
        self._is_bits = part.type.kind is Kind.BIT
        self._is_bignum = part.type.kind is Kind.BIGNUM
        self.is_text = part.type.kind in TEXTS or self._is_bits
        self._check = checker(part.type)
        self._struct = struct_of(self.words.widths if self.words else ())

    @property
    def width(self) -> int | None:
        """The number of bytes in the key, or None where keys differ in it."""
        return self.words.width if self.words and not self.part.nullable else None

    def encode(self, value: object) -> bytes:
        """The bytes of a Python value; raises Refused."""
        if value is None:
            if not self.part.nullable:
                raise NullRefused("null in a key")
            coded = bytes([NULL])
        else:
            coded = self._encode_present(self._check(value))
            if self.part.nullable:
                coded = bytes([PRESENT]) + coded
        return coded.translate(INVERT) if self.part.descending else coded

    def _encode_present(self, value: Any) -> bytes:
        if self.words:
            if self.refuses_nan and value != value:
                raise Refused("NaN in a key: it equals nothing, so no row could be found by it")
            return self._struct.pack(*self.words.lower(value))
        if self._is_bignum:
            value = bignums.to_bytes(value)
        text: bytes = value.encode() if self.is_text else value
        return text if self.open_ended else text.replace(ZERO, ESCAPED) + END

    def decode(self, data: bytes, at: int) -> tuple[object, int]:
        """The value whose bytes begin at a position, and where the next component begins.
        Raises ValueError where the bytes are damaged, OverflowError where Python has no such
        value."""
        if self.part.nullable:
            if at >= len(data):
                raise ValueError("the bytes end before the marker")
            marker = data[at] ^ 255 if self.part.descending else data[at]
            at += 1
            if marker == NULL:
                return None, at
            if marker != PRESENT:
                raise ValueError(f"{marker:02X} is not a marker")
        if self.words:
            end = at + self._struct.size
            if end > len(data):
                raise ValueError("the bytes end within the value")
            coded = data[at:end]
            return self.words.lift(self._struct.unpack(coded.translate(INVERT) if self.part.descending else coded)), end
        if self.open_ended:
            return self._text(data[at:]), len(data)
        coded = data[at:].translate(INVERT) if self.part.descending else data[at:]
        end = coded.find(END)
        if end < 0:
            raise ValueError("the text has no end")
        body = coded[:end]
        if body.count(ZERO) != body.count(ESCAPED):
            raise ValueError("the text has a 00 that is not escaped")
        return self._text(body.replace(ESCAPED, ZERO)), at + end + len(END)

    def _text(self, held: bytes) -> object:
        if self._is_bits and (not held or held.strip(b"01")):
            raise ValueError("the text is not one or more zeros and ones")
        if self._is_bignum:
            return bignums.from_bytes(held)
        return held.decode() if self.is_text else held
