"""The harness itself: files are read, and each outcome is reported where it is planted."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from everview.client.database import Database
from everview.client.result import Result
from everview.errors import SqlRefusedError
from tests.strangers import campaign, formats
from tests.strangers.campaign import Campaign, DiedError, forget_failures, lines_of
from tests.strangers.constructs import constructs
from tests.strangers.extraction import Extraction
from tests.strangers.oracle import Answer, same
from tests.strangers.report import tables
from tests.strangers.repositories import Repository
from tests.strangers.worker import read_file, reproduce, try_batch

SUITE = """
statement ok
CREATE TABLE t (a INTEGER CHECK (a < 100), b VARCHAR DEFAULT 'x')

statement ok
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (2, NULL), (3, 'three')

query IT rowsort
SELECT a, count(*) FROM t GROUP BY a
----
anything

query I
SELECT first(a) FROM t
----

query I
SELECT a FROM t WHERE a > 1
----

query I
SELECT random() FROM t
----

query I
SELECT no_such_function(a) FROM t
----

statement error
SELECT a + FROM t

query I
SELECT CAST(b AS INTEGER) FROM t
----

query I
VALUES (1), (2)
----
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "select1.test").write_text(SUITE)
    return tmp_path


def read(place: Path) -> dict:
    return read_file(str(place), "sqllogictest", "test/select1.test", 40, seed=1)


def outcomes(place: Path) -> dict[str, str]:
    (batch,) = read(place)["batches"]
    return {line["query"]: line["outcome"] for line in try_batch(batch, seed=1)}


def plant(monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """Have Everview execute another text than the one it is given."""
    plain = Database.sql

    def planted(self: Database, text: str, *rest: object, **named: object) -> Result:
        return plain(self, change(text), *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "sql", planted)


def test_queries_that_duckdb_takes_are_tried_and_the_others_are_counted(place: Path) -> None:
    found = read(place)
    (batch,) = found["batches"]
    assert len(batch["queries"]) == 5
    assert found["others"] == {"volatile": 1, "rejected by DuckDB": 1}
    (table,) = batch["tables"]
    assert table["columns"] == (("a", "INTEGER"), ("b", "VARCHAR"))
    assert sorted(table["rows"]) == [("1", "'one'"), ("2", "'two'"), ("2", "NULL"), ("3", "'three'")]


def test_a_query_that_may_take_long_is_tried_alone(place: Path) -> None:
    query = "SELECT count(*) FROM t, generate_series(1, 1000000)"
    (place / "test" / "select1.test").write_text(SUITE + f"\nquery I\n{query}\n----\n")
    assert [len(batch["queries"]) for batch in read(place)["batches"]] == [5, 1]


def test_right_views_are_right_and_rows_whose_expression_failed_do_not_count(place: Path) -> None:
    found = outcomes(place)
    assert found["SELECT a, count(*) FROM t GROUP BY a"] == "right"
    assert found["SELECT a FROM t WHERE a > 1"] == "right"
    assert found["VALUES (1), (2)"] == "right"
    assert found["SELECT CAST(b AS INTEGER) FROM t"] in ("right", "no answer")


def test_a_wrong_view_is_reported_with_a_small_history(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, lambda text: text.replace("WHERE a > 1", "WHERE a > 2"))
    (batch,) = read(place)["batches"]
    lines = {line["query"]: line for line in try_batch(batch, seed=1)}
    line = lines["SELECT a FROM t WHERE a > 1"]
    assert line["outcome"] == "wrong"
    assert lines["SELECT a, count(*) FROM t GROUP BY a"]["outcome"] == "right"
    small = reproduce(batch, line["query"], seed=1, extreme=True, shrinks=True)
    writes = [text for texts in (small["before"], *small["rounds"]) for text in texts]
    assert small["alone"] == "wrong"
    assert len(writes) == 1 and "VALUES (2, " in writes[0]
    assert "1 missing, 0 extra of 1 rows" in small["seen"]


def test_an_answer_that_duckdb_itself_changes_is_open(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, lambda text: text.replace("first(a)", "last(a)") if "CREATE" in text else text)
    assert outcomes(place)["SELECT first(a) FROM t"] == "open"


def test_an_answer_that_only_the_optimizer_gives_is_open(place: Path) -> None:
    """It folds a * 46 IS NOT NULL where it knows that no value is null; otherwise the product overflows."""
    query = "SELECT a FROM big WHERE a * 46 IS NOT NULL"
    table = "statement ok\nCREATE TABLE big (a INTEGER)\n\nstatement ok\nINSERT INTO big VALUES "
    table += "(2147483647), (2147483646)\n"
    (place / "test" / "select1.test").write_text(f"{table}\nquery I\n{query}\n----\n")
    assert outcomes(place)[query] == "open"


def test_an_answer_that_an_empty_table_allows_is_open(place: Path) -> None:
    query = "SELECT big.a, none.b FROM big LEFT JOIN none ON none.b = big.a + 1"
    tables = "statement ok\nCREATE TABLE big (a INTEGER)\n\nstatement ok\nCREATE TABLE none (b INTEGER)\n"
    rows = "statement ok\nINSERT INTO big VALUES (2147483647)\n"
    (place / "test" / "select1.test").write_text(f"{tables}\n{rows}\nquery I\n{query}\n----\n")
    assert outcomes(place)[query] in ("open", "right")


@pytest.mark.parametrize(("wrong", "outcome"), [("a % 2", "wrong"), ("a", "open")])
def test_a_limit_without_an_order_takes_any_of_the_rows(
    place: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, outcome: str
) -> None:
    query = "SELECT DISTINCT a FROM many LIMIT 3"
    rows = ", ".join(f"({10 * number})" for number in range(40))
    table = f"statement ok\nCREATE TABLE many (a INTEGER)\n\nstatement ok\nINSERT INTO many VALUES {rows}\n"
    (place / "test" / "select1.test").write_text(f"{table}\nquery I\n{query}\n----\n")
    another = f"SELECT {wrong} FROM (SELECT DISTINCT a FROM many ORDER BY a DESC LIMIT 3)"
    plant(monkeypatch, lambda text: text.replace(query, another))
    assert outcomes(place)[query] == outcome


def test_values_that_compare_equal_are_no_difference_but_remarked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT '-0.0'::FLOAT * a AS z FROM t"
    (place / "test" / "select1.test").write_text(SUITE + f"\nquery I\n{query}\n----\n")
    plant(monkeypatch, lambda text: text.replace("'-0.0'", "'0.0'"))
    (batch,) = read(place)["batches"]
    line = next(line for line in try_batch(batch, seed=1) if line["query"] == query)
    assert line["outcome"] == "right"
    assert [remark.partition(":")[0] for remark in line["remarks"]] == ["form"]


def test_an_open_answer_with_another_number_of_rows_is_wrong(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, lambda text: text.replace("SELECT first(a) FROM t", "SELECT a FROM t"))
    assert outcomes(place)["SELECT first(a) FROM t"] == "wrong"


def test_an_error_of_everview_at_create_is_a_refusal(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str) -> str:
        if "CREATE MATERIALIZED" in text and "VALUES" in text:
            raise SqlRefusedError("no VALUES")
        return text

    plant(monkeypatch, refuse)
    (batch,) = read(place)["batches"]
    lines = {line["query"]: line for line in try_batch(batch, seed=1)}
    assert lines["VALUES (1), (2)"]["outcome"] == "refused"
    assert "no VALUES" in lines["VALUES (1), (2)"]["detail"]


def test_a_foreign_error_at_create_is_a_crash_and_the_others_go_on(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(text: str) -> str:
        if "CREATE MATERIALIZED" in text and "VALUES" in text:
            raise KeyError("lost")
        return text

    plant(monkeypatch, fail)
    found = outcomes(place)
    assert found["VALUES (1), (2)"] == "crashed"
    assert found["SELECT a FROM t WHERE a > 1"] == "right"


def test_the_query_that_breaks_a_flush_is_found_among_the_others(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Database.flush

    def flush(self: Database, timeout: float | None = None) -> None:
        if any("count" in view.sql.lower() for view in self.catalog.views()):
            raise SqlRefusedError("an epoch failed")
        plain(self, timeout)

    monkeypatch.setattr(Database, "flush", flush)
    found = outcomes(place)
    assert found["SELECT a, count(*) FROM t GROUP BY a"] == "crashed"
    assert Counter(found.values())["crashed"] == 1


def test_a_create_that_fails_and_leaves_a_view_is_a_crash(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Database.sql

    def late(self: Database, text: str, *rest: object, **named: object) -> Result:
        result = plain(self, text, *rest, **named)  # type: ignore[arg-type]
        if "CREATE MATERIALIZED" in text and "count" in text:
            raise SqlRefusedError("too late")
        return result

    monkeypatch.setattr(Database, "sql", late)
    assert outcomes(place)["SELECT a, count(*) FROM t GROUP BY a"] == "crashed"


def test_a_table_that_everview_does_not_take_makes_its_queries_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(text: str) -> str:
        if text.startswith("CREATE TABLE"):
            raise SqlRefusedError("no tables today")
        return text

    plant(monkeypatch, refuse)
    found = outcomes(place)
    assert found["SELECT a FROM t WHERE a > 1"] == "refused"
    assert found["VALUES (1), (2)"] == "right"


def test_a_campaign_is_written_to_its_report_and_goes_on_where_it_was(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.jsonl"
    said: list[str] = []
    asked = Campaign((place,), frozenset(), 100, 40, 1, report, say=said.append)
    asked.run()
    lines = list(lines_of(report))
    assert Counter(line["kind"] for line in lines) == {"query": 5, "file": 1}
    assert len(said) == 1
    text = tables(lines)
    assert "| sqllogictest | 5 | " in text and "| group by | 1 | 1 |" in text and "1 volatile" in text
    Campaign((place,), frozenset(), 100, 40, 1, report, say=said.append).run()
    assert len(said) == 1 and list(lines_of(report)) == lines
    assert forget_failures(report) == 0 and list(lines_of(report)) == lines
    report.write_text("".join(json.dumps(line | {"outcome": "refused"}) + "\n" for line in lines))
    assert forget_failures(report) == 1 and list(lines_of(report)) == []


def test_a_query_that_kills_its_process_is_found(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mortal(campaign.Process):
        def ask(self, job: dict, seconds: float) -> object:
            if job["do"] == "try":
                if any("first" in query for query in job["batch"]["queries"]):
                    raise DiedError("the process ended with -11")
                return try_batch(job["batch"], job["seed"])
            return read(place)

    monkeypatch.setattr(campaign, "Process", Mortal)
    report = tmp_path / "report.jsonl"
    Campaign((place,), frozenset(), 100, 40, 1, report, say=lambda _: None).run()
    found = {line["query"]: line["outcome"] for line in lines_of(report) if line["kind"] == "query"}
    assert found["SELECT first(a) FROM t"] == "crashed"
    assert Counter(found.values())["crashed"] == 1 and len(found) == 5


def test_sums_are_compared_to_nine_digits_and_everything_else_exactly() -> None:
    answer = Answer(("k", "s"), ("VARCHAR", "DOUBLE"), (("a", "0.30000000000000004"), ("b", None), ("c", "nan")))
    assert same(answer, (("c", "nan"), ("a", "0.3"), ("b", None)))
    assert not same(answer, (("c", "nan"), ("a", "0.3001"), ("b", None)))
    assert not same(answer, (("c", "nan"), ("a", "0.3"), ("b", "0")))
    assert not same(answer, (("x", "nan"), ("a", "0.3"), ("b", None)))
    assert not same(answer, (("c", "nan"), ("a", "0.3")))


def statements(tmp_path: Path, name: str, text: str, reader: formats.Reader) -> list[str]:
    (tmp_path / name).write_text(textwrap.dedent(text))
    return list(reader(Repository(tmp_path), name))


def test_files_of_all_formats_are_read(tmp_path: Path) -> None:
    loop = "foreach kind INTEGER VARCHAR\n\nstatement ok\nCREATE TABLE t_${kind} (a ${kind})\n\nendloop\n"
    assert statements(tmp_path, "a.slt", loop, formats.sqllogictest) == [
        "CREATE TABLE t_INTEGER (a INTEGER)",
        "CREATE TABLE t_VARCHAR (a VARCHAR)",
    ]
    drive = "> SELECT 1,\n  2;\n1 2\n\n! SELECT x\ncontains: no\n> SELECT 3\n3\n"
    assert statements(tmp_path, "a.td", drive, formats.testdrive) == ["SELECT 1,\n  2", "SELECT 3"]
    script = "\\set x 1\nCOPY t FROM stdin;\n1\tit's\n\\N\tb\n\\.\nSELECT ';' -- not; here\n;\nSELECT 2 \\gset\n"
    assert statements(tmp_path, "a.sql", script, formats.psql) == [
        "INSERT INTO t  VALUES ('1', 'it''s')",
        "INSERT INTO t  VALUES (NULL, 'b')",
        "SELECT ';' -- not; here",
        "SELECT 2",
    ]
    source = '''
    class A extends B {
        void one() { this.run("CREATE TABLE t (a INT);" + "SELECT \\"a\\" FROM t"); }
        void two() { this.ask("""
                SELECT 1;
                 c
                ---
                 it's 1
                (1 row)

                SELECT 2;
                 c
                (0 rows)"""); }
    }'''
    assert statements(tmp_path, "A.java", source, formats.java) == [
        "CREATE TABLE t (a INT)",
        'SELECT "a" FROM t',
        "SELECT 1",
        "SELECT 2",
    ]
    (tmp_path / "folder").mkdir()
    code = (
        'class V:\n    sql = """CREATE VIEW v AS SELECT * FROM t"""\nTABLE = "CREATE TABLE t (a INT)"\nOTHER = "text"\n'
    )
    assert statements(tmp_path, "folder/a.py", code, formats.python) == [
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT * FROM t",
    ]
    tcl = "do_execsql_test a-1 {\n  SELECT '}' FROM t; SELECT 2\n} {1}\ndo_test b { execsql { SELECT 3 } } {3}\n"
    assert statements(tmp_path, "a.test", tcl, formats.tcl) == ["SELECT '}' FROM t", "SELECT 2", "SELECT 3"]


def test_a_table_of_another_shape_begins_another_part() -> None:
    parts = Extraction().read(
        [
            "CREATE TABLE t (a serial4 PRIMARY KEY, b name REFERENCES other (x), c)",
            "CREATE TABLE t (a INT4 PRIMARY KEY, b name REFERENCES other (x), c)",
            "INSERT INTO t VALUES (1, 'x', 2)",
            "CREATE MATERIALIZED VIEW v AS SELECT b FROM t",
            "SELECT * FROM v",
            "DROP TABLE t",
            "CREATE TABLE t (z STRUCT(x INTEGER))",
            "SELECT z FROM t",
        ]
    )
    assert [part.queries for part in parts] == [("SELECT b FROM t", "SELECT * FROM v"), ("SELECT z FROM t",)]
    (first,), (second,) = parts[0].tables, parts[1].tables
    assert first.columns == (("a", "INTEGER"), ("b", "VARCHAR"), ("c", "INTEGER"))
    assert first.key == ("a",) and first.rows == (("1", "'x'", "2"),)
    assert second.columns == (("z", "STRUCT(x INTEGER)"),) and second.rows == ()
    assert [named.name for named in parts[0].named] == ["v"]


def test_constructs_are_found_by_words_outside_of_texts() -> None:
    assert constructs("SELECT 'left join' -- group by") == ["no table"]
    assert "left join" in constructs("SELECT * FROM a LEFT OUTER JOIN b USING (x)")
    assert "inner join" not in constructs("SELECT * FROM a LEFT JOIN b ON true")
    assert {"exists", "filter"} <= set(constructs("SELECT * FROM t WHERE EXISTS (SELECT 1)"))


def test_reports_survive_a_line_that_was_cut_off(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    report.write_text(json.dumps({"kind": "file"}) + '\n{"kind": "que')
    assert list(lines_of(report)) == [{"kind": "file"}]
