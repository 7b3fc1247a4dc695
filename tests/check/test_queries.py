"""What DuckDB is asked to recompute a view: the text itself, or a tree in which all is said."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import everview
from everview.check.exact_sums import _mean, _total
from everview.check.report import Verdict
from everview.check.user_queries import ViewQuery
from everview.errors import SnapshotExpiredError
from tests.check.damage import damage, held

TABLES = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, x DOUBLE, s VARCHAR, ts TIMESTAMP);
    CREATE TABLE u (a VARCHAR, n BIGINT);
"""


def asked(db: everview.Database, query: str) -> tuple[str, tuple[str, ...]]:
    with db.store.lease("maintenance"):
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")
    definitions = db.catalog.definitions()
    found = ViewQuery(definitions.view("v"), definitions).questions[-1]
    return found.sql, found.doubts


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT g, count(*) AS n FROM t WHERE x > 1 GROUP BY g", "as it is"),
        ("SELECT id FROM t ORDER BY g", "as it is"),
        ("SELECT id FROM t ORDER BY g LIMIT 3", 'ORDER BY t.g, "t"."id" LIMIT 3'),
        ("SELECT a FROM u LIMIT 3", 'ORDER BY "u"."__row" LIMIT 3'),
        ("SELECT DISTINCT g FROM t LIMIT 3", "ORDER BY 1 LIMIT 3"),
        ("SELECT g FROM t UNION SELECT n FROM u LIMIT 3", "ORDER BY 1 LIMIT 3"),
        ("SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n LIMIT 1", 'ORDER BY "n", t.g LIMIT 1'),
        ("SELECT DISTINCT ON (g) g, s FROM t", 'ORDER BY "t"."id"'),
        ("SELECT g, first(s) AS s FROM t GROUP BY g", 'FIRST(t.s ORDER BY "t"."id"'),
        ("SELECT g, any_value(s) AS s FROM t GROUP BY g", 'ANY_VALUE(t.s ORDER BY "t"."id"'),
        ("SELECT list(DISTINCT g) AS l FROM t", "ARRAY_AGG(DISTINCT t.g ORDER BY t.g"),
        ("SELECT id, lag(s) OVER (ORDER BY g) AS s FROM t", 'OVER (ORDER BY t.g, "t"."id"'),
        ("SELECT id, last_value(s) OVER (ORDER BY g) AS s FROM t", 'LAST_VALUE(t.s ORDER BY t.g, "t"."id"'),
        ("SELECT q.s FROM (SELECT s FROM t) AS q LIMIT 1", '"t"."id" AS "__key_1" FROM'),
        ("SELECT t.id FROM u JOIN t ON t.id = u.n ORDER BY t.g LIMIT 1", 'ORDER BY t.g, "u"."__row" LIMIT 1'),
        ("SELECT id FROM t ORDER BY g LIMIT 2 WITH TIES", "QUALIFY RANK() OVER (ORDER BY t.g"),
        (
            "SELECT window_start AS w FROM TUMBLE(t, ts, INTERVAL '1 hour')",
            "TIME_BUCKET(CAST('1 hour' AS INTERVAL), t.ts)",
        ),
        ("SELECT g, sum(x) AS x FROM t GROUP BY g", "__EXACT_SUM(LIST(t.x))"),
        ("SELECT avg(DISTINCT x) FILTER (WHERE g > 1) AS x FROM t", "__EXACT_AVG(LIST(DISTINCT t.x) FILTER(WHERE"),
        ("SELECT sum(g) AS g, sum(x) OVER () AS x FROM t GROUP BY x", "SUM(t.g) AS"),
    ],
)
def test_what_is_asked(db: everview.Database, query: str, text: str) -> None:
    db.sql(TABLES)
    sql, doubts = asked(db, query)
    assert not doubts
    assert sql == db.catalog.view("v").sql if text == "as it is" else text in sql


@pytest.mark.parametrize(
    "query",
    [
        "SELECT g FROM t UNION ALL SELECT n FROM u LIMIT 3",
        "SELECT t.id, u.n FROM t, u ORDER BY t.g LIMIT 3",
        "SELECT g, count(*) AS n FROM t GROUP BY ROLLUP (g) LIMIT 1",
        "SELECT t.id, u.n FROM t POSITIONAL JOIN u",
        "SELECT x.i FROM t, unnest([t.g, 1]) AS x(i) LIMIT 1",
        "SELECT count(*) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS n FROM t",
    ],
)
def test_what_cannot_be_settled_from_the_text(db: everview.Database, query: str) -> None:
    db.sql(TABLES)
    assert asked(db, query)[1]


def test_ties_that_cannot_be_settled_are_no_verdict(db: everview.Database) -> None:
    db.sql(TABLES + "INSERT INTO t (id, g) VALUES (1, 1), (2, 1), (3, 1); INSERT INTO u VALUES ('a', 7)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT g FROM t UNION ALL SELECT n FROM u LIMIT 2")
    assert db.verify().view("v").verdict is Verdict.RIGHT
    earlier = held(db)
    db.sql("DELETE FROM t; FLUSH")
    damage(db, earlier)
    view = db.verify().view("v")
    assert view.verdict is Verdict.UNDECIDED and view.differences and "LIMIT" in view.reason
    assert db.verify().right


def test_sums_are_exact() -> None:
    assert _total([0.1] * 10) == 1.0 and _total([1e16, 1.0, -1e16]) == 1.0
    assert _total([1e308, 1e308, -1e308]) == 1e308 and _total([1e308, 1e308]) == math.inf
    assert _total([-1e308, -1e308]) == -math.inf and math.isnan(_total([math.inf, -math.inf]))
    assert _total([math.inf, 1.0]) == math.inf and math.isnan(_total([math.nan, 1.0]))
    assert _mean([0.1, 0.2, 0.3]) == math.fsum([0.1, 0.2, 0.3]) / 3


def test_sums_that_the_order_of_rows_would_change(db: everview.Database) -> None:
    db.sql(
        TABLES + "INSERT INTO t (id, g, x) SELECT range, range % 3, [0.1, 1e16, -1e16][1 + range % 3] FROM range(99)"
    )
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s, avg(x) AS a FROM t")
    db.sql(
        "CREATE MATERIALIZED VIEW w AS SELECT g, stddev(x) AS s, sum(x) OVER (PARTITION BY g) AS r FROM t GROUP BY g, x"
    )
    assert db.verify().right


def test_columns_that_a_table_gained_later(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER); INSERT INTO t VALUES (1, 1), (2, 1)")
    db.sql("CREATE VIEW plain AS SELECT * FROM t; CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT p.* FROM plain AS p JOIN t USING (g) WHERE p.id < t.id")
    db.sql("ALTER TABLE t ADD COLUMN more VARCHAR; INSERT INTO t VALUES (3, 1, 'x'); FLUSH")
    assert db.verify(state=True).right and db.verify().view("w").rows == 3


def test_rows_whose_expression_failed_are_left_out(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, k VARCHAR, s VARCHAR); CREATE TABLE u (id INTEGER PRIMARY KEY)")
    db.sql("INSERT INTO t VALUES (1, 'n', '1'), (2, 'n', 'x'), (3, 't', 'y'), (4, 'n', NULL)")
    db.sql("INSERT INTO u VALUES (1), (4)")
    for name, query in {
        "shown": "SELECT id, CAST(s AS INTEGER) AS n FROM t",
        "kept": "SELECT id FROM t WHERE k = 'n' AND coalesce(CAST(s AS INTEGER), 5) > 0",
        "grouped": "SELECT CAST(s AS INTEGER) AS n, count(*) AS c FROM t GROUP BY 1",
        "summed": "SELECT k, sum(CAST(s AS INTEGER)) AS n FROM t GROUP BY k",
        "joined": "SELECT t.id, u.id AS other FROM t LEFT JOIN u ON CAST(t.s AS INTEGER) = u.id",
        "above": "SELECT count(*) AS n, sum(n) AS total FROM shown",
        "distinct_ones": "SELECT DISTINCT CAST(s AS INTEGER) + 1 AS n FROM t",
    }.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    report = db.verify(state=True)
    assert report.right and not report.undecided, report
    assert report.view("shown").rows == 2 and report.view("shown").quarantined == 2
    db.sql("UPDATE t SET s = '7' WHERE id > 1; FLUSH")
    report = db.verify(state=True)
    assert report.right and not report.undecided and report.view("shown").quarantined == 0


def test_logs_without_old_rows_are_verified_when_all_is_reflected(tmp_path: Path) -> None:
    with everview.open(tmp_path / "store", durability="none", before_images=False) as db:
        db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER); INSERT INTO t VALUES (1, 1), (2, 1)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")
        assert db.verify().right
        db.sql("INSERT INTO t VALUES (3, 1)")
        with pytest.raises(SnapshotExpiredError, match="are not known any more"):
            db.verify()
        db.flush()
        assert db.verify().right
