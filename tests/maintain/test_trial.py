"""The evaluator of a trial gives queries up that make too much of a few rows, and is there for the next one."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from everview.change.types import parse_type
from everview.maintain.trial import TooMuch, _Bounded
from everview.operators.evaluation import Unevaluable

ROWS = pa.table({"a": pa.array([1, 2**31 - 1, 3], pa.int32())})


def asked(evaluator: _Bounded, sql: str) -> list[object]:
    found = evaluator.query(sql, [("x", parse_type("BIGINT"))], {"t": ROWS})
    return list(found["x"].to_pylist())


@pytest.mark.parametrize(
    ("sql", "error", "why"),
    [
        ("SELECT a * a AS x FROM t", Unevaluable, "Overflow in multiplication"),
        ("SELECT a AS x FROM t WHERE a * a <> 1", Unevaluable, "Overflow in multiplication"),
        (
            "SELECT CAST(CASE WHEN r > 150000 THEN 'late' ELSE '1' END AS BIGINT) AS x FROM range(160000) AS q(r)",
            Unevaluable,
            "Could not convert string 'late'",
        ),
        ("SELECT a + r AS x FROM t, range(1000000) AS q(r)", TooMuch, "more than 200,000 rows"),
        ("SELECT count(*) AS x FROM range(100000000000) AS q(r)", TooMuch, "more than 10 s"),
        ("SELECT r AS x FROM range(100000000000) AS q(r) WHERE r < 0", TooMuch, "more than 10 s"),
    ],
)
def test_a_query_that_is_given_up_leaves_the_evaluator_as_it_was(sql: str, error: type[Exception], why: str) -> None:
    evaluator = _Bounded()
    evaluator.deadline = time.monotonic() + (0.5 if "100000000000" in sql else 100)
    with pytest.raises(error, match=why):
        asked(evaluator, sql)
    evaluator.deadline = time.monotonic() + 100
    assert asked(evaluator, "SELECT a AS x FROM t") == [1, 2**31 - 1, 3]
    evaluator.close()
