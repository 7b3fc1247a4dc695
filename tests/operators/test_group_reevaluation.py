"""Aggregates over the rows of a group, evaluated again where it changes."""

from __future__ import annotations

import math

import pytest

from everview.change.schema import Schema
from tests.operators.histories import apply, history, maintained, taken

T = Schema.of({"id": "BIGINT", "g": "VARCHAR", "x": "DOUBLE", "n": "INTEGER", "b": "BOOLEAN"}, key=["id"])
TABLES = {"t": T}
ROWS = {
    "t": {
        "id": range(8),
        "g": [None, "", "a", "b"],
        "x": [None, 0.0, -0.0, 1.5, math.inf, math.nan],
        "n": [None, 0, 1, 2, 3],
        "b": [None, True, False],
    }
}
SETS = {
    "groups": {
        "lists": "SELECT g, list(n ORDER BY id) AS l FROM t GROUP BY g",
        "texts": "SELECT x, string_agg(g, ',' ORDER BY g, id) AS l, median(n) AS m FROM t GROUP BY x",
        "duplicates": "SELECT g, quantile_disc(n, 0.5) AS m, histogram(n) AS h, arg_max(n, x) AS a FROM t GROUP BY g",
        "computed": "SELECT lower(g) AS l, bool_and(b) AS a, list(x ORDER BY id) FILTER (n > 0) AS f FROM t GROUP BY 1",
        "had": "SELECT g FROM t GROUP BY g HAVING bool_or(b)",
    },
    "parts": {
        "mixed": "SELECT g, count(*) AS c, sum(n) AS s, max(x) AS m, list(n ORDER BY id) AS l FROM t GROUP BY g",
        "filtered": "SELECT g, count(*) AS c, list(n ORDER BY id) FILTER (n > 1) AS l FROM t GROUP BY g",
        "of_different": "SELECT g, count(DISTINCT n) AS d, bool_and(b) AS l FROM t GROUP BY g",
    },
    "over nothing": {
        "counted": "SELECT approx_count_distinct(n) AS c, list(n ORDER BY id) AS l FROM t",
        "beside": "SELECT count(*) AS c, approx_count_distinct(n) AS l FROM t",
        "filtered": "SELECT approx_count_distinct(n) AS c, max(n) AS m FROM t WHERE n > 2",
    },
    "grouping sets": {
        "rolled": "SELECT g, b, list(n ORDER BY id) AS l, bool_or(b) AS o FROM t GROUP BY ROLLUP (g, b)",
        "cubed": "SELECT g, b, list(n ORDER BY id) AS l FROM t GROUP BY CUBE (g, b)",
        "counted": "SELECT g, approx_count_distinct(n) AS l FROM t GROUP BY ROLLUP (g)",
    },
    "a family": {
        f"above_{bound}": f"SELECT g, list(n ORDER BY id) AS l FROM t WHERE n > {bound} GROUP BY g"
        for bound in range(3)
    }
    | {
        f"all_above_{bound}": f"SELECT approx_count_distinct(id) AS a, max(n) AS m FROM t WHERE n > {bound}"
        for bound in range(3)
    },
}


@pytest.mark.parametrize("views", SETS.values(), ids=SETS.keys())
def test_groups_follow_their_table(views: dict[str, str]) -> None:
    with maintained(TABLES, views) as m:
        m.epoch()
        m.check()
        taken(m, history(ROWS, seed=1, epochs=10))


def test_a_group_without_a_value_is_quarantined_and_comes_back() -> None:
    with maintained(TABLES, {"sums": "SELECT n, median(CAST(g AS INTEGER)) AS m FROM t GROUP BY n"}) as m:
        apply(m, [("t", {"id": i, "g": str(i), "n": i % 2}, False) for i in range(6)])
        m.epoch()
        m.check()
        apply(m, [("t", {"id": 1, "g": "one"}, False)])
        m.epoch()
        assert m.view("sums").to_pylist() == [{"n": 0, "m": 2.0}]
        ((count, said),) = m.quarantine()
        assert (count, said.what, said.values) == (1, "group", {"t.n": "1"})
        apply(m, [("t", {"id": 1, "g": "9"}, False)])
        m.epoch()
        assert m.quarantine() == []
        m.check()


def test_a_group_without_a_value_has_no_row_whichever_part_changes() -> None:
    views = {"both": "SELECT n, count(*) AS c, max(id) AS i, list_sum(list(g::INTEGER))::INT AS m FROM t GROUP BY n"}
    with maintained(TABLES, views) as m:
        apply(m, [("t", {"id": 0, "g": "zero", "n": 0}, False), ("t", {"id": 1, "g": "1", "n": 1}, False)])
        m.epoch()
        assert [row["n"] for row in m.view("both").to_pylist()] == [1]
        apply(m, [("t", {"id": 2, "g": "2", "n": 0}, False), ("t", {"id": 3, "g": "3", "n": 1}, False)])
        m.epoch()
        assert m.view("both").to_pylist() == [{"n": 1, "c": 2, "i": 3, "m": 4}]
        assert [(count, said.what) for count, said in m.quarantine()] == [(1, "group")]
        apply(m, [("t", {"id": 0}, True)])
        m.epoch()
        assert m.quarantine() == []
        m.check()


def test_one_group_of_all_rows_whose_expression_failed_has_no_row() -> None:
    with maintained(TABLES, {"all": "SELECT count(*) AS c, median(CAST(g AS INTEGER)) AS m FROM t"}) as m:
        m.epoch()
        m.check()
        apply(m, [("t", {"id": 0, "g": "zero"}, False)])
        m.epoch()
        assert m.view("all").to_pylist() == []
        apply(m, [("t", {"id": 0}, True)])
        m.epoch()
        m.check()
