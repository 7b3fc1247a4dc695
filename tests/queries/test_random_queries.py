"""Random queries are valid, read what they say they read, and keep to the features asked for."""

from __future__ import annotations

import random

import pytest

from everview.sql.settings import connect
from tests.queries.random_queries import ALL, Feature, random_query
from tests.queries.random_tables import TABLES, create, random_rows


def test_duckdb_evaluates_them_whatever_the_order_of_the_rows() -> None:
    connection = connect()
    rows = random_rows(random.Random(3))
    backwards = {name: list(reversed(there)) for name, there in rows.items()}
    for seed in range(150):
        text = random_query(random.Random(seed)).plain
        create(connection, rows)
        one = connection.execute(text).fetchall()
        create(connection, backwards)
        assert sorted(map(repr, connection.execute(text).fetchall())) == sorted(map(repr, one)), text


def test_a_seed_names_a_query() -> None:
    assert random_query(random.Random(5)) == random_query(random.Random(5))
    assert len({random_query(random.Random(seed)).text for seed in range(50)}) > 45


@pytest.mark.parametrize("feature", Feature, ids=lambda feature: feature.name)
def test_every_feature_is_used_when_it_is_on(feature: Feature) -> None:
    seeds = range(400)
    assert any(feature in random_query(random.Random(seed)).used for seed in seeds)
    assert not any(feature in random_query(random.Random(seed), ALL - {feature}).used for seed in seeds[:50])


def test_a_query_says_which_tables_it_reads() -> None:
    connection = connect()
    for seed in range(50):
        query = random_query(random.Random(seed), depth=1)
        create(connection, random_rows(random.Random(0)))
        for name in TABLES.keys() - set(query.tables):
            connection.execute(f"DROP TABLE {name}")
        connection.execute(query.plain)
