"""Intervals in Parquet.

Parquet has no type for months, days and nanoseconds, so there an interval is a struct of the
three, under a name by which it is known again, however deep it stands in lists, structs and maps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from everview.change.types import INTERVAL, Type
from everview.store.columns import from_raw, list_counts, list_items, nulls_of, raw_values

_PARTS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
IN_FILES = pa.opaque(
    pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())]), "interval", "Everview"
)


def from_file(array: pa.Array) -> pa.Array:
    """A column with such structs as intervals."""
    return _replaced(array, IN_FILES, _from_parts)


def to_parts(array: pa.Array, _: Type) -> pa.Array:
    """Intervals as structs."""
    raw, nulls = raw_values(array, INTERVAL).view(_PARTS), nulls_of(array)
    parts = [pa.array(np.ascontiguousarray(raw[field.name]), field.type) for field in IN_FILES.storage_type]
    mask = None if nulls is None else pa.array(nulls)
    storage = pa.StructArray.from_arrays(parts, fields=list(IN_FILES.storage_type), mask=mask)
    return pa.ExtensionArray.from_storage(IN_FILES, storage)


def _from_parts(array: pa.Array) -> pa.Array:
    raw = np.zeros(len(array), _PARTS)
    for field, part in zip(IN_FILES.storage_type, array.storage.flatten(), strict=True):
        raw[field.name] = part.fill_null(0).to_numpy(zero_copy_only=False)
    return from_raw(raw.view("V16"), INTERVAL, nulls_of(array))


def _replaced(array: pa.Array, old: pa.DataType, new: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The column with every part of one type replaced; the same column where there is none."""
    arrow = array.type
    if arrow == old:
        return new(array)
    if not _contains(arrow, old):
        return array
    nulls = nulls_of(array)
    mask = None if nulls is None else pa.array(nulls)
    if pa.types.is_struct(arrow):
        parts = [_replaced(part, old, new) for part in array.flatten()]
        fields = [pa.field(field.name, part.type) for field, part in zip(arrow, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    if pa.types.is_fixed_size_list(arrow):
        inside = array.values.slice(array.offset * arrow.list_size, len(array) * arrow.list_size)
        found = _replaced(inside, old, new)
        return pa.FixedSizeListArray.from_arrays(found, type=pa.list_(found.type, arrow.list_size), mask=mask)
    offsets = pa.array(np.concatenate([[0], np.cumsum(list_counts(array))]).astype(np.int32))
    items = list_items(array)
    if pa.types.is_map(arrow):
        keys, values = (_replaced(part, old, new) for part in items.flatten())
        return pa.MapArray.from_arrays(offsets, keys, values, type=pa.map_(keys.type, values.type), mask=mask)
    found = _replaced(items, old, new)
    return pa.ListArray.from_arrays(offsets, found, type=pa.list_(found.type), mask=mask)


def _contains(arrow: pa.DataType, old: pa.DataType) -> bool:
    if arrow == old:
        return True
    if pa.types.is_map(arrow):
        return _contains(arrow.key_type, old) or _contains(arrow.item_type, old)
    if pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return _contains(arrow.value_type, old)
    return pa.types.is_struct(arrow) and any(_contains(field.type, old) for field in arrow)
