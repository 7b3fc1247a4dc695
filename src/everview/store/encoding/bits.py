"""Texts of zeros and ones (BIT), and the bytes in which DuckDB holds them.

A byte says how many bits at the front of the rest are padding, which is ones, and the bits follow; values
are ordered as the texts are, so a key holds the text.

    >>> to_bytes("0101").hex(" ")
    '04 f5'
    >>> from_bytes(to_bytes("0101"))
    '0101'

Columns go both ways at once: :func:`texts` unpacks the bits of all rows and leaves out headers and padding.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from everview.store.encoding.binary_columns import Mask, column_of, content

_ZERO = ord("0")


def to_bytes(text: str) -> bytes:
    """The bytes of a text of zeros and ones, which has at least one."""
    padding = -len(text) % 8
    return bytes([padding]) + int("1" * padding + text, 2).to_bytes((len(text) + padding) // 8, "big")


def from_bytes(held: bytes) -> str:
    """The text of some bytes. Raises ValueError where they are none of a BIT."""
    if len(held) < 2 or held[0] > 7 or held[1] >> 8 - held[0] != (1 << held[0]) - 1:
        raise ValueError("the bytes are not those of a BIT")
    return f"{int.from_bytes(held[1:], 'big'):0{8 * (len(held) - 1)}b}"[held[0] :]


def damaged(column: pa.Array) -> Mask:
    """Which rows of a column of bytes, null or not, hold no bytes of a BIT."""
    starts, data, there = content(column)
    sizes = np.diff(starts)
    wrong: Mask = there & (sizes < 2)
    rows = np.flatnonzero(there & ~wrong)
    padding, first = (data[starts[rows] + at].astype(np.int64) for at in (0, 1))
    wrong[rows] = (padding > 7) | (first >> np.maximum(8 - padding, 0) != (1 << padding % 8) - 1)
    return wrong


def texts(column: pa.Array) -> pa.Array:
    """A column of the bytes of BITs, none of them damaged, as their texts: bytes again, of zeros and ones."""
    starts, data, there = content(column)
    rows = np.flatnonzero(there)
    ahead = 8 + data[starts[rows]].astype(np.int64)
    lengths = np.zeros(len(column), np.int64)
    lengths[rows] = 8 * np.diff(starts)[rows] - ahead
    edges = np.zeros(8 * len(data) + 1, np.int8)
    np.add.at(edges, 8 * starts[rows], 1)
    np.add.at(edges, 8 * starts[rows] + ahead, -1)
    kept = np.unpackbits(data)[np.cumsum(edges[:-1]) == 0]
    return column_of(np.concatenate([[0], np.cumsum(lengths)]), kept + np.uint8(_ZERO), there)


def from_texts(column: pa.Array) -> pa.Array:
    """The bytes again of a column of texts, as bytes. Raises ValueError where one is no text of zeros and ones."""
    starts, data, there = content(column)
    lengths = np.diff(starts)
    if (lengths[there] == 0).any() or ((data != _ZERO) & (data != _ZERO + 1)).any():
        raise ValueError("the text is not one or more zeros and ones")
    padding = np.where(there, -lengths % 8, 0)
    ends = np.concatenate([[0], np.cumsum(np.where(there, 8 + padding + lengths, 0))])
    bits = np.ones(ends[-1], np.uint8)
    where = np.arange(len(data)) + np.repeat(ends[:-1] + 8 + padding - starts[:-1], lengths)
    bits[where] = data - _ZERO
    packed = np.packbits(bits)
    packed[ends[:-1][there] // 8] = padding[there]
    return column_of(ends // 8, packed, there)
