"""``everview status``: how the views of a store are.

The result of ``db.status()`` as tables for people, as a screen that follows it, or as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console

if TYPE_CHECKING:
    from rich.table import Table

    from everview.client.status import Status


def status(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    watch: Annotated[bool, typer.Option("--watch", help="Update it each second, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as JSON.")] = False,
) -> None:
    """Show how far all views are, what is being built, and who maintains them.

    [dim]Example:[/dim] everview status ./shop --watch
    """
    if watch and as_json:
        raise typer.BadParameter("choose one of --watch and --json")
    if watch and not sys.stdout.isatty():
        raise typer.BadParameter("--watch needs a terminal; --json prints the status once")
    from everview.client.database import open as open_database

    with open_database(path, create=False) as db:
        if watch:
            from everview.cli.live import watch as watched

            watched(db, str(path))
            return
        found = db.status()
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    out = console()
    out.print(f"{path} is maintained by {found.maintainer or 'nobody at the moment'}")
    for table in tables(found):
        if table.row_count:
            out.print(table)
    out.print(f"logs: {found.log}")
    if found.unreadable:
        out.print(f"{found.unreadable:,} log entries cannot be read", style="red")


def tables(found: Status) -> list[Table]:
    """The status as tables; some may be empty."""
    groups = _table("group", "kind", "epoch", "behind", "since")
    views = _table("view", "kind", "group", "state", "quarantined")
    for group in found.groups:
        behind = f"{group.lag:,} operations" if group.lag else "up to date"
        since = f"{group.behind:.1f} s" if group.lag else ""
        groups.add_row(group.name, group.kind, f"{group.epoch:,}", behind, since)
        for view in group.views:
            views.add_row(
                view.name, view.kind, group.name, view.status, f"{view.quarantined:,}" if view.quarantined else ""
            )
    builds = _table("building", "for", "now", "tables", "to follow")
    for build in found.builds:
        done, of = build.tables
        builds.add_row(
            ", ".join(build.views), build.target, build.phase, f"{done} of {of}", f"{build.lag:,} operations"
        )
    rows = _table("table", "rows")
    for name, count in found.tables:
        rows.add_row(name, f"{count:,}")
    return [groups, views, builds, rows]


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in ("epoch", "rows", "quarantined") else "left")
    return table
