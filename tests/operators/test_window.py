"""Window functions: values of a partition's rows, before and after."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

from everview.change.condense import condense
from everview.change.entries import WEIGHT
from everview.change.schema import Schema
from tests.operators.histories import apply, history, maintained, rows_read, taken

T = Schema.of({"id": "BIGINT", "g": "VARCHAR", "x": "DOUBLE", "n": "INTEGER"}, key=["id"])
TABLES = {"t": T}
ROWS = {
    "t": {
        "id": range(8),
        "g": [None, "", "a", "A"],
        "x": [None, 0.0, -0.0, 1.5, -2.0, math.inf, math.nan],
        "n": [None, 0, 1, 2, 3],
    }
}
SETS = {
    "numbers and ranks": {
        "numbered": "SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY x DESC, id) AS r FROM t",
        "ranked": "SELECT id, rank() OVER (ORDER BY n) AS r, dense_rank() OVER (ORDER BY n NULLS FIRST) AS d FROM t",
        "shares": "SELECT id, cume_dist() OVER (PARTITION BY g ORDER BY n) AS c, ntile(2) OVER (ORDER BY id) h FROM t",
        "beside": "SELECT id, lag(n) OVER (ORDER BY x, id) p, lead(n, 2) OVER (PARTITION BY g ORDER BY n, id) q FROM t",
    },
    "frames": {
        "whole": "SELECT id, g, sum(n) OVER (PARTITION BY g) AS s, count(*) OVER (PARTITION BY g) AS c FROM t",
        "rows": "SELECT id, max(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m FROM t",
        "ranges": "SELECT id, sum(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t",
        "groups": "SELECT id, count(*) OVER (ORDER BY n GROUPS 1 PRECEDING EXCLUDE TIES) AS c FROM t",
        "picked": "SELECT id, first_value(n) OVER (PARTITION BY g ORDER BY n) AS f FROM t",
    },
    "partitions": {
        "zeros": "SELECT id, x, count(*) OVER (PARTITION BY x) AS c FROM t",
        "computed": "SELECT id, count(*) OVER (PARTITION BY lower(g), n % 2) AS c FROM t",
        "filtered": "SELECT id, row_number() OVER (PARTITION BY g ORDER BY n, id) AS r FROM t WHERE n > 0",
        "asked": "SELECT id, n FROM t QUALIFY n = max(n) OVER (PARTITION BY g)",
        "twice": "SELECT g, sum(r) AS s FROM (SELECT g, rank() OVER (PARTITION BY g ORDER BY n) r FROM t) GROUP BY g",
    },
    "a family": {
        f"above_{bound}": "SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY n, id) AS r, "
        f"count(*) OVER (PARTITION BY g) AS c FROM t WHERE n > {bound}"
        for bound in range(3)
    }
    | {
        f"all_above_{bound}": f"SELECT id, rank() OVER (ORDER BY n) AS r FROM t WHERE n > {bound}" for bound in range(3)
    },
}


@pytest.mark.parametrize("views", SETS.values(), ids=SETS.keys())
def test_windows_follow_their_table(views: dict[str, str]) -> None:
    with maintained(TABLES, views) as m:
        taken(m, history(ROWS, seed=1, epochs=10))


def test_only_rows_whose_values_change_are_emitted() -> None:
    with maintained(TABLES, {"numbered": "SELECT id, g, rank() OVER (PARTITION BY g ORDER BY n) AS r FROM t"}) as m:
        apply(m, [("t", {"id": number, "g": "a", "x": None, "n": number}, False) for number in range(10)])
        m.epoch()
        apply(m, [("t", {"id": 8, "g": "a", "x": None, "n": 100}, False)])
        window = next(step for step in m.plan.steps if step.operator.name == "window")
        assert m.epoch().counts[window.fingerprint] == 4  # 8 and 9 exchange their ranks
        m.check()


def test_only_the_touched_partitions_are_read() -> None:
    with maintained(TABLES, {"sums": "SELECT id, sum(n) OVER (PARTITION BY g) AS s FROM t"}) as m:
        apply(m, [("t", {"id": i, "g": str(i % 10), "x": None, "n": i}, False) for i in range(100)])
        m.epoch()
        apply(m, [("t", {"id": 7, "n": 0}, False)])
        assert sum(rows_read(m).values()) == 10


def test_a_partition_without_a_value_is_quarantined_and_comes_back() -> None:
    query = "SELECT id, sum(CAST(g AS INTEGER)) OVER (PARTITION BY n) AS s FROM t"
    with maintained(TABLES, {"sums": query}) as m:
        apply(m, [("t", {"id": i, "g": "1", "x": None, "n": i % 3}, False) for i in range(9)])
        m.epoch()
        m.check()
        apply(m, [("t", {"id": 1, "g": "one"}, False)])
        m.epoch()
        assert {row["id"] for row in m.view("sums").to_pylist()} == {0, 2, 3, 5, 6, 8}
        ((count, said),) = m.quarantine()
        assert (count, said.what, said.values, said.views) == (1, "partition", {"t.n": "1"}, ("sums",))
        assert "one" in said.reason
        apply(m, [("t", {"id": 4, "g": "two"}, False)])
        m.epoch()
        assert len(m.quarantine()) == 1
        apply(m, [("t", {"id": 1, "g": "5"}, False), ("t", {"id": 4}, True)])
        m.epoch()
        assert m.quarantine() == []
        m.check()


def test_what_goes_is_what_came_to_the_last_digit() -> None:
    query = "SELECT id, sum(x) OVER (PARTITION BY g ORDER BY id) AS s, stddev(x) OVER (PARTITION BY g) AS d FROM t"
    choose = random.Random(1)
    with maintained(TABLES, {"sums": query}) as m:
        window = next(step for step in m.plan.steps if step.operator.name == "window")
        seen: list[pa.Table] = []
        for changed in (600, 1, 5, 40, 1, 40):
            for number in choose.sample(range(600), changed):
                value = choose.random() * 10 ** choose.randint(-8, 8)
                m.table("t").put({"id": number, "g": str(choose.randrange(9)), "x": value})
            begun = m.begin()
            batches = m.runner.read(m.store, begun).batches
            seen.append(m.runner.dry(m.store.views, begun.base, batches).changes[window.fingerprint])
            m.epoch()
        left = condense(pa.concat_tables(seen))
        assert left[WEIGHT].to_pylist() == [1] * 600
