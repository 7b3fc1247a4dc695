"""Is a store whole? Everything that can be said of its files without knowing what its rows mean.

First the files and what they say about themselves, then every page of every file at one cut, and
only then, since LMDB trusts its pages, every entry.

Other processes may use the store meanwhile: the cut is pinned as a durable point is (durability.py), so its
pages stay as they are until all of them were visited.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from everview.errors import EverviewError, NotAStoreError
from everview.store.embedded import blocks, layout
from everview.store.embedded.core import Core
from everview.store.embedded.creation import Finding, survey
from everview.store.embedded.durability import boot_id, locked
from everview.store.embedded.environment import Transaction
from everview.store.embedded.epoch_records import RESERVED, begun_in, committed_in, number_of
from everview.store.embedded.identity import problems
from everview.store.embedded.meta_pages import parse_meta
from everview.store.embedded.pages import walk
from everview.store.embedded.points import read_point
from everview.store.embedded.topology import Map
from everview.store.embedded.versions import value_as_of

MOST = 20
"""Problems of one kind that are described; the others are counted."""

_NEVER = (1 << 64) - 1
_FENCE = RESERVED + b"F"
_NODE_AND_LAST = struct.Struct(">xIQ")


@dataclass
class Inspection:
    """What was looked at, and what is wrong with it."""

    problems: list[str] = field(default_factory=list)
    visited: dict[str, int] = field(default_factory=dict)
    """What was looked at, by kind: how many."""

    @property
    def whole(self) -> bool:
        return not self.problems

    def add(self, where: str, found: Iterator[str]) -> None:
        more = 0
        for number, problem in enumerate(found):
            more = max(0, number + 1 - MOST)
            if not more:
                self.problems.append(f"{where}: {problem}")
        if more:
            self.problems.append(f"{where}: and {more} more")

    def count(self, kind: str, number: int) -> None:
        self.visited[kind] = self.visited.get(kind, 0) + number


def inspect_files(directory: Path) -> Inspection:
    """What can be seen of a directory without opening the store in it; nothing is changed."""
    found = Inspection()
    if survey(directory) is not Finding.STORE:
        raise NotAStoreError(f"there is no store in {directory}", detail="its creation was never finished")
    try:
        marker = layout.read_marker(directory)
        with (directory / layout.LOCK).open("rb") as file, locked(file):
            point = read_point(directory)
            if point is None:
                found.problems.append(f"{layout.DURABLE} is missing or damaged: the store has no durable point")
            elif marker is not None:
                wrong = problems(directory, marker, point, rebooted=point.boot != boot_id())
                found.problems += [_described(error) for error in wrong]
                found.count("files", len(marker.settings.files))
    except FileNotFoundError as error:
        found.problems.append(f"{error.filename} is missing")
    except EverviewError as error:
        found.problems.append(_described(error))
    return found


def _described(error: EverviewError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def inspect_contents(core: Core) -> Inspection:
    """Every page and every entry of all files, at one cut."""
    found = Inspection()
    with core.durability.readable() as (pins, metas):
        for name, (_, raw) in metas.items():
            meta = parse_meta(raw)
            assert meta is not None
            tally = walk(core.directory / name, meta)
            found.count("pages", tally.visited)
            found.add(name, iter(tally.problems))
        if found.whole:
            base = pins[layout.BASE]
            found.add(layout.BASE, _inspect_base(base, found))
            for number in range(core.settings.shards):
                name = layout.shard_name(number)
                found.add(name, _inspect_shard(pins[name], base, found))
    return found


def _inspect_base(base: Transaction, found: Inspection) -> Iterator[str]:
    rows: Counter[int] = Counter()
    counts: dict[int, int] = {}
    ends: dict[int, int] = {}
    previous = b""
    for key, value in base.cursor():
        if key <= previous:
            yield f"the entry {key.hex()} is not in order"
        previous, kind = key, key[:1]
        if kind == layout.ROW:
            rows[int.from_bytes(key[1 : layout.KEY_PREFIX], "big")] += 1
        elif kind == layout.COUNT:
            counts[int.from_bytes(key[1:], "big")] = int.from_bytes(value, "big")
        elif kind == layout.LOG:
            yield from _inspect_block(key, value, ends)
            found.count("log blocks", 1)
        elif kind not in (layout.DOCUMENT, layout.TOPOLOGY, b"E", b"W"):
            yield f"no version of Everview writes entries like {key.hex()}"
    found.count("rows", rows.total())
    for table in sorted(rows.keys() | counts.keys()):
        if rows[table] != counts.get(table, 0):
            yield f"table {table} has {rows[table]} rows, and counts {counts.get(table, 0)}"
    yield from _failing("the topology", lambda: Map.decode(base.get(layout.TOPOLOGY, b"")))
    for group in _groups(base):
        yield from _failing(f"the epochs of group {group}", partial(_epochs, base, group))


def _inspect_block(key: bytes, block: bytes, ends: dict[int, int]) -> Iterator[str]:
    node, last = _NODE_AND_LAST.unpack(key)
    if not blocks.sound([block])[0]:
        yield f"the block of node {node} that ends with entry {last} is damaged: its checksum is wrong"
    else:
        first, entries = blocks.HEADER.unpack_from(block)[5:7]
        if first + entries - 1 != last or first != ends.get(node, first - 1) + 1:
            yield f"the log of node {node} has a gap before entry {last}"
    ends[node] = last


def _groups(base: Transaction) -> list[str]:
    keys = (key for key in base.cursor().iternext(values=False) if key[:2] in (b"EC", b"EB"))
    return sorted({key[2:].decode(errors="replace") for key in keys})


def _epochs(base: Transaction, group: str) -> None:
    committed, begun = committed_in(base, group), begun_in(base, group)
    given = number_of(base.get(b"EN"))
    if max(committed.epoch, begun.epoch if begun else 0) > given:
        raise NotAStoreError(f"it is at epoch {committed.epoch}, but only {given} epochs were begun")


def _inspect_shard(shard: Transaction, base: Transaction, found: Inspection) -> Iterator[str]:
    given = number_of(base.get(b"EN"))
    for key, value in shard.cursor():
        if key.startswith(_FENCE):
            group = key[len(_FENCE) :].decode(errors="replace")
            if number_of(value) > committed_in(base, group).epoch:
                yield f"the fence of group {group} is at epoch {number_of(value)}, beyond its last committed one"
        elif not key.startswith(RESERVED) and len(key) > len(RESERVED):
            table = int.from_bytes(key[: len(RESERVED)], "big")
            yield from _failing(f"a record of state table {table}", partial(value_as_of, value, _NEVER, str(table)))
            if int.from_bytes(value[:8], "little") > given:
                yield f"a record of state table {table} is of an epoch that was never begun"
            found.count("records", 1)


def _failing(what: str, work: Callable[[], object]) -> Iterator[str]:
    try:
        work()
    except (EverviewError, ValueError, KeyError, TypeError, IndexError, struct.error) as error:
        yield f"{what} cannot be read: {error.message if isinstance(error, EverviewError) else error}"
