"""Random queries through the builder: what it makes of them, and whether that means the same.

The text evaluated by DuckDB equals the relations built of it, evaluated node by node,
before the rules and after them.
"""

from __future__ import annotations

import functools
import random

import duckdb
from sqlglot import exp

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.plan.build import Built, build
from everview.plan.build.from_clause import ROW
from everview.plan.expressions import Expr, parsed
from everview.plan.relations import Filter, Join, Project, Relation, Unnest
from everview.plan.rules import rewrite
from everview.sql import namespace
from everview.sql.check import check
from everview.sql.parse import parse
from everview.sql.settings import connect
from everview.sql.statements import Select
from everview.sql.typer import typer
from tests.plan.evaluate import evaluated
from tests.queries.random_queries import Query
from tests.queries.random_tables import TABLES, create, random_rows


@functools.cache
def names() -> namespace.Names:
    return namespace.Names(
        namespace.NamedRelation(
            table.name,
            "table",
            tuple(Column(name, parse_type(kind), nullable=name not in table.key) for name, kind in table.columns),
            table.key,
            bag=not table.key,
        )
        for table in TABLES.values()
    )


@functools.cache
def filled(seed: int) -> duckdb.DuckDBPyConnection:
    connection = connect()
    create(connection, random_rows(random.Random(seed)), ROW)
    return connection


def built(query: Query) -> Built:
    (statement,) = parse(query.text)
    assert isinstance(statement, Select)
    return build(check(statement.query, names(), query.text), typer(), query.text)


def compare(query: Query, seeds: range) -> None:
    """Build a query, and compare what that means with what it says."""
    relation = built(query).relation
    for form in (relation, rewrite(relation)):
        row_by_row(form)
        for seed in seeds:
            expected = comparable(filled(seed).execute(query.plain).fetchall())
            assert comparable(evaluated(filled(seed), form)) == expected, f"with the rows of seed {seed}"


def comparable(rows: list[tuple[object, ...]]) -> list[str]:
    """Rows in one order, floats without the digits that depend on the order of additions."""
    return sorted(repr(tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row)) for row in rows)


def row_by_row(relation: Relation) -> None:
    """What is computed of each row by itself has no aggregate and no window in it."""
    for node in relation.walk():
        for found in _expressions(node):
            inside = parsed(found.sql).find(exp.Window, exp.AggFunc)
            assert inside is None, f"{node.title} {node.description()}"


def _expressions(node: Relation) -> list[Expr]:
    match node:
        case Project():
            return [found for _, found in node.outputs]
        case Filter():
            return [node.condition]
        case Join():
            return [*([node.rest] if node.rest else []), *(side for one in node.on for side in (one.left, one.right))]
        case Unnest():
            return [node.items]
    return []
