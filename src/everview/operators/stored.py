"""The state of a step, between columns and the bytes of a store.

A state table's key is the encoding of the step's key columns, and a record, or a
row of a bag, is the encoding of the other columns; this module knows both and nothing else does.

Three things that an encoding of keys alone would not take:

- A key without columns (the group of a query without GROUP BY) is one zero byte.
- A part that is a list, struct or map goes in as the bytes of its value: equal values are equal
  bytes, which is all that a key of state needs; they are in no useful order.
- A key longer than stores take is cut, and a digest of the whole put behind it. A record then
  holds the whole key as well; a reader of a bag's rows asked for their key and knows it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.schema import Column, KeyPart, Schema
from everview.change.types import BLOB, BOOLEAN, Type
from everview.errors import InputError
from everview.operators.equal_values import canonical
from everview.operators.evaluation import one_array
from everview.operators.members import MEMBER, TAG, Members
from everview.plan.expressions import Field
from everview.plan.maintenance import State
from everview.store.contract import StateTable
from everview.store.encoding.columns import to_arrow
from everview.store.encoding.keys import KeyCodec
from everview.store.encoding.ragged import BINARY, Bytes, column_of, content, gather, glue, lengths, places
from everview.store.encoding.rows import RowCodec
from everview.store.encoding.values import Refused, checker, refusal

LONGEST_KEY = 400
"""Bytes of a state's key, without the member's tag. Stores take more."""
KEPT = LONGEST_KEY - 16
"""Bytes that are kept of a longer one, before its digest."""
_NO_KEY = b"\0"
_WHOLE = "whole key"


@dataclass(frozen=True)
class Keys:
    """Encodes key columns. ``delimited`` keys contain their own end."""

    parts: tuple[KeyPart, ...]
    where: str
    delimited: bool = False

    @functools.cached_property
    def _codec(self) -> KeyCodec | None:
        if not self.parts:
            return None
        scalars = [part if part.type.is_scalar else KeyPart(part.name, BLOB, part.nullable) for part in self.parts]
        return KeyCodec(scalars, delimited=self.delimited, allow_nan=True, where=self.where)

    @functools.cached_property
    def _nested(self) -> tuple[RowCodec | None, ...]:
        return tuple(
            None if part.type.is_scalar else _codec([(part.name, part.type)], self.where) for part in self.parts
        )

    def encode(self, columns: Sequence[pa.Array | pa.ChunkedArray], count: int) -> Bytes:
        """The keys of equally long columns, one for each part."""
        if self._codec is None:
            return column_of(_NO_KEY * count, np.arange(count + 1))
        flat = [
            one_array(column) if codec is None else _as_blob(codec, canonical(one_array(column), part.type))
            for column, codec, part in zip(columns, self._nested, self.parts, strict=True)
        ]
        return self._codec.encode_columns(flat)

    def encode_one(self, values: Sequence[object]) -> bytes:
        """The key of one value for each part."""
        if self._codec is None:
            return _NO_KEY
        if not any(self._nested):
            return self._codec.encode(values)
        if len(values) != len(self.parts):
            raise InputError(
                f"{self.where}: {len(values)} values for a key of {len(self.parts)}",
                hint=f"the key is ({', '.join(f'{part.name} {part.type}' for part in self.parts)})",
            )
        columns = []
        for value, part in zip(values, self.parts, strict=True):
            try:
                columns.append(to_arrow([None if value is None else checker(part.type)(value)], part.type))
            except Refused as reason:
                raise refusal(f"{self.where}, key column {part.name}", value, part.type, reason) from None
        found: bytes = self.encode(columns, 1)[0].as_py()
        return found

    def decode_one(self, key: bytes) -> tuple[object, ...]:
        """The values of one key whose parts are all scalar."""
        return () if self._codec is None else self._codec.decode(key)

    def begins(self, values: Sequence[object]) -> bytes:
        """What the keys begin with whose first parts have these values; as many parts as can be encoded."""
        scalars = list(itertools.takewhile(lambda pair: pair[1].type.is_scalar, zip(values, self.parts, strict=False)))
        return b"" if self._codec is None else self._codec.encode_prefix([value for value, _ in scalars])

    def decode(self, keys: Bytes) -> list[pa.Array]:
        if self._codec is None:
            return []
        flat = self._codec.decode_columns(keys)
        return [
            column if codec is None else _from_blob(codec, column)
            for column, codec in zip(flat, self._nested, strict=True)
        ]


def _as_blob(codec: RowCodec, column: pa.Array) -> pa.Array:
    made = codec.encode_columns([column]).cast(pa.binary())
    return pc.if_else(column.is_valid(), made, pa.scalar(None, pa.binary()))


def _from_blob(codec: RowCodec, column: pa.Array) -> pa.Array:
    (found,) = codec.decode_columns(column.cast(BINARY))
    return found


def _codec(columns: Sequence[tuple[str, Type]], where: str) -> RowCodec:
    """Rows of these columns, whatever their names; the key of the schema is never asked for."""
    made = [Column(f"c{number}", kind) for number, (_, kind) in enumerate(columns)]
    return RowCodec(Schema((Column("k", BLOB, nullable=False), *made), ("k",)), where)


class StateRowCodec:
    """Encodes the columns beside a key."""

    def __init__(self, fields: Sequence[tuple[str, Type]], where: str) -> None:
        self.names = tuple(name for name, _ in fields)
        self.types = tuple(kind for _, kind in fields)
        self._codec = _codec(fields, where)

    def encode(self, columns: Sequence[pa.Array | pa.ChunkedArray], count: int) -> Bytes:
        return self._codec.encode_columns([one_array(column) for column in columns], count)

    @property
    def decode_one(self) -> Callable[[bytes], list[object]]:
        """Takes the bytes of a row, gives its values."""
        return self._codec.decode

    def decode(self, rows: Bytes, wanted: Sequence[str] | None = None) -> list[pa.Array]:
        """The columns, or only those wanted. Null in all of them where a row is null."""
        if wanted is None:
            return self._codec.decode_columns(rows)
        return self._codec.decode_columns(rows, [f"c{self.names.index(name)}" for name in wanted])


@dataclass(frozen=True)
class Stored:
    """What all states have: a table, a key, members."""

    table: StateTable
    state: State
    members: Members | None

    @functools.cached_property
    def key_names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.state.key)

    @functools.cached_property
    def _keys(self) -> Keys:
        return Keys(self.state.key, self.state.name)

    def keys(self, columns: Sequence[pa.Array | pa.ChunkedArray], count: int, members: pa.ChunkedArray | None) -> Bytes:
        """The keys of key columns; with the numbers of the members where there are some."""
        return self.tagged(self.bare(columns, count), members)

    def bare(self, columns: Sequence[pa.Array | pa.ChunkedArray], count: int) -> Bytes:
        """The keys of key columns, without any member's tag."""
        return _short(self._keys.encode(columns, count))

    def begins(self, values: Sequence[object]) -> bytes:
        """What the keys begin with whose first parts have these values, as far as keys are kept."""
        return self._keys.begins(values)[:KEPT]

    def whole_keys_in(self, rows: pa.Table) -> Bytes:
        """The keys of rows, without tags, none of them cut."""
        return self._keys.encode([rows[name] for name in self.key_names], len(rows))

    def keys_in(self, rows: pa.Table) -> Bytes:
        """The keys of rows that hold the key columns under their names."""
        members = rows[MEMBER] if self.members is not None else None
        return self.keys([rows[name] for name in self.key_names], len(rows), members)

    def tagged(self, keys: Bytes, members: pa.ChunkedArray | None) -> Bytes:
        if self.members is None:
            return keys
        assert members is not None
        return self.members.before(keys, one_array(members).to_numpy())


class StoredRecords(Stored):
    """A state of one record per key."""

    @functools.cached_property
    def _rows(self) -> StateRowCodec:
        fields = [(field.name, field.type) for field in self.state.fields]
        return StateRowCodec([*fields, (_WHOLE, BLOB)], self.state.name)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.state.fields

    def values(self, columns: Sequence[pa.Array | pa.ChunkedArray], key: Sequence[pa.Array], count: int) -> Bytes:
        """Records of the columns beside the key, in the order of :attr:`fields`."""
        return self._rows.encode([*columns, self._whole(key, count)], count)

    def values_in(self, rows: pa.Table) -> Bytes:
        key = [one_array(rows[name]) for name in self.key_names]
        return self.values([rows[field.name] for field in self.state.fields], key, len(rows))

    def _whole(self, key: Sequence[pa.Array], count: int) -> pa.Array:
        if not self._may_be_long:
            return pa.nulls(count, pa.binary())
        encoded = self._keys.encode(key, count)
        long = pa.array(lengths(encoded) > LONGEST_KEY)
        return pc.if_else(long, encoded.cast(pa.binary()), pa.scalar(None, pa.binary()))

    @functools.cached_property
    def _may_be_long(self) -> bool:
        return any(part.type.width is None for part in self.state.key)

    @functools.cached_property
    def beside(self) -> Callable[[bytes], list[object]]:
        """Takes a record; gives the values of :attr:`fields`, and one more."""
        return self._rows.decode_one

    def columns(self, values: Bytes) -> list[pa.Array]:
        """The columns beside the key, null where there is no record."""
        return self._rows.decode(values)[:-1]

    def table_of(self, keys: Bytes, values: Bytes) -> pa.Table:
        """Records as rows: key columns first."""
        found = self._rows.decode(values)
        if self.members is not None:
            keys = _without_tag(keys)
        whole = found.pop()
        if whole.null_count < len(whole):
            keys = pc.coalesce(whole.cast(BINARY), keys)
        return pa.table(
            [*self._keys.decode(keys), *found], names=[*self.key_names, *(f.name for f in self.state.fields)]
        )


class StoredBags(Stored):
    """A state of ordered rows with counts per key."""

    @functools.cached_property
    def _order(self) -> Keys | None:
        return Keys(ordering(self.state.order), self.state.name, delimited=True) if self.ordered else None

    @functools.cached_property
    def ordered(self) -> bool:
        """Whether entries stand in the state's order. Bytes of lists and structs are in none."""
        return bool(self.state.order) and all(part.type.is_scalar for part in self.state.order)

    @functools.cached_property
    def _rows(self) -> StateRowCodec:
        return StateRowCodec([(field.name, field.type) for field in self.state.fields], self.state.name)

    def entries(self, rows: pa.Table, order: Sequence[pa.Array] = ()) -> Bytes:
        """Rows as entries: behind the values that they are ordered by, the columns beside the key."""
        made = self._rows.encode([rows[field.name] for field in self.state.fields], len(rows))
        if self._order is None:
            return made
        ahead = self._order.encode(ordered_by(self.state.order, order), len(rows))
        sizes = column_of(lengths(ahead).astype(">u4").tobytes(), 4 * np.arange(len(rows) + 1))
        return glue(ahead, made, sizes)

    def columns(self, entries: Bytes, wanted: Sequence[str] | None = None) -> list[pa.Array]:
        """The columns beside the key, or only those wanted."""
        return self._rows.decode(entries if self._order is None else _behind(entries), wanted)


def ordering(order: Sequence[KeyPart]) -> tuple[KeyPart, ...]:
    """The parts of keys that stand in an order of SQL: nulls last, and first where it descends.
    Keys by themselves have them first."""
    return tuple(
        found
        for part in order
        for found in (
            *([KeyPart(f"{part.name} IS NULL", BOOLEAN, False, part.descending)] if part.nullable else []),
            part,
        )
    )


def ordered_by(order: Sequence[KeyPart], columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[pa.Array]:
    """What the parts of :func:`ordering` hold, given what rows are ordered by."""
    found: list[pa.Array] = []
    for part, column in zip(order, map(one_array, columns), strict=True):
        found += [column.is_null(), column] if part.nullable else [column]
    return found


def _behind(entries: Bytes) -> Bytes:
    """The row of an ordered entry: between the order, whose length stands in the last four bytes,
    and those."""
    if not len(entries):
        return entries
    edges = places(entries)
    start, end = edges[:-1], edges[1:]
    buffer = np.frombuffer(content(entries), np.uint8)
    tail = (end[:, None] + np.arange(-4, 0)).ravel()
    size = buffer[tail].reshape(-1, 4).astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
    return gather(content(entries), start + size, end - 4, np.arange(len(entries)))


def _without_tag(keys: Bytes) -> Bytes:
    edges = places(keys)
    return gather(content(keys), edges[:-1] + TAG, edges[1:], np.arange(len(keys)))


def _short(keys: Bytes) -> Bytes:
    """Keys of a length that stores take."""
    long = np.flatnonzero(lengths(keys) > LONGEST_KEY)
    if not len(long):
        return keys
    whole = keys.take(pa.array(long)).to_pylist()
    cut = pa.array([short(key) for key in whole], BINARY)
    mask = np.zeros(len(keys), np.bool_)
    mask[long] = True
    return pc.replace_with_mask(keys, pa.array(mask), cut)


def short(key: bytes) -> bytes:
    """A key of a length that stores take."""
    return key if len(key) <= LONGEST_KEY else key[:KEPT] + hashlib.blake2b(key, digest_size=16).digest()
