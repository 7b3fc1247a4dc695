"""Recursions without an end are given up, also in views that DuckDB evaluates in the user's own words."""

from __future__ import annotations

from pathlib import Path

import pytest

import everview
from everview.catalog import MAIN
from everview.maintain import Plans
from everview.maintain.quarantined import quarantined_items
from everview.plan.maintenance.operator_definitions import ReevaluationOperator
from everview.sql.bounded_recursion import bounded

STEPS = (
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r, t WHERE n < most) SELECT {greatest} AS n FROM r"
)


def reasons(db: everview.Database) -> list[tuple[tuple[str, ...], str]]:
    with db.store.snapshot() as snapshot:
        found = quarantined_items(db.catalog, Plans(db.store, db.catalog), MAIN, snapshot)
        return [(one.views, one.reason) for one in found]


@pytest.mark.parametrize(
    ("greatest", "verbatim", "left"), [("max(n)", False, [(None,)]), ("finalize(max(n) EXPORT_STATE)", True, [])]
)
def test_a_recursion_without_an_end_is_given_up_at_a_flush(
    tmp_path: Path, greatest: str, verbatim: bool, left: list[tuple[None]]
) -> None:
    """Its rows are quarantined. An aggregate over them is one over nothing; a query in the user's own words is one
    with them."""
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, most BIGINT); INSERT INTO t VALUES (1, 3)")
        db.sql(f"CREATE MATERIALIZED VIEW v WITH (recursion_limit = 50) AS {STEPS.format(greatest=greatest)}")
        assert bool(db.catalog.view("v").verbatim) == verbatim
        assert db.sql("SELECT n FROM v").rows() == [(3,)]
        db.sql("UPDATE t SET most = 1000000000000 WHERE id = 1; FLUSH")
        assert reasons(db) == [(("v",), "no end after 50 rounds")]
        assert db.sql("SELECT n FROM v").rows() == left
        db.sql("UPDATE t SET most = 4 WHERE id = 1; FLUSH")
        assert db.sql("SELECT n FROM v").rows() == [(4,)]
        assert reasons(db) == []


def test_a_plan_that_gives_up_what_duckdb_evaluates_is_used_all_the_same(tmp_path: Path) -> None:
    """DuckDB knows no limit: what lies beyond it is nothing to compare."""
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, most BIGINT); INSERT INTO t VALUES (1, 3)")
        db.sql(f"CREATE MATERIALIZED VIEW v WITH (recursion_limit = 1) AS {STEPS.format(greatest='max(n)')}")
        assert not db.catalog.view("v").verbatim
        assert reasons(db) == [(("v",), "no end after 1 rounds")]


def test_the_limit_of_a_view_is_the_limit_of_its_plan(tmp_path: Path) -> None:
    query = "WITH RECURSIVE r(n) AS (SELECT id FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r"
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        db.sql(f"CREATE MATERIALIZED VIEW v WITH (recursion_limit = 7000) AS {query}")
        assert not db.catalog.view("v").verbatim
        last = Plans(db.store, db.catalog).last(MAIN)
        assert last is not None
        operators = [step.operator for step in last[1].plan.steps]
        assert [one.rounds for one in operators if isinstance(one, ReevaluationOperator)] == [7000]


WORDS = [
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM t JOIN R ON true WHERE n < 3 OR n > 7) SELECT n FROM r",
    "WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT x FROM t WHERE x IN (SELECT n FROM r)) FROM r ORDER BY ALL",
    "WITH RECURSIVE r(k, n) USING KEY (k) AS (SELECT 1, 2 UNION SELECT k, n + 1 FROM r) SELECT n FROM r",
    "SELECT n FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL (SELECT n FROM (SELECT * FROM r) q LIMIT 1)) FROM r)",
]


@pytest.mark.parametrize("words", WORDS)
def test_every_recursion_asks_where_it_reads_itself(words: str) -> None:
    assert bounded(words, 50).lower().count("everview_goes_on(50)") == 1


def test_words_without_a_recursion_stay_as_they_are() -> None:
    words = "SELECT  *  LIKE 'a%' FROM t -- as written"
    assert bounded(words, 50) == words
