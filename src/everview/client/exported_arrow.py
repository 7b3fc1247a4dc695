"""Arrow columns of results, in the types of DuckDB's own export.

Inside, values that Arrow has no type for travel as opaque bytes (:mod:`everview.change.types`);
readers of a result get the types of ``duckdb.sql(…).to_arrow_table()`` instead, in lists, structs and maps too.

| type | inside | outside |
|---|---|---|
| HUGEINT | 16 bytes | ``decimal128(38, 0)`` |
| UHUGEINT | 16 bytes | ``decimal256(39, 0)``; DuckDB's ``decimal128`` turns large values negative |
| UUID, JSON | Arrow's extension types | ``string`` |
| TIMETZ | 8 bytes | ``string``; DuckDB's ``time64`` drops the offset |
| BIT | DuckDB's bytes | ``binary``, the same bytes: the number of padding bits, and the bits |
| BIGNUM | DuckDB's bytes | the same: ``arrow.opaque``, which DuckDB reads as a BIGNUM |
| TUPLE | a struct without names | a struct of ``element1``, ``element2``, … |
| ENUM | places of the members | a dictionary of strings |

    >>> exported(pa.nulls(1, parse_type("HUGEINT[]").arrow), parse_type("HUGEINT[]")).type
    ListType(list<item: decimal128(38, 0)>)

All of it happens column by column, and a HUGEINT is not even copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from everview.change.schema import Column
from everview.change.types import Kind, Type
from everview.store.encoding import timetz
from everview.store.encoding.columns import Mask, nulls_of, raw_values
from everview.store.encoding.rewriting import Rewrite, Scalar

if TYPE_CHECKING:
    from everview.client.result import ResultColumn

_HUGE = pa.decimal128(38, 0)
_UNSIGNED_HUGE = pa.decimal256(39, 0)


def exported_schema(columns: Sequence[ResultColumn | Column]) -> pa.Schema:
    """The schema that readers see."""
    return pa.schema([pa.field(column.name, _EXPORTED.type(column.type)) for column in columns])


def exported_batch(batch: pa.RecordBatch, columns: Sequence[ResultColumn], schema: pa.Schema) -> pa.RecordBatch:
    """A batch as readers see it; ``schema`` is the one of :func:`exported_schema`."""
    arrays = [exported(array, column.type) for array, column in zip(batch.columns, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def exported_table(table: pa.Table, columns: Sequence[ResultColumn | Column]) -> pa.Table:
    """A table of columns with these types, as readers see it."""
    arrays = [
        pa.chunked_array([exported(chunk, column.type) for chunk in chunks.chunks], _EXPORTED.type(column.type))
        for chunks, column in zip(table.columns, columns, strict=True)
    ]
    return pa.table(arrays, schema=exported_schema(columns))


def exported(array: pa.Array, sql: Type) -> pa.Array:
    """A column as readers see it."""
    return _EXPORTED.column(array, sql)


# ------------------------------------------------------------------ scalars


def _validity(nulls: Mask | None) -> pa.Buffer | None:
    return None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))


def _huge(array: pa.Array, _: Type) -> pa.Array:
    """The same bytes under another type. They may have 39 digits, as DuckDB's do."""
    storage = array.storage
    return pa.Array.from_buffers(_HUGE, len(storage), storage.buffers(), offset=storage.offset)


def _unsigned_huge(array: pa.Array, sql: Type) -> pa.Array:
    halves = np.zeros((len(array), 4), "<u8")
    halves[:, :2] = raw_values(array, sql).view("<u8").reshape(-1, 2)
    return pa.Array.from_buffers(_UNSIGNED_HUGE, len(array), [_validity(nulls_of(array)), pa.py_buffer(halves)])


_HEX = np.array([f"{byte:02x}".encode() for byte in range(256)], "S2").view(np.uint8).reshape(256, 2)
_DASHES = (8, 13, 18, 23)
_DIGITS = np.array([at for at in range(36) if at not in _DASHES])


def _uuid(array: pa.Array, sql: Type) -> pa.Array:
    count = len(array)
    text = np.full((count, 36), ord("-"), np.uint8)
    text[:, _DIGITS] = _HEX[raw_values(array, sql).view(np.uint8).reshape(-1, 16)].reshape(count, 32)
    offsets = np.arange(count + 1, dtype=np.int32) * 36
    return pa.Array.from_buffers(
        pa.string(), count, [_validity(nulls_of(array)), pa.py_buffer(offsets), pa.py_buffer(text)]
    )


NUMBERS: dict[Kind, Scalar] = {
    Kind.HUGEINT: (lambda _: _HUGE, _huge),
    Kind.UHUGEINT: (lambda _: _UNSIGNED_HUGE, _unsigned_huge),
}
"""Integers as decimals, which all readers know."""


def _timetz(array: pa.Array, sql: Type) -> pa.Array:
    """Texts as DuckDB writes them: its own export drops the offset."""
    return pa.array(
        [None if bits is None else timetz.text_of(bits) for bits in array.storage.view(pa.int64()).to_pylist()],
        pa.string(),
    )


def _enum(array: pa.Array, sql: Type) -> pa.Array:
    return pa.DictionaryArray.from_arrays(array.storage, pa.array(sql.members, pa.string()))


_TEXTS: dict[Kind, Scalar] = {
    Kind.UUID: (lambda _: pa.string(), _uuid),
    Kind.JSON: (lambda _: pa.string(), lambda array, _: array.storage),
}
PLAIN: dict[Kind, Scalar] = {
    Kind.TIMETZ: (lambda _: pa.string(), _timetz),
    Kind.ENUM: (lambda sql: pa.dictionary(sql.arrow.storage_type, pa.string()), _enum),
    Kind.BIT: (lambda _: pa.binary(), lambda array, _: array.storage),
}
"""Values without an Arrow type, in a form that all readers know."""
PARTS = "element{}"
"""DuckDB's names for the parts of a TUPLE."""
_EXPORTED = Rewrite(NUMBERS | _TEXTS | PLAIN, parts=PARTS)
