"""Columns by name, in any spelling."""

from __future__ import annotations

from collections.abc import Sequence

from everview.change.schema import Column
from everview.errors import UnknownColumnError
from everview.sql.namespace import fold, nearest


def column_of(columns: Sequence[Column], name: str, table: str) -> Column:
    """The column of that name, or an error with the one that was probably meant."""
    for column in columns:
        if fold(column.name) == fold(name):
            return column
    names = [column.name for column in columns]
    near = nearest(name, names)
    hint = f"did you mean {near}?" if near else f"the columns are {', '.join(names)}"
    raise UnknownColumnError(f"{table} has no column {name}", hint=hint)
