"""Recursions without an end are given up, also in views that DuckDB evaluates in the user's own words."""

from __future__ import annotations

from pathlib import Path

import pytest

import everview
from everview.catalog import MAIN
from everview.maintain import Plans
from everview.maintain.quarantine import set_aside
from everview.sql.bounded_recursion import bounded

STEPS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r, t WHERE n < most) SELECT n{more} FROM r, t"
VIEWS = {"planned": STEPS.format(more=""), "in its own words": STEPS.format(more=", name[1] AS first")}


def reasons(db: everview.Database) -> list[tuple[tuple[str, ...], str]]:
    with db.store.snapshot() as snapshot:
        found = set_aside(db.catalog, Plans(db.store, db.catalog), MAIN, snapshot)
        return [(one.views, one.reason) for one in found]


@pytest.mark.parametrize("kind", VIEWS)
def test_a_recursion_without_an_end_is_given_up_at_a_flush(tmp_path: Path, kind: str) -> None:
    with everview.open(tmp_path / "store", durability="none") as db:
        db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, most BIGINT, name VARCHAR); INSERT INTO t VALUES (1, 3, 'x')")
        db.sql(f"CREATE MATERIALIZED VIEW v WITH (recursion_limit = 50) AS {VIEWS[kind]}")
        assert bool(db.catalog.view("v").verbatim) == (kind == "in its own words")
        assert db.sql("SELECT n FROM v ORDER BY n").rows() == [(1,), (2,), (3,)]
        db.sql("UPDATE t SET most = 1000000000000 WHERE id = 1; FLUSH")
        assert reasons(db) == [(("v",), "no end after 50 rounds")]
        assert db.sql("SELECT n FROM v").rows() == []
        db.sql("UPDATE t SET most = 4 WHERE id = 1; FLUSH")
        assert db.sql("SELECT n FROM v ORDER BY n").rows() == [(1,), (2,), (3,), (4,)]
        assert reasons(db) == []


WORDS = [
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM t JOIN R ON true WHERE n < 3 OR n > 7) SELECT * LIKE 'n' FROM r",
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
