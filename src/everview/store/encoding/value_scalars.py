"""The checks of scalar values, one for each kind of type.

Each function here takes a type and gives its checker, which takes the exact
Python class at once and looks closer only at anything else.

What is taken and what it becomes stands in :mod:`everview.store.encoding.values`, through which
these are reached.
"""

from __future__ import annotations

import decimal
import json
import struct
import uuid
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from everview.change.types import INTEGERS, SIGNED, Kind, Type
from everview.store.encoding import bignums
from everview.store.encoding.refused_values import Checker, Refused, shown, wrong_class
from everview.store.encoding.value_times import TIMES

# ------------------------------------------------------------------ numbers


def _boolean(sql: Type) -> Checker:
    def check_boolean(value: object) -> object:
        if value is True or value is False:
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        raise wrong_class(value, sql)

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
                raise wrong_class(value, sql)
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
    raise wrong_class(value, sql)


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
                raise wrong_class(value, sql)
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
                raise wrong_class(value, sql)
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
        raise wrong_class(value, sql)

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


def _bit(sql: Type) -> Checker:
    def check_bit(value: object) -> object:
        if not isinstance(value, str):
            raise wrong_class(value, sql)
        if not value or value.strip("01"):
            raise Refused("the text is not one or more zeros and ones")
        return str.__str__(value)

    return check_bit


def _bignum(sql: Type) -> Checker:
    def check_bignum(value: object) -> object:
        if isinstance(value, np.integer):
            value = value.item()
        try:
            if isinstance(value, str):
                return bignums.canonical(value)
            if isinstance(value, int) and not isinstance(value, bool):
                return bignums.text_of(value)
        except ValueError as error:
            raise Refused(str(error)) from None
        raise wrong_class(value, sql)

    return check_bignum


def _enum(sql: Type) -> Checker:
    members = {member: member for member in sql.members}

    def check_enum(value: object) -> object:
        if not isinstance(value, str):
            raise wrong_class(value, sql)
        if value not in members:
            raise Refused(f"{shown(value)} is not a member of the ENUM")
        return members[value]

    return check_enum


def _uuid(sql: Type) -> Checker:
    def check_uuid(value: object) -> object:
        if isinstance(value, uuid.UUID):
            return value
        if not isinstance(value, str):
            raise wrong_class(value, sql)
        try:
            return uuid.UUID(value)
        except ValueError:
            raise Refused("the text does not spell a UUID") from None

    return check_uuid


SCALARS: dict[Kind, Callable[[Type], Checker]] = {
    **TIMES,
    Kind.BOOLEAN: _boolean,
    **dict.fromkeys(INTEGERS, _integer),
    Kind.REAL: _real,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.VARCHAR: _varchar,
    Kind.BLOB: _blob,
    Kind.BIT: _bit,
    Kind.BIGNUM: _bignum,
    Kind.ENUM: _enum,
    Kind.UUID: _uuid,
    Kind.JSON: _json,
}
