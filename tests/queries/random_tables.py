"""The tables that random queries read, and random rows for them.

Four small tables that between them have a plain key, a composite key, a text key
and no key, whose columns may be null outside the key, and whose values are few, so that rows
meet, tie and repeat.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb

Row = tuple[object, ...]


@dataclass(frozen=True)
class Table:
    """A table: its columns with their types in DuckDB's words, and its key; no key: rows may repeat."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]


TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        Table(
            "a", (("id", "INTEGER"), ("k", "INTEGER"), ("x", "INTEGER"), ("s", "VARCHAR"), ("l", "INTEGER[]")), ("id",)
        ),
        Table(
            "b",
            (("id", "INTEGER"), ("n", "INTEGER"), ("k", "BIGINT"), ("y", "DOUBLE"), ("t", "TIMESTAMP")),
            ("id", "n"),
        ),
        Table("c", (("k", "INTEGER"), ("s", "VARCHAR"), ("x", "SMALLINT")), ()),
        Table("d", (("s", "VARCHAR"), ("x", "INTEGER"), ("yes", "BOOLEAN"), ("m", "DECIMAL(8,2)")), ("s",)),
    )
}


def random_rows(rng: random.Random, size: int = 10) -> dict[str, list[Row]]:
    """Rows for all tables, each with up to about ``size``; now and then a table is empty."""

    def some(make: Callable[[], object]) -> object:
        return None if rng.random() < 0.2 else make()

    def number() -> int:
        return rng.randint(0, 4)

    def word() -> str:
        return rng.choice(["", "p", "q", "Q", "pq"])

    def moment() -> str:
        return f"2024-01-01 0{rng.randint(0, 5)}:{rng.choice(['00', '30'])}:00"

    def several() -> list[object]:
        return [some(number) for _ in range(rng.randint(0, 3))]

    pairs = [(i, n) for i in range(size // 2) for n in range(3)]
    found: dict[str, list[Row]] = {
        "a": [(i, some(number), some(number), some(word), some(several)) for i in range(size)],
        "b": [
            (i, n, some(number), some(lambda: rng.randint(-2, 8) / 4), some(moment))
            for i, n in rng.sample(pairs, min(size, len(pairs)))
        ],
        "c": [(some(number), some(word), some(number)) for _ in range(size)],
        "d": [
            (
                s,
                some(number),
                some(lambda: rng.random() < 0.5),
                some(lambda: f"{rng.randint(0, 9)}.{rng.choice(['00', '50'])}"),
            )
            for s in ("", "p", "q", "Q", "pq", "z")[: size // 2 + 1]
        ],
    }
    return {name: [] if rng.random() < 0.04 else rows for name, rows in found.items()}


def create(connection: duckdb.DuckDBPyConnection, rows: Mapping[str, Sequence[Row]], row_id: str | None = None) -> None:
    """The tables with these rows in DuckDB. Where a column for row ids is named, the tables without
    a key get it, filled with different UUIDs."""
    for table in TABLES.values():
        columns = [f"{name} {kind}" for name, kind in table.columns]
        numbered = row_id is not None and not table.key
        if numbered:
            columns.append(f"{row_id} UUID")
        connection.execute(f"CREATE OR REPLACE TABLE {table.name} ({', '.join(columns)})")
        there = [(*row, uuid.UUID(int=n)) if numbered else row for n, row in enumerate(rows[table.name])]
        if there:
            places = ", ".join("?" for _ in columns)
            connection.executemany(f"INSERT INTO {table.name} VALUES ({places})", there)
