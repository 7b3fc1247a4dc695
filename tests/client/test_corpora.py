"""Queries of the corpora and random ones, over tables of the store: the answers are DuckDB's."""

from __future__ import annotations

import random

import pytest

import everview
from everview.errors import EverviewError
from tests.plan.test_build_corpora import rounded
from tests.queries import random_tables
from tests.queries.corpora import CORPORA, Corpus, connect, fill, without_window_functions
from tests.queries.data import tables
from tests.queries.random_queries import random_query


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda found: found.name)
def test_queries_of_the_corpora(corpus: Corpus, db: everview.Database) -> None:
    rows = tables(corpus.schema, scale=0.3, seed=1)
    plain = connect()
    fill(plain, corpus, rows)
    db.sql(corpus.schema_text)
    for name, columns in rows.items():
        db.table(name).put_many(columns)
    for name, text in corpus.queries.items():
        expected = plain.execute(without_window_functions(text)).fetchall()
        assert rounded(db.sql(text).rows()) == rounded(expected), name


def test_random_queries(db: everview.Database) -> None:
    rng = random.Random(5)
    rows = random_tables.random_rows(rng)
    plain = connect()
    random_tables.create(plain, rows)
    for table in random_tables.TABLES.values():
        columns = ", ".join(f"{name} {kind}" for name, kind in table.columns)
        key = f", PRIMARY KEY ({', '.join(table.key)})" if table.key else ""
        db.sql(f"CREATE TABLE {table.name} ({columns}{key})")
        places = ", ".join("?" for _ in table.columns)
        for row in rows[table.name]:
            db.sql(f"INSERT INTO {table.name} VALUES ({places})", list(row))
    for _ in range(40):
        query = random_query(rng)
        expected = plain.execute(query.plain).fetchall()
        assert sorted(map(repr, db.sql(query.text).rows())) == sorted(map(repr, expected)), query.text


STATEMENTS = [
    "CREATE TABLE t (a INTEGER, b VARCHAR NOT NULL, PRIMARY KEY (a))",
    "CREATE TABLE IF NOT EXISTS bag (a INTEGER, c DOUBLE[])",
    "ALTER TABLE t ADD COLUMN d DECIMAL(5, 2)",
    "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')",
    "INSERT INTO bag SELECT a, [a, 2] FROM t WHERE a IN (1, 2)",
    "UPDATE t SET b = b || 'z', a = a + 1 WHERE a >= 1 AND b <> 'q'",
    "DELETE FROM bag WHERE a IS NULL OR a = (SELECT max(a) FROM t)",
    "SELECT t.a, count(*) AS n FROM t JOIN bag AS g ON t.a = g.a WHERE t.a = 2 GROUP BY t.a",
    "CREATE OR REPLACE VIEW v AS SELECT a, b FROM t",
    "CREATE INDEX i ON t (b)",
    "DROP VIEW IF EXISTS v CASCADE",
    "DROP INDEX IF EXISTS i",
    "EXPLAIN (FORMAT JSON) SELECT a, sum(a) FROM bag GROUP BY a",
    "SHOW CREATE TABLE t",
    "DESCRIBE bag",
    "SET on_reevaluation = 'notice'",
    "DROP TABLE t CASCADE",
]


def test_damaged_statements_give_a_result_or_an_error_of_ours(db: everview.Database) -> None:
    rng = random.Random(11)
    tokens = [text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split() for text in STATEMENTS]
    done = 0
    for _ in range(400):
        words = list(rng.choice(tokens))
        for _ in range(rng.randint(0, 2)):
            at = rng.randrange(len(words))
            match rng.randrange(4):
                case 0:
                    del words[at:]
                case 1:
                    words[at] = rng.choice(rng.choice(tokens))
                case 2:
                    words.insert(at, rng.choice(rng.choice(tokens)))
                case _:
                    del words[at]
            if not words:
                break
        try:
            db.sql(" ".join(words)).rows()
            done += 1
        except EverviewError:
            continue
    assert done > 50
