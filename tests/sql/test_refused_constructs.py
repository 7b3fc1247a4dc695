"""Nothing is read and then forgotten: a part of a query that no stage knows is an error."""

from __future__ import annotations

import pytest
from sqlglot import exp

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.errors import SqlRefusedError
from everview.sql.check import check
from everview.sql.dialects import reader
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.refused_constructs import KNOWN, unknown_parts
from everview.sql.statements import Select

NAMES = Names(
    [
        NamedRelation(name, "table", (Column("a", parse_type("INTEGER")), Column("b", parse_type("INTEGER"))), bag=True)
        for name in ("t", "u")
    ]
)


@pytest.mark.parametrize(
    ("dialect", "text", "part"),
    [
        ("duckdb", "SELECT t.a FROM t JOIN u NEAREST 1 BY DISTANCE abs(t.a - u.a)", "NEAREST of JOIN"),
        ("clickhouse", "SELECT a FROM t ORDER BY a WITH FILL", "WITH FILL of ORDERED"),
        ("clickhouse", "SELECT a FROM t PREWHERE b > 1", "PREWHERE of SELECT"),
        ("oracle", "SELECT a FROM t START WITH a = 1 CONNECT BY PRIOR a = b", "CONNECT of SELECT"),
        ("hive", "SELECT a FROM t DISTRIBUTE BY b", "DISTRIBUTE of SELECT"),
        ("mysql", "SELECT a FROM t USE INDEX (x)", "HINTS of TABLE"),
        ("snowflake", "SELECT t.a FROM t ASOF JOIN u MATCH_CONDITION (t.a >= u.a)", "MATCH CONDITION of JOIN"),
    ],
)
def test_what_no_stage_knows_is_refused_with_its_place(dialect: str, text: str, part: str) -> None:
    tree = reader(dialect).read(text)
    with pytest.raises(SqlRefusedError, match=part):
        check(tree, NAMES, text)


def test_every_part_that_sqlglot_knows_is_listed_or_refused() -> None:
    """Whatever sqlglot puts into a node, now or in a later version, is one or the other."""
    for kind, known in KNOWN.items():
        assert known <= kind.arg_types.keys(), f"{kind.__name__} has no {known - kind.arg_types.keys()}"
        for part in kind.arg_types.keys() - known:
            node = kind(**{part: exp.Literal.number(1)})
            assert (node, part) in list(unknown_parts(node))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC NULLS FIRST LIMIT 3 OFFSET 1",
        "SELECT a, sum(b) FILTER (WHERE b > 1) FROM t GROUP BY ROLLUP (a) HAVING count(*) > 1",
        "WITH r AS MATERIALIZED (SELECT * EXCLUDE (b) FROM t) SELECT * FROM r LEFT JOIN u USING (a)",
        "SELECT sum(a) OVER (PARTITION BY b ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM t",
        "SELECT a FROM t UNION ALL BY NAME SELECT a FROM u ORDER BY 1 LIMIT 50%",
    ],
)
def test_what_stages_know_is_not_refused(text: str) -> None:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    check(statement.query, NAMES, text, words=statement.words)
