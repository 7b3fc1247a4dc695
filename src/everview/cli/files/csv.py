"""CSV: values as DuckDB writes and reads them as text.

An empty field is null and a quoted empty one the empty text, everything else is the text of a
value, and what is not the text of a value is an error that names its row and column.

A number is never rounded to fit: ``4.6`` is no BIGINT here, ``1.005`` no DECIMAL(10,2).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

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
from everview.cli.files import SAMPLED, rebatched
from everview.cli.files.streams import ByteStream
from everview.client.result import ResultColumn
from everview.errors import InputError, ValueTypeError
from everview.sql.settings import connect
from everview.store.registering import register, unregister

BLOCK = 2 << 20
"""Bytes that are read at a time, some blocks ahead: the longest row."""

_GUESSED: tuple[tuple[Type, str], ...] = (
    (BIGINT, r"[+-]?(0|[1-9]\d{0,17})"),
    (DOUBLE, r"[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?"),
    (BOOLEAN, r"(?i)(true|false)"),
    (DATE, r"\d{4}-\d\d-\d\d"),
    (TIMESTAMP, r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?"),
    (TIMESTAMPTZ, r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)"),
)
"""Types in the order in which they are tried, and how all values of a column must look then."""


# ------------------------------------------------------------------ reading


class CsvReader:
    """Rows of a CSV file whose first line names the columns."""

    def __init__(self, file: str) -> None:
        self._bytes = ByteStream(file)
        self.size = self._bytes.size
        with self._bytes.closed_on_error():
            self.names = self._header()
        self._texts = self._opened()
        self._sample: list[pa.Table] = []
        self._row = 0
        """Rows that were given away."""

    def _header(self) -> tuple[str, ...]:
        line = self._bytes.raw.readline()
        while line.count(b'"') % 2 and (more := self._bytes.raw.readline()):
            line += more
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{self._bytes.name} is not text in UTF-8") from None
        names = next(csv.reader(text.splitlines(keepends=True)), [])
        if not names:
            raise InputError(f"{self._bytes.name} is empty", hint="the first line of a CSV file names its columns")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{self._bytes.name} has two columns with the name {twice!r}")
        return tuple(names)

    def _opened(self) -> Iterator[pa.Table]:
        """All values as text; nulls where fields are empty and not quoted."""
        wrong: list[Any] = []

        def refuse(row: Any) -> str:
            wrong.append(row)
            return "error"

        try:
            batches = pa.csv.open_csv(
                self._bytes.raw,
                pa.csv.ReadOptions(column_names=list(self.names), use_threads=False, block_size=BLOCK),
                pa.csv.ParseOptions(
                    newlines_in_values=True,
                    invalid_row_handler=refuse,
                    ignore_empty_lines=len(self.names) > 1,  # the only column may be null
                ),
                pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    null_values=[""],
                ),
            )
            yield from (pa.Table.from_batches([batch]) for batch in batches)
        except pa.ArrowInvalid as error:
            if wrong:
                self._uneven(wrong[0])
            if "straddling" in str(error):
                raise InputError(
                    f"{self._bytes.name} has a row of more than {BLOCK:,} bytes",
                    hint="such rows are loaded from Parquet or JSON Lines",
                ) from None
            if "Empty CSV file" not in str(error):
                raise InputError(
                    f"{self._bytes.name} cannot be read as CSV", detail=str(error).partition("\n")[0]
                ) from None

    def _uneven(self, row: Any) -> NoReturn:
        where = self._bytes.name if row.number is None else f"{self._bytes.name}, row {row.number}"
        raise InputError(
            f"{where} has {row.actual_columns} fields, and the first line names {row.expected_columns}",
            detail=str(row.text)[:200],
            hint='a field with commas, quotes or line ends is written "like ""this"""',
        ) from None

    def types(self) -> Mapping[str, Type]:
        while sum(map(len, self._sample)) < SAMPLED and (more := next(self._texts, None)) is not None:
            self._sample.append(more)
        seen = pa.concat_tables(self._sample)[:SAMPLED] if self._sample else None
        return {name: VARCHAR if seen is None else _guessed(seen[name]) for name in self.names}

    def batches(self, types: Mapping[str, Type], rows: int) -> Iterator[pa.Table]:
        kinds = [types[name] for name in self.names]
        with connect() as connection:
            for texts in rebatched(self._all(), rows):
                yield self._typed(connection, texts, kinds)
                self._row += len(texts)

    def _all(self) -> Iterator[pa.Table]:
        yield from self._sample
        self._sample = []
        yield from self._texts

    def _typed(self, connection: duckdb.DuckDBPyConnection, texts: pa.Table, kinds: Sequence[Type]) -> pa.Table:
        try:
            typed = _read(connection, texts, kinds)
        except duckdb.Error as error:
            self._nested(connection, texts, kinds, error)
        for name, kind in zip(self.names, kinds, strict=True):
            if typed[name].null_count != texts[name].null_count:
                wrong = pc.and_(texts[name].is_valid(), typed[name].is_null())
                self._refuse(texts, pc.index(wrong, True).as_py(), name, kind)
        return typed

    def _nested(
        self, connection: duckdb.DuckDBPyConnection, texts: pa.Table, kinds: Sequence[Type], error: Exception
    ) -> NoReturn:
        """Name the value of a nested type that cannot be read: found by halving."""
        for name, kind in zip(self.names, kinds, strict=True):
            low, high = 0, len(texts)
            column = texts.select([name])
            if _readable(connection, column, kind):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                if _readable(connection, column[low:middle], kind):
                    low = middle
                else:
                    high = middle
            self._refuse(texts, low, name, kind)
        raise InputError(f"{self._bytes.name} cannot be read", detail=str(error).partition("\n")[0]) from None

    def _refuse(self, texts: pa.Table, at: int, name: str, kind: Type) -> NoReturn:
        value = texts[name][at].as_py()
        raise ValueTypeError(
            f"{self._bytes.name}, row {self._row + at + 1}, column {name}: {value[:100]!r} is not a value of {kind}",
            detail="the number would have to be rounded" if _is_number(value) and _exact(kind) else None,
            hint="an empty field is null; CREATE TABLE first to choose the types of the columns",
        )

    def done(self) -> int:
        return self._bytes.done()

    def close(self) -> None:
        self._bytes.close()


def _guessed(texts: pa.ChunkedArray) -> Type:
    """The first type that all values look like."""
    seen = texts.drop_null()
    for kind, look in _GUESSED if len(seen) else ():
        if pc.all(pc.match_substring_regex(seen, f"^(?:{look})$")).as_py():
            return kind
    return VARCHAR


def _read(connection: duckdb.DuckDBPyConnection, texts: pa.Table, kinds: Sequence[Type]) -> pa.Table:
    """Texts as values; null where a scalar cannot be read. A nested one that cannot is DuckDB's error."""
    names = [f"c{at}" for at in range(len(kinds))]
    shown = ", ".join(_cast(name, kind) for name, kind in zip(names, kinds, strict=True))
    connection.register("texts", texts.rename_columns(names))
    try:
        return connection.sql(f"SELECT {shown} FROM texts").to_arrow_table().rename_columns(texts.column_names)
    finally:
        connection.unregister("texts")


def _readable(connection: duckdb.DuckDBPyConnection, texts: pa.Table, kind: Type) -> bool:
    try:
        _read(connection, texts, [kind])
    except duckdb.Error:
        return False
    return True


def _cast(name: str, kind: Type) -> str:
    if kind == VARCHAR:
        return name
    if not kind.is_scalar:
        return f"CAST(CAST({name} AS {_quotable(kind)}) AS {kind}) AS {name}"
    look = _exact(kind)
    text = name if look is None else f"CASE WHEN regexp_full_match({name}, '{look}') THEN {name} END"
    return f"TRY_CAST({text} AS {kind}) AS {name}"


def _quotable(kind: Type) -> Type:
    """The type with text in place of JSON: inside of nested values DuckDB quotes texts, and JSON not."""
    if kind.kind is Kind.JSON:
        return VARCHAR
    return replace(kind, children=tuple((name, _quotable(child)) for name, child in kind.children))


def _exact(kind: Type) -> str | None:
    """How a number looks that need not be rounded."""
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


# ------------------------------------------------------------------ writing


class CsvWriter:
    """A CSV file whose first line names the columns."""

    def __init__(self, stream: Any, columns: Sequence[ResultColumn]) -> None:
        self._stream = stream
        self._kinds = [column.type for column in columns]
        self._connection = connect()
        stream.write(_lines([pa.array([column.name]) for column in columns]))

    def write(self, batch: pa.RecordBatch) -> None:
        if len(batch):
            self._stream.write(_lines(self._texts(batch)))

    def _texts(self, batch: pa.RecordBatch) -> list[pa.Array]:
        names = [f"c{at}" for at in range(batch.num_columns)]
        kinds = [kind if kind.is_scalar else _quotable(kind) for kind in self._kinds]
        shown = ", ".join(
            f"CAST(CAST({name} AS {kind}) AS VARCHAR) AS {name}" for name, kind in zip(names, kinds, strict=True)
        )
        table = pa.Table.from_batches([batch.rename_columns(names)])
        register(self._connection, "batch", table)
        try:
            texts = self._connection.sql(f"SELECT {shown} FROM batch").to_arrow_table()
        finally:
            unregister(self._connection, "batch", table)
        return [column.combine_chunks() for column in texts.columns]

    def close(self) -> None:
        self._connection.close()


def _lines(texts: Sequence[pa.Array]) -> pa.Buffer:
    """Lines of fields. An array of texts holds them one behind the other: that is the file."""
    fields = []
    for column in texts:
        quotes = pc.match_substring_regex(column, '[",\r\n]|^$')
        inside = pc.replace_substring(column, '"', '""')
        quoted = pc.binary_join_element_wise('"', inside, '"', "")
        fields.append(pc.fill_null(pc.if_else(quotes, quoted, column), ""))
    lines = pc.binary_join_element_wise(*fields, ",") if len(fields) > 1 else fields[0]
    ended = pc.binary_join_element_wise(lines, "", "\n").cast(pa.large_string())
    offsets = ended.buffers()[1]
    length = int.from_bytes(memoryview(offsets)[8 * len(ended) : 8 * len(ended) + 8], "little")
    return ended.buffers()[2].slice(0, length)
