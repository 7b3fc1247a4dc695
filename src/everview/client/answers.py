"""Queries answered by DuckDB over rows that are scanned on demand.

Every table reference of a query becomes a stream of Arrow batches that restarts
whenever DuckDB reads it, so nothing is copied into DuckDB and a query that stops early reads no
further.

A connection under the fixed settings takes some 25 ms to make, so idle ones are kept.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from everview.client.result import ResultColumn
from everview.errors import EverviewError, ValueTypeError
from everview.sql.result_values import carried
from everview.sql.settings import connect
from everview.store.encoding.columns import one_array
from everview.store.encoding.fitting import fit
from everview.store.encoding.registering import register, unregister

BATCH = 8192
"""Rows that are computed at a time."""
_IDLE = 4


@dataclass(frozen=True)
class AnswerSource:
    """Rows that can be read several times: each time DuckDB asks, from the beginning."""

    schema: pa.Schema
    scan: Callable[[], Iterator[pa.RecordBatch]]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.scan())
        return reader.__arrow_c_stream__(requested_schema)


class Connections:
    """Idle connections to DuckDB."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._idle: list[duckdb.DuckDBPyConnection] = []

    def take(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._process != os.getpid():  # a fork copies connections, but not their threads
                self._process, self._idle = os.getpid(), []
            if self._idle:
                return self._idle.pop()
        return connect()

    def give_back(self, connection: duckdb.DuckDBPyConnection) -> None:
        with self._lock:
            if self._process == os.getpid() and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class Answer:
    """A running query: batches of exactly its columns, in order, until it ends or is closed."""

    def __init__(
        self, connections: Connections, sql: str, columns: Sequence[ResultColumn], sources: Mapping[str, AnswerSource]
    ) -> None:
        self.columns = tuple(columns)
        self._schema = pa.schema([pa.field(column.name, column.type.arrow) for column in columns])
        self._connections = connections
        self._connection: duckdb.DuckDBPyConnection | None = connections.take()
        self._sources = dict(sources)
        try:
            for name, source in self._sources.items():
                register(self._connection, name, source)
            self._reader = self._connection.sql(carried(sql, [one.type for one in columns])).to_arrow_reader(BATCH)
        except duckdb.Error as error:
            self.close()
            raise failure(error) from None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            while self._connection is not None:
                try:
                    batch = self._reader.read_next_batch()
                except StopIteration:
                    return
                except (duckdb.Error, pa.ArrowException, OSError) as error:
                    raise failure(error) from None
                yield self._typed(batch)
        finally:
            self.close()

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(list(self), self._schema)

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            array if array.type == column.type.arrow else fit(one_array([array]), column.type)
            for array, column in zip(batch.columns, self.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        reader = getattr(self, "_reader", None)
        if reader is not None:
            reader.close()
        try:
            for name, source in self._sources.items():
                unregister(connection, name, source)
        except duckdb.Error:
            connection.close()
            return
        self._connections.give_back(connection)


def failure(error: Exception) -> EverviewError:
    """The error for a value that DuckDB cannot compute. Names and types were checked
    before, so the rows are the cause."""
    if isinstance(error.__cause__, EverviewError):
        return error.__cause__
    text = str(error).partition("\n")[0]
    for words in ("Conversion Error: ", "Invalid Input Error: ", "Out of Range Error: ", "Invalid: ", "IOError: "):
        text = text.removeprefix(words)
    text = re.sub(r" when casting from source column c\d+$", "", text.strip())
    return ValueTypeError("a value cannot be computed", detail=text, hint="TRY_CAST and TRY give NULL instead")
