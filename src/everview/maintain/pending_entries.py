"""The log entries that a group has not taken in yet, kept for readers.

A reader that asks again reads only the entries that have come since. Entries are kept in columns with the
encoded values of what readers ask by, so looking for those that matter to a reader costs nanoseconds for each
of the others.

Where the logs have before-images, an entry matters if its old row or its new row does. Leaving out the others
changes nothing for the rows that matter: what an entry says of them is −1 for its old row and +1 for its new
row, and 0 if neither matters. Where entries have no old rows, only conditions on the primary key can be
checked, which all entries of a row have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import DELETE, HAD, KIND, OLD
from everview.change.frontier import Frontier
from everview.operators.bound import BoundPlan
from everview.operators.sought import Mask, SoughtRows
from everview.operators.touching import Alternatives, Part
from everview.plan.expressions import fields_of
from everview.plan.maintenance.operator_definitions import DeltaOperator
from everview.store.contract import Log, LogBatch
from everview.store.encoding.ragged import Bytes

MERGED = 8
"""How many times larger a chunk is than the next one: so many entries need few chunks, and few copies."""

Encoding: TypeAlias = tuple[str, str]
"""An expression over columns of a table, and the type whose encoding it is in."""


@dataclass
class _Chunk:
    """Some entries, one after another, and the encoded values of their rows."""

    entries: pa.Table
    encoded: dict[Encoding, Bytes] = field(default_factory=dict)
    """Of the new rows and, where entries have them, behind those of the old rows."""

    def followed_by(self, other: _Chunk) -> _Chunk:
        entries = pa.concat_tables([self.entries, other.entries]).combine_chunks()
        both = self.encoded.keys() & other.encoded.keys()
        return _Chunk(entries, {one: self._joined(other, one) for one in both})

    def _joined(self, other: _Chunk, one: Encoding) -> Bytes:
        mine, theirs = self.encoded[one], other.encoded[one]
        here, there = len(self.entries), len(other.entries)
        return pa.concat_arrays([mine[:here], theirs[:there], mine[here:], theirs[there:]])


@dataclass
class _Entries:
    """The entries of one table in one log."""

    first: LogBatch
    """The batch that the first of them came in."""
    chunks: list[_Chunk] = field(default_factory=list)

    def add(self, entries: pa.Table) -> None:
        """Add entries. Chunks of similar size become one, so there are few of them."""
        self.chunks.append(_Chunk(entries))
        while len(self.chunks) > 1 and len(self.chunks[-2].entries) < MERGED * len(self.chunks[-1].entries):
            last = self.chunks.pop()
            self.chunks[-1] = self.chunks[-1].followed_by(last)

    def batch(self, parts: Sequence[pa.Table]) -> LogBatch:
        return replace(self.first, entries=parts[0] if len(parts) == 1 else pa.concat_tables(parts).combine_chunks())


@dataclass
class PendingEntries:
    """The entries of a plan's tables between the frontier of a committed epoch and a later one."""

    bound: BoundPlan
    epoch: int
    frontier: Frontier
    _logs: dict[tuple[str, int, bool], _Entries] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(chunk.entries) for found in self._logs.values() for chunk in found.chunks)

    def extend(self, log: Log, goal: Frontier) -> None:
        """Take in the entries up to a frontier."""
        tables = list(self.bound.tables.values())
        batches = [batch for piece in self.frontier.slices_to(goal) for batch in log.read(piece, tables).batches]
        for batch in batches:
            place = batch.table.name, batch.node, batch.before_images
            self._logs.setdefault(place, _Entries(batch)).add(batch.entries)
        self.frontier = goal

    def that_matter(self, sought: SoughtRows, conditions: Mapping[str, Alternatives]) -> list[LogBatch]:
        """The entries that can touch the rows sought, given the condition of each step."""
        found = []
        for (name, _, _), entries in self._logs.items():
            columns = self._columns(name)
            condition = conditions.get(self._delta(name))
            if condition is not None and (entries.first.before_images or self._is_of_key(name, condition)):
                parts = [_chosen(chunk, sought, condition, columns, entries.first) for chunk in entries.chunks]
            else:
                parts = [chunk.entries for chunk in entries.chunks]
            filled = [part for part in parts if len(part)]
            if filled:
                found.append(entries.batch(filled))
        return found

    def _delta(self, table: str) -> str:
        return next(use.step for use in self.bound.plan.tables if use.name == table)

    def _columns(self, table: str) -> dict[str, str]:
        """What the fields of a table's delta are called in the table."""
        operator = self.bound.plan.step(self._delta(table)).operator_as(DeltaOperator)
        return {column.name: column.column for column in operator.columns}

    def _is_of_key(self, table: str, condition: Alternatives) -> bool:
        """Whether a condition is on the primary key only."""
        columns, key = self._columns(table), self.bound.tables[table].schema.key
        return all(columns[name] in key for one in condition for sql, _ in one for name in fields_of(sql))


def _chosen(
    chunk: _Chunk, sought: SoughtRows, condition: Alternatives, columns: Mapping[str, str], batch: LogBatch
) -> pa.Table:
    """The entries of a chunk whose old or new row fulfils the condition."""
    count = len(chunk.entries)

    def encoded(part: Part) -> Bytes:
        place = part[0], str(sought.types[part[1]])
        if place not in chunk.encoded:
            rows = _rows(part, chunk.entries, columns)
            if batch.before_images:
                rows = pa.concat_tables([rows, _rows(part, chunk.entries, columns, OLD)])
            chunk.encoded[place] = sought.encoded(part, rows)
        return chunk.encoded[place]

    mask: Mask = sought.among(condition, encoded, 2 * count if batch.before_images else count)
    if batch.before_images:
        mask = _of_entries(chunk.entries, mask) if mask.any() else mask[:count]
    return chunk.entries.filter(pa.array(mask)) if mask.any() else chunk.entries[:0]


def _of_entries(entries: pa.Table, mask: Mask) -> Mask:
    """Which entries matter, given that of their new rows, and behind them of their old rows, whether there are such."""
    came = pc.not_equal(entries[KIND], DELETE).to_numpy()
    went = entries[HAD].to_numpy()
    found: Mask = (mask[: len(entries)] & came) | (mask[len(entries) :] & went)
    return found


def _rows(part: Part, entries: pa.Table, columns: Mapping[str, str], prefix: str = "") -> pa.Table:
    """The columns that a condition reads, of the new rows, or of the old ones."""
    found = {}
    for name in sorted(fields_of(part[0])):
        column = columns[name]
        found[name] = entries[prefix + column if prefix + column in entries.column_names else column]
    return pa.table(found)
