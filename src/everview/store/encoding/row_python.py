"""Records from and to Python values, one at a time.

A :class:`Record` packs the slots of a record with one ``struct`` call and
adds the variable bytes; it writes exactly the bytes of :mod:`everview.store.encoding.row_write`.

Values are the canonical ones of :mod:`everview.store.encoding.values`. This is the general way,
which knows nulls and reports damage; :mod:`everview.store.encoding.row_source` has the fast one.
"""

from __future__ import annotations

import datetime
import decimal
import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from everview.change.types import Kind, Type
from everview.store.encoding import bignums, bits, timetz
from everview.store.encoding.columns import from_nanoseconds, nanoseconds
from everview.store.encoding.row_layout import VAR_LIMIT, Broken, NoPythonValue, bitmap_size, too_long

Convert = Callable[[Any], Any]

_FORMAT = {
    Kind.BOOLEAN: "?",
    Kind.TINYINT: "b",
    Kind.SMALLINT: "h",
    Kind.INTEGER: "i",
    Kind.BIGINT: "q",
    Kind.UTINYINT: "B",
    Kind.USMALLINT: "H",
    Kind.UINTEGER: "I",
    Kind.UBIGINT: "Q",
    Kind.REAL: "f",
    Kind.DOUBLE: "d",
    Kind.DATE: "i",
    Kind.TIME: "q",
    Kind.TIMESTAMP: "q",
    Kind.TIMESTAMPTZ: "q",
    Kind.TIMESTAMP_S: "q",
    Kind.TIMESTAMP_MS: "q",
    Kind.TIMESTAMP_NS: "q",
    Kind.TIMETZ: "Q",
}
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICRO = datetime.timedelta(microseconds=1)
_MILLI = datetime.timedelta(milliseconds=1)
_SECOND = datetime.timedelta(seconds=1)
_DAY_MICROS = 86_400_000_000
_WIDE = decimal.Context(prec=60)
_INTERVAL = struct.Struct("<iiq")
_COUNT = struct.Struct("<I")


# ------------------------------------------------------------------ single values


def slot_format(sql: Type) -> str:
    """How ``struct`` writes the slot of a type."""
    if sql.width is None:
        return "I"
    if sql.kind is Kind.DECIMAL and sql.width == 8:
        return "q"
    if sql.kind is Kind.ENUM:
        return {1: "B", 2: "H", 4: "I"}[sql.width]
    return _FORMAT.get(sql.kind, "16s")


def to_slot(sql: Type) -> Convert | None:
    """What makes a value into what its slot holds; None: the value itself."""
    kind = sql.kind
    if kind is Kind.DECIMAL:
        scale = sql.scale
        if sql.width == 8:
            return lambda v: int(v.scaleb(scale, _WIDE))
        return lambda v: int(v.scaleb(scale, _WIDE)).to_bytes(16, "little", signed=True)
    if kind is Kind.ENUM:
        return {member: place for place, member in enumerate(sql.members)}.__getitem__
    return _TO_SLOT.get(kind)


def from_slot(sql: Type) -> Convert | None:
    """What makes the content of a slot into the value; None: the content itself."""
    kind = sql.kind
    if kind is Kind.DECIMAL:
        scale, limit = -sql.scale, 10**sql.precision

        def from_unscaled(v: int) -> decimal.Decimal:
            if not -limit < v < limit:
                raise Broken(f"{v} does not fit {sql}")
            return decimal.Decimal(v).scaleb(scale, _WIDE)

        if sql.width == 8:
            return from_unscaled
        return lambda v: from_unscaled(int.from_bytes(v, "little", signed=True))
    if kind is Kind.ENUM:
        return _member_of(sql.members)
    return _FROM_SLOT.get(kind)


def _member_of(members: Sequence[str]) -> Convert:
    def member(place: int) -> str:
        if place >= len(members):
            raise Broken("a value is not one of the ENUM's members")
        return members[place]

    return member


def _time_to_micros(v: datetime.time) -> int:
    return ((v.hour * 60 + v.minute) * 60 + v.second) * 1_000_000 + v.microsecond


def _micros_to_time(v: int) -> datetime.time:
    if not 0 <= v <= _DAY_MICROS:
        raise Broken("a time is not within a day")
    seconds, micros = divmod(v, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return datetime.time(hour, minute, second, micros)


def _if_python_can(convert: Convert) -> Convert:
    """Python's dates end with the years 1 and 9999, its times before 24:00; stored ones go on."""

    def convert_or_say_so(v: Any) -> Any:
        try:
            return convert(v)
        except Broken:
            raise
        except (ValueError, OverflowError) as error:
            raise NoPythonValue(str(error)) from error

    return convert_or_say_so


_TO_SLOT: dict[Kind, Convert] = {
    Kind.HUGEINT: lambda v: v.to_bytes(16, "little", signed=True),
    Kind.UHUGEINT: lambda v: v.to_bytes(16, "little"),
    Kind.DATE: lambda v: v.toordinal() - _EPOCH_DAY,
    Kind.TIME: _time_to_micros,
    Kind.TIMESTAMP: lambda v: (v - _EPOCH) // _MICRO,
    Kind.TIMESTAMPTZ: lambda v: (v - _EPOCH_UTC) // _MICRO,
    Kind.TIMESTAMP_S: lambda v: (v - _EPOCH) // _SECOND,
    Kind.TIMESTAMP_MS: lambda v: (v - _EPOCH) // _MILLI,
    Kind.TIMESTAMP_NS: nanoseconds,
    Kind.TIMETZ: timetz.held,
    Kind.INTERVAL: lambda v: _INTERVAL.pack(*v),
    Kind.UUID: lambda v: v.bytes,
}
_FROM_SLOT: dict[Kind, Convert] = {
    Kind.HUGEINT: lambda v: int.from_bytes(v, "little", signed=True),
    Kind.UHUGEINT: lambda v: int.from_bytes(v, "little"),
    Kind.DATE: _if_python_can(lambda v: datetime.date.fromordinal(v + _EPOCH_DAY)),
    Kind.TIME: _if_python_can(_micros_to_time),
    Kind.TIMESTAMP: _if_python_can(lambda v: _EPOCH + datetime.timedelta(microseconds=v)),
    Kind.TIMESTAMPTZ: _if_python_can(lambda v: _EPOCH_UTC + datetime.timedelta(microseconds=v)),
    Kind.TIMESTAMP_S: _if_python_can(lambda v: _EPOCH + datetime.timedelta(seconds=v)),
    Kind.TIMESTAMP_MS: _if_python_can(lambda v: _EPOCH + datetime.timedelta(milliseconds=v)),
    Kind.TIMESTAMP_NS: _if_python_can(from_nanoseconds),
    Kind.TIMETZ: _if_python_can(timetz.time_of),
    Kind.INTERVAL: lambda v: pa.MonthDayNano(_INTERVAL.unpack(v)),
    Kind.UUID: lambda v: uuid.UUID(bytes=v),
}


def to_payload(sql: Type) -> Convert:
    """What makes a value of differing length into its bytes."""
    if sql.is_scalar:
        if sql.kind is Kind.BIT:
            return bits.to_bytes
        if sql.kind is Kind.BIGNUM:
            return bignums.to_bytes
        return bytes if sql.kind is Kind.BLOB else str.encode
    if sql.kind is Kind.TUPLE:
        return Record.of([child for _, child in sql.children]).pack
    if sql.kind is Kind.STRUCT:
        record = Record.of([child for _, child in sql.children])
        names = [name for name, _ in sql.children]
        return lambda v: record.pack([v[name] for name in names])
    part = SlotForm(sql.item)
    if sql.kind in (Kind.LIST, Kind.ARRAY):
        return lambda v: _pack_list(part, v)

    def to_entries(v: Any) -> bytes:
        pairs = v.items() if isinstance(v, dict) else v
        return _pack_list(part, [{"key": key, "value": held} for key, held in pairs])

    return to_entries


def from_payload(sql: Type) -> Convert:
    """What makes bytes into a value of differing length."""
    if sql.is_scalar:
        if sql.kind is Kind.BIT:
            return bits.from_bytes
        if sql.kind is Kind.BIGNUM:
            return bignums.from_bytes
        return bytes if sql.kind is Kind.BLOB else bytes.decode
    if sql.kind is Kind.TUPLE:
        parts = Record.of([child for _, child in sql.children])
        return lambda v: tuple(parts.unpack(v))
    if sql.kind is Kind.STRUCT:
        record = Record.of([child for _, child in sql.children])
        names = [name for name, _ in sql.children]
        return lambda v: dict(zip(names, record.unpack(v), strict=True))
    part = SlotForm(sql.item)
    if sql.kind is Kind.LIST:
        return lambda v: _unpack_list(part, v)
    if sql.kind is Kind.ARRAY:
        return lambda v: _of_length(_unpack_list(part, v), sql.length)
    build = dict if sql.children[0][1].is_scalar else list

    def from_entries(v: bytes) -> object:
        entries = _unpack_list(part, v)
        if any(entry is None or entry["key"] is None for entry in entries):
            raise Broken("a map has a null key")
        return build([(entry["key"], entry["value"]) for entry in entries])

    return from_entries


# ------------------------------------------------------------------ records and lists


class SlotForm:
    """How the values of one type stand in a record."""

    __slots__ = ("form", "is_variable", "read", "write", "zero")

    def __init__(self, sql: Type) -> None:
        self.is_variable = sql.width is None
        self.form = slot_format(sql)
        self.zero: Any = b"" if self.form == "16s" else 0
        self.write: Convert = to_payload(sql) if self.is_variable else to_slot(sql) or _same
        self.read: Convert = from_payload(sql) if self.is_variable else from_slot(sql) or _same


def _same(value: Any) -> Any:
    return value


class Record:
    """Packs and unpacks records of some columns. A list is a record too: its items are the
    columns, all of one type."""

    def __init__(self, parts: Sequence[SlotForm]) -> None:
        self._parts = parts
        self._bitmap = bitmap_size(len(parts))
        self._slots = struct.Struct("<" + "".join(part.form for part in parts))

    @staticmethod
    def of(types: Sequence[Type]) -> Record:
        return Record([SlotForm(sql) for sql in types])

    def pack(self, values: Sequence[Any]) -> bytes:
        """The record of the values."""
        nulls = end = 0
        slots: list[Any] = []
        payloads: list[bytes] = []
        for i, (value, part) in enumerate(zip(values, self._parts, strict=True)):
            if value is None:
                nulls |= 1 << i
                slots.append(end if part.is_variable else part.zero)
            elif part.is_variable:
                payload = part.write(value)
                payloads.append(payload)
                end += len(payload)
                slots.append(end)
            else:
                slots.append(part.write(value))
        if end > VAR_LIMIT:
            raise too_long()
        return b"".join((nulls.to_bytes(self._bitmap, "little"), self._slots.pack(*slots), *payloads))

    def unpack(self, data: bytes) -> list[Any]:
        """The values of the record. Raises one of ``DAMAGE`` where the bytes are damaged."""
        nulls = int.from_bytes(data[: self._bitmap], "little")
        if nulls >> len(self._parts):
            raise Broken("a column that does not exist is marked null")
        values: list[Any] = []
        base, start = self._bitmap + self._slots.size, 0
        for i, (slot, part) in enumerate(zip(self._slots.unpack_from(data, self._bitmap), self._parts, strict=True)):
            null = nulls >> i & 1
            value: Any = slot
            if part.is_variable:
                if not start <= slot <= len(data) - base:
                    raise Broken("the parts of the row overlap or leave it")
                value = data[base + start : base + slot]
                start = slot
                if null and value:
                    raise Broken("a null value has bytes")
            values.append(None if null else part.read(value))
        if base + start != len(data):
            raise Broken("the row is longer than its columns")
        return values


def _pack_list(part: SlotForm, items: Sequence[Any]) -> bytes:
    return _COUNT.pack(len(items)) + Record([part] * len(items)).pack(items)


def _unpack_list(part: SlotForm, data: bytes) -> list[Any]:
    (count,) = _COUNT.unpack_from(data)
    if count > len(data):  # an item takes at least a byte, and a damaged count must not take memory
        raise Broken("a list is shorter than its items")
    return Record([part] * count).unpack(data[_COUNT.size :])


def _of_length(items: list[Any], length: int) -> tuple[Any, ...]:
    if len(items) != length:
        raise Broken("an array has another number of items")
    return tuple(items)


DAMAGE = (ValueError, OverflowError, struct.error)
"""What unpacking damaged bytes raises."""


def reason_of(error: Exception) -> str:
    """Why bytes could not be unpacked, for a message."""
    if isinstance(error, struct.error):
        return "the row is shorter than its columns"
    if isinstance(error, UnicodeDecodeError):
        return "a text is not UTF-8"
    return str(error)
