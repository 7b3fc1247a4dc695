"""The file of durable points, and LMDB's meta pages.

One sentence: a durable point is the meta page of every file at one cut; the last two are
kept, in two slots written in turn, each with a checksum, so that a torn write costs nothing.

A meta page is all that leads into an LMDB file: it says where the trees begin. LMDB keeps
two, for the even and the odd transactions, and takes the newer. Written back, the saved one
becomes both of them, and whatever was committed since is gone as if it had never been.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from everview.errors import InputError, NotAStoreError
from everview.store.embedded.layout import DURABLE

_MAGIC = b"EVDURAB1"
_SLOT = 32 * 1024
_HEAD = struct.Struct("<8sQ36sI")
_ENTRY = struct.Struct("<32sQ256s")
_META = 256
_META_FORM = struct.Struct("<QHHIIIQQ48s48sQQ")
"""An LMDB meta page: page header (number, pad, flags, sizes), magic, version, address, map
size, two databases, last page, transaction id."""
_META_MAGIC = 0xBEEFC0DE


@dataclass(frozen=True)
class Point:
    """A durable point: for every file the transaction id and the meta page."""

    number: int
    boot: str
    metas: Mapping[str, tuple[int, bytes]]


def write_point(directory: Path, point: Point) -> None:
    body = b"".join(
        _ENTRY.pack(name.encode("ascii"), number, meta) for name, (number, meta) in sorted(point.metas.items())
    )
    head = _HEAD.pack(_MAGIC, point.number, point.boot.encode("ascii"), len(point.metas))
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
    _, number, boot, count = _HEAD.unpack_from(slot)
    end = _HEAD.size + count * _ENTRY.size
    if len(slot) < end + 4 or struct.unpack_from("<I", slot, end)[0] != zlib.crc32(slot[:end]):
        return None
    entries = [_ENTRY.unpack_from(slot, _HEAD.size + index * _ENTRY.size) for index in range(count)]
    metas = {name.rstrip(b"\0").decode("ascii"): (txn, meta) for name, txn, meta in entries}
    return Point(number, boot.rstrip(b"\0").decode("ascii"), metas)


def read_meta(path: Path, number: int, page: int) -> bytes:
    """The meta page of a transaction that is the last one now."""
    with path.open("rb", buffering=0) as file:
        meta = os.pread(file.fileno(), _META, (number & 1) * page)
    if _meta_number(meta, path) != number:
        raise NotAStoreError(
            f"the meta page of {path} is not where it should be",
            detail=f"transaction {number} expected",
            hint="this build of LMDB has another file format; install the lmdb version Everview asks for",
        )
    return meta


def _meta_number(meta: bytes, path: Path) -> int:
    if len(meta) < _META:
        raise NotAStoreError(f"{path} is cut short", hint="restore it from a backup")
    fields = _META_FORM.unpack_from(meta)
    magic, version, number = fields[4], fields[5], fields[11]
    if magic != _META_MAGIC or version != 1:
        raise NotAStoreError(f"{path} is not a file of this LMDB format", hint="restore it from a backup")
    return int(number)


def restore(path: Path, number: int, meta: bytes) -> bool:
    """Make the saved meta page the only one: the newer of the two, and of the older too."""
    if not path.exists():
        raise NotAStoreError(f"{path} is missing", hint="restore it from a backup")
    page = struct.unpack_from("<I", meta, 40)[0]
    elder = bytearray(meta)
    struct.pack_into("<Q", elder, 144, max(number - 1, 0))
    with path.open("r+b", buffering=0) as file:
        descriptor = file.fileno()
        present = [os.pread(descriptor, _META, slot * page) for slot in (0, 1)]
        lost = max((_META_FORM.unpack_from(m)[11] for m in present if len(m) == _META), default=0) != number
        for slot, content in ((number & 1, meta), (1 - (number & 1), bytes(elder))):
            content = struct.pack("<Q", slot) + content[8:]
            os.pwrite(descriptor, content, slot * page)
        os.fdatasync(descriptor)
    return lost
