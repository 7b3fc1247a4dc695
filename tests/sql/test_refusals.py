"""What is wrong with a query, or volatile in it, is named with its place and a way out."""

from __future__ import annotations

import pytest

from everview.change.schema import Column
from everview.change.types import BIGINT, INTEGER
from everview.errors import (
    DefinitionError,
    EverviewError,
    SqlError,
    SqlRefusedError,
    SqlSyntaxError,
    SqlTypeError,
    UnknownObjectError,
)
from everview.sql.check import check
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.statements import Select
from tests.sql.samples import checked, namespace, query_of


@pytest.mark.parametrize(
    ("text", "kind", "says", "hint"),
    [
        ("SELECT id FROM ordrs", UnknownObjectError, "table or view ordrs at line 1, column 16", "you mean Orders?"),
        ("SELECT amout FROM orders", UnknownObjectError, "column amout at line 1, column 8", "did you mean amount?"),
        ("SELECT o.amout FROM orders o", UnknownObjectError, "amout in o at line 1, column 10", "you mean amount?"),
        ("SELECT o.zz FROM orders o JOIN people p ON o.id = p.id", UnknownObjectError, "zz in o", "are id, Customer"),
        ("SELECT 1 FROM orders o JOIN people p ON o.name = p.name", UnknownObjectError, "name in o at", "are id"),
        ("SELECT 1 FROM prices JOIN orders o ON prices.id = o.id", UnknownObjectError, "id in prices", "are product"),
        ("SELECT p.id FROM orders o", UnknownObjectError, "table p in this FROM at line 1, column 8", "there are o"),
        ("SELECT id FROM orders WHERE zzz > 1", UnknownObjectError, "zzz at line 1, column 29", "are id, Customer"),
        ("SELECT id,\n  summ(id) FROM orders", SqlTypeError, "function summ at line 2, column 3", "did you mean sum?"),
        ("SELECT * EXCLUDE (amout) FROM orders", UnknownObjectError, "amout at line 1, column 19", "you mean amount?"),
        ("SELECT * REPLACE (1 AS amout) FROM orders", UnknownObjectError, "amout at line 1, column 24", "amount?"),
        ("SELECT COLUMNS('zz') FROM orders", SqlError, "no column has a name that matches 'zz'", "pattern"),
        ("SELECT id::INTEGR FROM orders", SqlTypeError, "no type INTEGR at line 1, column 12", "mean INTEGER?"),
        ("SELECT ts - 'abc' FROM orders", SqlTypeError, "- does not take TIMESTAMP and VARCHAR", "CAST"),
        ("SELECT id FROM orders LIMIT id", SqlError, "column id cannot be used here at line 1, column 29", "constant"),
        ("SELECT id FROM orders, orders", SqlError, "id is in two tables of one name at line 1, column 8", "alias"),
        ("SELECT (SELECT id, ts FROM orders) AS x", SqlTypeError, "2 columns where 1 is expected", "the column"),
        ("SELECT * FROM information_schema.tables", UnknownObjectError, "no schema information_schema", "SHOW TABLES"),
        ("SELECT id + ts FROM orders", SqlTypeError, "BIGINT and TIMESTAMP", "CAST"),
        ("SELECT sum(name) FROM people", SqlTypeError, "sum does not take VARCHAR at line 1, column 8", "CAST"),
        ("SELECT id FROM orders WHERE ts > amount", SqlTypeError, "TIMESTAMP and DOUBLE cannot be compared", "CAST"),
        ("SELECT id::money FROM orders", SqlTypeError, "no type money at line 1, column 12", None),
        ("SELECT id FROM orders, people", SqlError, "id is in several tables at line 1, column 8", "one of"),
        ("SELECT id, sum(amount) FROM orders", SqlError, "id is neither grouped nor aggregated", "GROUP BY"),
        ("SELECT sum(sum(id)) FROM orders", SqlError, "inside another at line 1, column 12", "subquery"),
        ("SELECT id FROM orders WHERE sum(id) > 1", SqlError, "WHERE cannot contain an aggregate", "HAVING"),
        ("SELECT address.city FROM people", SqlTypeError, "no field city at line 1, column 16", "zip"),
        ("SELECT id FROM orders UNION SELECT * FROM people", SqlTypeError, "different numbers of columns", None),
        ("SELECT rowid FROM orders", UnknownObjectError, "no column rowid at line 1, column 8", "primary key"),
        ("SELECT '12:00'::TIME_NS[2] AS a FROM orders", SqlTypeError, "a has the type TIME_NS[2]", "AS TIME[2]"),
        ("SELECT (id, 1::VARIANT) AS pair FROM orders", SqlTypeError, "column pair has the type TUPLE", "JSON"),
        ("FROM (PIVOT orders ON customer IN () USING sum(id))", SqlRefusedError, "an empty list", "IN (value"),
        ("SELECT w FROM (SELECT list(id) FROM orders) w", SqlRefusedError, "column w can be read in two", "AS name"),
        ("SELECT bool_or(id) FROM orders", SqlTypeError, "bool_or does not take BIGINT at line 1, column 8", "CAST"),
        ("FROM (PIVOT orders ON customer USING sum(id))", SqlRefusedError, "PIVOT needs a list", "IN (value"),
        ("SELECT * FROM read_csv('x.csv')", SqlRefusedError, "read_csv() cannot be read", "INSERT"),
        ("SELECT * FROM 'x.csv'", UnknownObjectError, "no table or view x.csv", None),
        ("SELECT * FROM tumbl(orders, ts, INTERVAL 1 HOUR)", UnknownObjectError, "no table function tumbl", "tumble"),
        ("SELECT * FROM TUMBLE(orders, ts)", SqlTypeError, "TUMBLE is not used", "TUMBLE(table, column"),
        ("FROM HOP(orders, ts, INTERVAL 0 HOUR, INTERVAL 1 HOUR)", SqlTypeError, "above zero", "INTERVAL 10"),
        ("FROM TUMBLE(orders, amount, INTERVAL 1 HOUR)", SqlTypeError, "not DOUBLE at line 1, column 21", None),
        ("SELECT * FROM other.orders", UnknownObjectError, "no schema other at line 1, column 15", "write orders"),
        ("SELECT id FROM orders LIMIT 2 WITH TIES", SqlError, "WITH TIES needs ORDER BY", "ordered by"),
        ("WITH a AS (SELECT idd FROM orders) SELECT 1 FROM a", UnknownObjectError, "idd at line 1, column 19", "id?"),
        ("SELECT x FROM big", UnknownObjectError, "column x at line 1, column 8", "number, Size"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(
    text: str, kind: type[EverviewError], says: str, hint: str | None
) -> None:
    with pytest.raises(kind) as raised:
        checked(text)
    assert says in raised.value.message
    assert hint is None or (raised.value.hint is not None and hint in raised.value.hint)


@pytest.mark.parametrize(
    ("text", "unexpected", "place"),
    [
        ("SELECT id,, amount FROM orders", "','", (1, 11)),
        ("SELECT id FROM orders BY", "'BY'", (1, 23)),
        ("SELECT 1 AS a;\nSELECT max(id m FROM orders; SELECT 2 AS b", "'m'", (2, 15)),
        ("SELECT CASE id WHEN 1 'one' END AS c FROM orders", "\"'one'\"", (1, 23)),
    ],
)
def test_what_sqlglot_reads_and_duckdb_does_not_is_an_error(text: str, unexpected: str, place: tuple[int, int]) -> None:
    checked("SELECT id, amount FROM orders")
    with pytest.raises(SqlSyntaxError) as raised:
        for statement in parse(text):
            assert isinstance(statement, Select)
            check(statement.query, namespace(), statement.source)
    assert unexpected in raised.value.message
    assert (raised.value.line, raised.value.column) == place


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("SELECT now() AS t FROM orders", "now()", (1, 8)),
        ("SELECT id\nFROM orders WHERE ts < current_timestamp", "current_timestamp", (2, 24)),
        ('SELECT id\nFROM orders WHERE ts < "current_timestamp"', "current_timestamp", (2, 25)),
        ('SELECT id, "user" AS u FROM orders', "user()", (1, 13)),
        ("SELECT today() - ts::DATE AS d FROM orders", "today()", (1, 8)),
        ("SELECT age(ts) AS a FROM orders", "age()", (1, 8)),
        ("SELECT id FROM orders ORDER BY random() LIMIT 3", "random()", (1, 32)),
        ("SELECT uuid() AS u FROM orders", "uuid()", (1, 8)),
        ("SELECT gen_random_uuid() AS u FROM orders", "gen_random_uuid()", (1, 8)),
        ("SELECT nextval('s') AS n FROM orders", "nextval()", (1, 8)),
        ("SELECT id FROM orders USING SAMPLE 3", "sampling", (1, 29)),
        ("SELECT id FROM orders TABLESAMPLE 10%", "sampling", (1, 23)),
        ("SELECT version() AS v FROM orders", "version()", (1, 8)),
        ("SELECT current_setting('TimeZone') AS v FROM orders", "current_setting()", (1, 8)),
        ("WITH a AS (SELECT ago(INTERVAL 1 DAY) AS t) SELECT t FROM a", "ago()", (1, 19)),
    ],
)  # fmt: skip
def test_what_is_volatile_is_refused_with_a_way_out(text: str, what: str, place: tuple[int, int]) -> None:
    with pytest.raises(SqlRefusedError) as raised:
        checked(text)
    assert raised.value.message.startswith(f"{what} cannot be part of a view")
    assert (raised.value.line, raised.value.column) == place
    assert raised.value.detail and raised.value.hint


def test_an_ad_hoc_query_may_be_volatile_and_any_may_have_equal_names() -> None:
    assert checked("SELECT now() AS t, age(ts) FROM orders", allow_volatile=True).columns[0][0] == "t"
    assert len(checked("SELECT * FROM orders, people").columns) == 8


def test_a_column_may_have_the_name_of_a_volatile_word() -> None:
    found = checked(
        'SELECT q."current_date" AS a, "user" AS b FROM (SELECT id AS "current_date", id AS "user" FROM orders) q'
    )
    assert [name for name, _ in found.columns] == ["a", "b"]


def test_two_arguments_make_an_age_certain() -> None:
    assert checked("SELECT age(ts, TIMESTAMP '2020-01-01') AS a FROM orders").columns[0][0] == "a"


def test_a_failing_function_is_not_a_volatile_one() -> None:
    assert checked("SELECT CASE WHEN id < 0 THEN error('negative') ELSE id END AS i FROM orders").uses


def test_a_named_query_that_names_itself_is_an_error() -> None:
    itself = NamedRelation("a", "named query", (Column("x", INTEGER),), query="SELECT x FROM b")
    other = NamedRelation("b", "named query", (Column("x", INTEGER),), query="SELECT x FROM a")
    with pytest.raises(SqlRefusedError, match="defined by itself"):
        check(query_of("SELECT x FROM a"), Names([itself, other]), "SELECT x FROM a")


def test_a_query_that_grows_without_end_is_an_error() -> None:
    ctes = ", ".join(f"a{i} AS (SELECT x.id FROM a{i - 1} x, a{i - 1} y)" for i in range(1, 30))
    with pytest.raises(SqlRefusedError, match="too large"):
        checked(f"WITH a0 AS (SELECT id FROM orders), {ctes} SELECT id FROM a29")


def test_long_conditions_and_deep_queries_are_answered() -> None:
    assert checked(f"SELECT id FROM orders WHERE {' OR '.join(f'id = {n}' for n in range(1000))}").uses
    deep = "SELECT id FROM orders"
    for _ in range(30):
        deep = f"SELECT id FROM ({deep})"
    assert checked(deep).columns == (("id", BIGINT),)


def test_relations_check_themselves() -> None:
    with pytest.raises(DefinitionError):
        NamedRelation("a", "named query", (Column("x", INTEGER),))
    with pytest.raises(DefinitionError):
        NamedRelation("a", "table", ())
