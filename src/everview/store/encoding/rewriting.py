"""Columns with scalars of some kinds in another Arrow type, however deep they stand.

A :class:`Rewrite` lists kinds, each with the Arrow type its values get and the function that
converts a column of them, and applies that inside of lists, structs and maps too.

    >>> text = Rewrite({Kind.JSON: (lambda sql: pa.string(), lambda array, sql: array.storage)})
    >>> text.type(parse_type("JSON[]"))
    ListType(list<item: string>)

Columns without such a scalar are handed through as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from everview.change.types import NESTED, RECORDS, Kind, Type
from everview.store.encoding.columns import list_counts, list_items, nulls_of

Scalar: TypeAlias = tuple[Callable[[Type], pa.DataType], Callable[[pa.Array, Type], pa.Array]]
"""The Arrow type that a scalar type gets, and what converts a column of it."""


class Rewrite:
    """Replaces the Arrow types of some kinds."""

    def __init__(self, scalars: Mapping[Kind, Scalar], *, parts: str = "") -> None:
        """``parts``: what the parts of a TUPLE are called, such as ``element{}``; without, they have no names."""
        self._scalars = dict(scalars)
        self._parts = parts
        self._types: dict[Type, pa.DataType] = {}

    def type(self, sql: Type) -> pa.DataType:
        """The Arrow type that a column of this type gets."""
        found = self._types.get(sql)
        if found is None:
            found = self._types[sql] = self._type(sql) if self.changes(sql) else sql.arrow
        return found

    def changes(self, sql: Type) -> bool:
        """Whether columns of this type are not handed through."""
        if sql.kind in self._scalars or (self._parts and sql.kind is Kind.TUPLE):
            return True
        return any(self.changes(child) for _, child in sql.children)

    def _type(self, sql: Type) -> pa.DataType:
        if sql.kind in self._scalars:
            return self._scalars[sql.kind][0](sql)
        if sql.kind is Kind.MAP:
            return pa.map_(*(self.type(child) for _, child in sql.children))
        if sql.kind in (Kind.LIST, Kind.ARRAY):
            return pa.list_(pa.field("item", self.type(sql.item)), sql.length or -1)
        fields = zip(sql.arrow, sql.children, strict=True)
        if sql.kind is Kind.TUPLE:
            return pa.struct([pa.field(self._parts.format(name), self.type(child)) for name, child in sql.children])
        return pa.struct([field.with_type(self.type(child)) for field, (_, child) in fields])

    def column(self, array: pa.Array, sql: Type) -> pa.Array:
        """A column of ``sql.arrow`` in its new type."""
        if not self.changes(sql):
            return array
        if sql.kind not in NESTED:
            return self._scalars[sql.kind][1](array, sql)
        nulls = nulls_of(array)
        mask = None if nulls is None else pa.array(nulls)
        wanted = self.type(sql)
        if sql.kind in RECORDS:
            parts = [self.column(part, child) for part, (_, child) in zip(array.flatten(), sql.children, strict=True)]
            return pa.StructArray.from_arrays(parts, fields=list(wanted), mask=mask)
        if sql.kind is Kind.ARRAY:
            items = array.values.slice(array.offset * sql.length, len(array) * sql.length)
            return pa.FixedSizeListArray.from_arrays(self.column(items, sql.item), type=wanted, mask=mask)
        offsets = pa.array(np.concatenate([[0], np.cumsum(list_counts(array))]).astype(np.int32))
        items = list_items(array)
        if sql.kind is Kind.MAP:
            keys, values = (self.column(p, child) for p, (_, child) in zip(items.flatten(), sql.children, strict=True))
            return pa.MapArray.from_arrays(offsets, keys, values, type=wanted, mask=mask)
        return pa.ListArray.from_arrays(offsets, self.column(items, sql.item), type=wanted, mask=mask)
