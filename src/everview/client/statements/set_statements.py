"""FLUSH, SET and SET GLOBAL."""

from __future__ import annotations

from everview.client.reading import SessionContext
from everview.client.result import Result
from everview.maintain.trimming import set_retention
from everview.sql.statements import Flush, SetDialect, SetGlobal, SetOption


def flush(context: SessionContext, statement: Flush) -> Result:
    context.maintenance.flush()
    return Result()


def set_dialect(context: SessionContext, statement: SetDialect) -> Result:
    context.settings.dialect = statement.dialect
    return Result()


def set_option(context: SessionContext, statement: SetOption) -> Result:
    setattr(context.settings, statement.name, statement.value)
    return Result()


def set_global(context: SessionContext, statement: SetGlobal) -> Result:
    if statement.name == "log_retention_operations":
        set_retention(context.store, operations=int(statement.value))
    else:
        set_retention(context.store, age=float(statement.value))
    return Result()
