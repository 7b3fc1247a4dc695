"""A random query, checked and written again, answers what its text answers."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.sql.check import check
from everview.sql.dialects import to_sql
from everview.sql.namespace import NamedRelation, Names
from everview.sql.settings import connect
from tests.queries.random_queries import random_query
from tests.queries.random_tables import TABLES, create, random_rows
from tests.sql.samples import query_of

NAMES = Names(
    NamedRelation(
        table.name,
        "table",
        tuple(Column(name, parse_type(kind)) for name, kind in table.columns),
        table.key,
        bag=not table.key,
    )
    for table in TABLES.values()
)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as connection:
        yield connection


def answer(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    return sorted(map(repr, connection.execute(sql).fetchall()))


@pytest.mark.parametrize("seed", range(60))
def test_a_random_query_keeps_its_meaning(seed: int, engine: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(seed)
    create(engine, random_rows(rng))
    query = random_query(rng)
    found = check(query_of(query.text), NAMES, query.text)
    assert answer(engine, to_sql(found.tree)) == answer(engine, query.plain), query.text
    names = [name for name, *_ in engine.execute(f"DESCRIBE {query.plain}").fetchall()]
    assert [name for name, _ in found.columns] == names
