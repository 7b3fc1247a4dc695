"""The checks of dates, times and intervals, one for each kind of type.

A moment is taken where it has the time zone and no finer digits than the type has, and comes out
as an object of Python's own class.

What is taken and what it becomes stands in :mod:`everview.store.encoding.values`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pyarrow as pa

from everview.change.types import Kind, Type
from everview.store.encoding import timetz
from everview.store.encoding.refused_values import Checker, Refused, shown, wrong_class


def _date(sql: Type) -> Checker:
    def check_date(value: object) -> object:
        if type(value) is datetime.date:
            return value
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return datetime.date(value.year, value.month, value.day)
        raise wrong_class(value, sql)

    return check_date


def _time(sql: Type) -> Checker:
    def check_time(value: object) -> object:
        if not isinstance(value, datetime.time):
            raise wrong_class(value, sql)
        if value.tzinfo is not None:
            raise Refused(f"{value} has a time zone, and a {sql} has none")
        return value

    return check_time


def _plain_datetime(value: object, sql: Type) -> datetime.datetime:
    """A datetime of the standard class; subclasses may hold more, or nothing at all (NaT)."""
    if not isinstance(value, datetime.datetime):
        raise wrong_class(value, sql)
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
            raise wrong_class(value, sql)
        offset = value.utcoffset()
        if offset is None:
            raise Refused(f"{value} has no offset from UTC, and a {sql} has one")
        if offset % _WHOLE_SECOND or abs(offset) > timetz.MOST_OFFSET * _WHOLE_SECOND:
            raise Refused(f"the offset of {value} is not a number of seconds below 16 hours")
        zone = datetime.timezone(offset) if offset else datetime.UTC
        return datetime.time(value.hour, value.minute, value.second, value.microsecond, tzinfo=zone)

    return check_timetz


_WHOLE_SECOND = datetime.timedelta(seconds=1)


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
            raise wrong_class(value, sql)
        months, days, nanos = value
        for part, allowed, name in ((months, _I32, "months"), (days, _I32, "days"), (nanos, _I64, "nanoseconds")):
            if type(part) is not int or part not in allowed:
                raise Refused(f"{shown(part)} is not a number of {name} that an {sql} holds")
        return value

    return check_interval


TIMES: dict[Kind, Callable[[Type], Checker]] = {
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _timestamptz,
    Kind.TIMESTAMP_S: _coarse_timestamp,
    Kind.TIMESTAMP_MS: _coarse_timestamp,
    Kind.TIMESTAMP_NS: _nanosecond_timestamp,
    Kind.TIMETZ: _timetz,
    Kind.INTERVAL: _interval,
}
