"""The pages of an LMDB file, read without LMDB.

From a meta page on, every page that a tree uses is visited once, and what is not as it
should be is described instead of followed.

LMDB maps its file and trusts it: a page behind the end of the file ends the process with a signal, a page
with another page's content gives wrong rows. So a file that may be damaged is read like any other file::

    page      number u64, pad u16, flags u16, lower u16, upper u16, then the places of its nodes
    node      size or child (2 x u16), flags u16, length of the key u16, key, data
    overflow  number u64, pad u16, flags u16, pages u32, data: values that do not fit a page
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from everview.store.embedded.meta_pages import NOWHERE, Meta, PageTree

_HEADER = 16
_NODE = 8
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG, _SUBTREE = 1, 2
_HEAD = struct.Struct("<QHHHH")
_OVERFLOW_HEAD = struct.Struct("<QHHI")
_MOST_PROBLEMS = 20


@dataclass
class PageTally:
    """What a walk over the trees of one version of a file has found."""

    used: bytearray
    """One byte for every page: whether a tree uses it."""
    problems: list[str] = field(default_factory=list)
    visited: int = 0


def walk(path: Path, meta: Meta) -> PageTally:
    """Visit every page of one version, which no writer may free meanwhile."""
    tally = PageTally(bytearray(meta.last_page + 1))
    with path.open("rb", buffering=0) as file:
        pages = _Pages(file.fileno(), meta, tally)
        free = list(pages.visit_tree("of free pages", meta.free))
        list(pages.visit_tree("of entries", meta.main))
        if not tally.problems:
            pages.account_for_free_pages(free)
    return tally


class _Pages:
    """Reads pages and checks them."""

    def __init__(self, descriptor: int, meta: Meta, tally: PageTally) -> None:
        self._descriptor = descriptor
        self._meta = meta
        self._tally = tally

    def visit_tree(self, what: str, database: PageTree) -> Iterator[bytes]:
        """Visit a tree; the values of its entries are given for small trees of free pages only."""
        counts = {_BRANCH: 0, _LEAF: 0, _OVERFLOW: 0}
        entries = 0
        values = database is self._meta.free
        pending = [(database.root, 1)] if database.root != NOWHERE else []
        while pending:
            if len(self._tally.problems) >= _MOST_PROBLEMS:
                return
            number, depth = pending.pop()
            page = self._page(number, 1)
            if page is None or (kind := self._checked_kind(number, page, depth, database.depth)) is None:
                continue
            counts[kind] += 1
            nodes, words = _nodes(page)
            if kind == _BRANCH:
                children = words[nodes] + (words[nodes + 1] << 16) + (words[nodes + 2] << 32)
                pending += [(int(child), depth + 1) for child in children[::-1]]
                continue
            entries += len(nodes)
            big = nodes[(words[nodes + 2] & _BIG) != 0]
            counts[_OVERFLOW] += sum(self._visit_overflow(number, page, 2 * int(node)) for node in big)
            if values:
                yield from (self._value(page, 2 * int(node)) for node in nodes)
        self._compare(what, database, counts, entries)

    def _compare(self, what: str, database: PageTree, counts: dict[int, int], entries: int) -> None:
        if self._tally.problems:
            return
        expected = (database.branch_pages, database.leaf_pages, database.overflow_pages, database.entries)
        found = (counts[_BRANCH], counts[_LEAF], counts[_OVERFLOW], entries)
        if expected != found:
            self._note(
                f"the tree {what} has {found[0]} branch, {found[1]} leaf and {found[2]} overflow pages and {found[3]} "
                f"entries; its root counts {expected[0]}, {expected[1]}, {expected[2]} and {expected[3]}"
            )

    def _page(self, number: int, count: int) -> bytes | None:
        if not number >= 2 or number + count > self._meta.last_page + 1:
            self._note(f"page {number} is used, but the file has pages 2 to {self._meta.last_page}")
            return None
        if any(self._tally.used[number : number + count]):
            self._note(f"page {number} is used twice")
            return None
        self._tally.used[number : number + count] = b"\1" * count
        self._tally.visited += count
        size = self._meta.page_size
        page = os.pread(self._descriptor, size, number * size)
        end = os.fstat(self._descriptor).st_size if count > 1 else number * size + len(page)
        if len(page) < size or end < (number + count) * size:
            self._note(f"page {number + count - 1} lies behind the end of the file")
            return None
        return page

    def _checked_kind(self, number: int, page: bytes, depth: int, deepest: int) -> int | None:
        found, _, flags, lower, upper = _HEAD.unpack_from(page)
        kind = _LEAF if depth == deepest else _BRANCH
        if found != number or flags & 7 != kind:
            self._note(
                f"page {number} does not hold what it should: it has the number {found} and the kind {flags & 7}"
            )
        elif not _HEADER <= lower <= upper <= len(page) or lower % 2:
            self._note(f"page {number} is damaged: its free space is from {lower} to {upper}")
        elif not _nodes_fit(page, lower, upper, kind):
            self._note(f"page {number} is damaged: an entry leads out of it")
        else:
            return kind
        return None

    def _visit_overflow(self, leaf: int, page: bytes, node: int) -> int:
        """Check the pages of one large value; returns how many there are."""
        size, start = self._big(page, node)
        count = -(-(size + _HEADER) // self._meta.page_size)
        first = self._page(start, count)
        if first is None:
            return 0
        number, _, flags, pages = _OVERFLOW_HEAD.unpack_from(first)
        if number != start or flags & 7 != _OVERFLOW or pages != count:
            self._note(f"page {start} does not hold the large value that page {leaf} expects there")
        return count

    def _big(self, page: bytes, node: int) -> tuple[int, int]:
        low, high, _, key = struct.unpack_from("<HHHH", page, node)
        return low | high << 16, int(struct.unpack_from("<Q", page, node + _NODE + key)[0])

    def _value(self, page: bytes, node: int) -> bytes:
        low, high, flags, key = struct.unpack_from("<HHHH", page, node)
        if flags & _BIG:
            size, start = self._big(page, node)
            return os.pread(self._descriptor, size, start * self._meta.page_size + _HEADER)
        at = node + _NODE + key
        return page[at : at + (low | high << 16)]

    def account_for_free_pages(self, lists: list[bytes]) -> None:
        """Every page is either used by a tree or free, and none is both."""
        free = bytearray(len(self._tally.used))
        for value in lists:
            count = int.from_bytes(value[:8], "little")
            for number in np.frombuffer(value, "<u8", count, 8).tolist():
                if not 2 <= number < len(free) or free[number] or self._tally.used[number]:
                    self._note(f"page {number} is listed as free, but it is used, free twice, or does not exist")
                    return
                free[number] = 1

    def _note(self, problem: str) -> None:
        self._tally.problems.append(problem)


def _nodes(
    page: bytes,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Where the nodes of a page are, in words of two bytes, and the page in such words."""
    words = np.frombuffer(page, "<u2").astype(np.int64)
    count = (int(words[6]) - _HEADER) // 2
    return words[8 : 8 + count] >> 1, words


def _nodes_fit(page: bytes, lower: int, upper: int, kind: int) -> bool:
    nodes, words = _nodes(page)
    if not len(nodes):
        return lower == _HEADER
    if int(nodes.min()) * 2 < upper or int(nodes.max()) * 2 + _NODE > len(page):
        return False
    ends = nodes * 2 + _NODE + words[nodes + 3]
    if kind == _LEAF:
        flags = words[nodes + 2]
        sizes = words[nodes] + (words[nodes + 1] << 16)
        ends = ends + np.where((flags & _BIG) != 0, 8, sizes)
        if (flags & ~np.int64(_BIG)).any():
            return False
    return bool(int(ends.max()) <= len(page))
