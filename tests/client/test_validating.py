"""A view is tried against DuckDB's answer to its own words before it can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import everview
from everview.client import validating
from everview.operators.join import JoinWorker
from everview.operators.pre_aggregation import PreAggregationWorker
from everview.operators.work import Changes, Work
from everview.plan.compile import CompiledView

TABLES = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, ab INTEGER, b INTEGER, str VARCHAR);
    CREATE TABLE u (a INTEGER, c INTEGER)
"""
ROWS = """
    INSERT INTO t VALUES (1, 1, 10, 2, 'xyz'), (2, NULL, 20, 3, 'u'), (3, 1, 30, NULL, NULL);
    INSERT INTO u VALUES (1, 5), (1, 5), (NULL, 6)
"""
WRITES = (
    "INSERT INTO t VALUES (4, 2, 40, 2, 'hello'), (5, 1, 50, NULL, '')",
    "UPDATE t SET a = 2, str = 'abc' WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
    "INSERT INTO u VALUES (2, NULL), (7, 7)",
    "DELETE FROM u WHERE a = 1",
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[everview.Database]:
    with everview.open(tmp_path / "store") as found:
        found.sql(TABLES)
        found.sql(ROWS)
        yield found


def same_rows(db: everview.Database, view: str, query: str, duck: duckdb.DuckDBPyConnection) -> None:
    found = sorted(map(repr, db.sql(f"SELECT * FROM {view}").rows()))
    assert found == sorted(map(repr, duck.execute(query).fetchall())), query


def follows_duckdb(db: everview.Database, view: str, query: str) -> None:
    """The view shows what DuckDB answers to the words, after every write."""
    with duckdb.connect() as duck:
        duck.execute(TABLES)
        duck.execute(ROWS)
        same_rows(db, view, query, duck)
        for write in WRITES:
            db.sql(write)
            duck.execute(write)
            db.flush()
            same_rows(db, view, query, duck)
    assert db.verify(view).right


def test_explain_shows_on_what_a_view_was_validated(db: everview.Database) -> None:
    lines = [line for (line,) in db.sql("EXPLAIN SELECT a, count(*) AS n FROM t GROUP BY a").rows()]
    assert any("validated on" in line and "rounds" in line for line in lines), lines
    ((document,),) = db.sql("EXPLAIN (FORMAT JSON) SELECT a, sum(b) AS n FROM t GROUP BY a").rows()
    assert json.loads(document)["views"][0]["validated"].startswith("validated on ")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    assert db.catalog.view("v").validated.startswith("validated on ")
    assert db.sql("SELECT validated FROM everview.views").rows() == [(db.catalog.view("v").validated,)]


def test_a_plan_that_is_wrong_is_not_used(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    right = PreAggregationWorker.run

    def without_nulls(self: PreAggregationWorker, work: Work, inputs: Sequence[Sequence[pa.Table]]) -> Changes:
        found = right(self, work, inputs)
        return found.filter(pc.is_valid(found.column(0)))

    monkeypatch.setattr(PreAggregationWorker, "run", without_nulls)
    query = "SELECT a, count(*) AS n, sum(b) AS s FROM t GROUP BY a"
    (notice,) = db.sql(f"CREATE MATERIALIZED VIEW v AS {query}").notices
    assert "differs from DuckDB's answer" in notice
    assert db.catalog.view("v").validated.startswith("not validated: ")
    follows_duckdb(db, "v", query)
    lines = [line for (line,) in db.sql(f"EXPLAIN {query}").rows()]
    assert any("not validated: " in line for line in lines)


def test_a_plan_that_fails_is_not_used(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Changes:
        raise KeyError("side")

    monkeypatch.setattr(JoinWorker, "run", fails)
    query = "SELECT t.id, u.c FROM t JOIN u ON t.a = u.a"
    assert db.sql(f"CREATE MATERIALIZED VIEW v AS {query}").notices
    assert "KeyError" in db.catalog.view("v").validated
    follows_duckdb(db, "v", query)


def test_a_family_is_tried_once(db: everview.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[CompiledView] = []
    real = validating._tried

    def noted(question: object, compiled: CompiledView, rows: Mapping[str, pa.Table]) -> validating.ViewTrial:
        tried.append(compiled)
        return real(question, compiled, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(validating, "_tried", noted)
    for number in range(5):
        db.sql(f"CREATE MATERIALIZED VIEW v{number} AS SELECT id, a FROM t WHERE b > {number} AND str = 's{number}'")
    assert len(tried) == 1
    db.sql("CREATE MATERIALIZED VIEW other AS SELECT id, a FROM t WHERE b < 1 AND str = 's'")
    assert len(tried) == 2


OWN_WORDS = [
    "SELECT str[1] AS first, str[1:2] AS two FROM t",
    "SELECT str[1] FROM main.t",
    "SELECT t.id, u.c FROM t JOIN u NEAREST 1 BY DISTANCE abs(t.b - u.c) WHERE u.c = 5 -- a comment",
    "SELECT finalize(sum(a) EXPORT_STATE) AS s FROM t",
]


@pytest.mark.parametrize("query", OWN_WORDS)
def test_what_is_not_read_as_duckdb_reads_it_is_evaluated_in_its_own_words(db: everview.Database, query: str) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert db.catalog.view("v").verbatim
    follows_duckdb(db, "v", query)


def test_a_select_in_its_own_words(db: everview.Database) -> None:
    with duckdb.connect() as duck:
        duck.execute(TABLES)
        duck.execute(ROWS)
        for query in (*OWN_WORDS, "SELECT str[1], now() > TIMESTAMP '2000-01-01' FROM t", "SELECT a, a FROM t"):
            found = db.sql(query)
            expected = duck.execute(query)
            assert [column.name for column in found.columns] == [column[0] for column in expected.description or ()]
            assert sorted(map(repr, found.rows())) == sorted(map(repr, expected.fetchall()))


def test_own_words_over_named_queries_and_views(db: everview.Database) -> None:
    db.sql("CREATE VIEW named (x, y) AS SELECT a, str FROM t WHERE a IS NOT NULL")
    db.sql("CREATE MATERIALIZED VIEW below AS SELECT a, count(*) AS n FROM t GROUP BY a")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT y[1] AS y, n FROM named JOIN below ON x = a")
    db.sql(WRITES[0])
    db.flush()
    assert sorted(db.sql("SELECT * FROM v").rows(), key=repr) == sorted(
        [("x", 3), (None, 3), ("h", 1), ("", 3)], key=repr
    )
    assert db.verify().right


def test_own_words_are_kept_for_other_processes(db: everview.Database, tmp_path: Path) -> None:
    query = OWN_WORDS[0]
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    ((statement,),) = db.sql("SHOW CREATE v").rows()
    assert query in statement
    db.close()
    with everview.open(tmp_path / "store") as again:
        follows_duckdb(again, "v", query)
        again.sql("DROP MATERIALIZED VIEW v")
        again.sql(statement)
        assert len(again.sql("SELECT * FROM v").rows()) == 4


def test_what_is_no_view_is_no_view_in_its_own_words(db: everview.Database) -> None:
    for query, what in (
        ("SELECT str[1], random() FROM t", "random()"),
        ("SELECT str[1] FROM t USING SAMPLE 10%", "sampling"),
        ("SELECT str[1] FROM nowhere", "nowhere"),
        ("SELECT str[1] FROM read_csv('x.csv')", "read_csv"),
        ("SELECT str[1], current_date FROM t", "current_date"),
    ):
        with pytest.raises(everview.EverviewError, match=r"line 1, column \d+") as error:
            db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert what in str(error.value)
        assert not db.catalog.views()
    with pytest.raises(everview.EverviewError, match="has no operator"):
        db.sql(f"CREATE MATERIALIZED VIEW v WITH (on_reevaluation = 'refuse') AS {OWN_WORDS[0]}")


def test_columns_that_are_named_by_the_view_may_share_a_name(db: everview.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v (c0, c1) AS SELECT a AS x, b AS x FROM t")
    assert not db.catalog.view("v").verbatim
    assert sorted(db.sql("SELECT c0, c1 FROM v").rows(), key=repr) == [(1, 2), (1, None), (None, 3)]


def test_a_query_that_would_make_endless_rows_is_tried_within_bounds(db: everview.Database) -> None:
    """The greatest integers are among the values that are tried."""
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t, generate_series(1, t.b) AS s(n)")
    assert db.sql("SELECT count(*) FROM v").rows() == [(5,)]


def test_an_answer_that_depends_on_the_order_of_rows_is_no_difference(db: everview.Database) -> None:
    for number, query in enumerate(
        (
            "SELECT a, first(b) AS f, list(str) AS l FROM t GROUP BY a",
            "SELECT id FROM t ORDER BY a LIMIT 2",
            "SELECT id, row_number() OVER (ORDER BY a) AS n FROM t",
        )
    ):
        assert not db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {query}").notices
        assert db.catalog.view(f"v{number}").validated.startswith("validated on ")


def test_a_plan_that_makes_too_much_of_a_few_rows_is_not_used(db: everview.Database) -> None:
    query = "SELECT count(*) AS n FROM u, generate_series(1, 300000)"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert "rows are made of a few" in db.catalog.view("v").validated
    follows_duckdb(db, "v", query)
