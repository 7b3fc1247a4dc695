"""Texts and the statements they become. What each statement prints stands in tests/scripts/sql."""

from __future__ import annotations

import datetime
import decimal
import math
import pickle
import uuid
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from everview.change.schema import Column, Schema
from everview.change.types import INTEGER, VARCHAR
from everview.errors import (
    DefinitionError,
    EverviewError,
    InputError,
    SqlError,
    SqlRefusedError,
    SqlSyntaxError,
    ValueTypeError,
)
from everview.sql.dialects import reader, to_sql
from everview.sql.namespace import Names
from everview.sql.parse import parse
from everview.sql.positions import excerpt, position, position_of
from everview.sql.settings import connect
from everview.sql.statements import (
    CreateMaterializedView,
    CreateTable,
    CreateView,
    Delete,
    Flush,
    Insert,
    Select,
    SetDialect,
    Statement,
    Update,
)
from everview.sql.typed_meanings import with_types


def only(text: str, dialect: str = "duckdb", params: Any = None) -> Statement:
    (found,) = parse(text, dialect, params)
    return found


def query(text: str, dialect: str = "duckdb", params: Any = None) -> exp.Expr:
    found = only(text, dialect, params)
    assert isinstance(found, Select)
    return found.query


# ------------------------------------------------------------------ statements


def test_a_text_of_nothing_has_no_statements() -> None:
    assert parse("") == parse(" ;; ") == parse("-- only a comment\n") == parse("/* x */ ;") == ()


def test_each_statement_keeps_its_text_and_place() -> None:
    text = "SELECT 1 ;\n  FLUSH;\nCREATE TABLE t (\n a INT) -- done"
    found = parse(text)
    assert [statement.text for statement in found] == ["SELECT 1", "FLUSH", "CREATE TABLE t (\n a INT)"]
    assert [(statement.at.line, statement.at.column) for statement in found] == [(1, 1), (2, 3), (3, 1)]
    assert {statement.source for statement in found} == {text}


def test_statements_are_equal_if_they_say_the_same() -> None:
    assert only("select  a from T") == only("\n SELECT a FROM T -- x")
    assert only("SELECT a") != only("SELECT b")
    assert parse("FLUSH") == (Flush(),)
    assert len({*parse("FLUSH; flush; SELECT 1")}) == 2


def test_a_table_with_a_key_has_a_schema_and_one_without_hides_its_key() -> None:
    keyed = only("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)")
    assert isinstance(keyed, CreateTable) and not keyed.hidden_key
    assert keyed.schema == Schema((Column("a", INTEGER, nullable=False), Column("b", VARCHAR)), ("a",))
    bag = only("CREATE TABLE t (a INT)")
    assert isinstance(bag, CreateTable) and bag.hidden_key


def test_statements_check_themselves() -> None:
    tree = exp.select("a")
    with pytest.raises(DefinitionError, match="needs a column"):
        CreateTable("t", ())
    with pytest.raises(DefinitionError, match="NOT NULL"):
        CreateTable("t", (Column("a", INTEGER),), ("a",))
    with pytest.raises(DefinitionError, match="both replaced and kept"):
        CreateView("v", tree, or_replace=True, if_not_exists=True)
    with pytest.raises(DefinitionError, match="twice"):
        Insert("t", ("a", "A"), tree)
    with pytest.raises(DefinitionError, match="twice"):
        Update("t", (("a", tree), ("A", tree)))


def test_rows_of_values_are_expressions() -> None:
    found = only("INSERT INTO t VALUES (1, a + 1), (2, 'x')")
    assert isinstance(found, Insert) and found.values is not None
    assert [[to_sql(value) for value in row] for row in found.values] == [["1", "a + 1"], ["2", "'x'"]]
    selected = only("INSERT INTO t SELECT 1")
    assert isinstance(selected, Insert) and selected.values is None


def test_trees_stand_alone() -> None:
    view = only("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    update = only("UPDATE t SET a = b + 1 WHERE c")
    delete = only("DELETE FROM t WHERE c > 1")
    assert isinstance(view, CreateMaterializedView) and isinstance(update, Update) and isinstance(delete, Delete)
    assert update.where is not None and delete.where is not None
    for tree in (view.query, update.where, update.assignments[0][1], delete.where):
        assert tree.parent is None


def test_comments_do_not_reach_the_tree() -> None:
    assert query("SELECT /* a */ a -- b\n FROM t /* sqlglot.meta x=1 */") == query("SELECT a FROM t")
    assert to_sql(query("SELECT a /* c */ FROM t")) == "SELECT a FROM t"


# ------------------------------------------------------------------ meaning


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


@pytest.mark.parametrize(
    ("dialect", "text", "expected"),
    [
        ("duckdb", "SELECT 7 / 2", [(3.5,)]),
        ("duckdb", "SELECT 1 / 0", [(float("inf"),)]),
        ("postgres", "SELECT 7 / 2", [(3,)]),
        ("mysql", "SELECT 7 / 2", [(3.5,)]),
        ("mysql", "SELECT 7 DIV 2", [(3,)]),
        ("bigquery", "SELECT 7 / 2", [(3.5,)]),
        ("duckdb", "SELECT x FROM (VALUES (1), (NULL), (2)) t(x) ORDER BY x", [(1,), (2,), (None,)]),
        ("duckdb", "SELECT x FROM (VALUES (1), (NULL), (2)) t(x) ORDER BY x DESC", [(2,), (1,), (None,)]),
        ("duckdb", "SELECT x FROM (VALUES (1), (NULL), (2)) t(x) ORDER BY x DESC NULLS FIRST", [(None,), (2,), (1,)]),
        ("spark", "SELECT x FROM VALUES (1), (NULL), (2) AS t(x) ORDER BY x", [(None,), (1,), (2,)]),
        ("spark", "SELECT x FROM VALUES (1), (NULL), (2) AS t(x) ORDER BY x DESC", [(2,), (1,), (None,)]),
        ("postgres", "SELECT x FROM (VALUES (1), (NULL)) AS t(x) ORDER BY x DESC", [(None,), (1,)]),
        ("mysql", "SELECT 'it\\'s', \"x\"", [("it's", "x")]),
        ("mysql", "SELECT DAYOFWEEK(DATE '2024-01-07'), WEEKDAY(DATE '2024-01-07')", [(1, 6)]),
        ("spark", "SELECT dayofweek(DATE '2024-01-07'), weekday(DATE '2024-01-07')", [(1, 6)]),
        ("bigquery", "SELECT EXTRACT(DAYOFWEEK FROM DATE '2024-01-07')", [(1,)]),
        ("snowflake", "SELECT DAYOFWEEK(DATE '2024-01-07')", [(0,)]),
        ("mysql", "SELECT LENGTH('é'), CHAR_LENGTH('é')", [(2, 1)]),
        ("tsql", "SELECT LEN('ab  ')", [(2,)]),
        ("sqlite", "SELECT 'abc' LIKE 'A%'", [(True,)]),
        ("oracle", "SELECT GREATEST(1, NULL), 'a' || NULL, NULL || NULL", [(None, "a", None)]),
        ("spark", "SELECT array(1, 2)[0], concat('a', NULL)", [(1, None)]),
        ("tsql", "SELECT TOP 1 x FROM (VALUES (3), (4)) AS t(x) ORDER BY x", [(3,)]),
    ],
)
def test_every_dialect_means_what_it_means_there(
    engine: duckdb.DuckDBPyConnection, dialect: str, text: str, expected: list[tuple[object, ...]]
) -> None:
    meant = with_types(query(text, dialect), Names([]), text)
    assert engine.execute(to_sql(meant)).fetchall() == expected


@pytest.mark.parametrize(
    ("dialect", "text", "place"),
    [("oracle", "SELECT a,\n'' FROM t", (2, 1)), ("tsql", "SELECT a\nFROM t WHERE a LIKE '[x]%'", (2, 14))],
)
def test_what_a_dialect_means_and_duckdb_cannot_is_refused(dialect: str, text: str, place: tuple[int, int]) -> None:
    with pytest.raises(SqlRefusedError) as raised:
        parse(text, dialect)
    assert (raised.value.line, raised.value.column) == place
    assert raised.value.hint


def test_set_dialect_holds_for_the_rest_of_the_text() -> None:
    text = 'SELECT "a"; SET dialect = \'mysql\'; SELECT `a`; SET dialect = duckdb; SELECT "a"'
    found = parse(text)
    assert [type(statement) for statement in found] == [Select, SetDialect, Select, SetDialect, Select]
    assert found[0] == found[2] == found[4]
    with pytest.raises(SqlError):
        parse("SELECT \"a\"; SELECT `a; SET dialect = 'mysql'; SELECT 1")


def test_an_unknown_dialect_is_named_with_the_nearest() -> None:
    with pytest.raises(DefinitionError, match="no dialect postgre") as caught:
        parse("SELECT 1", "postgre")
    assert caught.value.hint == "did you mean postgres?"
    assert parse("SELECT 1", " DuckDB ") == parse("SELECT 1")


# ------------------------------------------------------------------ positions


@pytest.mark.parametrize(
    "dialect",
    ["duckdb", "postgres", "mysql", "spark", "bigquery", "snowflake", "tsql", "sqlite", "clickhouse", "oracle"],
)
def test_names_stand_where_the_original_text_has_them(dialect: str) -> None:
    text = "SELECT a.x,\n  COALESCE(b.y, a.y) AS z, SUM(x)\nFROM t a JOIN u b ON a.k = b.k\nWHERE a.x > 5 GROUP BY z"
    tree = query(text, dialect)
    names = list(tree.find_all(exp.Identifier))
    assert len(names) > 10
    for name in names:
        start = name.meta["start"]
        assert text[start : start + len(name.name)] == name.name
    offsets = [name.meta["start"] for name in names]
    assert len(set(offsets)) == len(offsets)


def test_names_that_a_translation_uses_twice_stand_where_they_came_from() -> None:
    text = "SELECT collect_list(x),\n       collect_list(y) FROM t"
    places = {(name.name, name.meta["start"]) for name in query(text, "spark").find_all(exp.Identifier)}
    assert places == {("x", text.index("x)")), ("y", text.index("y)")), ("t", text.rindex("t"))}


def test_a_node_stands_at_its_first_part() -> None:
    text = "SELECT\n  a + foo(b) FROM t"
    tree = query(text)
    assert str(position_of(tree.expressions[0], text)) == "line 2, column 3"
    call = tree.find(exp.Anonymous)
    assert call is not None and str(position_of(call, text)) == "line 2, column 7"


@given(text=st.text(max_size=80), offset=st.integers(-3, 90), width=st.integers(0, 20))
def test_every_offset_has_a_position_and_an_excerpt(text: str, offset: int, width: int) -> None:
    at = position(text, offset)
    lines = text.split("\n")
    assert 1 <= at.line <= len(lines) and 1 <= at.column <= len(lines[at.line - 1]) + 1
    assert "^" in excerpt(text, offset, width).splitlines()[-1]


def test_an_error_survives_pickling_with_its_place() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse("SELECT a\nFROM t WHERE (b")
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.line, copied.column, copied.message) == (2, 16, caught.value.message)


# ------------------------------------------------------------------ parameters

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**127), 2**128 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.binary(max_size=20)
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=5)
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(datetime.UTC))
    | st.times()
    | st.timedeltas(datetime.timedelta(-10000), datetime.timedelta(10000))
    | st.uuids()
)


@given(value=SCALARS)
@settings(max_examples=300)
def test_a_parameter_is_its_value(engine: duckdb.DuckDBPyConnection, value: object) -> None:
    row = engine.execute(to_sql(query("SELECT ?", params=[value]))).fetchone()
    assert row is not None
    assert row[0] == value and (value is None or isinstance(row[0], type(value)))
    if isinstance(value, float):
        assert math.copysign(1, row[0]) == math.copysign(1, value)


@given(value=SCALARS, dialect=st.sampled_from(["mysql", "spark", "postgres", "bigquery"]))
@settings(max_examples=100)
def test_a_parameter_is_its_value_in_every_dialect(
    engine: duckdb.DuckDBPyConnection, value: object, dialect: str
) -> None:
    row = engine.execute(to_sql(query("SELECT ?", dialect, params=[value]))).fetchone()
    assert row is not None and row[0] == value


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (5, "INTEGER"),
        (np.int64(5), "INTEGER"),
        (2**40, "BIGINT"),
        (0.1, "DOUBLE"),
        (np.float32(0.5), "DOUBLE"),
        (np.True_, "BOOLEAN"),
        (decimal.Decimal("1.50"), "DECIMAL(3,2)"),
        (decimal.Decimal("1E3"), "DECIMAL(4,0)"),
        (b"\x00\xff", "BLOB"),
        (uuid.UUID(int=5), "UUID"),
        (datetime.date(1, 1, 1), "DATE"),
        (datetime.timedelta(seconds=-1), "INTERVAL"),
        ([1, None], "INTEGER[]"),
        (("a",), "VARCHAR[]"),
        ({"a b": 0.5, "c": [1]}, 'STRUCT("a b" DOUBLE, c INTEGER[])'),
        (datetime.time(1, tzinfo=datetime.UTC), "TIME WITH TIME ZONE"),
    ],
)
def test_a_parameter_has_the_type_of_its_value(engine: duckdb.DuckDBPyConnection, value: object, type: str) -> None:
    assert engine.execute(to_sql(query("SELECT typeof(?)", params=[value]))).fetchone() == (type,)


@pytest.mark.parametrize("expression", ["- $1", "5 - $1", "$1 ** 2", "$1::VARCHAR", "[1, 2][$1 + 4]", "-(-$1)"])
def test_a_negative_number_binds_as_one_value(engine: duckdb.DuckDBPyConnection, expression: str) -> None:
    wanted = engine.execute(f"SELECT {expression.replace('$1', '(-3)')}").fetchall()
    assert engine.execute(to_sql(query(f"SELECT {expression}", params=[-3]))).fetchall() == wanted


def test_text_that_looks_like_sql_stays_text() -> None:
    tree = query("SELECT a FROM t WHERE b = ?", params=["'; DROP TABLE t; --"])
    literal = tree.find(exp.Literal)
    assert literal is not None and literal.name == "'; DROP TABLE t; --"


@pytest.mark.parametrize(
    "value",
    [
        *[object(), {1, 2}, {}, {1: 2}, [object()], 1j, "\ud800"],
        *[decimal.Decimal("NaN"), decimal.Decimal("1E39"), datetime.time(1, tzinfo=ZoneInfo("Europe/Rome"))],
    ],
)
def test_a_value_without_a_type_is_refused(value: object) -> None:
    with pytest.raises(ValueTypeError, match="cannot be used"):
        parse("SELECT ?", params=[value])


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(EverviewError, match="nested"):
        parse("SELECT ?", params=[value])


def test_parameters_are_numbered_over_the_whole_text() -> None:
    first, second = parse("SELECT ?, ?; SELECT ?", params=["a", "b", "c"])
    assert (first, second) == parse("SELECT 'a', 'b'; SELECT 'c'")
    with pytest.raises(InputError, match="parameter 4 is given"):
        parse("SELECT ?, ?; SELECT ?", params=["a", "b", "c", "d"])


def test_names_of_parameters_are_any_names() -> None:
    assert query("SELECT :é, $select, :a", params={"é": 1, "select": 2, "a": 3}) == query("SELECT 1, 2, 3")


def test_marks_of_other_libraries_are_refused() -> None:
    with pytest.raises(SqlError, match=r"written \?, \$1 or :name"):
        parse("SELECT %s", "postgres", params=[1])


def test_positions_of_parameters_are_those_of_their_marks() -> None:
    text = "SELECT a FROM t\nWHERE b = :name"
    value = query(text, params={"name": 5}).find(exp.Literal)
    assert value is not None and str(position_of(value, text)) == "line 2, column 11"


def test_readers_are_made_once() -> None:
    assert reader("duckdb") is reader("duckdb")
