"""Parquet: every value of every type, and the types themselves.

Values are stored in types that other readers of Parquet know, and the file's metadata contains
the SQL types, so that a table created from the file has the same types.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from everview.change.types import Kind, Type, parse_type
from everview.cli.files import rebatched
from everview.cli.files.parquet_types import IN_FILES, from_file, sql_type, to_parts
from everview.client.exported_arrow import NUMBERS, PARTS, PLAIN
from everview.client.result import ResultColumn
from everview.errors import DefinitionError, InputError
from everview.store.encoding.columns import to_python
from everview.store.encoding.rewriting import Rewrite

GROUP = 100_000
"""Rows of a row group, at most."""
GROUP_BYTES = 128 << 20
"""Bytes that make a row group of fewer rows."""
_TYPES = b"everview:types"
"""The metadata key of the SQL types of a file's columns."""


def _digits(array: pa.Array, sql: Type) -> pa.Array:
    """BIGNUMs as the texts that DuckDB writes into Parquet files."""
    return pa.array(to_python(array, sql), pa.string())


_IN_FILES = Rewrite(
    NUMBERS | PLAIN | {Kind.INTERVAL: (lambda _: IN_FILES, to_parts), Kind.BIGNUM: (lambda _: pa.string(), _digits)},
    parts=PARTS,
)


class ParquetRows:
    """Rows of a Parquet file, in batches of the requested size."""

    def __init__(self, file: str) -> None:
        self._name = file
        self._done = 0
        try:
            self._file = pq.ParquetFile(file)
        except (OSError, pa.ArrowException) as error:
            raise self._unreadable(error) from None
        self._schema = self._file.schema_arrow
        self.names = tuple(self._schema.names)
        self.size: int | None = self._file.metadata.num_rows

    def types(self) -> Mapping[str, Type]:
        recorded = self._recorded()
        return {field.name: recorded.get(field.name) or sql_type(field.type) for field in self._schema}

    def _recorded(self) -> dict[str, Type]:
        """The types in the metadata; a file of another program has none."""
        try:
            held = json.loads((self._schema.metadata or {}).get(_TYPES, b"{}"))
            return {name: parse_type(text) for name, text in held.items()}
        except (ValueError, AttributeError, TypeError, DefinitionError):
            return {}

    def batches(self, types: Mapping[str, Type], rows: int) -> Iterator[pa.Table]:
        return rebatched(self._tables(rows), rows)

    def _tables(self, rows: int) -> Iterator[pa.Table]:
        batches = self._file.iter_batches(batch_size=min(rows, GROUP))
        while True:
            try:
                batch = next(batches, None)
            except (OSError, pa.ArrowException) as error:
                raise self._unreadable(error) from None
            if batch is None:
                return
            self._done += len(batch)
            yield pa.table([from_file(array) for array in batch.columns], names=batch.schema.names)

    def done(self) -> int:
        return self._done

    def close(self) -> None:
        self._file.close()

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self._name} cannot be read as Parquet", detail=str(error).partition("\n")[0])


def write_parquet(stream: IO[bytes], columns: Sequence[ResultColumn], batches: Iterable[pa.RecordBatch]) -> None:
    """Write a Parquet file of columns with exactly their types, in groups of limited size."""
    types = json.dumps({column.name: str(column.type) for column in columns}, ensure_ascii=False)
    fields = [pa.field(column.name, _IN_FILES.type(column.type)) for column in columns]
    schema = pa.schema(fields, metadata={_TYPES: types})
    with pq.ParquetWriter(stream, schema, compression="zstd") as file:
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            arrays = [_IN_FILES.column(array, col.type) for array, col in zip(batch.columns, columns, strict=True)]
            waiting.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            rows += len(batch)
            size += batch.nbytes
            if rows >= GROUP or size >= GROUP_BYTES:
                file.write_table(pa.Table.from_batches(waiting, schema), row_group_size=rows)
                waiting, rows, size = [], 0, 0
        if rows:
            file.write_table(pa.Table.from_batches(waiting, schema), row_group_size=rows)
