"""Where things lie in an embedded store's directory.

::

    everview.json      what this directory is: format, shards, before-images; written last
    lock               held while a process opens the store or moves its durable point
    durable            the last durable point (see durability.py)
    base.mdb           rows, logs, documents, topology, epochs
    state-0.mdb …      versioned tables, one file per shard

Key spaces of base.mdb, by their first byte::

    C <table>               number of rows
    E …                     epochs (see epochs.py)
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
from dataclasses import asdict, dataclass
from pathlib import Path

from everview.errors import InputError, NewerFormatError, NotAStoreError

FORMAT = 1
MARKER = "everview.json"
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


def read_settings(directory: Path) -> Settings | None:
    """The settings of the store in the directory, or None where there is no store yet."""
    try:
        text = (directory / MARKER).read_text("utf-8")
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise NotAStoreError(f"{directory} is a file, not the directory of a store") from None
    except UnicodeDecodeError:
        raise NotAStoreError(f"{directory / MARKER} is not readable as text") from None
    try:
        plain = json.loads(text)
        written = plain["everview"]
        settings = plain["settings"]
    except (ValueError, KeyError, TypeError):
        raise NotAStoreError(
            f"{directory / MARKER} does not describe a store", hint="restore the file from a backup"
        ) from None
    if not isinstance(written, int) or written > FORMAT:
        raise NewerFormatError(
            f"the store in {directory} has format {written}; this version of Everview reads up to {FORMAT}",
            hint="upgrade Everview",
        )
    try:
        return Settings(**settings)
    except TypeError:
        raise NotAStoreError(f"{directory / MARKER} holds settings that format {FORMAT} does not have") from None


def write_settings(directory: Path, settings: Settings) -> None:
    """Declare the directory a store: the last step of its creation."""
    temporary = directory / (MARKER + ".new")
    with open(temporary, "w", encoding="utf-8", opener=private) as file:
        json.dump({"everview": FORMAT, "settings": asdict(settings)}, file, indent=2)
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
