"""What is said never to fail has a value for the extremes of its types."""

from __future__ import annotations

import itertools

import duckdb
import pytest

from everview.change.types import parse_type
from everview.plan.maintenance.failing import calls_that_can_fail, can_fail

EXTREMES = {
    "TINYINT": ("-128", "127"),
    "INTEGER": ("-2147483648", "2147483647"),
    "BIGINT": ("-9223372036854775808", "9223372036854775807"),
    "UINTEGER": ("0", "4294967295"),
    "HUGEINT": ("-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"),
    "DECIMAL(4,1)": ("-999.9", "999.9"),
    "DECIMAL(10,2)": ("-99999999.99", "99999999.99"),
    "DECIMAL(18,3)": ("-999999999999999.999", "999999999999999.999"),
    "DECIMAL(30,5)": ("-9999999999999999999999999.99999", "9999999999999999999999999.99999"),
    "DECIMAL(38,30)": ("-99999999." + 30 * "9", "99999999." + 30 * "9"),
    "REAL": ("-3.4e38", "'inf'"),
    "DOUBLE": ("-1.7e308", "'nan'"),
}
LITERALS = ("0", "1", "-1", "2", "100000", "3000000000", "0.5", "-12.25", "1e300", "(1)", "NULL")
KINDS = {name.lower().translate({ord(char): "_" for char in "(,)"}): parse_type(name) for name in EXTREMES}


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    """One table whose rows hold every pair of extremes, and nulls."""
    connection = duckdb.connect()
    columns = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
    connection.execute(f"CREATE TABLE lows ({columns})")
    for values in zip(*EXTREMES.values(), strict=True):
        connection.execute(f"INSERT INTO lows VALUES ({', '.join(values)})")
    connection.execute(f"INSERT INTO lows VALUES ({', '.join(['NULL'] * len(KINDS))})")
    return connection


def fails(duck: duckdb.DuckDBPyConnection, expression: str) -> bool:
    try:
        duck.execute(f"SELECT {expression} FROM lows AS a, lows AS b").fetchall()
    except (duckdb.BinderException, duckdb.CatalogException):
        return False  # no such operation
    except duckdb.Error:
        return True
    return False


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "<", "||"])
def test_an_operation_that_never_fails(duck: duckdb.DuckDBPyConnection, operator: str) -> None:
    names = [f"a.{name}" for name in KINDS]
    others = [f"b.{name}" for name in KINDS]
    pairs = [
        *itertools.product(names, others),
        *itertools.product(names, LITERALS),
        *itertools.product(LITERALS, names),
    ]
    wrong, safe = [], 0
    for left, right in pairs:
        written = f"{left} {operator} {right}"
        said = can_fail(written.replace("a.", "").replace("b.", ""), KINDS)
        safe += not said
        if not said and fails(duck, written):
            wrong.append(written)
    assert not wrong
    assert safe > 20


@pytest.mark.parametrize("cast", EXTREMES)
def test_a_cast_that_never_fails(duck: duckdb.DuckDBPyConnection, cast: str) -> None:
    casts = [f"CAST(a.{name} AS {cast})" for name in KINDS]
    assert not [one for one in casts if not can_fail(one.replace("a.", ""), KINDS) and fails(duck, one)]


CALLS = (
    *(
        "count(x)",
        "min(x)",
        "max(x)",
        "sum(x)",
        "avg(x)",
        "list(x ORDER BY x)",
        "first_value(x)",
        "stddev(x)",
        "median(x)",
    ),
    *(
        "mode(x)",
        "sum(x + 1)",
        "max(x * 2)",
        "kurtosis(x)",
        "product(x)",
        "lag(x)",
        "lead(x * 2, 1, -1)",
        "histogram(x)",
    ),
    *("count(*) FILTER (WHERE x + 1 > 0)", "sum(DISTINCT x)", "string_agg(x, ',')", "arg_max(x, x)", "bit_and(x)"),
)
FRAMES = (
    *(
        "",
        "ORDER BY x",
        "ORDER BY x + 1",
        "ORDER BY x ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING",
        "ORDER BY x GROUPS 1 PRECEDING",
    ),
    *(
        "ORDER BY x RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    ),
)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_window_function_that_never_fails(duck: duckdb.DuckDBPyConnection, frame: str) -> None:
    wrong, safe = [], 0
    for call, name in itertools.product(CALLS, KINDS):
        text = f"{call} OVER ({frame})".replace("(x", f"({name}").replace(" x", f" {name}")
        if not calls_that_can_fail([text], KINDS):
            safe += 1
            if fails(duck, text.replace(name, f"a.{name}")):
                wrong.append(text)
    assert not wrong
    assert bool(safe) == ("1 FOLLOWING" not in frame)


def test_an_aggregate_that_never_fails(duck: duckdb.DuckDBPyConnection) -> None:
    wrong, safe = [], 0
    for call, name in itertools.product(CALLS, KINDS):
        text = call.replace("(x", f"({name}").replace(" x", f" {name}")
        if not calls_that_can_fail([text], KINDS):
            safe += 1
            if fails(duck, text.replace(name, f"a.{name}")):
                wrong.append(text)
    assert not wrong
    assert safe > 50
