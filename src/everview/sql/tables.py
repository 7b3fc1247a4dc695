"""Table functions that a query may read from."""

from __future__ import annotations

TABLE_FUNCTIONS = frozenset(
    {"unnest", "generate_series", "range", "repeat", "repeat_row", "json_each", "json_tree", "generate_subscripts"}
)
"""DuckDB's table functions that depend on their arguments only."""
