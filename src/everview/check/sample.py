"""Rows to try a query on: few, and of the kinds that go wrong.

A sample is a short history of the tables that a query reads, made of their own rows, of values
that the query names, and of nulls, duplicates, ties and extremes, which come, change and go.

The values of a column are numbered, and a row is the numbers of its values, so a table of any types is taken out
of its columns' values in one go. Columns of one type share most of their values, and there are few, so rows meet in
joins and groups. Nothing is random that is not the same the next time.
"""

from __future__ import annotations

import functools
import random
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from everview.change.schema import ROW_ID, Column
from everview.change.types import UUID, VARCHAR, Type
from everview.check.sample_values import more_keys, pool_of, values_of_literals
from everview.check.trial_queries import asking, whole
from everview.sql.namespace import NamedRelation, fold

ROUNDS = 7
"""Epochs of a history."""

_ROWS = {1: 40, 2: 24, 3: 14, 4: 10, 5: 8}
"""Rows of a table, by how many a query reads: it may cross them all."""
_ORDERS = re.compile(r"\border\s+by\b(.*?)(?:\)|\blimit\b|\brows\b|\brange\b|;|$)", re.IGNORECASE | re.DOTALL)
_UNTIED, _FEW = 16, 4
"""Rows of a table that do not tie in what the query is ordered by, and how many values they have in other columns."""
_LITERALS = re.compile(r"'((?:[^']|'')*)'|(?<![\w.])(\d+(?:\.\d+)?)(?![\w.])")
_MOST_LITERALS = 12


@dataclass(frozen=True)
class Round:
    """What happens between two looks at the tables."""

    comes: Mapping[str, pa.Table]
    goes: Mapping[str, pa.Table]
    rows: Mapping[str, pa.Table]
    """All rows that are there then."""


@dataclass
class _Sampled:
    """One table: the values of each column, and the rows as numbers of values, by key."""

    relation: NamedRelation
    pools: list[pa.Array]
    key: list[int]
    """The places of the key's columns; none where rows are distinguished by nothing that is seen."""
    firsts: dict[int, np.ndarray]
    """Of each of the key's columns, for each value the number of the first one that equals it."""
    near: int
    """Values that are drawn more often than others: the fewer rows a table has, the fewer, so that rows still meet."""
    rows: dict[object, tuple[int, ...]] = field(default_factory=dict)
    nulls: float = 0.15
    """How often a value is null."""
    made: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.relation.columns

    @functools.cached_property
    def early(self) -> list[int]:
        """The first values of a key of one column, each once: they are there most of the time, since what refers to
        them is drawn from the same early values."""
        found = [*dict.fromkeys(self.firsts[self.key[0]].tolist())] if len(self.key) == 1 else []
        return found[: self.near]

    @property
    def is_one_row(self) -> bool:
        return not self.relation.key and not self.relation.bag

    def table(self, rows: Mapping[object, tuple[int, ...]]) -> pa.Table:
        numbers = np.array(list(rows.values()), np.int64).reshape(len(rows), len(self.columns))
        arrays = [_taken(pool, numbers[:, place]) for place, pool in enumerate(self.pools)]
        names = [column.name for column in self.columns]
        if self.relation.bag:
            arrays.append(_row_ids(list(rows), UUID if self.relation.kind == "table" else VARCHAR))
            names.append(ROW_ID)
        return pa.table(arrays, names=names)

    def draw(self, chance: random.Random, first: int | None = None) -> tuple[object, tuple[int, ...]]:
        """A row that is not there, or that takes the place of one that is; with ``first``, under that value of its
        key."""
        self.made += 1
        row = [self._value(place, chance) for place in range(len(self.columns))]
        if first is not None:
            row[self.key[0]] = first
        return self.keyed(row, self.made)

    def keyed(self, numbers: Sequence[int], number: int) -> tuple[object, tuple[int, ...]]:
        """A row with what distinguishes it from others."""
        row = [
            int(self.firsts[place][value]) if place in self.firsts and value >= 0 else value
            for place, value in enumerate(numbers)
        ]
        return number if self.relation.bag else tuple(row[place] for place in self.key), tuple(row)

    def _value(self, place: int, chance: random.Random) -> int:
        column, pool = self.columns[place], self.pools[place]
        if not len(pool):
            return -1
        near = min(self.near, len(pool))
        if place in self.key and self.relation.kind == "table":
            return chance.randrange(near if len(self.key) > 1 and chance.random() < 0.7 else len(pool))
        if column.nullable and chance.random() < self.nulls:
            return -1
        # Early values are drawn more often: ties and duplicates. A fifth of all is drawn from everywhere.
        if chance.random() < 0.2:
            return chance.randrange(len(pool))
        return min(chance.randrange(near), chance.randrange(near))

    def different(self, place: int, chance: random.Random) -> list[int]:
        """Values of a column, no two alike, in any order."""
        try:
            found = list({repr(value): number for number, value in enumerate(self.pools[place].to_pylist())}.values())
        except (OverflowError, ValueError):  # values that Python has not
            found = list(range(len(self.pools[place])))
        chance.shuffle(found)
        return found

    def changed(self, row: tuple[int, ...], chance: random.Random) -> tuple[int, ...]:
        """The row with other values under its key: all of them, or only one, which is often null then."""
        places = [place for place in range(len(row)) if place not in self.key]
        if places and chance.random() < 0.5:
            place = chance.choice(places)
            is_null = self.columns[place].nullable and chance.random() < 3 * self.nulls
            return tuple(
                (-1 if is_null else self._value(at, chance)) if at == place else value for at, value in enumerate(row)
            )
        return tuple(self._value(at, chance) if at in places else value for at, value in enumerate(row))


class Sample:
    """A history of the tables that a query reads. ``real`` are some of their rows."""

    def __init__(
        self, relations: Sequence[NamedRelation], text: str, real: Mapping[str, pa.Table], level: int = 0, seed: int = 1
    ) -> None:
        self._chance = random.Random(seed)
        literals = _literals(text)
        self._most = _ROWS.get(len(relations), 6)
        near = max(3, self._most // 2 if len(relations) < 3 else self._most // 3)
        self._tables = [_sampled(one, literals, real.get(one.name), level, near) for one in relations]
        self._real = real
        self._ordering = _ordering(text)
        self.rows = 0
        """How many have come so far."""

    def rounds(self) -> Iterator[Round]:
        """Rows come; then some come, change and go, in all tables and in one alone; in between a table is emptied. Then
        there are few nulls left, behind which other values may have been hidden all the time. In the end no two rows
        tie in what the query is ordered by, so that an ORDER BY, in a subquery too, is an order of all rows."""
        yield self._round([self._filled(table) for table in self._tables])
        last = len(self._tables) - 1
        for number in range(1, ROUNDS - 1):
            emptied = number % max(last + 1, 1) if number == ROUNDS - 3 else -1
            alone = {2: last, 3: 0}.get(number) if last > 0 else None
            if number == ROUNDS - 2:
                for table in self._tables:
                    table.nulls = 0
            yield self._round([
                table.rows if alone not in (None, place) else self._changed(table, place == emptied)
                for place, table in enumerate(self._tables)
            ])  # fmt: skip
        yield self._round([self._untied(table) for table in self._tables])

    def _round(self, after: Sequence[dict[object, tuple[int, ...]]]) -> Round:
        comes, goes, rows = {}, {}, {}
        for table, now in zip(self._tables, after, strict=True):
            name = table.relation.name
            fresh = {key: row for key, row in now.items() if table.rows.get(key) != row}
            stale = {key: row for key, row in table.rows.items() if now.get(key) != row}
            self.rows += len(fresh)
            table.rows = now
            rows[name] = table.table(now)
            if fresh:
                comes[name] = table.table(fresh)
            if stale:
                goes[name] = table.table(stale)
        return Round(comes, goes, rows)

    def _filled(self, table: _Sampled) -> dict[object, tuple[int, ...]]:
        real = self._real.get(table.relation.name)
        found = _real_rows(table, real, self._most // 2) if real is not None else {}
        self._add(table, found, self._most)
        return dict(list(found.items())[:1]) if table.is_one_row else found

    def _changed(self, table: _Sampled, emptied: bool) -> dict[object, tuple[int, ...]]:
        if emptied or not table.rows:
            return {} if emptied else self._filled(table)
        stay = {True: 0.75, False: 0.75 if table.nulls else 0.2}
        now = {key: row for key, row in table.rows.items() if self._chance.random() < stay[-1 not in row]}
        for key in [key for key in now if self._chance.random() < 0.3]:
            now[key] = table.changed(now[key], self._chance)
        self._add(table, now, max(self._most // 2, len(now)) + max(2, self._most // 6))
        return dict(list(now.items())[-1:]) if table.is_one_row else now

    def _untied(self, table: _Sampled) -> dict[object, tuple[int, ...]]:
        """New rows whose values differ in the columns that the query is ordered by, or in all, as far as there are
        several values. Each table has some of the values only: rows find a partner in one, and not in another."""
        places = range(len(table.columns))
        ordering = [place for place in places if fold(table.columns[place].name) in self._ordering] or places
        values = [table.different(place, self._chance) for place in places]
        values = [found[: max(3, 2 * len(found) // 3)] for found in values]
        most = [len(values[place]) for place in ordering if len(values[place]) > 2]
        count = min([1 if table.is_one_row else self._most, _UNTIED, *most])
        rows = [
            [
                values[place][number]
                if place in ordering and len(values[place]) > 2
                else self._chance.choice(values[place][:_FEW] or [-1])
                for place in places
            ]
            for number in range(count)
        ]
        return dict(table.keyed(row, -1000 - number) for number, row in enumerate(rows))

    def _add(self, table: _Sampled, rows: dict[object, tuple[int, ...]], most: int) -> None:
        """Draw rows, the early keys first, until there are so many; some take the place of others."""
        gone = [value for value in table.early if (value,) not in rows]
        for number in range(2 * self._most):
            if len(rows) >= most:
                break
            key, row = table.draw(self._chance, gone[number] if number < len(gone) else None)
            rows[key] = row


def _sampled(
    relation: NamedRelation, literals: Sequence[str], real: pa.Table | None, level: int, near: int
) -> _Sampled:
    pools = []
    for column in relation.columns:
        # What the query names comes first, and is drawn oftener than what it does not.
        parts = [values_of_literals(tuple(literals), column.type), pool_of(column.type, level)]
        if relation.key == (column.name,):
            parts.append(more_keys(column.type))
        if real is not None and column.name in real.column_names:
            parts.append(whole(real[column.name]).drop_null())
        pools.append(_joined([part for part in parts if len(part)], column.type))
    names = [column.name for column in relation.columns]
    key = [names.index(name) for name in relation.key]
    return _Sampled(relation, pools, key, {place: _firsts(pools[place]) for place in key}, near)


def _firsts(pool: pa.Array) -> np.ndarray:
    rows = pa.table({"x": pool, "n": pa.array(np.arange(len(pool)))})
    found = asking().answer("SELECT min(n) OVER (PARTITION BY x) AS f FROM given ORDER BY n", {"given": rows})
    return whole(found.column(0)).to_numpy() if len(pool) else np.zeros(0, np.int64)


def _real_rows(table: _Sampled, real: pa.Table, most: int) -> dict[object, tuple[int, ...]]:
    """Real rows by the numbers of their values: a column's own values stand at the end of its pool."""
    places = []
    count = min(most, len(real))
    for column, pool in zip(table.columns, table.pools, strict=True):
        there = whole(real[column.name]).is_valid().to_numpy(zero_copy_only=False)
        behind = np.cumsum(there) - 1 + len(pool) - int(there.sum())
        places.append(np.where(there, behind, -1)[:count])
    rows = np.array(places).T.reshape(count, len(places)).tolist()
    return dict(table.keyed(row, -1 - number) for number, row in enumerate(rows))


def _taken(pool: pa.Array, numbers: np.ndarray) -> pa.Array:
    missing = numbers < 0
    if not len(pool):
        return pa.nulls(len(numbers), pool.type)
    return pool.take(pa.array(np.where(missing, 0, numbers), mask=missing))


def _row_ids(keys: Sequence[object], kind: Type) -> pa.Array:
    if kind == UUID:
        ids = [uuid.uuid5(uuid.NAMESPACE_OID, str(key)).bytes for key in keys]
        return pa.ExtensionArray.from_storage(kind.arrow, pa.array(ids, pa.binary(16)))
    return pa.array([str(key) for key in keys], kind.arrow)


def _joined(parts: Sequence[pa.Array], kind: Type) -> pa.Array:
    return pa.concat_arrays(parts) if parts else pa.nulls(0, kind.arrow)


def _ordering(text: str) -> frozenset[str]:
    """The words behind every ORDER BY of a text, up to the next parenthesis or clause."""
    return frozenset(fold(word) for part in _ORDERS.findall(text) for word in re.findall(r"\w+", part))


def _literals(text: str) -> list[str]:
    """The constants of a text, and the numbers beside them."""
    found: list[str] = []
    for quoted, number in _LITERALS.findall(text):
        if number and "." not in number and len(number) < 18:
            found += [number, str(int(number) + 1), str(int(number) - 1)]
        else:
            found.append(number or quoted.replace("''", "'").strip("%"))
    return list(dict.fromkeys(found))[:_MOST_LITERALS]
