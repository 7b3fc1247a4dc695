"""Equal values look the same once they are made to, and other values stay as they are."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from everview.change.types import parse_type
from everview.operators.equal_values import canonical


@pytest.mark.parametrize(
    ("kind", "given", "found"),
    [
        ("REAL", [0.0, -0.0, None, 2.5], [0.0, 0.0, None, 2.5]),
        ("DOUBLE[]", [[-0.0, 1.0], [], None, [None]], [[0.0, 1.0], [], None, [None]]),
        ("DOUBLE[][]", [[[-0.0], None], [[]]], [[[0.0], None], [[]]]),
        ("STRUCT(a DOUBLE, b VARCHAR)", [{"a": -0.0, "b": "x"}, None], [{"a": 0.0, "b": "x"}, None]),
        ("MAP(VARCHAR, DOUBLE)", [[("k", -0.0)], None, []], [[("k", 0.0)], None, []]),
        ("INTEGER[]", [[1], None], [[1], None]),
    ],
)
def test_zeros_lose_their_sign_wherever_they_are(kind: str, given: list[object], found: list[object]) -> None:
    sql = parse_type(kind)
    ahead = pa.array([given[0], *given], sql.arrow)[1:]
    made = canonical(ahead, sql)
    assert made.type == sql.arrow
    assert repr(made.to_pylist()) == repr(found)


def test_a_month_is_thirty_days() -> None:
    sql = parse_type("INTERVAL")
    days = canonical(pa.array([pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 30, 0])], sql.arrow), sql)
    assert days[0] == days[1]


def test_nans_become_one() -> None:
    made = canonical(pa.array([math.nan, -math.nan]), parse_type("DOUBLE"))
    raw = made.buffers()[1].to_pybytes()
    assert raw[:8] == raw[8:16]
