"""Statements as Everview understands them: tests/scripts/sql, but for ``check_*``."""

from __future__ import annotations

import dataclasses
import enum
import re
from pathlib import Path

import pytest
from sqlglot import exp

from everview.change.schema import Column
from everview.sql.dialects import to_sql
from everview.sql.parse import parse
from everview.sql.statements import SetDialect, Statement
from tests.scripts.golden import run_script, scripts

STATEMENTS = [path for path in scripts("sql") if not path.stem.startswith("check_")]


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.stem)
def test_statements(path: Path) -> None:
    run_script(path, Printer())


class Printer:
    """Prints each statement of an input with its fields. ``SET dialect`` lasts for the script;
    values of parameters stand in a first line ``-- params: …``."""

    def __init__(self) -> None:
        self.dialect = "duckdb"

    def __call__(self, text: str) -> str:
        given = re.match(r"-- params: (.*)\n", text)
        params = eval(given[1], {}) if given else None
        found = parse(text, self.dialect, params)
        for statement in found:
            if isinstance(statement, SetDialect):
                self.dialect = statement.dialect
        return "\n".join(printed(statement) for statement in found)


def printed(statement: Statement, indent: str = "") -> str:
    lines = [f"{indent}{type(statement).__name__} at {statement.at}"]
    for field in dataclasses.fields(statement):
        value = getattr(statement, field.name)
        if field.name in ("text", "at", "source", "words") or value in (None, False, (), {}):
            continue
        shown = "\n" + printed(value, indent + "    ") if isinstance(value, Statement) else f" {plain(value)}"
        lines.append(f"{indent}  {field.name}:{shown}")
    return "\n".join(lines)


def plain(value: object) -> str:
    if isinstance(value, exp.Expr):
        return to_sql(value)
    if isinstance(value, Column):
        return f"{value.name} {value.type}{'' if value.nullable else ' NOT NULL'}"
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return ", ".join(" = ".join(map(plain, item)) if isinstance(item, tuple) else plain(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} = {item!r}" for name, item in value.items())
    return str(value)
