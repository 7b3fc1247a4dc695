"""A query in its own words: what DuckDB's parse says it reads, and whether it may be a view."""

from __future__ import annotations

import duckdb
import pytest

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.errors import EverviewError
from everview.sql.namespace import NamedRelation, Names
from everview.sql.own_parse import is_trusted
from everview.sql.parse import parse
from everview.sql.words import worded

INTEGER = parse_type("INTEGER")
T = NamedRelation("t", "table", (Column("a", INTEGER), Column("b", INTEGER)), bag=True)
U = NamedRelation("in0", "table", (Column("a", INTEGER),), bag=True)
NAMED = NamedRelation("named", "named query", (Column("x", INTEGER),), query="SELECT a FROM T WHERE b > 0")
NAMES = Names([T, U, NAMED])


@pytest.mark.parametrize(
    ("words", "uses", "rows"),
    [
        ("SELECT a FROM t", ["t"], [(1,), (2,)]),
        ("FROM main.T SELECT b", ["t"], [(10,), (-1,)]),
        ("WITH t AS (SELECT 7 AS z) SELECT z FROM t", ["t"], [(7,)]),
        ("SELECT x FROM named -- the last line", ["t"], [(1,)]),
        ("SELECT t.a, i.a AS i FROM t, in0 AS i", ["t", "in0"], [(1, 5), (2, 5)]),
        ("VALUES (1), (2)", [], [(1,), (2,)]),
    ],
)
def test_words_are_evaluated_over_inputs_of_any_name(words: str, uses: list[str], rows: list[tuple[int, ...]]) -> None:
    query = worded(words, NAMES, words, 0)
    assert sorted(relation.name for relation in query.uses) == sorted(uses)
    with duckdb.connect() as connection:
        given = {}
        for number, relation in enumerate(query.uses):
            values = "VALUES (1, 10), (2, -1)" if relation is T else "VALUES (5)"
            connection.execute(f"CREATE TABLE source{number} AS FROM ({values})")
            names = ", ".join(f"col{place} AS {column.name}" for place, column in enumerate(relation.columns))
            given[relation.name] = f"SELECT {names} FROM source{number}"
        assert sorted(connection.execute(query.over(given)).fetchall()) == sorted(rows)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("SELECT a FROM nowhere", "there is no table or view nowhere at line 1, column 15"),
        ("SELECT a FROM other.t", "there is no schema other at line 1, column 15"),
        ("SELECT random() FROM t", "random() cannot be part of a view at line 1, column 8"),
        ("SELECT a FROM t USING SAMPLE 5", "sampling cannot be part of a view"),
        ("SELECT a FROM 'x.csv'", "there is no table or view x.csv"),
        ("SELECT * FROM glob('*')", "glob() cannot be read from"),
        ("FROM (DESCRIBE t)", "a view reads tables and views"),
        ("SELECT a FROM", "DuckDB does not read a query in these words"),
        ("SELECT zz FROM t", "the query cannot be evaluated"),
    ],
)
def test_what_can_be_no_view_is_refused_with_its_place(words: str, what: str) -> None:
    with pytest.raises(EverviewError) as error:
        worded(words, NAMES, words, 0)
    assert what in str(error.value)


def test_words_and_what_is_read_in_them_are_compared_with_their_constants() -> None:
    assert is_trusted("SELECT a FROM t WHERE b > 10 AND a = 'x'", "SELECT a FROM t WHERE b > 10 AND a = 'x'")
    assert not is_trusted("SELECT a FROM t WHERE b > 10 AND a = 'x'", "SELECT a FROM t WHERE b > 11 AND a = 'x'")
    assert not is_trusted("SELECT a FROM t WHERE b > 10 AND a = 'x'", "SELECT a FROM t WHERE b > 10 AND a = 'X'")
    assert not is_trusted("SELECT DISTINCT a FROM t WHERE b > 10", "SELECT a FROM t WHERE b > 10")


def test_words_have_their_parameters_filled_in() -> None:
    (statement,) = parse("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE a = ? AND b > ?", params=["it's", -1.5])
    assert statement.words is not None
    assert statement.words.text == "SELECT a FROM t WHERE a = 'it''s' AND b > CAST('-1.5' AS DOUBLE)"
    (statement,) = parse("SELECT {'a': $1}['a'], x[1:2] FROM t", params=[7])
    assert statement.words is not None and statement.words.text == "SELECT {'a': 7}['a'], x[1:2] FROM t"
    (statement,) = parse("SELECT a FROM t WHERE a = :name", params={"name": None})
    assert statement.words is not None and statement.words.text == "SELECT a FROM t WHERE a = NULL"
    (statement,) = parse("SELECT `a` FROM t", dialect="mysql")
    assert statement.words is None
