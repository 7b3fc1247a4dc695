"""Histories of writes, and views taken through them epoch by epoch.

After every epoch of a history every view is compared with its query over the base
rows, and every epoch is run twice before it is committed, for a step must not see what it wrote.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from everview.change.schema import Schema
from everview.store.contract import BagEnds, BagRows, Begun, Commit, Records, StateReader, StateTable
from everview.store.encoding.ragged import Bytes
from tests.oracle.maintained import GROUP, EpochRunner, Maintained

Write = tuple[str, dict[str, object], bool]
"""A table, a row, and whether it is deleted instead of put."""
History = Sequence[Sequence[Write]]


@contextmanager
def maintained(tables: Mapping[str, Schema], views: Mapping[str, str]) -> Iterator[Maintained]:
    with tempfile.TemporaryDirectory() as path:
        found = Maintained(Path(path) / "store", tables, views)
        try:
            yield found
        finally:
            found.close()


def history(rows: Mapping[str, Mapping[str, Sequence[object]]], seed: int, *, epochs: int = 6) -> History:
    """A history over tables whose columns have such values: rows come, change in part, move to
    other keys, go, and come again."""
    choose = random.Random(seed)
    return [
        [
            (name, {column: choose.choice(values) for column, values in rows[name].items()}, choose.random() < 0.3)
            for name in choose.choices(sorted(rows), k=choose.choice((1, 4, 10)))
        ]
        for _ in range(epochs)
    ]


def apply(m: Maintained, writes: Sequence[Write]) -> None:
    for name, row, dead in writes:
        if dead:
            m.table(name).delete(*(row[part] for part in m.tables[name].schema.key))
        else:
            m.table(name).put(row)


def emitted(m: Maintained, begun: Begun) -> dict[str, list[dict[str, object]]]:
    """What every step makes of an epoch's log, as of the epoch before."""
    batches = m.runner.read(m.store, begun).batches
    found = m.runner.dry(m.store.views, begun.base, batches)
    return {step: changes.to_pylist() for step, changes in found.changes.items()}


def taken(m: Maintained, history: History) -> None:
    """Take the views through a history."""
    for writes in history:
        apply(m, writes)
        begun = m.begin()
        before = emitted(m, begun)
        m.runner.epoch(m.store, begun)
        assert repr(emitted(m, begun)) == repr(before)
        m.epoch()
        m.check()


class Watched:
    """A reader that counts the rows of bags it gave."""

    def __init__(self, reader: StateReader) -> None:
        self.reader = reader
        self.rows: dict[str, int] = {}

    def read(self, table: StateTable, keys: Bytes, as_of: int) -> Bytes:
        return self.reader.read(table, keys, as_of)

    def get(self, table: StateTable, key: bytes, as_of: int) -> bytes | None:
        return self.reader.get(table, key, as_of)

    def scan(
        self, table: StateTable, prefix: bytes, as_of: int, limit: int | None = None, after: bytes | None = None
    ) -> Records:
        return self.reader.scan(table, prefix, as_of, limit, after)

    def read_bags(self, table: StateTable, keys: Bytes, as_of: int, first: pa.Int64Array | None = None) -> BagRows:
        found = self.reader.read_bags(table, keys, as_of, first)
        self.rows[table.name] = self.rows.get(table.name, 0) + len(found.keys)
        return found

    def bag_ends(self, table: StateTable, keys: Bytes, as_of: int) -> tuple[Bytes, Bytes]:
        return self.reader.bag_ends(table, keys, as_of)

    def preview_bags(self, table: StateTable, changes: BagRows, as_of: int) -> BagEnds:
        return self.reader.preview_bags(table, changes, as_of)

    def committed(self, group: str) -> Commit:
        return self.reader.committed(group)


def rows_read(m: Maintained) -> dict[str, int]:
    """How many rows of each state's bags the writes since the last epoch make steps read."""
    watched = Watched(m.store.views)
    last = m.store.views.committed(GROUP)
    runner = EpochRunner(m.later)
    batches = [
        batch
        for piece in last.frontier.slices_to(m.store.log.latest())
        for batch in m.store.log.read(piece, list(m.later.tables.values())).batches
    ]
    runner.dry(watched, last.epoch, batches)
    return watched.rows
