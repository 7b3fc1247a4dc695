"""Which Python values a column takes, and the one form each is kept in.

:func:`checker` gives for every type a function that returns a value in its
canonical form or raises :class:`Refused` with the reason; its caller knows the
table, the column and the key, and says so.

============================  ==============================================  =====================
type                          takes                                           canonical
============================  ==============================================  =====================
BOOLEAN                       bool                                            bool
TINYINT … UHUGEINT            int in range (bool is not an int here)          int
REAL, DOUBLE                  float; int if it converts exactly               float (REAL: rounded)
DECIMAL(p,s)                  Decimal, int; must fit without rounding         Decimal with s digits
VARCHAR                       str without lone surrogates                     str
BLOB                          bytes, bytearray, memoryview                    bytes
DATE                          date (a datetime is not a date here)            date
TIME                          time without a time zone                        time
TIMESTAMP                     datetime without a time zone                    datetime
TIMESTAMPTZ                   datetime with a time zone                       datetime in UTC
TIMESTAMP_S, TIMESTAMP_MS     datetime without a time zone or finer digits    datetime
TIMESTAMP_NS                  datetime, pandas Timestamp without a time zone  datetime, or Timestamp
                                                                              if it has nanoseconds
TIMETZ                        time with an offset from UTC, or text of one    time with a fixed offset
INTERVAL                      MonthDayNano, timedelta                         MonthDayNano
UUID                          UUID, or text that spells one                   UUID
BIT                           str of zeros and ones                           str
BIGNUM                        str of digits, with or without a sign; int      str without a plus or
                                                                              zeros at its front
ENUM                          str that is a member                            str
JSON                          str that holds valid JSON (RFC 8259)            the same str
LIST                          list, tuple                                     list
ARRAY                         list, tuple of the right length                 tuple
STRUCT                        dict; a field that is not named is null; tuple  dict, all fields
TUPLE                         tuple, list of the right length                 tuple
MAP                           dict, or list of pairs; no null or double key   dict, or list of pairs
                                                                              if keys are nested
============================  ==============================================  =====================

Numpy scalars count as the Python value they hold. Null is not a value: whether a column
may be null is for the caller to say, so a checker refuses None; inside lists, structs and
map values None stands for null.

    >>> checker(parse_type("DECIMAL(6,2)"))(3)
    Decimal('3.00')
    >>> checker(parse_type("TINYINT[]"))([1, None, 300])
    Traceback (most recent call last):
    everview.store.encoding.refused_values.Refused: item 2: 300 is out of the range of TINYINT, -128 to 127
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import pyarrow as pa

from everview.change.types import FLOATS, INTEGERS, NESTED, Kind, Type
from everview.errors import ValueTypeError
from everview.store.encoding.refused_values import Checker, Refused, a, shown, wrong_class
from everview.store.encoding.value_scalars import SCALARS, bounds

__all__ = ["TAKES", "Checker", "Refused", "bounds", "check", "checker", "refusal", "shown"]

TAKES = {
    Kind.BOOLEAN: "a bool",
    **dict.fromkeys(INTEGERS, "an int"),
    **dict.fromkeys(FLOATS, "a float or an int"),
    Kind.DECIMAL: "a decimal.Decimal or an int",
    Kind.VARCHAR: "a str",
    Kind.BLOB: "bytes",
    Kind.DATE: "a datetime.date",
    Kind.TIME: "a datetime.time without a time zone",
    Kind.TIMESTAMP: "a datetime.datetime without a time zone",
    Kind.TIMESTAMPTZ: "a datetime.datetime with a time zone",
    **dict.fromkeys((Kind.TIMESTAMP_S, Kind.TIMESTAMP_MS), "a datetime.datetime without a time zone"),
    Kind.TIMESTAMP_NS: "a datetime.datetime or a pandas.Timestamp without a time zone",
    Kind.TIMETZ: "a datetime.time with an offset from UTC",
    Kind.BIT: "a str of zeros and ones",
    Kind.BIGNUM: "a str of digits or an int",
    Kind.ENUM: "a str that is one of its members",
    Kind.INTERVAL: "a pyarrow.MonthDayNano or a datetime.timedelta",
    Kind.UUID: "a uuid.UUID",
    Kind.JSON: "a str that holds JSON",
    Kind.LIST: "a list",
    Kind.STRUCT: "a dict with the fields as keys",
    Kind.MAP: "a dict",
    Kind.ARRAY: "a list of its length",
    Kind.TUPLE: "a tuple with a value for each part",
}
"""What to hand in for a value of each kind, in words."""


def check(value: object, sql: Type, describe: Callable[[], str]) -> object:
    """The canonical form of a value, or a ValueTypeError. ``describe`` names the place, such
    as ``table orders, column amount``, and is called only if something is wrong."""
    try:
        return checker(sql)(value)
    except Refused as reason:
        raise refusal(describe(), value, sql, reason) from None


def refusal(place: str, value: object, sql: Type, reason: Refused) -> ValueTypeError:
    """The error a user sees for a refused value."""
    return ValueTypeError(
        f"{place} cannot take {shown(value)}", detail=str(reason), hint=f"{a(sql)} takes {TAKES[sql.kind]}"
    )


@functools.cache
def checker(sql: Type) -> Checker:
    """The function that checks values of a type and brings them into canonical form."""
    return _BUILD[sql.kind](sql)


# ------------------------------------------------------------------ nested values


def _inside(part: Checker, value: object, place: str) -> object:
    """Check a part of a nested value, null included; a reason says where the part stands."""
    if value is None:
        return None
    try:
        return part(value)
    except Refused as reason:
        raise Refused(f"{place}: {reason}") from None


def _list(sql: Type) -> Checker:
    item = checker(sql.item)

    def check_list(value: object) -> object:
        if not isinstance(value, (list, tuple)) or isinstance(value, pa.MonthDayNano):
            raise wrong_class(value, sql)
        try:
            return [None if part is None else item(part) for part in value]
        except Refused:
            return [_inside(item, part, f"item {at}") for at, part in enumerate(value)]

    return check_list


def _array(sql: Type) -> Checker:
    check = _list(sql)

    def check_array(value: object) -> object:
        items = check(value)
        assert isinstance(items, list)
        if len(items) != sql.length:
            raise Refused(f"it has {len(items)} items, and a {sql} has {sql.length}")
        return tuple(items)

    return check_array


def _tuple(sql: Type) -> Checker:
    parts = [checker(child) for _, child in sql.children]

    def check_tuple(value: object) -> object:
        if not isinstance(value, (list, tuple)) or isinstance(value, pa.MonthDayNano):
            raise wrong_class(value, sql)
        if len(value) != len(parts):
            raise Refused(f"it has {len(value)} parts, and a {sql} has {len(parts)}")
        return tuple(_inside(part, one, f"part {at}") for at, (part, one) in enumerate(zip(parts, value, strict=True)))

    return check_tuple


def _struct(sql: Type) -> Checker:
    fields = {name: checker(child) for name, child in sql.children}

    def check_struct(value: object) -> object:
        if isinstance(value, tuple) and len(value) == len(fields):  # as SQL takes (1, 2) for a STRUCT
            value = dict(zip(fields, value, strict=True))
        if not isinstance(value, dict):
            raise wrong_class(value, sql)
        unknown = value.keys() - fields.keys()
        if unknown:
            raise Refused(f"there is no field {shown(min(unknown, key=str))}; the fields are {', '.join(fields)}")
        return {name: _inside(part, value.get(name), f"field {name}") for name, part in fields.items()}

    return check_struct


def _map(sql: Type) -> Checker:
    (_, key_type), (_, value_type) = sql.children
    key_check, value_check = checker(key_type), checker(value_type)
    hashable = key_type.kind not in NESTED

    def check_map(value: object) -> object:
        if isinstance(value, dict):
            value = value.items()
        elif not isinstance(value, (list, tuple)):
            raise wrong_class(value, sql)
        pairs: list[tuple[object, object]] = []
        for at, pair in enumerate(value):
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise Refused(f"entry {at}: {shown(pair)} is not a pair of key and value")
            if pair[0] is None:
                raise Refused(f"entry {at}: a key of a {sql} cannot be null")
            key = _inside(key_check, pair[0], f"key {shown(pair[0])}")
            pairs.append((key, _inside(value_check, pair[1], f"value of key {shown(pair[0])}")))
        seen: set[object] = set()
        for key, _ in pairs:
            identity = _identity(key) if hashable else repr(key)
            if identity in seen:
                raise Refused(f"key {shown(key)} stands there twice")
            seen.add(identity)
        return dict(pairs) if hashable else pairs

    return check_map


def _identity(key: object) -> object:
    """The form in which scalar keys are compared: all NaN are one key."""
    return "NaN" if isinstance(key, float) and math.isnan(key) else key


_BUILD = SCALARS | {Kind.LIST: _list, Kind.STRUCT: _struct, Kind.MAP: _map, Kind.ARRAY: _array, Kind.TUPLE: _tuple}
