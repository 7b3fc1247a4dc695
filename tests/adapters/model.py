"""The reference model of base tables and their logs: plain dictionaries, as slow as they like.

A write is a list of operations that is applied wholly or refused wholly, and
every log entry the store shows for it must be explained by that list.

A row is held without its nulls, so that a row written before a column was added equals the
same row read after. The model does not prescribe how many entries a write leaves behind
(a store may condense a batch, or skip the delete of a row that is not there), only that
they chain up: each entry begins where the one before it ended, the first where the row
stood before the write, the last where it stands after.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from everview.change.entries import HAD, INCARNATION, KEY, KIND, OLD, SEQ, SET
from everview.change.frontier import Frontier, Position, Slice
from everview.change.schema import Column, Schema
from everview.store.contract import EntryKind, Region, Row, SliceContent

Key = tuple[object, ...]
Values = dict[str, object]
"""The value columns of a row that are not null."""

LAST_TOKEN = 2**32 - 1


class Refused(Exception):
    """The write breaks a rule; nothing of it is applied."""


@dataclass(frozen=True)
class Put:
    table: str
    row: Row


@dataclass(frozen=True)
class Delete:
    table: str
    key: Key


Operation = Put | Delete


@dataclass(frozen=True)
class Entry:
    """A log entry as a reader finds it."""

    table: str
    key: Key
    encoded: bytes
    node: int
    incarnation: int
    sequence: int
    kind: EntryKind
    values: Values
    named: frozenset[str] | None
    """Without before-images: the columns the put named."""
    old: Values | None
    had: bool | None

    @property
    def position(self) -> Position:
        return Position(self.node, self.sequence)

    @property
    def order(self) -> tuple[int, int]:
        return self.incarnation, self.sequence

    def applied_to(self, row: Values | None) -> Values | None:
        """The row after this entry."""
        if self.kind is EntryKind.DELETE:
            return None
        if self.named is None:
            return self.values
        return {name: value for name, value in (row or {}).items() if name not in self.named} | self.values


@dataclass(frozen=True)
class Write:
    """One call that wrote: from where to where it moved the logs."""

    start: Frontier
    end: Frontier

    @property
    def pieces(self) -> tuple[Slice, ...]:
        return self.start.slices_to(self.end)

    @property
    def size(self) -> int:
        return sum(len(piece) for piece in self.pieces)

    def within(self, cut: Frontier) -> bool:
        return all(cut[piece.node] >= piece.upto for piece in self.pieces)

    def beyond(self, cut: Frontier) -> bool:
        return all(cut[piece.node] <= piece.after for piece in self.pieces)


@dataclass(frozen=True)
class Touched:
    before: Values | None
    after: Values | None


def plain(value: object) -> object:
    """The value in a form that equals itself: NaN does not."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def without_nulls(row: Row, names: Iterable[str], prefix: str = "") -> Values:
    return {name: plain(row[prefix + name]) for name in names if row.get(prefix + name) is not None}


def sort_key(key: Key) -> tuple[object, ...]:
    """Text orders by its UTF-8 bytes."""
    return tuple(part.encode() if isinstance(part, str) else part for part in key)


def entries_of(content: SliceContent) -> list[Entry]:
    """The entries of a slice in log order."""
    assert content.damaged == ()
    found = []
    for batch in content.batches:
        schema = batch.table.schema
        names = [column.name for column in schema.values]
        for row in batch.entries.to_pylist():
            kind = EntryKind(row[KIND])
            named = None
            if not batch.before_images:
                named = frozenset(name for name in names if row[SET + name])
            found.append(
                Entry(
                    table=batch.table.name,
                    key=tuple(row[name] for name in schema.key),
                    encoded=row[KEY],
                    node=batch.node,
                    incarnation=row[INCARNATION],
                    sequence=row[SEQ],
                    kind=kind,
                    values=without_nulls(row, names),
                    named=named,
                    old=without_nulls(row, names, OLD) if batch.before_images else None,
                    had=row[HAD] if batch.before_images else None,
                )
            )
    return sorted(found, key=lambda entry: entry.sequence)


def replay(entries: Iterable[Entry]) -> dict[str, dict[Key, Values]]:
    """The tables that the logs describe, by per-key order alone."""
    tables: dict[str, dict[Key, Values]] = {}
    for entry in sorted(entries, key=lambda entry: entry.order):
        rows = tables.setdefault(entry.table, {})
        row = entry.applied_to(rows.pop(entry.key, None))
        if row is not None:
            rows[entry.key] = row
    return tables


@dataclass
class Model:
    """Base tables, the logs as they were read back, and the writes that made them."""

    token: Callable[[bytes], int]
    schemas: dict[str, Schema] = field(default_factory=dict)
    rows: dict[str, dict[Key, Values]] = field(default_factory=dict)
    logs: dict[int, list[Entry]] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    regions: tuple[Region, ...] = ()
    end: Frontier = field(default_factory=Frontier)
    trimmed: Frontier = field(default_factory=Frontier)

    # ------------------------------------------------------------------ tables

    def create(self, name: str, schema: Schema) -> None:
        self.schemas[name] = schema
        self.rows[name] = {}

    def add_column(self, name: str, column: Column) -> None:
        self.schemas[name] = self.schemas[name].add(column)

    def write(self, operations: Sequence[Operation]) -> dict[tuple[str, Key], Touched]:
        """Apply all operations or, raising :class:`Refused`, none."""
        pending: dict[tuple[str, Key], Values | None] = {}
        for operation in operations:
            rows = self.rows[operation.table]
            if isinstance(operation, Delete):
                pending[operation.table, operation.key] = None
                continue
            schema = self.schemas[operation.table]
            key = tuple(operation.row[name] for name in schema.key)
            old = pending.get((operation.table, key), rows.get(key))
            given = [column for column in schema.values if column.name in operation.row]
            kept = {} if old is None else {n: v for n, v in old.items() if n not in operation.row}
            row = kept | without_nulls(operation.row, [column.name for column in given])
            for column in schema.values:
                if not column.nullable and column.name not in row:
                    raise Refused(f"{operation.table}{key} has no {column.name}")
            pending[operation.table, key] = row
        touched = {}
        for (table, key), after in pending.items():
            touched[table, key] = Touched(self.rows[table].pop(key, None), after)
            if after is not None:
                self.rows[table][key] = after
        return touched

    def full(self, name: str, key: Key) -> Row | None:
        """The whole row as a client sees it."""
        values = self.rows[name].get(key)
        if values is None:
            return None
        schema = self.schemas[name]
        parts = dict(zip(schema.key, key, strict=True))
        return {column: parts[column] if column in parts else values.get(column) for column in schema.names}

    def scan(
        self, name: str, prefix: Key = (), start: Key | None = None, stop: Key | None = None, limit: int | None = None
    ) -> list[Row]:
        """Rows in key order. A bound of fewer components stands before every key it begins."""
        keys = [
            key
            for key in sorted(self.rows[name], key=sort_key)
            if key[: len(prefix)] == prefix
            and (start is None or sort_key(key) >= sort_key(start))
            and (stop is None or sort_key(key) < sort_key(stop))
        ]
        found = [self.full(name, key) for key in keys]
        return [row for row in found if row is not None][:limit]

    # ------------------------------------------------------------------ logs

    def absorb(self, end: Frontier, entries: list[Entry], touched: dict[tuple[str, Key], Touched]) -> None:
        """Check the entries that one write call appended, and remember them."""
        start = self.end
        assert start <= end
        by_key: dict[tuple[str, Key], list[Entry]] = {}
        for entry in entries:
            by_key.setdefault((entry.table, entry.key), []).append(entry)
        assert by_key.keys() <= touched.keys(), "an entry of a key nobody wrote"
        for place, change in touched.items():
            self._check_chain(by_key.get(place, []), change)
        for piece in start.slices_to(end):
            sequences = [entry.sequence for entry in entries if entry.node == piece.node]
            assert sequences == list(range(piece.after + 1, piece.upto + 1)), "a gap or a duplicate"
        assert sum(len(piece) for piece in start.slices_to(end)) == len(entries)
        for entry in entries:
            self.logs.setdefault(entry.node, []).append(entry)
        if start != end:
            self.writes.append(Write(start, end))
        self.end = end

    def _check_chain(self, entries: list[Entry], change: Touched) -> None:
        row = change.before
        for entry in sorted(entries, key=lambda entry: entry.order):
            owner = self.owner(entry.encoded)
            assert (entry.node, entry.incarnation) == (owner.node, owner.incarnation)
            if entry.old is not None:
                assert entry.had == (row is not None)
                assert entry.old == (row or {})
            row = entry.applied_to(row)
        assert row == change.after

    def owner(self, encoded: bytes) -> Region:
        token = self.token(encoded)
        [region] = [region for region in self.regions if region.first <= token <= region.last]
        return region

    def entries(self) -> list[Entry]:
        return [entry for log in self.logs.values() for entry in log]

    def check_regions(self, regions: Sequence[Region], nodes: Sequence[int]) -> None:
        """The regions tile the ring, belong to nodes that are there, and every part of the
        ring that changed hands has a higher incarnation than it had."""
        assert regions[0].first == 0
        assert regions[-1].last == LAST_TOKEN
        for left, right in itertools.pairwise(regions):
            assert left.last + 1 == right.first
        for region in regions:
            assert region.first <= region.last
            assert region.node in nodes
            for earlier in self.regions:
                if max(region.first, earlier.first) <= min(region.last, earlier.last):
                    if region.node == earlier.node:
                        assert region.incarnation == earlier.incarnation
                    else:
                        assert region.incarnation > earlier.incarnation
        self.regions = tuple(regions)

    # ------------------------------------------------------------------ cuts

    def check_cut(self, cut: Frontier) -> None:
        """No batch is cut, and of every key's history the cut holds a beginning."""
        assert cut <= self.end
        for write in self.writes:
            assert write.within(cut) or write.beyond(cut), f"{cut} cuts the batch {write}"
        ended: set[tuple[str, Key]] = set()
        for entry in sorted(self.entries(), key=lambda entry: entry.order):
            place = entry.table, entry.key
            if not cut.covers(entry.position):
                ended.add(place)
            assert place not in ended or not cut.covers(entry.position), f"{cut} takes {entry} before an earlier one"

    def check_advance(self, start: Frontier, limit: int, cut: Frontier) -> None:
        """The cut is the furthest allowed: the first write it leaves out would be too much."""
        self.check_cut(cut)
        assert start <= cut
        pending = [write for write in self.writes if not write.within(start)]
        if not pending:
            assert cut == start
            return
        taken = start.operations_to(cut)
        assert taken > 0
        assert taken <= limit or len([write for write in pending if write.within(cut)]) == 1
        left_out = [write for write in pending if not write.within(cut)]
        assert not left_out or taken + left_out[0].size > limit

    def cuts(self) -> list[Frontier]:
        """Cuts a reader may start from: everything written up to some moment."""
        return [cut for cut in (Frontier(), *(write.end for write in self.writes)) if self.trimmed <= cut]
