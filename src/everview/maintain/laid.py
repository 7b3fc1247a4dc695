"""A snapshot with changes of views laid over it.

::

    committed rows at frontier C        {a: 1, b: 2}
    changes from C to F                 b → 3, c → 4
    laid over                           {a: 1, b: 3, c: 4}        what the epoch to F will commit

Rows are laid over as records: of each place that changes, the one that is there afterwards. Reads,
scans and pages show them as if they were stored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from everview.change.frontier import Frontier
from everview.store.contract import (
    BagEnds,
    BagRows,
    Commit,
    HeldTable,
    Records,
    StateTable,
    Table,
    TableSnapshot,
)
from everview.store.encoding.keys import successor
from everview.store.encoding.ragged import BINARY, Bytes


@dataclass(frozen=True)
class Moved:
    """What the logs between two frontiers change in one view."""

    table: StateTable
    """Of the view's rows."""
    records: Mapping[bytes, bytes | None]
    """Of each touched place the record that is there afterwards."""

    @cached_property
    def places(self) -> list[bytes]:
        """The touched places, in their order."""
        return sorted(self.records)


class Laid:
    """A snapshot with changes of views laid over it: their records as of the last committed epoch are
    those at the frontier that they moved to."""

    def __init__(self, snapshot: TableSnapshot, moved: Sequence[Moved]) -> None:
        self._snapshot = snapshot
        self._moved: dict[int, Moved] = {}
        for one in moved:
            known = self._moved.get(one.table.id)  # of another member of a family
            self._moved[one.table.id] = one if known is None else Moved(one.table, {**known.records, **one.records})

    # -------------------------------------------------------------- records

    def get(self, table: StateTable, key: bytes, as_of: int) -> bytes | None:
        moved = self._moved.get(table.id)
        if moved is not None and key in moved.records:
            return moved.records[key]
        return self._snapshot.get(table, key, as_of)

    def read(self, table: StateTable, keys: Bytes, as_of: int) -> Bytes:
        found = self._snapshot.read(table, keys, as_of)
        moved = self._moved.get(table.id)
        if moved is None:
            return found
        over = moved.records
        plain = zip(keys.to_pylist(), found.to_pylist(), strict=True)
        return pa.array([over.get(key, value) for key, value in plain], BINARY)

    def scan(
        self, table: StateTable, prefix: bytes, as_of: int, limit: int | None = None, after: bytes | None = None
    ) -> Records:
        moved = self._moved.get(table.id)
        if moved is None or not moved.records:
            return self._snapshot.scan(table, prefix, as_of, limit, after)
        parts: list[Records] = []
        left = limit
        while True:
            found = self._snapshot.scan(table, prefix, as_of, left, after)
            whole = left is None or len(found.keys) < left
            upto = None if whole else found.keys[-1].as_py()
            parts.append(_with_changes(moved, found, prefix, after, upto))
            if left is not None:
                left -= len(parts[-1].keys)
            if whole or left is None or left <= 0:
                break
            after = upto
        keys = pa.concat_arrays([part.keys for part in parts])
        values = pa.concat_arrays([part.values for part in parts])
        return Records(keys[:limit], values[:limit])

    # -------------------------------------------------------------- as they are

    def read_bags(self, table: StateTable, keys: Bytes, as_of: int, first: pa.Int64Array | None = None) -> BagRows:
        return self._snapshot.read_bags(table, keys, as_of, first)

    def bag_keys(self, table: StateTable, as_of: int, limit: int | None = None, after: bytes | None = None) -> Bytes:
        return self._snapshot.bag_keys(table, as_of, limit, after)

    def bag_ends(self, table: StateTable, keys: Bytes, as_of: int) -> tuple[Bytes, Bytes]:
        return self._snapshot.bag_ends(table, keys, as_of)

    def preview_bags(self, table: StateTable, changes: BagRows, as_of: int) -> BagEnds:
        return self._snapshot.preview_bags(table, changes, as_of)

    def committed(self, group: str) -> Commit:
        return self._snapshot.committed(group)

    @property
    def frontier(self) -> Frontier:
        return self._snapshot.frontier

    def table(self, table: Table) -> HeldTable:
        return self._snapshot.table(table)

    def close(self) -> None:
        self._snapshot.close()

    def __enter__(self) -> Laid:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _with_changes(moved: Moved, found: Records, prefix: bytes, after: bytes | None, upto: bytes | None) -> Records:
    """Records of a stretch of keys, and what is laid over the same stretch."""
    over, places = moved.records, moved.places
    first = max(bisect_left(places, prefix), 0 if after is None else bisect_right(places, after))
    beyond = successor(prefix)
    last = len(places) if beyond is None else bisect_left(places, beyond)
    if upto is not None:
        last = min(last, bisect_right(places, upto))
    touched = places[first:last]
    if not touched:
        return found
    kept = pc.invert(pc.is_in(found.keys, value_set=pa.array(touched, BINARY)))
    fresh = [place for place in touched if over[place] is not None]
    keys = pa.concat_arrays([found.keys.filter(kept), pa.array(fresh, BINARY)])
    values = pa.concat_arrays([found.values.filter(kept), pa.array([over[place] for place in fresh], BINARY)])
    order = pc.array_sort_indices(keys)
    return Records(keys.take(order), values.take(order))
