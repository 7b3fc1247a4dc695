"""Tables and views read by Spark: at one frontier, in parts, whatever happens meanwhile."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import everview
from everview.change.types import parse_type
from everview.errors import DefinitionError, InputError, SnapshotExpiredError, UnknownObjectError
from everview.zones import batch_source
from everview.zones.batch_source import EverviewReader, for_spark, spark_type
from tests.client.kinds import VIEWS, define, write
from tests.oracle.maintained import bag, database


def plan(db: everview.Database, **options: object) -> tuple[EverviewReader, list[batch_source.SnapshotPartition]]:
    given = {name: str(value) for name, value in options.items()}
    reader = EverviewReader({"path": str(db.store.directory), **given})  # type: ignore[attr-defined]
    return reader, list(reader.partitions())


def rows_of(reader: EverviewReader, parts: list[batch_source.SnapshotPartition]) -> pa.Table:
    schema = pa.schema([pa.field(c.name, for_spark(c.type).arrow) for c in reader.columns()])
    found = [pa.Table.from_batches([batch]).cast(schema) for part in parts for batch in reader.read(part)]
    return pa.concat_tables([schema.empty_table(), *found])


def as_spark(db: everview.Database, name: str) -> pa.Table:
    """What SQL says of a table or view, in the types of Spark."""
    result = db.sql(f"SELECT * FROM {name}")
    casts = ", ".join(f'CAST("{c.name}" AS {for_spark(c.type)}) AS "{c.name}"' for c in result.columns)
    connection = database()
    connection.register("found", result.arrow())
    rows = connection.sql(f"SELECT {casts} FROM found").to_arrow_table()
    connection.unregister("found")
    return rows


@pytest.mark.parametrize("block", [4, 16_384])
def test_every_view_at_the_frontier_that_was_chosen(
    db: everview.Database, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Planned, then written to and flushed several times, then read: the rows of when it was planned."""
    monkeypatch.setattr(batch_source, "BLOCK", block)
    define(db)
    rng = random.Random(block)
    write(db, rng, 40)
    db.flush()
    names = [*VIEWS, "a", "b", "c"]
    expected = {name: bag(as_spark(db, name)) for name in names}
    epoch, frontier = db.store.views.committed("main").epoch, db.store.log.latest()
    planned = {name: plan(db, **{"view" if name in VIEWS else "table": name}) for name in names}
    for _ in range(3):
        write(db, rng, 10)
        db.flush()
    write(db, rng, 5)
    assert {name: bag(rows_of(*planned[name])) for name in names} == expected
    assert max(len(parts) for _, parts in planned.values()) > 1 if block == 4 else True
    for option in ({"epoch": epoch}, {"frontier": frontier}):
        again = {name: plan(db, **{"view" if name in VIEWS else "table": name}, **option) for name in names}
        assert {name: bag(rows_of(*again[name])) for name in names} == expected


def test_parts_hold_every_row_once(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_source, "BLOCK", 100)
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t SELECT range, 1 FROM range(20000)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t WHERE id % 10 = 0")
    for option, ids in (({"view": "v"}, range(0, 20000, 10)), ({"table": "t"}, range(20000))):
        reader, parts = plan(db, **option, partitions=3)
        assert len(parts) == 3
        pieces = [rows_of(reader, [part])["id"].to_pylist() for part in parts]
        assert all(pieces) and sorted(id for piece in pieces for id in piece) == list(ids)
    reader, parts = plan(db, view="v", partitions=1)
    assert len(parts) == 1 and len(rows_of(reader, parts)) == 2000
    db.sql("DELETE FROM t; FLUSH")
    assert rows_of(*plan(db, view="v")).num_rows == 0
    assert rows_of(reader, parts).num_rows == 2000


def test_what_cannot_be_read(db: everview.Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
    with pytest.raises(InputError, match="needs a path, and a table or a view"):
        plan(db)
    with pytest.raises(UnknownObjectError):
        plan(db, view="w")
    with pytest.raises(SnapshotExpiredError, match="epoch 999"):
        plan(db, view="v", epoch=999)
    with pytest.raises(InputError, match="cannot be read at f:1=999"):
        plan(db, table="t", frontier="f:1=999")
    with db.store.lease("maintenance"):
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT id FROM t")
        with pytest.raises(DefinitionError, match="not built yet"):
            plan(db, view="w")
    with everview.open(tmp_path / "other", before_images=False) as other:
        other.sql("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")
        before = other.store.log.latest()
        assert rows_of(*plan(other, table="t")).num_rows == 1
        other.sql("INSERT INTO t VALUES (2)")
        with pytest.raises(SnapshotExpiredError, match="cannot be read at"):
            plan(other, table="t", frontier=before)


def test_types_that_spark_has() -> None:
    kinds = {
        "UBIGINT": "decimal(20,0)",
        "HUGEINT": "decimal(38,0)",
        "UTINYINT": "smallint",
        "TIMESTAMP": "timestamp_ntz",
        "TIMESTAMPTZ": "timestamp",
        "STRUCT(a UUID, b UINTEGER[])": "struct<a:string,b:array<bigint>>",
        "MAP(VARCHAR, TIME)": "map<string,string>",
        "DECIMAL(10,2)": "decimal(10,2)",
        "TIMESTAMP_S": "timestamp_ntz",
        "TIMESTAMP_NS": "string",
        "ENUM('a', 'b')[2]": "array<string>",
        "BIGNUM[]": "array<string>",
        "TUPLE(TIMETZ, TUPLE(BIT))": "struct<_1:string,_2:struct<_1:string>>",
    }
    assert {text: spark_type(for_spark(parse_type(text))).simpleString() for text in kinds} == kinds


RARE = (
    "e ENUM('b', 'a'), t TIMETZ, b BIT, n TIMESTAMP_NS, s TIMESTAMP_S, a INTEGER[2], p TUPLE(INTEGER, ENUM('x')),"
    " i BIGNUM"
)
VALUES = (
    "('a', '12:00:00+01', '0101', '2020-01-01 00:00:00.123456789', '2020-01-01 00:00:00', [1, NULL], (1, 'x'),"
    f" '-{'9' * 50}')",
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
)


def test_rows_of_types_that_spark_has_not(db: everview.Database) -> None:
    db.sql(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {RARE})")
    for number, values in enumerate(VALUES):
        db.sql(f"INSERT INTO t VALUES ({number}, {values[1:]}")
    first, second = rows_of(*plan(db, table="t")).sort_by("id").to_pylist()
    assert first == {
        "id": 0,
        "e": "a",
        "t": "12:00:00+01",
        "b": "0101",
        "i": "-" + "9" * 50,
        "n": "2020-01-01 00:00:00.123456789",
        "s": datetime.datetime(2020, 1, 1),
        "a": [1, None],
        "p": {"_1": 1, "_2": "x"},
    }
    assert set(second.values()) == {1, None}


def test_types_that_spark_has_not_are_maintained_on_spark(db: everview.Database, spark: SparkSession) -> None:
    db.sql(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {RARE})")
    db.sql(
        "CREATE MATERIALIZED VIEW v AS"
        " SELECT e, p, count(*) AS n, max(t) AS t, min(b) AS b, sum(i) AS i FROM t GROUP BY e, p"
    )
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT x.id, y.a, y.n FROM t AS x JOIN t AS y ON x.e = y.e AND x.t = y.t")
    with db.maintain(spark, servers=2) as running:
        for number, values in enumerate(VALUES * 2):
            db.sql(f"INSERT INTO t VALUES ({number}, {values[1:]}")
        running.drain(60)
    assert db.sql("SELECT e, p, n, t, b, i FROM v ORDER BY e").rows() == [
        (
            "a",
            (1, "x"),
            2,
            datetime.time(12, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
            "0101",
            f"-1{'9' * 49}8",
        ),
        (None, None, 2, None, None, None),
    ]
    assert db.view("w").count() == 4
    assert db.verify().right


def test_spark_reads_tables_and_views(db: everview.Database, spark: SparkSession) -> None:
    db.sql("""
        CREATE TABLE orders (
            id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10, 2), moment TIMESTAMP, tags VARCHAR[]
        );
        INSERT INTO orders SELECT range, range % 10, range, TIMESTAMP '2024-01-01', ['x', NULL] FROM range(30000);
        CREATE MATERIALIZED VIEW totals AS SELECT customer, sum(amount) AS total, sum(id) AS ids FROM orders GROUP BY 1;
    """)
    path = str(db.store.directory)  # type: ignore[attr-defined]
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    reading = spark.read.format("everview").option("path", path)
    orders = reading.option("table", "orders").load()
    assert orders.dtypes == [
        ("id", "bigint"),
        ("customer", "int"),
        ("amount", "decimal(10,2)"),
        ("moment", "timestamp_ntz"),
        ("tags", "array<string>"),
    ]
    assert orders.rdd.getNumPartitions() > 1
    totals = spark.read.format("everview").option("path", path).option("view", "totals").load()
    both = orders.groupBy("customer").agg({"amount": "sum", "tags": "count"}).join(totals, "customer")
    rows = both.where("customer = 3 or `sum(amount)` <> total or `count(tags)` <> 3000").collect()
    (found,) = rows
    assert (found.total, found.ids) == (Decimal(sum(range(3, 30000, 10))), sum(range(3, 30000, 10)))


def test_maintained_on_spark_for_the_time_of_a_block(db: everview.Database, spark: SparkSession) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM t")
    db.sql("CREATE MATERIALIZED VIEW lazily WITH (refresh = 'lazy') AS SELECT count(*) AS n FROM t")
    with db.maintain(spark, servers=2) as running, db.session() as session:
        changes = db.view("total").subscribe(timeout=60)
        session.table("t").put({"id": 1, "n": 7})
        assert session.view("total").get() == {"n": 7}
        assert next(changes).rows() == [(-1, {"n": None}), (1, {"n": 7})]
        running.drain(60)
        assert db.view("total").get() == {"n": 7}
        assert db.status().maintainer is not None
        assert db.view("lazily").get(fresh=True) == {"n": 1}
        db._freshness.wait(db.catalog.view("lazily").group, db.store.log.latest())
        assert db.view("lazily").get() == {"n": 1}
