"""An error in a text of any dialect shows the place in the text as it was written."""

from __future__ import annotations

import pytest

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.errors import EverviewError
from everview.sql.check import check
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.positions import position
from everview.sql.statements import Select

DIALECTS = ["duckdb", "postgres", "risingwave", "spark", "mysql", "sqlite", "tsql", "snowflake", "bigquery"]
DIALECTS += ["oracle", "trino", "redshift", "databricks", "clickhouse"]
COLUMNS = {"id": "BIGINT", "a": "INTEGER", "s": "VARCHAR", "d": "DATE"}
TABLE = NamedRelation("t", "table", tuple(Column(name, parse_type(kind)) for name, kind in COLUMNS.items()), ("id",))

MISTAKES = [
    # names
    ("SELECT id,\n  nope FROM t", "nope"),
    ("SELECT id FROM t\nWHERE a > 1 AND nope = 2", "nope"),
    ("SELECT id FROM t AS q\nWHERE q.nope = 2", "nope"),
    ("SELECT id\nFROM nowhere", "nowhere"),
    ("SELECT id,\n  frobnicate(a) AS f FROM t", "frobnicate"),
    ("SELECT id FROM t WHERE a = 1\n AND frobnicate('x', 7) = 1", "frobnicate"),
    ("SELECT id FROM t ORDER BY\n nope", "nope"),
    # types
    ("SELECT id,\n  a, upper(d) AS u FROM t", "upper"),
    ("SELECT id,\n  a / d AS q FROM t", "a / d|/ d"),
    ("SELECT id FROM t\nWHERE a = 1 AND\n d > 5", "d > 5"),
    ("SELECT CASE WHEN id = 1 THEN a END AS c,\n coalesce(a, d) AS x FROM t", "coalesce"),
    ("SELECT id FROM t\nLIMIT 'x'", "'x'"),
    # groups and subqueries
    ("SELECT s,\n  count(*) AS c FROM t GROUP BY a", "s,"),
    ("SELECT 1 AS one,\n sum(a) AS b FROM t WHERE\n sum(id) > 2", "sum(id)"),
    ("SELECT id FROM t\n WHERE a IN (SELECT id, a FROM t)", "a IN"),
    # volatile functions
    ("SELECT id FROM t WHERE id > 3 AND\n  d < current_date", "current_date"),
    ("SELECT id,\n  current_timestamp AS n FROM t", "current_timestamp"),
    # syntax
    ("SELECT id FROM t\nWHERE a = = 2", "= 2"),
    ("SELECT id\nFROM t WHERE a IN (1, 2", None),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("text", "part"), MISTAKES)
def test_a_mistake_is_shown_where_it_stands(dialect: str, text: str, part: str | None) -> None:
    with pytest.raises(EverviewError) as raised:
        (statement,) = parse(text, dialect)
        assert isinstance(statement, Select)
        check(statement.query, Names([TABLE]), statement.source)
    parts = [len(text)] if part is None else [text.index(one) for one in part.split("|")]
    first = str(raised.value).partition("\n")[0]
    assert any(first.endswith(f"at {position(text, offset)}") for offset in parts), first


@pytest.mark.parametrize(
    ("dialect", "text", "part"),
    [
        ("postgres", "SELECT id,\n  s ~ '(?=x)y' AS m FROM t", "s ~"),
        ("postgres", "SELECT id,\n  to_char(d, 'Month') AS m FROM t", "to_char"),
        ("postgres", "SELECT id FROM t WHERE\n  s SIMILAR TO s", "s SIMILAR"),
        ("postgres", "SELECT id,\n  s::char(3) AS c FROM t", "s::char"),
        ("tsql", "SELECT id FROM t\nWHERE s LIKE '[a-c]%'", "s LIKE"),
        ("sqlite", "SELECT id,\n  date(s, '+1 day') AS n FROM t", "date("),
        ("sqlite", "SELECT id,\n  typeof(a) AS k FROM t", "typeof"),
        ("oracle", "SELECT id FROM t\nWHERE s = ''", "''"),
        ("mysql", "SELECT q.id FROM t q JOIN t r\nUSING (s)", "s)"),
    ],
)
def test_what_has_no_counterpart_is_refused_where_it_stands(dialect: str, text: str, part: str) -> None:
    with pytest.raises(EverviewError) as raised:
        (statement,) = parse(text, dialect)
        assert isinstance(statement, Select)
        check(statement.query, Names([TABLE]), statement.source)
    assert f"at {position(text, text.index(part))}" in str(raised.value).partition("\n")[0]
    assert raised.value.hint
