"""``everview init``: make a store.

An empty or new directory becomes a store, and what is there already is left alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from everview.cli.console import console, counted

NODES, SHARDS = 4, 4


def init(
    path: Annotated[Path, typer.Argument(help="A directory that is new or empty.", show_default=False)],
    nodes: Annotated[int, typer.Option(min=1, max=1024, help="Logs that writes are spread over.")] = NODES,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Files that views are spread over.")] = SHARDS,
    before_images: Annotated[
        bool, typer.Option(help="Logs have before-images: subscriptions need them, and views are cheaper.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="What was made as JSON.")] = False,
) -> None:
    """Make a store in a directory.

    Ends with 1 when the directory holds something already.

    [dim]Example:[/dim] everview init ./shop
    """
    from everview.client.database import open as open_database
    from everview.errors import DuplicateObjectError, NotAStoreError

    try:
        with open_database(path, create=False):
            pass
    except NotAStoreError:
        with open_database(path, before_images=before_images, nodes=nodes, shards=shards):
            pass
    else:
        raise DuplicateObjectError(f"there is a store in {path} already", hint=f"use it: everview sql {path}")
    if as_json:
        print(json.dumps({"store": str(path), "nodes": nodes, "shards": shards, "before_images": before_images}))
    else:
        console().print(f"made a store in {path}, with {counted(nodes, 'log')} and {counted(shards, 'shard')}")
