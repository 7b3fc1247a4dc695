"""Constructs that were once read or planned otherwise than DuckDB does, each as a view under random histories."""

from __future__ import annotations

import pytest

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
