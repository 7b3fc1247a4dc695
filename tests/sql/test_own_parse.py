"""DuckDB's own parse of two texts: the same where they mean the same, another where they do not."""

from __future__ import annotations

import pytest

from everview.sql.own_parse import parse_tree, same_reading

SAME = [
    ("SELECT A::text FROM T WHERE b NOT LIKE 'x'", 'SELECT CAST(a AS VARCHAR) FROM t WHERE NOT "b" LIKE \'x\''),
    ("SELECT a FROM t WHERE b IS NOT NULL", "SELECT a FROM t WHERE NOT b IS NULL"),
    ("SELECT - + 5, +a, -(-67), 1_000, .5", "SELECT -5, a, 67, 1000, 0.5"),
    ("SELECT list(a), mean(b) FROM t", "SELECT array_agg(a), avg(b) FROM t"),
    ("SELECT a::varchar(10), b::decimal, c::int4", "SELECT a::text, b::decimal(18, 3), c::INTEGER"),
    ("SELECT INTERVAL '1 day', INTERVAL 2 HOUR", "SELECT INTERVAL 1 DAY, INTERVAL '2' HOURS"),
    ("SELECT extract(dow FROM d)", "SELECT date_part('dayofweek', d)"),
    ("FROM t, unnest(l)", "SELECT * FROM t JOIN unnest(l) ON TRUE"),
    ("WITH r AS (VALUES (1)) FROM r", "WITH r AS (SELECT * FROM (VALUES (1)) AS _values) SELECT * FROM r"),
    ("SELECT if(a, b, c)", "SELECT CASE WHEN a THEN b ELSE c END"),
    ("SELECT CASE WHEN a THEN b ELSE NULL END", "SELECT CASE WHEN a THEN b END"),
    ("SELECT x'1F', ARRAY[1, 2]", "SELECT unhex('1F'), [1, 2]"),
    ("SELECT a FROM t ORDER BY a ASC NULLS LAST", "SELECT a FROM t ORDER BY a"),
]  # fmt: skip

DIFFERENT = [
    ("SELECT str[1] FROM t", "SELECT TEXT[1] FROM t"),
    ("SELECT * LIKE 'a%' FROM t", "SELECT a LIKE 'a%' FROM t"),
    ("FROM t JOIN e NEAREST 1 BY DISTANCE t.a", "FROM t JOIN e ON TRUE"),
    ("SELECT a FROM t ORDER BY a DESC NULLS FIRST", "SELECT a FROM t ORDER BY a DESC"),
    ("SELECT a FROM t LIMIT 10%", "SELECT a FROM t LIMIT 10"),
    ("SELECT 'A' = a FROM t", "SELECT 'a' = a FROM t"),
    ("SELECT count(DISTINCT a) FROM t", "SELECT count(a) FROM t"),
    ("SELECT a FROM t LEFT JOIN u USING (k)", "SELECT a FROM t JOIN u USING (k)"),
    ("SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING) FROM t", "SELECT sum(a) OVER (ORDER BY b) FROM t"),
    ("SELECT a FROM t UNION ALL SELECT b FROM t", "SELECT a FROM t UNION SELECT b FROM t"),
    ("SELECT a::INTEGER FROM t", "SELECT try_cast(a AS INTEGER) FROM t"),
]


@pytest.mark.parametrize(("words", "rendered"), SAME)
def test_texts_that_mean_the_same_have_one_reading(words: str, rendered: str) -> None:
    assert same_reading(words, rendered)


@pytest.mark.parametrize(("words", "rendered"), DIFFERENT)
def test_texts_that_mean_something_else_have_another(words: str, rendered: str) -> None:
    assert parse_tree(words) is not None and parse_tree(rendered) is not None
    assert not same_reading(words, rendered)


def test_what_duckdb_cannot_read_has_no_tree() -> None:
    assert parse_tree("SELECT a FROM t ORDER BY a LIMIT 3 WITH TIES") is None
    assert parse_tree("SELECT 1; SELECT 2") is None
