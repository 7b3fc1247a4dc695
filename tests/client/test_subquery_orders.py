"""Rows that a query takes from a subquery with ORDER BY come in that order, as in DuckDB, after every change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import everview

TABLE = "CREATE TABLE t (u INTEGER PRIMARY KEY, n INTEGER, g INTEGER)"
WRITES = (
    "INSERT INTO t VALUES (30, 2, 1), (10, 5, 1), (70, 1, 2), (50, 9, 2), (90, NULL, 3), (60, 5, 2)",
    "INSERT INTO t VALUES (20, 7, 1), (5, 3, 2); DELETE FROM t WHERE u = 10",
    "UPDATE t SET n = 8 WHERE u = 70; UPDATE t SET g = 3 WHERE u = 30",
    "DELETE FROM t",
)

WRITTEN = [
    # aggregates
    "SELECT array_agg(n) FROM (SELECT n FROM t WHERE u < 80 ORDER BY -u) AS s",
    "SELECT g, list(n) FROM (SELECT * FROM t ORDER BY -u) AS s GROUP BY g",
    "SELECT g, list(n) FILTER (WHERE n > 2) FROM (SELECT * FROM t ORDER BY n % 4, -u) AS s GROUP BY g",
    "SELECT string_agg(n, '-'), group_concat(n), first(n), last(n) FROM (SELECT * FROM t ORDER BY u DESC) AS s",
    "SELECT arg_min(n, g), arg_max(n, g), any_value(n) FROM (SELECT * FROM t ORDER BY u DESC)",
    "SELECT json_group_array(n) FROM (SELECT n FROM t ORDER BY u DESC)",
    # what the subquery is ordered by
    "SELECT list(n) FROM (SELECT n, g FROM t ORDER BY ALL)",
    "SELECT list(y) FROM (SELECT n, u FROM t ORDER BY 2 DESC) AS q(y, z)",
    "SELECT list(y) FROM (SELECT n FROM t ORDER BY u DESC) AS q(y)",
    "SELECT list(n) FROM (SELECT n FROM t ORDER BY n DESC NULLS FIRST, u)",
    "SELECT list(c) FROM (SELECT count(*) AS c FROM t GROUP BY g ORDER BY g DESC)",
    "SELECT list(n) FROM (SELECT DISTINCT n FROM t ORDER BY n DESC)",
    'SELECT list("__order_1") FROM (SELECT n AS "__order_1", g AS "__order_2" FROM t ORDER BY u DESC)',
    "SELECT list(n) FROM (SELECT n FROM t WHERE g = 1 UNION ALL SELECT g FROM t ORDER BY 1)",
    "SELECT list(n) FROM (SELECT n FROM t ORDER BY u DESC LIMIT 3)",
    "SELECT list(n) FROM (SELECT n, row_number() OVER (ORDER BY u) AS r FROM t ORDER BY r DESC)",
    # through other subqueries
    "SELECT list(n) FROM (SELECT n FROM (SELECT n, u FROM t ORDER BY u DESC) WHERE n > 1)",
    "WITH a AS (SELECT * FROM t ORDER BY u DESC), b AS (SELECT n FROM a WHERE g < 3) SELECT list(n) FROM b",
    "SELECT list(n) FROM descending",
    "SELECT list(n) FROM (SELECT n FROM (SELECT * FROM t ORDER BY u DESC) WHERE g = 2 ORDER BY n, u)",
    "SELECT (SELECT list(n) FROM (SELECT n FROM t AS o WHERE o.g = t.g ORDER BY o.u DESC)) FROM t",
    # rows and windows
    "SELECT n FROM (SELECT n FROM t ORDER BY u DESC) LIMIT 2",
    "SELECT * FROM (SELECT * FROM t ORDER BY u DESC) OFFSET 3",
    "SELECT sum(n) FROM (SELECT n FROM (SELECT n FROM t ORDER BY u DESC) LIMIT 2)",
    "SELECT DISTINCT ON (g) n FROM (SELECT * FROM t ORDER BY u DESC)",
    "SELECT row_number() OVER () AS r, lag(n) OVER () AS p, n FROM (SELECT * FROM t ORDER BY u DESC)",
    "SELECT n, first_value(n) OVER (PARTITION BY g) AS f FROM (SELECT * FROM t ORDER BY u DESC)",
    "SELECT n, sum(n) OVER (ROWS UNBOUNDED PRECEDING) AS s FROM (SELECT * FROM t ORDER BY u DESC)",
]
ONLY_DUCKDB_KNOWS = [
    "SELECT list(a.n) FROM (SELECT * FROM t ORDER BY u DESC) a JOIN t b ON a.u = b.u",
    "SELECT list(n) FROM ((SELECT n FROM t ORDER BY u DESC) UNION ALL (SELECT 77))",
    "SELECT list(n) FROM (SELECT n, row_number() OVER (ORDER BY n) AS r FROM (SELECT * FROM t ORDER BY u DESC))",
]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none") as found:
        found.sql(TABLE)
        found.sql("CREATE VIEW descending AS SELECT * FROM t ORDER BY u DESC")
        yield found


def answers(query: str) -> list[Counter[str]]:
    """DuckDB's answer after each of the writes."""
    found = []
    with duckdb.connect() as duck:
        duck.execute(TABLE)
        duck.execute("CREATE VIEW descending AS SELECT * FROM t ORDER BY u DESC")
        for write in WRITES:
            duck.execute(write)
            found.append(Counter(map(repr, duck.execute(query).fetchall())))
    return found


def shown(db: everview.Database) -> Iterator[Counter[str]]:
    for write in WRITES:
        db.sql(write)
        db.flush()
        yield Counter(map(repr, db.view("v").scan().rows()))


@pytest.mark.parametrize("query", WRITTEN)
def test_the_order_of_a_subquery_is_kept(db: everview.Database, query: str) -> None:
    notices = db.sql(f"CREATE MATERIALIZED VIEW v AS {query}").notices
    assert not any("order of a subquery" in notice or "differs" in notice for notice in notices)
    assert list(shown(db)) == answers(query)
    assert db.verify("v").right


@pytest.mark.parametrize("query", ONLY_DUCKDB_KNOWS)
def test_an_order_that_only_duckdb_knows_is_left_to_it(db: everview.Database, query: str) -> None:
    (notice,) = db.sql(f"CREATE MATERIALIZED VIEW v AS {query}").notices
    assert notice.startswith(
        "a query that depends on the order of a subquery's rows behind a join, a group or a window"
    )
    assert list(shown(db)) == answers(query)


def test_another_dialect_means_the_same(db: everview.Database) -> None:
    query = "SELECT array_agg(a.n) FROM (SELECT * FROM t ORDER BY u DESC) a JOIN t b ON a.u = b.u"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}", dialect="postgres")
    assert list(shown(db)) == answers(query)


LISTS = "CREATE TABLE t (id INTEGER PRIMARY KEY, l INTEGER[], j JSON)"
LIST_WRITES = (
    """INSERT INTO t VALUES (1, [3, 1, 2], '{"b": 1, "a": 2}'), (2, [9, 8], '{"z": 1, "c": 2}'), (3, NULL, NULL)""",
    """UPDATE t SET l = [4, NULL, 0] WHERE id = 3; UPDATE t SET j = '{"y": 0, "x": 0}' WHERE id = 1""",
    "DELETE FROM t WHERE id = 2",
)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, list(x) FROM (SELECT id, unnest(l) AS x FROM t) GROUP BY id",
        "SELECT id, list(x) FROM t, unnest(l) AS q(x) GROUP BY id",
        "SELECT id, (SELECT list(x) FROM (SELECT unnest(l) AS x)) AS y FROM t",
        "SELECT id, (SELECT list(x * 2) FROM unnest(l) AS q(x) WHERE x > 1) AS y FROM t",
        "SELECT id, (SELECT x FROM unnest(l) AS q(x) LIMIT 1) AS y FROM t",
        "SELECT id, (SELECT list(x) FROM (VALUES (id), (5), (1)) AS v(x)) AS y FROM t",
        "SELECT (SELECT json_group_object(k, k) FROM (SELECT unnest(json_keys(j)) AS k)) AS y FROM t",
    ],
)
def test_the_order_of_a_list_is_kept(tmp_path: Path, query: str) -> None:
    with everview.open(tmp_path / "store", durability="none") as db, duckdb.connect() as duck:
        db.sql(LISTS)
        duck.execute(LISTS)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        for write in LIST_WRITES:
            db.sql(write)
            db.flush()
            expected = duck.execute(f"{write}; {query}").fetchall()
            assert Counter(map(repr, db.view("v").scan().rows())) == Counter(map(repr, expected))
