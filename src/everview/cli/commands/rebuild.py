"""``everview rebuild``: build views anew.

What a view shows, and all state below it, is made again from the base tables, by whoever
maintains the store, while the old rows are read.
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
    """Repair views: build them anew from the base tables, with all that their maintenance remembers.

    Whoever maintains the store does it, beside everything else; where nobody does, this command does. Readers
    see the old rows until the new ones take their place.

    Ends with 0 when it is done, 1 when it failed or took too long.

    [dim]Example:[/dim] everview rebuild ./shop --wrong
    """
    if bool(views) + everything + wrong != 1:
        raise typer.BadParameter("name views, or say --all or --wrong")
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
