"""The fixed settings leave DuckDB's own meaning as it is."""

import ast
import inspect
import stat
import tempfile
from collections.abc import Iterator
from math import inf
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from everview.sql import settings
from everview.sql.settings import connect

SHARED = """SELECT * FROM (SELECT l.a AS la, r.b AS rb, r.id AS rid FROM t l LEFT JOIN t r ON l.b = r.id)
            WHERE NOT (rb + 1 < -la)"""


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT 7 / 2, 7 // 2", [(3.5, 3)]),
        ("SELECT 1 / 0, -1.0 / 0, TRY(1 % 0)", [(inf, -inf, None)]),
        ("SELECT x FROM (VALUES (1), (NULL), (2)) AS v(x) ORDER BY x", [(1,), (2,), (None,)]),
        ("SELECT x FROM (VALUES (1), (NULL), (2)) AS v(x) ORDER BY x DESC", [(2,), (1,), (None,)]),
        ("SELECT column_type FROM (DESCRIBE SELECT NULL AS x)", [('"NULL"',)]),
        ("SELECT current_setting('TimeZone')", [("UTC",)]),
    ],
)
def test_a_setting_decides(query: str, answer: list[tuple[object, ...]]) -> None:
    with connect() as connection:
        assert connection.execute(query).fetchall() == answer


def test_parts_of_a_union_that_share_a_subquery_keep_their_columns() -> None:
    """Wrong in DuckDB 2.0.0 with its optimizer of common parts: −1 instead of 0."""
    with connect() as connection:
        connection.execute("CREATE TABLE t (id INT, a INT, b INT)")
        connection.execute("INSERT INTO t VALUES (0, NULL, NULL), (1, 0, 0), (2, 0, 1), (3, NULL, 2), (4, 1, 1)")
        query = f"""SELECT -rb AS x, CAST(NULL AS INT) AS y FROM ({SHARED}) GROUP BY -rb
                    UNION ALL SELECT NULL, -rid FROM ({SHARED}) GROUP BY -rid"""
        shared = sorted(connection.execute(query).fetchall(), key=repr)
        rows = connection.execute("FROM t").fetchall()
    with duckdb.connect() as plain:
        plain.execute("PRAGMA disable_optimizer; CREATE TABLE t (id INT, a INT, b INT)")
        plain.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        assert shared == sorted(plain.execute(query).fetchall(), key=repr)


OUTSIDE = [
    "FROM read_text('{file}')",
    "FROM read_csv('{file}')",
    "FROM read_blob('{file}')",
    "FROM '{file}'",
    "FROM glob('{file}*')",
    "FROM sniff_csv('{file}')",
    "FROM parquet_metadata('{file}')",
    "ATTACH '{file}.db'",
    "COPY (SELECT 1) TO '{file}.out'",
    "EXPORT DATABASE '{file}.exported'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{file}.duckdb_extension'",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET lock_configuration = false",
    "SET TimeZone = 'Europe/Paris'",
    "SET temp_directory = '{file}.spilled'",
    "SET threads = 2",
    "PRAGMA enable_profiling",
    "PRAGMA log_query_path = '{file}.log'",
    "CREATE PERSISTENT SECRET (TYPE s3)",
]


@pytest.mark.parametrize("statement", OUTSIDE)
def test_nothing_outside_is_reached_and_nothing_is_set_otherwise(statement: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("secret\n", "utf-8")
    with connect(tmp_path / "spilled", errors_as_json=False) as connection, pytest.raises(duckdb.Error):
        connection.execute(statement.format(file=file)).fetchall()
    assert list(tmp_path.iterdir()) == [file]


def test_no_variable_of_python_is_a_table() -> None:
    rows = pa.table({"n": [1]})
    with connect() as connection, pytest.raises(duckdb.CatalogException):
        connection.execute("FROM rows")
    assert len(rows) == 1


def test_what_does_not_fit_into_memory_goes_where_only_its_user_can_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with connect(memory_limit="60MB") as connection:
        numbers = "SELECT row_number() OVER (ORDER BY hash(range)) AS n FROM range(5_000_000)"
        assert connection.execute(f"SELECT max(n) FROM ({numbers})").fetchall() == [(5_000_000,)]
        (home,) = tmp_path.iterdir()
        assert stat.S_IMODE(home.stat().st_mode) == 0o700 and len(list(home.glob("duckdb-*"))) == 1
    assert not list(home.glob("duckdb-*"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with connect() as connection:
        assert connection.execute("SELECT current_setting('temp_directory')").fetchall() == [("",)]


def test_one_place_connects_to_duckdb() -> None:
    """Calls of the module ``duckdb`` itself, which has a connection of its own, stand nowhere else either."""
    source = Path(settings.__file__).parents[1]
    calls = [
        (file.relative_to(source).as_posix(), call)
        for file in sorted(source.rglob("*.py"))
        for call in connecting_calls(ast.parse(file.read_text("utf-8")))
    ]
    assert set(calls) == {("sql/settings.py", "connect")}  # in memory, and over one file


def connecting_calls(tree: ast.AST) -> Iterator[str]:
    """Functions of duckdb that make a connection or use the one of the module."""
    functions = {name for name, one in vars(duckdb).items() if callable(one) and not inspect.isclass(one)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "duckdb":
            if node.attr in functions:
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "duckdb":
            yield from (one.name for one in node.names if one.name in functions | {"connect"})
