"""What a column takes, in which form it is kept, and why anything else is refused."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import uuid

import numpy as np
import pyarrow as pa
import pytest

from everview.change.types import INTEGERS, Kind, parse_type
from everview.errors import ValueTypeError
from everview.store.encoding.values import TAKES, Refused, bounds, check, checker, shown

UTC = datetime.UTC
EAST = datetime.timezone(datetime.timedelta(hours=2))
NOON = datetime.datetime(2020, 1, 2, 12)
ONE = uuid.UUID(int=1)


class Colour(enum.IntEnum):
    RED = 3


class Later(datetime.datetime):
    """Like the timestamps of pandas: a datetime that holds more."""

    nanosecond = 5


TAKEN = [
    ("BOOLEAN", True, True),
    ("BOOLEAN", np.False_, False),
    *((kind.value, edge, edge) for kind in INTEGERS for edge in bounds(kind)),
    ("TINYINT", np.int64(-128), -128),
    ("INTEGER", Colour.RED, 3),
    ("DOUBLE", 3, 3.0),
    ("DOUBLE", np.float32(0.5), 0.5),
    ("DOUBLE", math.inf, math.inf),
    ("DOUBLE", 2**53, float(2**53)),
    ("REAL", 0.1, float(np.float32(0.1))),
    ("REAL", -math.inf, -math.inf),
    ("DECIMAL(5,2)", decimal.Decimal("1.5"), decimal.Decimal("1.50")),
    ("DECIMAL(5,2)", decimal.Decimal("1.5000"), decimal.Decimal("1.50")),
    ("DECIMAL(5,2)", -999, decimal.Decimal("-999.00")),
    ("DECIMAL(5,2)", np.int8(3), decimal.Decimal("3.00")),
    ("DECIMAL(5,2)", decimal.Decimal("-0E+9"), decimal.Decimal("0.00")),
    ("DECIMAL(38,38)", decimal.Decimal("0." + "9" * 38), decimal.Decimal("0." + "9" * 38)),
    ("VARCHAR", "é\0😀", "é\0😀"),
    ("VARCHAR", np.str_("a"), "a"),
    ("BLOB", bytearray(b"a"), b"a"),
    ("BLOB", memoryview(b"ab")[1:], b"b"),
    ("DATE", NOON.date(), NOON.date()),
    ("TIME", datetime.time(1, 2, 3, 4), datetime.time(1, 2, 3, 4)),
    ("TIMESTAMP", NOON, NOON),
    ("TIMESTAMPTZ", NOON.replace(tzinfo=EAST), datetime.datetime(2020, 1, 2, 10, tzinfo=UTC)),
    ("INTERVAL", pa.MonthDayNano([1, -2, 3]), pa.MonthDayNano([1, -2, 3])),
    ("INTERVAL", datetime.timedelta(days=2, microseconds=5), pa.MonthDayNano([0, 2, 5000])),
    ("INTERVAL", datetime.timedelta(days=-1, microseconds=-5), pa.MonthDayNano([0, -1, -5000])),
    ("UUID", ONE, ONE),
    ("UUID", str(ONE), ONE),
    ("JSON", ' {"a": [1, null, "\\ud83d\\ude00"]} ', ' {"a": [1, null, "\\ud83d\\ude00"]} '),
    ("JSON", "1" * 5000, "1" * 5000),
    ("BIGNUM", "+007", "7"),
    ("BIGNUM", "-0", "-0"),
    ("BIGNUM", -(10**40), "-1" + "0" * 40),
    ("BIGNUM", np.int8(-3), "-3"),
    ("BIGNUM", 10**4000, "1" + "0" * 4000),
    ("TINYINT[]", (1, None), [1, None]),
    ("DOUBLE[][]", [[1], None, []], [[1.0], None, []]),
    ("STRUCT(a INTEGER, b VARCHAR)", {"b": "x"}, {"a": None, "b": "x"}),
    ("MAP(VARCHAR, DOUBLE)", {"a": 1, "b": None}, {"a": 1.0, "b": None}),
    ("MAP(VARCHAR, DOUBLE)", [("a", 1), ["b", 2]], {"a": 1.0, "b": 2.0}),
    ("MAP(INTEGER[], DOUBLE)", [([1], 1), ([2], None)], [([1], 1.0), ([2], None)]),
]


@pytest.mark.parametrize(("text", "value", "canonical"), TAKEN, ids=lambda v: repr(v).partition(" at 0x")[0][:30])
def test_a_value_is_taken_in_canonical_form(text: str, value: object, canonical: object) -> None:
    taken = checker(parse_type(text))(value)
    assert taken == canonical
    assert type(taken) is type(canonical)
    assert checker(parse_type(text))(taken) == taken
    if isinstance(taken, decimal.Decimal):
        assert taken.as_tuple() == decimal.Decimal(str(canonical)).as_tuple()
    if isinstance(taken, datetime.datetime):
        assert taken.tzinfo is (UTC if text == "TIMESTAMPTZ" else None)


REFUSED = [
    *((kind.value, bounds(kind)[0] - 1, "out of the range") for kind in INTEGERS),
    *((kind.value, bounds(kind)[1] + 1, "out of the range") for kind in INTEGERS),
    ("BIGINT", True, "a bool is not a BIGINT"),
    ("BIGINT", 10**5000, "out of the range"),
    ("INTEGER", None, "null is not a value of INTEGER"),
    ("BOOLEAN", 1, "an int is not a BOOLEAN"),
    ("DOUBLE", "1", "a str is not a DOUBLE"),
    ("DOUBLE", decimal.Decimal(1), "a Decimal is not a DOUBLE"),
    ("DOUBLE", 2**53 + 1, "the nearest DOUBLE is 9007199254740992"),
    ("DOUBLE", 10**400, "out of the range"),
    ("REAL", 3.5e38, "out of the range"),
    ("REAL", 2**24 + 1, "the nearest REAL is 16777216"),
    ("DECIMAL(5,2)", 0.5, "a float is not a DECIMAL"),
    ("DECIMAL(5,2)", decimal.Decimal("0.001"), "more than 2 digits after the point"),
    ("DECIMAL(5,2)", decimal.Decimal("999.999"), "more than 2 digits after the point"),
    ("DECIMAL(5,2)", decimal.Decimal("1000"), "more than 3 digits before the point"),
    ("DECIMAL(5,2)", decimal.Decimal("1E+999999"), "more than 3 digits before the point"),
    ("DECIMAL(5,2)", 10**5000, "out of the range"),
    ("DECIMAL(5,2)", decimal.Decimal("Infinity"), "not a number"),
    ("VARCHAR", "ab\udc80", "lone surrogate '\\\\udc80' at position 2"),
    ("VARCHAR", b"a", "a bytes is not a VARCHAR"),
    ("BLOB", "a", "a str is not a BLOB"),
    ("BIGNUM", "1.5", "not a whole number"),
    ("BIGNUM", "", "not a whole number"),
    ("BIGNUM", 1.0, "a float is not a BIGNUM"),
    ("BIGNUM", True, "a bool is not a BIGNUM"),
    ("DATE", NOON, "a datetime is not a DATE"),
    ("TIME", datetime.time(1, tzinfo=UTC), "has a time zone"),
    ("TIMESTAMP", NOON.replace(tzinfo=UTC), "has a time zone"),
    ("TIMESTAMP", Later(2020, 1, 1), "nanoseconds"),
    ("TIMESTAMPTZ", NOON, "no time zone"),
    ("TIMESTAMPTZ", datetime.datetime.min.replace(tzinfo=EAST), "converted to UTC"),
    ("INTERVAL", 5, "an int is not an INTERVAL"),
    ("INTERVAL", pa.MonthDayNano([0, 0, 2**63]), "nanoseconds"),
    ("UUID", "1", "does not spell a UUID"),
    ("JSON", "{'a': 1}", "not valid JSON"),
    ("JSON", "[NaN]", "NaN is not JSON"),
    ("JSON", '"\\ud800"', "lone surrogate"),
    ("JSON", "[" * 200_000, "nested too deeply"),
    ("JSON", {}, "a dict is not a JSON"),
    ("TINYINT[]", [1, None, 300], "item 2: 300 is out of the range"),
    ("TINYINT[]", "abc", "a str is not a TINYINT"),
    ("INTEGER[]", pa.MonthDayNano([1, 2, 3]), "a MonthDayNano is not an INTEGER"),
    ("STRUCT(a TINYINT[])", {"a": [1, "x"]}, "field a: item 1: a str is not a TINYINT"),
    ("STRUCT(a INTEGER)", {"b": 1}, "there is no field 'b'; the fields are a"),
    ("STRUCT(a INTEGER)", [1], "a list is not a STRUCT"),
    ("MAP(VARCHAR, INTEGER)", {1: 1}, "key 1: an int is not a VARCHAR"),
    ("MAP(VARCHAR, INTEGER)", {"a": "b"}, "value of key 'a': a str is not an INTEGER"),
    ("MAP(VARCHAR, INTEGER)", {None: 1}, "cannot be null"),
    ("MAP(VARCHAR, INTEGER)", [("a", 1), ("a", 2)], "key 'a' stands there twice"),
    ("MAP(DOUBLE, INTEGER)", [(math.nan, 1), (-math.nan, 2)], "key nan stands there twice"),
    ("MAP(INTEGER[], INTEGER)", [([1], 1), ((1,), 2)], "stands there twice"),
    ("MAP(VARCHAR, INTEGER)", ["ab"], "not a pair"),
]


@pytest.mark.parametrize(("text", "value", "reason"), REFUSED, ids=lambda v: str(shown(v)).partition(" at 0x")[0][:30])
def test_a_value_that_does_not_fit_is_refused_with_the_reason(text: str, value: object, reason: str) -> None:
    with pytest.raises(Refused, match=reason.replace("(", r"\(").replace("[", r"\[")):
        checker(parse_type(text))(value)


def test_the_error_names_place_value_reason_and_remedy() -> None:
    with pytest.raises(ValueTypeError) as caught:
        check("abc", parse_type("DOUBLE"), lambda: "table orders, column amount")
    assert caught.value.message == "table orders, column amount cannot take 'abc'"
    assert caught.value.detail == "a str is not a DOUBLE"
    assert caught.value.hint == "a DOUBLE takes a float or an int"


def test_the_place_is_asked_for_only_in_need() -> None:
    def never() -> str:
        raise AssertionError

    assert check(1, parse_type("DOUBLE"), never) == 1.0


def test_a_value_is_shown_shortly_whatever_it_is() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown(Shy()).startswith(("a Shy", "<Shy"))
    assert len(shown("x" * 10_000)) < 80 and len(shown(list(range(10_000)))) < 80
    assert len(shown(10**5000)) < 80


def test_every_kind_says_what_it_takes() -> None:
    assert set(TAKES) == set(Kind)
