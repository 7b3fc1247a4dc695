"""CREATE INDEX and DROP INDEX."""

from __future__ import annotations

from collections.abc import Sequence

from everview.catalog import MAIN, Definitions, Derived, Draft, IndexDefinition, ViewDefinition
from everview.change.schema import Column
from everview.client.reading import SessionContext
from everview.client.result import Result
from everview.client.statements.dropping import drop_object
from everview.client.statements.table_statements import column_of
from everview.errors import DefinitionError
from everview.sql.statements import CreateIndex, DropIndex
from everview.store.contract import Table


def create(context: SessionContext, statement: CreateIndex) -> Result:
    def work(draft: Draft) -> IndexDefinition | None:
        existing = draft.find(statement.name)
        if statement.if_not_exists and isinstance(existing, IndexDefinition):
            return None
        return draft.create_index(define_index(statement, draft))

    index = context.catalog.change(work)
    if index is None:
        return Result(notices=(f"index {statement.name} exists already",))
    context.maintenance.created(index)
    return Result()


def define_index(statement: CreateIndex, definitions: Definitions) -> IndexDefinition:
    """The definition of an index, checked against the catalog."""
    found = definitions.find(statement.on)
    if found is None:
        definitions.table(statement.on)  # raises an error that suggests a table
    if not isinstance(found, Table | ViewDefinition):
        raise DefinitionError(
            f"index {statement.name} cannot be on {statement.on}",
            detail="an index is on a table or a materialized view",
            hint=None if found is None else f"{found.name} is {_what(found)}",
        )
    columns = found.schema.shown if isinstance(found, Table) else found.columns
    named = tuple(_indexed(statement, columns, name).name for name in statement.columns)
    group = MAIN if isinstance(found, Table) else found.group
    return IndexDefinition(statement.name, found.id, named, group)


def _indexed(statement: CreateIndex, columns: Sequence[Column], name: str) -> Column:
    column = column_of(columns, name, statement.on)
    if not column.type.is_scalar:
        raise DefinitionError(
            f"index {statement.name} cannot be by column {column.name}",
            detail=f"{column.type} is not a scalar type",
            hint="index a column that a view computes of it",
        )
    return column


def _what(found: Table | Derived) -> str:
    return "an index" if isinstance(found, IndexDefinition) else "a view that is not materialized"


def drop(context: SessionContext, statement: DropIndex) -> Result:
    return drop_object(
        context,
        statement.name,
        "index",
        lambda draft: draft.drop_index(statement.name, statement.cascade),
        if_exists=statement.if_exists,
    )
