"""``everview sql``: execute statements.

One sentence: the statements of a text or a file are executed one after another, and the rows of the last
one are printed as a table, as JSON or as CSV.
"""

from __future__ import annotations

import csv
import datetime
import itertools
import json
import math
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console

if TYPE_CHECKING:
    from everview.client.result import Result

SHOWN = 1000
"""Rows of a table for people; a wider question is for JSON or CSV."""


def sql(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    file: Annotated[
        Path | None, typer.Argument(help="A file of statements; - is standard input.", show_default=False)
    ] = None,
    text: Annotated[
        str | None, typer.Option("-c", "--command", help="The statements themselves.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object for every row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV with a line of names.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Views reflect everything written before.")] = False,
    dialect: Annotated[
        str | None, typer.Option(help="What the text is written in, such as postgres.", show_default="duckdb")
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Make the store if the directory is new.")] = False,
) -> None:
    """Execute SQL statements, and print the rows of the last one.

    Ends with 1 when a statement fails: those before it have taken effect.

    [dim]Example:[/dim] everview sql ./shop -c "SELECT * FROM totals WHERE customer = 7"
    """
    if (file is None) == (text is None):
        raise typer.BadParameter("give either -c and statements, or a file of them")
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    asked = _statements(file) if text is None else text
    from everview.client.database import open as open_database

    with open_database(path, create=create) as db, db.sql(asked, dialect=dialect, fresh=fresh) as result:
        for notice in result.notices:
            console(sys.stderr).print(notice, style="dim")
        if as_json:
            _print_json(result)
        elif as_csv:
            _print_csv(result)
        elif result.columns:
            _print_table(result)


def _statements(file: Path | None) -> str:
    assert file is not None
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{file} is not text in UTF-8") from None


# ------------------------------------------------------------------ rows


def _print_table(result: Result) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in result.names:
        table.add_column(Text(name))
    rows = iter(result)
    for row in itertools.islice(rows, SHOWN):
        table.add_row(*(Text("NULL", "dim") if value is None else Text(_shown(value)) for value in row))
    more = next(rows, None) is not None
    console().print(table)
    count = f"{table.row_count:,} row{'' if table.row_count == 1 else 's'}"
    console().print(f"the first {count}; --json and --csv print all" if more else count)


def _shown(value: object) -> str:
    return json.dumps(plain(value), ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _print_json(result: Result) -> None:
    for row in result:
        print(json.dumps(dict(zip(result.names, map(plain, row), strict=True)), ensure_ascii=False))


def _print_csv(result: Result) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if result.columns:
        writer.writerow(result.names)
    for row in result:
        writer.writerow("" if value is None else _shown(value) for value in row)


def plain(value: object) -> object:
    """A value as JSON has it: exact numbers, times and bytes as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value)
