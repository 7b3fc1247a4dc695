"""``everview verify``: are the views right?

Every view is recomputed from the base tables while the store goes on, and what differs is
named, for people or as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console

if TYPE_CHECKING:
    from everview.check.report import Report

WRONG = 1
UNDECIDED = 3

_STYLES = {"wrong": "red", "undecided": "yellow"}


def verify(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    views: Annotated[list[str] | None, typer.Argument(help="Views and indexes by name.", show_default="all")] = None,
    state: Annotated[
        bool, typer.Option("--state", help="Also compare the state of maintenance with the same state rebuilt.")
    ] = False,
    spark: Annotated[bool, typer.Option("--spark", help="On Spark: tables in parts, views side by side.")] = False,
    master: Annotated[
        str | None, typer.Option(help="Where Spark runs, such as spark://host:7077.", show_default="two cores here")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Rows of each kind that are named for each view.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as JSON.")] = False,
) -> None:
    """Recompute views from the base tables, and print missing, extra and differing rows.

    Views are maintained and rows are written meanwhile; each group is judged at one frontier.

    Ends with 0 when all is right, 1 when a view is wrong, 3 when nothing is wrong but a view could not be judged.

    [dim]Example:[/dim] everview verify ./shop totals --state
    """
    from everview.client.database import open as open_database

    if master is not None and not spark:
        raise typer.BadParameter("--master is for --spark")
    with open_database(path, create=False) as db:
        if spark:
            from everview.zones.session import new_session

            session = new_session(master)
            try:
                found = db.verify(*(views or ()), state=state, spark=session, samples=samples)
            finally:
                session.stop()
        else:
            found = db.verify(*(views or ()), state=state, samples=samples)
    _print(found, as_json)
    if not found.right:
        raise typer.Exit(WRONG)
    if found.undecided:
        raise typer.Exit(UNDECIDED)


def _print(found: Report, as_json: bool) -> None:
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    out = console()
    for view in found.views:
        out.print(str(view), style=_STYLES.get(str(view.verdict)))
    if not found.views:
        out.print("there are no views")
    elif found.to_rebuild:
        out.print(f"to repair: everview rebuild … {' '.join(found.to_rebuild)}")
