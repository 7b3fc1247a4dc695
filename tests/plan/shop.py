"""A small shop: tables with keys, without keys, with nulls, lists and times, and random rows for them."""

from __future__ import annotations

import random
import uuid

import duckdb

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.plan.build import Built, build
from everview.plan.build.from_clause import ROW
from everview.sql.check import check
from everview.sql.namespace import NamedRelation, Names
from everview.sql.parse import parse
from everview.sql.settings import connect
from everview.sql.statements import Select
from everview.sql.typer import typer

TABLES = {
    "orders": ("id INTEGER, customer INTEGER, amount INTEGER, price DOUBLE, tags VARCHAR[], moment TIMESTAMP", ("id",)),
    "customers": ("id INTEGER, name VARCHAR, city VARCHAR, since BIGINT", ("id",)),
    "items": (
        "order_id INTEGER, line INTEGER, product INTEGER, quantity INTEGER, moment TIMESTAMP",
        ("order_id", "line"),
    ),
    "visits": ("customer INTEGER, page VARCHAR", ()),
}
"""Columns and key. ``visits`` has no key: equal rows may repeat."""


def relations() -> tuple[NamedRelation, ...]:
    found = []
    for name, (columns, key) in TABLES.items():
        made = tuple(
            Column(word, parse_type(kind), nullable=word not in key)
            for word, kind in (column.strip().split(" ", 1) for column in columns.split(", "))
        )
        found.append(NamedRelation(name, "table", made, key, bag=not key))
    return tuple(found)


def built(text: str) -> Built:
    (statement,) = parse(text)
    assert isinstance(statement, Select)
    return build(check(statement.query, Names(relations()), text), typer(), text)


def filled(seed: int, rows: int = 12) -> duckdb.DuckDBPyConnection:
    """The shop with random rows, few different values, and nulls."""
    pick = random.Random(seed)
    connection = connect()

    def some(low: int, high: int) -> str:
        return "NULL" if pick.random() < 0.2 else str(pick.randint(low, high))

    def at() -> str:
        return "NULL" if pick.random() < 0.1 else f"TIMESTAMP '2024-01-01' + INTERVAL {pick.randint(0, 6)} HOURS"

    def word(words: list[str]) -> str:
        return "NULL" if pick.random() < 0.2 else f"'{pick.choice(words)}'"

    def tags() -> str:
        return (
            "NULL"
            if pick.random() < 0.2
            else f"[{', '.join(word(['x', 'y', 'z']) for _ in range(pick.randint(0, 3)))}]::VARCHAR[]"
        )

    for name, (columns, key) in TABLES.items():
        more = "" if key else f", {ROW} UUID"
        connection.execute(f"CREATE TABLE {name} ({columns}{more})")
    values = {
        "orders": [f"({n}, {some(1, 6)}, {some(0, 4)}, {some(0, 8)} / 4.0, {tags()}, {at()})" for n in range(rows)],
        "customers": [
            f"({n}, {word(['ann', 'bob', 'eve'])}, {word(['rome', 'oslo'])}, {some(1, 4)})" for n in range(1, rows // 2)
        ],
        "items": [
            f"({o}, {n}, {some(0, 4)}, {some(0, 5)}, {at()})"
            for o in range(0, rows + 2, 2)
            for n in range(pick.randint(0, 3))
        ],
        "visits": [f"({some(1, 6)}, {word(['a', 'b'])}, '{uuid.UUID(int=n)}')" for n in range(rows)],
    }
    for name, lines in values.items():
        if lines and pick.random() > 0.05:
            connection.execute(f"INSERT INTO {name} VALUES {', '.join(lines)}")
    return connection
