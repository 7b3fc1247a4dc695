"""MIN, MAX, ORDER BY and groups of structs, lists, maps and intervals: as DuckDB has them, extremes included."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import everview
from everview.sql.settings import connect

TABLE = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, s STRUCT(a INTEGER, b VARCHAR), l DOUBLE[],"
    " m MAP(VARCHAR, INTEGER), i INTERVAL, n STRUCT(i INTERVAL, d DOUBLE))"
)
VIEWS = {
    "ends": "SELECT g, min(s) AS a, max(s) AS b, min(l) AS c, max(l) AS d, min(i) AS e, max(i) AS f, min(m) AS o,"
    " max(m) AS p, max(s) FILTER (WHERE id % 2 = 0) AS q FROM t GROUP BY g",
    "of_all": "SELECT min(s) AS a, max(s) AS b, min(l) AS c, max(n) AS d FROM t",
    "by_struct": "SELECT id, s FROM t ORDER BY s, id LIMIT 4",
    "by_struct_down": "SELECT id, s FROM t ORDER BY s DESC, id LIMIT 4",
    "by_interval": "SELECT id, i FROM t ORDER BY i, id LIMIT 4",
    "by_interval_down": "SELECT id, i FROM t ORDER BY i DESC NULLS LAST, id LIMIT 4",
    "by_list": "SELECT id, l FROM t ORDER BY l, id LIMIT 4",
    "by_list_down": "SELECT id, l FROM t ORDER BY l DESC NULLS LAST, id LIMIT 4",
    "by_nested": "SELECT id, n FROM t ORDER BY n, id LIMIT 4",
    "by_nested_down": "SELECT id, n FROM t ORDER BY n DESC, id LIMIT 4",
    "by_map": "SELECT id, m FROM t ORDER BY m DESC, id LIMIT 4",
    "numbered": "SELECT id, row_number() OVER (ORDER BY s, id) AS r, rank() OVER (ORDER BY i DESC) AS q FROM t",
    "distinct_ones": "SELECT g, count(DISTINCT s) AS a, count(DISTINCT i) AS b, max(DISTINCT s) AS c FROM t GROUP BY g",
    "structs": "SELECT s, count(*) AS n FROM t GROUP BY s",
    "intervals": "SELECT i, count(*) AS n FROM t GROUP BY i",
    "equal_structs": "SELECT a.id AS x, b.id AS y FROM t AS a JOIN t AS b ON a.s = b.s",
    "equal_intervals": "SELECT a.id AS x, b.id AS y FROM t AS a JOIN t AS b ON a.i = b.i",
    "larger": "SELECT id FROM t WHERE s > ALL (SELECT s FROM t AS u WHERE u.g = 1 AND s IS NOT NULL)",
}
MOST = (1 << 31) - 1
LONG = (1 << 63) - 1


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store", durability="none") as database:
        yield database


class _Values:
    """Random values as SQL."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def choice(self, *texts: object) -> str:
        return str(self._rng.choice(texts))

    def interval(self) -> str:
        months, days = self.choice(0, 1, -1, MOST, -MOST), self.choice(0, 30, -30, MOST, -MOST)
        micros = self.choice(1, 30 * 86_400_000_000, LONG, -LONG, 9_223_372_036_854_776, 9_223_372_036_854_775)
        whole = f"(to_months({months}) + to_days({days}))"
        return self.choice("NULL", whole, f"to_microseconds({micros})", f"to_days({self.choice(-60, 30, 60)})")

    def number(self) -> str:
        return self.choice("NULL", "0.0", "-0.0", "'nan'::DOUBLE", "1.5", "'inf'::DOUBLE", "-2")

    def row(self) -> str:
        struct = f"{{'a': {self.choice('NULL', 1, 2, -3)}, 'b': {self.choice('NULL', repr(''), repr('a'), repr('A'))}}}"
        items = f"[{', '.join(self.number() for _ in range(self._rng.randint(0, 3)))}]"
        mapped = self.choice("NULL", "MAP([], [])", "MAP {'a': 1}", "MAP {'a': NULL}", "MAP {'b': 0}")
        inside = self.choice("NULL", "to_days(31)", "to_days(30)", "to_months(1)", self.interval())
        nested = f"{{'i': {inside}, 'd': {self.number()}}}"
        columns = [self.choice("NULL", 1, 2), self.choice("NULL", struct), self.choice("NULL", items), mapped]
        return ", ".join([self.choice(*range(20)), *columns, self.interval(), nested])


@pytest.mark.parametrize("seed", range(2))
def test_values_are_ordered_as_duckdb_orders_them(seed: int, db: everview.Database) -> None:
    db.sql(TABLE)
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    values = _Values(seed)
    for _ in range(6):
        for _ in range(8):
            number = values.choice(*range(20))
            db.sql(values.choice(f"DELETE FROM t WHERE id = {number}", *[f"INSERT INTO t VALUES ({values.row()})"] * 3))
        db.flush()
        with connect() as other:
            other.register("t", _stored(db, "SELECT * FROM t"))
            for name, query in VIEWS.items():
                other.register("shown", _stored(db, f"SELECT * FROM {name}"))
                for these, those in ((query, "FROM shown"), ("FROM shown", query)):
                    found = other.execute(f"({these}) EXCEPT ALL ({those})").fetchall()
                    assert not found, f"{name}: {found} of {these} are not in {those}"


def _stored(db: everview.Database, query: str) -> pa.Table:
    return pa.Table.from_batches(list((result := db.sql(query)).stored_batches()), result._schema)


def test_an_interval_keeps_its_look_in_min_and_max(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, i INTERVAL); INSERT INTO t VALUES (1, INTERVAL 30 DAY)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT max(i) AS longest, min(i) AS shortest FROM t")
    assert (
        db.sql("SELECT DATE '2020-01-31' + longest FROM v").rows()
        == duckdb.execute("SELECT DATE '2020-01-31' + INTERVAL 30 DAY").fetchall()
    )


def test_intervals_of_more_hours_than_arrow_counts_stay_what_they_are(db: everview.Database) -> None:
    db.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, i INTERVAL, l INTERVAL[])")
    db.sql("INSERT INTO t SELECT n, to_hours(n * 100000000), [to_hours(-100000000 * n), NULL] FROM range(20) r(n)")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, i * 1 AS i, l FROM t")
    wrong = "i IS DISTINCT FROM to_hours(id * 100000000) OR l IS DISTINCT FROM [to_hours(id * -100000000), NULL]"
    assert db.sql(f"SELECT count(*) FROM t WHERE {wrong}").rows() == [(0,)]
    assert db.sql(f"SELECT count(*) FROM v WHERE {wrong}").rows() == [(0,)]
    assert db.sql("SELECT id FROM t ORDER BY i DESC LIMIT 2").rows() == [(19,), (18,)]
