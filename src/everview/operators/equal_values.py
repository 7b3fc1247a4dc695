"""Values that compare equal, made the same.

0.0 and -0.0, all NaNs, 1 month and 30 days are equal in SQL, so before bytes are
compared each of them becomes one of them, inside lists, structs and maps too.

    >>> import pyarrow as pa
    >>> canonical(pa.array([[0.0, -0.0], None], pa.list_(pa.float64())), parse_type("DOUBLE[]")).to_pylist()
    [[0.0, 0.0], None]
"""

from __future__ import annotations

import functools

import pyarrow as pa

from everview.change.schema import KeyPart
from everview.change.types import RECORDS, Type
from everview.store.encoding.columns import list_array, list_counts, list_items
from everview.store.encoding.keys import KeyCodec


def canonical(column: pa.Array, kind: Type) -> pa.Array:
    """A column of this type in which values are equal only if they are the same."""
    if not kind.different_values_compare_equal:
        return column
    if kind.is_scalar:
        codec = _codec(kind)
        return codec.decode_columns(codec.encode_columns([column]))[0]
    if kind.kind in RECORDS:
        parts = [canonical(part, child) for part, (_, child) in zip(column.flatten(), kind.children, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind.arrow), mask=column.is_null())
    absent = column.is_null().to_numpy(zero_copy_only=False)
    return list_array(kind, list_counts(column), canonical(list_items(column), kind.item), absent)


@functools.cache
def _codec(kind: Type) -> KeyCodec:
    return KeyCodec([KeyPart("value", kind, nullable=True)], allow_nan=True)
