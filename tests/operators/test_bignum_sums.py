"""Sums of BIGNUMs: exact, reversible, and what DuckDB answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everview
from everview.change.types import BIGNUM
from everview.operators.accumulators import accumulator
from everview.sql.settings import connect
from everview.store.encoding.columns import to_arrow, to_python

NUMBERS = st.integers(-300, 300) | st.integers(-(2**512), 2**512) | st.integers(-(10**400), 10**400)
Row = tuple[int | None, int, int]
"""A number, its weight and its group."""
ROWS = st.lists(st.tuples(st.none() | NUMBERS, st.sampled_from([1, -1, 3, -(1 << 40)]), st.integers(0, 3)), max_size=12)


def partial(rows: list[Row]) -> pa.Array:
    column = to_arrow([None if number is None else str(number) for number, _, _ in rows], BIGNUM)
    weights, groups = (np.array([row[at] for row in rows], np.int64) for at in (1, 2))
    return accumulator("sum", BIGNUM).partial(column, weights, groups, 4)


def totals(rows: list[Row]) -> list[int]:
    return [sum((number or 0) * weight for number, weight, group in rows if group == wanted) for wanted in range(4)]


@given(ROWS, ROWS)
def test_sums_are_exact_in_any_parts(some: list[Row], more: list[Row]) -> None:
    kept = accumulator("sum", BIGNUM)
    first, second = partial(some), partial(more)
    assert [int(text) for text in to_python(first, BIGNUM)] == totals(some)
    both = [int(text) for text in to_python(kept.add(first, second), BIGNUM)]
    assert both == totals([*some, *more])
    groups = np.tile(np.arange(4), 2)
    assert kept.combine(pa.concat_arrays([first, second]), groups, 4).equals(kept.add(first, second))
    assert kept.is_zero(first).tolist() == [total == 0 for total in totals(some)]


@given(ROWS)
def test_rows_that_are_taken_away_leave_no_trace(rows: list[Row]) -> None:
    kept = accumulator("sum", BIGNUM)
    taken = partial([(number, -weight, group) for number, weight, group in rows])
    assert kept.is_zero(kept.add(partial(rows), taken)).all()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none") as opened:
        yield opened


VIEWS = {
    "sums": "SELECT g, sum(b) AS s, count(b) AS n, min(b) AS low, max(b) AS high FROM t GROUP BY g",
    "means": "SELECT g, avg(b) AS a FROM t WHERE abs(b) < 1000 GROUP BY g",
    "different": "SELECT g, sum(DISTINCT b) AS s FROM t GROUP BY g",
    "all_of_them": "SELECT sum(b) AS s, sum(b) FILTER (WHERE b > 0) AS above FROM t",
    "computed": "SELECT id, b + 1 AS more, -b AS less, b - id AS rest, CAST(b AS VARCHAR) AS text FROM t",
    "nested": "SELECT g, list(b ORDER BY id) AS bs, {'least': min(b)} AS s FROM t GROUP BY g",
    "running": "SELECT id, sum(b) OVER (PARTITION BY g ORDER BY id) AS s FROM t",
    "first_three": "SELECT id, b FROM t ORDER BY b DESC NULLS LAST, id LIMIT 3",
    "met": "SELECT x.id AS one, y.id AS two FROM t AS x JOIN t AS y ON x.b = y.b AND x.id < y.id",
}


def test_views_of_long_numbers_follow_duckdb(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, b BIGNUM)")
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    rng = random.Random(7)
    pool = [None, "0", "-1", "255", "256", "-256", "9" * 300, "-" + "9" * 300, "1" + "0" * 160, str(-(2**512)), "7"]
    held: dict[int, tuple[int, int, str | None]] = {}
    for _ in range(6):
        for _ in range(8):
            number = rng.randrange(20)
            if number in held and rng.random() < 0.4:
                del held[number]
                db.sql("DELETE FROM t WHERE id = ?", [number])
            else:
                held[number] = (number, rng.randrange(3), rng.choice(pool))
                db.sql("INSERT INTO t VALUES (?, ?, ?)", held[number])
        db.flush()
        with connect() as other:
            other.execute("CREATE TABLE t (id INTEGER, g INTEGER, b BIGNUM)")
            if held:
                other.executemany("INSERT INTO t VALUES (?, ?, ?)", list(held.values()))
            for name, query in VIEWS.items():
                assert sorted(db.sql(f"SELECT * FROM {name}").rows(), key=str) == sorted(
                    other.execute(query).fetchall(), key=str
                ), name
    assert db.verify().right
