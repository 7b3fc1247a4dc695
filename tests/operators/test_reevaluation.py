"""Queries without an operator of their own, over the partitions that change."""

from __future__ import annotations

import pytest

from everview.change.schema import Schema
from tests.operators.histories import apply, history, maintained, rows_read, taken

T = Schema.of({"id": "BIGINT", "g": "VARCHAR", "n": "INTEGER"}, key=["id"])
U = Schema.of({"k": "BIGINT", "g": "VARCHAR", "y": "BIGINT"}, key=["k"])
TABLES = {"t": T, "u": U}
texts = [None, "", "a", "b"]
numbers = [None, 0, 1, 2, 3]
ROWS = {
    "t": {"id": range(6), "g": texts, "n": numbers},
    "u": {"k": range(6), "g": texts, "y": numbers},
}
SETS = {
    "whole inputs": {
        "pairs": "SELECT t.id, u.k FROM t JOIN u ON t.n < u.y",
        "or_pairs": "SELECT t.id, u.k FROM t FULL JOIN u ON t.n < u.y OR t.g = u.g",
        "steps": "WITH RECURSIVE c(n) AS (SELECT min(n) FROM t UNION ALL SELECT n + 1 FROM c WHERE n < 4) FROM c",
        "of_one": "SELECT * FROM t POSITIONAL JOIN (SELECT 1 AS one)",
    },
    "partitions": {
        "as_of": "SELECT t.id, u.y FROM t ASOF JOIN u ON t.g = u.g AND t.n >= u.y",
        "as_of_left": "SELECT t.id, u.y FROM t ASOF LEFT JOIN u ON t.n = u.k AND t.n >= u.y",
    },
    "correlated": {"below": "SELECT t.id, (SELECT count(*) FROM u WHERE u.y < t.n) AS c FROM t"},
    "a family": {
        f"above_{bound}": f"SELECT t.id, u.k FROM t JOIN u ON t.n < u.y WHERE t.id > {bound}" for bound in range(3)
    }
    | {
        f"as_of_{bound}": "SELECT a.id, u.k FROM "
        f"(SELECT * FROM t WHERE n > {bound}) AS a ASOF JOIN u ON a.g = u.g AND a.n >= u.y"
        for bound in range(3)
    },
}


@pytest.mark.parametrize("views", SETS.values(), ids=SETS.keys())
def test_queries_follow_their_tables(views: dict[str, str]) -> None:
    with maintained(TABLES, views) as m:
        m.epoch()
        m.check()
        taken(m, history(ROWS, seed=1, epochs=10))


def test_only_the_touched_partitions_are_read() -> None:
    query = "SELECT t.id, u.y FROM t ASOF JOIN u ON t.g = u.g AND t.n >= u.y"
    with maintained(TABLES, {"as_of": query}) as m:
        apply(m, [("t", {"id": i, "g": str(i % 10), "n": i}, False) for i in range(100)])
        apply(m, [("u", {"k": i, "g": str(i % 10), "y": i - 3}, False) for i in range(50)])
        m.epoch()
        m.check()
        apply(m, [("u", {"k": 7, "y": 0}, False)])
        assert sum(rows_read(m).values()) == 15
        m.epoch()
        m.check()


def test_a_partition_without_a_value_is_quarantined_and_comes_back() -> None:
    query = "SELECT t.id, u.y FROM t ASOF JOIN u ON t.n = u.k AND CAST(t.g AS BIGINT) >= u.y"
    with maintained(TABLES, {"as_of": query}) as m:
        apply(m, [("t", {"id": i, "g": str(i), "n": i % 3}, False) for i in range(9)])
        apply(m, [("u", {"k": i, "g": None, "y": 1}, False) for i in range(3)])
        m.epoch()
        m.check()
        apply(m, [("t", {"id": 4, "g": "four"}, False)])
        m.epoch()
        found = m.quarantine()
        assert [(count, said.what) for count, said in found] == [(1, "partition")]
        assert "four" in found[0][1].reason
        assert {row["id"] % 3 for row in m.view("as_of").to_pylist()} == {0, 2}
        apply(m, [("t", {"id": 4, "g": "4"}, False)])
        m.epoch()
        assert m.quarantine() == []
        m.check()


def test_whole_inputs_without_a_value_leave_the_view_empty_until_they_are_mended() -> None:
    query = "SELECT t.id, u.k FROM t JOIN u ON CAST(t.g || u.g AS INTEGER) > 3"
    with maintained(TABLES, {"pairs": query}) as m:
        apply(m, [("t", {"id": i, "g": str(i), "n": None}, False) for i in range(3)])
        apply(m, [("u", {"k": i, "g": str(i), "y": None}, False) for i in range(3)])
        m.epoch()
        m.check()
        apply(m, [("t", {"id": 1, "g": "one"}, False)])
        m.epoch()
        assert len(m.view("pairs")) == 0
        assert [(count, said.what) for count, said in m.quarantine()] == [(1, "partition")]
        apply(m, [("u", {"k": 5, "g": "5", "y": None}, False)])
        m.epoch()
        assert [(count, said.what) for count, said in m.quarantine()] == [(1, "partition")]
        apply(m, [("t", {"id": 1}, True)])
        m.epoch()
        assert m.quarantine() == []
        m.check()


def test_a_recursion_without_an_end_is_given_up_for_its_partition_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.plan.compile.ROUNDS", 50)
    query = (
        "WITH RECURSIVE r AS (SELECT g, n FROM t UNION ALL SELECT g, n + 1 FROM r WHERE g = 'a' OR n < 2)"
        " SELECT g, n FROM r"
    )
    with maintained(TABLES, {"steps": query}) as m:
        apply(m, [("t", {"id": i, "g": g, "n": 0}, False) for i, g in enumerate("abc")])
        m.epoch()
        assert sorted({row["g"] for row in m.view("steps").to_pylist()}) == ["b", "c"]
        ((_, said),) = m.quarantine()
        assert (said.what, said.reason) == ("partition", "no end after 50 rounds")
        apply(m, [("t", {"id": 0}, True), ("t", {"id": 1, "n": 1}, False)])
        m.epoch()
        assert m.quarantine() == []
        m.check()


def test_rows_without_an_end_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.plan.compile.ROUNDS", 50)
    query = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"
    with maintained(TABLES, {"numbers": query}) as m:
        m.epoch()
        assert m.view("numbers").to_pylist() == []
        ((_, said),) = m.quarantine()
        assert (said.what, said.reason) == ("rows", "no end after 50 rounds")
