"""Every query of the corpora is SQL that DuckDB runs and sqlglot reads, over data that means something to it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from everview.change.condense import condense
from everview.change.entries import WEIGHT
from tests.queries.corpora import CORPORA, FOLDER, Corpus, connect, corpus, fill, without_window_functions
from tests.queries.data import RECIPES, Tables, applied, changes, tables
from tests.queries.paper_examples import CONDENSE, EXAMPLES, Condensed, Example

SCALE = 2
"""Enough rows for every query to find some."""

QUERIES = [(found.name, query) for found in CORPORA for query in found.queries]
SCHEMAS = sorted({found.schema for found in CORPORA})


@pytest.fixture(scope="module")
def filled() -> Iterator[dict[str, duckdb.DuckDBPyConnection]]:
    """A database per schema."""
    connections = {name: connect() for name in SCHEMAS}
    for name, connection in connections.items():
        fill(connection, corpus(name), tables(name, SCALE))
    yield connections
    for connection in connections.values():
        connection.close()


# ------------------------------------------------------------------ the texts


def test_every_file_belongs_to_a_corpus() -> None:
    known = {FOLDER / name / f"{query}.sql" for name, query in QUERIES}
    known |= {FOLDER / found.schema / "schema.sql" for found in CORPORA}
    assert set(FOLDER.rglob("*.sql")) == known
    assert len(corpus("tpch").queries) == 22


@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_duckdb_runs_the_query_and_rows_come_out(
    name: str, query: str, filled: dict[str, duckdb.DuckDBPyConnection]
) -> None:
    found = corpus(name)
    text = without_window_functions(found.queries[query])
    result = filled[found.schema].sql(text).to_arrow_table()
    assert result.num_rows > 0
    assert any(column.null_count < result.num_rows for column in result.columns), "nothing but nulls"
    assert len(set(result.column_names)) == result.num_columns, "two columns of one name"


@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_sqlglot_reads_the_query(name: str, query: str) -> None:
    text = corpus(name).queries[query]
    (tree,) = sqlglot.parse(text, dialect="duckdb")
    assert isinstance(tree, exp.Query)
    if "HOP(" not in text and "TUMBLE(" not in text:
        names = {cte.alias for cte in tree.find_all(exp.CTE)}
        used = {table.name for table in tree.find_all(exp.Table)} - names
        assert used and used <= set(corpus(name).tables)


@pytest.mark.parametrize("name", SCHEMAS)
def test_sqlglot_reads_the_schema(name: str) -> None:
    trees = sqlglot.parse(corpus(name).schema_text, dialect="duckdb")
    assert all(isinstance(tree, exp.Create) and tree.kind == "TABLE" for tree in trees)
    assert [tree.this.this.name for tree in trees if tree is not None] == list(corpus(name).tables)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT window_start, window_end FROM TUMBLE(t, ts, INTERVAL '10 seconds')", [("00:10", "00:20")]),
        (
            "SELECT window_start, window_end FROM HOP(t, ts, INTERVAL '4 seconds', INTERVAL '10 seconds') ORDER BY ALL",
            [("00:04", "00:14"), ("00:08", "00:18"), ("00:12", "00:22")],
        ),
    ],
)
def test_a_row_stands_in_every_window_that_holds_its_time(query: str, rows: list[tuple[str, str]]) -> None:
    with connect() as connection:
        connection.execute("CREATE TABLE t AS VALUES (TIMESTAMP '2026-01-01 00:00:13.5'), (NULL)")
        connection.execute("ALTER TABLE t RENAME COLUMN col0 TO ts")
        found = connection.sql(without_window_functions(query)).fetchall()
    assert [tuple(f"{time:%M:%S}" for time in row) for row in found] == rows


# ------------------------------------------------------------------ the examples of the papers


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_views_show_what_the_paper_says(example: Example) -> None:
    found = corpus(example.corpus)
    with connect() as connection:
        connection.execute(found.schema_text)
        for step in example.steps:
            for table, rows in step.put.items():
                marks = ", ".join("?" for _ in found.tables[table].schema.names)
                connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)
            for table, keys in step.delete.items():
                where = " AND ".join(f"{column} = ?" for column in found.tables[table].key)
                connection.executemany(f"DELETE FROM {table} WHERE {where}", keys)
            assert step.shows
            for query, expected in step.shows.items():
                shown = connection.sql(found.queries[query]).fetchall()
                assert (step.what, sorted(shown)) == (step.what, sorted(expected))


@pytest.mark.parametrize("cell", CONDENSE, ids=lambda cell: f"{cell.first} to {cell.last}")
def test_delta_rows_condense_as_in_table_1_of_paper_001(cell: Condensed) -> None:
    weights = {"insert": 1, "delete": -1}
    deltas = pa.table(
        {"value": [value for _, value in cell.deltas], WEIGHT: [weights[action] for action, _ in cell.deltas]}
    )
    assert (cell.deltas[0][0], cell.deltas[-1][0]) == (cell.first, cell.last)
    assert set(zip(*condense(deltas).to_pydict().values(), strict=True)) == set(cell.net)
    assert sorted(weights[action] for action, _ in cell.partial) == sorted(weight for _, weight in cell.net)


# ------------------------------------------------------------------ the data


def _tuples(rows: pa.Table, columns: tuple[str, ...]) -> list[tuple]:
    return list(zip(*(rows[column].to_pylist() for column in columns), strict=True))


def _share_of_references_that_hold(found: Corpus, present: Tables) -> float:
    total = held = 0
    for name, recipe in RECIPES[found.schema].items():
        for reference in recipe.references:
            parents = set(_tuples(present[reference.parent], reference.parent_columns))
            children = [key for key in _tuples(present[name], reference.columns) if None not in key]
            total += len(children)
            held += sum(key in parents for key in children)
    return held / total if total else 1.0


@pytest.mark.parametrize("name", SCHEMAS)
def test_tables_have_the_types_of_the_schema_unique_keys_nulls_and_partners(name: str) -> None:
    found = corpus(name)
    made = tables(name)
    assert list(made) == list(found.tables)
    for table, rows in made.items():
        assert rows.schema == found.tables[table].schema
        keys = _tuples(rows, found.tables[table].key)
        assert len(set(keys)) == len(keys) > 0
        assert all(None not in key for key in keys)
    assert any(column.null_count for rows in made.values() for column in rows.columns)
    assert _share_of_references_that_hold(found, made) == 1.0


@pytest.mark.parametrize("name", SCHEMAS)
def test_scale_and_seed_decide_what_is_made(name: str) -> None:
    assert tables(name, seed=5) == tables(name, seed=5)
    assert tables(name, seed=5) != tables(name, seed=6)
    assert list(changes(name, 3, seed=5)) == list(changes(name, 3, seed=5))
    small, large = tables(name), tables(name, scale=3)
    for table, recipe in RECIPES[name].items():
        if not recipe.fixed and table != "friends":  # which has room for 225 rows only
            assert large[table].num_rows > 2 * small[table].num_rows


@pytest.mark.parametrize("name", SCHEMAS)
def test_changes_insert_update_and_delete_and_keep_tables_whole(name: str) -> None:
    found = corpus(name)
    present = tables(name)
    inserted = updated = deleted = returned = 0
    gone: dict[str, set[tuple]] = {table: set() for table in found.tables}
    for change in changes(name, 30):
        for table, part in change.items():
            before = dict(
                zip(_tuples(present[table], found.tables[table].key), present[table].to_pylist(), strict=True)
            )
            inserts, updates, deletes = (
                _tuples(rows, found.tables[table].key) for rows in (part.inserts, part.updates, part.deletes)
            )
            assert not set(inserts) & set(before)
            assert set(updates) <= set(before) and set(deletes) <= set(before)
            assert len({*inserts, *updates, *deletes}) == len(inserts) + len(updates) + len(deletes)
            inserted, deleted = inserted + len(inserts), deleted + len(deletes)
            updated += sum(before[key] != row for key, row in zip(updates, part.updates.to_pylist(), strict=True))
            returned += len(gone[table] & set(inserts))
            gone[table] |= set(deletes)
        present = applied(present, change)
        assert _share_of_references_that_hold(found, present) > 0.75
    assert min(inserted, updated, deleted, returned) > 0
    for table, first in tables(name).items():
        assert present[table].schema == first.schema
        assert first.num_rows / 2 <= present[table].num_rows <= 2 * first.num_rows


def test_some_children_lose_their_parent() -> None:
    present = tables("tpch")
    for change in changes("tpch", 10):
        present = applied(present, change)
    assert 0.75 < _share_of_references_that_hold(corpus("tpch"), present) < 1.0


def test_queries_run_over_what_changes_leave_behind() -> None:
    found = corpus("tpch")
    present = tables("tpch")
    for change in changes("tpch", 5):
        present = applied(present, change)
    with connect() as connection:
        fill(connection, found, present)
        shown = {query: connection.sql(text).fetchall() for query, text in found.queries.items()}
    assert sum(map(bool, shown.values())) >= 20
