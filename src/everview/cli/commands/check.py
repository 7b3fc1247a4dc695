"""``everview check``: is the store whole?

Files, pages, entries, tables and views are read completely, each only if the level below it is
whole, and damage is described in plain words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console
from everview.errors import EverviewError

if TYPE_CHECKING:
    from everview.client.database import Database
    from everview.store.embedded.inspection import Inspection

DAMAGED = 1


def check(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="All of it as JSON.")] = False,
) -> None:
    """Read all of a store, and report what is missing, damaged or inconsistent.

    Other processes may use the store meanwhile. Use everview verify to check whether views show the right rows.

    Ends with 0 when the store is whole, 1 when it is not.

    [dim]Example:[/dim] everview check ./shop
    """
    from everview.store.embedded.inspection import inspect_files

    found = inspect_files(path)
    if found.whole:
        _look_inside(path, found)
    _print(found, path, as_json)
    if not found.whole:
        raise typer.Exit(DAMAGED)


def _look_inside(path: Path, found: Inspection) -> None:
    """Pages and entries, then their agreement with the catalog."""
    from everview.store.embedded import EmbeddedStore

    with EmbeddedStore.open(path) as store:
        contents = store.inspect()
        found.problems += contents.problems
        found.visited |= contents.visited
        if found.whole:
            from everview.client.database import open as open_database

            with open_database(path, create=False) as db:
                found.add("catalog", _inspect_definitions(db, found))


def _inspect_definitions(db: Database, found: Inspection) -> Iterator[str]:
    """Every row of every table and view, decoded, and counted if the store counts them too."""
    with db.snapshot() as snapshot:
        for name in db.tables():
            try:
                reader = snapshot.table(name)
                counted, rows = reader.count(), sum(len(batch) for batch in reader.scan().arrow().to_batches())
                if counted != rows:
                    yield f"table {name} counts {counted} rows, and has {rows}"
                found.count("tables", 1)
            except EverviewError as error:
                yield f"table {name} cannot be read: {error.message}"
        for view in db.catalog.views():
            if view.status.value != "live":
                continue
            try:
                len(snapshot.view(view.name).scan().arrow())
                found.count("views", 1)
            except EverviewError as error:
                yield f"view {view.name} cannot be read: {error.message}; everview rebuild may repair it"


def _print(found: Inspection, path: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"whole": found.whole, "problems": found.problems, "visited": found.visited}))
        return
    out = console()
    for problem in found.problems:
        out.print(problem, style="red", markup=False)
    visited = ", ".join(f"{number:,} {kind}" for kind, number in found.visited.items())
    if found.whole:
        out.print(f"{path} is whole: {visited}")
    else:
        out.print(f"{path} is not whole: {len(found.problems)} problems; looked at {visited or 'nothing'}")
