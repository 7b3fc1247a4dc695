"""Whole numbers of any length (BIGNUM), and the bytes in which DuckDB holds them.

Three bytes hold the number of bytes that follow, plus 2^23, the magnitude follows with its highest
byte first, and of a negative number all bytes are inverted; so the bytes are in the order of the numbers.

    >>> to_bytes("256").hex(" ")
    '80 00 02 01 00'
    >>> to_bytes("-256").hex(" ")
    '7f ff fd fe ff'
    >>> from_bytes(to_bytes("-256"))
    '-256'

In Python a number is the text of its digits, as in DuckDB. Text holds more than an int does: DuckDB rounds the DOUBLE
-0.4 to a BIGNUM ``-0``, which is less than ``0`` and prints so. A magnitude has no zero bytes at its front, and zero
has one byte, so equal numbers have equal bytes.

Columns go both ways at once: :func:`magnitudes` and :func:`from_magnitudes` have a row of a matrix for each number.
"""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa

from everview.store.encoding.binary_columns import Bytes, Mask, Places, column_of, content

_HEADER = 3
_MOST_BYTES = (1 << 23) - 1
_MOST_DIGITS = 20_201_779
"""Every number of so many digits fits the bytes."""
_INVERT = bytes(255 - byte for byte in range(256))
_TEXT = re.compile(r"([+-]?)0*([0-9]+)")
ZERO = b"\x80\x00\x01\x00"


def canonical(text: str) -> str:
    """The text as DuckDB writes it: without a plus sign and zeros at its front. Raises ValueError where it is none of
    a whole number."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError("the text is not a whole number")
    sign, digits = match.groups()
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"the number has more than {_MOST_DIGITS:,} digits")
    return f"-{digits}" if sign == "-" else digits


def text_of(number: int) -> str:
    """The text of a number. Python itself limits how long a text it makes of an int; its decimals have no limit."""
    if number.bit_length() > 8 * _MOST_BYTES:
        raise ValueError(f"the number takes more than {_MOST_BYTES:,} bytes")
    return str(Decimal(number))


def to_bytes(text: str) -> bytes:
    """The bytes of a canonical text."""
    return _held(int(Decimal(text.removeprefix("-"))), negative=text.startswith("-"))


def from_bytes(held: bytes) -> str:
    """The text of some bytes. Raises ValueError where they are none of a BIGNUM."""
    magnitude, negative = _magnitude(held)
    return f"{'-' if negative else ''}{Decimal(magnitude)}"


def of_int(number: int) -> bytes:
    """The bytes of a number."""
    return _held(abs(number), negative=number < 0)


def to_int(held: bytes) -> int:
    """The number of some bytes. Raises ValueError where they are none of a BIGNUM."""
    magnitude, negative = _magnitude(held)
    return -magnitude if negative else magnitude


def _held(magnitude: int, *, negative: bool) -> bytes:
    size = max((magnitude.bit_length() + 7) // 8, 1)
    held = (size | 1 << 23).to_bytes(_HEADER, "big") + magnitude.to_bytes(size, "big")
    return held.translate(_INVERT) if negative else held


def _magnitude(held: bytes) -> tuple[int, bool]:
    negative = held[:1] < b"\x80"
    plain = held.translate(_INVERT) if negative else held
    size = len(plain) - _HEADER
    header = int.from_bytes(plain[:_HEADER], "big")
    if size < 1 or header != size | 1 << 23 or (plain[_HEADER] == 0 and size > 1):
        raise ValueError("the bytes are not those of a BIGNUM")
    return int.from_bytes(plain[_HEADER:], "big"), negative


# ------------------------------------------------------------------ columns


def damaged(column: pa.Array) -> Mask:
    """Which rows of a column of bytes, null or not, hold no bytes of a BIGNUM."""
    starts, data, there = content(column)
    sizes = np.diff(starts) - _HEADER
    wrong: Mask = there & (sizes < 1)
    rows = np.flatnonzero(there & ~wrong)
    front = data[starts[rows, None] + np.arange(_HEADER + 1)]
    front ^= _inversion(front[:, 0] < 128)[:, None]
    header = front[:, :_HEADER].astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])
    wrong[rows] = (header != sizes[rows] | 1 << 23) | ((front[:, _HEADER] == 0) & (sizes[rows] > 1))
    return wrong


def sizes(column: pa.Array) -> Places:
    """How many bytes the magnitudes of a column take, none of them damaged; 0 where there is none."""
    starts, _, _ = content(column)
    found: Places = np.maximum(np.diff(starts) - _HEADER, 0)
    return found


def magnitudes(column: pa.Array) -> tuple[Bytes, Mask]:
    """A column of the bytes of BIGNUMs, none of them damaged, as a matrix with a row of bytes for each magnitude, the
    highest first, of the length of the longest, in fours; and which numbers are negative. Null is zero."""
    starts, data, there = content(column)
    lengths = np.where(there, np.diff(starts) - _HEADER, 0)
    width = -(-int(lengths.max(initial=1)) // 4) * 4
    found = np.zeros((len(column), width), np.uint8)
    negative = np.zeros(len(column), np.bool_)
    negative[there] = data[starts[:-1][there]] < 128
    inside = np.ones(len(data), np.bool_)
    inside[(starts[:-1][there, None] + np.arange(_HEADER)).reshape(-1)] = False
    found[np.arange(width) >= width - lengths[:, None]] = data[inside] ^ np.repeat(_inversion(negative), lengths)
    return found, negative


def from_magnitudes(matrix: Bytes, negative: Mask, there: Mask) -> pa.Array:
    """The column of the bytes of BIGNUMs again; zero is not negative."""
    count, width = matrix.shape
    filled = matrix != 0
    lengths = np.where(filled.any(axis=1), width - filled.argmax(axis=1), 1)
    whole = np.zeros((count, _HEADER + width), np.uint8)
    whole[:, _HEADER:] = matrix
    begin = width - lengths
    headers = (lengths | 1 << 23).astype(">u4").view(np.uint8).reshape(count, 4)[:, 1:]
    np.put_along_axis(whole, begin[:, None] + np.arange(_HEADER), headers, axis=1)
    whole ^= _inversion(negative & filled.any(axis=1))[:, None]
    kept = (np.arange(_HEADER + width) >= begin[:, None]) & there[:, None]
    starts = np.concatenate([[0], np.cumsum(np.where(there, _HEADER + lengths, 0))])
    return column_of(starts, whole[kept], there)


def from_integers(column: pa.Array) -> pa.Array:
    """The bytes of the BIGNUMs of a column of integers of up to 64 bits."""
    there = column.is_valid().to_numpy(zero_copy_only=False)
    wide = column.cast(pa.uint64() if pa.types.is_unsigned_integer(column.type) else pa.int64()).fill_null(0)
    numbers = wide.to_numpy(zero_copy_only=False)
    negative = numbers < 0
    held = numbers.view(np.uint64)
    magnitude = np.where(negative, ~held + np.uint64(1), held)
    return from_magnitudes(magnitude.astype(">u8").view(np.uint8).reshape(-1, 8), negative, there)


def _inversion(negative: Mask) -> Bytes:
    """What the bytes of each number are XORed with."""
    return np.where(negative, np.uint8(255), np.uint8(0))
