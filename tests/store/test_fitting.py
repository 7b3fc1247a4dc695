"""Columns of other Arrow types are taken where every value keeps its meaning, else refused."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.types import parse_type
from everview.store.encoding.columns import to_arrow, to_python
from everview.store.encoding.fitting import Unfit, first_misfit, fit
from everview.store.encoding.values import Refused
from tests.store.row_values import patient, same, types, values

D = decimal.Decimal
NAMED = uuid.UUID("12345678-1234-5678-1234-567812345678")


@patient
@given(types(2).flatmap(lambda sql: st.tuples(st.just(sql), st.lists(st.none() | values(sql), max_size=5))))
def test_a_column_of_the_right_type_fits_as_it_is(case: tuple[Any, list[Any]]) -> None:
    sql, content = case
    fitted = fit(to_arrow(content, sql), sql)
    assert fitted.type == sql.arrow
    assert same(to_python(fitted, sql), content)


TAKEN: list[tuple[str, pa.Array, list[Any]]] = [
    ("BIGINT", pa.array([1, None, -3], pa.int8()), [1, None, -3]),
    ("TINYINT", pa.array([1, None, -3], pa.int64()), [1, None, -3]),
    ("UBIGINT", pa.array([1 << 63], pa.uint64()), [1 << 63]),
    ("INTEGER", pa.array([1.0, None, -3.0]), [1, None, -3]),
    ("INTEGER", pa.array([D("7.00"), None]), [7, None]),
    ("BIGINT", to_arrow([1 << 40, None, -1], parse_type("HUGEINT")), [1 << 40, None, -1]),
    ("UBIGINT", to_arrow([1 << 63, 1], parse_type("HUGEINT")), [1 << 63, 1]),
    ("BIGINT", to_arrow([5], parse_type("UHUGEINT")), [5]),
    ("HUGEINT", pa.array([-1, None, 5], pa.int16()), [-1, None, 5]),
    ("HUGEINT", pa.array([(1 << 64) - 1], pa.uint64()), [(1 << 64) - 1]),
    ("HUGEINT", pa.array([D(-(10**30)), None]), [-(10**30), None]),
    ("HUGEINT", to_arrow([1 << 120], parse_type("UHUGEINT")), [1 << 120]),
    ("UHUGEINT", to_arrow([1 << 120, None], parse_type("HUGEINT")), [1 << 120, None]),
    ("UHUGEINT", pa.array([5], pa.uint8()), [5]),
    ("BIGNUM", pa.array([-5, None, 300], pa.int16()), ["-5", None, "300"]),
    ("BIGNUM", pa.array([(1 << 64) - 1], pa.uint64()), [str((1 << 64) - 1)]),
    ("BIGNUM", to_arrow([-(1 << 127), None], parse_type("HUGEINT")), [str(-(1 << 127)), None]),
    ("BIGNUM", to_arrow([(1 << 128) - 1], parse_type("UHUGEINT")), [str((1 << 128) - 1)]),
    ("BIGNUM", pa.array([D("7.00"), None, D("-8.00")]), ["7", None, "-8"]),
    ("BIGNUM", pa.array([3.0, None]), ["3", None]),
    ("BIGNUM", pa.array(["12", None, "-7", "0"]), ["12", None, "-7", "0"]),
    ("BIGNUM", pa.array(["+012", None, "9" * 300, "-0"], pa.large_string()), ["12", None, "9" * 300, "-0"]),
    ("DOUBLE", pa.array([1.5, float("nan")], pa.float32()), [1.5, float("nan")]),
    ("DOUBLE", pa.array([1, None, 1 << 60]), [1.0, None, float(1 << 60)]),
    ("DOUBLE", to_arrow([3], parse_type("HUGEINT")), [3.0]),
    ("REAL", pa.array([0.5, None, float("inf")]), [0.5, None, float("inf")]),
    ("REAL", pa.array([0.1]), [float(np.float32(0.1))]),
    ("REAL", pa.array([3, None]), [3.0, None]),
    ("DECIMAL(10,2)", pa.array([D("1.5"), None]), [D("1.50"), None]),
    ("DECIMAL(4,2)", pa.array([D("1.5000")], pa.decimal256(50, 20)), [D("1.50")]),
    ("DECIMAL(4,2)", pa.array([12, None], pa.int64()), [D("12.00"), None]),
    ("DECIMAL(20,0)", pa.array([(1 << 64) - 1], pa.uint64()), [D((1 << 64) - 1)]),
    ("VARCHAR", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("VARCHAR", pa.array(["a", None], pa.string_view()), ["a", None]),
    ("VARCHAR", pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    ("VARCHAR", pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"])), ["a", "a"]),
    ("VARCHAR", to_arrow(["[1]"], parse_type("JSON")), ["[1]"]),
    ("JSON", pa.array(['{"a": 1}', None], pa.large_string()), ['{"a": 1}', None]),
    ("BLOB", pa.array([b"ab", None], pa.large_binary()), [b"ab", None]),
    ("BLOB", pa.array([b"ab", None], pa.binary_view()), [b"ab", None]),
    ("BOOLEAN", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8())), [True, False, None]),
    ("BLOB", pa.array([b"ab", None], pa.binary(2)), [b"ab", None]),
    ("UUID", pa.array([str(NAMED), None]), [NAMED, None]),
    ("DATE", pa.array([datetime.date(2024, 2, 29), None], pa.date64()), [datetime.date(2024, 2, 29), None]),
    ("TIME", pa.array([datetime.time(1, 2), None], pa.time32("s")), [datetime.time(1, 2), None]),
    ("TIME", pa.array([1000], pa.int64()).cast(pa.time64("ns")), [datetime.time(0, 0, 0, 1)]),
    ("TIMESTAMP", pa.array([5], pa.int64()).cast(pa.timestamp("s")), [datetime.datetime(1970, 1, 1, 0, 0, 5)]),
    ("TIMESTAMP", pa.array([5000], pa.int64()).cast(pa.timestamp("ns")), [datetime.datetime(1970, 1, 1, 0, 0, 0, 5)]),
    (
        "TIMESTAMPTZ",
        pa.array([5], pa.int64()).cast(pa.timestamp("ms", tz="Europe/Berlin")),
        [datetime.datetime(1970, 1, 1, 0, 0, 0, 5000, tzinfo=datetime.UTC)],
    ),
    (
        "INTERVAL",
        pa.array([datetime.timedelta(days=-1, hours=-2), None]),
        [pa.MonthDayNano([0, -1, -7200 * 10**9]), None],
    ),
    ("BIGINT[]", pa.array([[1, None], None, []], pa.large_list(pa.int8())), [[1, None], None, []]),
    ("DOUBLE[]", pa.array([[1.5, 2.5], None], pa.list_(pa.float32(), 2)), [[1.5, 2.5], None]),
    (
        "STRUCT(a BIGINT, b VARCHAR, c DATE)",
        pa.array([{"b": "x", "a": 1}, None]),
        [{"a": 1, "b": "x", "c": None}, None],
    ),
    ("MAP(BIGINT, VARCHAR)", pa.array([[(1, "a")], None], pa.map_(pa.int8(), pa.large_string())), [{1: "a"}, None]),
    ("INTEGER[]", pa.nulls(2), [None, None]),
    ("HUGEINT", pa.nulls(1), [None]),
]


@pytest.mark.parametrize(("sql", "array", "expected"), TAKEN, ids=lambda v: str(getattr(v, "type", v))[:40])
def test_nothing_is_lost(sql: str, array: pa.Array, expected: list[Any]) -> None:
    kind = parse_type(sql)
    fitted = fit(array, kind)
    fitted.validate(full=True)
    assert fitted.type == kind.arrow
    assert same(to_python(fitted, kind), expected)
    sliced = fit(pa.concat_arrays([array, array]).slice(1, len(array)), kind)
    assert same(to_python(sliced, kind), (expected * 2)[1 : 1 + len(array)])


REFUSED: list[tuple[str, pa.Array]] = [
    ("TINYINT", pa.array([1, 300])),
    ("UTINYINT", pa.array([1, -1])),
    ("INTEGER", pa.array([1.0, 1.5])),
    ("INTEGER", pa.array([1.0, float("nan")])),
    ("INTEGER", pa.array([D("1.0"), D("1.5")])),
    ("BIGINT", to_arrow([1, 1 << 64], parse_type("HUGEINT"))),
    ("BIGINT", to_arrow([1, 1 << 63], parse_type("HUGEINT"))),
    ("UBIGINT", to_arrow([1, -1], parse_type("HUGEINT"))),
    ("UHUGEINT", to_arrow([1, -1], parse_type("HUGEINT"))),
    ("UHUGEINT", pa.array([1, -1])),
    ("HUGEINT", to_arrow([1, 1 << 127], parse_type("UHUGEINT"))),
    ("DOUBLE", pa.array([1, (1 << 60) + 1])),
    ("REAL", pa.array([1, (1 << 24) + 1])),
    ("REAL", pa.array([1.0, 1e300])),
    ("DECIMAL(4,2)", pa.array([D("1.00"), D("1.001")])),
    ("DECIMAL(4,2)", pa.array([D("1.00"), D("100.00")])),
    ("DECIMAL(4,2)", pa.array([1, 100])),
    ("VARCHAR", pa.array([b"a", b"\xff"]).view(pa.string())),
    ("VARCHAR", pa.array([b"a", b"\xff"], pa.large_binary()).view(pa.large_string())),
    ("JSON", pa.array(["1", "{"])),
    ("UUID", pa.array([str(NAMED), "x"])),
    ("TIME", pa.array([0, 86_400_000_000]).view(pa.time64("us"))),
    ("TIME", pa.array([1000, 1]).cast(pa.time64("ns"))),
    ("TIMESTAMP", pa.array([1000, 1]).cast(pa.timestamp("ns"))),
    ("TIMESTAMP", pa.array([0, 1 << 62]).cast(pa.timestamp("s"))),
    ("TINYINT[]", pa.array([[1], [2, 300]])),
    ("STRUCT(a TINYINT)", pa.array([{"a": 1}, {"a": 300}])),
    ("MAP(INTEGER, INTEGER)", pa.array([[(1, 1)], [(2, 1), (2, 2)]], pa.map_(pa.int32(), pa.int32()))),
]


@pytest.mark.parametrize(("sql", "array"), REFUSED, ids=lambda v: str(getattr(v, "type", v))[:40])
def test_a_value_that_does_not_fit_is_found(sql: str, array: pa.Array) -> None:
    kind = parse_type(sql)
    fit(array.slice(0, 1), kind)
    with pytest.raises(Refused):
        fit(array, kind)
    assert first_misfit(array, kind) == 1
    long = pa.concat_arrays([array.slice(0, 1)] * 37 + [array] + [array.slice(0, 1)] * 5)
    assert first_misfit(long, kind) == 38


UNFIT: list[tuple[str, pa.Array]] = [
    ("BOOLEAN", pa.array([1, 0])),
    ("INTEGER", pa.array([True])),
    ("INTEGER", pa.array(["1"])),
    ("HUGEINT", pa.array([1.0])),
    ("DOUBLE", pa.array([D("1.5")])),
    ("DOUBLE", pa.array(["1.5"])),
    ("REAL", pa.array([True])),
    ("DECIMAL(5,2)", pa.array([1.5])),
    ("VARCHAR", pa.array([b"a"])),
    ("VARCHAR", pa.array([1])),
    ("BLOB", pa.array(["a"])),
    ("UUID", pa.array([b"a" * 16], pa.binary(16))),
    ("JSON", pa.array([{"a": 1}])),
    ("DATE", pa.array([datetime.datetime(2024, 1, 1)])),
    ("TIME", pa.array([1])),
    ("TIMESTAMP", pa.array([datetime.date(2024, 1, 1)])),
    ("TIMESTAMP", pa.array([datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)])),
    ("TIMESTAMPTZ", pa.array([datetime.datetime(2024, 1, 1)])),
    ("INTERVAL", pa.array([1])),
    ("INTEGER[]", pa.array([1])),
    ("INTEGER[]", pa.array([["a"]])),
    ("STRUCT(a INTEGER)", pa.array([{"a": 1, "b": 2}])),
    ("STRUCT(a INTEGER)", pa.array([1])),
    ("MAP(INTEGER, INTEGER)", pa.array([{"1": 1}])),
]


@pytest.mark.parametrize(("sql", "array"), UNFIT, ids=lambda v: str(getattr(v, "type", v))[:40])
def test_a_type_of_another_kind_is_refused_whatever_its_values(sql: str, array: pa.Array) -> None:
    with pytest.raises(Unfit):
        fit(array, parse_type(sql))
    with pytest.raises(Unfit):
        fit(array.slice(0, 0), parse_type(sql))


@pytest.mark.parametrize("lossless", [False, True])
def test_what_duckdb_makes_of_a_type_fits_it(lossless: bool) -> None:
    texts = {
        "BOOLEAN": "true",
        "BOOLEAN[]": "[true, NULL]",
        "UTINYINT": "200",
        "BIGINT": "-5",
        "DOUBLE": "1.5",
        "REAL": "0.1",
        "DECIMAL(4,1)": "12.5",
        "DECIMAL(30,3)": "12.5",
        "VARCHAR": "'x'",
        "BLOB": "'ab'",
        "DATE": "'2024-02-29'",
        "TIME": "'01:02:03.5'",
        "TIMESTAMP": "'2024-02-29 01:02:03'",
        "TIMESTAMPTZ": "'2024-02-29 01:02:03+00'",
        "INTERVAL": "'1 month 2 days'",
        "UUID": f"'{NAMED}'",
        "JSON": "'[1]'",
        "INTEGER[]": "[1, NULL]",
        "STRUCT(a INTEGER, b VARCHAR)": "{'a': 1, 'b': 'x'}",
        "MAP(INTEGER, VARCHAR)": "map {1: 'x'}",
    } | ({"HUGEINT": "-(2::HUGEINT ** 80)::HUGEINT", "UHUGEINT": "7"} if lossless else {})
    with duckdb.connect() as connection:
        connection.execute(f"set arrow_lossless_conversion={str(lossless).lower()}")
        for sql, text in texts.items():
            table = connection.sql(f"select ({text})::{sql} as v union all select null").to_arrow_table()
            fitted = fit(table.column("v").combine_chunks(), parse_type(sql))
            assert fitted.type == parse_type(sql).arrow
            assert fitted.null_count == 1
