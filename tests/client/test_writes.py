"""INSERT, UPDATE and DELETE: what they put and delete, what they refuse, all or nothing."""

from __future__ import annotations

import math
import multiprocessing
import signal
import threading
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import everview
from everview.errors import (
    EverviewError,
    InputError,
    MissingColumnError,
    SqlError,
    SqlTypeError,
    UnknownColumnError,
    UnknownObjectError,
    ValueTypeError,
)

Rows = list[tuple[Any, ...]]


def rows(db: everview.Database, text: str) -> Rows:
    return db.sql(text).rows()


# ------------------------------------------------------------------ INSERT


def test_insert_puts_rows_and_says_how_many(shop: everview.Database) -> None:
    assert shop.sql("INSERT INTO orders VALUES (4, 10, 1.25, 'x'), (5, NULL, NULL, NULL)").rows() == [(2,)]
    assert len(rows(shop, "SELECT * FROM orders WHERE id IN (4, 5)")) == 2


def test_a_row_whose_key_exists_is_replaced_whole(shop: everview.Database) -> None:
    shop.sql("INSERT INTO orders (note, id) VALUES ('new', 1)")
    assert rows(shop, "SELECT * FROM orders WHERE id = 1") == [(1, None, None, "new")]
    assert shop.table("orders").count() == 3


def test_the_last_of_equal_keys_in_one_insert_stays(shop: everview.Database) -> None:
    assert shop.sql("INSERT INTO orders (id, note) VALUES (9, 'a'), (9, 'b')").rows() == [(2,)]
    assert rows(shop, "SELECT note FROM orders WHERE id = 9") == [("b",)]


def test_insert_from_a_query_over_the_same_table_sees_the_rows_before(shop: everview.Database) -> None:
    assert shop.sql("INSERT INTO visits SELECT * FROM visits").rows() == [(4,)]
    assert rows(shop, "SELECT count(*) FROM visits") == [(8,)]


def test_insert_from_a_large_query(shop: everview.Database) -> None:
    assert shop.sql("INSERT INTO visits SELECT i % 7, 'p' || i FROM range(30000) AS r (i)").rows() == [(30000,)]
    assert shop.table("visits").count() == 30004


def test_values_are_cast_to_the_types_of_their_columns(shop: everview.Database) -> None:
    shop.sql("INSERT INTO orders VALUES ('4', 1.6, '2.345', 5)")
    ((id, customer, amount, note),) = rows(shop, "SELECT * FROM orders WHERE id = 4")
    assert (id, customer, str(amount), note) == (4, 2, "2.35", "5")


def test_texts_beside_numbers_are_cast_one_by_one(shop: everview.Database) -> None:
    shop.sql("CREATE TABLE mixed (id INTEGER PRIMARY KEY, x DOUBLE, at DATE)")
    shop.sql("INSERT INTO mixed VALUES (1, 1.5, DATE '2024-02-01'), (2, 'inf', '2024-02-02'), ('3', NULL, NULL)")
    expected = [(1, 1.5, date(2024, 2, 1)), (2, math.inf, date(2024, 2, 2)), (3, None, None)]
    assert shop.sql("SELECT * FROM mixed").rows() == expected
    with pytest.raises(ValueTypeError, match="a value cannot be computed"):
        shop.sql("INSERT INTO mixed VALUES (4, 1.5, NULL), (5, 'much', NULL)")
    assert shop.table("mixed").count() == 3


def test_parameters_stand_for_values(shop: everview.Database) -> None:
    shop.sql("INSERT INTO orders (id, note) VALUES (?, ?)", [7, "O'Neill; DROP TABLE orders"])
    assert rows(shop, "SELECT note FROM orders WHERE id = 7") == [("O'Neill; DROP TABLE orders",)]
    shop.sql("UPDATE orders SET note = :note WHERE id = :id", {"note": None, "id": 7})
    assert shop.sql("SELECT note FROM orders WHERE id = $1", [7]).rows() == [(None,)]


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("INSERT INTO orders VALUES (NULL, 1, 1, 'x')", MissingColumnError, "key column id is null"),
        ("INSERT INTO lines VALUES (1, 2, NULL)", MissingColumnError, "column product is null"),
        ("INSERT INTO lines (order_id, product) VALUES (1, 'x')", MissingColumnError, "column line has no value"),
        ("INSERT INTO lines (order_id, line) VALUES (1, 1)", MissingColumnError, "it is NOT NULL"),
        ("INSERT INTO orders VALUES (8, 1)", SqlError, "2 values for 4 columns"),
        ("INSERT INTO orders (id, nope) VALUES (8, 1)", UnknownColumnError, "no column nope"),
        ("INSERT INTO orders (id, ntoe) VALUES (8, 1)", UnknownColumnError, "did you mean note"),
        ("INSERT INTO ordres VALUES (8)", UnknownObjectError, "did you mean orders"),
        ("INSERT INTO orders (id) VALUES (8), ('x')", EverviewError, "'x'"),
        (
            "INSERT INTO orders (id, customer) VALUES (8, DATE '2020-01-01')",
            ValueTypeError,
            "INTEGER, and cannot .*DATE",
        ),
        ("INSERT INTO orders (id, amount) VALUES (8, 123456789.5)", ValueTypeError, "column amount is DECIMAL"),
        ("INSERT INTO orders (id) VALUES (99999999999999999999)", ValueTypeError, "column id is BIGINT"),
        ("INSERT INTO orders (id) SELECT nope FROM orders", UnknownObjectError, "line 1, column 32"),
        ("INSERT INTO orders (id) SELECT customer + 'a' FROM orders", EverviewError, ""),
        ("INSERT INTO visits (customer, __row) VALUES (1, 2)", UnknownColumnError, "no column __row"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    shop: everview.Database, text: str, kind: type[EverviewError], says: str
) -> None:
    before = [rows(shop, f"SELECT * FROM {name}") for name in ("orders", "lines", "visits")]
    with pytest.raises(kind, match=f"(?s){says}") as caught:
        shop.sql(text)
    assert "line 1, column" in str(caught.value)
    assert [rows(shop, f"SELECT * FROM {name}") for name in ("orders", "lines", "visits")] == before


def test_a_batch_whose_last_row_is_bad_writes_none(shop: everview.Database) -> None:
    with pytest.raises(ValueTypeError, match="column customer is INTEGER"):
        shop.sql("INSERT INTO visits SELECT CASE WHEN i < 20000 THEN '1' ELSE 'x' END, 'p' FROM range(20001) AS r (i)")
    assert shop.table("visits").count() == 4


def test_views_are_not_written(shop: everview.Database) -> None:
    shop.sql("CREATE VIEW v AS SELECT * FROM orders")
    for text in ("INSERT INTO v VALUES (1)", "UPDATE v SET id = 1", "DELETE FROM v"):
        with pytest.raises(UnknownObjectError, match=r"v is a plain view, not a table"):
            shop.sql(text)


# ------------------------------------------------------------------ UPDATE


def test_update_sets_columns_of_the_rows_that_are_meant(shop: everview.Database) -> None:
    assert shop.sql("UPDATE orders SET amount = amount * 2, note = upper(note) WHERE customer = 10").rows() == [(1,)]
    assert [(str(a), n) for a, n in rows(shop, "SELECT amount, note FROM orders WHERE id = 1")] == [("11.00", "A")]
    assert shop.sql("UPDATE orders SET note = NULL").rows() == [(3,)]
    assert shop.sql("UPDATE orders SET note = 'x' WHERE false").rows() == [(0,)]


def test_assignments_see_the_row_as_it_was(shop: everview.Database) -> None:
    shop.sql("CREATE TABLE p (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER); INSERT INTO p VALUES (1, 2, 3)")
    shop.sql("UPDATE p SET a = b, b = a")
    assert rows(shop, "SELECT a, b FROM p") == [(3, 2)]


def test_update_and_delete_look_into_other_tables(shop: everview.Database) -> None:
    shop.sql("""
        UPDATE orders AS o SET note = (SELECT max(product) FROM lines AS l WHERE l.order_id = o.id)
        WHERE EXISTS (SELECT 1 FROM visits WHERE visits.customer = o.customer)
    """)
    assert rows(shop, "SELECT id, note FROM orders ORDER BY id") == [(1, "ham"), (2, "ham"), (3, "c")]
    assert shop.sql("DELETE FROM lines WHERE order_id IN (SELECT id FROM orders WHERE note = 'ham')").rows() == [(3,)]
    assert rows(shop, "SELECT product FROM lines") == [("jam",)]


def test_update_of_a_key_moves_rows(shop: everview.Database) -> None:
    assert shop.sql("UPDATE orders SET id = id + 1").rows() == [(3,)]
    assert rows(shop, "SELECT id, note FROM orders") == [(2, "a"), (3, None), (4, "c")]
    shop.sql("UPDATE lines SET order_id = line, line = order_id WHERE order_id = 3")
    assert (1, 3, "jam") in rows(shop, "SELECT * FROM lines")
    shop.sql("UPDATE orders SET id = 5 - id WHERE id IN (2, 3)")
    assert rows(shop, "SELECT id, note FROM orders") == [(2, None), (3, "a"), (4, "c")]


def test_an_update_of_keys_is_one_batch(shop: everview.Database) -> None:
    start = shop.store.log.latest()
    shop.sql("UPDATE orders SET id = id + 100")
    whole = shop.store.log.latest()
    assert shop.store.log.advance(start, 1) == whole
    assert start.operations_to(whole) == 6


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("UPDATE orders SET id = 3 WHERE id = 1", r"the key of another: \(3\)"),
        ("UPDATE orders SET id = 9", r"two of the rows .*\(9\)"),
        ("UPDATE lines SET line = 1", r"two of the rows .*\(1, 1\)"),
        ("UPDATE orders SET id = NULL WHERE id = 1", "key column id is null"),
    ],
)
def test_keys_that_would_collide_are_refused(shop: everview.Database, text: str, says: str) -> None:
    before = rows(shop, "SELECT * FROM orders"), rows(shop, "SELECT * FROM lines")
    with pytest.raises(InputError, match=says):
        shop.sql(text)
    assert (rows(shop, "SELECT * FROM orders"), rows(shop, "SELECT * FROM lines")) == before


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("UPDATE orders SET ntoe = 1", UnknownColumnError, "did you mean note"),
        ("UPDATE orders SET customer = 'x'", ValueTypeError, "column customer is INTEGER"),
        ("UPDATE orders SET customer = [1]", ValueTypeError, r"INTEGER, and cannot take this INTEGER\[\]"),
        ("UPDATE lines SET product = NULL", MissingColumnError, "column product is null"),
        ("UPDATE orders SET customer = sum(customer)", SqlError, "line 1, column"),
        ("UPDATE orders SET customer = nope", UnknownObjectError, "line 1, column 30"),
        ("UPDATE orders SET note = 'x' WHERE customer = 'x'", EverviewError, ""),
        ("UPDATE orders SET note = 'x' WHERE nope = 1", UnknownObjectError, "no column nope"),
        ("UPDATE visits SET __row = '0'", UnknownColumnError, "no column __row"),
        ("DELETE FROM orders WHERE nope = 1", UnknownObjectError, "no column nope"),
        ("DELETE FROM visits WHERE __row IS NOT NULL", UnknownObjectError, "no column __row"),
        ("DELETE FROM nope", UnknownObjectError, "no table nope"),
        ("DELETE FROM orders WHERE note + 1 = 2", EverviewError, ""),
    ],
)
def test_what_cannot_be_changed_so_is_refused(
    shop: everview.Database, text: str, kind: type[EverviewError], says: str
) -> None:
    before = [rows(shop, f"SELECT * FROM {name}") for name in ("orders", "lines", "visits")]
    with pytest.raises(kind, match=f"(?s){says}"):
        shop.sql(text)
    assert [rows(shop, f"SELECT * FROM {name}") for name in ("orders", "lines", "visits")] == before


# ------------------------------------------------------------------ tables without a key


def test_rows_of_a_bag_are_updated_and_deleted_one_by_one(shop: everview.Database) -> None:
    assert shop.sql("UPDATE visits SET page = page || '!' WHERE customer = 10").rows() == [(2,)]
    assert rows(shop, "SELECT * FROM visits") == [(10, "home!"), (10, "home!"), (20, "cart"), (None, "home")]
    assert shop.sql("DELETE FROM visits WHERE customer IS NULL").rows() == [(1,)]
    assert shop.sql("DELETE FROM visits WHERE page = 'home!'").rows() == [(2,)]
    assert rows(shop, "SELECT * FROM visits") == [(20, "cart")]
    assert shop.sql("DELETE FROM visits").rows() == [(1,)]


def test_an_update_keeps_the_id_of_a_row(shop: everview.Database) -> None:
    table = shop.catalog.table("visits")

    def ids() -> list[object]:
        return [id for batch in shop.store.table(table).scan() for id in batch.column("__row").to_pylist()]

    before = ids()
    shop.sql("UPDATE visits SET customer = 0, page = 'p'")
    assert ids() == before
    shop.sql("UPDATE visits AS v SET page = (SELECT count(*) FROM visits AS w WHERE w.customer = v.customer)")
    assert ids() == before and rows(shop, "SELECT DISTINCT page FROM visits") == [("4",)]


def test_queries_never_see_the_hidden_id(shop: everview.Database) -> None:
    assert shop.sql("SELECT * FROM visits").names == ("customer", "page")
    assert shop.sql(
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT count(*) FROM r, visits"
    ).rows() == [(12,)]
    assert shop.sql(
        "DELETE FROM visits WHERE (customer, page) IN (SELECT * FROM visits WHERE customer = 20)"
    ).rows() == [(1,)]
    with pytest.raises(UnknownObjectError, match="no column __row"):
        shop.sql("SELECT __row FROM visits")


# ------------------------------------------------------------------ others at work


def test_a_table_that_gains_a_column_meanwhile_is_written_under_its_new_definition(
    shop: everview.Database, tmp_path: Path
) -> None:
    with everview.open(tmp_path / "store") as other:
        other.sql("SELECT * FROM orders").rows()
        shop.sql("ALTER TABLE orders ADD COLUMN more INTEGER; UPDATE orders SET more = 1")
        assert other.sql("UPDATE orders SET more = more + 1").rows() == [(3,)]
        assert rows(shop, "SELECT DISTINCT more FROM orders") == [(2,)]


def test_updates_of_the_same_row_are_all_counted(shop: everview.Database, tmp_path: Path) -> None:
    shop.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 0)")

    def work() -> None:
        with everview.open(tmp_path / "store", durability="none") as own:
            for _ in range(10):
                own.sql("UPDATE t SET n = n + 1 WHERE id = 1")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(shop, "SELECT n FROM t") == [(30,)]


def _count_up(directory: str, pipe: Connection) -> None:
    with everview.open(directory, durability="none") as db:
        while True:
            db.sql("UPDATE t SET n = n + 1, id = id + 1000")
            pipe.send(b"done")


def test_a_writer_killed_at_any_moment_leaves_whole_statements(tmp_path: Path) -> None:
    directory = str(tmp_path / "killed")
    with everview.open(directory, durability="none") as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER); INSERT INTO t SELECT i, 0 FROM range(1000) AS r (i)")
    context = multiprocessing.get_context("spawn")
    for updates in (1, 2, 3):
        here, there = context.Pipe(duplex=False)
        writer = context.Process(target=_count_up, args=(directory, there))
        writer.start()
        for _ in range(updates):
            here.recv()
        assert writer.pid is not None
        writer.kill()
        writer.join()
        assert writer.exitcode == -signal.SIGKILL
        with everview.open(directory) as db:
            ((least, most, count, lowest),) = rows(db, "SELECT min(n), max(n), count(*), min(id) FROM t")
            assert least == most and count == 1000 and lowest == least * 1000


def test_a_type_error_names_its_place(shop: everview.Database) -> None:
    with pytest.raises(SqlTypeError, match="line 2"):
        shop.sql("SELECT 1;\nDELETE FROM orders WHERE customer + [1] = 2")
