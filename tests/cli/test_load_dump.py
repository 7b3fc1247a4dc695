"""Rows into tables and out again: every type, every format, and what does not fit."""

from __future__ import annotations

import datetime
import json
import math
import os
import sys
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import everview
from everview.change.types import BIGINT, VARCHAR
from everview.cli.files import Format, csv, open_rows, rebatched
from tests.cli.conftest import Call
from tests.cli.terminal import terminal

TYPES = {
    "id": "BIGINT",
    "boolean": "BOOLEAN",
    "tiny": "TINYINT",
    "usmall": "USMALLINT",
    "ubig": "UBIGINT",
    "huge": "HUGEINT",
    "uhuge": "UHUGEINT",
    "real": "REAL",
    "double": "DOUBLE",
    "decimal": "DECIMAL(38,10)",
    "text": "VARCHAR",
    "bytes": "BLOB",
    "day": "DATE",
    "time": "TIME",
    "moment": "TIMESTAMP",
    "instant": "TIMESTAMPTZ",
    "span": "INTERVAL",
    "uuid": "UUID",
    "json": "JSON",
    "list": "DECIMAL(10,2)[]",
    "struct": 'STRUCT(a INTEGER, "b c" VARCHAR[], i INTERVAL)',
    "map": "MAP(VARCHAR, HUGEINT)",
    "spans": "INTERVAL[]",
    "numbers": "MAP(INTEGER, STRUCT(i INTERVAL))",
}
SPAN = pa.MonthDayNano([14, -3, 5_000_001_000])
FULL: dict[str, Any] = {
    "id": 1,
    "boolean": True,
    "tiny": -128,
    "usmall": 65535,
    "ubig": (1 << 64) - 1,
    "huge": -(1 << 127),
    "uhuge": (1 << 128) - 1,
    "real": 0.10000000149011612,
    "double": 0.1,
    "decimal": Decimal("-1234567890123456789012345678.0000000001"),
    "text": 'a, "b"\r\nc é',
    "bytes": b"\x00\\\xffa",
    "day": datetime.date(1969, 12, 31),
    "time": datetime.time(23, 59, 59, 999_999),
    "moment": datetime.datetime(2026, 1, 2, 3, 4, 5, 678_901),
    "instant": datetime.datetime(2026, 1, 2, 3, 4, 5, 678_901, datetime.UTC),
    "span": SPAN,
    "uuid": uuid.UUID(int=7),
    "json": '{"a": [1, null]}',
    "list": [Decimal("1.50"), None],
    "struct": {"a": None, "b c": ["x, y", None, ""], "i": SPAN},
    "map": {"k, 'q'": 1 << 100, "n": None},
    "spans": [SPAN, None],
    "numbers": {5: {"i": SPAN}, -1: None},
}
ROWS = [
    FULL,
    {"id": 2},
    {"id": 3, "text": "", "double": math.nan, "real": -math.inf, "list": [], "struct": {"b c": []}, "map": {}},
    {"id": 4, "text": "NULL", "double": -0.0, "decimal": 0, "bytes": b"", "spans": [], "json": "null"},
]
SCALARS = [name for name, kind in TYPES.items() if ("[" not in kind and "(" not in kind) or "DECIMAL(38" in kind]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def db(store: Path) -> Iterator[everview.Database]:
    with everview.open(store, durability="none") as found:
        yield found


def rows_of(db: everview.Database, table: str) -> list[str]:
    """Rows as text, in which NaN equals itself and −0.0 differs from 0.0."""
    return [repr(row) for row in db.table(table).scan().dicts()]


def filled(db: everview.Database, names: list[str]) -> None:
    db.create_table("t", {name: TYPES[name] for name in names}, ["id"])
    db.table("t").put_many([{name: value for name, value in row.items() if name in names} for row in ROWS])


# ------------------------------------------------------------------ there and back


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_every_value_comes_back(call: Call, db: everview.Database, store: Path, tmp_path: Path, form: str) -> None:
    """CSV carries the scalars; the other two carry everything."""
    filled(db, SCALARS if form == "csv" else list(TYPES))
    file = tmp_path / f"t.{form}"
    assert call("dump", store, "t", file).out.startswith(f"4 rows to {file} in ")
    db.create_table("u", db.table("t").schema)
    assert call("load", store, "u", file).code == 0
    assert rows_of(db, "u") == rows_of(db, "t")
    assert not list(tmp_path.glob("*.partial"))


def test_parquet_brings_its_types_along(call: Call, db: everview.Database, store: Path, tmp_path: Path) -> None:
    filled(db, list(TYPES))
    assert call("dump", store, "t", tmp_path / "t.parquet").code == 0
    assert call("load", store, "u", tmp_path / "t.parquet", "--create", "--key", "id").code == 0
    assert db.table("u").schema.columns == db.table("t").schema.columns
    assert rows_of(db, "u") == rows_of(db, "t")


def test_nested_values_in_csv(call: Call, db: everview.Database, store: Path, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, l INTEGER[], s STRUCT(a INTEGER, b VARCHAR))")
    db.sql("INSERT INTO t VALUES (1, [1, NULL], {'a': 1, 'b': 'x, y'}), (2, NULL, NULL)")
    assert call("dump", store, "t", tmp_path / "t.csv").code == 0
    db.create_table("u", db.table("t").schema)
    assert call("load", store, "u", tmp_path / "t.csv").code == 0
    assert rows_of(db, "u") == rows_of(db, "t")
    (tmp_path / "bad.csv").write_text('id,l\n3,"[1]"\n4,"[x]"\n', "utf-8")
    said = call("load", store, "u", tmp_path / "bad.csv")
    assert said.code == 1 and "bad.csv, row 2, column l: '[x]' is not a value of INTEGER[]" in said.err


def test_files_of_others_make_tables(call: Call, db: everview.Database, store: Path, tmp_path: Path) -> None:
    table = pa.table(
        {
            "k": pa.array(["a", "b"]).dictionary_encode(),
            "n": pa.array([1, None], pa.int16()),
            "ms": pa.array([0, 1], pa.timestamp("ms", "Europe/Paris")),
            "d": pa.array([1, 2], pa.duration("s")),
            "big": pa.array([["x"], None], pa.large_list(pa.large_string())),
            "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
            "none": pa.nulls(2),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    assert call("load", store, "p", tmp_path / "t.parquet", "--create", "--key", "k").code == 0
    kinds = [str(column.type) for column in db.table("p").schema.columns]
    assert kinds == ["VARCHAR", "SMALLINT", "TIMESTAMPTZ", "INTERVAL", "VARCHAR[]", "BLOB", "VARCHAR"]
    assert db.table("p").get("a")["big"] == ["x"]  # type: ignore[index]

    (tmp_path / "t.csv").write_text(
        "n,zip,x,yes,day,at,zone,name,void\n1,007,1,true,2026-01-02,2026-01-02 03:04,2026-01-02T03:04:05Z,a,\n"
        "2,100,1.5,false,,2026-01-02 03:04:05.6,,b,\n",
        "utf-8-sig",
    )
    assert call("load", store, "c", tmp_path / "t.csv", "--create").code == 0
    kinds = [str(column.type) for column in db.table("c").schema.shown]
    assert kinds == ["BIGINT", "VARCHAR", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR", "VARCHAR"]

    lines = [{"a": 1, "l": [1, 2.5], "s": {"x": "y"}, "m": 1}, {"a": 1 << 70, "l": [], "b": True, "m": {}}]
    (tmp_path / "t.jsonl").write_text("\n\n".join(map(json.dumps, lines)), "utf-8")
    assert call("load", store, "j", tmp_path / "t.jsonl", "--create").code == 0
    kinds = [str(column.type) for column in db.table("j").schema.shown]
    assert kinds == ["HUGEINT", "DOUBLE[]", "STRUCT(x VARCHAR)", "JSON", "BOOLEAN"]
    assert db.table("j").count() == 2
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n{"a": "x"}', "utf-8")
    said = call("load", store, "k", tmp_path / "t.jsonl", "--create")
    assert said.code == 1 and "has no type for column a" in said.err and "k" not in db.tables()


def test_several_files_and_batches(call: Call, db: everview.Database, store: Path, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER)")
    (tmp_path / "a.csv").write_text("id,n\n" + "".join(f"{at},{at}\n" for at in range(7)), "utf-8")
    (tmp_path / "b.jsonl").write_text('{"id": 2}\n{"id": 3, "n": null}\n', "utf-8")
    before = sum(db.store.log.latest().values())
    said = call("load", store, "t", tmp_path / "a.csv", tmp_path / "b.jsonl", "--batch", "3", "--json")
    found = json.loads(said.out)
    assert found["rows"] == 9 and [one["rows"] for one in found["files"]] == [7, 2] and found["table"] == "t"
    assert db.sql("SELECT n FROM t ORDER BY id").rows() == [(0,), (1,), (2,), (None,), (4,), (5,), (6,)]
    assert sum(db.store.log.latest().values()) - before == 9


@pytest.mark.parametrize("name", ["t.tsv", "t.csv.gz", "t.csv.zst", "t.jsonl.gz"])
def test_delimiters_and_compression_are_known_by_the_name(
    call: Call, shop: everview.Database, store: Path, tmp_path: Path, name: str
) -> None:
    shop.sql("UPDATE orders SET customer = NULL WHERE id = 2")
    assert call("dump", store, "orders", tmp_path / name).code == 0
    written = (tmp_path / name).read_bytes()
    assert (b"1\t10\t5.50\n" in written) == name.endswith(".tsv")
    assert written.startswith(b"\x1f\x8b") == name.endswith(".gz")
    shop.create_table("copy", shop.table("orders").schema)
    assert call("load", store, "copy", tmp_path / name).code == 0
    assert rows_of(shop, "copy") == rows_of(shop, "orders")


def test_another_delimiter_and_a_pattern_of_files(
    call: Call, shop: everview.Database, store: Path, tmp_path: Path
) -> None:
    words = ("--query", "SELECT id + 10 AS id, customer FROM orders", "--delimiter", ";")
    assert call("dump", store, *words, tmp_path / "a.csv").code == 0
    assert (tmp_path / "a.csv").read_text("utf-8") == "id;customer\n11;10\n12;20\n13;10\n"
    (tmp_path / "b.csv").write_text("id;amount\n14;1.5\n", "utf-8")
    said = call("load", store, "orders", tmp_path / "*.csv", "--delimiter", ";")
    assert said.code == 0 and said.out.startswith("4 rows into orders") and shop.table("orders").count() == 7
    assert call("load", store, "orders", tmp_path / "*.csv", "--delimiter", ";;").code == 2


def test_batches_of_exactly_so_many_rows() -> None:
    parts = ((0, 5), (5, 0), (5, 1), (6, 6))
    given = [pa.table({"n": pa.array(range(start, start + count), pa.int64())}) for start, count in parts]
    found = [part["n"].to_pylist() for part in rebatched(given, 4)]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


# ------------------------------------------------------------------ what is dumped


@pytest.fixture
def shop(db: everview.Database) -> everview.Database:
    db.sql("""
        CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2));
        INSERT INTO orders VALUES (1, 10, 5.50), (2, 20, 7), (3, 10, 1);
        CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
        CREATE VIEW large AS SELECT * FROM orders WHERE amount > 5;
        CREATE INDEX by_customer ON orders (customer);
    """)
    return db


def test_tables_views_and_queries_to_standard_output(call: Call, shop: everview.Database, store: Path) -> None:
    assert call("dump", store, "totals", "-", "--format", "csv").out == "customer,total\n10,6.50\n20,7.00\n"
    assert call("dump", store, "large", "-", "--format", "csv").out == "id,customer,amount\n1,10,5.50\n2,20,7.00\n"
    said = call("dump", store, "--query", "SELECT max(id) AS last FROM orders", "-", "--format", "jsonl")
    assert said.out == '{"last":3}\n' and said.err == ""
    shop.sql("CREATE TABLE one (x VARCHAR); INSERT INTO one VALUES (NULL), (''), ('a')")
    assert sorted(call("dump", store, "one", "-", "--format", "csv").out.splitlines()) == ["", '""', "a", "x"]


def test_what_cannot_be_dumped(call: Call, shop: everview.Database, store: Path, tmp_path: Path) -> None:
    for words, message in (
        (("by_customer", "x.csv"), "by_customer"),
        (("order", "x.csv"), "order"),
        (("--query", "DELETE FROM orders", "x.csv"), "SELECT only"),
        (("--query", "SELECT 1 AS a, 2 AS a", tmp_path / "x.csv"), "two columns have the name 'a'"),
        (("orders", tmp_path / "nowhere" / "x.csv"), "cannot be written"),
        (("--query", "SELECT CAST(CAST(id AS VARCHAR) || 'x' AS INTEGER) AS n FROM orders", tmp_path / "x.csv"), "1x"),
    ):
        said = call("dump", store, *words)
        assert said.code == 1 and message in said.err and "Traceback" not in said.err, words
    assert not list(tmp_path.glob("*.csv*")) and not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "words",
    [("orders",), ("orders", "x.txt"), ("orders", "-"), ("orders", "-", "--format", "parquet"), ("a", "b", "c.csv")],
)
def test_dump_with_what_makes_no_sense(call: Call, store: Path, words: tuple[str, ...]) -> None:
    said = call("dump", store, *words)
    assert said.code == 2 and "Usage: everview dump" in said.err


# ------------------------------------------------------------------ what does not fit


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "id,amount\n1,2\n2,much\n", "a.csv, row 2, column amount: 'much' is not a value of DECIMAL(10,2)"),
        ("a.csv", "id,amount\n1,1.005\n", "a.csv, row 1, column amount: '1.005' is not a value of DECIMAL(10,2)"),
        ("a.csv", "id\n1\n4.6\n", "a.csv, row 2, column id: '4.6' is not a value of BIGINT"),
        ("a.csv", "id,amount\n1,2\n,3\n", "a.csv, row 2: table orders"),
        ("a.csv", "id,amount\n1,2\n2,3,4\n", "a.csv, line 3 has 3 fields, and the first line names 2"),
        ("a.csv", "id,price\n1,2\n", "a.csv has a column price, and table orders has none"),
        ("a.csv", "id,id\n1,2\n", "two columns with the name 'id'"),
        ("a.csv", "", "a.csv is empty"),
        ("a.jsonl", '{"id": 1}\n\n{"id": 2, "amount": "x"}', "a.jsonl, line 3, column amount: 'x' is not a value"),
        ("a.jsonl", '{"id": 1}\n{"id": 2.5}', "a.jsonl, line 2, column id"),
        (
            "a.jsonl",
            '{"id": 1}\n{"id": 1, "amount": 123456789012}',
            "a.jsonl, row 2: table orders, key (1): column amount",
        ),
        ("a.jsonl", '{"id": 1}\n{"id": }', "a.jsonl, line 2 is not JSON"),
        ("a.jsonl", "[1]", "a.jsonl, line 1 is not an object"),
        ("a.jsonl", '{"id": 1, "price": 2}', "a.jsonl has a column price"),
        ("a.parquet", "id", "a.parquet cannot be read as Parquet"),
    ],
)
def test_what_does_not_fit_is_named(
    call: Call, shop: everview.Database, store: Path, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    said = call("load", store, "orders", tmp_path / name)
    assert said.code == 1 and message in said.err and "Traceback" not in said.err
    assert shop.table("orders").count() == 3


def test_a_row_of_csv_that_is_too_long(
    call: Call, shop: everview.Database, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv, "LONGEST", 1000)
    rows = [f"{at},10" for at in range(100)] + [f'"{" " * 5000}7",10']
    (tmp_path / "a.csv").write_text("\n".join(["id,customer", *rows]), "utf-8")
    said = call("load", store, "orders", tmp_path / "a.csv")
    assert said.code == 1 and "a row of more than 1,000 bytes" in said.err


def test_batches_before_the_one_that_fails_are_there(
    call: Call, shop: everview.Database, store: Path, tmp_path: Path
) -> None:
    amounts = [Decimal(1)] * 5 + [Decimal(10**9)] + [Decimal(1)] * 4
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": list(range(100, 110)), "amount": pa.array(amounts, pa.decimal128(20, 2))}), file)
    said = call("load", store, "orders", file, "--batch", "2")
    assert said.code == 1 and "a.parquet, row 6: table orders, key (105): column amount" in said.err
    assert "4 rows of" in said.err and shop.table("orders").count() == 7
    pq.write_table(pa.table({"id": ["a"]}), file)
    assert "a.parquet: table orders: " in call("load", store, "orders", file).err


def test_standard_input(call: Call, shop: everview.Database, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for form, text in (("csv", 'id,amount\r\n7,"7.5"\r\n'), ("jsonl", '{"id": 8, "amount": 8.25}')):
        source, target = os.pipe()
        os.write(target, text.encode())
        os.close(target)
        with os.fdopen(source, encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            assert call("load", store, "orders", "-", "--format", form).code == 0
    assert shop.sql("SELECT amount FROM orders WHERE id > 6").rows() == [(Decimal("7.50"),), (Decimal("8.25"),)]


def test_standard_input_that_is_a_file(
    call: Call, shop: everview.Database, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("id\n7\n8\n", "utf-8")
    with (tmp_path / "a.csv").open(encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert call("load", store, "orders", "-", "--format", "csv").code == 0
        said = call("load", store, "orders", "-", "--format", "csv")
    assert said.code == 1 and "beginning was read already" in said.err
    assert shop.table("orders").count() == 5


def test_a_table_that_is_there_keeps_its_key(call: Call, shop: everview.Database, store: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n9\n", "utf-8")
    assert call("load", store, "orders", tmp_path / "a.csv", "--create", "--key", "id").code == 0
    said = call("load", store, "orders", tmp_path / "a.csv", "--create", "--key", "customer")
    assert said.code == 1 and "is there already, with the key (id)" in said.err
    assert call("load", store, "totals", tmp_path / "a.csv").code == 1


@pytest.mark.parametrize(
    "words", [("t", "missing.csv"), ("t", "-"), ("t",), ("t", __file__), ("t", "-", "--format", "csv", "--key", "id")]
)
def test_load_with_what_makes_no_sense(call: Call, store: Path, words: tuple[str, ...]) -> None:
    said = call("load", store, *words)
    assert said.code == 2 and "Usage: everview load" in said.err


# ------------------------------------------------------------------ large files


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_a_file_is_read_as_far_as_its_rows_are_needed(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv, "LONGEST", 20_000)
    file = tmp_path / f"large.{form}"
    count = 100_000
    if form == "parquet":
        pq.write_table(pa.table({"id": range(count), "t": ["x" * 80] * count}), file, row_group_size=10_000)
    elif form == "csv":
        file.write_text("id,t\n" + "".join(f"{at},{'x' * 80}\n" for at in range(count)), "utf-8")
    else:
        file.write_text("".join(f'{{"id": {at}, "t": "{"x" * 80}"}}\n' for at in range(count)), "utf-8")
    source = open_rows(str(file), Format(form))
    try:
        first = next(source.batches({"id": BIGINT, "t": VARCHAR}, 1000))
        assert len(first) == 1000 and source.size is not None and 0 < source.done() < source.size / 2
    finally:
        source.close()


def test_bars_are_drawn_on_a_terminal(shop: everview.Database, store: Path, tmp_path: Path) -> None:
    file = tmp_path / "more.csv"
    file.write_text("id\n" + "".join(f"{at}\n" for at in range(100, 110)), "utf-8")
    with terminal("load", store, "orders", file, "--batch", "3", columns=200) as shown:
        assert shown.end() == 0
        assert " %" in shown.raw and "10 rows into orders in " in shown.raw and shown.raw.count("Traceback") == 0
    with terminal("dump", store, "totals", tmp_path / "totals.jsonl", columns=200) as shown:
        assert shown.end() == 0 and " rows to " in shown.raw
    assert len((tmp_path / "totals.jsonl").read_text("utf-8").splitlines()) == 2
