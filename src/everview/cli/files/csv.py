"""CSV files, as DuckDB reads them.

An empty field is null and a quoted empty one the empty text, everything else is the text of a
value, and any other text is an error that names its row and column.

DuckDB splits the file into texts, and the texts become values in a second step: DuckDB alone would round a number that
does not fit (``4.6`` is no BIGINT here, ``1.005`` no DECIMAL(10,2)), and would read ``007`` as a number where
types are guessed. The first line is read here, since DuckDB renames columns of the same name.
"""

from __future__ import annotations

import csv
import io
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import IO, NoReturn

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGERS,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    Type,
)
from everview.cli.files import SAMPLED, STREAM, compression_of, rebatched
from everview.cli.files.streams import ByteStream
from everview.errors import InputError, ValueTypeError
from everview.sql.settings import connect_to_file

LONGEST = 2 << 20
"""Bytes of the longest row."""
_BUFFERED = 16
"""Rows of that length that DuckDB reads at a time."""

_GUESSED: tuple[tuple[Type, str], ...] = (
    (BIGINT, r"[+-]?(0|[1-9]\d{0,17})"),
    (DOUBLE, r"[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?"),
    (BOOLEAN, r"(?i)(true|false)"),
    (DATE, r"\d{4}-\d\d-\d\d"),
    (TIMESTAMP, r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?"),
    (TIMESTAMPTZ, r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)"),
)
"""Types in the order in which they are tried, and the pattern that all values of a column must match."""
_LINE = re.compile(r"CSV Error on Line: (\d+)\nOriginal Line: (.*?)\n(.*)", re.DOTALL)
_FIELDS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")


class CsvRows:
    """Rows of a CSV file whose first line names the columns."""

    def __init__(self, file: str, delimiter: str) -> None:
        self._delimiter = delimiter
        self._lines = 0
        """Lines that are read here, not by DuckDB."""
        if file == STREAM:
            self._name, self.size = "standard input", None
            self._path = f"/dev/fd/{sys.stdin.fileno()}"
            with io.FileIO(sys.stdin.fileno(), closefd=False) as pipe:  # without a buffer: DuckDB reads the rest
                rewound = _is_unread_file(pipe)
                self.names, lines = self._header(pipe)
            self._lines = 0 if rewound else lines
        else:
            self._name = self._path = file
            stream = ByteStream(file)
            with closing(stream), stream.reading():
                self.names, _ = self._header(stream.raw)
            self.size = stream.size if compression_of(file) is None else None
        self._connection = connect_to_file(self._path)
        self._texts = self._opened()
        self._sample: list[pa.Table] = []
        self._row = 0
        """Rows that were returned."""
        self._done = 0

    def _header(self, stream: IO[bytes] | io.FileIO) -> tuple[tuple[str, ...], int]:
        """The names of the columns, and how many lines they take."""
        line = stream.readline()
        lines = 1
        while line.count(b'"') % 2 and (more := stream.readline()):
            line += more
            lines += 1
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{self._name} is not text in UTF-8") from None
        names = next(csv.reader(text.splitlines(keepends=True), delimiter=self._delimiter), [])
        if not names:
            raise InputError(f"{self._name} is empty", hint="the first line of a CSV file names its columns")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{self._name} has two columns with the name {twice!r}")
        return tuple(names), lines

    def _opened(self) -> Iterator[pa.Table]:
        """All values as text; nulls where fields are empty and not quoted."""
        columns = {f"c{at}": "VARCHAR" for at in range(len(self.names))}
        query = (
            f"FROM read_csv($file, columns={columns}, auto_detect=false, header={self._lines == 0}, delim=$delimiter, "
            "quote='\"', escape='\"', nullstr='', allow_quoted_nulls=false, "
            f"max_line_size={LONGEST}, buffer_size={LONGEST * _BUFFERED})"
        )
        try:
            found = self._connection.sql(query, params={"file": self._path, "delimiter": self._delimiter})
            for batch in found.to_arrow_reader(SAMPLED):
                yield pa.Table.from_batches([batch])
        except duckdb.Error as error:
            self._refuse_file(str(error))

    def _refuse_file(self, message: str) -> NoReturn:
        if "Maximum line size" in message:
            raise InputError(
                f"{self._name} has a row of more than {LONGEST:,} bytes",
                hint="such rows are loaded from Parquet or JSON Lines",
            ) from None
        placed = _LINE.search(message)
        if placed is None:
            raise InputError(f"{self._name} cannot be read as CSV", detail=message.partition("\n")[0]) from None
        where = f"{self._name}, line {int(placed[1]) + self._lines}"
        fields = _FIELDS.match(placed[3])
        if fields is None:
            raise InputError(f"{where} cannot be read as CSV", detail=placed[3].strip().partition("\n")[0]) from None
        raise InputError(
            f"{where} has {fields[2]} fields, and the first line names {fields[1]}",
            detail=placed[2][:200],
            hint='a field with commas, quotes or line ends is written "like ""this"""',
        ) from None

    def types(self) -> Mapping[str, Type]:
        while sum(map(len, self._sample)) < SAMPLED and (more := next(self._texts, None)) is not None:
            self._sample.append(more)
        seen = pa.concat_tables(self._sample)[:SAMPLED].rename_columns(self.names) if self._sample else None
        return {name: VARCHAR if seen is None else _guessed(seen[name]) for name in self.names}

    def batches(self, types: Mapping[str, Type], rows: int) -> Iterator[pa.Table]:
        kinds = [types[name] for name in self.names]
        with self._connection.cursor() as cursor:
            for texts in rebatched(self._all(), rows):
                self._done += len(texts) * len(self.names) + sum(
                    pc.sum(pc.binary_length(column)).as_py() or 0 for column in texts.columns
                )
                yield self._typed(cursor, texts, kinds)
                self._row += len(texts)

    def _all(self) -> Iterator[pa.Table]:
        yield from self._sample
        self._sample = []
        yield from self._texts

    def _typed(self, connection: duckdb.DuckDBPyConnection, texts: pa.Table, kinds: Sequence[Type]) -> pa.Table:
        typed = _read(connection, texts, kinds)
        for at, kind in enumerate(kinds):
            if typed[at].null_count != texts[at].null_count:
                wrong = pc.and_(texts[at].is_valid(), typed[at].is_null())
                row = pc.index(wrong, True).as_py()
                self._refuse_value(row, self.names[at], texts[at][row].as_py(), kind)
        return typed.rename_columns(self.names)

    def _refuse_value(self, row: int, name: str, value: str, kind: Type) -> NoReturn:
        raise ValueTypeError(
            f"{self._name}, row {self._row + row + 1}, column {name}: {value[:100]!r} is not a value of {kind}",
            detail="the number would have to be rounded" if _is_number(value) and _exact(kind) else None,
            hint="an empty field is null; CREATE TABLE first to choose the types of the columns",
        )

    def done(self) -> int:
        return self._done

    def close(self) -> None:
        self._connection.close()


def _is_unread_file(stream: io.FileIO) -> bool:
    """Whether standard input is a file: DuckDB, which opens it once more, reads it from its beginning."""
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return False
    if stream.tell():
        raise InputError("standard input is a file whose beginning was read already", hint="give the name of the file")
    return True


def _guessed(texts: pa.ChunkedArray) -> Type:
    """The first type whose pattern all values match."""
    seen = texts.drop_null()
    for kind, pattern in _GUESSED if len(seen) else ():
        if pc.all(pc.match_substring_regex(seen, f"^(?:{pattern})$")).as_py():
            return kind
    return VARCHAR


def _read(connection: duckdb.DuckDBPyConnection, texts: pa.Table, kinds: Sequence[Type]) -> pa.Table:
    """Texts as values; null if one cannot be read."""
    values = ", ".join(_cast(name, kind) for name, kind in zip(texts.column_names, kinds, strict=True))
    connection.register("texts", texts)
    try:
        return connection.sql(f"SELECT {values} FROM texts").to_arrow_table()
    finally:
        connection.unregister("texts")


def _cast(name: str, kind: Type) -> str:
    if kind == VARCHAR:
        return name
    if not kind.is_scalar:
        return f"TRY(CAST(CAST({name} AS {quotable(kind)}) AS {kind})) AS {name}"
    pattern = _exact(kind)
    text = name if pattern is None else f"CASE WHEN regexp_full_match({name}, '{pattern}') THEN {name} END"
    return f"TRY_CAST({text} AS {kind}) AS {name}"


def quotable(kind: Type) -> Type:
    """The type with VARCHAR in place of JSON: inside nested values DuckDB quotes texts, but not JSON."""
    if kind.kind is Kind.JSON:
        return VARCHAR
    return replace(kind, children=tuple((name, quotable(child)) for name, child in kind.children))


def _exact(kind: Type) -> str | None:
    """The pattern of numbers that need not be rounded."""
    if kind.kind in INTEGERS:
        return r"\s*[+-]?\d+\s*"
    if kind.kind is Kind.DECIMAL:
        return rf"\s*[+-]?(\d+|\d*\.\d{{0,{kind.scale}}}0*)\s*"
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
