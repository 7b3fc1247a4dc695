"""CREATE TABLE, ALTER TABLE … ADD COLUMN, DROP TABLE."""

from __future__ import annotations

from collections.abc import Sequence

from everview.catalog import Draft
from everview.change.schema import Column, Schema
from everview.client.reading import SessionContext
from everview.client.result import Result
from everview.client.statements.dropping import drop_object
from everview.errors import UnknownColumnError
from everview.sql.namespace import fold, nearest
from everview.sql.statements import AddColumn, CreateTable, DropTable


def create(context: SessionContext, statement: CreateTable) -> Result:
    schema = Schema.of(statement.columns, statement.key)

    def work(draft: Draft) -> bool:
        existing = draft.find(statement.name)
        draft.create_table(statement.name, schema, statement.if_not_exists)
        return existing is None

    if context.catalog.change(work):
        return Result()
    return Result(notices=(f"table {statement.name} exists already",))


def add_column(context: SessionContext, statement: AddColumn) -> Result:
    name = statement.column.name

    def work(draft: Draft) -> str | None:
        found = draft.find(statement.table)
        if found is None and statement.if_exists:
            return f"there is no table {statement.table}"
        table = draft.table(statement.table)
        if statement.if_not_exists and fold(name) in {fold(column.name) for column in table.schema.columns}:
            return f"table {table.name} has a column {name} already"
        draft.add_column(table, statement.column)
        return None

    notice = context.catalog.change(work)
    return Result(notices=() if notice is None else (notice,))


def drop(context: SessionContext, statement: DropTable) -> Result:
    return drop_object(
        context,
        statement.name,
        "table",
        lambda draft: draft.drop_table(statement.name, statement.cascade),
        if_exists=statement.if_exists,
    )


def column_of(columns: Sequence[Column], name: str, table: str) -> Column:
    """The column of that name, or an error that suggests one."""
    for column in columns:
        if fold(column.name) == fold(name):
            return column
    names = [column.name for column in columns]
    near = nearest(name, names)
    hint = f"did you mean {near}?" if near else f"the columns are {', '.join(names)}"
    raise UnknownColumnError(f"{table} has no column {name}", hint=hint)
