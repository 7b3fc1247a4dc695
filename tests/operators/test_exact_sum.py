"""Sums of DOUBLE: what ``math.fsum`` says of the rows that are there, whatever happened before."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.change.types import DOUBLE, REAL, Type, parse_type
from everview.errors import DamagedEntryError
from everview.operators import exact_sum, limbs
from everview.operators.accumulators import sum_of
from everview.operators.limbs import Limbs, carried, decode, encode
from everview.operators.results import result
from everview.sql.settings import connect

KEPT = sum_of(DOUBLE)
GREATEST = float.fromhex("0x1.fffffffffffffp1023")
LEAST = 5e-324

finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e9, 1e9)
edges = st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, 0.1, LEAST, -LEAST, 2.0**-1022, GREATEST, -GREATEST, 2.0**53, 1e16, 1e-16]
)
numbers = finite | moderate | edges
anything = numbers | st.sampled_from([math.inf, -math.inf, math.nan])


def state(values: list[float], groups: list[int] | None = None, count: int = 1, sign: int = 1) -> pa.Array:
    among = np.zeros(len(values), np.intp) if groups is None else np.array(groups, np.intp)
    return KEPT.partial(pa.array(values, pa.float64()), np.full(len(values), sign, np.int64), among, count)


def shown(column: pa.Array, counts: list[int], function: str = "sum") -> list[float | None]:
    found = result(function, DOUBLE, column, pa.array(counts, pa.int64()))
    assert not found.overflow.any() and found.values.type == pa.float64()
    return found.values.to_pylist()


def nearest(values: list[float]) -> float:
    """The exact sum, rounded; what is not finite as IEEE 754 adds it."""
    odd = [value for value in values if not math.isfinite(value)]
    if odd:
        return sum(odd)
    return as_double(sum(map(Fraction, values), Fraction(0)))


def as_double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def same(a: float | None, b: float | None) -> bool:
    """Equal to the bit, any NaN like any other."""
    if a is None or b is None or math.isnan(a) or math.isnan(b):
        return a is b or (a is not None and b is not None and math.isnan(a) and math.isnan(b))
    return struct.pack("<d", a) == struct.pack("<d", b)


@settings(max_examples=300)
@given(st.lists(anything, min_size=1, max_size=12))
def test_a_sum_is_the_exact_sum_rounded_once(values: list[float]) -> None:
    (found,) = shown(state(values), [len(values)])
    assert same(found, nearest(values))
    if all(map(math.isfinite, values)) and math.isfinite(nearest(values)):
        try:
            assert found == math.fsum(values)
        except OverflowError:
            assert max(map(abs, values)) > 1e300
    (average,) = shown(state(values), [len(values)], "avg")
    assert same(average, nearest(values) / len(values))


@settings(max_examples=200)
@given(st.lists(anything, max_size=20), st.integers(1, 3), st.randoms(use_true_random=False))
def test_what_came_and_went_leaves_no_trace(values: list[float], count: int, random: Random) -> None:
    """Any order of inserts and deletes, any split: the bytes of those that stay."""
    groups = [random.randrange(count) for _ in values]
    gone = {i for i in range(len(values)) if random.random() < 0.5}
    history = [(i, 1) for i in range(len(values))] + [(i, -1) for i in gone]
    random.shuffle(history)
    kept = pa.nulls(count, pa.binary())
    parts = [state([], [], count)]
    while history:
        size = random.randint(1, 5)
        now, history = history[:size], history[size:]
        column = pa.array([values[i] for i, _ in now], pa.float64())
        weights, among = np.array([w for _, w in now]), np.array([groups[i] for i, _ in now])
        parts.append(KEPT.partial(column, weights, among, count))
        if random.random() < 0.5:
            among = np.tile(np.arange(count), len(parts))
            kept, parts = KEPT.add(KEPT.combine(pa.concat_arrays(parts), among, count), kept), parts[:1]
    for part in parts:
        kept = KEPT.add(kept, part)
    stays = [i for i in range(len(values)) if i not in gone]
    want = state([values[i] for i in stays], [groups[i] for i in stays], count)
    assert kept.to_pylist() == want.to_pylist()
    left = KEPT.add(kept, state([values[i] for i in stays], [groups[i] for i in stays], count, -1))
    assert left.to_pylist() == [b""] * count and KEPT.is_zero(left).all()


def test_thousands_of_rows_of_every_size_agree_with_fsum() -> None:
    random = np.random.default_rng(5)
    rows, count = 40_000, 300
    values = (random.random(rows) - 0.5) * 10.0 ** random.integers(-300, 300, rows)
    groups = random.integers(0, count, rows)
    away = random.random(rows) < 0.4
    column = KEPT.partial(pa.array(values), np.ones(rows, np.int64), groups, count)
    column = KEPT.add(column, KEPT.partial(pa.array(values[away]), np.full(away.sum(), -1), groups[away], count))
    left = [values[~away & (groups == group)] for group in range(count)]
    assert shown(column, [len(one) for one in left]) == [math.fsum(one) for one in left]


def test_groups_are_taken_in_runs_where_their_digits_would_not_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(6)
    values = (random.random(500) - 0.5) * 10.0 ** random.integers(-300, 300, 500)
    values[::50] = np.inf
    groups = random.integers(0, 90, 500)
    whole = state(values.tolist(), groups.tolist(), 90)
    doubled = state(np.tile(values, 2).tolist(), np.tile(groups, 2).tolist(), 90)
    monkeypatch.setattr(exact_sum, "_CELLS", 1000)
    monkeypatch.setattr(limbs, "_ROWS", 16)
    assert state(values.tolist(), groups.tolist(), 90) == whole
    assert KEPT.add(whole, whole) == doubled
    assert KEPT.combine(pa.concat_arrays([whole, whole]), np.tile(np.arange(90), 2), 90) == doubled
    assert len(shown(whole, [1] * 90)) == 90


@settings(max_examples=100)
@given(st.lists(st.tuples(finite, st.integers(-(1 << 62), 1 << 62)), min_size=1, max_size=5))
def test_weights_of_any_size_multiply(rows: list[tuple[float, int]]) -> None:
    weights, groups = np.array([w for _, w in rows]), np.zeros(len(rows), np.intp)
    values = pa.array([v for v, _ in rows])
    exact = sum((Fraction(v) * w for v, w in rows), Fraction(0))
    (found,) = shown(KEPT.partial(values, weights, groups, 1), [1])
    assert found == as_double(exact)
    both = KEPT.add(KEPT.partial(values, weights, groups, 1), KEPT.partial(values, -weights, groups, 1))
    assert both.to_pylist() == [b""]


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ([], None),
        ([-0.0], 0.0),
        ([1.0, -1.0], 0.0),
        ([LEAST, LEAST], 2 * LEAST),
        ([1e308, 1e308, -1e308], 1e308),
        ([1e308, 1e308], math.inf),
        ([-1e308, -1e308], -math.inf),
        ([GREATEST, 2.0**969], GREATEST),
        ([GREATEST, 2.0**970], math.inf),
        ([1.0, 2.0**-53], 1.0),
        ([1.0, 2.0**-53, LEAST], 1.0 + 2.0**-52),
        ([1.0 + 2.0**-52, 2.0**-53], 1.0 + 2.0**-51),
        ([1.0, 2.0**-53, -LEAST], 1.0),
        ([math.inf, 1.0], math.inf),
        ([-math.inf, 1e308], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, math.inf], math.nan),
    ],
)
def test_edges(values: list[float], want: float | None) -> None:
    (found,) = shown(state(values), [len(values)])
    assert same(found, want)


@pytest.mark.parametrize(
    "values", [[math.inf, 1.0], [-math.inf], [math.inf, -math.inf], [math.nan, 1.0], [1e308] * 2, [-0.0]]
)
@pytest.mark.parametrize("function", ["sum", "avg"])
def test_what_is_not_finite_goes_as_in_duckdb(values: list[float], function: str) -> None:
    with connect() as connection:
        connection.register("given", pa.table({"x": values}))
        ((answer,),) = connection.execute(f"SELECT {function}(x) FROM given").fetchall()
    assert same(shown(state(values), [len(values)], function)[0], answer)


def test_infinities_and_nans_can_be_taken_away() -> None:
    column = state([math.inf, math.nan, 2.5, -math.inf])
    for value, want in ((math.nan, math.nan), (-math.inf, math.inf), (math.inf, 2.5)):
        column = KEPT.add(column, state([value], sign=-1))
        assert same(shown(column, [1])[0], want)


def test_reals_are_added_as_their_exact_doubles() -> None:
    kept = sum_of(REAL)
    values = pa.array([0.1, 0.2, None, 16777216.0], pa.float32())
    column = kept.partial(values, np.ones(4, np.int64), np.zeros(4, np.intp), 1)
    wide = [float(np.float32(0.1)), float(np.float32(0.2)), 16777216.0]
    assert result("sum", REAL, column, pa.array([3])).values.to_pylist() == [math.fsum(wide)]


def test_uhugeint_is_added_as_duckdb_casts_it() -> None:
    kind: Type = parse_type("UHUGEINT")
    random = Random(4)
    whole = [random.getrandbits(random.randint(1, 128)) for _ in range(500)]
    column = pa.ExtensionArray.from_storage(
        kind.arrow, pa.array([value.to_bytes(16, "little") for value in whole], pa.binary(16))
    )
    with connect() as connection:
        connection.register("given", pa.table({"x": column}))
        casts = [value for (value,) in connection.execute("SELECT x::DOUBLE FROM given").fetchall()]
        ((answer,),) = connection.execute("SELECT sum(x) FROM given LIMIT 1").fetchall()
    kept = sum_of(kind)
    each = kept.partial(column, np.ones(500, np.int64), np.arange(500), 500)
    assert result("sum", kind, each, pa.array([1] * 500)).values.to_pylist() == casts
    total = kept.combine(each, np.zeros(500, np.intp), 1)
    (found,) = result("sum", kind, total, pa.array([500])).values.to_pylist()
    assert found == math.fsum(casts) and math.isclose(found, answer)


def test_nulls_are_nothing() -> None:
    column = KEPT.partial(pa.array([1.5, None, None]), np.ones(3, np.int64), np.array([0, 0, 1]), 2)
    assert column == state([1.5], [0], 2)
    assert shown(column, [1, 0]) == [1.5, None]


@settings(max_examples=200)
@given(st.lists(st.integers(-(1 << 200), 1 << 200) | st.integers(-3, 3), max_size=6), st.integers(0, 5))
def test_a_number_has_one_row_of_bytes(whole: list[int], low: int) -> None:
    """Digits in any of their forms have the same bytes, and the bytes give the number back."""
    digits = np.zeros((8, len(whole)), np.int64)
    for i, value in enumerate(whole):
        rest = value
        for j in range(8):
            digits[j, i] = rest if j == 7 else rest & 0xFFFFFFFF
            rest >>= 32
    column = encode(carried(Limbs(low, digits)))
    assert [_value(blob) for blob in column.to_pylist()] == [value << (32 * low) for value in whole]
    assert encode(carried(decode(column))) == column
    bent = digits.copy()
    bent[0] += 5 << 32
    bent[1] -= 5
    assert encode(carried(Limbs(low, bent))) == column


@pytest.mark.parametrize("blob", [b"\x00\x01", b"\x81\x01\x02\x03\x04", b"\x02\x01\x02\x03\x04\x05\x06"])
def test_bytes_that_are_no_number_are_found(blob: bytes) -> None:
    with pytest.raises(DamagedEntryError, match="sum"):
        decode(pa.array([b"", blob]))


def _value(blob: bytes) -> int:
    if not blob:
        return 0
    digits = struct.unpack(f"<{len(blob) // 4}i", blob[1:])
    assert digits[0] and digits[-1]
    return sum(digit << (32 * (blob[0] + i)) for i, digit in enumerate(digits))
