"""Writes in order: what the entries of a log come to, where they hold neither what they found nor
when they were written.

Of the writes of a key only the last of each column counts, and of those only the
ones after its last deletion.

    put  k=5  a=1, b=1
    delete k=5                  →   put  k=5  a=2, b=NULL, c=3
    put  k=5  a=2
    put  k=5  c=3

The order is (incarnation, sequence): a region that moves to another node has another log there,
and a higher incarnation. Several writes of a key come to one write of the same form, so parts of a
log can be composed where they are read, and again where they meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.change.entries import DELETE, INCARNATION, KEY, KIND, PUT, SEQ, SET
from everview.change.numbering import Ints, Numbers, row_numbers
from everview.operators.delta_record import DeltaRows
from everview.operators.evaluation import one_array
from everview.operators.work import Mask
from everview.store.encoding.columns import one_array as joined


@dataclass(frozen=True)
class Composed:
    """What entries come to, key by key."""

    entries: pa.Table
    """In order."""
    first: Ints
    """An entry of each key."""
    last: Ints
    there: Mask
    """Whether the last entry is a put."""
    reset: Mask
    """Whether the row was deleted on the way."""
    sources: list[Ints]
    """For each column the entry that set it last; −1 where none did."""

    def on(self, old: DeltaRows) -> DeltaRows:
        """The rows that the writes leave, where they found these."""
        count = len(self.first)
        kept = np.where(self.reset, -1, np.arange(count))
        columns = []
        for was, name, source in zip(old.columns, self._names, self.sources, strict=True):
            chosen = np.where(source >= 0, source + count, kept)
            both = joined([was, one_array(self.entries[name])])
            columns.append(both.take(pa.array(chosen, mask=(chosen < 0) | ~self.there)))
        return DeltaRows(self.there, columns, None)

    @property
    def _names(self) -> list[str]:
        return [name.removeprefix(SET) for name in self.entries.column_names if name.startswith(SET)]

    def as_entries(self) -> pa.Table:
        """The writes as one entry for each key."""
        made = {KIND: pa.array(np.where(self.there, PUT, DELETE).astype(np.uint8))}
        for name, source in zip(self._names, self.sources, strict=True):
            made[name] = one_array(self.entries[name]).take(pa.array(source, mask=source < 0))
            made[SET + name] = pa.array((source >= 0) | (self.reset & self.there))
        others = self.entries.take(pa.array(self.last))
        names = self.entries.column_names
        return pa.table([made.get(name, others[name]) for name in names], names=names)


def composed(entries: pa.Table, by: Sequence[str] = (KEY,)) -> Composed:
    """What entries come to. They hold the key, the used columns, and for each of these whether
    the entry sets it."""
    entries = _in_order(entries)
    numbers = row_numbers(entries[name] for name in by)
    codes = numbers.of_rows
    kinds = one_array(entries[KIND]).to_numpy()
    last = numbers.last()
    deletes = np.flatnonzero(kinds == DELETE)
    ended = np.full(numbers.count, -1, np.int64)
    ended[codes[deletes]] = deletes
    sources = [
        _last_set(one_array(entries[name]).to_numpy(zero_copy_only=False), numbers, ended)
        for name in entries.column_names
        if name.startswith(SET)
    ]
    return Composed(entries, numbers.first(), last, kinds[last] != DELETE, ended >= 0, sources)


def _last_set(named: Mask, numbers: Numbers, ended: Ints) -> Ints:
    chosen = np.flatnonzero(named)
    codes = numbers.of_rows[chosen]
    counts = chosen > ended[codes]
    found = np.full(numbers.count, -1, np.int64)
    found[codes[counts]] = chosen[counts]
    return found


def _in_order(entries: pa.Table) -> pa.Table:
    sequence = one_array(entries[SEQ]).to_numpy().astype(np.int64)
    incarnation = one_array(entries[INCARNATION]).to_numpy().astype(np.int64)
    later = np.diff(incarnation)
    if not ((later < 0) | ((later == 0) & (np.diff(sequence) < 0))).any():
        return entries
    return entries.take(pa.array(np.lexsort((sequence, incarnation))))
