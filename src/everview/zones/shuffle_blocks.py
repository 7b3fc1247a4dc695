"""Blocks: how changes travel between zones.

A Spark row is an Arrow table of about a megabyte in IPC bytes, with the number of the
server it is for and what it belongs to, so that a shuffle moves a few large values instead of many
small rows, and no value is too large for Spark to carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

SPARK_SCHEMA = StructType(
    [
        StructField("server", IntegerType(), nullable=False),
        StructField("subject", IntegerType(), nullable=False),
        StructField("content", BinaryType(), nullable=False),
    ]
)
_SCHEMA = pa.schema([("server", pa.int32()), ("subject", pa.int32()), ("content", pa.binary())])

REPORT = -1
"""The subject of a block that holds a task's report instead of a table."""

BLOCK = 1 << 20
"""About how many bytes a block has at most."""
BATCH = 1 << 24
"""About how many bytes of blocks go to Spark at once."""


@dataclass(frozen=True)
class Block:
    """Something for a server. ``subject`` numbers the way between two steps in the epoch's plan."""

    server: int
    subject: int
    content: bytes

    @property
    def table(self) -> pa.Table:
        with pa.ipc.open_stream(self.content) as stream:
            return stream.read_all()


def table_bytes(table: pa.Table) -> bytes:
    """A table as the content of a block."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def blocks_of(server: int, subject: int, table: pa.Table) -> Iterator[Block]:
    """A table as blocks for a server."""
    pieces = max(1, -(-table.nbytes // BLOCK))
    rows = max(1, -(-len(table) // pieces))
    for low in range(0, max(len(table), 1), rows):
        yield Block(server, subject, table_bytes(table.slice(low, rows)))


def in_batches(blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
    """Blocks as Spark rows, so many at once that they fit into memory."""
    waiting: list[Block] = []
    size = 0
    for block in blocks:
        waiting.append(block)
        size += len(block.content)
        if size >= BATCH:
            yield to_spark(waiting)
            waiting, size = [], 0
    if waiting:
        yield to_spark(waiting)


def to_spark(blocks: list[Block]) -> pa.RecordBatch:
    """Blocks as Spark rows."""
    return pa.record_batch(
        [[b.server for b in blocks], [b.subject for b in blocks], [b.content for b in blocks]], schema=_SCHEMA
    )


def from_spark(batch: pa.RecordBatch) -> list[Block]:
    """Spark rows as blocks."""
    return [Block(*row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
