"""``everview dump``: a table, a view or the answer to a query into a file.

All rows are of one snapshot, and the file appears only when it is complete
(:mod:`everview.cli.files.output`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from everview.cli.console import console, counted
from everview.cli.files import FileOptions, Format, compression_of, delimiter_of, format_of
from everview.cli.files.output import is_standard_output, written

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.client.database import Database
    from everview.client.result import Result
    from everview.client.snapshot_handles import Snapshot


def dump(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    operands: Annotated[
        list[str],
        typer.Argument(
            metavar="[TABLE|VIEW] FILE",
            help="What to dump, unless --query is given, and the file; - is standard output.",
            show_default=False,
        ),
    ],
    query: Annotated[
        str | None, typer.Option(metavar="SELECT...", help="Dump the rows of a query.", show_default=False)
    ] = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="The format of the file.", show_default="by its name")
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(metavar=";", help="The separator of CSV fields.", show_default="a comma; a tab in .tsv"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Write all rows of a table, a view or a query to a file of Parquet, CSV or JSON Lines.

    Views are as of their last epoch; all rows belong to one version of the store.

    [dim]Example:[/dim] everview dump ./shop totals totals.parquet
    """
    if len(operands) != (2 if query is None else 1):
        raise typer.BadParameter("give a table or view and a file, or --query and a file")
    file = operands[-1]
    known = form or format_of(file)
    if known is None:
        raise typer.BadParameter(
            f"the name of {file} has no extension of a known format: add --format parquet, csv or jsonl"
        )
    if delimiter is not None and len(delimiter) != 1:
        raise typer.BadParameter("--delimiter is one character")
    options = FileOptions(known, delimiter or delimiter_of(file), compression_of(file))
    to_output = is_standard_output(file)
    if to_output and known is Format.PARQUET:
        raise typer.BadParameter("Parquet is not written to standard output: give a file")
    if to_output and as_json:
        raise typer.BadParameter("--json and the rows would both go to standard output: choose one of --json and -")
    from everview.client.database import open as open_database

    began = time.monotonic()
    with open_database(path, create=False) as db, db.snapshot() as snapshot:
        result, total = _rows(db, snapshot, operands[0], query)
        with result, written(file) as (stream, name):
            rows = _write(stream, options, result, file, total)
    seconds = time.monotonic() - began
    if as_json:
        print(json.dumps({"file": name, "rows": rows, "seconds": round(seconds, 3)}))
    elif not to_output:
        console().print(f"{counted(rows, 'row')} to {name} in {seconds:.1f} s")


def _rows(db: Database, snapshot: Snapshot, name: str, query: str | None) -> tuple[Result, int | None]:
    """The rows to dump, and their number if it is known."""
    from everview.catalog import NamedQuery, ViewDefinition
    from everview.catalog.names import unknown
    from everview.plan.expressions import quoted
    from everview.store.contract import Table

    if query is not None:
        return snapshot.sql(query), None
    definitions = db.catalog.definitions()
    found = definitions.find(name)
    if isinstance(found, Table):
        table = snapshot.table(found.name)
        return table.scan(), table.count()
    if isinstance(found, ViewDefinition):
        return snapshot.view(found.name).scan(), None
    if isinstance(found, NamedQuery):
        return snapshot.sql(f"SELECT * FROM {quoted(found.name)}"), None
    raise unknown("table or view", name, definitions.names())


def _write(stream: IO[bytes], options: FileOptions, result: Result, file: str, total: int | None) -> int:
    from everview.cli.console import bar
    from everview.cli.files import write_rows
    from everview.errors import InputError

    twice = next((name for name in result.names if result.names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two columns have the name {twice!r}", hint="give them names of their own with AS")
    rows = 0

    def counted_batches() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in result.stored_batches():
            yield batch
            rows += len(batch)
            advance(rows, rows)

    with bar(file, total) as advance:
        write_rows(stream, options, result.columns, counted_batches())
    return rows
