"""Is the view right? Its SQL, run over the base rows, says so.

One sentence: DuckDB computes the view anew from a scan of its table, sharing nothing with the
maintenance, and every row that is in one and not in the other is a difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa

from everview.store.contract import BaseTable


def recomputed(table: BaseTable, sql: str) -> pa.Table:
    """The rows of the query over what stands in the table now."""
    rows = pa.RecordBatchReader.from_batches(table.table.schema.arrow, table.scan())
    with _connected() as connection:
        connection.register(table.table.name, rows)
        return connection.sql(sql).to_arrow_table()


def differences(expected: pa.Table, shown: pa.Table) -> list[str]:
    """The rows that only one of the two has, in words."""
    with _connected() as connection:
        connection.register("expected", expected)
        connection.register("shown", shown)
        return [
            *_beyond(connection, "expected", "shown", "missing"),
            *_beyond(connection, "shown", "expected", "wrong"),
        ]


def _beyond(connection: duckdb.DuckDBPyConnection, these: str, those: str, word: str) -> Iterator[str]:
    for row in connection.sql(f"FROM {these} EXCEPT ALL FROM {those}").fetchall():
        yield f"{word}: ({', '.join(map(str, row))})"


def _connected() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET arrow_lossless_conversion = true")
    return connection
