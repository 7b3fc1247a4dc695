"""The bytes of BIGNUMs: DuckDB's, one by one and in columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everview.change.schema import KeyPart
from everview.change.types import BIGNUM
from everview.sql.settings import connect
from everview.store.encoding import bignums
from everview.store.encoding.keys import KeyCodec

NUMBERS = st.integers(-300, 300) | st.integers(-(10**600), 10**600) | st.integers(0, 80).map(lambda n: 256**n)
EDGES = [sign * (256**size + more) for size in range(12) for more in (-1, 0, 1) for sign in (1, -1)]


def in_duckdb(numbers: list[int | None], query: str = "SELECT b FROM t ORDER BY i") -> pa.Array:
    """What DuckDB gives for the numbers as BIGNUMs."""
    with connect() as connection:
        texts = pa.table({"i": range(len(numbers)), "x": [None if n is None else str(n) for n in numbers]})
        connection.register("given", texts.cast(pa.schema([("i", pa.int64()), ("x", pa.string())])))
        connection.execute("CREATE TABLE t AS SELECT i, CAST(x AS BIGNUM) AS b FROM given")
        return connection.sql(query).to_arrow_table().column(0).combine_chunks()


@given(st.lists(st.none() | NUMBERS, max_size=20))
@example([None, *EDGES])
@example([])
def test_the_bytes_are_those_of_duckdb(numbers: list[int | None]) -> None:
    held = in_duckdb(numbers).storage
    assert held.to_pylist() == [None if number is None else bignums.of_int(number) for number in numbers]
    assert held.to_pylist() == [None if number is None else bignums.to_bytes(str(number)) for number in numbers]
    assert not bignums.damaged(held).any()
    there = np.array([number is not None for number in numbers], np.bool_)
    assert bignums.from_magnitudes(*bignums.magnitudes(held), there).equals(held)
    assert [None if one is None else bignums.to_int(one) for one in held.to_pylist()] == numbers


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("delimited", [False, True])
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=20))
@example(numbers=EDGES)
def test_keys_are_in_the_order_of_duckdb(numbers: list[int], descending: bool, delimited: bool) -> None:
    codec = KeyCodec((KeyPart("b", BIGNUM, descending=descending),), delimited=delimited)
    held = in_duckdb(list(numbers))
    keys = codec.encode_columns([held]).to_pylist()
    assert keys == [codec.encode((number,)) for number in numbers]
    ordered = in_duckdb(list(numbers), f"SELECT b::VARCHAR FROM t ORDER BY b {'DESC' if descending else ''}")
    assert [codec.decode(key)[0] for key in sorted(keys)] == ordered.to_pylist()


@given(st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1)))
def test_integers_become_bignums_in_columns(numbers: list[int | None]) -> None:
    found = bignums.from_integers(pa.array(numbers, pa.int64()))
    assert found.to_pylist() == [None if number is None else bignums.of_int(number) for number in numbers]


def test_a_negative_zero_is_a_value_of_its_own() -> None:
    with connect() as connection:
        (text,) = connection.sql("SELECT CAST(CAST(-0.4 AS DOUBLE) AS BIGNUM)").fetchall()[0]
        held = connection.sql("SELECT CAST(CAST(-0.4 AS DOUBLE) AS BIGNUM) AS b").to_arrow_table()["b"].chunk(0).storage
    assert text == "-0" and bignums.to_bytes(text) == held[0].as_py() < bignums.ZERO
    assert bignums.from_bytes(held[0].as_py()) == "-0" and not bignums.damaged(held).any()


def test_numbers_may_be_longer_than_pythons_texts_of_integers() -> None:
    text = "-" + "9" * 20_000
    assert bignums.from_bytes(bignums.to_bytes(text)) == text
    assert bignums.text_of(10**20_000) == "1" + "0" * 20_000


@pytest.mark.parametrize("text", ["", "-", "+", "1.5", "1e3", " 1", "1\n", "0x1", "1_000", "١"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a whole number"):
        bignums.canonical(text)


@pytest.mark.parametrize("held", ["", "80", "800001", "80000105ff", "8000020001", "80000205", "00000105", "7ffffdff01"])
def test_damaged_bytes_are_refused(held: str) -> None:
    with pytest.raises(ValueError, match="not those of a BIGNUM"):
        bignums.from_bytes(bytes.fromhex(held))
    column = pa.array([bignums.ZERO, bytes.fromhex(held), None])
    assert bignums.damaged(column).tolist() == [False, True, False]
