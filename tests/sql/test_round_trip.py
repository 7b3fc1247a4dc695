"""Reading a text and writing it again keeps DuckDB's meaning.

Every function of the installed DuckDB is tried, and a query for every construct: its answer
must be the same before and after, under the fixed settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from everview.sql.dialects import to_sql
from everview.sql.parse import parse
from everview.sql.settings import connect
from everview.sql.statements import Select

WRITTEN_OTHERWISE = {
    "generate_series(c0)": "GENERATE_SERIES(0, c0)",
    "if(c0, c1, c2)": "CASE WHEN c0 THEN c1 ELSE c2 END",
    "overlay(c0, c1, c2)": "OVERLAY(c0 PLACING c1 FROM c2)",
    "overlay(c0, c1, c2, c3)": "OVERLAY(c0 PLACING c1 FROM c2 FOR c3)",
    "position(c0, c1)": "STRPOS(c1, c0)",
    "range(c0)": "RANGE(0, c0)",
}
SAME = [{"list", "array_agg"}]
WITHOUT_MEANING = {"array_cat()", "array_concat()", "list_concat()", "json_object(c0)"}


def again(text: str) -> str:
    (found,) = parse(text)
    assert isinstance(found, Select)
    return to_sql(found.query)


@pytest.fixture(scope="module")
def shop() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        connection.execute(
            """CREATE TABLE t AS SELECT i AS a, i % 3 AS b, (i * 7) % 5 AS c, 'x' || i AS s, [i, i + 1] AS l,
            {'p': i, 'q': 'z'} AS st, TIMESTAMP '2024-01-01' + INTERVAL (i) HOUR AS ts, i * 1.5 AS d,
            CASE WHEN i % 4 = 0 THEN NULL ELSE i END AS n, ['day', 'month'][i % 2 + 1] AS unit FROM range(20) r(i)"""
        )
        connection.execute("CREATE TABLE u AS SELECT i AS a, i * 2 AS v, 'y' || i AS w FROM range(0, 20, 2) r(i)")
        yield connection


def calls() -> list[str]:
    """A call of every function, with every number of arguments it takes."""
    with connect() as connection:
        found = connection.execute(
            """SELECT DISTINCT function_name, len(parameters) + unnest([0, (varargs IS NOT NULL)::INT])
            FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate', 'macro')
            AND regexp_full_match(function_name, '[a-z_0-9]+') ORDER BY ALL"""
        ).fetchall()
    return [f"{name}({', '.join(f'c{index}' for index in range(count))})" for name, count in found]


def test_every_function_keeps_its_name_and_arguments() -> None:
    tried = [call for call in calls() if call not in WITHOUT_MEANING]
    assert len(tried) > 1000
    changed = {}
    for call in tried:
        written = again(f"SELECT {call}").removeprefix("SELECT ")
        names = {call.partition("(")[0], written.partition("(")[0].lower()}
        same = len(names) == 1 or any(names <= synonyms for synonyms in SAME)
        if not same or call.partition("(")[2] != written.partition("(")[2]:
            changed[call] = written
    assert changed == {call: written for call, written in WRITTEN_OTHERWISE.items() if call in tried}


QUERIES = Path(__file__).with_name("round_trip.sql").read_text().splitlines()[1:]


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_has_the_same_answer(shop: duckdb.DuckDBPyConnection, text: str) -> None:
    wanted = shop.execute(text).fetchall()
    types = [str(column[1]) for column in shop.description or ()]
    written = again(text)
    assert re.sub(r"\s", "", again(written)) == re.sub(r"\s", "", written)
    assert repr(shop.execute(written).fetchall()) == repr(wanted)
    assert [str(column[1]) for column in shop.description or ()] == types
