"""LMDB's meta pages: where the trees of a file begin.

A meta page is all that leads into an LMDB file; there are two, for the even and the odd
transactions, and the newer one counts.

::

    0     page header: number, pad, flags, sizes
    16    magic, version, address, map size
    40    two databases of 48 bytes: the free pages, the entries; the first also holds the page size
    136   last page, transaction id
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from everview.errors import NotAStoreError

SIZE = 256
"""Bytes of a meta page that are read and kept."""
_FORM = struct.Struct("<QHHIIIQQ48s48sQQ")
_DATABASE = struct.Struct("<IHHQQQQQ")
_MAGIC = 0xBEEFC0DE
_VERSION = 1
_DATABASES_AT = 40
_TRANSACTION_AT = 144
_SMALLEST_PAGE, _LARGEST_PAGE = 512, 65536
NOWHERE = 0xFFFFFFFFFFFFFFFF
"""The root of a tree that is empty."""


@dataclass(frozen=True)
class PageTree:
    """One tree of a file, as a meta page describes it."""

    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


@dataclass(frozen=True)
class Meta:
    """A meta page that is whole."""

    raw: bytes
    page_size: int
    free: PageTree
    main: PageTree
    last_page: int
    transaction: int

    @property
    def end(self) -> int:
        """Bytes of a file that has all of its pages."""
        return (self.last_page + 1) * self.page_size

    @property
    def content(self) -> bytes:
        """What is the same in all copies of one version."""
        return self.raw[_DATABASES_AT : _TRANSACTION_AT + 8]


def parse_meta(raw: bytes) -> Meta | None:
    """A meta page, or None if these bytes are none."""
    if len(raw) < SIZE:
        return None
    _, _, _, _, magic, version, _, _, free, main, last_page, transaction = _FORM.unpack_from(raw)
    page_size = struct.unpack_from("<I", raw, _DATABASES_AT)[0]
    if magic != _MAGIC or version != _VERSION or not _SMALLEST_PAGE <= page_size <= _LARGEST_PAGE:
        return None
    return Meta(raw[:SIZE], page_size, _database(free), _database(main), last_page, transaction)


def _database(raw: bytes) -> PageTree:
    _, _, depth, branches, leaves, overflows, entries, root = _DATABASE.unpack(raw)
    return PageTree(depth, branches, leaves, overflows, entries, root)


def read_metas(path: Path) -> tuple[Meta, ...]:
    """The meta pages of a file that are whole, at most two. A power loss may leave one."""
    with path.open("rb", buffering=0) as file:
        first = parse_meta(os.pread(file.fileno(), SIZE, 0))
        sizes = (first.page_size,) if first else (os.sysconf("SC_PAGE_SIZE"),)
        second = [parse_meta(os.pread(file.fileno(), SIZE, size)) for size in sizes]
    return tuple(meta for meta in (first, *second) if meta is not None)


def newest(metas: tuple[Meta, ...]) -> Meta:
    return max(metas, key=lambda meta: meta.transaction)


def read_meta(path: Path, number: int, page: int) -> bytes:
    """The meta page of a transaction that is the last one now."""
    with path.open("rb", buffering=0) as file:
        meta = parse_meta(os.pread(file.fileno(), SIZE, (number & 1) * page))
    if meta is None or meta.transaction != number:
        raise NotAStoreError(
            f"the meta page of {path} is not where it should be",
            detail=f"transaction {number} expected",
            hint="this build of LMDB has another file format; install the lmdb version Everview asks for",
        )
    return meta.raw


def restore(path: Path, number: int, meta: bytes) -> bool:
    """Make the saved meta page the only one: the newer of the two, and of the older too. Returns whether
    something was lost."""
    page = struct.unpack_from("<I", meta, _DATABASES_AT)[0]
    elder = bytearray(meta)
    struct.pack_into("<Q", elder, _TRANSACTION_AT, max(number - 1, 0))
    found = read_metas(path)
    with path.open("r+b", buffering=0) as file:
        for slot, content in ((number & 1, meta), (1 - (number & 1), bytes(elder))):
            os.pwrite(file.fileno(), struct.pack("<Q", slot) + content[8:], slot * page)
        os.fdatasync(file.fileno())
    return not found or newest(found).transaction != number
