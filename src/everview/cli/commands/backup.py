"""``everview backup``: a copy of a store that is in use.

All files are copied as they are at one moment, into a directory that does not exist yet, while
others write to the store and maintain it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from everview.cli.console import console


def backup(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    target: Annotated[Path, typer.Argument(help="The new directory of the copy.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="The path and the bytes as JSON.")] = False,
) -> None:
    """Copy a store while it is in use, into a new directory.

    The copy contains everything that was acknowledged before the command began, in all tables and views. It is a
    store: to restore it, open it, or a copy of it. Nothing is overwritten; if the command fails, the target does not
    exist.

    [dim]Example:[/dim] everview backup ./shop /backups/shop-2026-11-16
    """
    from everview.client.database import open as open_database

    with open_database(path, create=False) as db:
        size = db.backup(target)
    if as_json:
        print(json.dumps({"target": str(target), "bytes": size}))
    else:
        console().print(f"{target} is a copy of {path}: {size / 2**20:,.1f} MiB")
