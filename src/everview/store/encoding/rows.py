"""Rows at rest: a compact format that decodes straight into columns.

A stored row is its schema version, a null bitmap, one fixed-width slot per
value column and the variable bytes, so that a column of many rows is read with one gather.

The key columns are not in it: they live in the key. All numbers are little-endian::

    row      u16 schema version | record
    record   bitmap, bit i = column i is null | slots | variable bytes
    slot     the value (zeros if null), or a u32: where the column's variable bytes end,
             counted from the end of the slots (they begin where the previous ones end)

    BOOLEAN 1 byte · integers 1 to 16 · REAL, DOUBLE as IEEE · DECIMAL unscaled, 8 or 16
    DATE i32 days · TIME, TIMESTAMP, TIMESTAMPTZ i64 µs · UUID 16 bytes
    INTERVAL i32 months, i32 days, i64 ns
    variable: VARCHAR, JSON in UTF-8 · BLOB · STRUCT a record of its fields
              LIST u32 count, then a record whose columns are the items
              MAP a LIST of STRUCT(key, value)

The row (amount 1.5, name 'Ann', note NULL) of version 1, in a table of three such columns::

    01 00 | 04 | 00 00 00 00 00 00 f8 3f  03 00 00 00  03 00 00 00 | 41 6e 6e

A row holds the columns its version had. Columns are only ever appended, so those added
later are missing at its end and read as null; a version that is not known yet says that
another process has added a column, and the table must be looked up again.

A **patch** is a row of which only some columns are named: a bitmap of those (bit i =
column i is named) stands between the version and the record, and the others are null.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.change.schema import Schema
from everview.errors import DamagedEntryError, DefinitionError, EverviewError, InputError
from everview.store.encoding.columns import LIMIT, Mask, merge_columns, no_python_value, one_array
from everview.store.encoding.row_layout import Broken, Layout, NoPythonValue
from everview.store.encoding.row_python import DAMAGE, Record, SlotForm, reason_of
from everview.store.encoding.row_read import RecordBytes, gather, read_records
from everview.store.encoding.row_source import row_decoder, row_encoder, values_decoder
from everview.store.encoding.row_write import Integers, offsets_of, write_records

__all__ = ["RowCodec", "merge_columns"]

VERSION_WIDTH = 2


@dataclass(frozen=True)
class _Version:
    """What is known of the rows of one schema version."""

    layout: Layout
    record: Record


class RowCodec:
    """Encodes and decodes the rows of one schema. ``where``, such as ``table orders``, names
    the place in errors."""

    def __init__(self, schema: Schema, where: str = "") -> None:
        self.schema = schema
        self.names = tuple(column.name for column in schema.values)
        """The value columns, in the order of values and columns below."""
        self._where = where
        self._types = [column.type for column in schema.values]
        self._parts = [SlotForm(sql) for sql in self._types]
        self._numbers = {name: i for i, name in enumerate(self.names)}
        self._known: dict[int, _Version] = {}
        self._current = self._version(schema.version)
        self._prefix = schema.version.to_bytes(VERSION_WIDTH, "little")
        self.encode: Callable[[Sequence[object]], bytes] = row_encoder(schema, self._encode)
        """The stored row of canonical values, one for each value column."""
        self.decode_row: Callable[[Sequence[object], bytes], dict[str, object]] = row_decoder(schema, self._decode_row)
        """The whole row, in table order, of a key's values and a stored row."""
        self.decode: Callable[[bytes], list[object]] = values_decoder(schema, self._decode)
        """The values of a stored row, one for each value column."""

    # -------------------------------------------------------------- one row

    def _decode(self, data: bytes) -> list[object]:
        version = self._version_of(data)
        try:
            return self._padded(version.record.unpack(data[VERSION_WIDTH:]))
        except DAMAGE as error:
            raise self._undecodable(error) from error

    def encode_patch(self, given: Mapping[str, object]) -> bytes:
        """The patch that sets the named columns."""
        named = sum(1 << self._numbers[name] for name in given)
        values = [given.get(name) for name in self.names]
        bitmap = named.to_bytes(self._current.layout.bitmap, "little")
        return self._prefix + bitmap + self._current.record.pack(values)

    def decode_patch(self, data: bytes) -> dict[str, object]:
        """The columns a patch names."""
        version = self._version_of(data)
        start = VERSION_WIDTH + version.layout.bitmap
        named = int.from_bytes(data[VERSION_WIDTH:start], "little")
        try:
            if named >> len(version.layout.types):
                raise Broken("a column that does not exist is named")
            values = version.record.unpack(data[start:])
        except DAMAGE as error:
            raise self._undecodable(error) from error
        return {
            name: value
            for i, (name, value) in enumerate(zip(self.names, self._padded(values), strict=True))
            if named >> i & 1
        }

    def apply(self, stored: bytes | None, given: Mapping[str, object]) -> bytes:
        """The row that a put of the named columns leaves where ``stored`` was, or nothing was."""
        if stored is None or len(given) == len(self.names):
            return self.encode([given.get(name) for name in self.names])
        values = self.decode(stored)
        for name, value in given.items():
            values[self._numbers[name]] = value
        return self.encode(values)

    def _encode(self, values: Sequence[object]) -> bytes:
        return self._prefix + self._current.record.pack(values)

    def _decode_row(self, key: Sequence[object], data: bytes) -> dict[str, object]:
        row = dict(zip(self.schema.key, key, strict=True))
        row.update(zip(self.names, self.decode(data), strict=True))
        return {name: row[name] for name in self.schema.names}

    def _padded(self, values: list[object]) -> list[object]:
        return values + [None] * (len(self.names) - len(values))

    # -------------------------------------------------------------- many rows

    def encode_columns(self, columns: Sequence[pa.Array], length: int | None = None) -> pa.LargeBinaryArray:
        """The stored rows of the value columns, whose types are exactly the schema's.
        ``length`` says how many rows there are where the table has no value columns."""
        count = len(columns[0]) if length is None else length
        head = np.broadcast_to(np.frombuffer(self._prefix, np.uint8), (count, VERSION_WIDTH))
        return write_records(self._current.layout, columns, head)

    def encode_patch_columns(
        self, columns: Sequence[pa.Array], given: Sequence[bool | Mask], length: int | None = None
    ) -> pa.LargeBinaryArray:
        """The patches of the value columns; a column is null wherever it is not given."""
        count = len(columns[0]) if length is None else length
        head = np.zeros((count, VERSION_WIDTH + self._current.layout.bitmap), np.uint8)
        head[:, :VERSION_WIDTH] = np.frombuffer(self._prefix, np.uint8)
        for i, named in enumerate(given):
            head[:, VERSION_WIDTH + (i >> 3)] |= np.asarray(named, np.uint8) << np.uint8(i & 7)
        return write_records(self._current.layout, columns, head)

    def decode_columns(self, rows: pa.LargeBinaryArray, wanted: Sequence[str] | None = None) -> list[pa.Array]:
        """The value columns of stored rows, or only the wanted ones; null where a row is null."""
        numbers = list(range(len(self.names))) if wanted is None else [self._number(name) for name in wanted]
        return self._decode_columns(rows, numbers, named=False)

    def decode_patch_columns(self, rows: pa.LargeBinaryArray) -> tuple[list[pa.Array], list[Mask]]:
        """The value columns of patches, and for each column which rows name it."""
        numbers = range(len(self.names))
        columns = self._decode_columns(rows, numbers, named=True)
        masks = [column.to_numpy(zero_copy_only=False) for column in columns[len(numbers) :]]
        return columns[: len(numbers)], masks

    def _decode_columns(self, rows: pa.LargeBinaryArray, wanted: Sequence[int], *, named: bool) -> list[pa.Array]:
        """The wanted columns, followed, if the rows are patches, by which rows name each."""
        if rows.null_count:
            there = rows.is_valid().to_numpy(zero_copy_only=False)
            places = pa.array(np.cumsum(there) - 1, mask=~there)
            columns = [column.take(places) for column in self._decode_columns(rows.drop_null(), wanted, named=named)]
            return columns[: len(wanted)] + [mask.fill_null(False) for mask in columns[len(wanted) :]]
        offsets = offsets_of(rows)
        data = rows.buffers()[2]
        if offsets[-1] - offsets[0] >= LIMIT:
            raise InputError(f"{self._at}the rows are too many to decode at once", hint="decode fewer at a time")
        try:
            return self._by_version(np.frombuffer(data or b"", np.uint8), offsets, wanted, named)
        except Broken as error:
            raise self._damaged(str(error)) from error

    def _by_version(
        self, data: npt.NDArray[np.uint8], offsets: Integers, wanted: Sequence[int], named: bool
    ) -> list[pa.Array]:
        starts, stops = offsets[:-1], offsets[1:]
        if len(starts) and (stops - starts).min() < VERSION_WIDTH:
            raise Broken("the row is shorter than its version")
        versions = gather(data, starts, np.dtype("<u2"))
        if not len(starts) or (versions == versions[0]).all():
            version = int(versions[0]) if len(starts) else self.schema.version
            return self._of_version(version, data, starts, stops, wanted, named)
        pieces: list[list[pa.Array]] = []
        places = np.empty(len(starts), np.int64)
        done = 0
        for version in np.unique(versions).tolist():
            which = np.flatnonzero(versions == version)
            pieces.append(self._of_version(version, data, starts[which], stops[which], wanted, named))
            places[which] = np.arange(done, done + len(which))
            done += len(which)
        order = pa.array(places)
        return [one_array(chunks).take(order) for chunks in zip(*pieces, strict=True)]

    def _of_version(
        self,
        number: int,
        data: npt.NDArray[np.uint8],
        starts: Integers,
        stops: Integers,
        wanted: Sequence[int],
        named: bool,
    ) -> list[pa.Array]:
        layout = self._version(number).layout
        there = len(layout.types)
        bitmap = layout.bitmap if named else 0
        rows = RecordBytes(data, starts + (VERSION_WIDTH + bitmap), stops)
        found = iter(read_records(layout, rows, [i for i in wanted if i < there]))
        columns = [next(found) if i < there else pa.nulls(len(starts), self._types[i].arrow) for i in wanted]
        if not named:
            return columns
        bytes_of = [rows.slot(byte - bitmap, np.dtype("u1")) for byte in range(bitmap)]
        if there & 7 and (bytes_of[-1] >> (there & 7)).any():
            raise Broken("a column that does not exist is named")
        nowhere = np.zeros(len(starts), np.bool_)
        return columns + [
            pa.array((bytes_of[i >> 3] >> (i & 7) & 1).view(np.bool_) if i < there else nowhere) for i in wanted
        ]

    # -------------------------------------------------------------- versions and errors

    def _version_of(self, data: bytes) -> _Version:
        if len(data) < VERSION_WIDTH:
            raise self._damaged("the row is shorter than its version")
        return self._version(int.from_bytes(data[:VERSION_WIDTH], "little"))

    def _version(self, number: int) -> _Version:
        known = self._known.get(number)
        if known is None:
            if number > self.schema.version:
                raise DefinitionError(
                    f"{self._at}a row has version {number} of the schema",
                    detail=f"version {self.schema.version} is known here; another process has added a column",
                    hint="open the table again",
                )
            if number < 1:
                raise self._damaged("it has no schema version")
            count = len(self.schema.values_at(number))
            known = _Version(Layout(self._types[:count]), Record(self._parts[:count]))
            self._known[number] = known
        return known

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self.schema.column(name)
            raise DefinitionError(f"{self._at}column {name} is part of the key, and a row holds the value columns")
        return self._numbers[name]

    def _undecodable(self, error: Exception) -> EverviewError:
        if isinstance(error, NoPythonValue):
            return no_python_value(f"{self._at}a row", error)
        return self._damaged(reason_of(error))

    def _damaged(self, reason: str) -> DamagedEntryError:
        return DamagedEntryError(
            f"{self._at}a stored row cannot be decoded", detail=reason, hint="verify the table, or restore it"
        )

    @functools.cached_property
    def _at(self) -> str:
        return f"{self._where}: " if self._where else ""
