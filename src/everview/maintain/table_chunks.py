"""Rows of a base table as they were at a frontier.

The rows of now, with all that was written after the frontier undone, are the rows of
then, so an epoch that takes in rows can be tried again and takes in the same.

    rows(F)  =  rows(now)  −  keys written in (F, now]  +  what the first of those writes found

The log has the before-image of every write. It is kept as long as a build needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.catalog import documents
from everview.change.entries import HAD, INCARNATION, KEY, OLD, SEQ
from everview.change.frontier import Frontier
from everview.change.schema import Schema
from everview.errors import EpochError
from everview.maintain.tasks import Chunk
from everview.operators.evaluation import one_array
from everview.operators.flow import empty
from everview.store.contract import LogBatch, Store, Table, TableSnapshot
from everview.store.encoding.keys import KeyCodec

PIECES = 4
WORTH_PIECES = 10_000
"""Rows from which on a chunk is cut into pieces."""
BYTES = 1 << 27
"""Bytes of rows from which on a chunk takes in no more of them."""
WORD = 8
"""Bytes that a value takes in columns, at least."""


def next_chunk(snapshot: TableSnapshot, table: Table, after: bytes | None, size: int, loaded: tuple[str, ...]) -> Chunk:
    """What comes after ``after``: about so many rows, fewer if they are large, and to the end of the
    table if there are no more."""
    fits = max(1, BYTES // (WORD * len(table.schema.names)))  # however little of it is stored, as nulls are
    keys, more = snapshot.table(table).keys(after, min(size, fits), BYTES)
    edges = [len(keys) * piece // PIECES for piece in range(1, PIECES)] if len(keys) >= WORTH_PIECES else []
    upto = keys[-1].as_py() if more else None
    return Chunk(table.name, after, upto, loaded, tuple(keys[edge].as_py() for edge in edges), len(keys))


def rows_at(store: Store, snapshot: TableSnapshot, table: Table, chunk: Chunk, frontier: Frontier) -> pa.Table:
    """The rows of a chunk as they were at a frontier that the snapshot has reached. They may have more
    columns than the table that is asked for: it may have gained some since the epoch began."""
    table = _as_stored(store, table)
    rows = _rows(snapshot, table, chunk.after, chunk.upto)
    later = frontier.slices_to(snapshot.frontier)
    batches = [batch for piece in later for batch in store.log.read(piece, [table]).batches]
    found = [batch.entries.filter(_within(batch.entries[KEY], chunk)) for batch in _with_images(table, batches)]
    written = [entries for entries in found if len(entries)]
    if not written:
        return rows
    entries = pa.concat_tables(written).sort_by([(INCARNATION, "ascending"), (SEQ, "ascending")])
    untouched = pc.invert(pc.is_in(keys_of(table.schema, rows), value_set=one_array(entries[KEY])))
    return pa.concat_tables([rows.filter(untouched), _found_by_first(entries, table.schema)])


def _as_stored(store: Store, table: Table) -> Table:
    """The table as it is defined after the snapshot was taken, so that no row of it is newer."""
    name = documents.table_name(table.id)
    found = store.metadata.documents(name)[1].get(name)
    return table if found is None else documents.read_table(name, found)


def loaded_entries(batch: LogBatch, chunk: Chunk) -> LogBatch | None:
    """The log entries that concern rows taken in before a chunk; None if there are none."""
    if batch.table.name in chunk.loaded:
        return batch
    if batch.table.name != chunk.table or chunk.after is None:
        return None
    entries = batch.entries.filter(pc.less_equal(batch.entries[KEY], pa.scalar(chunk.after, pa.large_binary())))
    return LogBatch(batch.table, batch.node, entries, batch.before_images) if len(entries) else None


def keys_of(schema: Schema, rows: pa.Table) -> pa.LargeBinaryArray:
    return KeyCodec(schema.key_parts).encode_columns([rows[name] for name in schema.key])


def _rows(snapshot: TableSnapshot, table: Table, after: bytes | None, upto: bytes | None) -> pa.Table:
    parts = [empty(table.schema.arrow)]
    last = None if upto is None else pa.scalar(upto, pa.large_binary())
    for rows in _following(snapshot, table, after):
        within = rows if last is None else rows.filter(pc.less_equal(keys_of(table.schema, rows), last))
        parts.append(within)
        if len(within) < len(rows):
            break
    return pa.concat_tables(parts)


def _following(snapshot: TableSnapshot, table: Table, after: bytes | None) -> Iterator[pa.Table]:
    """The rows with keys after ``after``."""
    start = None if after is None else KeyCodec(table.schema.key_parts).decode(after)
    for batch in snapshot.table(table).scan(start=start):
        rows = pa.Table.from_batches([batch])
        if after is not None:
            rows = rows.filter(pc.greater(keys_of(table.schema, rows), pa.scalar(after, pa.large_binary())))
        yield rows


def _within(keys: pa.ChunkedArray, chunk: Chunk) -> pa.ChunkedArray:
    found = pa.chunked_array([pa.array(np.ones(len(keys), np.bool_))])
    if chunk.after is not None:
        found = pc.and_(found, pc.greater(keys, pa.scalar(chunk.after, pa.large_binary())))
    if chunk.upto is not None:
        found = pc.and_(found, pc.less_equal(keys, pa.scalar(chunk.upto, pa.large_binary())))
    return found


def _with_images(table: Table, batches: Sequence[LogBatch]) -> Sequence[LogBatch]:
    if any(not batch.before_images for batch in batches):
        raise EpochError(
            f"the rows of table {table.name} at the frontier of an interrupted build are not known any more",
            detail="its log has no before-images",
            hint="the build has to restart",
        )
    return batches


def _found_by_first(entries: pa.Table, schema: Schema) -> pa.Table:
    """What the first write of each key found; nothing where there was no row."""
    codes = pc.dictionary_encode(one_array(entries[KEY])).indices.to_numpy()
    first = np.unique(codes, return_index=True)[1]
    had = one_array(entries[HAD]).to_numpy(zero_copy_only=False)[first]
    columns = [entries[name if name in schema.key else OLD + name] for name in schema.names]
    return pa.table(columns, schema=schema.arrow).take(pa.array(first[had]))
