"""Fixed-width values as unsigned words whose order is the order of the values.

Every scalar of fixed width becomes one or more unsigned numbers which,
written big-endian one after the other, compare as bytes exactly as the values compare.

A signed integer has its sign bit flipped; a 128-bit one is two words. Floats use the
usual trick: of a negative number all bits are inverted, of another only the sign bit, so
that −∞ < −1 < 0 < 1 < ∞ < NaN; −0.0 is made 0.0 and every NaN the same NaN first, because
SQL holds them equal. Worked through for INTEGER and REAL::

    −2   0xFFFFFFFE → 7F FF FF FE        −1.0  0xBF800000 → 40 7F FF FF
     0   0x00000000 → 80 00 00 00         0.0  0x00000000 → 80 00 00 00
     7   0x00000007 → 80 00 00 07         1.0  0x3F800000 → BF 80 00 00

Intervals compare as in DuckDB 2: by their length, a month being 30 days and a day 24
hours. The words are whole months, the days left (0 to 29) and the microseconds left, all
rounded down. So ``30 days`` and ``1 month`` are one key, and so are ``1 month -11 days`` and
``19 days``; a key reads back as the form whose parts all have the same sign, ``1 month``
and ``19 days``.

There are two doors to each kind, one for a Python value and one for a numpy column of raw
values (see :mod:`everview.store.encoding.columns`), and they agree.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from everview.change.types import FLOATS, UNSIGNED, Kind, Type
from everview.store.encoding import timetz
from everview.store.encoding.columns import Numbers, dtype_of, from_nanoseconds, nanoseconds


@dataclass(frozen=True)
class Words:
    """How the values of one type become words, and back.

    ``lift`` and ``join`` raise ValueError where no value has these words; ``lift`` raises
    OverflowError where one has, but Python's class for it does not reach that far."""

    widths: tuple[int, ...]
    lower: Callable[[Any], tuple[int, ...]]
    lift: Callable[[tuple[int, ...]], object]
    split: Callable[[Numbers], list[Numbers]]
    join: Callable[[list[Numbers]], Numbers]

    @property
    def width(self) -> int:
        return sum(self.widths)


@functools.cache
def words_of(sql: Type) -> Words | None:
    """The words of a type, or None for text and bytes, whose lengths differ."""
    if sql.width is None:
        return None
    if sql.kind in FLOATS:
        return _float(sql)
    if sql.kind is Kind.INTERVAL:
        return _interval()
    if sql.kind is Kind.UUID:
        return _uuid()
    if sql.kind is Kind.TIMETZ:
        return _timetz()
    return _number(sql) if sql.width <= 8 else _long_number(sql)


# ------------------------------------------------------------------ integers and what is held as one

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY_MICROS = 86_400_000_000

ToInt = Callable[[Any], int]
FromInt = Callable[[int], object]


def integer_forms(sql: Type) -> tuple[ToInt, FromInt]:
    """How a canonical Python value becomes the integer it is held as, and back."""
    if sql.kind is Kind.DECIMAL:
        return _decimal_forms(sql)
    if sql.kind is Kind.ENUM:
        return _enum_forms(sql)
    return _FORMS.get(sql.kind, (int, int))


def _decimal_forms(sql: Type) -> tuple[ToInt, FromInt]:
    exactly = decimal.Context(prec=40, traps=[decimal.Inexact])
    scale, limit = sql.scale, 10**sql.precision

    def to_int(value: decimal.Decimal) -> int:
        return int(value.scaleb(scale, exactly))

    def from_int(unscaled: int) -> decimal.Decimal:
        if not -limit < unscaled < limit:
            raise ValueError(f"a number with more digits than {sql} has")
        return decimal.Decimal(unscaled).scaleb(-scale, exactly)

    return to_int, from_int


def _enum_forms(sql: Type) -> tuple[ToInt, FromInt]:
    places = {member: place for place, member in enumerate(sql.members)}

    def from_int(place: int) -> str:
        if place >= len(sql.members):
            raise ValueError(f"{place} is the place of no member of the ENUM")
        return sql.members[place]

    return places.__getitem__, from_int


def _bool_from(number: int) -> bool:
    if number > 1:
        raise ValueError(f"{number} is neither true nor false")
    return number == 1


def _date_from(days: int) -> datetime.date:
    try:
        return datetime.date.fromordinal(days + _EPOCH_DAY)
    except ValueError:
        raise OverflowError(f"day {days} after 1970-01-01 is not in the years 1 to 9999") from None


def _time_to(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _time_from(micros: int) -> datetime.time:
    if micros == _DAY_MICROS:  # a moment that DuckDB has
        raise OverflowError("24:00:00 is not a Python time")
    if not 0 <= micros < _DAY_MICROS:
        raise ValueError("a time is not within a day")
    seconds, micros = divmod(micros, 1_000_000)
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)


def _moment_forms(epoch: datetime.datetime, micros: int = 1) -> tuple[ToInt, FromInt]:
    """``micros``: microseconds of the unit in which moments are counted."""

    def to_int(value: datetime.datetime) -> int:
        since = value - epoch
        return (since.days * _DAY_MICROS + since.seconds * 1_000_000 + since.microseconds) // micros

    def from_int(count: int) -> datetime.datetime:
        return epoch + datetime.timedelta(microseconds=count * micros)

    return to_int, from_int


_FORMS: dict[Kind, tuple[ToInt, FromInt]] = {
    Kind.BOOLEAN: (int, _bool_from),
    Kind.DATE: (lambda value: value.toordinal() - _EPOCH_DAY, _date_from),
    Kind.TIME: (_time_to, _time_from),
    Kind.TIMESTAMP: _moment_forms(_EPOCH),
    Kind.TIMESTAMPTZ: _moment_forms(_EPOCH_UTC),
    Kind.TIMESTAMP_S: _moment_forms(_EPOCH, 1_000_000),
    Kind.TIMESTAMP_MS: _moment_forms(_EPOCH, 1_000),
    Kind.TIMESTAMP_NS: (nanoseconds, from_nanoseconds),
}


def is_unsigned(kind: Kind) -> bool:
    return kind in UNSIGNED or kind in (Kind.BOOLEAN, Kind.ENUM)


def _number(sql: Type) -> Words:
    """Integers of up to 64 bits, and booleans, decimals, dates and times, which are held as such."""
    width = sql.width
    assert width is not None
    raw, unsigned = dtype_of(sql), np.dtype(f"u{width}")
    flip = 0 if is_unsigned(sql.kind) else 1 << 8 * width - 1
    sign = unsigned.type(flip)
    to_int, from_int = integer_forms(sql)

    def join(words: list[Numbers]) -> Numbers:
        if sql.kind is Kind.BOOLEAN and (words[0] > 1).any():
            raise ValueError("neither true nor false")
        column: Numbers = (words[0] ^ sign).view(raw)
        return column

    return Words(
        (width,),
        lambda value: (to_int(value) + flip,),
        lambda words: from_int(words[0] - flip),
        lambda column: [column.view(unsigned) ^ sign],
        join,
    )


# ------------------------------------------------------------------ 16 bytes: two words

_LOW = (1 << 64) - 1
_TOP = np.uint64(1 << 63)


def _long_number(sql: Type) -> Words:
    """128-bit integers and decimals; raw values are little-endian, so the low half comes first."""
    flip = 0 if is_unsigned(sql.kind) else 1 << 127
    sign = np.uint64(flip >> 64)
    to_int, from_int = integer_forms(sql)

    def lower(value: object) -> tuple[int, ...]:
        number = to_int(value) + flip
        return number >> 64, number & _LOW

    def split(column: Numbers) -> list[Numbers]:
        halves = np.ascontiguousarray(column).view("<u8").reshape(-1, 2)
        return [halves[:, 1] ^ sign, halves[:, 0]]

    def join(words: list[Numbers]) -> Numbers:
        # The least 128-bit number has no absolute value, so Arrow's check of the digits lets it pass.
        if sql.kind is Kind.DECIMAL and ((words[0] == 0) & (words[1] == 0)).any():
            raise ValueError(f"a number with more digits than {sql} has")
        halves = np.empty((len(words[0]), 2), "<u8")
        halves[:, 0] = words[1]
        np.bitwise_xor(words[0], sign, out=halves[:, 1])
        return halves.view("V16").reshape(-1)

    return Words((8, 8), lower, lambda words: from_int((words[0] << 64 | words[1]) - flip), split, join)


def _uuid() -> Words:
    def split(column: Numbers) -> list[Numbers]:
        halves = np.ascontiguousarray(column).view(">u8").reshape(-1, 2)
        return [halves[:, 0], halves[:, 1]]

    def join(words: list[Numbers]) -> Numbers:
        return np.stack(words, axis=1).astype(">u8").view("V16").reshape(-1)

    return Words(
        (8, 8),
        lambda value: (value.int >> 64, value.int & _LOW),
        lambda words: uuid.UUID(int=words[0] << 64 | words[1]),
        split,
        join,
    )


def _timetz() -> Words:
    def split(column: Numbers) -> list[Numbers]:
        return [timetz.ordered(column)]

    def join(words: list[Numbers]) -> Numbers:
        found = timetz.from_ordered(words[0])
        timetz.refuse_damaged(found)
        return found

    return Words(
        (8,),
        lambda value: (int(split(np.array([timetz.held(value)], "<u8"))[0][0]),),
        lambda words: timetz.time_of(int(join([np.array(words, "u8")])[0])),
        split,
        join,
    )


# ------------------------------------------------------------------ floats


def _float(sql: Type) -> Words:
    width = sql.width
    assert width is not None
    bits = 8 * width
    as_float = struct.Struct(">d" if width == 8 else ">f")
    as_int = struct.Struct(">q" if width == 8 else ">i")
    floating, signed, unsigned = np.dtype(f"f{width}"), np.dtype(f"i{width}"), np.dtype(f"u{width}")
    top = signed.type(-1 << bits - 1)
    nan = floating.type(np.nan)
    highest, mask = 1 << bits - 1, (1 << bits) - 1

    def lower(value: float) -> tuple[int, ...]:
        (held,) = as_int.unpack(as_float.pack(value + 0.0 if value == value else np.nan))
        return (~held if held < 0 else held + highest,)

    def lift(words: tuple[int, ...]) -> object:
        (word,) = words
        held = word - highest if word >= highest else ~word & mask
        return as_float.unpack(held.to_bytes(width, "big"))[0]

    def split(column: Numbers) -> list[Numbers]:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            values = column + floating.type(0)  # makes −0.0 a 0.0
        unordered = np.isnan(values)
        if unordered.any():
            values[unordered] = nan
        held = values.view(signed)
        return [(held ^ ((held >> bits - 1) | top)).view(unsigned)]

    def join(words: list[Numbers]) -> Numbers:
        held = words[0].view(signed)
        column: Numbers = (held ^ (~(held >> bits - 1) | top)).view(floating)
        return column

    return Words((width,), lower, lift, split, join)


# ------------------------------------------------------------------ intervals

_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
_MOST = (1 << 31) - 1
_DAY_NANOS = _DAY_MICROS * 1000
_MOST_CARRIED = ((1 << 63) - 1) // _DAY_NANOS
"""The days that the nanoseconds of an interval can add up to."""


def _towards_zero(numbers: Numbers, by: int) -> Numbers:
    floor = numbers // by
    quotient: Numbers = floor + ((numbers < 0) & (floor * by != numbers))
    return quotient


def _interval() -> Words:
    def split(column: Numbers) -> list[Numbers]:
        parts = np.ascontiguousarray(column).view(_INTERVAL)
        whole_days, micros = np.divmod(_towards_zero(parts["nanos"], 1000), _DAY_MICROS)
        months, days = np.divmod(parts["days"] + whole_days, 30)
        return [(parts["months"] + months).view("u8") ^ _TOP, days.astype(np.uint8), micros.view("u8")]

    def join(words: list[Numbers]) -> Numbers:
        months, days, micros = (words[0] ^ _TOP).view("i8"), words[1].astype(np.int64), words[2].view("i8")
        if ((days >= 30) | (micros < 0) | (micros >= _DAY_MICROS)).any():
            raise ValueError("an interval that is not in its normal form")
        if ((months > 2 * _MOST) | (months < -2 * _MOST)).any():
            raise ValueError("an interval longer than any")
        days += months * 30
        borrow = (days < 0) & (micros > 0)
        days += borrow
        micros = micros - borrow * _DAY_MICROS
        # Months, and then days, may have come from parts that carried past 32 bits: what does
        # not fit goes back to the right.
        parts = np.empty(len(days), _INTERVAL)
        parts["months"] = held = np.clip(_towards_zero(days, 30), -_MOST - 1, _MOST)
        days -= held * 30
        parts["days"] = held = np.clip(days, -_MOST - 1, _MOST)
        days -= held
        if (np.abs(days) > _MOST_CARRIED).any():
            raise ValueError("an interval longer than any")
        parts["nanos"] = micros * 1000 + days * _DAY_NANOS
        return parts.view("V16")

    def lower(value: object) -> tuple[int, ...]:
        column = np.array([value], _INTERVAL).view("V16")
        return tuple(int(word[0]) for word in split(column))

    def lift(words: tuple[int, ...]) -> object:
        column = join([np.array([word], f"u{width}") for word, width in zip(words, (8, 1, 8), strict=True)])
        return pa.MonthDayNano([int(part) for part in column.view(_INTERVAL)[0]])

    return Words((8, 1, 8), lower, lift, split, join)
