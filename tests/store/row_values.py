"""Random types, canonical values of them, and what makes two values the same."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import struct
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from everview.change import types as t
from everview.change.schema import Column, Schema
from everview.change.types import Kind, Type
from everview.store.encoding.columns import from_nanoseconds, to_arrow, to_python
from everview.store.encoding.values import bounds

patient = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
"""For tests that draw whole tables, on machines that have other things to do."""

SCALARS: list[Type] = [
    *(Type(kind) for kind in Kind if kind not in t.NESTED and kind not in (Kind.DECIMAL, Kind.ENUM)),
    t.enum_of("b", "a", "it's", ""),
    t.enum_of(*(f"m{at}" for at in range(300))),
    t.decimal(1, 1),
    t.decimal(18, 4),
    t.decimal(19, 0),
    t.decimal(38, 10),
]


def types(depth: int = 3) -> st.SearchStrategy[Type]:
    """Types nested at most ``depth`` deep."""
    scalars = st.sampled_from(SCALARS)
    if depth == 0:
        return scalars
    inner = types(depth - 1)
    nested = st.one_of(
        inner.map(t.list_of),
        st.tuples(inner, st.integers(1, 3)).map(lambda pair: t.array_of(*pair)),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: t.tuple_of(*parts)),
        st.tuples(scalars, inner).map(lambda pair: t.map_of(*pair)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda children: t.struct(**{f"f{i}": child for i, child in enumerate(children)})
        ),
    )
    return st.one_of(scalars, scalars, nested)


def values(sql: Type) -> st.SearchStrategy[Any]:
    """Canonical values of a type; never null at the top."""
    kind = sql.kind
    if kind in t.INTEGERS:
        return st.integers(*bounds(kind))
    if kind is Kind.DECIMAL:
        limit = 10**sql.precision - 1
        context = decimal.Context(prec=50)
        return st.integers(-limit, limit).map(lambda v: decimal.Decimal(v).scaleb(-sql.scale, context))
    if kind is Kind.LIST:
        return st.lists(st.none() | values(sql.item), max_size=10)
    if kind is Kind.ENUM:
        return st.sampled_from(sql.members)
    if kind is Kind.ARRAY:
        return st.tuples(*[st.none() | values(sql.item)] * sql.length)
    if kind is Kind.TUPLE:
        return st.tuples(*(st.none() | values(child) for _, child in sql.children))
    if kind is Kind.STRUCT:
        names = [name for name, _ in sql.children]
        fields = st.tuples(*(st.none() | values(child) for _, child in sql.children))
        return fields.map(lambda row: dict(zip(names, row, strict=True)))
    if kind is Kind.MAP:
        (_, key), (_, value) = sql.children
        return st.dictionaries(values(key).filter(_not_nan), st.none() | values(value), max_size=3)
    return _PLAIN[kind]


def _not_nan(value: Any) -> bool:
    return not (isinstance(value, float) and math.isnan(value))


_PLAIN: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.REAL: st.floats(width=32),
    Kind.DOUBLE: st.floats(),
    Kind.VARCHAR: st.text(max_size=20),
    Kind.BLOB: st.binary(max_size=20),
    Kind.DATE: st.dates(),
    Kind.TIME: st.times(),
    Kind.TIMESTAMP: st.datetimes(),
    Kind.TIMESTAMPTZ: st.datetimes(timezones=st.just(datetime.UTC)),
    Kind.INTERVAL: st.tuples(
        st.integers(-(1 << 31), (1 << 31) - 1),
        st.integers(-(1 << 31), (1 << 31) - 1),
        st.integers(-(1 << 63), (1 << 63) - 1),
    ).map(pa.MonthDayNano),
    Kind.TIMESTAMP_S: st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    Kind.TIMESTAMP_MS: st.datetimes().map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)),
    Kind.TIMESTAMP_NS: st.integers(-(1 << 63) + 1_000_000_000, (1 << 63) - 1_000_000_000).map(from_nanoseconds),
    Kind.TIMETZ: st.builds(
        lambda time, offset: time.replace(
            tzinfo=datetime.timezone(datetime.timedelta(seconds=offset)) if offset else datetime.UTC
        ),
        st.times(),
        st.integers(-57_599, 57_599),
    ),
    Kind.BIT: st.text("01", min_size=1, max_size=20),
    Kind.BIGNUM: (st.integers(-300, 300) | st.integers(-(10**400), 10**400)).map(str) | st.just("-0"),
    Kind.UUID: st.uuids(),
    Kind.JSON: st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8"), max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=4,
    ).map(json.dumps),
}


@st.composite
def schemas(draw: st.DrawFn, max_columns: int = 9, depth: int = 2) -> Schema:
    """A table with a BIGINT key somewhere among random value columns."""
    columns = [Column(f"c{i}", sql) for i, sql in enumerate(draw(st.lists(types(depth), max_size=max_columns)))]
    at = draw(st.integers(0, len(columns)))
    return Schema((*columns[:at], Column("id", t.BIGINT, nullable=False), *columns[at:]), ("id",))


def one_row(schema: Schema) -> st.SearchStrategy[list[Any]]:
    """The values of all value columns of one row."""
    return st.tuples(*(st.none() | values(column.type) for column in schema.values)).map(list)


def rows(schema: Schema) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(one_row(schema), max_size=5)


def same(a: Any, b: Any) -> bool:
    """Equal in type and value, where NaN is itself and a zero has its sign."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, tuple):
        return same(list(a), list(b))
    if isinstance(a, decimal.Decimal):
        return a.as_tuple() == b.as_tuple()
    return bool(a == b)


def columns_of(schema: Schema, content: list[list[Any]]) -> list[pa.Array]:
    """Rows of values turned into the value columns."""
    return [to_arrow([row[i] for row in content], column.type) for i, column in enumerate(schema.values)]


def rows_of(schema: Schema, columns: list[pa.Array], count: int) -> list[list[Any]]:
    """The value columns, whose types must be exactly the schema's, turned into rows."""
    for column, array in zip(schema.values, columns, strict=True):
        assert array.type == column.type.arrow
        array.validate(full=True)
    parts = [to_python(array, column.type) for column, array in zip(schema.values, columns, strict=True)]
    return [[part[i] for part in parts] for i in range(count)]
