"""Rows of DuckDB's answers for Python, whatever is in them.

Where Python has no value for one that SQL has (an INTERVAL of millions of years), the rows are texts.
"""

from __future__ import annotations

from typing import Any

import duckdb


def fetched(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query as Python's values, or all as texts."""
    try:
        return connection.execute(sql).fetchall()
    except (OverflowError, ValueError):
        return connection.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({sql})").fetchall()
