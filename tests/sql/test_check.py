"""A checked query means what the text means, and is what the planner is promised."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import duckdb
import pytest
from sqlglot import exp

from everview.change.schema import Column
from everview.change.types import DOUBLE, INTEGER, VARCHAR, parse_type
from everview.errors import (
    SqlTypeError,
)
from everview.sql.check import Checked, check
from everview.sql.dialects import to_sql
from everview.sql.expansion import WHOLE
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.settings import SETTINGS, connect
from everview.sql.typer import Failure, Typer, typer
from tests.queries.corpora import CORPORA, Corpus, corpus, fill, without_window_functions
from tests.queries.data import tables
from tests.sql.samples import QUERIES, checked, filled, query_of

WHOLE_QUERIES = {
    "WITH RECURSIVE", "PIVOT ", "UNPIVOT ", "VALUES", "FROM range(", "FROM generate_series(", "unnest(address)",
}  # fmt: skip
"""What the queries have in common that DuckDB evaluates as a whole, in part or altogether."""


@pytest.fixture(scope="module")
def samples() -> Iterator[duckdb.DuckDBPyConnection]:
    with filled() as connection:
        yield connection


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    return sorted(map(repr, connection.execute(sql).fetchall()))


def described(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {sql}").fetchall()]


# ------------------------------------------------------------------ meaning


@pytest.mark.parametrize("text", QUERIES)
def test_the_tree_means_what_the_text_means(text: str, samples: duckdb.DuckDBPyConnection) -> None:
    found = checked(text)
    expected = rows(samples, text)
    assert expected, "a query without rows proves nothing"
    assert rows(samples, to_sql(found.tree)) == expected
    assert described(samples, to_sql(found.tree)) == described(samples, text)
    assert [(name, str(type)) for name, type in found.columns] == [
        (name, str(parse_type(type))) for name, type in described(samples, text)
    ]


@pytest.mark.parametrize("text", QUERIES)
def test_every_column_of_the_tree_is_tied_to_its_source(text: str) -> None:
    found = checked(text)
    whole = any(part in text for part in WHOLE_QUERIES)
    assert bool(found.wholes) == whole
    assert_qualified(found)


def assert_qualified(found: Checked) -> None:
    plain = found.tree.copy()
    for node in list(plain.walk()):
        if node.meta.get(WHOLE):
            node.replace(exp.Table(this=exp.to_identifier("hidden"), alias=node.args["alias"]))
    assert not list(plain.find_all(exp.With)), "WITH queries are written out"
    assert not any(join.args.get("using") or join.method == "NATURAL" for join in plain.find_all(exp.Join))
    assert not any(select.args.get("windows") for select in plain.find_all(exp.Select))
    aliases = {source.alias_or_name for source in plain.find_all(exp.Table, exp.Subquery, exp.Unnest, exp.Lateral)}
    for column in plain.find_all(exp.Column):
        assert not column.is_star
        if column.table:
            assert column.table in aliases
        else:
            assert isinstance(column.find_ancestor(exp.Order, exp.Query), exp.Order), column
    for table in plain.find_all(exp.Table):
        relation = next((used for used in found.uses if used.name == table.name), None)
        for column in plain.find_all(exp.Column) if relation else ():
            if column.table == table.alias and column.find_ancestor(exp.Select) is table.find_ancestor(exp.Select):
                assert relation is not None and column.name in [declared.name for declared in relation.columns]


def test_calls_have_one_spelling() -> None:
    found = checked("SELECT p.name.upper().left(6) AS a, tags.list_filter(lambda t: t <> 'x') AS b FROM people p")
    assert not list(found.tree.find_all(exp.Dot))
    assert [to_sql(part.unalias()) for part in found.tree.selects] == [
        "LEFT(UPPER(p.name), 6)",
        "LIST_FILTER(p.tags, LAMBDA t : t <> 'x')",
    ]


CORPUS_QUERIES = [(found, name) for found in CORPORA for name in found.queries]


@pytest.fixture(scope="module")
def corpora() -> Iterator[dict[str, tuple[duckdb.DuckDBPyConnection, Names]]]:
    found = {}
    for schema in {found.schema for found in CORPORA}:
        connection = connect()
        fill(connection, corpus(schema), tables(schema, 0.5))
        relations = []
        for name, shape in corpus(schema).tables.items():
            columns = tuple(Column(c, parse_type(t)) for c, t in described(connection, f"SELECT * FROM {name}"))
            relations.append(NamedRelation(name, "table", columns, shape.key))
        found[schema] = (connection, Names(relations))
    yield found
    for connection, _ in found.values():
        connection.close()


@pytest.mark.parametrize(("found", "name"), CORPUS_QUERIES, ids=lambda part: getattr(part, "name", part))
def test_queries_of_the_corpora_keep_their_meaning(
    found: Corpus, name: str, corpora: dict[str, tuple[duckdb.DuckDBPyConnection, Names]]
) -> None:
    connection, names = corpora[found.schema]
    text = found.queries[name]
    result = check(query_of(text), names, text)
    plain = without_window_functions(text)
    assert rows(connection, to_sql(result.tree)) == rows(connection, plain)
    assert [column for column, _ in result.columns] == [column for column, _ in described(connection, plain)]
    assert not result.wholes
    assert_qualified(result)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (
            "SELECT id FROM orders ORDER BY amount LIMIT 3 WITH TIES",
            "SELECT id FROM orders QUALIFY rank() OVER (ORDER BY amount) <= 3",
        ),
        (
            "SELECT amount AS a FROM orders ORDER BY a DESC FETCH FIRST 2 ROWS WITH TIES",
            "SELECT amount FROM orders WHERE amount >= (SELECT amount FROM orders ORDER BY 1 DESC OFFSET 1 LIMIT 1)",
        ),
        (
            "SELECT DISTINCT amount FROM orders ORDER BY amount OFFSET 2 LIMIT 3 WITH TIES",
            "SELECT DISTINCT amount FROM orders ORDER BY amount OFFSET 2 LIMIT 3",
        ),
        (
            "SELECT customer FROM orders UNION ALL SELECT customer FROM orders ORDER BY 1 LIMIT 1 WITH TIES",
            "SELECT customer FROM orders, range(2) WHERE customer = 0",
        ),
        (
            "SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY id) <= 20 ORDER BY amount LIMIT 2 WITH TIES",
            "SELECT id FROM (FROM orders ORDER BY id LIMIT 20) QUALIFY rank() OVER (ORDER BY amount) <= 2",
        ),
    ],
)  # fmt: skip
def test_ties_at_the_end_are_kept(text: str, same: str, samples: duckdb.DuckDBPyConnection) -> None:
    found = checked(text)
    assert len(rows(samples, same)) > 1
    assert rows(samples, to_sql(found.tree)) == rows(samples, same)
    assert found.order[0].descending == ("DESC" in text)


def test_rows_of_windows_of_time(samples: duckdb.DuckDBPyConnection) -> None:
    tumbling = checked("SELECT id, window_start, window_end FROM TUMBLE(orders, ts, INTERVAL 1 HOUR)")
    expected = "SELECT id, date_trunc('hour', ts), date_trunc('hour', ts) + INTERVAL 1 HOUR FROM orders"
    assert rows(samples, to_sql(tumbling.tree)) == rows(samples, expected)
    hopping = checked("SELECT * FROM HOP(orders, ts, INTERVAL 1 HOUR, INTERVAL 150 MINUTE) h")
    starts = "SELECT unnest(generate_series(TIMESTAMP '2023-12-31', TIMESTAMP '2024-01-02', INTERVAL 1 HOUR)) AS s"
    expected = (
        f"SELECT o.*, s, s + INTERVAL 150 MINUTE FROM orders o JOIN ({starts}) w"
        " ON s <= ts AND ts < s + INTERVAL 150 MINUTE"
    )
    assert rows(samples, to_sql(hopping.tree)) == rows(samples, expected)


@pytest.mark.parametrize("months", [(1, 1), (1, 2), (2, 3), (3, 1)])
def test_windows_of_months_hold_the_times_between_their_ends(months: tuple[int, int]) -> None:
    slide, size = months
    times = NamedRelation("times", "table", (Column("ts", parse_type("TIMESTAMP")),), ("ts",))
    text = f"SELECT * FROM HOP(times, ts, INTERVAL {slide} MONTH, INTERVAL {size} MONTH)"
    found = check(query_of(text), Names([times]), text)
    with connect() as connection:
        connection.execute(
            "CREATE TABLE times AS SELECT unnest(generate_series("
            "TIMESTAMP '2023-11-27', TIMESTAMP '2024-05-03', INTERVAL 13 HOUR)) AS ts UNION ALL SELECT NULL"
        )
        starts = f"generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '2025-01-01', INTERVAL {slide} MONTH)"
        expected = (
            f"SELECT ts, s, s + INTERVAL {size} MONTH FROM times, unnest({starts}) w(s)"
            f" WHERE s <= ts AND ts < s + INTERVAL {size} MONTH"
        )
        assert rows(connection, to_sql(found.tree)) == rows(connection, expected)


# ------------------------------------------------------------------ what comes with the tree


def test_a_checked_query_names_what_it_reads_once() -> None:
    found = checked(
        "SELECT o.id FROM orders o, big b, orders o2 WHERE o.id = b.number AND o2.id = (SELECT max(id) FROM people)"
    )
    assert sorted(used.name for used in found.uses) == ["Orders", "people"]


def test_places_in_the_text_stay_with_the_names() -> None:
    text = "SELECT amount,\n  customer AS c FROM orders"
    found = checked(text)
    starts = {column.name: column.this.meta["start"] for column in found.tree.find_all(exp.Column)}
    assert starts == {"amount": text.index("amount"), "Customer": text.index("customer")}


def test_an_order_without_limit_is_the_order_of_reading() -> None:
    found = checked("SELECT id, amount AS much FROM orders ORDER BY much DESC, 1 NULLS FIRST, ts")
    assert [(key.column, key.descending, key.nulls_first) for key in found.order] == [
        ("much", True, False),
        ("id", False, True),
        (None, False, False),
    ]
    assert to_sql(found.order[2].expression) == "orders.ts"
    assert checked("SELECT id FROM orders ORDER BY id LIMIT 3").order == ()


@pytest.mark.parametrize(
    ("text", "open_to"),
    [
        ("SELECT id FROM orders LIMIT 3", [("LIMIT", False)]),
        ("SELECT id FROM orders ORDER BY amount LIMIT 3 OFFSET 1", [("LIMIT", True)]),
        ("SELECT id FROM orders OFFSET 1", [("OFFSET", False)]),
        ("SELECT first(id), any_value(ts) FROM orders", [("first", False), ("any_value", False)]),
        ("SELECT arg_min(id, amount), max(id) FROM orders", [("arg_min", False)]),
        ("SELECT list(id), list(ts ORDER BY id) FROM orders", [("array_agg", False), ("array_agg", True)]),
        ("SELECT DISTINCT ON (customer) id FROM orders", [("DISTINCT ON", False)]),
        ("SELECT row_number() OVER (ORDER BY ts), rank() OVER (ORDER BY ts) FROM orders", [("row_number", True)]),
        ("SELECT sum(id) OVER (ORDER BY ts ROWS 1 PRECEDING), sum(id) OVER (ORDER BY ts) FROM orders", [("sum", True)]),
        ("SELECT sum(id), count(*), min(ts) FROM orders GROUP BY customer ORDER BY 1", []),
    ],
)  # fmt: skip
def test_nondeterministic_orderings_are_listed(text: str, open_to: list[tuple[str, bool]]) -> None:
    found = checked(text).nondeterministic_orders
    assert [(order.what, order.ties_only) for order in found] == open_to
    assert all(order.at.line == 1 and order.at.column > 1 for order in found)


def test_columns_without_a_name_are_named_after_the_text() -> None:
    found = checked("SELECT list(id), count(*), id + 1 FROM orders GROUP BY id")
    assert [name for name, _ in found.columns] == ["list(id)", "count_star()", "(id + 1)"]
    other = parse("SELECT 1; SELECT list(id) FROM orders; SELECT 2")[1]
    assert check(getattr(other, "query"), Names(checked("FROM orders").uses), other.source).columns[0][0] == "list(id)"  # noqa: B009


def test_the_query_that_was_handed_in_is_left_alone() -> None:
    text = "WITH a AS (SELECT * FROM orders) SELECT * FROM a JOIN people USING (id)"
    query = query_of(text)
    before = repr(query)
    check(query, Names([*checked("FROM orders").uses, *checked("FROM people").uses]), text)
    assert repr(query) == before


# ------------------------------------------------------------------ constants


def test_queries_that_differ_in_constants_differ_in_nothing_else() -> None:
    texts = [
        f"SELECT id,{' ' * n} amount FROM orders o"
        f" WHERE amount > {n} AND (customer IN (1, {n}) OR NOT ts < '202{n}-01-01')"
        for n in (4, 5)
    ]
    first, second = (checked(text) for text in texts)
    assert to_sql(second.tree) == to_sql(first.tree).replace("> 4", "> 5").replace("(1, 4)", "(1, 5)").replace(
        "2024", "2025"
    )
    assert second.columns == first.columns
    places = [column.this.meta["start"] for column in second.tree.find_all(exp.Column) if column.name == "amount"]
    assert [texts[1][place : place + 6] for place in places] == ["amount"] * len(places)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("SELECT id FROM orders ORDER BY id LIMIT 3", "SELECT id FROM orders ORDER BY id LIMIT 4"),
        ("SELECT id FROM orders ORDER BY ts LIMIT 3", "SELECT id FROM orders ORDER BY ts LIMIT 3 WITH TIES"),
        ("SELECT id + 1 AS i FROM orders", "SELECT id + 2 AS i FROM orders"),
        ("SELECT id FROM orders WHERE id = '1'", "SELECT id FROM orders WHERE id = 1"),
        ("SELECT id FROM orders WHERE id > (SELECT 1)", "SELECT id FROM orders WHERE id > (SELECT 2)"),
    ],
)  # fmt: skip
def test_other_differences_are_not_taken_for_constants(text: str, other: str) -> None:
    first, second, alone = checked(text), checked(other), checked(f"{other} ")
    assert to_sql(second.tree) == to_sql(alone.tree) != to_sql(first.tree)


# ------------------------------------------------------------------ DuckDB asked for types


def test_the_typer_answers_from_its_inputs_alone() -> None:
    asked = Typer()
    assert asked.describe(
        "SELECT a // 2 AS half, sum(b) FROM t GROUP BY ALL", {"t": [("a", INTEGER), ("b", DOUBLE)]}
    ) == (
        ("half", INTEGER),
        ("sum(b)", DOUBLE),
    )
    assert asked.describe("SELECT a FROM t", {"t": [("a", VARCHAR)]}) == (("a", VARCHAR),)
    assert isinstance(asked.attempt("SELECT a FROM t", {"u": [("a", VARCHAR)]}), Failure)
    with pytest.raises(SqlTypeError, match="cannot evaluate"):
        asked.describe("SELECT b FROM t", {"t": [("a", VARCHAR)]})


def test_the_typer_reads_no_files_and_no_variables() -> None:
    rows = connect().sql("SELECT 1 AS a")
    assert rows is not None
    for text in ("SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM rows"):
        assert isinstance(typer().attempt(text, {}), Failure)


def test_offsets_of_failures_count_characters() -> None:
    text = "SELECT 'äöü', nam FROM t"
    failure = typer().attempt(text, {"t": [("a", INTEGER)]})
    assert isinstance(failure, Failure) and failure.offset == text.index("nam")


def test_the_fixed_settings_hold() -> None:
    with connect() as connection:
        row = connection.execute(
            "SELECT 7 / 2, 7 // 2, 1 / 0, -1.0::DOUBLE / 0, list(x ORDER BY x), list(x ORDER BY x DESC),"
            " current_setting('TimeZone'), typeof(NULL) FROM (VALUES (1), (NULL), (2)) v(x)"
        ).fetchone()
        assert row is not None
        assert row[:7] == (3.5, 3, inf, -inf, [1, 2, None], [2, 1, None], "UTC")
        assert described(connection, "SELECT NULL AS n, [] AS l") == [("n", '"NULL"'), ("l", '"NULL"[]')]
        for name, value in SETTINGS.items():
            found = connection.execute(f"SELECT current_setting('{name}')").fetchone()
            assert found is not None
            assert sorted(str(found[0]).lower().split(",")) == sorted(str(value).lower().split(","))
