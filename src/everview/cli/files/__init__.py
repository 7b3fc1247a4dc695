"""Files that tables are loaded from and dumped to.

A format reads a file as batches of rows, never the whole of it, and writes a result batch by
batch, and everything else is the same for all formats.

| format | names end in | read by | written by | carries |
|---|---|---|---|---|
| Parquet | ``.parquet``, ``.pq`` | PyArrow | PyArrow | every value of every type, and the types |
| CSV | ``.csv``, ``.tsv`` | DuckDB | DuckDB | values as text; the types are the table's |
| JSON Lines | ``.jsonl``, ``.ndjson`` | Python | DuckDB | values as JSON has them; the types are the table's |

CSV and JSON Lines may be compressed: their names end in ``.gz`` or ``.zst`` then.

DuckDB 2.0 cannot do the rest exactly. Into Parquet it writes a HUGEINT as a DOUBLE and an INTERVAL in milliseconds, and
of a file of Arrow's it does not know durations. From JSON it reads ``2.5`` as the BIGINT 2, and does not
distinguish a column that an object lacks from one that is null.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from everview.change.types import Type
    from everview.client.result import ResultColumn

    FileRows: TypeAlias = pa.Table | list[dict[str, Any]]

STREAM = "-"
"""Standard input or output, in place of a file."""
SAMPLED = 10_000
"""Rows that types are guessed from, where a file does not contain them."""


class Format(enum.StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
}


COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def format_of(file: str) -> Format | None:
    """The format that the name of a file stands for."""
    return SUFFIXES.get(_suffix(file))


def compression_of(file: str) -> str | None:
    """The compression that the name of a file stands for."""
    return COMPRESSIONS.get(Path(file).suffix.lower())


def delimiter_of(file: str) -> str:
    """The separator of the fields of a CSV file with this name."""
    return "\t" if _suffix(file) == ".tsv" else ","


def _suffix(file: str) -> str:
    path = Path(file)
    return Path(path.stem if path.suffix.lower() in COMPRESSIONS else path).suffix.lower()


class RowFile(Protocol):
    """An open file of rows."""

    names: tuple[str, ...]
    """The columns of the file; of JSON Lines, those of the first rows."""
    size: int | None
    """The amount to read, in bytes or rows; None: unknown."""

    def types(self) -> Mapping[str, Type]:
        """The types of the columns, as the file contains them, or as its first rows suggest."""

    def batches(self, types: Mapping[str, Type], rows: int) -> Iterator[FileRows]:
        """The rows, so many at a time, as columns of these types or of what becomes them."""

    def done(self) -> int:
        """The amount that was read, in the unit of ``size``."""

    def close(self) -> None:
        """Close the file."""


def open_rows(file: str, form: Format, delimiter: str | None = None) -> RowFile:
    """Open a file, or standard input, for reading."""
    if form is Format.PARQUET:
        from everview.cli.files.parquet import ParquetRows

        return ParquetRows(file)
    if form is Format.CSV:
        from everview.cli.files.csv import CsvRows

        return CsvRows(file, delimiter or delimiter_of(file))
    from everview.cli.files.json_lines import JsonRows

    return JsonRows(file)


@dataclass(frozen=True)
class FileOptions:
    """How a file is written."""

    form: Format
    delimiter: str = ","
    compression: str | None = None


def write_rows(
    stream: IO[bytes], options: FileOptions, columns: Sequence[ResultColumn], batches: Iterable[pa.RecordBatch]
) -> None:
    """Write rows into an open stream, which stays open."""
    if options.form is Format.PARQUET:
        from everview.cli.files.parquet import write_parquet

        write_parquet(stream, columns, batches)
    else:
        from everview.cli.files.copying import copy_to

        copy_to(stream, options, columns, batches)


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
