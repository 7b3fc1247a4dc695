"""Bad input is refused before anything is written, with an error that says where it stands."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable

import pyarrow as pa
import pytest

from everview.change.schema import Schema
from everview.errors import (
    InputError,
    KeyTooLongError,
    MissingColumnError,
    UnknownColumnError,
    ValueTypeError,
)
from everview.store.contract import BaseTable, Row, Store, Table
from tests.adapters.guarantees import needs
from tests.adapters.under_test import define

READINGS = Schema.of(
    {
        "sensor": "VARCHAR",
        "at": "DOUBLE",
        "level": "TINYINT",
        "name": "VARCHAR",
        "price": "DECIMAL(5,2)",
        "seen": "TIMESTAMP",
        "tags": "INTEGER[]",
    },
    key=["sensor", "at"],
    not_null=["name"],
)
GOOD: Row = {"sensor": "s1", "at": 1.5, "name": "good"}

BAD_ROWS: dict[str, tuple[Row, type[InputError], str | None]] = {
    "text for a number": (GOOD | {"level": "7"}, ValueTypeError, "level"),
    "a number for text": (GOOD | {"name": 7}, ValueTypeError, "name"),
    "a truth value for a number": (GOOD | {"level": True}, ValueTypeError, "level"),
    "a fraction for an integer": (GOOD | {"level": 1.5}, ValueTypeError, "level"),
    "an integer out of range": (GOOD | {"level": 128}, ValueTypeError, "level"),
    "a decimal with too many digits": (GOOD | {"price": decimal.Decimal("1000.00")}, ValueTypeError, "price"),
    "a decimal that would be rounded": (GOOD | {"price": decimal.Decimal("1.005")}, ValueTypeError, "price"),
    "a date for a timestamp": (GOOD | {"seen": datetime.date(2024, 1, 1)}, ValueTypeError, "seen"),
    "a timestamp with a zone it must not have": (
        GOOD | {"seen": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)},
        ValueTypeError,
        "seen",
    ),
    "an item of the wrong type": (GOOD | {"tags": [1, "2"]}, ValueTypeError, "tags"),
    "text that is not UTF-8": (GOOD | {"name": "\ud800"}, ValueTypeError, "name"),
    "key text that is not UTF-8": (GOOD | {"sensor": "\udfff"}, ValueTypeError, "sensor"),
    "a key of the wrong type": (GOOD | {"sensor": 5}, ValueTypeError, "sensor"),
    "NaN in a key": (GOOD | {"at": float("nan")}, ValueTypeError, "at"),
    "null in a key": (GOOD | {"at": None}, MissingColumnError, "at"),
    "no key column": ({"sensor": "s1", "name": "x"}, MissingColumnError, "at"),
    "null where it must not be": (GOOD | {"name": None}, MissingColumnError, "name"),
    "a new row without a column it must have": ({"sensor": "new", "at": 1.0}, MissingColumnError, "name"),
    "an unknown column": (GOOD | {"nmae": "x"}, UnknownColumnError, "nmae"),
    "a key that is too long": (GOOD | {"sensor": "s" * 5000}, KeyTooLongError, None),
}


@pytest.fixture
def table(store: Store) -> Table:
    table = define(store, "readings", READINGS)
    store.table(table).put(GOOD)
    return table


def assert_refused(store: Store, table: Table, error: type[InputError], call: Callable[[], object]) -> InputError:
    """The call fails, and rows, count and logs are as they were."""
    base = store.table(table)
    rows = [batch.to_pylist() for batch in base.scan()]
    count, end = base.count(), store.log.latest()
    with pytest.raises(error) as caught:
        call()
    assert [batch.to_pylist() for batch in base.scan()] == rows
    assert (base.count(), store.log.latest()) == (count, end)
    assert "readings" in str(caught.value)
    assert not caught.value.retryable
    return caught.value


def by_put(base: BaseTable, row: Row) -> None:
    base.put(row)


def by_put_many(base: BaseTable, row: Row) -> None:
    base.put_many([{"sensor": "s0", "at": 0.0, "name": "before"}, row])


@pytest.mark.parametrize("put", [by_put, by_put_many])
@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_refused(store: Store, table: Table, case: str, put: Callable[[BaseTable, Row], object]) -> None:
    row, error, column = BAD_ROWS[case]
    raised = assert_refused(store, table, error, lambda: put(store.table(table), row))
    if column is not None:
        assert column in str(raised)


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_takes_its_batch_with_it(store: Store, table: Table, case: str) -> None:
    needs(store, "atomic_batches")
    row, error, _ = BAD_ROWS[case]

    def batch() -> None:
        with store.batch() as batch:
            batch.table(table).put({"sensor": "s0", "at": 0.0, "name": "before"})
            batch.table(table).delete("s1", 1.5)
            batch.table(table).put(row)

    assert_refused(store, table, error, batch)


@pytest.mark.parametrize("case", ["an integer out of range", "null where it must not be", "a key that is too long"])
def test_the_error_names_the_key(store: Store, table: Table, case: str) -> None:
    row, error, _ = BAD_ROWS[case]
    for put in by_put, by_put_many:
        raised = assert_refused(store, table, error, lambda put=put: put(store.table(table), row))  # type: ignore[misc]
        assert str(row["sensor"])[:10] in str(raised)


BAD_COLUMNS: dict[str, tuple[dict[str, pa.Array], type[InputError], str]] = {
    "a column of another type": ({"level": pa.array(["a", "b"])}, ValueTypeError, "level"),
    "a number out of range": ({"level": pa.array([1, 300], pa.int64())}, ValueTypeError, "level"),
    "a fraction": ({"level": pa.array([1.0, 1.5])}, ValueTypeError, "level"),
    "NaN in a key": ({"at": pa.array([1.0, float("nan")])}, ValueTypeError, "at"),
    "null in a key": ({"at": pa.array([1.0, None])}, MissingColumnError, "at"),
    "null where it must not be": ({"name": pa.array(["a", None])}, MissingColumnError, "name"),
    "an unknown column": ({"nmae": pa.array(["a", "b"])}, UnknownColumnError, "nmae"),
    "text that is not UTF-8": (
        {"name": pa.array([b"a", b"\xff\xfe"]).view(pa.string())},
        ValueTypeError,
        "name",
    ),
    "a key that is too long": ({"sensor": pa.array(["s", "s" * 5000])}, KeyTooLongError, ""),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_bad_columns_are_refused(store: Store, table: Table, case: str) -> None:
    columns, error, column = BAD_COLUMNS[case]
    good = {"sensor": pa.array(["s1", "s2"]), "at": pa.array([1.5, 2.5]), "name": pa.array(["x", "y"])}
    raised = assert_refused(store, table, error, lambda: store.table(table).put_many(pa.table(good | columns)))
    assert column in str(raised)


def test_columns_without_the_key_are_refused(store: Store, table: Table) -> None:
    columns = pa.table({"sensor": ["s1"], "name": ["x"]})
    assert_refused(store, table, MissingColumnError, lambda: store.table(table).put_many(columns))


BAD_KEYS: dict[str, tuple[tuple[object, ...], type[InputError]]] = {
    "too few parts": (("s1",), InputError),
    "too many parts": (("s1", 1.5, 2), InputError),
    "wrong type": ((1, 1.5), ValueTypeError),
    "NaN": (("s1", float("nan")), ValueTypeError),
    "null": (("s1", None), MissingColumnError),
    "not UTF-8": (("\ud800", 1.5), ValueTypeError),
}


@pytest.mark.parametrize("case", BAD_KEYS)
def test_a_bad_key_is_refused(store: Store, table: Table, case: str) -> None:
    key, error = BAD_KEYS[case]
    base = store.table(table)
    assert_refused(store, table, error, lambda: base.get(*key))
    assert_refused(store, table, error, lambda: base.delete(*key))
    assert_refused(store, table, error, lambda: base.delete_many([("s1", 1.5), key]))
    assert_refused(store, table, error, lambda: base.get_many([("s1", 1.5), key]))
