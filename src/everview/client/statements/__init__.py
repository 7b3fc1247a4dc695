"""Statements, executed.

Every kind of statement has one function in the table below. It checks the whole statement
before it writes anything, writes in one atomic step, and returns a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from everview.client.reading import SessionContext
from everview.client.result import Result
from everview.client.statements import (
    describing,
    index_statements,
    row_statements,
    select_statement,
    set_statements,
    table_statements,
    view_statements,
)
from everview.client.statements.placing import place
from everview.errors import EverviewError
from everview.sql.parameters import Values
from everview.sql.parse import parse
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
    SetGlobal,
    SetOption,
    Show,
    ShowCreate,
    Statement,
    Update,
)

EXECUTED_BY: Mapping[type[Statement], Callable[[SessionContext, Any], Result]] = {
    CreateTable: table_statements.create,
    AddColumn: table_statements.add_column,
    DropTable: table_statements.drop,
    CreateMaterializedView: view_statements.create_materialized,
    CreateView: view_statements.create_named,
    DropView: view_statements.drop,
    CreateIndex: index_statements.create,
    DropIndex: index_statements.drop,
    Insert: row_statements.insert,
    Update: row_statements.update,
    Delete: row_statements.delete,
    Select: select_statement.select,
    Explain: describing.explain,
    Show: describing.show,
    ShowCreate: describing.show_create,
    Describe: describing.describe,
    Flush: set_statements.flush,
    SetDialect: set_statements.set_dialect,
    SetOption: set_statements.set_option,
    SetGlobal: set_statements.set_global,
}


BUILT_TOGETHER = (CreateMaterializedView, CreateIndex)
"""Statements whose views are built together, after the last statement of a run of them."""


def execute(context: SessionContext, text: str, params: Values | None = None, dialect: str | None = None) -> Result:
    """Execute the statements of a text, one after another; the result is the last one's, with the
    notices of all. All of them are read before the first is executed."""
    settings = context.settings
    before = settings.dialect
    statements = parse(text, dialect or before, params)
    settings.dialect = dialect or before
    result = Result()
    notices: tuple[str, ...] = ()
    try:
        for kind, run in itertools.groupby(statements, type):
            if kind not in BUILT_TOGETHER:
                context.maintenance.settle()
            result.close()
            if kind is CreateMaterializedView:
                together = [statement for statement in run if isinstance(statement, CreateMaterializedView)]
                result = view_statements.create_together(context, together)
                notices += result.notices
                continue
            for statement in run:
                result.close()
                result = _executed(context, statement)
                notices += result.notices
        context.maintenance.settle()
    except EverviewError:
        context.maintenance.settle()  # the statements before the error have taken effect
        raise
    finally:
        if not any(isinstance(statement, SetDialect) for statement in statements):
            settings.dialect = before
    result.notices = notices
    return result


def _executed(context: SessionContext, statement: Statement) -> Result:
    try:
        return EXECUTED_BY[type(statement)](context, statement)
    except EverviewError as error:
        place(error, statement)
        raise
