"""Schemas validate themselves and grow only at their end."""

import pyarrow as pa
import pytest

from everview.change import types
from everview.change.schema import ROW_ID, Column, Schema
from everview.errors import DefinitionError, UnknownColumnError

ORDERS = Schema.of(
    {"id": "BIGINT", "line": "INTEGER", "note": "VARCHAR", "n": "INTEGER"}, key=["id", "line"], not_null=["n"]
)


def test_key_columns_are_not_null_and_values_keep_their_order() -> None:
    assert [part.name for part in ORDERS.key_parts] == ["id", "line"]
    assert [column.name for column in ORDERS.values] == ["note", "n"]
    assert [column.nullable for column in ORDERS.columns] == [False, False, True, False]
    assert ORDERS.arrow.field("id") == pa.field("id", pa.int64(), nullable=False)


def test_a_schema_reads_back_from_its_plain_form() -> None:
    grown = ORDERS.add(Column("tags", types.list_of(types.VARCHAR)))
    assert Schema.from_json(grown.to_json()) == grown


def test_columns_are_added_at_the_end_under_a_new_version() -> None:
    grown = ORDERS.add(Column("a", types.DATE)).add(Column("b", types.UUID))
    assert grown.version == 3
    assert [c.name for c in grown.values_at(1)] == ["note", "n"]
    assert [c.name for c in grown.values_at(2)] == ["note", "n", "a"]
    assert [c.name for c in grown.values_at(3)] == ["note", "n", "a", "b"]
    with pytest.raises(DefinitionError, match="NOT NULL"):
        ORDERS.add(Column("c", types.DATE, nullable=False))


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ({}, []),
        ({"a": "INTEGER"}, ["a", "a"]),
        ({"a": "INTEGER", "A": "INTEGER"}, ["a"]),
        ({"a": "INTEGER[]"}, ["a"]),
        ({"a": "MAP(INTEGER, INTEGER)"}, ["a"]),
        ({"__a": "INTEGER"}, ["__a"]),
        ({"__row": "UUID"}, ["__row"]),
        ({"__row": "UUID", "a": "INTEGER"}, []),
        ({"": "INTEGER"}, [""]),
    ],
)
def test_what_is_no_schema_is_refused(columns: dict[str, str], key: list[str]) -> None:
    with pytest.raises(DefinitionError):
        Schema.of(columns, key)


def test_key_columns_cannot_be_nullable_or_late() -> None:
    with pytest.raises(DefinitionError, match="NOT NULL"):
        Schema((Column("a", types.INTEGER),), ("a",))
    with pytest.raises(DefinitionError, match="later"):
        Schema((Column("a", types.INTEGER, nullable=False, since=2),), ("a",), 2)


def test_unknown_columns_are_named_with_those_that_exist() -> None:
    with pytest.raises(UnknownColumnError) as caught:
        ORDERS.column("nope")
    assert "nope" in caught.value.message
    assert "note" in (caught.value.hint or "")
    with pytest.raises(UnknownColumnError):
        Schema.of({"a": "INTEGER"}, key=["b"])


def test_without_a_key_a_schema_has_a_hidden_one() -> None:
    visits = Schema.of({"page": "VARCHAR", "n": "INTEGER"}, not_null=["n"])
    assert visits.hidden_key and visits.key == (ROW_ID,)
    assert [column.name for column in visits.shown] == ["page", "n"]
    assert visits.values == visits.shown
    grown = visits.add(Column("at", types.TIMESTAMP))
    assert Schema.from_json(grown.to_json()) == grown
    assert [column.name for column in grown.shown] == ["page", "n", "at"]
    with pytest.raises(UnknownColumnError) as caught:
        visits.column("nope")
    assert ROW_ID not in (caught.value.hint or "")


def test_only_the_row_id_is_hidden_and_it_is_the_whole_key() -> None:
    with pytest.raises(DefinitionError, match="cannot be hidden"):
        Column("a", types.INTEGER, hidden=True)
    row = Column(ROW_ID, types.UUID, nullable=False, hidden=True)
    with pytest.raises(DefinitionError, match="whole key"):
        Schema((row, Column("a", types.INTEGER, nullable=False)), ("a",))
