"""Is the view right? Its SQL, run over the base rows, says so.

One sentence: DuckDB computes the view anew from a scan of the tables it reads, sharing nothing with
the maintenance, and every row that is in one and not in the other is a difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa

from everview.catalog import Definitions, NamedQuery, ViewDefinition
from everview.sql.settings import connect
from everview.store.contract import Snapshot, Table


def recomputed(definitions: Definitions, snapshot: Snapshot, view: str) -> pa.Table:
    """The rows of a view's query over the base tables of a snapshot."""
    with connect() as connection:
        _define(connection, definitions, snapshot, definitions.view(view).id, set())
        return connection.table(_quoted(view)).to_arrow_table()


def _define(
    connection: duckdb.DuckDBPyConnection, definitions: Definitions, snapshot: Snapshot, id: int, done: set[int]
) -> None:
    """A table or a view under its name, after all that it reads."""
    if id in done:
        return
    done.add(id)
    found = definitions.by_id(id)
    if isinstance(found, Table):
        rows = pa.RecordBatchReader.from_batches(found.schema.arrow, snapshot.table(found).scan())
        connection.register("rows", rows)
        shown = ", ".join(_quoted(column.name) for column in found.schema.shown)
        connection.execute(f"CREATE TABLE {_quoted(found.name)} AS SELECT {shown} FROM rows")
        connection.unregister("rows")
        return
    for read in found.depends_on:
        _define(connection, definitions, snapshot, read, done)
    if isinstance(found, ViewDefinition | NamedQuery):
        connection.execute(f"CREATE TABLE {_quoted(found.name)} AS {found.sql}")


def differences(expected: pa.Table, shown: pa.Table) -> list[str]:
    """The rows that only one of the two has, in words."""
    with connect() as connection:
        connection.register("expected", expected)
        connection.register("shown", shown)
        return [
            *_beyond(connection, "expected", "shown", "missing"),
            *_beyond(connection, "shown", "expected", "wrong"),
        ]


def _beyond(connection: duckdb.DuckDBPyConnection, these: str, those: str, word: str) -> Iterator[str]:
    for row in connection.sql(f"FROM {these} EXCEPT ALL FROM {those}").fetchall():
        yield f"{word}: ({', '.join(map(str, row))})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
