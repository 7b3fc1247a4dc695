"""Every query of the corpora becomes a relation that means what the query means."""

from __future__ import annotations

import functools

import pytest

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.plan.build import Built, build
from everview.plan.relations import Reevaluate
from everview.sql.check import check
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.statements import Select
from everview.sql.typer import typer
from tests.plan.evaluate import evaluated
from tests.queries.corpora import CORPORA, Corpus, connect, corpus, fill, without_window_functions
from tests.queries.data import tables

QUERIES = [(found.name, query) for found in CORPORA for query in found.queries]


@functools.cache
def names_of(schema: str) -> Names:
    with connect() as connection:
        connection.execute(corpus(schema).schema_text)
        made = []
        for name, shape in corpus(schema).tables.items():
            described = connection.execute(f"DESCRIBE {name}").fetchall()
            columns = tuple(Column(row[0], parse_type(row[1]), nullable=row[0] not in shape.key) for row in described)
            made.append(NamedRelation(name, "table", columns, shape.key))
        return Names(made)


def built(found: Corpus, text: str) -> Built:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return build(check(statement.query, names_of(found.schema), text), typer(), text)


@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_a_query_of_the_corpora_is_built_of_operators_that_mean_it(name: str, query: str) -> None:
    found = corpus(name)
    text = found.queries[query]
    relation = built(found, text).relation
    assert not [node for node in relation.walk() if isinstance(node, Reevaluate)]
    for seed in range(2):
        connection = connect()
        fill(connection, found, tables(found.schema, scale=0.3, seed=seed))
        expected = connection.execute(without_window_functions(text)).fetchall()
        assert rounded(evaluated(connection, relation)) == rounded(expected), f"with the rows of seed {seed}"


def rounded(rows: list[tuple[object, ...]]) -> list[str]:
    """Rows in one order, floats without the digits that depend on the order of additions."""
    return sorted(repr(tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row)) for row in rows)
