"""Files that tables are loaded from and dumped to.

A format reads a file as batches of rows, never the whole of it, and writes a result batch by
batch, and everything else is the same for all formats.

| format | names end in | carries |
|---|---|---|
| Parquet | ``.parquet``, ``.pq`` | every value of every type, and the types |
| CSV | ``.csv`` | values as text; the types are the table's |
| JSON Lines | ``.jsonl``, ``.ndjson`` | values as text, numbers, lists and objects; the types are the table's |
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.change.types import Type
    from everview.client.result import ResultColumn

    Rows: TypeAlias = pa.Table | list[dict[str, Any]]

STREAM = "-"
"""Standard input or output, in place of a file."""
SAMPLED = 10_000
"""Rows that types are guessed from, where a file does not tell them."""


class Format(enum.StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
}


def format_of(file: str) -> Format | None:
    """What the name of a file says."""
    return SUFFIXES.get(Path(file).suffix.lower())


class Reader(Protocol):
    """An open file of rows."""

    names: tuple[str, ...]
    """The columns of the file; where rows tell them, those of the first rows."""
    size: int | None
    """How much there is to read, in bytes or rows; None: not known."""

    def types(self) -> Mapping[str, Type]:
        """The types of the columns, as the file tells them, or as its first rows suggest."""

    def batches(self, types: Mapping[str, Type], rows: int) -> Iterator[Rows]:
        """The rows, so many at a time, as columns of these types or of what becomes them."""

    def done(self) -> int:
        """How much has been read, in what ``size`` counts."""

    def close(self) -> None:
        """Let go of the file."""


class Writer(Protocol):
    """A file that is being written."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write what is left. The stream stays open."""


def reader(file: str, form: Format) -> Reader:
    """Open a file, or standard input, for reading."""
    if form is Format.PARQUET:
        from everview.cli.files.parquet import ParquetReader

        return ParquetReader(file)
    if form is Format.CSV:
        from everview.cli.files.csv import CsvReader

        return CsvReader(file)
    from everview.cli.files.json_lines import JsonLinesReader

    return JsonLinesReader(file)


def writer(stream: Any, form: Format, columns: Sequence[ResultColumn]) -> Writer:
    """Begin a file in an open binary stream."""
    if form is Format.PARQUET:
        from everview.cli.files.parquet import ParquetWriter

        return ParquetWriter(stream, columns)
    if form is Format.CSV:
        from everview.cli.files.csv import CsvWriter

        return CsvWriter(stream, columns)
    from everview.cli.files.json_lines import JsonLinesWriter

    return JsonLinesWriter(stream, columns)


def rebatched(batches: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of exactly so many, but for the last."""
    import pyarrow as pa

    waiting: list[pa.Table] = []
    count = 0
    for table in batches:
        waiting.append(table)
        count += len(table)
        while count >= rows:
            together = pa.concat_tables(waiting)
            yield together[:rows]
            waiting, count = [together[rows:]], count - rows
    if count:
        yield pa.concat_tables(waiting)
