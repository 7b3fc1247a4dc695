"""A text without a dialect means what DuckDB with its own defaults makes of it: the user's own words,
run by a plain ``duckdb.connect()`` in UTC, and what a view holds, through random histories.

A row for which DuckDB fails is in no view, and in quarantine.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from math import inf, nan

import duckdb
import pyarrow as pa
import pytest

from everview.change.schema import Schema
from tests.operators.histories import apply, history, maintained
from tests.oracle.maintained import Maintained, bag, comparable

COLUMNS = {"id": "BIGINT", "i": "INTEGER", "j": "SMALLINT", "x": "DOUBLE", "y": "REAL", "d": "DECIMAL(6,2)"}
TABLES = {"t": Schema.of(COLUMNS, key=["id"])}
ROWS = {
    "t": {
        "id": range(12),
        "i": [None, 0, 1, -7, 2**31 - 1],
        "j": [None, 0, 0, 2, -3],
        "x": [None, 0.0, -0.0, 1.5, -2.0, inf, -inf, nan],
        "y": [None, 0.0, 2.5, inf, nan],
        "d": [None, Decimal("0.00"), Decimal("7.50"), Decimal("-0.01")],
    }
}
LEAVES = ["i", "j", "x", "y", "d", "0", "1", "2.0", "7", "NULL", "'NaN'::DOUBLE", "'inf'::DOUBLE", "0.0"]
OPERATORS = ["+", "-", "*", "/", "/", "//", "//", "%", "%"]
CALLS = [
    "abs({0})", "coalesce({0}, {1})", "nullif({0}, {1})", "greatest({0}, {1})", "least({0}, {1})", "mod({0}, {1})",
    "fdiv({0}, {1})", "fmod({0}, {1})", "round({0})", "({0})::INTEGER", "({0})::DOUBLE",
    "CASE WHEN {0} > {1} THEN {0} END", "sqrt({0})", "ln({0})",
]  # fmt: skip
CONDITIONS = ["{0} > {1}", "{0} = {1}", "{0} IS NULL", "isnan(({0})::DOUBLE)", "{0} IS DISTINCT FROM {1}"]
ORDERS = ["", " ASC", " DESC", " DESC", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST"]
WINDOWS = [
    "row_number() OVER (ORDER BY {o}, id)", "rank() OVER (ORDER BY {o})", "lag(x) OVER (ORDER BY {o}, id)",
    "first_value(i) OVER (PARTITION BY j ORDER BY {o}, id)", "sum(j) OVER (ORDER BY {o}, id ROWS 1 PRECEDING)",
    "last_value(d) OVER (ORDER BY {o}, id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
]  # fmt: skip


class Pen:
    """Writes random texts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def value(self, depth: int = 2) -> str:
        pick = self._random.choice
        if depth == 0 or self._random.random() < 0.2:
            return pick(LEAVES)
        one, other = self.value(depth - 1), self.value(depth - 1)
        if self._random.random() < 0.65:
            return f"({one} {pick(OPERATORS)} {other})"
        return pick(CALLS).format(one, other)

    def row_wise(self) -> str:
        where = ""
        if self._random.random() < 0.3:
            where = " WHERE " + self._random.choice(CONDITIONS).format(self.value(1), self.value(1))
        return f"SELECT id, {self.value()} AS e FROM t{where}"

    def order(self) -> str:
        return self._random.choice(["i", "j", "x", "y", "d", "x / j", "-y"]) + self._random.choice(ORDERS)

    def ordered(self) -> str:
        pick = self._random.choice
        kind = self._random.random()
        if kind < 0.4:
            limit = f"LIMIT {pick('1234')} OFFSET {pick('02')}"
            return f"SELECT id, i, x FROM t ORDER BY {self.order()}, {self.order()}, id {limit}"
        if kind < 0.5:
            return f"SELECT DISTINCT ON (j) j, id, x FROM t ORDER BY j, {self.order()}, id"
        if kind < 0.6:
            return f"SELECT j, list(x ORDER BY {self.order()}, id) AS l, arg_max(id, x) AS m FROM t GROUP BY j"
        if kind < 0.7:
            return f"SELECT id, x FROM t QUALIFY rank() OVER (PARTITION BY j ORDER BY {self.order()}) <= {pick('12')}"
        if kind < 0.8:
            sums = "sum(x / j) AS s, min(x / j) AS lo, max(y / j) AS hi, avg(x) AS a"
            return f"SELECT j / 2 AS h, {sums} FROM t GROUP BY j / 2"
        return f"SELECT id, {pick(WINDOWS).format(o=self.order())} AS w FROM t"


@pytest.fixture
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; CREATE TABLE t (" + ", ".join(map(" ".join, COLUMNS.items())) + ")")
        yield connection


def refill(plain: duckdb.DuckDBPyConnection, m: Maintained) -> None:
    rows = pa.Table.from_batches(m.table("t").scan(), schema=TABLES["t"].arrow)
    plain.register("rows", rows)
    plain.execute("DELETE FROM t; INSERT INTO t SELECT * FROM rows")
    plain.unregister("rows")


def accepted(plain: duckdb.DuckDBPyConnection, text: str) -> bool:
    try:
        plain.execute(f"EXPLAIN {text}")
    except duckdb.Error:
        return False
    return True


def answer(plain: duckdb.DuckDBPyConnection, text: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(comparable, row)) for row in plain.execute(text).fetchall())


def row_by_row(plain: duckdb.DuckDBPyConnection, text: str) -> tuple[Counter[tuple[object, ...]], set[int]]:
    """What DuckDB answers for each row alone, and the rows for which it fails."""
    found: Counter[tuple[object, ...]] = Counter()
    failed: set[int] = set()
    for (number,) in plain.execute("SELECT id FROM t").fetchall():
        one = text.replace("FROM t", f"FROM (FROM t WHERE id = {number}) t")
        try:
            found += answer(plain, one)
        except duckdb.Error:
            failed.add(number)
    return found, failed


@pytest.mark.parametrize("seed", range(4))
def test_expressions_of_a_row_are_duckdbs(plain: duckdb.DuckDBPyConnection, seed: int) -> None:
    pen = Pen(seed)
    texts = [text for text in (pen.row_wise() for _ in range(40)) if accepted(plain, text)]
    with maintained(TABLES, {f"v{number}": text for number, text in enumerate(texts)}) as m:
        for writes in history(ROWS, seed, epochs=3):
            apply(m, writes)
            m.epoch()
            refill(plain, m)
            held = {(view, one.values["t.id"]) for _, one in m.quarantine() for view in one.views}
            for number, text in enumerate(texts):
                expected, failed = row_by_row(plain, text)
                assert bag(m.view(f"v{number}")) == expected, text
                assert {(f"v{number}", str(row)) for row in failed} == {
                    one for one in held if one[0] == f"v{number}"
                }, text


@pytest.mark.parametrize("seed", range(4))
def test_orders_limits_windows_and_groups_are_duckdbs(plain: duckdb.DuckDBPyConnection, seed: int) -> None:
    pen = Pen(seed)
    texts = dict.fromkeys(pen.ordered() for _ in range(25))
    with maintained(TABLES, {f"v{number}": text for number, text in enumerate(texts)}) as m:
        for writes in history(ROWS, seed, epochs=4):
            apply(m, writes)
            m.epoch()
            refill(plain, m)
            for number, text in enumerate(texts):
                assert bag(m.view(f"v{number}")) == answer(plain, text), text
