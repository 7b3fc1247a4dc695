"""Where things lie in an embedded store's directory.

::

    everview.json      what this directory is: format, id, shards, before-images; written last
    creating.json      only while the store is created (see creation.py)
    lock               held while a process opens the store or moves its durable point
    durable            the last durable point (see durability.py)
    base.mdb           rows, logs, documents, topology, epochs
    state-0.mdb …      versioned tables, one file per shard

Key spaces of base.mdb, by their first byte::

    C <table>               number of rows
    E …                     epochs (see epoch_records.py)
    L <node> <last seq>     a block of log entries (see blocks.py)
    M <name>                a document; "M" alone is their counter
    T                       topology: nodes, regions, trimmed frontier
    W …                     when batches were written (see times.py)
    r <table> <key>         a row; last, so that the rows of a table that is loaded in key order
                            can be appended to the file
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from everview.errors import InputError, NotAStoreError, StoreError, UnsupportedFormatError

FORMAT = 3
"""Raised by every change of what is stored. A store of any other format is refused."""
MARKER = "everview.json"
NEW_MARKER = MARKER + ".new"
RESTORE = "restore the file from a backup"
LOCK = "lock"
DURABLE = "durable"
BASE = "base.mdb"

COUNT = b"C"
DOCUMENT = b"M"
LOG = b"L"
ROW = b"r"
TOPOLOGY = b"T"

table_id = struct.Struct(">I").pack
KEY_PREFIX = 5
"""Bytes of a row's key in base.mdb before the encoded key."""


def shard_name(number: int) -> str:
    return f"state-{number}.mdb"


@dataclass(frozen=True)
class Settings:
    """What is decided when a store is created and holds for its life."""

    shards: int = 4
    before_images: bool = True
    nodes: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.shards <= 64:
            raise InputError(f"a store has 1 to 64 shards, not {self.shards}")
        if not 1 <= self.nodes <= 1024:
            raise InputError(f"a store begins with 1 to 1024 nodes, not {self.nodes}")

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the LMDB files."""
        return BASE, *(shard_name(number) for number in range(self.shards))


@dataclass(frozen=True)
class Marker:
    """What everview.json holds."""

    settings: Settings
    id: str
    """Different for every store."""


def read_marker(directory: Path) -> Marker | None:
    """The marker of the store in the directory, or None if there is none."""
    path = directory / MARKER
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise NotAStoreError(f"{directory} is a file, not the directory of a store") from None
    except UnicodeDecodeError:
        raise NotAStoreError(f"{path} is not readable as text", hint=RESTORE) from None
    except OSError as error:
        raise StoreError(f"cannot read {path}", detail=str(error), hint="check the permissions") from error
    try:
        plain = json.loads(text)
        written = plain["everview"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(directory, f"{type(error).__name__}: {error}") from error
    if type(written) is not int or written < 1:
        raise _damaged(directory, f"{written!r} is not the number of a format")
    if written != FORMAT:
        raise UnsupportedFormatError(
            f"the store in {directory} has format {written}, and this version of Everview reads format {FORMAT} only",
            detail="nothing was read or changed",
            hint="use the version of Everview that wrote it, or dump its tables with that version and load them into a "
            "new store",
        )
    try:
        store_id, found = plain["id"], Settings(**plain["settings"])
    except (KeyError, TypeError, InputError) as error:
        raise _damaged(directory, str(error)) from error
    if any(type(getattr(found, field.name)) is not type(field.default) for field in fields(found)):
        raise _damaged(directory, f"it cannot be a store with {found}")
    if type(store_id) is not str or not store_id:
        raise _damaged(directory, f"{store_id!r} is not the id of a store")
    return Marker(found, store_id)


def _damaged(directory: Path, why: str) -> NotAStoreError:
    return NotAStoreError(f"{directory / MARKER} does not describe a store", detail=why, hint=RESTORE)


def write_marker(directory: Path, marker: Marker) -> None:
    """Declare the directory a store: the last step of its creation."""
    content = {"everview": FORMAT, "id": marker.id, "settings": asdict(marker.settings)}
    temporary = directory / NEW_MARKER
    with open(temporary, "w", encoding="utf-8", opener=private) as file:
        json.dump(content, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(directory / MARKER)
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def private(path: str, flags: int) -> int:
    """An opener for files only their owner may read."""
    return os.open(path, flags, 0o600)
