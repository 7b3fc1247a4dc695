"""Tokens: the hashes that spread keys over regions and shards.

A key's token is its CRC-32 as ``zlib`` has it, and keys of one width get
theirs together, two bytes a step, from a table of the 65,536 remainders.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from everview.store.encoding.ragged import Bytes, content, lengths, places

Tokens = npt.NDArray[np.uint32]

_POLYNOMIAL = np.uint32(0xEDB88320)
_WIDEST = 48
"""Above this width the table costs as much as a call for each key."""
_FEW = 16
"""Below this many keys for each byte of their width, calls cost less than the steps."""


def _remainders(bits: int) -> Tokens:
    values = np.arange(1 << bits, dtype=np.uint32)
    for _ in range(bits):
        values = np.where(values & 1, (values >> 1) ^ _POLYNOMIAL, values >> 1)
    return values


_OF_TWO_BYTES = _remainders(16)
_OF_ONE_BYTE = _remainders(8)


def tokens_of(keys: Bytes) -> Tokens:
    """The token of every key."""
    sizes = lengths(keys)
    width = int(sizes[0]) if len(sizes) else 0
    if not 0 < width <= _WIDEST or len(sizes) < _FEW * width or not (sizes == width).all():
        return np.fromiter(map(zlib.crc32, keys.to_pylist()), np.uint32, len(keys))
    start = int(places(keys)[0])
    raw = np.frombuffer(content(keys), np.uint8, len(keys) * width, start).reshape(-1, width)
    token: Tokens = np.full(len(raw), 0xFFFFFFFF, np.uint32)
    even = width & ~1
    pairs: npt.NDArray[np.uint16] = np.ascontiguousarray(raw[:, :even]).view("<u2").T
    for pair in pairs:
        token = _OF_TWO_BYTES[(token ^ pair).astype(np.uint16)] ^ (token >> np.uint32(16))
    if width > even:
        token = _OF_ONE_BYTE[(token ^ raw[:, even]).astype(np.uint8)] ^ (token >> np.uint32(8))
    return ~token
