"""Keys order as tuples do, come back as they were, and refuse what cannot be a key."""

from __future__ import annotations

import datetime
import decimal
import functools
import itertools
import math
import pickle
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.change.schema import KeyPart
from everview.change.types import INTEGERS, Kind, Type, parse_type
from everview.errors import (
    DamagedEntryError,
    DefinitionError,
    EverviewError,
    InputError,
    MissingColumnError,
    ValueTypeError,
)
from everview.store.encoding.columns import from_nanoseconds, to_arrow
from everview.store.encoding.keys import KeyCodec, successor
from everview.store.encoding.values import bounds

SCALARS = [kind.value for kind in INTEGERS] + [
    *("BOOLEAN", "REAL", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(18,0)", "DECIMAL(38,10)", "VARCHAR", "BLOB"),
    *("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "UUID", "JSON"),
    *("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMETZ", "BIT", "BIGNUM", "ENUM('b', 'a', 'c')"),
]

# ------------------------------------------------------------------ values of every type

TEXT = st.text(st.sampled_from(["\x00", "\x01", "a", "b", "\xff", "é", "\uffff", "😀"]), max_size=5)
DAY_NANOS = 86_400_000_000_000
INTERVALS = st.builds(
    lambda months, days, nanos: pa.MonthDayNano([months, days, nanos]),
    st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1),
    st.integers(-61, 61) | st.integers(-(2**31), 2**31 - 1),
    st.sampled_from([0, 999, -999, 1000, -1000, DAY_NANOS, -DAY_NANOS, DAY_NANOS - 1000, 30 * DAY_NANOS])
    | st.integers(-(2**63), 2**63 - 1),
)


TIMES_WITH_OFFSETS = st.builds(
    lambda time, offset: time.replace(tzinfo=datetime.timezone(datetime.timedelta(seconds=offset))),
    st.times() | st.sampled_from([datetime.time(h) for h in (0, 11, 12, 13)]),
    st.integers(-57_599, 57_599) | st.sampled_from([0, 3600, -3600]),
)


class Digits(str):
    """The text of a BIGNUM, to distinguish it from other texts."""


class Member(str):
    """A member of the ENUM, to distinguish it from other texts."""


@functools.cache
def values_of(sql: Type, nan: bool = True) -> st.SearchStrategy[Any]:
    if sql.kind in INTEGERS:
        low, high = bounds(sql.kind)
        return st.integers(low, high) | st.integers(max(low, -2), 2)
    if sql.kind is Kind.DECIMAL:
        limit = 10**sql.precision - 1
        exact = decimal.Context(prec=40)
        return st.integers(-limit, limit).map(lambda i: decimal.Decimal(i).scaleb(-sql.scale, exact))
    utc = st.just(datetime.UTC)
    known: dict[Kind, st.SearchStrategy[Any]] = {
        Kind.BOOLEAN: st.booleans(),
        Kind.REAL: st.floats(width=32, allow_nan=nan) | st.sampled_from([0.0, -0.0]),
        Kind.DOUBLE: st.floats(allow_nan=nan) | st.sampled_from([0.0, -0.0]),
        Kind.VARCHAR: TEXT,
        Kind.BLOB: st.binary(max_size=5) | st.lists(st.sampled_from([0, 1, 254, 255]), max_size=5).map(bytes),
        Kind.DATE: st.dates(),
        Kind.TIME: st.times(),
        Kind.TIMESTAMP: st.datetimes(),
        Kind.TIMESTAMPTZ: st.datetimes(timezones=utc),
        Kind.INTERVAL: INTERVALS,
        Kind.UUID: st.uuids(),
        Kind.TIMESTAMP_S: st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
        Kind.TIMESTAMP_MS: st.datetimes().map(lambda moment: moment.replace(microsecond=1000)),
        Kind.TIMESTAMP_NS: (st.integers(-3, 3) | st.integers(-(1 << 62), 1 << 62)).map(from_nanoseconds),
        Kind.TIMETZ: TIMES_WITH_OFFSETS,
        Kind.BIT: st.text("01", min_size=1, max_size=17),
        Kind.BIGNUM: (st.integers(-300, 300) | st.integers(-(10**400), 10**400)).map(str).map(Digits)
        | st.just(Digits("-0")),
        Kind.ENUM: st.sampled_from(["b", "a", "c"]).map(Member),
        Kind.JSON: st.sampled_from(["1", '"a"', "[]", '{"a": [1, null]}', '"\\u0000"', '"é"']),
    }
    return known[sql.kind]


def length(interval: pa.MonthDayNano) -> int:
    """An interval as DuckDB compares it: its microseconds, in months of 30 days."""
    months, days, nanos = interval
    return int(months * 30 + days) * 86_400_000_000 + (abs(nanos) // 1000) * (-1 if nanos < 0 else 1)


def rank(value: Any) -> Any:
    """Something that Python compares as SQL compares the value."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, Digits):
        return (int(value), value != "-0")
    if isinstance(value, Member):
        return "bac".index(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, datetime.time) and value.tzinfo is not None:
        offset = value.utcoffset()
        assert offset is not None
        day = datetime.datetime.combine(datetime.date(2000, 1, 1), value.replace(tzinfo=None))
        return day - offset, -offset
    if isinstance(value, pa.MonthDayNano):
        return length(value)
    return value.bytes if isinstance(value, uuid.UUID) else value


def compare(parts: Sequence[KeyPart], left: Sequence[Any], right: Sequence[Any]) -> int:
    for part, a, b in zip(parts, left, right, strict=True):
        x, y = ((0, 0) if v is None else (1, rank(v)) for v in (a, b))
        if x != y:
            return (1 if x > y else -1) * (-1 if part.descending else 1)
    return 0


def same(left: Any, right: Any) -> bool:
    """Whether two values are one key."""
    if isinstance(left, str) or isinstance(right, str):
        return bool(left == right)
    return (left is None) == (right is None) and (left is None or bool(rank(left) == rank(right)))


def part(text: str, name: str = "k", nullable: bool = False, descending: bool = False) -> KeyPart:
    return KeyPart(name, parse_type(text), nullable, descending)


PARTS = st.builds(part, st.sampled_from(SCALARS), st.just("k"), st.booleans(), st.booleans())


def row_of(parts: Sequence[KeyPart], nan: bool = True) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(st.none() | values_of(p.type, nan) if p.nullable else values_of(p.type, nan) for p in parts))


@st.composite
def tables(draw: st.DrawFn, most: int = 4) -> tuple[KeyCodec, list[tuple[Any, ...]]]:
    """A codec with random parts and some rows, of which some share their first components."""
    parts = draw(st.lists(PARTS, min_size=1, max_size=most))
    rows = draw(st.lists(row_of(parts), min_size=1, max_size=8))
    mixed = [first[:cut] + second[cut:] for first, second in itertools.pairwise(rows) for cut in range(1, len(parts))]
    return KeyCodec(parts, delimited=draw(st.booleans()), allow_nan=True), rows + mixed


def columns_of(codec: KeyCodec, rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
    return [to_arrow([row[i] for row in rows], p.type) for i, p in enumerate(codec.parts)]


# ------------------------------------------------------------------ order


@given(tables())
def test_bytes_order_as_tuples_do(table: tuple[KeyCodec, list[tuple[Any, ...]]]) -> None:
    codec, rows = table
    for left in rows:
        for right in rows:
            a, b = codec.encode(left), codec.encode(right)
            assert (a > b) - (a < b) == compare(codec.parts, left, right), (left, right)


@pytest.mark.parametrize("text", SCALARS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_each_type_orders_as_tuples_do(text: str, data: st.DataObject) -> None:
    for descending in (False, True):
        codec = KeyCodec([part(text, nullable=True, descending=descending)], allow_nan=True)
        left, right = data.draw(row_of(codec.parts)), data.draw(row_of(codec.parts))
        a, b = codec.encode(left), codec.encode(right)
        assert (a > b) - (a < b) == compare(codec.parts, left, right)


@pytest.mark.parametrize("text", SCALARS)
@pytest.mark.parametrize("descending", [False, True])
def test_each_type_orders_as_in_duckdb(text: str, descending: bool) -> None:
    sql = parse_type(text)
    connection = duckdb.connect()
    connection.execute("set arrow_lossless_conversion = true; set threads = 1; set timezone = 'UTC'")

    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.none() | values_of(sql), min_size=2, max_size=30))
    def agree(values: list[Any]) -> None:
        codec = KeyCodec([part(text, nullable=True, descending=descending)], allow_nan=True)
        column = to_arrow(values, sql)
        given_rows = pa.table({"i": range(len(values)), "v": column})
        assert given_rows.num_rows == len(values)
        order = "v desc nulls last" if descending else "v asc nulls first"
        ranked = connection.sql(f"select dense_rank() over (order by {order}) from given_rows order by i").fetchall()
        keys = codec.encode_columns([column]).to_pylist()
        positions = {key: at for at, key in enumerate(sorted(set(keys)), start=1)}
        assert [positions[key] for key in keys] == [r for (r,) in ranked]

    agree()


# ------------------------------------------------------------------ there and back


@given(tables())
def test_one_key_comes_back(table: tuple[KeyCodec, list[tuple[Any, ...]]]) -> None:
    codec, rows = table
    for row in rows:
        back = codec.decode(codec.encode(row))
        assert all(map(same, back, row)), (row, back)
        assert codec.encode(back) == codec.encode(row)


@given(tables())
def test_columns_give_the_same_bytes_as_single_keys(table: tuple[KeyCodec, list[tuple[Any, ...]]]) -> None:
    codec, rows = table
    keys = codec.encode_columns(columns_of(codec, rows))
    assert keys.type == pa.large_binary()
    assert keys.to_pylist() == [codec.encode(row) for row in rows]


@given(tables())
def test_columns_come_back(table: tuple[KeyCodec, list[tuple[Any, ...]]]) -> None:
    codec, rows = table
    keys = codec.encode_columns(columns_of(codec, rows))
    columns = codec.decode_columns(keys)
    for column, p in zip(columns, codec.parts, strict=True):
        column.validate(full=True)
        assert column.type == p.type.arrow
    expected = columns_of(codec, [codec.decode(key) for key in keys.to_pylist()])
    for column, wanted, p in zip(columns, expected, codec.parts, strict=True):
        if p.type.kind in (Kind.REAL, Kind.DOUBLE):
            assert all(map(same, column.to_pylist(), wanted.to_pylist()))
        else:
            assert column.equals(wanted)


@given(tables(), st.integers(0, 3), st.integers(0, 3))
def test_slices_and_chunks_read_as_what_they_show(
    table: tuple[KeyCodec, list[tuple[Any, ...]]], first: int, fewer: int
) -> None:
    codec, rows = table
    rows = rows * 2
    count = max(len(rows) - first - fewer, 0)
    columns = columns_of(codec, rows)
    wanted = [codec.encode(row) for row in rows[first : first + count]]
    sliced = [column.slice(first, count) for column in columns]
    assert codec.encode_columns(sliced).to_pylist() == wanted
    chunked = [pa.chunked_array([c.slice(0, first), c.slice(first)], type=c.type) for c in columns]
    keys = codec.encode_columns(chunked)
    back = codec.decode_columns(keys.slice(first, count))
    assert codec.encode_columns(back).to_pylist() == wanted


@pytest.mark.parametrize("text", SCALARS)
def test_no_rows_are_no_keys(text: str) -> None:
    codec = KeyCodec([part(text, "a"), part("VARCHAR", "b"), part(text, "c", nullable=True, descending=True)])
    columns = columns_of(codec, [])
    keys = codec.encode_columns(columns)
    assert len(keys) == 0 and keys.type == pa.large_binary()
    assert [c.type for c in codec.decode_columns(keys)] == [c.type for c in columns]
    chunked = [pa.chunked_array([], type=column.type) for column in columns]
    assert len(codec.encode_columns(chunked)) == 0


@pytest.mark.parametrize(
    ("interval", "form"),
    [
        ((0, 30, 0), (1, 0, 0)),
        ((1, -11, 0), (0, 19, 0)),
        ((0, 29, DAY_NANOS + 999), (1, 0, 0)),
        ((0, 1, -1000), (0, 0, DAY_NANOS - 1000)),
        ((0, 0, -1000), (0, 0, -1000)),
        ((-1, 0, -DAY_NANOS), (-1, -1, 0)),
        ((1, -61, 1000), (-1, 0, -DAY_NANOS + 1000)),
    ],
)
def test_intervals_of_one_length_are_one_key(interval: tuple[int, ...], form: tuple[int, ...]) -> None:
    codec = KeyCodec([part("INTERVAL")])
    key = codec.encode((pa.MonthDayNano(interval),))
    assert codec.encode((pa.MonthDayNano(form),)) == key
    assert codec.decode(key) == (pa.MonthDayNano(form),)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_longest_interval_comes_back(sign: int) -> None:
    longest = pa.MonthDayNano([sign * (2**31 - 1), sign * (2**31 - 1), sign * ((2**63 - 1) // 1000 * 1000)])
    codec = KeyCodec([part("INTERVAL")])
    (back,) = codec.decode(codec.encode((longest,)))
    assert isinstance(back, pa.MonthDayNano) and length(back) == length(longest)


def test_zero_has_one_sign_and_nan_one_form() -> None:
    codec = KeyCodec([part("DOUBLE")], allow_nan=True)
    assert codec.encode((-0.0,)) == codec.encode((0.0,))
    other = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf0\xff", "<f8")
    assert np.isnan(other[0])
    assert codec.encode((float(other[0]),)) == codec.encode((math.nan,)) > codec.encode((math.inf,))
    assert codec.encode_columns([pa.array(other)]).to_pylist() == [codec.encode((math.nan,))]


def test_a_codec_can_be_sent_to_another_process() -> None:
    codec = KeyCodec([part("VARCHAR"), part("DOUBLE")], delimited=True, allow_nan=True, where="view v")
    there = pickle.loads(pickle.dumps(codec))
    assert there.encode(("a", math.nan)) == codec.encode(("a", math.nan))
    assert (there.parts, there.delimited, there.where) == (codec.parts, True, "view v")


def test_the_bytes_on_disk_stay_what_they_are() -> None:
    parts = [part("VARCHAR", "a"), part("BIGINT", "b", nullable=True, descending=True)]
    codec = KeyCodec(parts)
    assert codec.encode(("ab", 1)).hex() == "61620000fe7ffffffffffffffe"
    assert codec.encode(("ab", None)).hex() == "61620000ff"
    assert codec.encode(("ab\0", 1)).hex() == "616200ff0000fe7ffffffffffffffe"
    assert KeyCodec([part("VARCHAR")]).encode(("a\0b",)).hex() == "610062"
    assert KeyCodec([part("VARCHAR")], delimited=True).encode(("a\0b",)).hex() == "6100ff620000"
    assert KeyCodec([part("VARCHAR", nullable=True)]).encode(("a",)).hex() == "0161"
    assert KeyCodec([part("INTEGER")]).encode((-2,)).hex() == "7ffffffe"
    assert KeyCodec([part("REAL")]).encode((-1.0,)).hex() == "407fffff"
    assert KeyCodec([part("DECIMAL(5,2)")]).encode((3,)).hex() == "800000000000012c"
    assert KeyCodec([part("DATE")]).encode((datetime.date(1970, 1, 2),)).hex() == "80000001"
    assert KeyCodec([part("UHUGEINT")]).encode((1,)).hex() == "00" * 15 + "01"


# ------------------------------------------------------------------ prefixes


@given(tables(), st.integers(0, 4))
def test_a_prefix_begins_exactly_the_keys_that_have_it(
    table: tuple[KeyCodec, list[tuple[Any, ...]]], length: int
) -> None:
    codec, rows = table
    length = min(length, len(codec.parts))
    for row in rows:
        prefix = codec.encode_prefix(row[:length])
        if length == len(codec.parts):
            assert prefix == codec.encode(row)
            continue
        after = successor(prefix)
        for other in rows:
            key = codec.encode(other)
            has_it = all(map(same, row[:length], other[:length]))
            assert key.startswith(prefix) == has_it
            assert (prefix <= key and (after is None or key < after)) == has_it


@given(st.lists(PARTS, min_size=1, max_size=3).flatmap(lambda ps: st.tuples(st.just(ps), row_of(ps), row_of(ps))))
def test_no_delimited_key_begins_another(drawn: tuple[list[KeyPart], tuple[Any, ...], tuple[Any, ...]]) -> None:
    parts, left, right = drawn
    codec = KeyCodec(parts, delimited=True, allow_nan=True)
    a, b = codec.encode(left), codec.encode(right)
    assert a == b or not (a.startswith(b) or b.startswith(a))


@given(st.binary(max_size=4) | st.lists(st.sampled_from([0, 254, 255]), max_size=4).map(bytes), st.binary(max_size=4))
def test_the_successor_is_the_least_above_all_with_the_prefix(prefix: bytes, rest: bytes) -> None:
    after = successor(prefix)
    if after is None:
        assert prefix == b"\xff" * len(prefix)
        return
    assert prefix + rest < after and prefix + b"\xff" * 9 < after
    assert not after.startswith(prefix)
    assert successor(prefix + b"\xff") == after
    below = after[:-1] + bytes([after[-1] - 1])
    assert below == prefix[: len(below)], "anything less has the prefix or orders before it"


# ------------------------------------------------------------------ refusals

NAIVE = datetime.datetime(2020, 1, 1)
AWARE = NAIVE.replace(tzinfo=datetime.UTC)
WRONG: list[tuple[str, object]] = [
    *(("BIGINT", v) for v in (True, 1.0, "1", 2**63, -(2**63) - 1, decimal.Decimal(1))),
    *((kind.value, bounds(kind)[end] + step) for kind in INTEGERS for end, step in ((0, -1), (1, 1))),
    *(("BOOLEAN", v) for v in (1, "true")),
    *(("DOUBLE", v) for v in ("1", True, math.nan, 2**53 + 1, 10**400)),
    *(("REAL", v) for v in (1e39, math.nan, 2**24 + 1)),
    *(("DECIMAL(5,2)", v) for v in (1.5, decimal.Decimal("0.001"), 1000, decimal.Decimal("NaN"), "1")),
    *(("VARCHAR", v) for v in (b"a", 1, "a\ud800")),
    *(("BLOB", v) for v in ("a", 1)),
    *(("DATE", v) for v in (NAIVE, "2020-01-01", 1)),
    *(("TIME", v) for v in (datetime.time(1, tzinfo=datetime.UTC), 1)),
    *(("TIMESTAMP", v) for v in (AWARE, datetime.date(2020, 1, 1))),
    *(("TIMESTAMPTZ", v) for v in (NAIVE, 1)),
    *(("INTERVAL", v) for v in (1, (1, 2, 3), pa.MonthDayNano([2**31, 0, 0]))),
    *(("UUID", v) for v in ("x", 1, b"0" * 16)),
    *(("JSON", v) for v in ("{", "NaN", 1)),
]


@pytest.mark.parametrize(("text", "value"), WRONG, ids=lambda v: repr(v)[:30])
@pytest.mark.parametrize("nullable", [False, True])
def test_a_wrong_value_is_refused_by_name(text: str, value: object, nullable: bool) -> None:
    codec = KeyCodec([part("BIGINT", "id"), part(text, "code", nullable=nullable)], where="table orders")
    with pytest.raises(ValueTypeError) as caught:
        codec.encode((1, value))
    assert caught.value.message.startswith("table orders, key column code cannot take ")
    assert caught.value.detail and caught.value.hint and text in caught.value.hint
    with pytest.raises(ValueTypeError):
        codec.encode_prefix((1, value))


def test_a_message_does_not_repeat_a_long_value() -> None:
    with pytest.raises(ValueTypeError) as caught:
        KeyCodec([part("BIGINT")]).encode(("x" * 100_000,))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", SCALARS)
def test_null_is_refused_where_it_is_not_allowed(text: str) -> None:
    codec = KeyCodec([part(text, "code")], where="table orders")
    with pytest.raises(MissingColumnError, match="table orders, key column code is null"):
        codec.encode((None,))
    column = to_arrow([None], codec.parts[0].type)
    with pytest.raises(MissingColumnError, match="table orders, key column code, row 0 is null"):
        codec.encode_columns([column])


def test_the_number_of_values_must_fit() -> None:
    codec = KeyCodec([part("BIGINT", "id"), part("VARCHAR", "code")], where="table orders")
    with pytest.raises(MissingColumnError, match="table orders, key column code has no value"):
        codec.encode((1,))
    with pytest.raises(MissingColumnError, match="key column id has no value"):
        codec.encode(())
    for call in (codec.encode, codec.encode_prefix):
        with pytest.raises(InputError, match="too many values"):
            call((1, "a", 2))


def test_bad_columns_are_refused_by_column_and_row() -> None:
    codec = KeyCodec([part("BIGINT", "id"), part("DOUBLE", "x")], where="table t")
    ids = pa.array([1, 2, 3])
    with pytest.raises(ValueTypeError, match="table t, key column x, row 2 cannot take nan"):
        codec.encode_columns([ids, pa.array([0.0, 1.0, math.nan])])
    with pytest.raises(MissingColumnError, match="table t, key column id, row 1 is null"):
        codec.encode_columns([pa.array([1, None, 3]), pa.array([0.0, 1.0, 2.0])])
    with pytest.raises(ValueTypeError, match="key column x cannot take a column of int64"):
        codec.encode_columns([ids, ids])
    with pytest.raises(InputError, match="key column x has 2 rows, not 3"):
        codec.encode_columns([ids, pa.array([0.0, 1.0])])
    with pytest.raises(InputError, match="1 columns for a key"):
        codec.encode_columns([ids])


def test_nan_under_a_null_is_no_nan() -> None:
    codec = KeyCodec([part("DOUBLE", nullable=True)])
    hidden = pa.Array.from_buffers(pa.float64(), 1, [pa.py_buffer(b"\x00"), pa.py_buffer(np.array([np.nan]))])
    assert codec.encode_columns([hidden]).to_pylist() == [codec.encode((None,))]


@pytest.mark.parametrize("parts", [[], [part("INTEGER[]")]])
def test_a_key_has_scalar_parts(parts: list[KeyPart]) -> None:
    with pytest.raises(DefinitionError):
        KeyCodec(parts)


def test_values_near_enough_are_taken() -> None:
    aware = datetime.datetime(2020, 1, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    for text, loose, strict in (
        ("BIGINT", np.int16(5), 5),
        ("DOUBLE", 5, 5.0),
        ("REAL", np.float32(0.1), 0.1),
        ("DECIMAL(5,2)", 5, decimal.Decimal("5.00")),
        ("BLOB", bytearray(b"a"), b"a"),
        ("TIMESTAMPTZ", aware, AWARE),
        ("UUID", "00000000-0000-0000-0000-000000000001", uuid.UUID(int=1)),
        ("BOOLEAN", np.True_, True),
        ("VARCHAR", np.str_("a"), "a"),
    ):
        codec = KeyCodec([part(text)])
        assert codec.encode((loose,)) == codec.encode((strict,))


# ------------------------------------------------------------------ damage

DAMAGED: list[tuple[KeyPart, str]] = [
    (part("BIGINT"), "80000000000000"),
    (part("BIGINT"), "800000000000000000"),
    (part("BIGINT", nullable=True), ""),
    (part("BIGINT", nullable=True), "02"),
    (part("BIGINT", nullable=True), "0000"),
    (part("BOOLEAN"), "02"),
    (part("DECIMAL(5,2)"), "ffffffffffffffff"),
    (part("DECIMAL(38,10)"), "00" * 16),
    (part("DECIMAL(38,10)"), "00" * 15 + "01"),
    (part("DECIMAL(38,10)"), "ff" * 16),
    (part("TIME"), "ffffffffffffffff"),
    (part("INTERVAL"), "8000000000000000" + "1e" + "0000000000000000"),
    (part("INTERVAL"), "8000000000000000" + "00" + "ffffffffffffffff"),
    (part("INTERVAL"), "ffffffffffffffff" + "00" + "0000000000000000"),
    (part("VARCHAR"), "ff"),
    (part("VARCHAR", descending=True), "9e"),
    (part("VARCHAR", descending=True), "9eff00"),
    (part("VARCHAR", descending=True), "9efffe9effff"),
    (part("VARCHAR", descending=True), "9effff9e"),
]


@pytest.mark.parametrize(("damaged", "data"), DAMAGED, ids=str)
def test_damage_is_refused(damaged: KeyPart, data: str) -> None:
    codec = KeyCodec([damaged], where="table t")
    with pytest.raises(DamagedEntryError, match=r"table t: the key .*cannot be decoded"):
        codec.decode(bytes.fromhex(data))
    good = codec.encode((_any_value(damaged.type),))
    with pytest.raises(DamagedEntryError, match="cannot be decoded") as caught:
        codec.decode_columns(pa.array([good, bytes.fromhex(data), good], pa.large_binary()))
    assert caught.value.detail and caught.value.detail.startswith("row 1: ")


def _any_value(sql: Type) -> object:
    return {
        Kind.BOOLEAN: True,
        Kind.VARCHAR: "a",
        Kind.TIME: datetime.time(1),
        Kind.INTERVAL: datetime.timedelta(1),
    }.get(sql.kind, 1)


def test_a_missing_key_is_damage() -> None:
    with pytest.raises(DamagedEntryError):
        KeyCodec([part("BIGINT")]).decode_columns(pa.array([None], pa.large_binary()))


@given(tables(most=3), st.data())
def test_any_damage_is_refused_or_reads_as_some_key(
    table: tuple[KeyCodec, list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    codec, rows = table
    keys = [bytearray(codec.encode(row)) for row in rows]
    hurt = data.draw(st.sampled_from(keys))
    for _ in range(data.draw(st.integers(1, 3))):
        if hurt and data.draw(st.booleans()):
            hurt[data.draw(st.integers(0, len(hurt) - 1))] = data.draw(st.integers(0, 255))
        else:
            del hurt[data.draw(st.integers(0, len(hurt))) :]
    keys_at_rest = [bytes(key) for key in keys]
    outcomes = {outcome(codec.decode, key) for key in keys_at_rest}
    assert outcomes <= {None, DamagedEntryError, ValueTypeError}
    whole = outcome(codec.decode_columns, pa.array(keys_at_rest, pa.large_binary()))
    if outcomes - {None} != {ValueTypeError}:  # one key at a time, what Python has no value for hides what follows
        assert whole is (DamagedEntryError if DamagedEntryError in outcomes else None)


def outcome(call: Callable[[Any], object], argument: object) -> type[EverviewError] | None:
    """The error that a call raises on purpose, or None."""
    try:
        call(argument)
    except EverviewError as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("DATE", pa.array([2**31 - 1], pa.int32()).cast(pa.date32())),
        ("TIMESTAMP", pa.array([2**63 - 1]).cast(pa.timestamp("us"))),
        ("TIME", pa.array([86_400_000_000]).view(pa.time64("us"))),
    ],
)
def test_what_only_arrow_can_hold_is_read_as_arrow(text: str, column: pa.Array) -> None:
    codec = KeyCodec([part(text, "day")], where="view v")
    keys = codec.encode_columns([column])
    assert codec.decode_columns(keys)[0].equals(column)
    with pytest.raises(ValueTypeError, match="view v, key column day"):
        codec.decode(keys[0].as_py())
