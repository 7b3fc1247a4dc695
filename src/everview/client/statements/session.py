"""FLUSH and SET."""

from __future__ import annotations

from everview.client.reading import Context
from everview.client.result import Result
from everview.sql.statements import Flush, SetDialect, SetOption


def flush(context: Context, statement: Flush) -> Result:
    context.maintenance.flush()
    return Result()


def set_dialect(context: Context, statement: SetDialect) -> Result:
    context.settings.dialect = statement.dialect
    return Result()


def set_option(context: Context, statement: SetOption) -> Result:
    setattr(context.settings, statement.name, statement.value)
    return Result()
