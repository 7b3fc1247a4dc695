"""``everview load``: rows of files into a table.

Rows are put batch by batch, and each batch is atomic. A value that does not fit is reported with
its file, row and column.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everview.cli.console import console, counted
from everview.cli.files import STREAM, Format, RowFile, format_of, open_rows

if TYPE_CHECKING:
    from everview.change.types import Type
    from everview.cli.files import FileRows
    from everview.client.database import Database
    from everview.client.table_handles import TableHandle
    from everview.errors import EverviewError

BATCH = 100_000


def load(
    path: Annotated[Path, typer.Argument(help="The directory of the store.", show_default=False)],
    table: Annotated[str, typer.Argument(help="The table.", show_default=False)],
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files or patterns (*.csv); - is standard input.", show_default=False),
    ],
    form: Annotated[
        Format | None, typer.Option("--format", help="The format of the files.", show_default="by their names")
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the table, and the store, if they do not exist.")
    ] = False,
    key: Annotated[
        str | None, typer.Option(metavar="a,b", help="With --create: the columns of the key.", show_default="no key")
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(metavar=";", help="What separates the fields of CSV.", show_default="a comma; a tab in .tsv"),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Rows that take effect together.")] = BATCH,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Load rows of Parquet, CSV or JSON Lines into a table.

    A row whose key exists is changed: columns that the file does not have keep their values.
    If a row does not fit, the batches before it are loaded, and its own batch is not.

    [dim]Example:[/dim] everview load ./shop orders orders.parquet --create --key id
    """
    if key is not None and not create:
        raise typer.BadParameter("--key goes with --create: an existing table has its key")
    if delimiter is not None and len(delimiter) != 1:
        raise typer.BadParameter("--delimiter is one character")
    files = [found for file in files for found in _matching(file)]
    forms = [_format(file, form) for file in files]
    from everview.client.database import open as open_database

    began = time.monotonic()
    loaded: list[dict[str, object]] = []
    with open_database(path, create=create) as db:
        for file, known in zip(files, forms, strict=True):
            with closing(open_rows(file, known, delimiter)) as source:
                if create:
                    _create(db, table, source, key)
                loaded.append({"file": file, "rows": _load(db, table, file, source, batch)})
        db.sync()
    seconds = time.monotonic() - began
    total = sum(int(str(one["rows"])) for one in loaded)
    if as_json:
        print(json.dumps({"table": table, "rows": total, "files": loaded, "seconds": round(seconds, 3)}))
    else:
        console().print(f"{counted(total, 'row')} into {table} in {seconds:.1f} s")


def _matching(file: str) -> list[str]:
    """The files that match a pattern; a pattern without matches is the name of a file."""
    if file == STREAM or Path(file).exists():
        return [file]
    place = Path(Path(file).anchor)
    return sorted(map(str, place.glob(str(Path(file).relative_to(place))))) or [file]


def _format(file: str, form: Format | None) -> Format:
    found = form or format_of(file)
    if found is None:
        raise typer.BadParameter(
            f"the name of {file} has no ending that stands for a format: add --format parquet, csv or jsonl"
        )
    if file == STREAM and found is Format.PARQUET:
        raise typer.BadParameter("Parquet cannot be read from standard input: give a file")
    if file != STREAM and not Path(file).is_file():
        raise typer.BadParameter(f"there is no file {file}")
    return found


def _load(db: Database, table: str, file: str, source: RowFile, size: int) -> int:
    from everview.cli.console import bar
    from everview.errors import InputError

    handle = db.table(table)
    kinds = _types(file, source, handle)
    rows = 0
    with bar(file, source.size) as advance, _after(file, lambda: rows):
        for batch in source.batches(kinds, size):
            try:
                handle.put_many(batch)
            except InputError as error:
                raise _placed(db, handle, batch, file, rows, error) from None
            rows += len(batch)
            advance(source.done(), rows)
    return rows


def _create(db: Database, table: str, source: RowFile, key: str | None) -> None:
    from everview.change.schema import Schema
    from everview.errors import DuplicateObjectError

    names = [name.strip() for name in key.split(",")] if key else []
    there = db.catalog.definitions().find(table)
    if there is None:
        db.create_table(table, source.types(), names, if_not_exists=True)
    schema = db.table(table).schema
    own: Sequence[str] = () if schema.hidden_key else schema.key
    if names and list(own) != names:
        assert isinstance(schema, Schema)
        has = f"the key ({', '.join(own)})" if own else "no key"
        raise DuplicateObjectError(f"table {table} exists already, with {has}", hint="leave out --key")


def _types(file: str, source: RowFile, table: TableHandle) -> Mapping[str, Type]:
    """The type of each column of the table; one of the file that the table does not have is an error."""
    from everview.errors import UnknownColumnError

    kinds = {column.name: column.type for column in table.schema.shown}
    odd = [name for name in source.names if name not in kinds]
    if odd:
        raise UnknownColumnError(
            f"{file} has a column {odd[0]}, and table {table.name} has none of that name",
            hint=f"the columns are {', '.join(kinds)}",
        )
    return kinds


@contextmanager
def _after(file: str, rows: Any) -> Iterator[None]:
    """An error in the middle of a file contains how much is loaded already."""
    from everview.errors import EverviewError

    try:
        yield
    except EverviewError as error:
        if rows():
            loaded = f"{counted(rows(), 'row')} of {file} before this batch are in the table"
            error.detail = loaded if error.detail is None else f"{error.detail}\n       {loaded}"
        raise


def _placed(
    db: Database, table: TableHandle, batch: FileRows, file: str, before: int, error: EverviewError
) -> EverviewError:
    """Add the row of the file to an error about a batch. It is found by bisection, in batches that are not written."""
    if _refused(db, table, batch[:0]):
        error.message = f"{file}: {error.message}"
        return error
    low, high = 0, len(batch)
    while high - low > 1:
        middle = (low + high) // 2
        if (found := _refused(db, table, batch[low:middle])) is not None:
            high, error = middle, found
        else:
            low = middle
    error = _refused(db, table, batch[low:high]) or error
    error.message = f"{file}, row {before + low + 1}: {error.message}"
    return error


class _Tried(Exception):
    pass


def _refused(db: Database, table: TableHandle, rows: FileRows) -> EverviewError | None:
    from everview.errors import InputError

    try:
        with suppress(_Tried), db.batch() as batch:
            batch.table(table.name).put_many(rows)
            raise _Tried
    except InputError as error:
        return error
    return None
