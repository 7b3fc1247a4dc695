"""Random histories of writes over the tables of an extract.

A :class:`History` is the rows before the views are made and then rounds of statements that mean the
same to DuckDB and to Everview: rows of the file and generated ones, ties, duplicates, NULLs, extremes, updates,
deletions, and tables that become empty.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from tests.strangers.extraction import Table, quoted
from tests.strangers.literals import Pool


@dataclass(frozen=True)
class History:
    before: tuple[str, ...]
    """Writes before any view is there."""
    rounds: tuple[tuple[str, ...], ...]
    """After each round the views are flushed and compared."""


def insert(table: Table, rows: Sequence[Sequence[str]]) -> str:
    values = ", ".join("(" + ", ".join(row) + ")" for row in rows)
    return f"INSERT INTO {quoted(table.name)} VALUES {values}"


class _Writer:
    """Draws writes to tables. A key is written once, or again after it was deleted."""

    def __init__(self, tables: Sequence[Table], pool: Pool, rng: random.Random) -> None:
        self.tables = tables
        self.pool = pool
        self.rng = rng
        self._keys: dict[str, set[tuple[str, ...]]] = {table.name: set() for table in tables}

    def given(self, table: Table, rows: Sequence[tuple[str, ...]]) -> list[str]:
        """An insert of rows whose keys were not used yet."""
        fresh = []
        for row in rows:
            key = self._key(table, row)
            if key is not None:
                if key in self._keys[table.name] or "NULL" in key or any("nan" in part for part in key):
                    continue
                self._keys[table.name].add(key)
            fresh.append(row)
        return [insert(table, fresh)] if fresh else []

    def drawn(self, table: Table, count: int, *, extreme: bool = False) -> list[str]:
        """New rows; now and then one twice."""
        rows = [
            tuple(self.pool.draw(kind, self.rng, extreme=extreme) for _, kind in table.columns) for _ in range(count)
        ]
        if rows and not table.key and self.rng.random() < 0.5:
            rows.append(rows[0])
        return self.given(table, rows)

    def again(self, table: Table) -> list[str]:
        """A row whose key was used, after a deletion of it."""
        if not table.key or not self._keys[table.name]:
            return []
        key = self.rng.choice(sorted(self._keys[table.name]))
        held = dict(zip(table.key, key, strict=True))
        row = [held.get(name) or self.pool.draw(kind, self.rng) for name, kind in table.columns]
        where = " AND ".join(f"{quoted(name)} = {value}" for name, value in held.items())
        return [f"DELETE FROM {quoted(table.name)} WHERE {where}", insert(table, [row])]

    def update(self, table: Table) -> list[str]:
        free = [column for column in table.columns if column[0] not in table.key]
        if not free:
            return []
        name, kind = self.rng.choice(free)
        value = self.pool.draw(kind, self.rng)
        return [f"UPDATE {quoted(table.name)} SET {quoted(name)} = {value} WHERE {self._where(table)}"]

    def delete(self, table: Table) -> list[str]:
        return [f"DELETE FROM {quoted(table.name)} WHERE {self._where(table)}"]

    def _where(self, table: Table) -> str:
        name, kind = self.rng.choice(table.columns)
        value = self.pool.draw(kind, self.rng)
        return f"{quoted(name)} IS NULL" if value == "NULL" else f"{quoted(name)} = {value}"

    def _key(self, table: Table, row: Sequence[str]) -> tuple[str, ...] | None:
        if not table.key:
            return None
        held = {name: value for (name, _), value in zip(table.columns, row, strict=True)}
        return tuple(held[name] for name in table.key)


def draw(
    tables: Sequence[Table], texts: Sequence[str], seed: int, judge: duckdb.DuckDBPyConnection, *, extreme: bool = True
) -> History:
    """A history in which every kind of write occurs, of about forty statements."""
    rng = random.Random(seed)
    values: dict[str, list[str]] = {}
    for table in tables:
        for at, (_, kind) in enumerate(table.columns):
            values.setdefault(kind, []).extend(row[at] for row in table.rows if row[at] != "NULL")
    writer = _Writer(tables, Pool(values, texts, judge), rng)
    halves = {table.name: rng.sample(table.rows, len(table.rows)) for table in tables}
    before: list[str] = []
    for table in tables:
        half = halves[table.name]
        before += writer.given(table, half[: len(half) // 2])
    rest = [one for table in tables for one in writer.given(table, halves[table.name][len(table.rows) // 2 :])]
    rounds = [
        [*rest, *(one for table in tables for one in writer.drawn(table, 4))],
        [one for table in tables for one in (*writer.update(table), *writer.delete(table), *writer.update(table))],
        [one for table in tables for one in (*writer.drawn(table, 3), *writer.again(table))],
        [one for table in tables for one in writer.drawn(table, 2, extreme=extreme)],
        [one for table in tables for one in (*writer.delete(table), *writer.drawn(table, 1))],
    ]
    if tables:
        emptied = rng.choice(tables)
        rounds.append([f"DELETE FROM {quoted(emptied.name)}"])
        rounds.append([f"DELETE FROM {quoted(table.name)}" for table in tables if table is not emptied])
        rounds.append([one for table in tables for one in writer.drawn(table, 5)])
    return History(tuple(before), tuple(tuple(found) for found in rounds))
