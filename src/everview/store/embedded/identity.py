"""Which store a file belongs to, and which file of it.

Every LMDB file carries the id and the settings of its store, its own name, and the last
durable point that it took part in, so that a file which is missing, older, swapped or of another store is
found before anything is read from it.

LMDB writes the first 152 bytes of the first two pages and leaves the rest of them alone. The identity
stands in that room of the first page, each part in a sector of its own::

    1024    identity: id of the store, settings, name of the file; written when the store is created
    2048    stamp: number and tag of the last durable point; written after that point is on disk

The stamp is written after the point that it names, and reaches the disk with the next one, so a crash may leave the
one before it: the file of durable points names both (points.py). Any other stamp means that the file, or the file of
durable points, is from another time, or from a copy of the store that went its own way.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from everview.errors import NotAStoreError
from everview.store.embedded import layout
from everview.store.embedded.meta_pages import Meta, newest, parse_meta, read_metas
from everview.store.embedded.pages import walk
from everview.store.embedded.points import NO_STAMP, Point, Stamp

_IDENTITY_AT = 1024
_STAMP_AT = 2048
_SECTOR = 512
_HEAD = struct.Struct("<8sHI")
_MAGIC = b"EVIDENT1"
_STAMP = struct.Struct("<8sQ16s")
_STAMP_MAGIC = b"EVSTAMP1"
_ATTEMPTS = 5
_TOGETHER = "restore all files of the directory from one backup"


@dataclass(frozen=True)
class Identity:
    """What a file says about itself."""

    store: str
    file: str
    settings: layout.Settings


def write_identity(path: Path, marker: layout.Marker) -> None:
    """Mark a file as one of this store, durably."""
    body = json.dumps({"store": marker.id, "file": path.name, "settings": asdict(marker.settings)}).encode()
    block = _HEAD.pack(_MAGIC, len(body), zlib.crc32(body)) + body
    assert len(block) <= _SECTOR
    with path.open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), block, _IDENTITY_AT)
        os.fdatasync(file.fileno())


def read_identity(path: Path) -> Identity | None:
    """The identity of a file, or None if it has none that is whole."""
    block = _sector(path, _IDENTITY_AT)
    if len(block) < _HEAD.size:
        return None
    magic, size, checksum = _HEAD.unpack_from(block)
    body = block[_HEAD.size : _HEAD.size + size]
    if magic != _MAGIC or zlib.crc32(body) != checksum:
        return None
    plain = json.loads(body)
    return Identity(plain["store"], plain["file"], layout.Settings(**plain["settings"]))


def write_stamp(descriptor: int, stamp: Stamp) -> None:
    block = _STAMP.pack(_STAMP_MAGIC, *stamp)
    os.pwrite(descriptor, block + struct.pack("<I", zlib.crc32(block)), _STAMP_AT)


def read_stamp(path: Path) -> Stamp:
    block = _sector(path, _STAMP_AT)[: _STAMP.size + 4]
    if len(block) < _STAMP.size + 4 or struct.unpack_from("<I", block, _STAMP.size)[0] != zlib.crc32(block[:-4]):
        return NO_STAMP
    magic, number, tag = _STAMP.unpack_from(block)
    return Stamp(number, tag) if magic == _STAMP_MAGIC else NO_STAMP


def _sector(path: Path, at: int) -> bytes:
    with path.open("rb", buffering=0) as file:
        return os.pread(file.fileno(), _SECTOR, at)


# ------------------------------------------------------------------ what must hold when a store is opened


def problems(directory: Path, marker: layout.Marker, point: Point, *, rebooted: bool) -> Iterator[NotAStoreError]:
    """Everything that shows that the files do not belong together. The caller holds the lock of the store, so
    that the durable point stands still; others may write."""
    if point.store != marker.id:
        yield _error(directory, layout.DURABLE, "belongs to another store", _TOGETHER)
        return
    if set(point.metas) != set(marker.settings.files):
        yield NotAStoreError(
            f"{directory / layout.MARKER} was changed: it has {marker.settings.shards} shards, but the store has "
            f"{len(point.metas) - 1}",
            detail="the number of shards is decided when a store is created",
            hint=f"set it to {len(point.metas) - 1} again",
        )
        return
    for name in marker.settings.files:
        problem = _problem(directory, name, marker, point, rebooted)
        if problem is not None:
            yield problem


def _problem(directory: Path, name: str, marker: layout.Marker, point: Point, rebooted: bool) -> NotAStoreError | None:
    path = directory / name
    if not path.is_file():
        return _error(directory, name, "is missing", _TOGETHER)
    metas = read_metas(path)
    if not metas:
        return _error(directory, name, "is cut short, or is no file of LMDB", layout.RESTORE)
    return _wrong_identity(directory, name, marker) or _wrong_age(directory, name, metas, point, rebooted)


def _wrong_identity(directory: Path, name: str, marker: layout.Marker) -> NotAStoreError | None:
    found = read_identity(directory / name)
    if found is None:
        return _error(directory, name, "carries no identity of a store", "restore the file from a backup of this store")
    if found.store != marker.id:
        return _error(
            directory, name, "belongs to another store", f"restore {name} and {layout.MARKER} from one backup"
        )
    if found.file != name:
        return _error(directory, name, f"is the file {found.file} of this store", f"rename it to {found.file}")
    if found.settings != marker.settings:
        was, now = asdict(found.settings), asdict(marker.settings)
        changed = ", ".join(f"{key} was {was[key]} and is {now[key]}" for key in was if was[key] != now[key])
        return _error(
            directory, layout.MARKER, f"was changed: {changed}", "settings hold for the life of a store; change it back"
        )
    return None


def _wrong_age(
    directory: Path, name: str, metas: tuple[Meta, ...], point: Point, rebooted: bool
) -> NotAStoreError | None:
    path, (transaction, raw) = directory / name, point.metas[name]
    saved = parse_meta(raw)
    if saved is None:
        return _error(directory, layout.DURABLE, f"does not know where {name} begins", layout.RESTORE)
    stamp = read_stamp(path)
    if stamp.number > point.number and name == layout.BASE:  # which every writer changes
        return _error(
            directory,
            layout.DURABLE,
            f"is an older copy: it ends with durable point {point.number}, {name} has seen {stamp.number}",
            _TOGETHER,
        )
    last = newest(metas)
    if last.transaction < transaction and len(metas) == 2:
        return _error(
            directory,
            name,
            f"is an older copy: it ends with transaction {last.transaction}, the store needs {transaction}",
            _TOGETHER,
        )
    if stamp not in point.stamps[name]:
        return _error(directory, name, "comes from another copy of this store", _TOGETHER)
    if rebooted:
        return _cut_short(path, saved, point.sizes[name])
    if last.transaction == transaction and not _same_version(path, saved):
        return _error(directory, name, "comes from another copy of this store", _TOGETHER)
    return _cut_short(path, last, point.sizes[name] if last.transaction == transaction else None)


def _same_version(path: Path, saved: Meta) -> bool:
    """Whether the file is at the saved version, or has been written to meanwhile."""
    for _ in range(_ATTEMPTS):
        last = newest(read_metas(path))
        if last.transaction != saved.transaction or last.content == saved.content:
            return True
    return False


def _cut_short(path: Path, meta: Meta, known_size: int | None) -> NotAStoreError | None:
    """LMDB does not write pages that a transaction took and gave back, so a file may end before its last page:
    then either its size at the durable point is known, or the pages in use have to be visited."""
    size = path.stat().st_size
    if size >= (known_size or meta.end) or (not known_size and _all_there(path, meta)):
        return None
    needed = known_size or meta.end
    return _error(path.parent, path.name, f"is cut short: it has {size} bytes of {needed}", layout.RESTORE)


def _all_there(path: Path, meta: Meta) -> bool:
    """Whether all pages in use are in the file. If another process writes meanwhile, so that pages of the visited
    version are used for others, there is nothing to object to."""
    for _ in range(_ATTEMPTS):
        if not walk(path, meta).problems:
            return True
        last = newest(read_metas(path))
        if last.transaction == meta.transaction:
            return False
        meta = last
    return True


def _error(directory: Path, name: str, what: str, hint: str) -> NotAStoreError:
    return NotAStoreError(f"{directory / name} {what}", detail="nothing was read or changed", hint=hint)
