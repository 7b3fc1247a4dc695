"""The DELTA table: the last row of each base key.

A record holds the used columns of a row, and where the log has times instead of an
order also when each column of the table was written last, for that decides what a late entry may
still change.

The times of a row stand behind its columns in one value, little-endian::

    i64 when it was deleted last | i64 when it was marked as present |
    for every value column of the table: i64 when it was written, u8 whether it holds a value

The smallest number means never. A row is there if it was marked as present, or if one of its columns holds
a value, in either case after it was last deleted. So columns matter that no view uses: of those
the record holds everything but the value. Columns are only ever appended to a table, and a record
from before that has fewer of them. A record may stand for a row that is not there: it remembers
the deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.change.types import BLOB
from everview.operators.evaluation import one_array
from everview.operators.stored import StoredRecords
from everview.operators.work import Mask
from everview.plan.expressions import Field
from everview.plan.maintenance import State
from everview.store.contract import StateTable
from everview.store.encoding.ragged import Bytes, column_of, content, lengths, places

Ints = npt.NDArray[np.int64]

NEVER = np.iinfo(np.int64).min
BEGINNING = NEVER + 1
"""When a row was written of which no time is known: before everything that has one."""

_TIMES = "times"
_HEAD = 16
_CELL = np.dtype([("time", "<i8"), ("holds", "u1")])


@dataclass(frozen=True)
class WriteTimes:
    """When rows were written: a row of numbers for each."""

    gone: Ints
    marked: Ints
    cells: Ints
    """Rows by value columns of the table."""
    holds: npt.NDArray[np.bool_]
    """Whether the column holds a value that is not null."""

    @staticmethod
    def never(count: int, width: int) -> WriteTimes:
        return WriteTimes(
            np.full(count, NEVER), np.full(count, NEVER), np.full((count, width), NEVER), np.zeros((count, width), bool)
        )

    @property
    def there(self) -> Mask:
        """Which of the rows are there."""
        found: Mask = (self.marked > self.gone) | (self.holds & (self.cells > self.gone[:, None])).any(1)
        return found

    @property
    def nothing(self) -> Mask:
        """Of which rows nothing is remembered."""
        found: Mask = (self.gone == NEVER) & (self.marked == NEVER) & (self.cells == NEVER).all(1)
        return found

    def without_deletions(self, before: int) -> WriteTimes:
        """Without what is remembered of deletions, of rows or of single values, before a time."""
        gone = np.where(self.gone < before, NEVER, self.gone)
        cells = np.where(~self.holds & (self.cells < before), NEVER, self.cells)
        return WriteTimes(gone, self.marked, cells, self.holds)

    def set(self, chosen: Ints, others: WriteTimes) -> None:
        """Put other rows in the place of the chosen ones."""
        self.gone[chosen], self.marked[chosen] = others.gone, others.marked
        self.cells[chosen], self.holds[chosen] = others.cells, others.holds

    def followed_by(self, others: WriteTimes) -> WriteTimes:
        return WriteTimes(
            np.concatenate([self.gone, others.gone]),
            np.concatenate([self.marked, others.marked]),
            np.concatenate([self.cells, others.cells]),
            np.concatenate([self.holds, others.holds]),
        )

    def to_bytes(self) -> pa.Array:
        count, width = self.cells.shape
        made = np.zeros(count, _layout(width))
        made["gone"], made["marked"] = self.gone, self.marked
        made["cells"]["time"], made["cells"]["holds"] = self.cells, self.holds
        return column_of(made, np.arange(count + 1) * made.dtype.itemsize).cast(pa.binary())

    @staticmethod
    def from_bytes(values: pa.Array, width: int) -> WriteTimes:
        """Of a column without nulls, for a table of so many value columns."""
        found = WriteTimes.never(len(values), width)
        held = values.cast(pa.large_binary())
        sizes, starts = lengths(held), places(held)[:-1]
        buffer = np.frombuffer(content(held), np.uint8)
        different = np.unique(sizes).tolist()
        for size in different:
            chosen = np.flatnonzero(sizes == size)
            known = (size - _HEAD) // _CELL.itemsize
            if len(different) == 1:
                packed = buffer[starts[0] : starts[0] + size * len(held)]
            else:
                packed = buffer[starts[chosen][:, None] + np.arange(size)].ravel()
            rows = packed.view(_layout(known))
            found.gone[chosen], found.marked[chosen] = rows["gone"], rows["marked"]
            found.cells[chosen, :known] = rows["cells"]["time"]
            found.holds[chosen, :known] = rows["cells"]["holds"]
        return found


def _layout(width: int) -> np.dtype[np.void]:
    return np.dtype([("gone", "<i8"), ("marked", "<i8"), ("cells", _CELL, (width,))])


@dataclass(frozen=True)
class DeltaRows:
    """The last rows of some keys, in their order."""

    there: Mask
    columns: list[pa.Array]
    """The used columns; null where there is no row."""
    times: WriteTimes | None
    """None where the log has an order."""


class LastRows:
    """The records of one table, whose used columns have these names and places among all value
    columns of the table."""

    def __init__(self, table: StateTable, state: State, used: Sequence[int], width: int) -> None:
        timed = replace(state, fields=(*state.fields, Field(_TIMES, BLOB)))
        self._stored = StoredRecords(table, timed, None)
        self.table = table
        self._used = np.array(used, np.int64)
        self._width = width

    def keys(self, key: Sequence[pa.Array]) -> Bytes:
        return self._stored.bare(key, len(key[0]))

    def decode(self, records: Bytes, *, timed: bool) -> DeltaRows:
        """The rows of records, null where there is none."""
        *columns, stamped = self._stored.columns(records)
        there: Mask = records.is_valid().to_numpy(zero_copy_only=False).copy()
        known = np.flatnonzero(stamped.is_valid().to_numpy(zero_copy_only=False))
        if not timed and not len(known):
            return DeltaRows(there, columns, None)
        times = WriteTimes.never(len(records), self._width)
        times.marked[there] = BEGINNING
        for place, column in zip(self._used, columns, strict=True):
            holds = column.is_valid().to_numpy(zero_copy_only=False)
            times.holds[:, place] = holds
            times.cells[holds, place] = BEGINNING
        times.set(known, WriteTimes.from_bytes(stamped.take(pa.array(known)), self._width))
        return DeltaRows(times.there, columns, times if timed else None)

    def encode(self, key: Sequence[pa.Array], rows: DeltaRows) -> Bytes:
        """The records of last rows."""
        count = len(rows.there)
        stamped = pa.nulls(count, pa.binary()) if rows.times is None else rows.times.to_bytes()
        return self._stored.values([*rows.columns, stamped], key, count)

    def without_deletions(self, keys: Bytes, records: Bytes, before: int) -> tuple[Bytes, Mask]:
        """Records without what they remember of deletions before a time, and of which nothing is
        left then."""
        rows = self.decode(records, timed=True)
        assert rows.times is not None
        left = rows.times.without_deletions(before)
        key = [one_array(column) for column in self._stored.table_of(keys, records).columns]
        return self.encode(key[: len(self._stored.key_names)], replace(rows, times=left)), left.nothing
