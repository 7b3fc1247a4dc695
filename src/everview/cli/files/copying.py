"""Rows into a stream by DuckDB's ``COPY … TO``: CSV and JSON Lines.

DuckDB pulls the rows from a result, batch by batch, and writes into a pipe, from whose other end a
thread copies the bytes to where they belong: a partial file, a device, a descriptor at its own position.
"""

from __future__ import annotations

import io
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import duckdb
import pyarrow as pa

from everview.change.types import Type
from everview.cli.files import FileOptions, Format
from everview.cli.files.csv import quotable
from everview.cli.files.json_values import json_expression
from everview.client.result import ResultColumn
from everview.plan.expressions import quoted
from everview.sql.settings import connect_to_file
from everview.store.encoding.registering import register

_BLOCK = 1 << 20


def copy_to(
    stream: IO[bytes], options: FileOptions, columns: Sequence[ResultColumn], batches: Iterable[pa.RecordBatch]
) -> None:
    """Write rows of columns of these types."""
    rows = _RowStream(columns, batches)
    values = ", ".join(
        f"{_value(f'CAST(c{at} AS {column.type})', column.type, options.form)} AS {quoted(column.name)}"
        for at, column in enumerate(columns)
    )
    with (
        _compressed(stream, options.compression) as target,
        _emptied_into(target) as pipe,
        connect_to_file(pipe) as connection,
    ):
        register(connection, "rows", rows)
        try:
            connection.execute(f"COPY (SELECT {values} FROM rows) TO '{pipe}' ({_options(options)})")
        except duckdb.Error:
            if rows.error is not None:
                raise rows.error from None
            raise


def _options(options: FileOptions) -> str:
    if options.form is Format.JSONL:
        return "FORMAT json"
    delimiter = options.delimiter.replace("'", "''")
    return f"FORMAT csv, HEADER, NULLSTR '', DELIMITER '{delimiter}'"


def _value(name: str, kind: Type, form: Format) -> str:
    if form is Format.JSONL:
        return json_expression(name, kind)
    return f"CAST({name} AS VARCHAR)" if kind.is_scalar else f"CAST(CAST({name} AS {quotable(kind)}) AS VARCHAR)"


class _RowStream:
    """Batches that DuckDB reads once, and the error that ended them."""

    def __init__(self, columns: Sequence[ResultColumn], batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = pa.schema([pa.field(f"c{at}", column.type.arrow) for at, column in enumerate(columns)])
        self.error: BaseException | None = None
        self._batches = batches

    def _renamed(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self._renamed()).__arrow_c_stream__(requested_schema)


class _LeftOpen(io.RawIOBase):
    """A stream that stays open when its writer is closed."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._stream.write(data)


@contextmanager
def _compressed(stream: IO[bytes], compression: str | None) -> Iterator[IO[bytes]]:
    """A stream for the bytes before compression. (DuckDB compresses files, but not what it writes into pipes.)"""
    if compression is None:
        yield stream
    else:
        with pa.CompressedOutputStream(pa.PythonFile(_LeftOpen(stream), "w"), compression) as inner:
            yield inner


@contextmanager
def _emptied_into(stream: IO[bytes]) -> Iterator[str]:
    """The name of a pipe whose bytes go to a stream. The writer must be closed when the block ends."""
    source, target = os.pipe()
    errors: list[Exception] = []

    def empty() -> None:
        with os.fdopen(source, "rb", buffering=0) as pipe:
            try:
                shutil.copyfileobj(pipe, stream, _BLOCK)
            except Exception as error:
                errors.append(error)

    thread = threading.Thread(target=empty, name="everview-copy", daemon=True)
    thread.start()
    try:
        yield f"/dev/fd/{target}"
    except duckdb.Error:
        if not errors:  # otherwise the writer has met a closed pipe
            raise
    finally:
        os.close(target)
        thread.join()
    if errors:
        raise errors[0]
