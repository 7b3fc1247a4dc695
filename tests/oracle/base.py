"""The base tables as a script's writes make them: what a recomputation starts from.

Rows are kept as the literals that were written, under the literals of their keys, and
DuckDB gets them in one INSERT, without the store, the log or the plan.

Each write is remembered with its place in the logs: the rows at a frontier are those that the writes
up to it made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from everview.change.frontier import Frontier, Position
from everview.change.schema import Schema
from tests.oracle.maintained import content, database
from tests.oracle.script import Write

Rows = dict[tuple[str, ...], dict[str, str]]
"""Literals by column, under the literals of the key."""


@dataclass
class Base:
    """Tables, given as CREATE TABLE statements, and the writes to them."""

    texts: Sequence[str]
    written: list[tuple[Position, Write]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.schemas = schemas(self.texts)

    def at(self, frontier: Frontier) -> dict[str, Rows]:
        """The rows of every table."""
        found: dict[str, Rows] = {name: {} for name in self.schemas}
        for position, write in self.written:
            if frontier.covers(position):
                self._apply(found[write.table], write)
        return found

    def _apply(self, rows: Rows, write: Write) -> None:
        said = dict(write.values)
        key = tuple(said[name] for name in self.schemas[write.table].key)
        if write.deletes:
            rows.pop(key, None)
        else:
            rows[key] = rows.get(key, {}) | said

    def recomputed(self, queries: Sequence[tuple[str, str]], frontier: Frontier) -> dict[str, pa.Table]:
        """The answers of queries, which may read those before them, over the tables at a frontier."""
        with emptied() as connection:
            for text in self.texts:
                connection.execute(text)
            for name, rows in self.at(frontier).items():
                columns = [column.name for column in self.schemas[name].shown]
                values = [f"({', '.join(row.get(column, 'NULL') for column in columns)})" for row in rows.values()]
                if values:
                    connection.execute(f"INSERT INTO {name} ({', '.join(columns)}) VALUES {', '.join(values)}")
            for name, query in queries:
                connection.execute(f"CREATE TABLE {name} AS {query}")
            return {name: content(connection, name) for name, _ in queries}


_LEFT = "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"


@contextmanager
def emptied() -> Iterator[duckdb.DuckDBPyConnection]:
    """The database of the tests, with nothing in it."""
    connection = database()
    left = connection.execute(_LEFT).fetchall()
    assert not left, f"an earlier test left {left} behind, which others would read instead of their own"
    connection.execute("CREATE SCHEMA script")
    connection.execute("SET schema = 'script'")
    try:
        yield connection
    finally:
        connection.execute("SET schema = 'main'")
        connection.execute("DROP SCHEMA script CASCADE")


def schemas(texts: Sequence[str]) -> dict[str, Schema]:
    """What DuckDB makes of CREATE TABLE statements."""
    with emptied() as connection:
        for text in texts:
            connection.execute(text)
        keys = dict(
            connection.execute(
                "SELECT table_name, constraint_column_names FROM duckdb_constraints()"
                " WHERE constraint_type = 'PRIMARY KEY'"
            ).fetchall()
        )
        found: dict[str, Schema] = {}
        for (name,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_oid").fetchall():
            described = connection.execute(f"DESCRIBE {name}").fetchall()
            found[name] = Schema.of({row[0]: row[1] for row in described}, key=keys.get(name, ()))
        return found
