"""``everview sql``: execute statements.

The statements of a text or a file are executed one after another, and the rows of the last
one are printed as a table, as JSON or as CSV; without statements, a terminal becomes a shell.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console, counted
from everview.cli.grid import ROWS, draw, plain, shown

if TYPE_CHECKING:
    from everview.client.result import Result

SHOWN = ROWS
"""Rows of a printed table; use JSON or CSV for more."""


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
        str | None, typer.Option(help="The SQL dialect of the text, such as postgres.", show_default="duckdb")
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create the store if the directory is new.")] = False,
) -> None:
    """Execute SQL statements, and print the rows of the last one. Without statements, on a terminal: start a shell.

    Ends with 1 when a statement fails; the statements before it have taken effect.

    [dim]Example:[/dim] everview sql ./shop -c "SELECT * FROM totals WHERE customer = 7"
    """
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    if file is None and text is None and not as_json and not as_csv and sys.stdin.isatty() and sys.stdout.isatty():
        _shell(path, dialect, fresh, create)
        return
    if (file is None) == (text is None):
        raise typer.BadParameter("give either -c and statements, or a file of them; without, on a terminal, a shell")
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


def _shell(path: Path, dialect: str | None, fresh: bool, create: bool) -> None:
    from everview.cli.shell import Shell
    from everview.client.database import open as open_database

    with open_database(path, create=create) as db:
        Shell(db, path, dialect=dialect, fresh=fresh).run()


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
    out = console()
    drawn = draw(result, sys.stdout, out.width if out.is_terminal else None, SHOWN)
    count = counted(drawn.rows, "row")
    notes = [f"the first {count}" if drawn.more else count, drawn.missing()]
    if drawn.more or drawn.missing():
        notes.append("--json and --csv print all")
    out.print("; ".join(filter(None, notes)))


def _print_json(result: Result) -> None:
    for row in result:
        print(json.dumps(dict(zip(result.names, map(plain, row), strict=True)), ensure_ascii=False))


def _print_csv(result: Result) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if result.columns:
        writer.writerow(result.names)
    for row in result:
        writer.writerow("" if value is None else shown(value) for value in row)
