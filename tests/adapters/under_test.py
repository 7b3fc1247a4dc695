"""The stores the suite runs against.

An adapter joins the suite by one entry in :data:`ADAPTERS`, a function from
a directory of its own to a :class:`StoreUnderTest`.

A variant is named, so that a process of its own can open the same store from nothing but
the name and the directory (see ``worker.py``). What a store cannot do is asked from
``store.log.guarantees``, never from its name.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from everview.catalog import Catalog
from everview.change.schema import Column, Schema
from everview.store.contract import Store, Table
from everview.store.embedded.store import EmbeddedStore


class StoreUnderTest(Protocol):
    """One store that can be opened, closed and opened again, here and in other processes."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path: ...

    def open(self) -> Store: ...

    def token(self, key: bytes) -> int:
        """Where in the token ring an encoded key lies."""


@dataclass(frozen=True)
class Embedded:
    """The embedded store."""

    name: str
    path: Path
    before_images: bool = True
    durability: str = "group"
    map_size: int = 1 << 30

    def open(self) -> Store:
        return EmbeddedStore.open(
            self.path,
            create=True,
            durability=self.durability,
            before_images=self.before_images,
            nodes=4,
            map_size=self.map_size,
        )

    def token(self, key: bytes) -> int:
        return zlib.crc32(key)


ADAPTERS: dict[str, Callable[[Path], StoreUnderTest]] = {
    "embedded": lambda path: Embedded("embedded", path),
    "embedded-without-before-images": lambda path: Embedded(
        "embedded-without-before-images", path, before_images=False
    ),
}
CROWDED: dict[str, Callable[[Path], StoreUnderTest]] = {
    **ADAPTERS,
    "embedded-that-must-grow": lambda path: Embedded("embedded-that-must-grow", path, map_size=1 << 20),
}
"""The stores that many processes use at once."""


def define(store: Store, name: str, schema: Schema) -> Table:
    return Catalog(store.metadata).create_table(name, schema)


def defined(store: Store, name: str) -> Table:
    return Catalog(store.metadata).table(name)


def evolve(store: Store, name: str, column: Column) -> Table:
    return Catalog(store.metadata).add_column(name, column)
