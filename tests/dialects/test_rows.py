"""Queries over rows in the words of other dialects, as views that are maintained: the rows of the dialect."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview
from everview.errors import SqlRefusedError
from tests.dialects.test_examples import same

TABLES = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, x DOUBLE, s VARCHAR);
CREATE TABLE u (k INTEGER PRIMARY KEY, name VARCHAR, id INTEGER);
"""
EARLIER = """
INSERT INTO t VALUES (1, 7, 2, 2.5, 'Ann'), (2, 9, 9, 1.0, 'zoe'), (3, NULL, 3, 3.5, 'Bob'), (6, 1, 1, 1.0, 'x');
INSERT INTO u VALUES (1, 'ANN', 1), (2, 'nobody', 2), (3, 'ann', 3);
"""
LATER = """
INSERT INTO t VALUES (4, -7, 2, -1.5, NULL), (5, 1, 1, 0.0, 'Änn');
UPDATE t SET a = 7, b = 0, x = NULL, s = 'ann' WHERE id = 2;
UPDATE u SET name = 'bob' WHERE k = 2;
DELETE FROM t WHERE id = 6;
DELETE FROM u WHERE k = 3;
"""
QUERIES: list[tuple[str, str, list[tuple[object, ...]]]] = [
    # division, remainders, casts; a row that fails is in no view
    ("postgres", "SELECT id, a / b AS q FROM t", [(1, 3), (3, None), (4, -3), (5, 1)]),
    ("postgres", "SELECT id, a % b AS m FROM t WHERE b < 3", [(1, 1), (4, -1), (5, 0)]),
    ("postgres", "SELECT b, sum(a) / count(*) AS m FROM t GROUP BY b", [(0, 7), (1, 1), (2, 0), (3, None)]),
    ("postgres", "SELECT id, x::int AS i FROM t", [(1, 2), (2, None), (3, 4), (4, -2), (5, 0)]),
    ("postgres", "SELECT id, (SELECT max(k) / 2 FROM u WHERE u.id = t.id) AS m FROM t WHERE id < 3", [(1, 0), (2, 1)]),
    ("postgres",
     "WITH c AS (SELECT id, a / 2 AS h FROM t) SELECT id, h / 2.0 AS q FROM c WHERE h > 1",
     [(1, 1.5), (2, 1.5)]),
    ("postgres", "SELECT a / 2 AS h, count(*) AS c FROM t GROUP BY a / 2", [(3, 2), (0, 1), (-3, 1), (None, 1)]),
    ("postgres", "SELECT b, (sum(a) + b) / 2 AS c FROM t GROUP BY b HAVING sum(a) / 2 > 1", [(0, 3)]),
    ("postgres",
     "SELECT id, h / 2 AS q FROM (SELECT id, a, a / 2 AS h FROM t ORDER BY a / 2 LIMIT 2) AS f",
     [(4, -1), (5, 0)]),
    ("risingwave", "SELECT id, a / b AS q FROM t WHERE b > 1", [(1, 3), (3, None), (4, -3)]),
    ("mysql", "SELECT id, a / b AS q, a DIV b AS w FROM t WHERE a > 1", [(1, 3.5, 3), (2, None, None)]),
    ("sqlite", "SELECT id, a / b AS q, CAST(x AS INTEGER) AS i FROM t WHERE a > 1", [(1, 3, 2), (2, None, None)]),
    ("spark",
     "SELECT id, a / b AS q, CAST(x AS INT) AS i FROM t",
     [(1, 3.5, 2), (3, None, 3), (4, -3.5, -1), (5, 1.0, 0)]),
    ("tsql", "SELECT id, a / b AS q, CAST(x AS INT) AS i FROM t", [(1, 3, 2), (3, None, 3), (4, -3, -1), (5, 1, 0)]),
    ("snowflake", "SELECT id, a / b AS q FROM t", [(1, 3.5), (3, None), (4, -3.5), (5, 1.0)]),
    ("bigquery", "SELECT id, CAST(x AS INT64) AS i FROM t", [(1, 3), (2, None), (3, 4), (4, -2), (5, 0)]),
    # the order of nulls
    ("postgres", "SELECT id FROM t ORDER BY x DESC LIMIT 2", [(2,), (3,)]),
    ("postgres", "SELECT id, rank() OVER (ORDER BY x DESC) AS r FROM t WHERE id < 4", [(1, 3), (2, 1), (3, 2)]),
    ("risingwave", "SELECT id FROM t ORDER BY x LIMIT 2", [(4,), (5,)]),
    ("spark", "SELECT id FROM t ORDER BY x LIMIT 2", [(2,), (4,)]),
    ("mysql", "SELECT id FROM t ORDER BY x LIMIT 2", [(2,), (4,)]),
    ("sqlite", "SELECT id FROM t ORDER BY x DESC LIMIT 2", [(3,), (1,)]),
    ("tsql", "SELECT TOP 2 id FROM t ORDER BY x", [(2,), (4,)]),
    ("snowflake", "SELECT id FROM t ORDER BY x DESC LIMIT 2", [(2,), (3,)]),
    ("bigquery", "SELECT id FROM t ORDER BY x LIMIT 2", [(2,), (4,)]),
    # text
    ("postgres", "SELECT id FROM t WHERE s = 'ANN'", []),
    ("postgres", "SELECT id FROM t WHERE s ~ '^a' OR s ~* 'BO'", [(2,), (3,)]),
    ("spark", "SELECT id FROM t WHERE s RLIKE 'n+'", [(1,), (2,), (5,)]),
    ("sqlite", "SELECT id FROM t WHERE s LIKE 'AN%'", [(1,), (2,)]),
    ("mysql", "SELECT id FROM t WHERE s = 'ANN'", [(1,), (2,), (5,)]),
    ("mysql", "SELECT id FROM t WHERE s <> 'bob' AND s < 'B'", [(1,), (2,), (5,)]),
    ("mysql", "SELECT LOWER(s) = 'ann' AS y, COUNT(*) AS c FROM t GROUP BY 1", [(True, 3), (False, 1), (None, 1)]),
    ("mysql", "SELECT COUNT(*) AS c FROM t GROUP BY s", [(3,), (1,), (1,)]),
    ("mysql", "SELECT COUNT(*) AS c, s AS n FROM t GROUP BY n HAVING n = 'BOB'", [(1, "Bob")]),
    ("mysql", "SELECT COUNT(DISTINCT s) AS c, MAX(s) AS m FROM t", [(2, "Bob")]),
    ("mysql", "SELECT COUNT(*) AS c FROM (SELECT DISTINCT s FROM t) d", [(3,)]),
    ("mysql", "SELECT COUNT(*) AS c FROM (SELECT s FROM t UNION SELECT name FROM u) d", [(3,)]),
    ("mysql", "SELECT t.id, u.k FROM t JOIN u ON t.s = u.name", [(1, 1), (2, 1), (3, 2), (5, 1)]),
    ("mysql", "SELECT id FROM t WHERE s IN (SELECT name FROM u)", [(1,), (2,), (3,), (5,)]),
    ("mysql", "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.name = t.s)", [(1,), (2,), (3,), (5,)]),
    ("mysql", "SELECT id FROM t WHERE s IS NOT NULL ORDER BY s DESC, id LIMIT 2", [(3,), (1,)]),
    ("mysql",
     "SELECT id, ROW_NUMBER() OVER (PARTITION BY s ORDER BY id) AS r FROM t WHERE id < 4",
     [(1, 1), (2, 2), (3, 1)]),
    ("mysql", "SELECT id, CASE s WHEN 'BOB' THEN 1 ELSE 0 END AS y FROM t WHERE id < 4", [(1, 0), (2, 0), (3, 1)]),
    ("mysql", "SELECT id, a FROM t JOIN u USING (id)", [(1, 7), (2, 7)]),
    ("tsql", "SELECT id, s + '!' AS e FROM t WHERE s = 'ANN'", [(1, "Ann!"), (2, "ann!")]),
    ("tsql", "SELECT s + s AS e FROM t WHERE id = 1", [("AnnAnn",)]),
    ("tsql", "SELECT COUNT(*) AS c FROM t GROUP BY s", [(2,), (1,), (1,), (1,)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[everview.Database]:
    """All views defined, taken through the writes, and compiled again by another reader."""
    path = tmp_path_factory.mktemp("rows") / "db"
    with everview.open(path) as db:
        db.sql(TABLES)
        for number, (dialect, text, _) in enumerate(QUERIES):
            db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {text}", dialect=dialect)
        db.sql(EARLIER)
        db.sql("FLUSH")
    with everview.open(path) as db:
        db.sql(LATER)
        db.sql("FLUSH")
        yield db


@pytest.mark.parametrize("number", range(len(QUERIES)), ids=[f"{d}-{text}" for d, text, _ in QUERIES])
def test_a_view_has_the_rows_of_the_dialect(played: everview.Database, number: int) -> None:
    dialect, text, expected = QUERIES[number]
    found = played.sql(f"SELECT * FROM v{number}").rows()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    if dialect in ("mysql", "sqlite") or not {"a / b", "a % b"} & {
        text[11:16]
    }:  # a SELECT fails as a whole where a row fails
        assert sorted(map(repr, played.sql(text, dialect=dialect).rows())) == sorted(map(repr, expected))


def test_a_view_is_recorded_with_the_meaning_of_its_dialect(tmp_path: Path) -> None:
    with everview.open(tmp_path / "db") as db:
        db.sql(TABLES)
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, a / b AS q FROM t WHERE s = 'x'", dialect="tsql")
        ((text,),) = [row[-1:] for row in db.sql("SHOW CREATE v").rows()]
        assert "a // b" in text and "COLLATE" in text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT t.id FROM t JOIN (SELECT name AS s FROM u) q\nUSING (s)", "line 2, column 8"),
        ("SELECT t.id FROM t\nNATURAL JOIN u", "line 2, column"),
    ],
)
def test_a_join_that_cannot_ignore_case_is_refused(played: everview.Database, text: str, place: str) -> None:
    with pytest.raises(SqlRefusedError, match=place):
        played.sql(text, dialect="mysql")


def test_writes_mean_what_the_dialect_means(tmp_path: Path) -> None:
    with everview.open(tmp_path / "db") as db:
        db.sql(TABLES + EARLIER)
        db.sql("UPDATE t SET a = a / 2 WHERE s = 'ANN'", dialect="mysql")
        assert db.sql("SELECT a FROM t WHERE id = 1").rows() == [(4,)]
        db.sql("INSERT INTO u VALUES (9, 'x' || 7 / 2, 7 / 2)", dialect="postgres")
        assert db.sql("SELECT name, id FROM u WHERE k = 9").rows() == [("x3", 3)]
        db.sql("DELETE FROM u WHERE name = 'X3'", dialect="mysql")
        assert db.sql("SELECT name FROM u WHERE k = 9").rows() == []


# ------------------------------------------------------------------ SQLite itself

LEAVES = ["a", "b", "x", "1", "0", "2.5", "-3", "NULL"]
VALUES = ["({0} / {1})", "({0} % {1})", "({0} + {1})", "({0} * {1})", "max({0}, {1})", "ifnull({0}, {1})", "abs({0})"]
VALUES += ["CAST({0} AS INTEGER)", "round({0})", "CASE WHEN {0} > {1} THEN {0} END", "nullif({0}, {1})"]
TEXTS = ["substr(s, {n})", "substr(s, {n}, 2)", "upper(s)", "s || 'é'", "instr(s, 'n')", "length(s)", "s LIKE 'A_n%'"]
TEXTS += ["s < 'b'", "s = 'ann'", "CAST(s AS INTEGER)", "replace(s, 'n', 'm')", "s IN ('ann', 'Bob')", "trim(s)"]
ENDS = ["", " WHERE a > 0", " WHERE s LIKE '%N%'", " ORDER BY x, id LIMIT 2", " ORDER BY a DESC, id LIMIT 3"]


def sqlite_text(choose: random.Random) -> str:
    def value(depth: int) -> str:
        if not depth:
            return choose.choice(LEAVES)
        return choose.choice(VALUES).format(value(depth - 1), value(depth - 1))

    made = value(2) if choose.random() < 0.6 else choose.choice(TEXTS).format(n=choose.choice([-2, 1, 2]))
    return f"SELECT id, {made} AS v FROM t{choose.choice(ENDS)}"


@pytest.mark.parametrize("seed", range(3))
def test_sqlite_says_the_same(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    texts = [sqlite_text(choose) for _ in range(30)]
    real = sqlite3.connect(":memory:")
    real.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, x REAL, s TEXT)")
    with everview.open(tmp_path / "db") as db:
        db.sql(TABLES)
        for number, text in enumerate(texts):
            db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {text}", dialect="sqlite")
        for _ in range(3):
            for key in choose.sample(range(6), 4):
                row = (
                    key,
                    choose.choice([None, 0, 7, -3]),
                    choose.choice([None, 0, 2]),
                    choose.choice([None, 0.0, 2.5, -1.5]),
                )
                row = (*row, choose.choice([None, "Ann", "ann", "Bob", "12x", ""]))  # type: ignore[assignment]
                if choose.random() < 0.2:
                    real.execute("DELETE FROM t WHERE id = ?", [key])
                    db.sql("DELETE FROM t WHERE id = ?", params=[key])
                else:
                    real.execute("INSERT OR REPLACE INTO t VALUES (?, ?, ?, ?, ?)", row)
                    db.sql("INSERT INTO t VALUES (?, ?, ?, ?, ?)", params=row)
            db.sql("FLUSH")
            for number, text in enumerate(texts):
                expected = sorted(real.execute(text).fetchall())
                found = sorted(db.sql(f"SELECT id, v FROM v{number}").rows(), key=lambda row: row[0])
                assert [row[0] for row in found] == [row[0] for row in expected], text
                for (_, one), (_, other) in zip(found, expected, strict=True):
                    one = int(one) if isinstance(one, bool) else one
                    assert same(one, other), f"{text}: {found} instead of {expected}"
    real.close()
