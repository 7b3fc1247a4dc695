"""The fixed settings leave DuckDB's own meaning as it is."""

from math import inf

import pytest

from everview.sql.settings import connect

SHARED = """SELECT * FROM (SELECT l.a AS la, r.b AS rb, r.id AS rid FROM t l LEFT JOIN t r ON l.b = r.id)
            WHERE NOT (rb + 1 < -la)"""


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT 7 / 2, 7 // 2", [(3.5, 3)]),
        ("SELECT 1 / 0, -1.0 / 0, TRY(1 % 0)", [(inf, -inf, None)]),
        ("SELECT x FROM (VALUES (1), (NULL), (2)) AS v(x) ORDER BY x", [(1,), (2,), (None,)]),
        ("SELECT x FROM (VALUES (1), (NULL), (2)) AS v(x) ORDER BY x DESC", [(2,), (1,), (None,)]),
        ("SELECT column_type FROM (DESCRIBE SELECT NULL AS x)", [('"NULL"',)]),
        ("SELECT current_setting('TimeZone')", [("UTC",)]),
    ],
)
def test_a_setting_decides(query: str, answer: list[tuple[object, ...]]) -> None:
    with connect() as connection:
        assert connection.execute(query).fetchall() == answer


def test_parts_of_a_union_that_share_a_subquery_keep_their_columns() -> None:
    """Wrong in DuckDB 2.0.0 with its optimizer of common parts: −1 instead of 0."""
    with connect() as connection:
        connection.execute("CREATE TABLE t (id INT, a INT, b INT)")
        connection.execute("INSERT INTO t VALUES (0, NULL, NULL), (1, 0, 0), (2, 0, 1), (3, NULL, 2), (4, 1, 1)")
        query = f"""SELECT -rb AS x, CAST(NULL AS INT) AS y FROM ({SHARED}) GROUP BY -rb
                    UNION ALL SELECT NULL, -rid FROM ({SHARED}) GROUP BY -rid"""
        shared = sorted(connection.execute(query).fetchall(), key=repr)
        connection.execute("PRAGMA disable_optimizer")
        assert shared == sorted(connection.execute(query).fetchall(), key=repr)
