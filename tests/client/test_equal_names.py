"""Two columns of a query with one name: a view calls them as a table of DuckDB's would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import everview

TABLES = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b VARCHAR);
    CREATE TABLE u (id INTEGER PRIMARY KEY, A INTEGER);
    INSERT INTO t VALUES (1, 10, 'x'), (2, NULL, 'y'), (3, 30, NULL);
    INSERT INTO u VALUES (1, 5), (2, 6), (4, NULL)
"""
QUERIES = (
    "SELECT * FROM t JOIN u ON t.id = u.id",
    "SELECT *, t.* FROM t",
    "SELECT a, a, a_1, a FROM (SELECT a, id AS a_1 FROM t)",
    "SELECT a, id AS A_1, b AS A FROM t",
    "SELECT count(*), count(*) FROM t GROUP BY a",
    "SELECT b[1] AS s, b[2] AS s, upper(b) AS S FROM t",
    "SELECT a AS x, id AS x FROM t UNION ALL SELECT id, a FROM u",
    "SELECT a AS x, id AS x FROM t ORDER BY 2 DESC LIMIT 2",
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store") as found:
        found.sql(TABLES)
        yield found


@pytest.mark.parametrize("kind", ["MATERIALIZED VIEW", "VIEW"])
@pytest.mark.parametrize("query", QUERIES)
def test_columns_have_the_names_and_rows_of_duckdb(db: everview.Database, query: str, kind: str) -> None:
    db.sql(f"CREATE {kind} v AS {query}")
    db.sql("UPDATE t SET a = 7 WHERE id = 3; DELETE FROM u WHERE id = 2; INSERT INTO u VALUES (3, 3)")
    db.flush()
    with duckdb.connect() as other:
        other.execute(TABLES)
        other.execute("UPDATE t SET a = 7 WHERE id = 3; DELETE FROM u WHERE id = 2; INSERT INTO u VALUES (3, 3)")
        other.execute(f"CREATE TABLE v AS {query}")
        names = [row[0] for row in other.execute("DESCRIBE v").fetchall()]
        rows = other.execute("FROM v").fetchall()
    found = db.sql("SELECT * FROM v")
    assert list(found.names) == names
    assert sorted(found.rows(), key=repr) == sorted(rows, key=repr)
    assert db.verify().right


def test_the_statement_of_a_view_makes_it_again(db: everview.Database) -> None:
    for kind in ("MATERIALIZED VIEW", "VIEW"):
        db.sql(f"CREATE {kind} v AS {QUERIES[0]}")
        before = db.sql("SELECT * FROM v")
        ((text,),) = db.sql(f"SHOW CREATE {kind} v").rows()
        db.sql(f"DROP {kind} v")
        db.sql(text)
        again = db.sql("SELECT * FROM v")
        assert (again.names, again.rows()) == (before.names, before.rows())
        db.sql(f"DROP {kind} v")


def test_a_plain_view_keeps_its_names_where_a_table_gains_a_column(db: everview.Database) -> None:
    db.sql("CREATE VIEW v AS SELECT * FROM t JOIN u ON t.id = u.id")
    before = db.sql("SELECT * FROM v")
    db.sql("ALTER TABLE t ADD COLUMN z INTEGER")
    after = db.sql("SELECT * FROM v")
    assert (after.names, after.rows()) == (before.names, before.rows())
