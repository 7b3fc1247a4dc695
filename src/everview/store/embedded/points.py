"""The file of durable points.

A durable point is the meta page of every file at one cut; the last two are
kept, in two slots written in turn, each with a checksum, so that a torn write costs nothing.

A meta page is all that leads into an LMDB file. Written back, the saved one becomes both of the file's, and
whatever was committed since is gone as if it had never been (see meta_pages.py).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from everview.errors import InputError
from everview.store.embedded.layout import DURABLE
from everview.store.embedded.meta_pages import SIZE

_SLOT = 32 * 1024
_MAGIC = b"EVDURAB2"
_HEAD = struct.Struct("<8sQ36sI32s")
_ENTRY = struct.Struct(f"<32sQQQ16sQ16s{SIZE}s")
TAG = 16


class Stamp(NamedTuple):
    """Names a durable point. The tag is different for every one, also of two copies of one store."""

    number: int
    tag: bytes


NO_STAMP = Stamp(0, bytes(TAG))


@dataclass(frozen=True)
class Point:
    """A durable point: for every file the transaction id and the meta page."""

    number: int
    boot: str
    metas: Mapping[str, tuple[int, bytes]]
    sizes: Mapping[str, int]
    """How many bytes the files had."""
    store: str
    """The id of the store."""
    stamps: Mapping[str, tuple[Stamp, Stamp]]
    """For every file the point at which it was written to last, and the one before that. The file itself carries
    the first of them, or, if a crash came in between, the second."""


def write_point(directory: Path, point: Point) -> None:
    body = b"".join(
        _ENTRY.pack(
            name.encode("ascii"),
            number,
            point.sizes[name],
            *(part for stamp in point.stamps[name] for part in stamp),
            meta,
        )
        for name, (number, meta) in sorted(point.metas.items())
    )
    head = _HEAD.pack(_MAGIC, point.number, point.boot.encode("ascii"), len(point.metas), point.store.encode("ascii"))
    slot = head + body
    slot += struct.pack("<I", zlib.crc32(slot))
    if len(slot) > _SLOT:
        raise InputError(f"a durable point of {len(point.metas)} files does not fit its slot")
    descriptor = os.open(directory / DURABLE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, slot, (point.number & 1) * _SLOT)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def read_point(directory: Path) -> Point | None:
    """The newest durable point that is whole, or None where there is none."""
    try:
        content = (directory / DURABLE).read_bytes()
    except FileNotFoundError:
        return None
    points = [point for at in (0, _SLOT) if (point := _parse_slot(content[at : at + _SLOT])) is not None]
    return max(points, key=lambda point: point.number, default=None)


def _parse_slot(slot: bytes) -> Point | None:
    if len(slot) < _HEAD.size or not slot.startswith(_MAGIC):
        return None
    _, number, boot, count, store = _HEAD.unpack_from(slot)
    end = _HEAD.size + count * _ENTRY.size
    if len(slot) < end + 4 or struct.unpack_from("<I", slot, end)[0] != zlib.crc32(slot[:end]):
        return None
    entries = [_ENTRY.unpack_from(slot, _HEAD.size + index * _ENTRY.size) for index in range(count)]
    metas = {_text(name): (txn, meta) for name, txn, *_, meta in entries}
    sizes = {_text(name): size for name, _, size, *_ in entries}
    stamps = {_text(entry[0]): (Stamp(*entry[3:5]), Stamp(*entry[5:7])) for entry in entries}
    return Point(number, _text(boot), metas, sizes, _text(store), stamps)


def _text(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode("ascii")
