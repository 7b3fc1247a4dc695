"""Constructs that were once read or planned otherwise than DuckDB does, each as a view under random histories."""

from __future__ import annotations

import pytest

from everview.sql.dialects import to_sql
from everview.sql.parse import parse
from everview.sql.statements import Select
from tests.oracle.schemas import VALUES, Table
from tests.oracle.verdicts import verdict

FEW = VALUES | {"INTEGER": ("0", "1", "2", "3"), "VARCHAR": ("''", "'p'", "'q'", "'1'")}
TABLES = (
    Table("t", (("id", "INTEGER"), ("a", "INTEGER"), ("b", "INTEGER")), ("id",)),
    Table("e", (("id", "INTEGER"), ("a", "INTEGER"), ("c", "INTEGER"), ("s", "VARCHAR")), ("id",)),
)


def hold(query: str, seeds: int = 3) -> None:
    """A view of the query is what DuckDB answers, after every epoch."""
    for seed in range(seeds):
        found = verdict(TABLES, query, seed, FEW)
        assert found.kind == "right", f"{found.kind}: {query}\n{found.said}"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT EXISTS (SELECT a FROM t WHERE a > MIN(o.a)) AS x FROM t AS o",
        "SELECT MIN(o.a) > ANY (SELECT a FROM t WHERE a > MIN(o.a)) AS x FROM t AS o",
        "SELECT (SELECT SUM(a) + SUM(o.b) FROM t) AS x FROM t AS o",
        "SELECT 1 IN (SELECT (SELECT MAX(a))) AS x FROM t",
        "SELECT (SELECT MAX(o.a) FROM e LIMIT 1) AS x FROM t AS o",
        "SELECT (SELECT MAX(o.a + e.c) FROM e) AS x FROM t AS o",
        "SELECT (SELECT SUM(o.a) FILTER (WHERE e.c > 1) FROM e) AS x FROM t AS o",
        "SELECT (SELECT SUM(e.c) FILTER (WHERE o.a > 1) FROM e) AS x FROM t AS o",
        "SELECT (SELECT SUM(o.a) FILTER (WHERE o.b > 1) FROM e LIMIT 1) AS x FROM t AS o",
        "SELECT (SELECT LIST(o.a ORDER BY o.id) FROM e LIMIT 1) AS x FROM t AS o",
        "SELECT (SELECT LIST(o.a ORDER BY e.c) FROM e) AS x FROM t AS o",
        "SELECT (SELECT (SELECT MAX(o.a) FROM e LIMIT 1) FROM e LIMIT 1) AS x FROM t AS o",
        "SELECT (SELECT (SELECT MAX(f.a)) FROM e AS f) AS x FROM t AS o",
        "SELECT (SELECT SUM(o.a) OVER () FROM e LIMIT 1) AS x FROM t AS o",
        "SELECT (SELECT SUM(MAX(o.a)) OVER () FROM e LIMIT 1) AS x FROM t AS o",
        "SELECT SUM((SELECT MAX(o.a))) OVER () AS x FROM t AS o",
        "SELECT (SELECT x FROM (SELECT MAX(o.a) AS x) AS q) AS x FROM t AS o",
        "SELECT (SELECT MAX((SELECT o.a)) FROM e LIMIT 1) AS x FROM t AS o",
        "SELECT (SELECT COUNT(*) FROM e WHERE e.a = o.a) AS x FROM t AS o",
        "SELECT ARRAY(SELECT MAX(o.a) FROM e) AS x FROM t AS o",
        "SELECT b FROM t AS o GROUP BY b HAVING EXISTS (SELECT 1 FROM e WHERE MAX(o.a) > e.c)",
        "SELECT b FROM t AS o GROUP BY b HAVING MAX(a) NOT IN (SELECT c FROM e WHERE e.a = MIN(o.a))",
        "SELECT b, MAX(a) > ALL (SELECT c FROM e WHERE e.a = MIN(o.a)) AS x FROM t AS o GROUP BY b",
        "SELECT b, (SELECT SUM(c) FROM e WHERE e.a = MAX(o.a)) AS x, SUM(a) AS y FROM t AS o GROUP BY b",
        "SELECT b FROM t AS o GROUP BY b ORDER BY (SELECT MAX(o.a)), b LIMIT 2",
        "SELECT b, row_number() OVER (ORDER BY (SELECT MAX(o.a)), b) AS x FROM t AS o GROUP BY b",
        "SELECT b, (SELECT MAX(o.a)) AS x FROM t AS o GROUP BY ALL",
        "SELECT a, (SELECT MAX(o.b) FROM e LIMIT 1) AS x FROM t AS o GROUP BY ROLLUP (a)",
        "SELECT e.id, (SELECT (SELECT SUM(o.a) FROM e AS f LIMIT 1) FROM t AS o WHERE o.b = e.c) AS x FROM e",
        "SELECT e.id FROM e WHERE e.c = (SELECT (SELECT MAX(o.a)) FROM t AS o WHERE o.b = e.a)",
    ],
)
def test_aggregates_belong_to_the_query_whose_columns_they_read(query: str) -> None:
    hold(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS one FROM t GROUP BY ALL",
        "SELECT 1 AS one, MAX(a) AS x FROM t GROUP BY ALL",
        "SELECT 1 AS one FROM t GROUP BY ALL HAVING COUNT(*) > 2",
        "SELECT e.id, (SELECT SUM(o.a) + (SELECT MAX(c) FROM e AS f) FROM t AS o WHERE o.b = e.c) AS x FROM e",
    ],
)
def test_groups_of_constants_and_values_beside_aggregates(query: str) -> None:
    hold(query)


SIDES = (
    Table("l", (("id", "INTEGER"), ("k", "INTEGER"), ("x", "INTEGER")), ("id",)),
    Table("r", (("id", "INTEGER"), ("k", "INTEGER"), ("y", "INTEGER")), ("id",)),
)
R = "(SELECT * FROM r QUALIFY row_number() OVER (PARTITION BY k, y ORDER BY id) = 1)"
"""One row for each moment: of several DuckDB takes any."""
BOTH = "l.id, r.id AS rid, l.k, r.k AS rk, l.x, r.y"
CONDITIONS = (
    "l.k = r.k AND l.x >= r.y",
    "l.k = r.k AND l.x > r.y",
    "r.k = l.k AND l.x <= r.y",
    "l.k IS NOT DISTINCT FROM r.k AND r.y > l.x",
    "l.k + 1 = r.k AND l.x * 2 >= r.y + 1",
)


def hold_as_of(query: str, plain: str | None = None) -> None:
    for seed in range(3):
        found = verdict(SIDES, query, seed, FEW, plain)
        assert found.kind == "right", f"{found.kind}: {query}\n{found.said}"


@pytest.mark.parametrize("on", [*CONDITIONS, "l.k = r.k AND l.x >= r.y AND r.id <> l.id"])
@pytest.mark.parametrize("kind", ["", "LEFT", "SEMI", "ANTI"])
def test_as_of_joins_mind_nulls(kind: str, on: str) -> None:
    hold_as_of(f"SELECT {'l.id' if kind in ('SEMI', 'ANTI') else BOTH} FROM l ASOF {kind} JOIN {R} AS r ON {on}")


@pytest.mark.parametrize("kind", ["", "LEFT", "SEMI", "ANTI"])
def test_as_of_joins_with_using(kind: str) -> None:
    right = "(SELECT id AS rid, k, y AS x FROM r QUALIFY row_number() OVER (PARTITION BY k, y ORDER BY id) = 1)"
    hold_as_of(f"SELECT * FROM l ASOF {kind} JOIN {right} AS r USING (k, x)")


@pytest.mark.parametrize("on", CONDITIONS)
@pytest.mark.parametrize("kind", ["RIGHT", "FULL"])
def test_as_of_joins_keep_right_rows_without_a_match(kind: str, on: str) -> None:
    """DuckDB is asked in other words: it does not return from these where no row finds a match."""
    outer = "LEFT" if kind == "FULL" else ""
    hold_as_of(
        f"SELECT {BOTH} FROM l ASOF {kind} JOIN {R} AS r ON {on}",
        f"SELECT {BOTH} FROM l ASOF {outer} JOIN {R} AS r ON {on} UNION ALL SELECT NULL, r.id, NULL, r.k, NULL, r.y"
        f" FROM {R} AS r WHERE r.id NOT IN (SELECT r.id FROM l ASOF JOIN {R} AS r ON {on})",
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT a, b FROM t ORDER BY b) AS q(x, y)",
        "SELECT * FROM (SELECT a, b FROM t ORDER BY a, b LIMIT 2 OFFSET 1) AS q(x, y)",
        "SELECT * FROM (SELECT a AS b, b AS a FROM t ORDER BY a, b LIMIT 3) AS q(x, y)",
        "SELECT * FROM (SELECT *, -a AS b FROM t ORDER BY b, id LIMIT 3) AS q(x, y, z, w)",
        "SELECT * FROM (SELECT DISTINCT a, b FROM t ORDER BY a, b) AS q(x, y)",
        "SELECT * FROM (SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b) AS q(x, y)",
        "SELECT * FROM (SELECT a, b FROM t UNION SELECT a, c FROM e ORDER BY a, b LIMIT 2) AS q(x, y)",
        "SELECT * FROM ((SELECT a FROM t ORDER BY a, id LIMIT 2) UNION ALL (SELECT c FROM e LIMIT 0)) AS q(x)",
        "SELECT * FROM (VALUES (1, 2), (3, 4) ORDER BY 1 LIMIT 1) AS q(x, y)",
        "SELECT * FROM (SELECT * FROM (SELECT a, b FROM t ORDER BY b) AS q(x, y) ORDER BY y) AS p(u, v)",
        "WITH q(x, y) AS (SELECT a, b FROM t ORDER BY a, b LIMIT 2) SELECT x FROM q",
        "WITH q(x) AS (SELECT a, b FROM t ORDER BY a, b LIMIT 2) SELECT * FROM q AS w(u, v)",
        "SELECT (SELECT MAX(x) FROM (SELECT a, b FROM t ORDER BY b) AS q(x, y) WHERE y = e.c) AS m FROM e",
        "VALUES (1, 2), (3, 4) ORDER BY 1 LIMIT 1",
    ],
)
def test_column_lists_over_queries_with_an_order(query: str) -> None:
    hold(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT -a AS a FROM t ORDER BY a, id LIMIT 3",
        "SELECT -a AS a FROM t ORDER BY a + 0, id LIMIT 3",
        "SELECT * FROM (SELECT a AS b, b AS a FROM t ORDER BY a + 0, b + 0, id LIMIT 3) AS q",
        "SELECT DISTINCT -a AS a FROM t ORDER BY a + 0 LIMIT 3",
        "SELECT a AS x, b AS y FROM t ORDER BY x + y, id LIMIT 3",
    ],
)
def test_in_expressions_of_order_by_columns_go_before_what_is_shown(query: str) -> None:
    hold(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * LIKE 'a%' FROM t",
        "SELECT * NOT LIKE 'a%' FROM t",
        "SELECT * SIMILAR TO 'a|b' FROM t",
        "SELECT * NOT GLOB 'i*' FROM t",
        "SELECT * EXCLUDE (a) LIKE 'b%' FROM t",
        "SELECT t.* LIKE 'i%', e.* EXCLUDE (id) LIKE '%' FROM t JOIN e USING (id)",
        "SELECT id FROM t WHERE COLUMNS(*) > 1",
        "SELECT id FROM t WHERE COLUMNS('a|b') IS NOT NULL",
        "SELECT MAX(COLUMNS(* EXCLUDE (id))) FROM t",
        "SELECT alias(a) AS x, upper(alias(b)) AS y FROM t",
        "SELECT t.id, e.id AS eid FROM t JOIN e NEAREST 1 BY DISTANCE abs(t.id - e.id) + e.id / 100.0",
        "SELECT COUNT(*) AS n FROM t LEFT JOIN e NEAREST 2 BY DISTANCE abs(t.id - e.id) + e.id / 100.0",
        "SELECT id FROM t WHERE (a > b) IS UNKNOWN",
        "SELECT regr_count(DISTINCT a, b) AS n, corr(DISTINCT a, b) IS NULL AS c FROM t",
        "WITH RECURSIVE q(k, v) USING KEY (k, max(v)) AS (SELECT a, id FROM t UNION SELECT k, v + 1 FROM q WHERE v < 5)"
        " SELECT * FROM q",
        "WITH RECURSIVE q(k, v) USING KEY (k, arg_min(v, v)) AS"
        " (SELECT a, id FROM t UNION SELECT k, v + 1 FROM q WHERE v < 5) SELECT * FROM q",
    ],
)
def test_what_duckdb_reads_is_read_as_duckdb_reads_it(query: str) -> None:
    hold(query)


RANKED = "SELECT a FROM t QUALIFY rank() OVER (ORDER BY a) <= 2"


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES", RANKED),
        ("SELECT a FROM t ORDER BY a LIMIT 2 WITH TIES", RANKED),
        (
            "SELECT a FROM t ORDER BY a OFFSET 1 ROWS FETCH NEXT 2 ROWS WITH TIES",
            "SELECT a FROM t QUALIFY rank() OVER (ORDER BY a) <= 3 AND row_number() OVER (ORDER BY a) > 1",
        ),
        (
            "WITH q AS (SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES) SELECT COUNT(*) AS n FROM q",
            f"SELECT COUNT(*) AS n FROM ({RANKED})",
        ),
        (
            "SELECT id FROM e WHERE a IN (SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES)",
            f"SELECT id FROM e WHERE a IN ({RANKED})",
        ),
    ],
)
def test_ties_stay(query: str, plain: str) -> None:
    for seed in range(3):
        found = verdict(TABLES, query, seed, FEW, plain)
        assert found.kind == "right", f"{found.kind}: {query}\n{found.said}"
        (statement,) = parse(query)
        assert isinstance(statement, Select)
        assert verdict(TABLES, to_sql(statement.query), seed, FEW, plain).kind == "right", "as it is recorded"


@pytest.mark.parametrize(
    "condition",
    ["0", "a", "1.5", "NULL", "NOT a", "a AND 1", "a OR FALSE", "1 AND b", "a - 1 AND b", "(SELECT MAX(a) FROM t)"],
)
def test_conditions_that_are_no_boolean(condition: str) -> None:
    hold(f"SELECT id FROM t WHERE {condition}")
    if "SELECT" not in condition:
        hold(f"SELECT t.id FROM t LEFT JOIN e ON t.id = e.id AND {condition.replace('a', 't.a')}", seeds=1)
        hold(f"SELECT SUM(a) FILTER (WHERE {condition}) AS n FROM t", seeds=1)
        hold(f"SELECT id, a, b FROM t QUALIFY row_number() OVER (ORDER BY id) > 1 AND {condition}", seeds=1)
