"""Random columns, and rows drawn from the tables made so far.

A :class:`Draw` answers every question of a recipe out of one seeded generator,
so that a seed names the rows, the changes and their order.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

Array = np.ndarray
Columns = Mapping[str, Array | pa.Array | pa.ChunkedArray | Sequence[object]]

HOT = 0.6
"""The share of draws that fall on the few values the queries ask for."""


@dataclass(frozen=True)
class Draw:
    random: np.random.Generator
    scale: float
    present: Mapping[str, pa.Table]

    def whole(self, count: int, low: int, high: int) -> Array:
        """Whole numbers from low to high, both included."""
        return self.random.integers(low, high, count, endpoint=True)

    def ids(self, count: int, size: int) -> Array:
        """Distinct numbers for new rows of a table of about ``size`` rows at scale 1.

        Four times as many numbers exist as rows, so that joins find partners, most new
        numbers are free, and a number that was deleted comes back some day.
        """
        room = max(int(4 * size * self.scale), 2 * count)
        return self.random.choice(room, count, replace=False) + 1

    def money(self, count: int, low: float, high: float) -> Array:
        return np.round(self.random.uniform(low, high, count), 2)

    def pick(self, count: int, values: Sequence[object], hot: Sequence[object] = (), share: float = HOT) -> Array:
        """Values of a domain; where ``hot`` is given, that share of them from there."""
        domain = np.array(values, dtype=object)[self.random.integers(0, len(values), count)]
        if not hot:
            return domain
        likely = np.array(hot, dtype=object)[self.random.integers(0, len(hot), count)]
        return np.where(self.random.random(count) < share, likely, domain)

    def words(self, count: int, vocabulary: Sequence[str], length: int, rare: str | None = None) -> list[str]:
        """Short texts; about one in ten contains ``rare``."""
        picked = np.array(vocabulary, dtype=object)[self.random.integers(0, len(vocabulary), (count, length))]
        if rare is not None:
            picked[self.random.random(count) < 0.1, length // 2] = rare
        return [" ".join(row) for row in picked]

    def days(self, count: int, first: datetime.date, last: datetime.date) -> Array:
        return np.datetime64(first, "D") + self.whole(count, 0, (last - first).days)

    def some(
        self, table: str, count: int, prefer: Callable[[pa.Table], Array] | None = None, share: float = HOT
    ) -> pa.Table:
        """``count`` rows of a table as it is now, with repetition: parents for new children.

        ``prefer`` is a mask of rows that get ``share`` of the draws. Out of an empty table
        come rows of nulls.
        """
        rows = self.present[table]
        if rows.num_rows == 0:
            return rows.take(pa.nulls(count, pa.int64()))
        at = self.random.integers(0, rows.num_rows, count)
        if prefer is not None and len(favoured := np.flatnonzero(prefer(rows))):
            at = np.where(self.random.random(count) < share, self.random.choice(favoured, count), at)
        return rows.take(pa.array(at))


@dataclass(frozen=True)
class Reference:
    """Columns that name a row of another table."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """How the rows of one table come about.

    ``make`` returns columns for about the asked number of candidate rows, key included; what
    repeats a key is dropped by the caller. A ``fixed`` table ignores the number: it has the
    rows it has, which are neither inserted nor deleted later. ``steady`` columns are never
    null and never updated. The columns of one reference are updated together.
    """

    size: int
    make: Callable[[Draw, int], Columns]
    references: tuple[Reference, ...] = ()
    steady: frozenset[str] = frozenset()
    fixed: bool = False


def values_of(column: pa.ChunkedArray, missing: object) -> Array:
    """A column as numpy, nulls replaced."""
    return column.fill_null(missing).to_numpy()
