"""Times with an offset from UTC (TIMETZ), as DuckDB holds them.

64 bits hold the microseconds of the day and, in the low 24, how far the offset is below the
greatest one; the moment in UTC with those bits behind it is what such times are ordered and compared by.

    >>> held(datetime.time(12, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))) >> 24
    43200000000

So ``12:00+01`` and ``11:00+00`` are two values, and the first is less. A day has the time 24:00:00 as well, which
Python has not.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[Any]

MOST_OFFSET = 16 * 3600 - 1
"""Seconds that an offset is at most away from UTC."""
_OFFSET_BITS = 24
_OFFSETS = (1 << _OFFSET_BITS) - 1
_DAY = 86_400_000_000
_SECOND = 1_000_000
_TEXT = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?")


def held(value: datetime.time) -> int:
    """The bits of a time with a fixed offset."""
    offset = value.utcoffset()
    assert offset is not None
    micros = ((value.hour * 60 + value.minute) * 60 + value.second) * _SECOND + value.microsecond
    return micros << _OFFSET_BITS | MOST_OFFSET - int(offset.total_seconds())


def time_of(bits: int) -> datetime.time:
    """The time of some bits. Raises OverflowError where Python has none."""
    micros, offset = bits >> _OFFSET_BITS, MOST_OFFSET - (bits & _OFFSETS)
    if micros == _DAY:
        raise OverflowError("24:00:00 is not a Python time")
    seconds, micros = divmod(micros, _SECOND)
    zone = datetime.timezone(datetime.timedelta(seconds=offset)) if offset else datetime.UTC
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros, tzinfo=zone)


def refuse_damaged(bits: Bits) -> None:
    """Raise ValueError where bits are not those of a time."""
    if ((bits >> _OFFSET_BITS) > _DAY).any() or ((bits & _OFFSETS) > 2 * MOST_OFFSET).any():
        raise ValueError("a time is not within a day, or its offset not within 16 hours")


def ordered(bits: Bits) -> Bits:
    """Numbers in the order of the times."""
    offset = bits & np.uint64(_OFFSETS)
    found: Bits = bits + ((offset * np.uint64(_SECOND)) << np.uint64(_OFFSET_BITS))
    return found


def from_ordered(numbers: Bits) -> Bits:
    """The bits again."""
    offset = numbers & np.uint64(_OFFSETS)
    with np.errstate(over="ignore"):
        found: Bits = numbers - ((offset * np.uint64(_SECOND)) << np.uint64(_OFFSET_BITS))
    return found


def parsed(text: str) -> int:
    """The bits of a text such as ``12:00:00.5+01:30``. Raises ValueError where it is none."""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise ValueError("the text does not spell a time with an offset, such as 12:00:00+01")
    hour, minute, second, fraction, sign, *offset = match.groups()
    micros = ((int(hour) * 60 + int(minute)) * 60 + int(second)) * _SECOND + int((fraction or "0").ljust(6, "0"))
    hours, minutes, seconds = (int(part or 0) for part in offset)
    away = (hours * 60 + minutes) * 60 + seconds
    if micros > _DAY or int(minute) > 59 or int(second) > 59 or away > MOST_OFFSET or minutes > 59 or seconds > 59:
        raise ValueError("the text spells a time that is not within a day, or an offset of 16 hours or more")
    return micros << _OFFSET_BITS | MOST_OFFSET - (-away if sign == "-" else away)


def text_of(bits: int) -> str:
    """The time as DuckDB writes it."""
    micros, offset = bits >> _OFFSET_BITS, MOST_OFFSET - (bits & _OFFSETS)
    seconds, rest = divmod(micros, _SECOND)
    found = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if rest:
        found += f".{rest:06}".rstrip("0")
    away = abs(offset)
    found += f"{'-' if offset < 0 else '+'}{away // 3600:02}"
    if away % 3600:
        found += f":{away // 60 % 60:02}"
    return found + (f":{away % 60:02}" if away % 60 else "")
