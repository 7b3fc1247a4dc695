"""Blocks: how changes travel between zones.

One sentence: a Spark row is a whole Arrow table in IPC bytes, with the number of the server
it is for and what it belongs to, so that a shuffle moves a few large values instead of many
small rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
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
"""The subject of a block that is no table, but what a task has to say."""

ROWS = 100_000
"""Most rows of a block: a few megabytes."""


@dataclass(frozen=True)
class Block:
    """Something for a server. ``subject`` numbers the view in the epoch's plan."""

    server: int
    subject: int
    content: bytes

    @property
    def table(self) -> pa.Table:
        with pa.ipc.open_stream(self.content) as stream:
            return stream.read_all()


def cut(table: pa.Table, owners: npt.NDArray[np.int64], subject: int) -> Iterator[Block]:
    """The rows of each owner as blocks, in the order they stand in."""
    order = np.argsort(owners, kind="stable")
    sorted_table = table.take(pa.array(order)).combine_chunks()
    servers, counts = np.unique(owners, return_counts=True)
    ends = np.cumsum(counts)
    for server, start, end in zip(servers, ends - counts, ends, strict=True):
        for first in range(start, end, ROWS):
            rows = sorted_table.slice(first, min(ROWS, end - first))
            yield Block(int(server), subject, _to_bytes(rows))


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def to_spark(blocks: list[Block]) -> pa.RecordBatch:
    """Blocks as Spark rows."""
    return pa.record_batch(
        [[b.server for b in blocks], [b.subject for b in blocks], [b.content for b in blocks]], schema=_SCHEMA
    )


def from_spark(batch: pa.RecordBatch) -> list[Block]:
    """Spark rows as blocks."""
    return [Block(*row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
