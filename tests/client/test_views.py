"""Views by key and by range: the same rows as SQL gives, at the last committed epoch."""

from __future__ import annotations

import random
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import everview
from everview.errors import DefinitionError, InputError, UnknownObjectError, ValueTypeError

KEYS = ["BOOLEAN", "TINYINT", "INTEGER", "UBIGINT", "HUGEINT", "REAL", "DOUBLE", "DECIMAL(9,3)", "DECIMAL(30,2)"]
KEYS += ["DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR", "BLOB", "UUID", "INTERVAL", "INTEGER[]"]
VALUES = {
    "BOOLEAN": "id % 2 = 0",
    "BLOB": "encode('x' || id)",
    "DATE": "DATE '2020-01-01' + id::INTEGER",
    "TIME": "TIME '01:02:03' + INTERVAL (id) MINUTE",
    "TIMESTAMP": "TIMESTAMP '2020-01-01 10:00:00' + INTERVAL (id) HOUR",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2020-01-01 10:00:00+00' + INTERVAL (id) HOUR",
    "UUID": "('00000000-0000-0000-0000-' || lpad(id::VARCHAR, 12, '0'))::UUID",
    "INTERVAL": "INTERVAL (id) DAY",
    "INTEGER[]": "[id::INTEGER, 7]",
    "TINYINT": "(id % 100)::TINYINT",
}


@pytest.fixture
def totals(shop: everview.Database) -> everview.Database:
    shop.sql("""
        CREATE MATERIALIZED VIEW totals AS
            SELECT count(*) AS n, note, customer, sum(amount) AS total FROM orders GROUP BY customer, note;
        CREATE MATERIALIZED VIEW products AS SELECT product, order_id, line FROM lines;
        CREATE MATERIALIZED VIEW pages AS SELECT page FROM visits;
        CREATE MATERIALIZED VIEW everything AS SELECT count(*) AS n FROM lines;
    """)
    return shop


def test_a_row_by_its_key(totals: everview.Database) -> None:
    view = totals.view("totals")
    assert view.key == ("customer", "note")
    assert view.get(10, "a") == {"n": 1, "note": "a", "customer": 10, "total": Decimal("5.50")}
    assert view.get(20, None) == {"n": 1, "note": None, "customer": 20, "total": Decimal("7.00")}
    assert view.get(None, "c") == {"n": 1, "note": "c", "customer": None, "total": None}
    assert view.get(10, "b") is None
    assert totals.view("TOTALS").get(10, "a") == view.get(10, "a")


def test_a_view_of_one_row_has_a_key_of_no_values(totals: everview.Database) -> None:
    assert totals.view("everything").get() == {"n": 4}
    with pytest.raises(InputError, match="1 values for a key of 0"):
        totals.view("everything").get(4)


def test_what_is_not_committed_is_not_seen(totals: everview.Database) -> None:
    view = totals.view("totals")
    totals.table("orders").put({"id": 4, "customer": 10, "note": "a", "amount": 1})
    assert view.get(10, "a") == {"n": 1, "note": "a", "customer": 10, "total": Decimal("5.50")}
    totals.flush()
    assert view.get(10, "a") == {"n": 2, "note": "a", "customer": 10, "total": Decimal("6.50")}
    totals.table("orders").delete_many([1, 4])
    totals.flush()
    assert view.get(10, "a") is None


@pytest.mark.parametrize("kind", KEYS)
def test_a_row_by_a_key_of_any_type(db: everview.Database, kind: str) -> None:
    db.create_table("t", {"id": "BIGINT", "k": kind, "v": "VARCHAR"}, key=["id"])
    value = VALUES.get(kind, f"id::{kind}")
    db.sql(f"INSERT INTO t SELECT id, {value}, 'v' || id FROM range(40) r(id)")
    db.sql("INSERT INTO t VALUES (100, NULL, 'none')")
    db.sql("CREATE MATERIALIZED VIEW g AS SELECT k, count(*) AS n, min(v) AS first FROM t GROUP BY k")
    view = db.view("g")
    rows = view.scan().dicts()
    assert len(rows) == len(db.sql("SELECT DISTINCT k FROM t").rows())
    for row in rows:
        found = view.get(row["k"])
        assert found is not None
        if kind == "INTERVAL" and row["k"] is not None:
            interval = found["k"]
            assert isinstance(interval, pa.MonthDayNano)
            months, days, _ = interval
            assert 30 * months + days == row["k"].days, "months stay apart from days"
            found["k"] = row["k"]
        assert found == row and list(found) == ["k", "n", "first"]
        assert [type(value) for value in found.values()] == [type(value) for value in row.values()]
    assert view.get_many(view.scan().arrow().select(["k"])).num_rows == len(rows)


def test_keys_longer_than_the_store_takes(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, k VARCHAR)")
    texts = ["", "a", "ä" * 300, "x" * 383, "x" * 384, "x" * 399, "x" * 500, "x" * 500 + "y", "y"]
    db.table("t").put_many([{"id": i, "k": text} for i, text in enumerate(texts)])
    db.sql("CREATE MATERIALIZED VIEW g AS SELECT k, count(*) AS n FROM t GROUP BY k")
    view = db.view("g")
    for text in texts:
        assert view.get(text) == {"k": text, "n": 1}
    assert view.get("x" * 501) is None
    for start in (*texts, "x" * 450, "x" * 384 + "y"):
        assert {k for k, _ in view.scan(start=(start,))} == {text for text in texts if text >= start}
        assert {k for k, _ in view.scan(stop=(start,))} == {text for text in texts if text < start}


def test_ranges_are_those_of_the_key(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (a INTEGER, b VARCHAR, c DOUBLE, PRIMARY KEY (a, b))")
    rng = random.Random(5)
    rows = {(rng.randrange(-3, 9), rng.choice(["", "a", "ab", "b", "\0", "é"])): rng.random() for _ in range(60)}
    db.table("t").put_many([{"a": a, "b": b, "c": c} for (a, b), c in rows.items()])
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT c * 1 AS c, b, a FROM t")
    view = db.view("v")
    assert view.key == ("a", "b")
    keys = sorted(rows, key=lambda key: (key[0], key[1].encode()))

    def found(**asked: object) -> list[tuple[int, str]]:
        return [(a, b) for _, b, a in view.scan(**asked)]  # type: ignore[arg-type]

    assert found() == keys
    for a in range(-4, 10):
        assert found(prefix=(a,)) == [key for key in keys if key[0] == a]
        assert found(start=(a,)) == [key for key in keys if key[0] >= a]
        assert found(stop=(a,)) == [key for key in keys if key[0] < a]
        assert found(start=(a,), limit=3) == [key for key in keys if key[0] >= a][:3]
        assert found(prefix=(a,), start=(a, "ab")) == [key for key in keys if key[0] == a and key[1] >= "ab"]
        for b in ("", "a", "b", "\0"):
            assert found(start=(a, b), stop=(a + 2, b)) == [key for key in keys if (a, b) <= key < (a + 2, b)]
    assert found(limit=0) == []
    assert found(start=(5,), stop=(1,)) == []


def test_a_long_scan_comes_in_blocks(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t SELECT range FROM range(3000)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, id * 2 AS twice FROM t")
    view = db.view("v")
    assert list(view.scan()) == [(i, 2 * i) for i in range(3000)]
    assert [i for i, _ in view.scan(start=(10,), stop=(2999,), limit=2000)] == list(range(10, 2010))
    assert view.count() == 3000
    with view.scan() as result:
        assert next(iter(result)) == (0, 0)


def test_many_keys_at_once(totals: everview.Database) -> None:
    view = totals.view("totals")
    found = view.get_many([(20, None), (1, "x"), (10, "a")])
    assert found.column_names == ["n", "note", "customer", "total"]
    assert found["customer"].to_pylist() == [20, 10]
    keys = pa.table({"note": ["a", "x"], "customer": pa.array([10, 10], pa.int64())})
    assert view.get_many(keys)["customer"].to_pylist() == [10]
    assert view.get_many([]).num_rows == 0
    with pytest.raises(InputError, match="no column note"):
        view.get_many(keys.select(["customer"]))
    with pytest.raises(ValueTypeError, match="key column customer"):
        view.get_many([("x", "a")])


def test_a_hidden_row_key_cannot_be_asked_for(totals: everview.Database) -> None:
    view = totals.view("pages")
    assert sorted(view.scan().rows()) == [("cart",), ("home",), ("home",), ("home",)]
    assert view.count() == 4
    for call in (lambda: view.get("home"), lambda: view.get_many(["home"]), lambda: view.scan(("home",))):
        with pytest.raises(DefinitionError, match="have no key to"):
            call()


def test_a_wrong_key_is_explained(totals: everview.Database) -> None:
    view = totals.view("totals")
    with pytest.raises(ValueTypeError, match="view totals, key column customer cannot take 'x'"):
        view.get("x", "a")
    with pytest.raises(InputError, match="view totals, key column note has no value"):
        view.get(10)
    with pytest.raises(InputError, match="too many values"):
        view.get(10, "a", 1)
    with pytest.raises(InputError, match="too many values"):
        view.scan((10, "a", 1))


def test_a_view_is_read_in_the_order_it_says(totals: everview.Database) -> None:
    totals.sql("CREATE MATERIALIZED VIEW latest AS SELECT id, amount FROM orders ORDER BY id DESC")
    view = totals.view("latest")
    assert [id for id, _ in view.scan()] == [3, 2, 1]
    assert [id for id, _ in view.scan(limit=2)] == [3, 2]
    assert [id for id, _ in view.scan(start=(2,))] == [3, 2]
    assert view.get(2) == {"id": 2, "amount": Decimal("7.00")}


def test_views_of_one_family_have_a_part_each(totals: everview.Database) -> None:
    for least in range(4, 9):
        totals.sql(f"CREATE MATERIALIZED VIEW over_{least} AS SELECT id, amount FROM orders WHERE amount > {least}")
    for least in range(4, 9):
        view = totals.view(f"over_{least}")
        expected = [(1, Decimal("5.50")), (2, Decimal("7.00"))][0 if least < 6 else 1 if least < 7 else 2 :]
        assert view.scan().rows() == expected
        assert view.scan(start=(2,)).rows() == [row for row in expected if row[0] >= 2]
        assert (view.get(2) is not None) == (least < 7)
        assert view.count() == len(expected)


def test_a_view_that_is_gone_or_is_another_now(totals: everview.Database, tmp_path: Path) -> None:
    view = totals.view("everything")
    assert view.get() == {"n": 4}
    totals.sql("CREATE OR REPLACE MATERIALIZED VIEW everything AS SELECT product, count(*) AS n FROM lines GROUP BY 1")
    assert view.get("ham") == {"product": "ham", "n": 2}
    assert view.key == ("product",)
    totals.sql("DROP MATERIALIZED VIEW everything")
    for call in (lambda: view.get("ham"), lambda: view.get("none"), lambda: view.count(), lambda: view.scan()):
        with pytest.raises(UnknownObjectError, match="everything"):
            call()
    with pytest.raises(UnknownObjectError, match="orders is a table, not a view"):
        totals.view("orders")


def test_a_view_that_is_not_built_cannot_be_read(shop: everview.Database) -> None:
    with shop.store.lease("maintenance"):
        shop.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders")
        with pytest.raises(DefinitionError, match="not built yet"):
            shop.view("v")
    shop.flush()
    assert shop.view("v").count() == 3


def test_a_scan_holds_its_version(totals: everview.Database) -> None:
    view = totals.view("products")
    result = view.scan()
    totals.sql("DELETE FROM lines")
    totals.flush()
    totals.sql("INSERT INTO lines VALUES (9, 9, 'new')")
    totals.flush()
    assert len(result.rows()) == 4
    assert view.count() == 1


def test_reads_beside_epochs_and_views_that_come_and_go(db: everview.Database) -> None:
    """Every get shows a committed epoch: all counters of one batch are equal, whatever happens."""
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    db.sql("CREATE MATERIALIZED VIEW same AS SELECT id, n FROM t")
    ids = list(range(30))
    db.table("t").put_many([{"id": i, "n": 0} for i in ids])
    db.flush()
    over = threading.Event()
    seen: list[int] = []
    wrong: list[object] = []

    def read() -> None:
        view = db.view("same")
        last = 0
        while not over.is_set():
            row = view.get(random.choice(ids))
            if row is None or int(str(row["n"])) < last:
                wrong.append((last, row))
                return
            last = int(str(row["n"]))
            together = set(view.scan().arrow()["n"].to_pylist())
            if len(together) != 1:
                wrong.append(together)
                return
            seen.append(last)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(1, 40):
        db.table("t").put_many([{"id": i, "n": n} for i in ids])
        if n % 10 == 5:
            db.sql(f"CREATE MATERIALIZED VIEW other_{n} AS SELECT n, count(*) AS c FROM t GROUP BY n")
        if n % 10 == 9:
            db.sql(f"DROP MATERIALIZED VIEW other_{n - 4}")
        db.flush()
    over.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert seen and db.view("same").get(0) == {"id": 0, "n": 39}


def test_other_processes_views(totals: everview.Database, tmp_path: Path) -> None:
    with everview.open(tmp_path / "store") as other:
        view = other.view("totals")
        assert view.get(10, "a") is not None
        totals.table("orders").delete(1)
        totals.flush()
        assert view.get(10, "a") is None
