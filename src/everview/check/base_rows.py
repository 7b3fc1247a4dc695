"""The rows of a base table at a frontier, as a stream that can be read again and again.

The rows of a snapshot, with every write after the frontier undone by what the log holds
that it found, are the rows of then.

::

    rows of the snapshot      a: 1   b: 7   c: 4
    the log after it          b: was 2      c: was not there      d: was 9
    rows at the frontier      a: 1   b: 2                         d: 9

Rows are passed on block by block, so memory is bounded by what was written since the frontier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import HAD, INCARNATION, KEY, OLD, SEQ
from everview.change.frontier import Frontier, Slice
from everview.errors import DamagedEntryError, SnapshotExpiredError
from everview.store.contract import Store, Table, TableSnapshot
from everview.store.encoding.keys import KeyCodec

_ENTRIES = 50_000
"""Log entries that are undone at a time."""


@dataclass(frozen=True)
class KeyRange:
    """The rows whose encoded keys are after ``after`` and not after ``upto``."""

    after: bytes | None = None
    upto: bytes | None = None


WHOLE = KeyRange()


@dataclass(frozen=True)
class _Undone:
    """The keys that were written after a frontier, and the rows that were there under them."""

    keys: pa.Array
    rows: pa.Table


class BaseRows:
    """A table, or a part of it, at a frontier that a snapshot has reached."""

    def __init__(
        self, store: Store, snapshot: TableSnapshot, frontier: Frontier, table: Table, part: KeyRange = WHOLE
    ) -> None:
        self.table = table
        self.schema: pa.Schema = table.schema.arrow
        self._store = store
        self._snapshot = snapshot
        self._frontier = frontier
        self._part = part
        self._codec = KeyCodec(table.schema.key_parts)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.scan())
        return reader.__arrow_c_stream__(requested_schema)

    def scan(self) -> Iterator[pa.RecordBatch]:
        """The rows, block by block; those that were written since come last."""
        start = None if self._part.after is None else self._codec.decode(self._part.after)
        for batch in self._snapshot.table(self.table).scan(start=start):
            rows, more = self._kept(batch)
            if len(rows):
                yield pa.RecordBatch.from_arrays(rows.columns, schema=self.schema)
            if not more:
                break
        if self._undone is not None:
            yield from self._undone.rows.to_batches()

    def _kept(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, bool]:
        """The rows of a block that are in the part and were not written since; whether more may follow."""
        if self._undone is None and self._part == WHOLE:
            return batch, True
        keys = self._codec.encode_columns([batch.column(name) for name in self.table.schema.key])
        more = self._part.upto is None or not len(keys) or keys[-1].as_py() <= self._part.upto
        inside = _within(keys, self._part)
        if self._undone is not None:
            inside = pc.and_(inside, pc.invert(pc.is_in(keys, value_set=self._undone.keys)))
        return batch.filter(inside), more

    @cached_property
    def _undone(self) -> _Undone | None:
        """What was written after the frontier; None where nothing was."""
        first: pa.Table | None = None
        for piece in self._pieces():
            content = self._store.log.read(piece, [self.table])
            if any(one.table in (None, self.table.id) for one in content.damaged):
                raise DamagedEntryError(
                    f"the rows of table {self.table.name} at {self._frontier} are not known",
                    detail=f"a log entry after it cannot be read: {content.damaged[0].reason}",
                    hint="verify again when the views have passed it",
                )
            for batch in content.batches:
                if not batch.before_images:
                    raise SnapshotExpiredError(
                        f"the rows of table {self.table.name} at {self._frontier} are not known any more",
                        detail="the logs of this store have no before-images",
                        hint="verify while no client writes and the views are up to date",
                    )
                entries = batch.entries.filter(_within(batch.entries[KEY], self._part))
                if len(entries):
                    first = _earliest(entries if first is None else pa.concat_tables([first, entries]))
        if first is None:
            return None
        schema = self.table.schema
        columns = [first[name if name in schema.key else OLD + name] for name in schema.names]
        return _Undone(first[KEY].combine_chunks(), pa.table(columns, schema=self.schema).filter(first[HAD]))

    def _pieces(self) -> Iterator[Slice]:
        for whole in self._frontier.slices_to(self._snapshot.frontier):
            for after in range(whole.after, whole.upto, _ENTRIES):
                yield Slice(whole.node, after, min(whole.upto, after + _ENTRIES))


def edges(snapshot: TableSnapshot, table: Table, rows: int) -> list[bytes]:
    """Keys that cut a table into parts of about so many rows."""
    codec = KeyCodec(table.schema.key_parts)
    found: list[bytes] = []
    passed = 0
    for batch in snapshot.table(table).scan():
        passed += len(batch)
        if passed >= rows:
            last = codec.encode_columns([batch.column(name)[-1:] for name in table.schema.key])
            found.append(last[0].as_py())
            passed = 0
    return found


def _earliest(entries: pa.Table) -> pa.Table:
    """The first write of each key: (incarnation, sequence) is their order in all logs."""
    entries = entries.combine_chunks().sort_by([(INCARNATION, "ascending"), (SEQ, "ascending")])
    codes = pc.dictionary_encode(entries[KEY].combine_chunks()).indices.to_numpy()
    return entries.take(pa.array(np.unique(codes, return_index=True)[1]))


def _within(keys: pa.Array | pa.ChunkedArray, part: KeyRange) -> pa.Array:
    found = pa.array(np.ones(len(keys), np.bool_))
    if part.after is not None:
        found = pc.and_(found, pc.greater(keys, pa.scalar(part.after, pa.large_binary())))
    if part.upto is not None:
        found = pc.and_(found, pc.less_equal(keys, pa.scalar(part.upto, pa.large_binary())))
    return found
