"""What users hand over is taken in one form, or refused with the table, the key and the column."""

from __future__ import annotations

import collections
import datetime
import decimal
import types
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.schema import Schema
from everview.errors import InputError, MissingColumnError, UnknownColumnError, ValueTypeError
from everview.store.contract import Table
from everview.store.encoding.columns import to_python
from everview.store.encoding.keys import KeyCodec
from everview.store.intake import Incoming, Intake
from tests.store.row_values import one_row, patient, same, schemas

READINGS = Schema.of(
    {
        "sensor": "VARCHAR",
        "level": "TINYINT",
        "at": "DOUBLE",
        "name": "VARCHAR",
        "price": "DECIMAL(5,2)",
        "seen": "TIMESTAMP",
        "tags": "INTEGER[]",
        "extra": "JSON",
    },
    key=["sensor", "at"],
    not_null=["name"],
)
ORDERS = Schema.of({"id": "BIGINT", "amount": "DOUBLE", "note": "VARCHAR"}, key=["id"])
TAGS = Schema.of({"name": "VARCHAR"}, key=["name"])


def intake(schema: Schema, name: str = "readings") -> Intake:
    return Intake(Table(1, name, schema), KeyCodec(schema.key_parts, where=f"table {name}"))


def shown(schema: Schema, incoming: Incoming) -> dict[str, Any]:
    """Columns, and who names them, as plain lists."""
    keys = {n: to_python(c, schema.column(n).type) for n, c in zip(schema.key, incoming.keys, strict=True)}
    values = {c.name: to_python(a, c.type) for c, a in zip(schema.values, incoming.values, strict=True)}
    named = [given if isinstance(given, bool) else given.tolist() for given in incoming.given]
    for column, array in zip(schema.values, incoming.values, strict=True):
        assert array.type == column.type.arrow
        assert len(array) == len(incoming)
    return {"keys": keys, "values": values, "given": named}


# ------------------------------------------------------------------ what is taken


def test_a_row_is_split_into_key_and_canonical_values() -> None:
    row = {"at": 1, "tags": (1, None), "price": 3, "sensor": "s", "level": np.int64(5), "extra": None}
    key, given = intake(READINGS).row(row)
    assert same(key, ("s", 1.0))
    assert same(given, {"tags": [1, None], "price": decimal.Decimal("3.00"), "level": 5, "extra": None})


def test_any_mapping_is_a_row_and_names_only_what_it_holds() -> None:
    orders = intake(ORDERS)
    row: dict[str, object] = collections.defaultdict(float, {"id": 1})
    assert orders.row(row) == ((1,), {})
    assert orders.row(types.MappingProxyType({"id": 1, "note": "x"})) == ((1,), {"note": "x"})
    assert shown(ORDERS, orders.many([row]))["given"] == [False, False]
    assert dict(row) == {"id": 1}


def test_rows_may_name_different_columns() -> None:
    incoming = intake(ORDERS).many([{"id": 1, "amount": 2}, {"note": None, "id": 2}])
    assert shown(ORDERS, incoming) == {
        "keys": {"id": [1, 2]},
        "values": {"amount": [2.0, None], "note": [None, None]},
        "given": [[True, False], [False, True]],
    }


def test_columns_come_in_any_order_and_any_number() -> None:
    table = pa.table({"note": pa.array(["x", None], pa.large_string()), "id": pa.array([1, 2], pa.int8())})
    expected = {
        "keys": {"id": [1, 2]},
        "values": {"amount": [None, None], "note": ["x", None]},
        "given": [False, True],
    }
    orders = intake(ORDERS)
    assert shown(ORDERS, orders.many(table)) == expected
    assert shown(ORDERS, orders.many(table.to_batches()[0])) == expected
    assert shown(ORDERS, orders.many(table.to_reader())) == expected
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1, 1)])
    assert shown(ORDERS, orders.many(chunked)) == expected


@pytest.mark.parametrize("nothing", [[], pa.table({"id": pa.array([], pa.int64())}), ORDERS.arrow.empty_table()])
def test_no_rows_are_rows_too(nothing: Any) -> None:
    incoming = intake(ORDERS).many(nothing)
    assert len(incoming) == 0
    assert [column.type for column in incoming.values] == [pa.float64(), pa.string()]


def test_a_table_may_have_key_columns_only() -> None:
    incoming = intake(TAGS).many([{"name": "a"}, {"name": "b"}])
    assert len(incoming) == 2
    assert incoming.values == []


@patient
@given(
    schemas(max_columns=5, depth=1).flatmap(lambda s: st.tuples(st.just(s), st.lists(one_row(s), max_size=4))),
    st.data(),
)
def test_many_rows_give_what_each_gives(case: tuple[Schema, list[list[Any]]], data: st.DataObject) -> None:
    schema, content = case
    names = [column.name for column in schema.values]
    rows: list[dict[str, Any]] = []
    for i, row in enumerate(content):
        on = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
        rows.append({"id": i} | {n: v for n, v, named in zip(names, row, on, strict=True) if named})
    take = intake(schema)
    one_by_one = [take.row(row) for row in rows]
    incoming = take.many(rows)
    assert incoming.keys[0].to_pylist() == [key[0] for key, _ in one_by_one]
    for column, array, given_by in zip(schema.values, incoming.values, incoming.given, strict=True):
        expected = [given.get(column.name) for _, given in one_by_one]
        assert same(to_python(array, column.type), expected)
        named = [column.name in given for _, given in one_by_one]
        assert np.broadcast_to(given_by, len(rows)).tolist() == named


# ------------------------------------------------------------------ what is refused

GOOD = {"sensor": "s1", "at": 1.5, "name": "good"}

BAD_ROWS: dict[str, tuple[Any, type[InputError], str]] = {
    "text for a number": (GOOD | {"level": "7"}, ValueTypeError, "column level cannot take '7'"),
    "a number for text": (GOOD | {"name": 7}, ValueTypeError, "column name cannot take 7"),
    "a truth value for a number": (GOOD | {"level": True}, ValueTypeError, "column level cannot take True"),
    "a fraction for an integer": (GOOD | {"level": 1.5}, ValueTypeError, "column level cannot take 1.5"),
    "an integer out of range": (GOOD | {"level": 128}, ValueTypeError, "column level cannot take 128"),
    "a decimal with too many digits": (GOOD | {"price": decimal.Decimal(1000)}, ValueTypeError, "column price"),
    "a decimal that would be rounded": (GOOD | {"price": decimal.Decimal("1.005")}, ValueTypeError, "column price"),
    "a date for a timestamp": (GOOD | {"seen": datetime.date(2024, 1, 1)}, ValueTypeError, "column seen"),
    "an item of the wrong type": (GOOD | {"tags": [1, "2"]}, ValueTypeError, "column tags"),
    "text that is not UTF-8": (GOOD | {"name": "\ud800"}, ValueTypeError, "column name"),
    "text that is not JSON": (GOOD | {"extra": "{"}, ValueTypeError, "column extra cannot take '{'"),
    "null where it must not be": (GOOD | {"name": None}, MissingColumnError, "column name is null"),
    "key text that is not UTF-8": (GOOD | {"sensor": "\udfff"}, ValueTypeError, "key column sensor"),
    "a key of the wrong type": (GOOD | {"sensor": 5}, ValueTypeError, "key column sensor cannot take 5"),
    "NaN in a key": (GOOD | {"at": float("nan")}, ValueTypeError, "key column at cannot take nan"),
    "null in a key": (GOOD | {"at": None}, MissingColumnError, "key column at is null"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_refused_alone_and_among_others_alike(case: str) -> None:
    row, error, said = BAD_ROWS[case]
    take = intake(READINGS)
    with pytest.raises(error) as alone:
        take.row(row)
    with pytest.raises(error) as among:
        take.many([GOOD, row, GOOD])
    assert str(alone.value) == str(among.value)
    place = f"table readings, key ({row['sensor']!r}, {row['at']!r}): "
    assert alone.value.message.startswith(place + said)
    assert alone.value.detail and alone.value.hint


def test_an_unknown_column_gets_the_nearest_name() -> None:
    take = intake(READINGS)
    for bad in (GOOD | {"nmae": "x"}, GOOD | {"nmae": None}):
        for refused in (lambda bad=bad: take.row(bad), lambda bad=bad: take.many([GOOD, bad])):
            with pytest.raises(UnknownColumnError, match="table readings has no column nmae") as caught:
                refused()
            assert caught.value.hint == "did you mean name?"
    with pytest.raises(UnknownColumnError) as caught:
        take.many(pa.table({"sensor": ["s"], "at": [1.0], "zzzzzz": [1]}))
    assert str(caught.value.hint).startswith("the columns are sensor, level, at")


def test_a_row_without_a_key_column_is_refused() -> None:
    take = intake(READINGS)
    for refused in (
        lambda: take.row({"sensor": "s"}),
        lambda: take.many([GOOD, {"sensor": "s"}]),
        lambda: take.many(pa.table({"sensor": ["s"]})),
        lambda: take.keys([{"sensor": "s"}]),
        lambda: take.keys(pa.table({"sensor": ["s"]})),
    ):
        with pytest.raises(MissingColumnError, match="table readings: key column at has no value"):
            refused()


@pytest.mark.parametrize("row", [None, 5, "row", ["sensor"], ("s", 1.0)])
def test_what_is_no_mapping_is_no_row(row: Any) -> None:
    take = intake(READINGS)
    with pytest.raises(InputError, match=r"table readings cannot take .* as a row"):
        take.row(row)
    with pytest.raises(InputError, match=r"table readings cannot take .* as a row"):
        take.many([GOOD, row])


@pytest.mark.parametrize("rows", [None, 5, "rows", GOOD, pa.scalar(1)])
def test_what_is_no_list_is_no_rows(rows: Any) -> None:
    with pytest.raises(InputError, match=r"table readings cannot take .* as rows"):
        intake(READINGS).many(rows)


BAD_COLUMNS: dict[str, tuple[str, pa.Array, type[InputError], str]] = {
    "another type": ("level", pa.array(["a", "b"]), ValueTypeError, ": column level cannot take a column of string"),
    "out of range": ("level", pa.array([1, 300]), ValueTypeError, ", key ('s2', 2.5): column level cannot take 300"),
    "a fraction": ("level", pa.array([1.0, 1.5]), ValueTypeError, ", key ('s2', 2.5): column level cannot take 1.5"),
    "not JSON": ("extra", pa.array(["1", "{"]), ValueTypeError, ", key ('s2', 2.5): column extra cannot take '{'"),
    "not UTF-8": (
        "name",
        pa.array([b"a", b"\xff"]).view(pa.string()),
        ValueTypeError,
        r", key ('s2', 2.5): column name cannot take b'\xff'",
    ),
    "null": ("name", pa.array(["a", None]), MissingColumnError, ", key ('s2', 2.5): column name is null"),
    "all null": ("name", pa.nulls(2), MissingColumnError, ", key ('s1', 1.5): column name is null"),
    "NaN in a key": (
        "at",
        pa.array([1.5, float("nan")]),
        ValueTypeError,
        ", key ('s2', nan): key column at cannot take nan",
    ),
    "null in a key": ("at", pa.array([1.5, None]), MissingColumnError, ", row 1: key column at is null"),
    "a key of another type": (
        "at",
        pa.array(["a", "b"]),
        ValueTypeError,
        ": key column at cannot take a column of string",
    ),
    "a key that is not exact": (
        "at",
        pa.array([1, (1 << 60) + 1]),
        ValueTypeError,
        ", row 1: key column at cannot take 1152921504606846977",
    ),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_a_bad_column_is_refused(case: str) -> None:
    name, array, error, said = BAD_COLUMNS[case]
    good = {"sensor": pa.array(["s1", "s2"]), "at": pa.array([1.5, 2.5]), "name": pa.array(["x", "y"])}
    with pytest.raises(error) as caught:
        intake(READINGS).many(pa.table(good | {name: array}))
    assert caught.value.message == f"table readings{said}"
    assert caught.value.detail and caught.value.hint


def test_a_column_that_stands_there_twice_is_refused() -> None:
    twice = pa.table([pa.array([1]), pa.array([1.0]), pa.array([2.0])], names=["id", "amount", "amount"])
    with pytest.raises(InputError, match="table orders: column amount stands there twice"):
        intake(ORDERS, "orders").many(twice)


# ------------------------------------------------------------------ keys


@pytest.mark.parametrize(
    "keys",
    [
        [1, 2],
        (1, 2),
        range(1, 3),
        [(1,), (2,)],
        [1, (2,)],
        [{"id": 1}, {"id": 2, "amount": 5.0}],
        [np.int64(1), 2],
        pa.array([1, 2], pa.int8()),
        pa.chunked_array([[1], [2]]),
        pa.table({"id": [1, 2], "note": ["a", "b"]}),
        pa.record_batch({"id": pa.array([1, 2])}),
    ],
    ids=lambda keys: type(keys).__name__,
)
def test_keys_come_in_many_forms(keys: Any) -> None:
    (column,) = intake(ORDERS).keys(keys)
    assert column.type == pa.int64()
    assert column.to_pylist() == [1, 2]


def test_composite_keys_are_tuples_or_name_their_columns() -> None:
    take = intake(READINGS)
    for keys in ([("a", 1), ("b", 2.5)], [["a", 1], {"at": 2.5, "sensor": "b"}]):
        assert [column.to_pylist() for column in take.keys(keys)] == [["a", "b"], [1.0, 2.5]]
    table = pa.table({"at": [1, 2], "sensor": ["a", "b"]})
    assert [column.to_pylist() for column in take.keys(table)] == [["a", "b"], [1.0, 2.0]]
    assert [len(column) for column in take.keys([])] == [0, 0]


def test_a_text_key_may_be_a_uuid() -> None:
    schema = Schema.of({"id": "UUID"}, key=["id"])
    named = uuid.uuid4()
    assert intake(schema).keys([named, str(named)])[0].to_pylist() == [named, named]


@pytest.mark.parametrize(
    ("key", "error", "said"),
    [
        (("s1",), InputError, "cannot take ('s1',) as a key"),
        (("s1", 1.5, 2), InputError, "cannot take ('s1', 1.5, 2) as a key"),
        ("s1", InputError, "cannot take 's1' as a key"),
        ((1, 1.5), ValueTypeError, ", key (1, 1.5): key column sensor cannot take 1"),
        (("s1", float("nan")), ValueTypeError, ", key ('s1', nan): key column at cannot take nan"),
        (("s1", None), MissingColumnError, ", key ('s1', None): key column at is null"),
        (("\ud800", 1.5), ValueTypeError, r", key ('\ud800', 1.5): key column sensor cannot take '\ud800'"),
        ({"sensor": "s1", "when": 1}, UnknownColumnError, "has no column when"),
    ],
)
def test_a_bad_key_is_refused(key: Any, error: type[InputError], said: str) -> None:
    with pytest.raises(error) as caught:
        intake(READINGS).keys([("s1", 1.5), key])
    assert caught.value.message.startswith("table readings")
    assert said in caught.value.message


@pytest.mark.parametrize("keys", [None, 5, "keys", {"id": 1}])
def test_what_is_no_list_is_no_keys(keys: Any) -> None:
    with pytest.raises(InputError, match=r"table readings cannot take .* as keys"):
        intake(ORDERS).keys(keys)


def test_bad_key_columns_are_refused() -> None:
    take = intake(READINGS)
    with pytest.raises(UnknownColumnError):
        take.keys(pa.table({"sensor": ["a"], "at": [1.0], "more": [1]}))
    with pytest.raises(MissingColumnError, match="row 1: key column at is null"):
        take.keys(pa.table({"sensor": ["a", "b"], "at": [1.0, None]}))
    with pytest.raises(ValueTypeError, match="key column at cannot take nan"):
        take.keys(pa.table({"sensor": ["a", "b"], "at": [1.0, float("nan")]}))
