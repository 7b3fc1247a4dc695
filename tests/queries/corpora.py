"""The corpora of queries, and DuckDB as what they are tried on.

A corpus is a folder of query files over the tables of one schema file, and
that file is the only place where columns, types and primary keys are written down.

    >>> [table.name for table in corpus("papers/000").tables.values()]
    ['ticket']
    >>> corpus("papers/000").tables["ticket"].key
    ('id',)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

FOLDER = Path(__file__).parent

SETTINGS = {
    "threads": "1",
    "arrow_lossless_conversion": "true",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "TimeZone": "'UTC'",
}
"""What every evaluation shares, written out here so that the corpora are checked without the product."""


@dataclass(frozen=True)
class TableShape:
    """One table of a schema file; ``schema`` holds the Arrow types DuckDB gives its columns."""

    name: str
    schema: pa.Schema
    key: tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """The columns outside the primary key."""
        return tuple(name for name in self.schema.names if name not in self.key)


@dataclass(frozen=True)
class Corpus:
    """Queries over one schema. Named after its folder."""

    name: str
    schema: str

    @property
    def schema_text(self) -> str:
        return (FOLDER / self.schema / "schema.sql").read_text()

    @functools.cached_property
    def queries(self) -> dict[str, str]:
        """The text of every query by its name, in order of names."""
        files = sorted((FOLDER / self.name).glob("*.sql"))
        return {file.stem: file.read_text() for file in files if file.name != "schema.sql"}

    @functools.cached_property
    def tables(self) -> dict[str, TableShape]:
        """The tables in the order of the schema file: those referred to stand before those that refer to them."""
        with connect() as connection:
            connection.execute(self.schema_text)
            keys = connection.execute(
                "SELECT table_name, constraint_column_names FROM duckdb_constraints()"
                " WHERE constraint_type = 'PRIMARY KEY'"
            ).fetchall()
            return {
                name: TableShape(name, connection.table(name).to_arrow_table().schema, tuple(key))
                for name, key in sorted(keys, key=lambda found: self.schema_text.index(f"TABLE {found[0]} "))
            }


CORPORA = (
    Corpus("tpch", "tpch"),
    Corpus("nexmark", "nexmark"),
    Corpus("papers/000", "papers/000"),
    Corpus("papers/001", "tpch"),
    Corpus("papers/002", "papers/002"),
    Corpus("papers/004", "papers/004"),
    Corpus("papers/004-tpch", "tpch"),
)


def corpus(name: str) -> Corpus:
    return next(found for found in CORPORA if found.name == name)


def connect() -> duckdb.DuckDBPyConnection:
    """An empty DuckDB in memory, with the settings every evaluation shares."""
    connection = duckdb.connect(":memory:")
    for name, value in SETTINGS.items():
        connection.execute(f"SET {name} = {value}")
    return connection


def fill(connection: duckdb.DuckDBPyConnection, found: Corpus, tables: Mapping[str, pa.Table]) -> None:
    """Create the tables of a corpus and insert the given rows."""
    connection.execute(found.schema_text)
    for name, rows in tables.items():
        connection.register("incoming", rows)
        connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM incoming")
        connection.unregister("incoming")


_TUMBLE = re.compile(r"\bTUMBLE\((\w+), (\w+), (INTERVAL '[^']+')\)")
_HOP = re.compile(r"\bHOP\((\w+), (\w+), (INTERVAL '[^']+'), (INTERVAL '[^']+')\)")


def without_window_functions(text: str) -> str:
    """The query with TUMBLE and HOP written out in DuckDB's own SQL.

    A row stands in every window with ``window_start <= ts < window_end``; a row without a
    timestamp stands in none. Windows start at multiples of their slide. It reads the plain
    spelling used in the query files, which is enough to try these.
    """
    text = _TUMBLE.sub(
        r"(SELECT *, time_bucket(\3, \2) AS window_start, time_bucket(\3, \2) + \3 AS window_end"
        r" FROM \1 WHERE \2 IS NOT NULL)",
        text,
    )
    return _HOP.sub(
        r"(SELECT *, window_start + \4 AS window_end FROM (SELECT *, unnest(generate_series("
        r"time_bucket(\3, \2 - \4) + \3, time_bucket(\3, \2), \3)) AS window_start FROM \1 WHERE \2 IS NOT NULL))",
        text,
    )
