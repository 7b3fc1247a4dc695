"""``everview rebuild``: rebuild views.

The maintainer rebuilds the rows of a view, and all state below it, from the base tables,
while the old rows are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everview.cli.console import console


def rebuild(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    views: Annotated[list[str] | None, typer.Argument(help="Views and indexes by name.", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All views and indexes.")] = False,
    wrong: Annotated[
        bool, typer.Option("--wrong", help="Verify first, states too, and rebuild what is wrong.")
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="How long to wait.", show_default="until it is done")
    ] = None,
) -> None:
    """Repair views: rebuild them from the base tables, with all state of their maintenance.

    The maintainer of the store does it, beside its other work; if no process maintains the store, this command
    does. Readers see the old rows until the new ones replace them.

    Ends with 0 when it is done, 1 when it failed or took too long.

    [dim]Example:[/dim] everview rebuild ./shop --wrong
    """
    if bool(views) + everything + wrong != 1:
        raise typer.BadParameter("name views, or give --all or --wrong")
    from everview.client.database import open as open_database

    with open_database(path, create=False) as db:
        names = tuple(views or ())
        if wrong:
            names = db.verify(state=True).to_rebuild
            if not names:
                console().print("nothing is wrong")
                return
        db.rebuild(*names, timeout=timeout)
    console().print(f"rebuilt: {', '.join(names) if names else 'all views'}")
