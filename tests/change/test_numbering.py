"""Equal values have equal numbers, whatever their type; numbers follow first appearance."""

import datetime
import decimal
import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change import numbering
from everview.change.numbering import column_numbers, row_numbers, same_values
from everview.change.types import parse_type

NAN = float("nan")
VALUES: dict[str, list[object]] = {
    "BOOLEAN": [True, False, None],
    "INTEGER": [-1, 0, 1, None],
    "DOUBLE": [0.0, -0.0, NAN, 1e300, None],
    "REAL": [0.0, -0.0, NAN, 1.5, None],
    "DECIMAL(8,2)": [decimal.Decimal("1.50"), decimal.Decimal("-1.50"), None],
    "VARCHAR": ["", "a", "é", None],
    "BLOB": [b"", b"\0", b"\0\0", None],
    "DATE": [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), None],
    "TIMESTAMP": [datetime.datetime(1960, 1, 1), datetime.datetime(2024, 1, 1), None],
    "INTERVAL": [pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 30, 0]), None],
    "INTEGER[]": [[], [1], [1, 1], [None], [1, None], None],
    "DOUBLE[][]": [[[0.0]], [[-0.0]], [[0.0], []], [None], [], None],
    "STRUCT(a INTEGER, b VARCHAR)": [{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": None, "b": None}, None],
    "MAP(VARCHAR, INTEGER[])": [[("a", [1])], [("a", [1]), ("b", None)], [], None],
    "UUID": [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, None],
}


def column(sql: str, chosen: list[int]) -> pa.Array:
    kind = parse_type(sql).arrow
    held = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    values = pa.array([VALUES[sql][number] for number in chosen], held)
    return pa.ExtensionArray.from_storage(kind, values) if isinstance(kind, pa.BaseExtensionType) else values


@pytest.mark.parametrize("sql", VALUES)
def test_a_column_is_numbered_by_its_bits(sql: str) -> None:
    count = len(VALUES[sql])
    chosen = [*range(count), *range(count), 0]
    numbers = column_numbers(column(sql, chosen))
    assert numbers.of_rows.tolist() == chosen
    assert numbers.count == count
    assert numbers.first().tolist() == list(range(count))
    assert numbers.last().tolist() == [2 * count, *range(count + 1, 2 * count)]
    assert column_numbers(column(sql, chosen)[2:]).count == count
    assert same_values(column(sql, chosen[:count]), column(sql, chosen[:count])).all()
    assert not same_values(column(sql, chosen[:count]), column(sql, chosen[1 : count + 1])).any()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), max_size=20))
def test_rows_are_equal_where_all_columns_are(rows: list[tuple[int, int, int]]) -> None:
    columns = [column(sql, [row[i] for row in rows]) for i, sql in enumerate(["DOUBLE", "REAL", "VARCHAR"])]
    numbers = row_numbers(pa.chunked_array([one[:7], one[7:]]) for one in columns)
    different = list(dict.fromkeys(rows))
    assert numbers.of_rows.tolist() == [different.index(row) for row in rows]
    assert numbers.first().tolist() == [rows.index(row) for row in different]


@given(st.integers(0, 20), st.lists(st.integers(0, 3), max_size=12))
def test_byte_keys_of_any_length(width: int, chosen: list[int]) -> None:
    keys = [bytes([number]).rjust(width, b"\0") + b"x" * (width > 18) * number for number in chosen]
    numbers = column_numbers(pa.array([b"before", *keys], pa.large_binary())[1:])
    assert numbers.of_rows.tolist() == [list(dict.fromkeys(keys)).index(key) for key in keys]


def test_rows_that_are_mixed_into_the_same_word_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_mixed", lambda words: np.zeros(len(words[0]), np.uint64))
    assert row_numbers([pa.array([1, 1, 2, 1]), pa.array(["a", "b", "a", "a"])]).of_rows.tolist() == [0, 1, 2, 0]


def test_sums_are_exact_beyond_what_a_double_holds() -> None:
    numbers = column_numbers(pa.array([1, 1, 2]))
    weights = np.array([1 << 60, 1, -(1 << 60)])
    assert numbers.sums(weights).tolist() == [(1 << 60) + 1, -(1 << 60)]
