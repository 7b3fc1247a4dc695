"""The files of a store without its durability, for tests of epochs, records and bags."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from everview.change.frontier import Frontier
from everview.store.contract import BagEnds, BagRows, Begun, Deletes, Puts, StateReader, StateTable
from everview.store.embedded.environment import Environment, Transaction
from everview.store.embedded.views import EmbeddedViews
from everview.store.encoding.ragged import Bytes

T = TypeVar("T")


class Killed(Exception):
    """Stands for the death of the process in the middle of a write."""


class Files:
    """Fulfils the Core protocol; a write can be made to die before it reaches a shard."""

    def __init__(self, directory: Path, shards: int = 4) -> None:
        self.base = Environment(directory / "base.mdb")
        self.shards = tuple(Environment(directory / f"state-{number}.mdb") for number in range(shards))
        self.dies_at: set[Environment] = set()
        self.updates = 0

    def update(self, environment: Environment, work: Callable[[Transaction], T], /) -> T:
        if environment in self.dies_at:
            raise Killed
        self.updates += 1
        return environment.update(work)

    def entries(self) -> int:
        """How many keys all shards hold."""
        return sum(shard.lmdb.stat()["entries"] for shard in self.shards)

    def close(self) -> None:
        for environment in (self.base, *self.shards):
            environment.close()


def column(values: Iterable[bytes | None]) -> Bytes:
    return pa.array(list(values), pa.large_binary())


def puts(rows: dict[bytes, bytes], previous: dict[bytes, bytes] | None = None) -> Puts:
    known = None if previous is None else column(previous.get(key) for key in rows)
    return Puts(column(rows), column(rows.values()), known)


def deletes(keys: Iterable[bytes], previous: dict[bytes, bytes] | None = None) -> Deletes:
    keys = list(keys)
    return Deletes(column(keys), None if previous is None else column(previous.get(key) for key in keys))


def changes(rows: Iterable[tuple[bytes, bytes, int]]) -> BagRows:
    rows = list(rows)
    return BagRows(
        column(key for key, _, _ in rows),
        column(entry for _, entry, _ in rows),
        pa.array([count for _, _, count in rows], pa.int64()),
    )


def begin(views: EmbeddedViews, group: str = "main") -> Begun:
    """Begin the next epoch of a group, one log entry further on."""
    return views.begin(group, Frontier({1: views.committed(group).frontier[1] + 1}), b"plan")


def epoch(
    views: EmbeddedViews,
    table: StateTable,
    put: dict[bytes, bytes] | None = None,
    delete: Iterable[bytes] = (),
) -> int:
    """A whole epoch that writes records; its number."""
    begun = begin(views, table.group)
    views.write(table, begun.epoch, puts(put or {}), deletes(delete))
    views.commit(table.group, begun.epoch)
    return begun.epoch


def bag_epoch(views: EmbeddedViews, table: StateTable, rows: Iterable[tuple[bytes, bytes, int]]) -> tuple[int, BagEnds]:
    """A whole epoch that changes bags; its number, and what the write said."""
    begun = begin(views, table.group)
    ends = views.write_bags(table, begun.epoch, changes(rows))
    views.commit(table.group, begun.epoch)
    return begun.epoch, ends


def get(views: StateReader, table: StateTable, key: bytes, as_of: int) -> bytes | None:
    found: bytes | None = views.read(table, column([key]), as_of)[0].as_py()
    return found


def bag(views: StateReader, table: StateTable, key: bytes, as_of: int) -> dict[bytes, int]:
    rows = views.read_bags(table, column([key]), as_of)
    assert set(rows.keys.to_pylist()) <= {key}
    entries = rows.entries.to_pylist()
    assert entries == sorted(set(entries))
    return dict(zip(entries, rows.counts.to_pylist(), strict=True))
