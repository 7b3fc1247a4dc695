"""SELECT over tables: answers, snapshots, and rows that are read by their key."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from sqlglot import exp

import everview
from everview.catalog.catalog_names import CatalogNames
from everview.change.types import Type
from everview.client import reading
from everview.client.lookups import MOST, Lookup, lookup
from everview.client.view_rows import ViewRows
from everview.errors import EverviewError, UnknownObjectError, ValueTypeError
from everview.sql.check import check
from everview.sql.parse import parse
from everview.sql.statements import Select


def test_queries_over_tables(shop: everview.Database) -> None:
    assert shop.sql(
        "SELECT o.id, l.product FROM orders AS o JOIN lines AS l ON o.id = l.order_id WHERE line = 2"
    ).rows() == [(1, "egg")]
    assert shop.sql("SELECT a.id FROM orders AS a, orders AS b WHERE a.id < b.id ORDER BY ALL").rows() == [
        (1,),
        (1,),
        (2,),
    ]
    assert shop.sql("WITH t AS (SELECT * FROM orders) SELECT count(*) FROM t, t AS u").rows() == [(9,)]
    assert shop.sql("VALUES (1, 'a'), (2, 'b')").rows() == [(1, "a"), (2, "b")]
    assert shop.sql("FROM orders SELECT id LIMIT 2").rows() == [(1,), (2,)]


def test_a_recursive_query_reads_a_table_as_often_as_it_needs(shop: everview.Database) -> None:
    text = (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r JOIN orders ON id = n) SELECT max(n) FROM r"
    )
    assert shop.sql(text).rows() == [(4,)]
    shadow = (
        "WITH RECURSIVE orders AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM orders WHERE n < 3) SELECT * FROM orders"
    )
    assert shop.sql(shadow).rows() == [(1,), (2,), (3,)]


def test_volatile_functions_and_equal_names_are_allowed(shop: everview.Database) -> None:
    result = shop.sql("SELECT now() IS NOT NULL AS a, 1 AS a, 2 AS __x")
    assert result.names == ("a", "a", "__x") and result.rows() == [(True, 1, 2)]


def test_what_cannot_be_computed_is_an_error_of_ours(shop: everview.Database) -> None:
    with pytest.raises(ValueTypeError, match=r"cannot be computed(?s:.*)'a'"):
        shop.sql("SELECT note::INTEGER FROM orders").rows()
    assert shop.sql("SELECT 1").rows() == [(1,)]
    with pytest.raises(EverviewError):
        shop.sql("SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(UnknownObjectError, match=r"did you mean orders"):
        shop.sql("SELECT * FROM ordres")


def test_a_result_is_of_one_moment(shop: everview.Database) -> None:
    result = shop.sql("SELECT count(*) FROM orders AS a, lines AS b")
    shop.sql("DELETE FROM orders; DELETE FROM lines")
    assert result.rows() == [(12,)]


def test_a_column_that_is_added_later_does_not_disturb_an_open_result(shop: everview.Database) -> None:
    result = shop.sql("SELECT * FROM orders")
    shop.sql("ALTER TABLE orders ADD COLUMN more INTEGER; UPDATE orders SET more = 1")
    assert len(result.rows()[0]) == 4 and len(shop.sql("SELECT * FROM orders").rows()[0]) == 5


def test_many_results_are_open_at_once(shop: everview.Database) -> None:
    results = [shop.sql("SELECT id FROM orders ORDER BY id") for _ in range(8)]
    iterators = [iter(result) for result in results]
    assert [[next(one)[0] for one in iterators] for _ in range(3)] == [[n] * 8 for n in (1, 2, 3)]


# ------------------------------------------------------------------ views, through their reader


def test_rows_of_views_are_looked_up_by_their_key(shop: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sql("CREATE MATERIALIZED VIEW v AS SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    asked: list[object] = []
    matching = ViewRows.matching

    def noted(self: ViewRows, reader: Any, epoch: int, prefixes: Any = None) -> Iterator[pa.RecordBatch]:
        asked.append((self.view.name, prefixes))
        return matching(self, reader, epoch, prefixes)

    monkeypatch.setattr(ViewRows, "matching", noted)
    assert shop.sql("SELECT n FROM v WHERE customer = 10").rows() == [(1,)]
    assert shop.sql("SELECT sum(n) FROM v").rows() == [(3,)]
    assert asked == [("v", ((10,),)), ("v", None)]


# ------------------------------------------------------------------ keys in WHERE

TABLES = """
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER);
    CREATE TABLE lines (order_id BIGINT, line INTEGER, product VARCHAR, PRIMARY KEY (order_id, line));
    CREATE TABLE days (day DATE PRIMARY KEY, n INTEGER);
    CREATE TABLE names (name VARCHAR PRIMARY KEY, n INTEGER);
    CREATE TABLE points (x DOUBLE PRIMARY KEY, n INTEGER);
    CREATE TABLE prices (price DECIMAL(6, 2) PRIMARY KEY, n INTEGER);
"""


@pytest.fixture
def keyed(db: everview.Database) -> everview.Database:
    db.sql(TABLES)
    return db


def looked_up(db: everview.Database, text: str, name: str) -> Lookup | None:
    definitions = db.catalog.definitions()
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    tree = check(statement.query, CatalogNames(definitions), text).tree
    key: list[tuple[str, Type]] = [(part.name, part.type) for part in definitions.table(name).schema.key_parts]
    table = next(table for table in tree.find_all(exp.Table) if table.name == name)
    return lookup(table, key)


@pytest.mark.parametrize(
    ("text", "table", "prefixes", "whole"),
    [
        ("SELECT * FROM orders WHERE id = 5", "orders", [(5,)], True),
        ("SELECT * FROM orders WHERE 5 = id AND customer > 1", "orders", [(5,)], True),
        ("SELECT * FROM orders AS o WHERE o.id IN (1, -2, '3')", "orders", [(1,), (-2,), (3,)], True),
        ("SELECT * FROM lines WHERE order_id = 1 AND line IN (2, 3)", "lines", [(1, 2), (1, 3)], True),
        ("SELECT * FROM lines WHERE order_id = 1 AND product = 'x'", "lines", [(1,)], False),
        ("SELECT * FROM lines WHERE order_id IN (1, 2)", "lines", [(1,), (2,)], False),
        ("SELECT * FROM days WHERE day = '2024-02-29'", "days", [(datetime.date(2024, 2, 29),)], True),
        ("SELECT * FROM names WHERE name = 'ada'", "names", [("ada",)], True),
        ("SELECT * FROM prices WHERE price = 5", "prices", [(5,)], True),
        ("SELECT * FROM orders JOIN lines ON id = order_id WHERE order_id = 7 AND line = 1", "lines", [(7, 1)], True),
        ("SELECT * FROM orders LEFT JOIN lines ON id = order_id WHERE id = 7", "orders", [(7,)], True),
        ("SELECT (SELECT max(line) FROM lines WHERE order_id = 3) AS m FROM orders", "lines", [(3,)], False),
    ],
)
def test_keys_in_where_are_looked_up(
    keyed: everview.Database, text: str, table: str, prefixes: list[tuple[object, ...]], whole: bool
) -> None:
    assert looked_up(keyed, text, table) == Lookup(tuple(prefixes), whole)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("SELECT * FROM orders", "orders"),
        ("SELECT * FROM orders WHERE id > 5", "orders"),
        ("SELECT * FROM orders WHERE id = 5 OR customer = 1", "orders"),
        ("SELECT * FROM orders WHERE NOT id = 5", "orders"),
        ("SELECT * FROM orders WHERE id = 5.5", "orders"),
        ("SELECT * FROM orders WHERE id = customer", "orders"),
        ("SELECT * FROM orders WHERE id IN (SELECT order_id FROM lines)", "orders"),
        ("SELECT * FROM orders WHERE id IS NOT DISTINCT FROM NULL", "orders"),
        ("SELECT * FROM lines WHERE line = 1", "lines"),
        ("SELECT * FROM names WHERE name::INTEGER = 5", "names"),
        ("SELECT * FROM points WHERE x = 0.1", "points"),
        ("SELECT * FROM orders ASOF JOIN lines ON id >= order_id WHERE order_id = 7", "lines"),
        ("SELECT * FROM orders LEFT JOIN lines ON id = order_id AND order_id = 7", "lines"),
        (f"SELECT * FROM orders WHERE id IN ({', '.join(map(str, range(MOST + 1)))})", "orders"),
    ],
)
def test_other_conditions_are_left_to_the_scan(keyed: everview.Database, text: str, table: str) -> None:
    assert looked_up(keyed, text, table) is None


def test_only_the_rows_that_are_asked_for_are_read(keyed: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed.sql("INSERT INTO lines SELECT i // 10, i % 10, 'p' || i FROM range(1000) AS r (i)")
    read: list[int] = []
    real = reading._rows

    def counted(*given: Any) -> Iterator[pa.RecordBatch]:
        for batch in real(*given):
            read.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(reading, "_rows", counted)
    for text, rows, most in (
        ("SELECT product FROM lines WHERE order_id = 7 AND line = 3", [("p73",)], 1),
        ("SELECT count(*) FROM lines WHERE order_id = 7", [(10,)], 10),
        ("SELECT count(*) FROM lines WHERE order_id IN (7, 5, 7) AND line < 5", [(10,)], 20),
        ("SELECT product FROM lines WHERE order_id IN (9, 8) AND line = 0", [("p80",), ("p90",)], 2),
        ("SELECT count(*) FROM lines WHERE order_id = 700", [(0,)], 0),
    ):
        read.clear()
        assert keyed.sql(text).rows() == rows
        assert sum(read) == most
    read.clear()
    assert keyed.sql("UPDATE lines SET product = 'x' WHERE order_id = 3 AND line = 3").rows() == [(1,)]
    assert keyed.sql("DELETE FROM lines WHERE order_id = 3").rows() == [(10,)]
    assert sum(read) == 11


@pytest.mark.parametrize(
    "constant", ["5", "5.0", "5.5", "'5'", "'5.4'", "5::DOUBLE", "-5", "true", "99999999999999999999", "NULL"]
)
def test_a_lookup_finds_what_a_scan_finds(keyed: everview.Database, constant: str) -> None:
    keyed.sql("INSERT INTO orders SELECT i, 0 FROM range(-10, 10) AS r (i)")
    by_key = keyed.sql(f"SELECT id FROM orders WHERE id = {constant}").rows()
    assert by_key == keyed.sql(f"SELECT id FROM (SELECT * FROM orders OFFSET 0) AS o WHERE id = {constant}").rows()


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_rows_are_found_by_moments_that_python_has_not(kind: str, db: everview.Database) -> None:
    db.sql(f"CREATE TABLE t (d {kind} PRIMARY KEY, n INTEGER)")
    moments = ["infinity", "-infinity", "2000-01-01"]
    moments += ["2000-01-01 00:00:00.000000001"] if kind == "TIMESTAMP_NS" else ["20000-01-01", "9999-12-31"]
    for number, moment in enumerate(moments):
        db.sql(f"INSERT INTO t VALUES ('{moment}', {number})")
    for number, moment in enumerate(moments):
        assert db.sql(f"SELECT n FROM t WHERE d = '{moment}'::{kind}").rows() == [(number,)]
        assert db.sql(f"SELECT n FROM t WHERE d = '{moment}'").rows() == [(number,)]


def test_parameters_may_have_offsets_and_nanoseconds(db: everview.Database) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=1, minutes=30))
    noon = datetime.time(12, tzinfo=zone)
    moment = pd.Timestamp("2020-01-01 00:00:00.123456789")
    assert db.sql("SELECT ?, typeof(?), ?", [noon, noon, moment]).rows() == [(noon, "TIME WITH TIME ZONE", moment)]
