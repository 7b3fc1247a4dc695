"""The row format: two encoders that agree, older versions, patches, and damage that is refused."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.change.schema import Column, Schema
from everview.change.types import NESTED, Kind, parse_type
from everview.errors import DamagedEntryError, DefinitionError, UnknownColumnError, ValueTypeError
from everview.store.encoding.columns import to_python
from everview.store.encoding.rows import RowCodec
from tests.store.row_values import SCALARS, columns_of, patient, rows, rows_of, same, schemas, types, values

Table = tuple[Schema, list[list[Any]]]
tables = schemas().flatmap(lambda schema: st.tuples(st.just(schema), rows(schema)))
flat_tables = schemas(depth=1).flatmap(lambda schema: st.tuples(st.just(schema), rows(schema)))

ORDERS = Schema.of({"amount": "DOUBLE", "id": "BIGINT", "name": "VARCHAR", "note": "VARCHAR"}, key=["id"])


def stored(rows: Sequence[bytes | None]) -> pa.LargeBinaryArray:
    return pa.array(rows, pa.large_binary())


# ------------------------------------------------------------------ round trips


def test_the_format_is_the_one_described() -> None:
    data = RowCodec(ORDERS).encode([1.5, "Ann", None])
    assert data.hex(" ") == "01 00 04 00 00 00 00 00 00 f8 3f 03 00 00 00 03 00 00 00 41 6e 6e"


@patient
@given(tables)
def test_both_encoders_write_the_same_bytes_and_both_decoders_read_them(case: Table) -> None:
    schema, content = case
    codec = RowCodec(schema)
    one_by_one = [codec.encode(row) for row in content]
    at_once = codec.encode_columns(columns_of(schema, content), len(content))
    at_once.validate(full=True)
    assert at_once.to_pylist() == one_by_one
    assert same([codec.decode(row) for row in one_by_one], content)
    assert same(rows_of(schema, codec.decode_columns(at_once), len(content)), content)


@patient
@given(tables, st.integers(0, 4), st.integers(0, 4))
def test_slices_encode_and_decode_like_whole_columns(case: Table, start: int, length: int) -> None:
    schema, content = case
    codec = RowCodec(schema)
    part = content[start : start + length]
    columns = [column.slice(start, length) for column in columns_of(schema, content)]
    assert codec.encode_columns(columns, len(part)).to_pylist() == [codec.encode(row) for row in part]
    whole = codec.encode_columns(columns_of(schema, content), len(content))
    assert same(rows_of(schema, codec.decode_columns(whole.slice(start, length)), len(part)), part)


@patient
@given(tables, st.data())
def test_null_rows_decode_as_rows_of_nulls(case: Table, data: st.DataObject) -> None:
    schema, content = case
    codec = RowCodec(schema)
    present = data.draw(st.lists(st.booleans(), min_size=len(content), max_size=len(content)))
    encoded = stored([codec.encode(row) if there else None for row, there in zip(content, present, strict=True)])
    expected = [row if there else [None] * len(row) for row, there in zip(content, present, strict=True)]
    assert same(rows_of(schema, codec.decode_columns(encoded), len(content)), expected)


@patient
@given(tables, st.data())
def test_only_the_wanted_columns_are_decoded(case: Table, data: st.DataObject) -> None:
    schema, content = case
    codec = RowCodec(schema)
    encoded = codec.encode_columns(columns_of(schema, content), len(content))
    wanted = data.draw(st.permutations(codec.names).map(lambda names: names[: len(names) // 2]))
    every = dict(zip(codec.names, codec.decode_columns(encoded), strict=True))
    chosen = codec.decode_columns(encoded, wanted)
    for name, array in zip(wanted, chosen, strict=True):
        sql = schema.column(name).type
        assert same(to_python(array, sql), to_python(every[name], sql))


def test_a_wanted_column_must_be_a_value_column() -> None:
    codec = RowCodec(ORDERS, "table orders")
    with pytest.raises(UnknownColumnError, match="nothing"):
        codec.decode_columns(stored([]), ["nothing"])
    with pytest.raises(DefinitionError, match="table orders: column id is part of the key"):
        codec.decode_columns(stored([]), ["id"])


@patient
@given(tables, st.integers())
def test_a_decoded_row_has_all_columns_in_table_order(case: Table, key: int) -> None:
    schema, content = case
    codec = RowCodec(schema)
    for row in content:
        found = codec.decode_row((key,), codec.encode(row))
        assert tuple(found) == schema.names
        assert found.pop("id") == key
        assert same(list(found.values()), row)


def test_composite_keys_are_taken_in_key_order() -> None:
    schema = Schema.of({"b": "INTEGER", "x": "INTEGER", "a": "VARCHAR"}, key=["a", "b"])
    codec = RowCodec(schema)
    for x in (7, None):
        assert codec.decode_row(("k", 1), codec.encode([x])) == {"b": 1, "x": x, "a": "k"}


def test_a_table_of_key_columns_only_has_rows_too() -> None:
    codec = RowCodec(Schema.of({"id": "BIGINT"}, key=["id"]))
    assert codec.encode([]) == b"\x01\x00"
    assert codec.encode_columns([], 2).to_pylist() == [b"\x01\x00"] * 2
    assert codec.decode_columns(codec.encode_columns([], 2)) == []
    assert codec.decode_row((5,), b"\x01\x00") == {"id": 5}
    with pytest.raises(DamagedEntryError):
        codec.decode_row((5,), b"\x01\x00\x00")


def test_values_under_nulls_do_not_reach_the_bytes() -> None:
    codec = RowCodec(Schema.of({"id": "BIGINT", "n": "INTEGER", "s": "VARCHAR", "l": "INTEGER[]"}, key=["id"]))
    hidden = pa.array([5, 6], pa.int32()), pa.array(["xx", "yy"]), pa.array([[1], [2, 3]], pa.list_(pa.int32()))
    validity = pa.py_buffer(b"\x02")
    masked = [
        pa.Array.from_buffers(hidden[0].type, 2, [validity, hidden[0].buffers()[1]]),
        pa.Array.from_buffers(hidden[1].type, 2, [validity, *hidden[1].buffers()[1:]]),
        pa.Array.from_buffers(
            parse_type("INTEGER[]").arrow, 2, [validity, hidden[2].buffers()[1]], children=[hidden[2].values]
        ),
    ]
    assert codec.encode_columns(masked).to_pylist() == [codec.encode([None] * 3), codec.encode([6, "yy", [2, 3]])]


# ------------------------------------------------------------------ versions


@patient
@given(tables, st.data())
def test_rows_of_older_versions_read_with_nulls_at_the_end(case: Table, data: st.DataObject) -> None:
    schema, content = case
    codecs, written, expected = [RowCodec(schema)], [], []
    for number, sql in enumerate(data.draw(st.lists(types(1), max_size=3))):
        schema = schema.add(Column(f"added{number}", sql))
        codecs.append(RowCodec(schema))
    for row in content:
        codec = data.draw(st.sampled_from(codecs))
        added = [data.draw(st.none() | values(c.type)) for c in codec.schema.values[len(row) :]]
        written.append(codec.encode(row + added))
        expected.append(row + added + [None] * (len(schema.values) - len(row) - len(added)))
    newest = codecs[-1]
    assert same([newest.decode(row) for row in written], expected)
    assert same(rows_of(schema, newest.decode_columns(stored(written)), len(content)), expected)


def test_a_row_of_a_newer_version_asks_to_open_the_table_again() -> None:
    newer = RowCodec(ORDERS.add(Column("more", parse_type("INTEGER")))).encode([1.0, "a", "b", 4])
    codec = RowCodec(ORDERS, "table orders")
    for attempt in (
        lambda: codec.decode_row((1,), newer),
        lambda: codec.decode(newer),
        lambda: codec.decode_columns(stored([newer])),
        lambda: codec.decode_patch(newer),
    ):
        with pytest.raises(DefinitionError, match="table orders") as caught:
            attempt()
        assert caught.value.hint == "open the table again"


# ------------------------------------------------------------------ patches


def test_applying_a_put_keeps_what_it_does_not_name() -> None:
    codec = RowCodec(ORDERS)
    whole = codec.encode([1.5, "Ann", None])
    assert codec.decode(codec.apply(whole, {"note": "new"})) == [1.5, "Ann", "new"]
    assert codec.decode(codec.apply(whole, {"amount": None, "name": "Bob"})) == [None, "Bob", None]
    assert codec.apply(whole, {}) == whole
    assert codec.decode(codec.apply(None, {"name": "Bob"})) == [None, "Bob", None]


def test_applying_a_put_brings_an_old_row_to_the_newest_version() -> None:
    codec = RowCodec(ORDERS.add(Column("more", parse_type("INTEGER"))))
    old = RowCodec(ORDERS).encode([1.5, "Ann", "x"])
    assert codec.apply(old, {"more": 3}) == codec.encode([1.5, "Ann", "x", 3])


@patient
@given(flat_tables, st.data())
def test_patches_carry_which_columns_are_named(case: Table, data: st.DataObject) -> None:
    schema, content = case
    codec = RowCodec(schema)
    count, width = len(content), len(schema.values)
    named = [data.draw(st.lists(st.booleans(), min_size=width, max_size=width)) for _ in content]
    content = [
        [v if on else None for v, on in zip(row, on_row, strict=True)]
        for row, on_row in zip(content, named, strict=True)
    ]
    masks = [np.array([row[i] for row in named], np.bool_) for i in range(width)]
    one_by_one = [
        codec.encode_patch({name: v for name, v, on in zip(codec.names, row, on_row, strict=True) if on})
        for row, on_row in zip(content, named, strict=True)
    ]
    at_once = codec.encode_patch_columns(columns_of(schema, content), masks, count)
    assert at_once.to_pylist() == one_by_one
    columns, found = codec.decode_patch_columns(at_once)
    assert same(rows_of(schema, columns, count), content)
    assert [mask.tolist() for mask in found] == [mask.tolist() for mask in masks]
    for row, on_row, patch in zip(content, named, one_by_one, strict=True):
        expected = {name: v for name, v, on in zip(codec.names, row, on_row, strict=True) if on}
        assert same(codec.decode_patch(patch), expected)


def test_patches_of_older_versions_do_not_name_newer_columns() -> None:
    old = RowCodec(ORDERS)
    codec = RowCodec(ORDERS.add(Column("more", parse_type("INTEGER"))))
    patches = stored([old.encode_patch({"name": None}), None, codec.encode_patch({"more": 3})])
    columns, masks = codec.decode_patch_columns(patches)
    assert [c.to_pylist() for c in columns] == [[None] * 3, [None] * 3, [None] * 3, [None, None, 3]]
    assert [m.tolist() for m in masks] == [[False] * 3, [True, False, False], [False] * 3, [False, False, True]]
    assert codec.decode_patch(patches[0].as_py()) == {"name": None}


def test_one_answer_for_all_rows_does_for_a_mask() -> None:
    codec = RowCodec(ORDERS)
    columns = [pa.array([1.5, 2.5]), pa.nulls(2, pa.string()), pa.array(["x", None])]
    encoded = codec.encode_patch_columns(columns, [True, False, True])
    assert codec.decode_patch(encoded[1].as_py()) == {"amount": 2.5, "note": None}


# ------------------------------------------------------------------ damage


@st.composite
def damages(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes cut short, lengthened, or with some bits flipped."""
    how = draw(st.sampled_from(["cut", "longer", "flip"]))
    if how == "cut":
        return data[: draw(st.integers(0, len(data) - 1))]
    if how == "longer":
        return data + draw(st.binary(min_size=1, max_size=9))
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        changed[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    return bytes(changed)


def outcome(decode: Any) -> Any:
    try:
        return decode()
    except (DamagedEntryError, DefinitionError, ValueTypeError):
        return None


@patient
@given(tables, st.data())
def test_damaged_rows_are_refused_or_read_as_other_rows(case: Table, data: st.DataObject) -> None:
    schema, content = case
    codec = RowCodec(schema, "table t")
    for row in content[:3]:
        broken = data.draw(damages(codec.encode(row)))
        outcome(lambda broken=broken: codec.decode_row((1,), broken))
        two = stored([codec.encode(row), broken])
        columns = outcome(lambda two=two: codec.decode_columns(two))
        for column in columns or []:
            column.validate(full=True)
        patch = data.draw(damages(codec.encode_patch(dict(zip(codec.names, row, strict=True)))))
        outcome(lambda patch=patch: codec.decode_patch(patch))
        outcome(lambda patch=patch: codec.decode_patch_columns(stored([patch])))


@patient
@given(tables, st.data())
def test_what_the_decoder_of_columns_takes_the_other_reads_alike(case: Table, data: st.DataObject) -> None:
    schema, content = case
    codec = RowCodec(schema)
    for row in content[:2]:
        broken = data.draw(damages(codec.encode(row)))
        columns = outcome(lambda broken=broken: codec.decode_columns(stored([broken])))
        values = outcome(lambda broken=broken: codec.decode(broken))
        if columns is None:
            assert values is None
        elif values is not None:
            assert same(rows_of(schema, columns, 1), [values])


BAD_ROWS = {
    "nothing": b"",
    "no version": b"\x00\x00" + bytes(17),
    "half a version": b"\x01",
    "cut in the slots": b"\x01\x00\x00\x00",
    "a null column too many": b"\x01\x00\x08" + bytes(16),
    "longer than its columns": b"\x01\x00\x00" + bytes(16) + b"x",
    "ends run backwards": b"\x01\x00\x00" + bytes(8) + b"\x02\x00\x00\x00\x01\x00\x00\x00x",
    "an end beyond the row": b"\x01\x00\x00" + bytes(8) + b"\xff\x00\x00\x00\x01\x00\x00\x00x",
    "not UTF-8": b"\x01\x00\x00" + bytes(8) + b"\x01\x00\x00\x00\x01\x00\x00\x00\xff",
    "a null with bytes": b"\x01\x00\x02" + bytes(8) + b"\x01\x00\x00\x00\x01\x00\x00\x00x",
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_every_kind_of_damage_is_refused_by_both_decoders(name: str) -> None:
    codec = RowCodec(ORDERS, "table orders")
    for attempt in (
        lambda: codec.decode_row((1,), BAD_ROWS[name]),
        lambda: codec.decode_columns(stored([BAD_ROWS[name]])),
    ):
        with pytest.raises(DamagedEntryError, match="table orders: a stored row cannot be decoded") as caught:
            attempt()
        assert caught.value.detail


def test_a_decimal_or_time_out_of_range_is_damage() -> None:
    schema = Schema.of({"id": "BIGINT", "d": "DECIMAL(3,1)", "e": "DECIMAL(20,0)", "t": "TIME"}, key=["id"])
    codec = RowCodec(schema)
    for d, e, t in ((1000, 0, 0), (0, 10**20, 0), (0, 0, -1), (0, 0, 90_000_000_000)):
        data = (
            b"\x01\x00\x00" + d.to_bytes(8, "little") + e.to_bytes(16, "little") + t.to_bytes(8, "little", signed=True)
        )
        with pytest.raises(DamagedEntryError):
            codec.decode(data)
        with pytest.raises(DamagedEntryError):
            codec.decode_columns(stored([data]))


@pytest.mark.parametrize(
    ("sql", "raw"),
    [("DATE", pa.scalar(10**7, pa.int32())), ("TIMESTAMP", pa.scalar(1 << 62)), ("TIMESTAMPTZ", pa.scalar(-(1 << 62)))],
)
def test_a_moment_beyond_python_is_no_damage(sql: str, raw: pa.Scalar) -> None:
    kind = parse_type(sql)
    codec = RowCodec(Schema.of({"id": "BIGINT", "at": sql}, ["id"]), "table t")
    column = pa.array([raw.as_py()], raw.type).cast(kind.arrow)
    encoded = codec.encode_columns([column])
    assert codec.decode_columns(encoded)[0].equals(column)
    with pytest.raises(ValueTypeError, match="table t: a row holds a value that Python has none for") as caught:
        codec.decode_row((1,), encoded[0].as_py())
    assert caught.value.hint == "read it as an Arrow column"
    with pytest.raises(ValueTypeError, match="Python"):
        to_python(column, kind)


def test_a_damaged_count_takes_no_memory() -> None:
    codec = RowCodec(Schema.of({"id": "BIGINT", "l": "INTEGER[]"}, key=["id"]))
    data = b"\x01\x00\x00\x04\x00\x00\x00\xff\xff\xff\xff"
    with pytest.raises(DamagedEntryError, match="shorter than its items"):
        codec.decode(data)
    with pytest.raises(DamagedEntryError, match="shorter than its items"):
        codec.decode_columns(stored([data]))


def test_a_null_key_of_a_map_is_damage() -> None:
    entries = "STRUCT(key INTEGER, value INTEGER)[]"
    as_list = Schema.of({"id": "BIGINT", "m": entries}, ["id"])
    as_map = RowCodec(Schema.of({"id": "BIGINT", "m": "MAP(INTEGER, INTEGER)"}, ["id"]))
    for entry in (None, {"key": None, "value": 1}):
        data = RowCodec(as_list).encode([[entry]])
        with pytest.raises(DamagedEntryError, match="null key"):
            as_map.decode(data)
        with pytest.raises(DamagedEntryError, match="null key"):
            as_map.decode_columns(stored([data]))


def test_every_kind_is_tried() -> None:
    assert {sql.kind for sql in SCALARS} | NESTED == set(Kind)
    assert decimal.getcontext().prec == 28  # conversions of 38 digits do not lean on a wider context
