"""``everview explain``: the plan that maintains a view.

The output of EXPLAIN for a query or an existing view, as text, JSON or a picture.
"""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console
from everview.cli.files.output import written

if TYPE_CHECKING:
    from everview.client.database import Database


class Form(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    SVG = "svg"


def explain(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    what: Annotated[
        str, typer.Argument(metavar="SELECT...|NAME", help="A query, or a view or index.", show_default=False)
    ],
    form: Annotated[
        Form, typer.Option("--format", help="Text for people, JSON for programs, or a picture.")
    ] = Form.TEXT,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file for it.", show_default="standard output")
    ] = None,
) -> None:
    """Show how a view is maintained, or how a query would be: its steps, their state and their cost.

    [dim]Example:[/dim] everview explain ./shop "SELECT city, count(*) FROM customers GROUP BY city"
    """
    from everview.client.database import open as open_database

    with open_database(path, create=False) as db:
        result = db.sql(f"EXPLAIN (FORMAT {form.upper()}) {_statement(db, what)}")
        text = "".join(f"{line}\n" for (line,) in result)
    for notice in result.notices:
        console(sys.stderr).print(notice, style="dim")
    if output is None:
        sys.stdout.write(text)
        return
    with written(str(output)) as (stream, _):
        stream.write(text.encode())


def _statement(db: Database, what: str) -> str:
    """The statement that defines the view or index of that name, or the text itself."""
    from everview.errors import DefinitionError
    from everview.plan.expressions import quoted
    from everview.store.contract import Table

    found = db.catalog.definitions().find(what.strip())
    if isinstance(found, Table):
        raise DefinitionError(
            f"{found.name} is a table, which clients write", hint="explain a view, an index or a query"
        )
    if found is not None:
        return str(db.sql(f"SHOW CREATE {quoted(found.name)}").rows()[0][0])
    if len(what.split()) == 1:
        from everview.catalog.names import unknown

        raise unknown("view", what.strip(), db.catalog.definitions().names())
    return what
