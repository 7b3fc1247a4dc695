"""The checks of scalar values, one for each kind of type.

One sentence: each function here takes a type and gives its checker, which takes the exact
Python class at once and looks closer only at anything else.

What is taken and what it becomes stands in :mod:`everview.store.values`, through which
these are reached.
"""

from __future__ import annotations

import datetime
import decimal
import json
import reprlib
import struct
import uuid
from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pyarrow as pa

from everview.change.types import INTEGERS, SIGNED, Kind, Type
from everview.store import timetz

Checker = Callable[[object], object]


class Refused(ValueError):
    """A value does not fit its type; the text is the reason. Callers wrap it."""


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 60


def shown(value: object) -> str:
    """A value as short text for a message."""
    try:
        return _REPR.repr(value)
    except Exception:  # a repr that fails must not hide the error being reported
        return a(type(value).__name__)


def a(noun: object) -> str:
    return f"{'an' if str(noun)[0] in 'aeioAEIO' else 'a'} {noun}"


# ------------------------------------------------------------------ plain values


def refuse_class(value: object, sql: Type) -> NoReturn:
    if value is None:
        raise Refused(f"null is not a value of {sql}")
    raise Refused(f"{a(type(value).__name__)} is not {a(sql)}")


def _boolean(sql: Type) -> Checker:
    def check_boolean(value: object) -> object:
        if value is True or value is False:
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        refuse_class(value, sql)

    return check_boolean


def bounds(kind: Kind) -> tuple[int, int]:
    """The smallest and the largest value of an integer kind."""
    bits = INTEGERS[kind]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind in SIGNED else (0, (1 << bits) - 1)


def _integer(sql: Type) -> Checker:
    low, high = bounds(sql.kind)

    def check_integer(value: object) -> object:
        if type(value) is not int:
            if isinstance(value, np.integer):
                value = value.item()
            elif isinstance(value, int) and not isinstance(value, bool):
                value = int(value)
            else:
                refuse_class(value, sql)
            assert isinstance(value, int)
        if low <= value <= high:
            return value
        raise Refused(f"{shown(value)} is out of the range of {sql}, {low} to {high}")

    return check_integer


def _exact_float(value: object, sql: Type) -> float:
    """A float, or another number that is one exactly."""
    if isinstance(value, (np.floating, np.integer)):
        value = value.item()
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            converted = float(value)
        except OverflowError:
            raise Refused(f"{shown(value)} is out of the range of {sql}") from None
        if converted != value:
            raise Refused(f"{value} cannot be held exactly; the nearest {sql} is {int(converted)}")
        return converted
    refuse_class(value, sql)


def _double(sql: Type) -> Checker:
    def check_double(value: object) -> object:
        return value if type(value) is float else _exact_float(value, sql)

    return check_double


_SINGLE = struct.Struct("<f")


def _real(sql: Type) -> Checker:
    def check_real(value: object) -> object:
        exact = value if type(value) is float else _exact_float(value, sql)
        try:
            rounded: float = _SINGLE.unpack(_SINGLE.pack(exact))[0]
        except OverflowError:
            raise Refused(f"{exact!r} is out of the range of {sql}") from None
        if not isinstance(value, (float, np.floating)) and rounded != exact:
            raise Refused(f"{value} cannot be held exactly; the nearest {sql} is {int(rounded)}")
        return rounded

    return check_real


def _decimal(sql: Type) -> Checker:
    unit = decimal.Decimal((0, (1,), -sql.scale))
    zero = decimal.Decimal(0).quantize(unit)
    digits = sql.precision - sql.scale
    exactly = decimal.Context(prec=38, traps=[decimal.Inexact, decimal.InvalidOperation])

    def check_decimal(value: object) -> object:
        if not isinstance(value, decimal.Decimal):
            if isinstance(value, np.integer):
                value = value.item()
            if not isinstance(value, int) or isinstance(value, bool):
                refuse_class(value, sql)
            if abs(value) >= 10**digits:  # also keeps huge integers from becoming decimals digit by digit
                raise Refused(f"{shown(value)} is out of the range of {sql}")
            value = decimal.Decimal(value)
        if not value.is_finite():
            raise Refused(f"{value} is not a number that {sql} holds")
        if not value:
            return zero
        if value.adjusted() >= digits:
            raise Refused(f"{value} is out of the range of {sql}: it has more than {digits} digits before the point")
        try:
            return value.quantize(unit, context=exactly)
        except decimal.Inexact:
            raise Refused(f"{value} has more than {sql.scale} digits after the point") from None

    return check_decimal


def _varchar(sql: Type) -> Checker:
    def check_varchar(value: object) -> object:
        if type(value) is not str:
            if not isinstance(value, str):
                refuse_class(value, sql)
            value = str.__str__(value)
        if not value.isascii():
            _check_unicode(value)
        return value

    return check_varchar


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            f"the text cannot be written as UTF-8: lone surrogate {text[error.start]!r} at position {error.start}"
        ) from None


def _blob(sql: Type) -> Checker:
    def check_blob(value: object) -> object:
        if type(value) is bytes:
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        refuse_class(value, sql)

    return check_blob


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


# Integers are read as floats only because Python limits how long a text it turns into an int.
_JSON = json.JSONDecoder(parse_constant=_not_json, parse_int=float)


def _json(sql: Type) -> Checker:
    check_text = _varchar(sql)

    def check_json(value: object) -> object:
        text = check_text(value)
        assert isinstance(text, str)
        try:
            read = _JSON.decode(text)
            if "\\u" in text:
                json.dumps(read, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Refused("the text is not valid JSON: an escaped lone surrogate") from None
        except ValueError as error:
            raise Refused(f"the text is not valid JSON: {error}") from None
        except RecursionError:
            raise Refused("the JSON is nested too deeply") from None
        return text

    return check_json


# ------------------------------------------------------------------ times


def _date(sql: Type) -> Checker:
    def check_date(value: object) -> object:
        if type(value) is datetime.date:
            return value
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return datetime.date(value.year, value.month, value.day)
        refuse_class(value, sql)

    return check_date


def _time(sql: Type) -> Checker:
    def check_time(value: object) -> object:
        if not isinstance(value, datetime.time):
            refuse_class(value, sql)
        if value.tzinfo is not None:
            raise Refused(f"{value} has a time zone, and a {sql} has none")
        return value

    return check_time


def _plain_datetime(value: object, sql: Type) -> datetime.datetime:
    """A datetime of the standard class; subclasses may hold more, or nothing at all (NaT)."""
    if not isinstance(value, datetime.datetime):
        refuse_class(value, sql)
    try:
        plain = datetime.datetime.combine(
            datetime.date(value.year, value.month, value.day),
            datetime.time(
                value.hour, value.minute, value.second, value.microsecond, tzinfo=value.tzinfo, fold=value.fold
            ),
        )
    except (TypeError, ValueError):
        raise Refused(f"{value} is not a moment") from None
    if getattr(value, "nanosecond", 0) and sql.kind is not Kind.TIMESTAMP_NS:
        raise Refused(f"{value} has nanoseconds, and a {sql} holds {_UNITS.get(sql.kind, 'microseconds')}")
    return plain


def _timestamp(sql: Type) -> Checker:
    def check_timestamp(value: object) -> object:
        moment = value if type(value) is datetime.datetime else _plain_datetime(value, sql)
        if moment.tzinfo is not None:
            raise Refused(f"{moment} has a time zone, and a {sql} has none; convert it, or use TIMESTAMPTZ")
        return moment

    return check_timestamp


_UNITS = {Kind.TIMESTAMP_S: "seconds", Kind.TIMESTAMP_MS: "milliseconds"}


def _coarse_timestamp(sql: Type) -> Checker:
    """Moments without the digits that the type does not have."""
    check = _timestamp(sql)
    unit = 1_000_000 if sql.kind is Kind.TIMESTAMP_S else 1_000

    def check_coarse_timestamp(value: object) -> object:
        moment = check(value)
        assert isinstance(moment, datetime.datetime)
        if moment.microsecond % unit:
            raise Refused(f"{moment} has digits beyond the {_UNITS[sql.kind]} that a {sql} holds")
        return moment

    return check_coarse_timestamp


_FIRST_NS, _LAST_NS = datetime.datetime(1677, 9, 21, 0, 12, 44), datetime.datetime(2262, 4, 11, 23, 47, 16)


def _nanosecond_timestamp(sql: Type) -> Checker:
    check = _timestamp(sql)

    def check_nanosecond_timestamp(value: object) -> object:
        moment = check(value)
        assert isinstance(moment, datetime.datetime)
        if not _FIRST_NS <= moment <= _LAST_NS:
            raise Refused(f"{moment} is out of the range of {sql}, the years 1677 to 2262")
        return value if getattr(value, "nanosecond", 0) else moment

    return check_nanosecond_timestamp


def _timetz(sql: Type) -> Checker:
    def check_timetz(value: object) -> object:
        if isinstance(value, str):
            try:
                return timetz.time_of(timetz.parsed(value))
            except (ValueError, OverflowError) as error:
                raise Refused(str(error)) from None
        if not isinstance(value, datetime.time):
            refuse_class(value, sql)
        offset = value.utcoffset()
        if offset is None:
            raise Refused(f"{value} has no offset from UTC, and a {sql} has one")
        if offset % _WHOLE_SECOND or abs(offset) > timetz.MOST_OFFSET * _WHOLE_SECOND:
            raise Refused(f"the offset of {value} is not a number of seconds below 16 hours")
        zone = datetime.timezone(offset) if offset else datetime.UTC
        return datetime.time(value.hour, value.minute, value.second, value.microsecond, tzinfo=zone)

    return check_timetz


_WHOLE_SECOND = datetime.timedelta(seconds=1)


def _bit(sql: Type) -> Checker:
    def check_bit(value: object) -> object:
        if not isinstance(value, str):
            refuse_class(value, sql)
        if not value or value.strip("01"):
            raise Refused("the text is not one or more zeros and ones")
        return str.__str__(value)

    return check_bit


def _enum(sql: Type) -> Checker:
    members = {member: member for member in sql.members}

    def check_enum(value: object) -> object:
        if not isinstance(value, str):
            refuse_class(value, sql)
        if value not in members:
            raise Refused(f"{shown(value)} is not a member of the ENUM")
        return members[value]

    return check_enum


def _timestamptz(sql: Type) -> Checker:
    utc = datetime.UTC

    def check_timestamptz(value: object) -> object:
        moment = value if type(value) is datetime.datetime else _plain_datetime(value, sql)
        if moment.tzinfo is utc:
            return moment
        if moment.utcoffset() is None:
            raise Refused(f"{moment} has no time zone, so the moment it means is not known")
        try:
            return moment.astimezone(utc)
        except OverflowError:
            raise Refused(f"{moment} is out of range once it is converted to UTC") from None

    return check_timestamptz


_MICROSECOND = datetime.timedelta(microseconds=1)
_DAY_MICROS = 86_400_000_000
_I32 = range(-(1 << 31), 1 << 31)
_I64 = range(-(1 << 63), 1 << 63)


def _interval(sql: Type) -> Checker:
    def check_interval(value: object) -> object:
        if isinstance(value, datetime.timedelta):
            micros = value // _MICROSECOND
            days, rest = divmod(abs(micros), _DAY_MICROS)
            sign = -1 if micros < 0 else 1
            return pa.MonthDayNano([0, sign * days, sign * rest * 1000])
        if not isinstance(value, pa.MonthDayNano):
            refuse_class(value, sql)
        months, days, nanos = value
        for part, allowed, name in ((months, _I32, "months"), (days, _I32, "days"), (nanos, _I64, "nanoseconds")):
            if type(part) is not int or part not in allowed:
                raise Refused(f"{shown(part)} is not a number of {name} that an {sql} holds")
        return value

    return check_interval


def _uuid(sql: Type) -> Checker:
    def check_uuid(value: object) -> object:
        if isinstance(value, uuid.UUID):
            return value
        if not isinstance(value, str):
            refuse_class(value, sql)
        try:
            return uuid.UUID(value)
        except ValueError:
            raise Refused("the text does not spell a UUID") from None

    return check_uuid


SCALARS: dict[Kind, Callable[[Type], Checker]] = {
    Kind.BOOLEAN: _boolean,
    **dict.fromkeys(INTEGERS, _integer),
    Kind.REAL: _real,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.VARCHAR: _varchar,
    Kind.BLOB: _blob,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamptz,
    Kind.TIMESTAMP_S: _coarse_timestamp,
    Kind.TIMESTAMP_MS: _coarse_timestamp,
    Kind.TIMESTAMP_NS: _nanosecond_timestamp,
    Kind.TIMETZ: _timetz,
    Kind.BIT: _bit,
    Kind.ENUM: _enum,
    Kind.INTERVAL: _interval,
    Kind.UUID: _uuid,
    Kind.JSON: _json,
}
