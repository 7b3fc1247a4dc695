"""The place of an error in a text."""

from __future__ import annotations

from everview.errors import EverviewError, SqlError
from everview.sql.positions import excerpt
from everview.sql.statements import Statement


def place(error: EverviewError, statement: Statement) -> None:
    """Add the number of the statement to an error, unless the error has a position in the text."""
    if (isinstance(error, SqlError) and error.line) or " at line " in error.message:
        return
    lines = statement.source.split("\n")
    offset = sum(len(line) + 1 for line in lines[: statement.at.line - 1]) + statement.at.column - 1
    where = f"in the statement at {statement.at}\n{excerpt(statement.source, offset)}"
    error.detail = where if error.detail is None else f"{error.detail}\n  {where}"
