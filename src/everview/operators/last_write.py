"""Last write wins: what entries come to that arrive in any order, and more than once.

An entry is a row of which each column has the time at which it was written, and two
of them are merged column by column, the later one winning; that is commutative, associative and
idempotent, so order and repetition do not matter.

    ticket 2, assigned to kmsalem   written at 1
    ticket 2, assigned to cjin      written at 9     in any order, from any number of logs:
    ticket 2, assigned to rliu      written at 5     assigned to cjin since 9

A deletion has a time as well and covers all that was written then or before. A row is there if it
was marked as present, or if a column holds a value, after its last deletion; a column that was set to
null is remembered as that, for it wins against older values. Where times are equal

- a deletion wins against what was written, and a null against a value;
- of two values the one with the greater bytes wins: as Cassandra has them for numbers (signed ones
  in two's complement, so −1 wins against 1), times of day, dates and timestamps, texts, blobs, UUIDs
  and booleans; decimals, 128-bit integers, intervals, lists, structs and maps as they are stored here.

Nothing in here knows what is old and what is new: the record of a key is one more entry.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import DELETE, GONE, KEY, KIND, MARKED, SET, TIME, TIMES
from everview.change.numbering import Ints, same_values
from everview.change.schema import Schema
from everview.change.types import FLOATS, INTEGERS, Kind, Type
from everview.operators.delta_record import BEGINNING, NEVER, DeltaRows, WriteTimes
from everview.operators.evaluation import one_array
from everview.operators.stored import StateRowCodec
from everview.operators.work import Mask
from everview.store.encoding.ragged import BINARY, column_of

STAMPS = "__stamps"
"""The times of an entry, in the form in which records hold them."""


def has_times(entries: pa.Table) -> bool:
    """Whether log entries, or rows, have the times of their writes."""
    named = entries.column_names
    return TIME in named or GONE in named or MARKED in named or any(name.startswith(TIMES) for name in named)


def writes(entries: pa.Table, schema: Schema, key: Sequence[str], used: Sequence[str]) -> pa.Table:
    """Entries in the form in which they are merged: key, used columns, times."""
    return entries.select([*dict.fromkeys([KEY, *key, *used])]).append_column(
        STAMPS, stamps(entries, schema).to_bytes()
    )


def stamps(entries: pa.Table, schema: Schema) -> WriteTimes:
    """When the parts of entries were written. One time for all, or one for each; null where the
    entry does not write a column; a put without any time is older than all that have one."""
    count, columns = len(entries), schema.values
    deletes = np.zeros(count, np.bool_)
    if KIND in entries.column_names:
        deletes = one_array(entries[KIND]).to_numpy() == DELETE
    whole = _times(entries, TIME, BEGINNING) if TIME in entries.column_names else None
    found = WriteTimes.never(count, len(columns))
    found.gone[:] = _event_times(entries, GONE, whole, deletes)
    found.marked[:] = _event_times(entries, MARKED, whole, ~deletes)
    for place, column in enumerate(columns):
        named = ~deletes
        if SET + column.name in entries.column_names:
            named &= one_array(entries[SET + column.name]).to_numpy(zero_copy_only=False)
        found.cells[:, place] = _event_times(entries, TIMES + column.name, whole, named)
        holds = one_array(entries[column.name]).is_valid().to_numpy(zero_copy_only=False)
        found.holds[:, place] = holds & (found.cells[:, place] > NEVER)
    return found


def _event_times(entries: pa.Table, name: str, whole: Ints | None, where: Mask) -> Ints:
    """The times of a column of times; where there is none, of the entry, for the rows that mean it."""
    if name in entries.column_names:
        return _times(entries, name, NEVER)
    return np.full(len(entries), NEVER) if whole is None else np.where(where, whole, NEVER)


def _times(entries: pa.Table, name: str, absent: int) -> Ints:
    found: Ints = one_array(entries[name]).fill_null(absent).to_numpy()
    return found


def merged(
    times: WriteTimes, columns: Sequence[pa.Array], used: Sequence[tuple[int, Type]], codes: Ints, count: int
) -> DeltaRows:
    """What entries come to, for each of ``count`` keys; ``codes`` are the numbers of the entries' keys.
    ``columns`` are those with these places and types among all value columns."""
    found = WriteTimes.never(count, times.cells.shape[1])
    np.maximum.at(found.gone, codes, times.gone)
    np.maximum.at(found.marked, codes, times.marked)
    found.marked[found.marked <= found.gone] = NEVER
    by_place = {place: (column, kind) for column, (place, kind) in zip(columns, used, strict=True)}
    values: dict[int, pa.Array] = {}
    for place in range(times.cells.shape[1]):
        written = np.ascontiguousarray(times.cells[:, place])
        latest = np.full(count, NEVER)
        np.maximum.at(latest, codes, written)
        latest[latest <= found.gone] = NEVER
        found.cells[:, place] = latest
        chosen = np.flatnonzero((written == latest[codes]) & (written > NEVER))
        if place in by_place:
            column, kind = by_place[place]
            winner = _winners(chosen, codes, count, column, kind)
            values[place] = column.take(pa.array(winner, mask=winner < 0))
            found.holds[:, place] = values[place].is_valid().to_numpy(zero_copy_only=False)
        else:
            found.holds[codes[chosen], place] = True
            found.holds[codes[chosen[~times.holds[chosen, place]]], place] = False
    return DeltaRows(found.there, [values[place] for place, _ in used], found)


def _winners(chosen: Ints, codes: Ints, count: int, column: pa.Array, kind: Type) -> Ints:
    """For each key the one of the chosen entries whose value wins; −1 where there is none."""
    found = np.full(count, -1, np.int64)
    found[codes[chosen]] = chosen
    others = chosen[found[codes[chosen]] != chosen]
    if not len(others):
        return found
    same = same_values(column.take(pa.array(others)), column.take(pa.array(found[codes[others]])))
    if same.all():
        return found
    contested = np.zeros(count, np.bool_)
    contested[codes[others[~same]]] = True
    left = chosen[contested[codes[chosen]]]
    # nulls rank last, so they win
    rank = pc.rank(_bytes(column.take(pa.array(left)), kind), tiebreaker="dense").to_numpy()
    ascending = left[np.argsort(rank, kind="stable")]
    found[codes[ascending]] = ascending
    return found


_PLAIN = {*INTEGERS, *FLOATS, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ} - {Kind.HUGEINT, Kind.UHUGEINT}


def _bytes(values: pa.Array, kind: Type) -> pa.Array:
    """What decides between values of equal times; null where they are."""
    if kind.kind in _PLAIN:
        width = values.type.bit_width // 8
        held = np.frombuffer(values.buffers()[1], f"<u{width}", len(values), values.offset * width)
        made = column_of(held.astype(f">u{width}"), np.arange(len(values) + 1) * width)
    elif kind.kind is Kind.BOOLEAN:
        return values.cast(pa.uint8())
    elif kind.kind is Kind.VARCHAR or kind.kind is Kind.BLOB:
        return values.cast(BINARY)
    elif kind.kind is Kind.JSON or kind.kind is Kind.UUID:
        return values.storage.cast(BINARY)
    else:
        made = StateRowCodec([("value", kind)], "merging").encode([values], len(values))
    return pc.if_else(values.is_valid(), made, pa.scalar(None, BINARY))
