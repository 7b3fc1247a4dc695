"""Statements, executed.

One sentence: every kind of statement has one function, found in the table below, that checks all
it says before it writes anything, writes in one atomic step, and gives a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from everview.client.reading import Context
from everview.client.result import Result
from everview.client.statements import asking, indexes, queries, session, tables, views, writes
from everview.errors import EverviewError, SqlError
from everview.sql.parameters import Values
from everview.sql.parse import parse
from everview.sql.positions import excerpt
from everview.sql.statements import (
    AddColumn,
    CreateIndex,
    CreateMaterializedView,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    DropIndex,
    DropTable,
    DropView,
    Explain,
    Flush,
    Insert,
    Select,
    SetDialect,
    SetOption,
    Show,
    ShowCreate,
    Statement,
    Update,
)

EXECUTED_BY: Mapping[type[Statement], Callable[[Context, Any], Result]] = {
    CreateTable: tables.create,
    AddColumn: tables.add_column,
    DropTable: tables.drop,
    CreateMaterializedView: views.create_materialized,
    CreateView: views.create_named,
    DropView: views.drop,
    CreateIndex: indexes.create,
    DropIndex: indexes.drop,
    Insert: writes.insert,
    Update: writes.update,
    Delete: writes.delete,
    Select: queries.select,
    Explain: asking.explain,
    Show: asking.show,
    ShowCreate: asking.show_create,
    Describe: asking.describe,
    Flush: session.flush,
    SetDialect: session.set_dialect,
    SetOption: session.set_option,
}


def execute(context: Context, text: str, params: Values | None = None, dialect: str | None = None) -> Result:
    """Execute the statements of a text, one after another; the result is the last one's, with the
    notices of all. All of them are read before the first is executed."""
    settings = context.settings
    before = settings.dialect
    statements = parse(text, dialect or before, params)
    settings.dialect = dialect or before
    result = Result()
    notices: tuple[str, ...] = ()
    try:
        for statement in statements:
            result.close()
            result = _executed(context, statement)
            notices += result.notices
    finally:
        if not any(isinstance(statement, SetDialect) for statement in statements):
            settings.dialect = before
    result.notices = notices
    return result


def _executed(context: Context, statement: Statement) -> Result:
    try:
        return EXECUTED_BY[type(statement)](context, statement)
    except EverviewError as error:
        _place(error, statement)
        raise


def _place(error: EverviewError, statement: Statement) -> None:
    """Say which statement an error is about, unless it says where in the text it is."""
    if (isinstance(error, SqlError) and error.line) or " at line " in error.message:
        return
    lines = statement.source.split("\n")
    offset = sum(len(line) + 1 for line in lines[: statement.at.line - 1]) + statement.at.column - 1
    where = f"in the statement at {statement.at}\n{excerpt(statement.source, offset)}"
    error.detail = where if error.detail is None else f"{error.detail}\n  {where}"
