"""The tables that all mutants' views are over.

A small shop with keys of one column and of two, a table without a key, lists, floats, dates and texts.
"""

from __future__ import annotations

from everview.change.schema import Column
from everview.change.types import parse_type
from everview.sql.namespace import NamedRelation, Names


def _table(name: str, columns: str, key: tuple[str, ...] = ()) -> NamedRelation:
    split = [part.strip().split(" ", 1) for part in columns.split(";")]
    return NamedRelation(
        name,
        "table",
        tuple(Column(column, parse_type(kind), nullable=column not in key) for column, kind in split),
        key,
        bag=not key,
    )


SHOP = Names(
    [
        _table(
            "orders",
            "id BIGINT; customer INTEGER; amount INTEGER; price DOUBLE; status VARCHAR; day DATE; items INTEGER[]",
            ("id",),
        ),
        _table("customers", "id INTEGER; name VARCHAR; land INTEGER; score INTEGER", ("id",)),
        _table("lands", "id INTEGER; name VARCHAR", ("id",)),
        _table("parts", "customer INTEGER; number INTEGER; weight INTEGER", ("customer", "number")),
        _table("visits", "a INTEGER; b INTEGER; c VARCHAR"),
        _table("points", "a INTEGER; s STRUCT(x INTEGER, y INTEGER); i INTERVAL"),
    ]
)
