"""Types that few tables have, in every place of a query: as keys, in groups and joins, ordered, shown."""

from __future__ import annotations

import contextlib
import datetime
import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import everview
from everview.sql.settings import connect
from everview.store.encoding.registering import register, unregister

TYPES: dict[str, tuple[str, ...]] = {
    "TIMESTAMP_S": ("'2020-01-01 00:00:00'", "'1969-12-31 23:59:59'", "'infinity'"),
    "TIMESTAMP_MS": ("'2020-01-01 00:00:00.001'", "'2020-01-01 00:00:00'", "'-infinity'"),
    "TIMESTAMP_NS": ("'2020-01-01 00:00:00.000000001'", "'2020-01-01 00:00:00'", "'1700-01-01 00:00:00.123456789'"),
    "TIMETZ": ("'12:00:00+00'", "'13:00:00+01'", "'11:00:00-01:30'", "'24:00:00+00'", "'00:00:00+00'"),
    "BIT": ("'0'", "'00'", "'1'", "'01'", "'111111111'", "'10101010'"),
    "BIGNUM": ("'0'", "'-1'", "'255'", "'256'", f"'{'9' * 120}'", f"'-{'9' * 120}'", "CAST(-0.25 AS DOUBLE)"),
    "ENUM('small', 'large', 'a')": ("'small'", "'large'", "'a'"),
    "INTEGER[2]": ("[1, 2]", "[1, NULL]", "[NULL, 1]", "[2, 0]"),
    "TUPLE(INTEGER, VARCHAR)": ("(1, 'a')", "(1, NULL)", "(NULL, 'a')", "(2, '')"),
    "ENUM('b', 'a')[]": ("['a']", "['b', NULL]", "[]", "['b', 'a']"),
    "STRUCT(e ENUM('b', 'a'), t TIMETZ)": (
        "{'e': 'b', 't': '12:00:00+00'}",
        "{'e': 'a', 't': NULL}",
        "{'e': 'b', 't': '13:00:00+01'}",
    ),
}
BEYOND_PYTHON = ("24:00:00+00", datetime.datetime.max, datetime.datetime.min)
"""What rows show of values that Python has none for: infinity and the end of a day."""
VIEWS = {
    "everything": "SELECT * FROM t",
    "grouped": "SELECT x, count(*) AS n, sum(y) AS s FROM t GROUP BY x",
    "ends": "SELECT g, min(x) AS low, max(x) AS high, count(DISTINCT x) AS n FROM t GROUP BY g",
    "ends_of_all": "SELECT min(x) AS low, max(x) AS high FROM t",
    "different": "SELECT DISTINCT x FROM t",
    "joined": "SELECT a.id AS a, b.id AS b, a.x FROM t AS a JOIN t AS b ON a.x = b.x",
    "outer_joined": "SELECT a.id AS a, u.id AS b, u.y FROM t AS a LEFT JOIN u ON a.x = u.x",
    "missing": "SELECT id, x FROM t WHERE x NOT IN (SELECT x FROM u WHERE x IS NOT NULL)",
    "united": "SELECT x FROM t UNION SELECT x FROM u",
    "common": "SELECT x FROM t INTERSECT SELECT x FROM u",
    "first": "SELECT id, x FROM t ORDER BY x NULLS LAST, id LIMIT 3",
    "last": "SELECT id, x FROM t ORDER BY x DESC NULLS LAST, id LIMIT 3",
    "best": "SELECT g, id, x FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY x DESC NULLS LAST, id) <= 2",
    "ranked": "SELECT id, dense_rank() OVER (ORDER BY x) AS r, lag(x) OVER (ORDER BY id) AS before FROM t",
    "listed": "SELECT g, list(x ORDER BY id) AS xs, any_value(x ORDER BY id) AS one FROM t GROUP BY g",
    "compared": "SELECT a.id AS a, b.id AS b FROM t AS a JOIN u AS b ON a.x < b.x",
    "shown": "SELECT id, CAST(x AS VARCHAR) AS text, [x] AS xs, {'x': x} AS named FROM t",
    "above": "SELECT x, n FROM grouped WHERE x IS NOT NULL",
    "partitioned": "SELECT x, sum(y) OVER (PARTITION BY x) AS s, id FROM t",
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none") as database:
        yield database


@pytest.mark.parametrize("kind", TYPES)
def test_views_over_a_column_of_a_type(kind: str, db: everview.Database) -> None:
    for name in ("t", "u"):
        db.sql(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, g INTEGER, x {kind}, y INTEGER)")
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    rng = random.Random(kind)
    for _ in range(3):
        for _ in range(7):
            table, number = rng.choice("ttu"), rng.randrange(12)
            value = f"CAST({rng.choice([*TYPES[kind], 'NULL'])} AS {kind})"
            row = f"{number}, {rng.choice(['1', '2', 'NULL'])}, {value}, {rng.randrange(3)}"
            db.sql(
                rng.choice([f"DELETE FROM {table} WHERE id = {number}", *[f"INSERT INTO {table} VALUES ({row})"] * 4])
            )
        db.sql(f"UPDATE t SET x = {value} WHERE id % 5 = 1")
        db.flush()
        _compare(db, {**VIEWS, "above": "SELECT x, n FROM (" + VIEWS["grouped"] + ") WHERE x IS NOT NULL"})
    assert db.verify(state=True).right


def _compare(db: everview.Database, views: dict[str, str]) -> None:
    with connect() as other:
        for name in ("t", "u"):
            register(other, f"{name}_rows", rows := _stored(db, name))
            other.execute(f"CREATE TABLE {name} AS FROM {name}_rows")
            unregister(other, f"{name}_rows", rows)
        for name, query in views.items():
            register(other, "shown", rows := _stored(db, name))
            for these, those in ((query, "FROM shown"), ("FROM shown", query)):
                found = other.execute(f"({these}) EXCEPT ALL ({those})").fetchall()
                assert not found, f"{name}: {found} of {these} are not in {those}"
            unregister(other, "shown", rows)


def _stored(db: everview.Database, name: str) -> pa.Table:
    result = db.sql(f"SELECT * FROM {name}")
    schema = pa.schema([(column.name, column.type.arrow) for column in result.columns])
    return pa.Table.from_batches(list(result.stored_batches()), schema)


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind.startswith(("TIM", "BI", "ENUM")) and "[" not in kind])
def test_a_primary_key_of_a_type(kind: str, db: everview.Database) -> None:
    db.sql(f"CREATE TABLE t (x {kind}, n INTEGER, y VARCHAR, PRIMARY KEY (x, n))")
    for at, value in enumerate(TYPES[kind]):
        db.sql(f"INSERT INTO t VALUES (CAST({value} AS {kind}), 1, 'first'), (CAST({value} AS {kind}), 2, '{at}')")
        db.sql(f"INSERT INTO t VALUES (CAST({value} AS {kind}), 1, '{at}')")
    with connect() as other:
        rows = ", ".join(
            f"(CAST({value} AS {kind}), {n}, '{at}')" for at, value in enumerate(TYPES[kind]) for n in (1, 2)
        )
        wanted = other.execute(f"FROM (VALUES {rows}) r(x, n, y) ORDER BY x, n").fetchall()
    found = db.table("t").scan().rows()
    if kind == "TIMESTAMP_NS":  # DuckDB drops the nanoseconds
        wanted = [(row[0], *rest) for row, (_, *rest) in zip(found, wanted, strict=True)]
    assert found == wanted
    for value, n, y in found:
        if value not in BEYOND_PYTHON:
            assert db.table("t").get(value, n) == {"x": value, "n": n, "y": y}
    assert db.table("t").delete_many(db.table("t").scan().arrow().select(["x", "n"])) == len(wanted)
    assert db.table("t").count() == 0


def test_tuples_go_into_structs_and_views(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, s STRUCT(a INTEGER, b STRUCT(c INTEGER, d INTEGER)))")
    db.sql("INSERT INTO t VALUES (1, (1, (1, 2))), (2, ROW(3, ROW(NULL, 4))), (3, NULL)")
    db.table("t").put({"id": 4, "s": (5, (6, 7))})
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, (id, (s.a, 'x')) AS pair, (id, 1)[1] AS first FROM t")
    assert db.sql("SELECT s FROM t WHERE id = 4").rows() == [({"a": 5, "b": {"c": 6, "d": 7}},)]
    assert db.sql("SELECT pair FROM v ORDER BY id").rows() == [
        ((1, (1, "x")),), ((2, (3, "x")),), ((3, (None, "x")),), ((4, (5, "x")),)
    ]  # fmt: skip
    assert db.sql("SELECT pair[1] + 1 FROM v WHERE pair = (2, (3, 'x'))").rows() == [(3,)]
    assert db.view("v").get(1) == {"id": 1, "pair": (1, (1, "x")), "first": 1}


PAIRS = {
    ("ENUM('b', 'a')", "VARCHAR"): ("'a'", "'b'", "'c'"),
    ("ENUM('b', 'a')", "ENUM('a', 'b', 'c')"): ("'a'", "'b'", "'c'"),
    ("TIMESTAMP_S", "TIMESTAMP"): ("'2020-01-01 00:00:00'", "'2020-01-01 00:00:00.5'"),
    ("TIMESTAMP_NS", "TIMESTAMP"): ("'2020-01-01 00:00:00'", "'2020-01-01 00:00:00.000000001'"),
    ("TIMESTAMP_MS", "DATE"): ("'2020-01-01'", "'2020-01-01 00:00:00.001'"),
    ("TIMETZ", "TIME"): ("'12:00:00'", "'13:00:00'"),
    ("INTEGER[2]", "INTEGER[]"): ("[1, 2]", "[1, NULL]"),
    ("TUPLE(INTEGER, VARCHAR)", "STRUCT(a INTEGER, b VARCHAR)"): ("(1, 'a')", "(NULL, 'b')"),
    ("BIT", "VARCHAR"): ("'01'", "'1'"),
    ("BIGNUM", "HUGEINT"): ("1", "-1", "256"),
    ("BIGNUM", "VARCHAR"): ("'1'", "'-256'"),
    ("BIGNUM", "DOUBLE"): ("1", "-256"),
}


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_columns_of_different_types_are_compared_as_duckdb_compares_them(
    left: str, right: str, db: everview.Database
) -> None:
    db.sql(f"CREATE TABLE t (id INTEGER PRIMARY KEY, x {left}); CREATE TABLE u (id INTEGER PRIMARY KEY, x {right})")
    views = {
        "joined": "SELECT t.id AS a, u.id AS b FROM t JOIN u ON t.x = u.x",
        "lesser": "SELECT t.id AS a, u.id AS b FROM t JOIN u ON t.x < u.x",
        "either": "SELECT x FROM t UNION SELECT x FROM u",
        "common_ones": "SELECT x FROM t INTERSECT SELECT x FROM u",
        "inside": "SELECT id FROM t WHERE x IN (SELECT x FROM u)",
        "using_x": "SELECT t.id AS a, x FROM t FULL JOIN u USING (x)",
    }
    made = {}
    with connect() as other:
        for name, kind in (("t", left), ("u", right)):
            other.execute(f"CREATE TABLE {name} (id INTEGER, x {kind})")
        for name, query in views.items():
            try:
                other.execute(query)
            except duckdb.Error:
                with pytest.raises(everview.EverviewError):
                    db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            else:
                db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
                made[name] = query
    for number, value in enumerate((*PAIRS[left, right], "NULL")):
        for table, kind in (("t", left), ("u", right)):
            with contextlib.suppress(everview.EverviewError):  # a text that is no member
                db.sql(f"INSERT INTO {table} VALUES ({number}, CAST({value} AS {kind}))")
    db.flush()
    _compare(db, made)


def test_an_enum_is_compared_with_a_text_as_a_text(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, x ENUM('b', 'a', 'c')); CREATE TABLE u (id INTEGER PRIMARY KEY)")
    views = {f"is_{text}": f"SELECT id, x FROM t WHERE x = '{text}'" for text in ("a", "b", "zzz")}
    views |= {f"below_{text}": f"SELECT id FROM t WHERE x < '{text}'" for text in ("b", "zzz")}
    views |= {"under_a": "SELECT id FROM t WHERE x < CAST('a' AS ENUM('b', 'a', 'c'))"}
    views |= {"under_c": "SELECT id FROM t WHERE x < CAST('c' AS ENUM('b', 'a', 'c'))"}
    for name, query in views.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)")
    db.flush()
    _compare(db, views)
    assert db.sql("SELECT id FROM under_c ORDER BY id").rows() == [(1,), (2,)]


def test_the_empty_map_is_cast(db: everview.Database) -> None:
    assert db.sql(
        "SELECT CAST(MAP {} AS MAP(VARCHAR, INTEGER)), MAP {'a': CAST(MAP {} AS MAP(INTEGER, INTEGER))}"
    ).rows()
