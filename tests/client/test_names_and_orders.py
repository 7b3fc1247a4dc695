"""ORDER BY after a set operation by an expression of its first SELECT, and names of views and of what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import everview

TABLES = "CREATE TABLE t (n INTEGER, g INTEGER); INSERT INTO t VALUES (NULL, NULL), (7, 1), (7, 2), (3, 2), (9, 4)"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store") as found:
        found.sql(TABLES)
        yield found


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g, count(*) FROM t GROUP BY g UNION SELECT g, n FROM t WHERE n = 7 ORDER BY count(*), g",
        "SELECT g, count(*) FROM t GROUP BY g UNION SELECT g, n FROM t WHERE n = 7 ORDER BY count(*) DESC, g DESC",
        "SELECT g, max(t.n) FROM t GROUP BY g INTERSECT SELECT g, n FROM t ORDER BY max(t.n) LIMIT 2",
    ],
)
def test_rows_come_in_the_order_of_duckdb(db: everview.Database, query: str) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    with duckdb.connect() as duck:
        expected = duck.execute(f"{TABLES}; {query}").fetchall()
    assert db.view("v").scan().rows() == expected


def test_different_rows_may_be_ordered_by_what_they_do_not_show(db: everview.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT DISTINCT g FROM t ORDER BY n IS NULL")
    db.sql("INSERT INTO t VALUES (1, 8), (NULL, 1)")
    db.flush()
    assert sorted(db.sql("SELECT g FROM v").rows(), key=repr) == [(1,), (2,), (4,), (8,), (None,)]


def test_a_plain_view_names_what_its_query_leaves_unnamed(db: everview.Database) -> None:
    db.sql("CREATE VIEW casts (n, g, m) AS SELECT CAST(t.n AS BIGINT), g, max(n) OVER () FROM t WHERE n = 9")
    assert db.sql("SELECT * FROM casts").dicts() == [{"n": 9, "g": 4, "m": 9}]


def test_a_view_may_have_the_name_of_a_query_inside_it(db: everview.Database) -> None:
    query = "WITH v0 AS (SELECT 0 AS v0) SELECT (SELECT min(v0) OVER ()) FROM v0 GROUP BY v0"
    db.sql(f"CREATE VIEW v0 (v0) AS {query}")
    db.sql(f"CREATE MATERIALIZED VIEW v (v) AS {query}")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT * FROM v0")
    assert db.sql("SELECT * FROM v, w").rows() == [(0, 0)]


@pytest.mark.parametrize(
    "query",
    [
        "WITH q AS (WITH t AS (SELECT 5 AS n) SELECT n FROM main.t) SELECT * FROM q",
        "WITH t AS (SELECT n + 1 AS n FROM main.t) SELECT * FROM t",
        "SELECT main.t.n FROM main.t",
    ],
)
def test_a_table_named_with_its_schema_is_the_table(db: everview.Database, query: str) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    db.sql("INSERT INTO t VALUES (11, 5)")
    db.flush()
    with duckdb.connect() as duck:
        expected = duck.execute(f"{TABLES}; INSERT INTO t VALUES (11, 5); {query}").fetchall()
    assert sorted(db.view("v").scan().rows(), key=repr) == sorted(expected, key=repr)
    assert db.verify("v").right


_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@pytest.mark.parametrize(
    "joins",
    [
        *(f"a {one} b USING (k) {other} c USING (k)" for one in _JOINS for other in _JOINS),
        "a FULL JOIN b USING (k) FULL JOIN c USING (k) RIGHT JOIN d USING (k)",
        "a RIGHT JOIN b USING (k) FULL JOIN c USING (k) LEFT JOIN d USING (k)",
        "a NATURAL RIGHT JOIN c NATURAL LEFT JOIN d",
        "a RIGHT JOIN b USING (k, n) LEFT JOIN c USING (k)",
        "a RIGHT JOIN b USING (k) SEMI JOIN c USING (k)",
        "a FULL JOIN b USING (k) ANTI JOIN c USING (k)",
        "a RIGHT JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k",
    ],
)
def test_joins_by_using_compare_with_what_the_joins_before_have_made(db: everview.Database, joins: str) -> None:
    tables = "CREATE TABLE a (k INT, n INT); CREATE TABLE b (k INT, n INT); CREATE TABLE c (k INT, m INT)"
    tables += "; CREATE TABLE d (k INT, l INT)"
    writes = (
        "INSERT INTO a VALUES (2, 2), (4, 4), (NULL, 1); INSERT INTO c VALUES (3, 5), (4, 6), (6, 7), (NULL, 1)",
        "INSERT INTO b VALUES (1, 1), (NULL, 0), (3, 4), (4, 4); INSERT INTO d VALUES (3, 9), (5, 9), (6, 9)",
        "DELETE FROM a WHERE k = 4; INSERT INTO b VALUES (6, 6); UPDATE c SET k = 1 WHERE k = 3",
    )
    db.sql(tables)
    notices = db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM {joins}").notices
    assert not notices
    with duckdb.connect() as duck:
        duck.execute(tables)
        for write in writes:
            db.sql(write)
            db.flush()
            expected = duck.execute(f"{write}; SELECT * FROM {joins}").fetchall()
            assert sorted(db.view("v").scan().rows(), key=repr) == sorted(expected, key=repr)
