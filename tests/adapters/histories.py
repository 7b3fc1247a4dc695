"""What hypothesis draws: two tables, their rows, and lists of writes over both.

Keys come from small pools, so that histories meet the same rows again and
again, and the pools hold the keys that encodings get wrong (empty text, zero bytes, text
that orders differently by code unit than by byte, the ends of integer ranges).
"""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
from hypothesis import strategies as st

from everview.change.schema import Column, Schema
from everview.change.types import parse_type
from everview.store.contract import Row
from tests.adapters.model import Delete, Key, Operation, Put

ORDERS = Schema.of(
    {
        "customer": "VARCHAR",
        "amount": "DOUBLE",
        "id": "INTEGER",
        "note": "VARCHAR",
        "paid": "BOOLEAN",
        "price": "DECIMAL(9,2)",
        "tags": "VARCHAR[]",
    },
    key=["customer", "id"],
)
ITEMS = Schema.of(
    {"id": "BIGINT", "name": "VARCHAR", "payload": "BLOB", "at": "TIMESTAMP", "size": "STRUCT(w SMALLINT, h REAL)"},
    key=["id"],
    not_null=["name"],
)
SCHEMAS = {"orders": ORDERS, "items": ITEMS}

ADDED = {
    "orders": Column("day", parse_type("DATE")),
    "items": Column("labels", parse_type("VARCHAR[]")),
}
"""Columns that a history may add to the tables."""

_CUSTOMERS = ["", "a", "a\x00", "a\x00b", "ab", "é", "\uffff", "𝄞"]
_IDS = [-(2**31), -1, 0, 1, 2**31 - 1]
ITEM_IDS = [-(2**63), -1, 0, 1, 2, 3, 256, 2**63 - 1]

texts = st.text(st.characters(codec="utf-8"), max_size=8)

_VALUES: dict[str, st.SearchStrategy[object]] = {
    "amount": st.floats(width=64),
    "note": texts | st.just("x" * 300),
    "paid": st.booleans(),
    "price": st.decimals("-9999999.99", "9999999.99", places=2).map(lambda d: d.quantize(decimal.Decimal("0.01"))),
    "tags": st.lists(st.none() | texts, max_size=3),
    "name": texts,
    "payload": st.binary(max_size=20),
    "at": st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)),
    "size": st.fixed_dictionaries(
        {"w": st.none() | st.integers(-(2**15), 2**15 - 1), "h": st.none() | st.floats(width=32)}
    ),
    "day": st.dates(),
    "labels": st.lists(texts, max_size=3),
}

names = st.sampled_from(sorted(SCHEMAS))


def keys(table: str) -> st.SearchStrategy[Key]:
    if table == "orders":
        return st.tuples(st.sampled_from(_CUSTOMERS), st.sampled_from(_IDS))
    return st.tuples(st.sampled_from(ITEM_IDS))


@st.composite
def rows(draw: st.DrawFn, table: str, schema: Schema) -> Row:
    """A row of some of the columns; NOT NULL columns are sometimes missing, never null."""
    row: Row = dict(zip(schema.key, draw(keys(table)), strict=True))
    for column in schema.values:
        if draw(st.integers(0, 9)) < (8 if not column.nullable else 5):
            values = _VALUES[column.name]
            row[column.name] = draw(values if not column.nullable else st.none() | values)
    return row


def operations(schemas: dict[str, Schema]) -> st.SearchStrategy[Operation]:
    return names.flatmap(
        lambda table: st.one_of(
            rows(table, schemas[table]).map(lambda row: Put(table, row)),
            rows(table, schemas[table]).map(lambda row: Put(table, row)),
            keys(table).map(lambda key: Delete(table, key)),
        )
    )


def as_arrow(schema: Schema, columns: list[str], part: list[Row]) -> pa.Table:
    """Rows as an Arrow table of just these columns."""
    arrow = pa.schema([schema.arrow.field(name) for name in columns])
    return pa.Table.from_pylist([{name: row.get(name) for name in columns} for row in part], schema=arrow)
