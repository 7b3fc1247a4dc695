"""Counts and sums of integers and decimals: exact, reversible, and what DuckDB answers."""

from __future__ import annotations

import decimal as python_decimal
import functools
from dataclasses import dataclass
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.change.types import INTEGERS, SIGNED, Kind, Type, parse_type
from everview.errors import DefinitionError
from everview.operators.accumulators import Accumulator, accumulator
from everview.operators.results import result, sum_type
from everview.operators.whole_sums import column_of
from everview.plan.relations import Aggregate, Way
from everview.plan.relations.groups import kept_as
from everview.sql.settings import connect
from tests.plan.shop import built

TYPES = tuple(
    parse_type(text)
    for text in (
        *("BOOLEAN", "TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT"),
        *("HUGEINT", "DECIMAL(4,1)", "DECIMAL(9,0)", "DECIMAL(18,3)", "DECIMAL(19,19)"),
        *("DECIMAL(38,0)", "DECIMAL(38,10)", "DECIMAL(38,38)"),
    )
)
EXACT = python_decimal.Context(prec=100)


def limits(kind: Type) -> tuple[int, int]:
    """The least and the greatest unscaled value."""
    if kind.kind is Kind.BOOLEAN:
        return 0, 1
    if kind.kind is Kind.DECIMAL:
        return 1 - 10**kind.precision, 10**kind.precision - 1
    bits = INTEGERS[kind.kind]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.kind in SIGNED else (0, (1 << bits) - 1)


def column(kind: Type, values: list[int | None]) -> pa.Array:
    """A column of unscaled values."""
    if kind.kind in (Kind.DECIMAL, Kind.HUGEINT):
        whole = [value or 0 for value in values]
        low = np.array([value & (1 << 64) - 1 for value in whole], np.uint64)
        high = np.array([value >> 64 for value in whole], np.int64)
        return column_of((low, high), kind, np.array([value is None for value in values], np.bool_))
    return pa.array(values, pa.uint64() if kind.kind is Kind.UBIGINT else pa.int64()).cast(kind.arrow)


def unscaled(array: pa.Array) -> list[int | None]:
    """The integers of a HUGEINT or DECIMAL column."""
    if isinstance(array, pa.ExtensionArray):
        return [None if v is None else int.from_bytes(v, "little", signed=True) for v in array.storage.to_pylist()]
    shift = array.type.scale
    return [None if v is None else int(v.scaleb(shift, EXACT)) for v in array.to_pylist()]


@dataclass
class Rows:
    kind: Type
    values: list[int | None]
    groups: list[int]
    count: int


@st.composite
def rows(draw: st.DrawFn, kinds: tuple[Type, ...] = TYPES, most: int = 30) -> Rows:
    kind = draw(st.sampled_from(kinds))
    least, greatest = limits(kind)
    bits = draw(st.integers(0, 128))
    one = st.integers(max(least, -(1 << bits)), min(greatest, 1 << bits)) | st.sampled_from([least, greatest])
    values = draw(st.lists(st.none() | one, max_size=most))
    count = draw(st.integers(1, 4))
    groups = draw(st.lists(st.integers(0, count - 1), min_size=len(values), max_size=len(values)))
    return Rows(kind, values, groups, count)


def partial(
    kept: Accumulator, kind: Type, values: list[int | None], groups: list[int], count: int, sign: int = 1
) -> pa.Array:
    weights = np.full(len(values), sign, np.int64)
    return kept.partial(column(kind, values), weights, np.array(groups, np.intp), count)


def shown(function: str, given: Rows, kept: Accumulator, state: pa.Array) -> tuple[pa.Array, list[bool]]:
    counts = accumulator("count", given.kind)
    filled = partial(counts, given.kind, given.values, given.groups, given.count)
    found = result(function, given.kind, state, filled)
    return found.values, found.overflow.tolist()


@settings(max_examples=200)
@given(rows())
def test_a_sum_is_the_sum_of_the_rows_or_an_overflow(given: Rows) -> None:
    kept = accumulator("sum", given.kind)
    values, overflow = shown("sum", given, kept, partial(kept, given.kind, given.values, given.groups, given.count))
    assert values.type == sum_type(given.kind).arrow
    for group, (value, refused) in enumerate(zip(unscaled(values), overflow, strict=True)):
        there = [v for v, g in zip(given.values, given.groups, strict=True) if g == group and v is not None]
        total = sum(there)
        fits = abs(total) < 10**38 if given.kind.kind is Kind.DECIMAL else -(1 << 127) <= total < 1 << 127
        assert refused == (bool(there) and not fits)
        assert value == (total if there and fits else None)


@settings(max_examples=100)
@given(rows(), st.randoms(use_true_random=False))
def test_what_was_added_and_taken_leaves_no_trace(given: Rows, random: Random) -> None:
    """Rows that come and go in any order and any split leave the state of those that stay."""
    kept = accumulator("sum", given.kind)
    every = range(len(given.values))
    gone = {i for i in every if random.random() < 0.5}
    history = [(i, 1) for i in every] + [(i, -1) for i in gone]
    random.shuffle(history)
    state = pa.nulls(given.count, kept.type.arrow)
    parts: list[pa.Array] = []
    while history:
        size = random.randint(1, 4)
        now, history = history[:size], history[size:]
        weights, groups = np.array([w for _, w in now]), np.array([given.groups[i] for i, _ in now])
        parts.append(kept.partial(column(given.kind, [given.values[i] for i, _ in now]), weights, groups, given.count))
        if random.random() < 0.5 or not history:
            numbers = np.tile(np.arange(given.count), len(parts))
            state = kept.add(state, kept.combine(pa.concat_arrays(parts), numbers, given.count))
            parts = []
    stays = [i for i in every if i not in gone]
    left = [given.values[i] for i in stays], [given.groups[i] for i in stays], given.count
    want = partial(kept, given.kind, *left)
    assert kept.add(state, pa.nulls(given.count, kept.type.arrow)).to_pylist() == want.to_pylist()
    assert kept.is_zero(kept.add(state, partial(kept, given.kind, *left, sign=-1))).all()


_duckdb = functools.cache(connect)


def duckdb_answers(function: str, given: Rows) -> dict[int, object] | None:
    """What DuckDB answers by group, or None where it overflows on the way."""
    table = pa.table({"g": pa.array(given.groups, pa.int64()), "x": column(given.kind, given.values)})
    try:
        _duckdb().register("given", table)
        found = _duckdb().sql(f"SELECT g, {function}(x) AS y FROM given GROUP BY g").to_arrow_table()
    except duckdb.OutOfRangeException:
        return None
    values = found["y"].combine_chunks()
    return dict(zip(found["g"].to_pylist(), unscaled(values) if function == "sum" else values.to_pylist(), strict=True))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["sum", "avg"]), rows(most=60))
def test_results_are_those_of_duckdb_to_the_last_bit(function: str, given: Rows) -> None:
    if function == "avg" and given.kind.kind is Kind.BOOLEAN:
        return
    answers = duckdb_answers(function, given)
    kept = accumulator("sum", given.kind)
    values, overflow = shown(function, given, kept, partial(kept, given.kind, given.values, given.groups, given.count))
    if answers is None:
        return
    assert not any(overflow)
    found = unscaled(values) if function == "sum" else values.to_pylist()
    assert {group: found[group] for group in answers} == answers


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind.kind is not Kind.BOOLEAN], ids=str)
def test_averages_of_many_groups_are_those_of_duckdb(kind: Type) -> None:
    random = np.random.default_rng(7)
    least, greatest = limits(kind)
    bits = random.integers(1, max(greatest.bit_length() - 5, 2), 20_000).tolist()
    words = random.integers(0, 1 << 63, (2, len(bits))).tolist()
    values = [((high << 64) + low) % (1 << b) for high, low, b in zip(*words, bits, strict=True)]
    given = Rows(
        kind,
        [-v if least and i % 3 == 0 else v for i, v in enumerate(values)],
        random.integers(0, 5000, len(values)).tolist(),
        5000,
    )
    answers = duckdb_answers("avg", given)
    assert answers is not None
    kept = accumulator("sum", kind)
    found, _ = shown("avg", given, kept, partial(kept, kind, given.values, given.groups, given.count))
    assert {group: found[group].as_py() for group in answers} == answers


def test_an_average_without_groups_is_that_of_a_group() -> None:
    """DuckDB would round them otherwise; the settings forbid it."""
    with connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 0 AS g, (i ** 3)::DECIMAL(38,20) * 1.37037 AS x FROM range(99) r(i)"
        )
        for most in range(1, 99):
            rows = f"FROM (SELECT * FROM t LIMIT {most})"
            (alone,) = connection.execute(f"SELECT avg(x) {rows}").fetchall()
            assert [alone] == connection.execute(f"SELECT avg(x) {rows} GROUP BY g").fetchall()


@pytest.mark.parametrize("kind", ["HUGEINT", "DECIMAL(38,2)"])
def test_a_group_past_the_range_comes_back_when_rows_leave(kind: str) -> None:
    argument = parse_type(kind)
    kept = accumulator("sum", argument)
    _, greatest = limits(argument)
    state = partial(kept, argument, [greatest, greatest, greatest, 5], [0, 0, 0, 1], 2)
    over = result("sum", argument, state, pa.array([3, 1]))
    assert over.overflow.tolist() == [True, False] and unscaled(over.values) == [None, 5]
    assert kind in over.message
    assert result("avg", argument, state, pa.array([3, 1])).overflow.tolist() == [True, False]
    state = kept.add(state, partial(kept, argument, [greatest, greatest], [0, 0], 2, -1))
    back = result("sum", argument, state, pa.array([1, 1]))
    assert back.overflow.tolist() == [False, False] and unscaled(back.values) == [greatest, 5]


@settings(max_examples=100)
@given(
    st.sampled_from(TYPES), st.lists(st.tuples(st.integers(0, 1 << 127), st.integers(-(1 << 62), 1 << 62)), max_size=6)
)
def test_weights_of_any_size_multiply(kind: Type, drawn: list[tuple[int, int]]) -> None:
    least, greatest = limits(kind)
    values: list[int | None] = [least + v % (greatest - least + 1) for v, _ in drawn]
    kept = accumulator("sum", kind)
    weights = np.array([w for _, w in drawn], np.int64)
    state = kept.partial(column(kind, values), weights, np.zeros(len(drawn), np.intp), 1)
    total = sum((v or 0) * w for v, (_, w) in zip(values, drawn, strict=True))
    found = result("sum", kind, state, pa.array([1]))
    if not found.overflow[0]:
        assert unscaled(found.values) == [total]
    taken = kept.partial(column(kind, values), -weights, np.zeros(len(drawn), np.intp), 1)
    assert kept.is_zero(kept.add(state, taken)).all()


def test_counts_count_rows_or_values() -> None:
    kept = accumulator("count", None)
    groups = np.array([0, 0, 1, 1], np.intp)
    weights = np.array([1, 2, -1, 1])
    values = pa.array([1, None, 3, None])
    assert kept.partial(None, weights, groups, 3).to_pylist() == [3, 0, 0]
    assert kept.partial(values, weights, groups, 3).to_pylist() == [1, -1, 0]
    assert kept.add(pa.array([1, None, 3]), pa.array([None, None, -3])).to_pylist() == [1, 0, 0]
    assert kept.combine(pa.array([1, None, 3, 4]), groups, 2).to_pylist() == [1, 7]
    assert kept.is_zero(pa.array([0, None, 3])).tolist() == [True, True, False]


def test_slices_of_columns_are_read_where_they_begin() -> None:
    for kind in TYPES:
        kept = accumulator("sum", kind)
        values = column(kind, [1, None, 1, 0])
        weights, groups = np.array([1, 1]), np.array([0, 1], np.intp)
        state = kept.partial(values.slice(1, 2), weights, groups, 2)
        assert unscaled(result("sum", kind, state, pa.array([1, 1])).values) == [0, 1]
        assert unscaled(result("sum", kind, kept.add(state.slice(1), state.slice(1)), pa.array([1])).values) == [2]
        assert kept.is_zero(state.slice(1)).tolist() == [False]


MOMENTS = tuple(map(parse_type, ("TIME", "TIMESTAMP", "TIMESTAMPTZ")))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(MOMENTS),
    st.lists(st.integers(0, 86_399_999_999) | st.integers(-(10**16), 10**16) | st.integers(-5, 5), min_size=1),
)
def test_averages_of_moments_are_those_of_duckdb(kind: Type, given: list[int]) -> None:
    values = [value % 86_400_000_000 if kind.kind is Kind.TIME else value for value in given]
    column_ = pa.array([*values, None], pa.int64()).cast(kind.arrow)
    kept = accumulator("sum", kind)
    state = kept.partial(column_, np.ones(len(column_), np.int64), np.zeros(len(column_), np.intp), 1)
    _duckdb().register("given", pa.table({"x": column_}))
    answer = _duckdb().sql("SELECT avg(x) AS y FROM given").to_arrow_table()["y"].combine_chunks()
    found = result("avg", kind, state, pa.array([len(values)]))
    assert found.values.cast(pa.int64()).to_pylist() == answer.cast(pa.int64()).to_pylist()
    assert found.values.type == kind.arrow
    assert result("avg", kind, state, pa.array([0])).values.to_pylist() == [None]


def test_an_average_of_many_moments_is_not_lost_to_rounding() -> None:
    kind = parse_type("TIMESTAMP")
    kept = accumulator("sum", kind)
    weight = np.array([10**15 + 1, 10**15], np.int64)
    for first, second in ((9 * 10**17 + 1, 9 * 10**17 + 4), (-9 * 10**17, -9 * 10**17 + 3)):
        state = kept.partial(pa.array([first, second]).cast(kind.arrow), weight, np.zeros(2, np.intp), 1)
        total, count = first * int(weight[0]) + second * int(weight[1]), int(weight.sum())
        quotient, rest = divmod(abs(total), count)
        want = quotient + (rest > count // 2) if total > 0 else -quotient
        found = result("avg", kind, state, pa.array([count]))
        assert found.values.cast(pa.int64()).to_pylist() == [want]


@pytest.mark.parametrize(
    ("call", "way"),
    [
        *((f"sum(amount::{kind})", Way.SUM) for kind in TYPES if kind.kind is not Kind.BOOLEAN),
        *((f"avg({text})", Way.SUM) for text in ("amount", "price", "price::REAL", "amount::UHUGEINT", "moment")),
        *((f"avg({text})", Way.GENERAL) for text in ("moment::DATE", "moment - TIMESTAMP '2000-01-01'")),
        *((f"count({text})", Way.SUM) for text in ("*", "moment::DATE", "tags")),
    ],
)
def test_the_plan_keeps_what_has_an_accumulator(call: str, way: Way) -> None:
    relation = built(f"SELECT customer, {call} FROM orders GROUP BY customer").relation
    ((found,),) = [node.calls for node in relation.walk() if isinstance(node, Aggregate)]
    assert found.way is way
    if way is Way.SUM and found.arguments:
        accumulator("count" if found.function == "count" else "sum", found.arguments[0].type)


def test_only_what_is_kept_has_an_accumulator() -> None:
    assert kept_as(parse_type("INTERVAL")) is None
    with pytest.raises(DefinitionError, match="INTERVAL"):
        accumulator("sum", parse_type("INTERVAL"))
    with pytest.raises(DefinitionError, match=r"avg\(BIGINT\)"):
        accumulator("avg", parse_type("BIGINT"))
    with pytest.raises(DefinitionError, match=r"max\(BIGINT\)"):
        result("max", parse_type("BIGINT"), pa.array([1]), pa.array([1]))
