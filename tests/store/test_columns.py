"""Columns hold what they were made of, and a choice between two columns is made row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everview.change.schema import Schema
from everview.change.types import list_of, map_of, parse_type
from everview.store.encoding.columns import merge_columns, to_arrow, to_python
from tests.store.row_values import columns_of, one_row, patient, rows, rows_of, same, schemas, types, values

tables = schemas().flatmap(lambda schema: st.tuples(st.just(schema), rows(schema)))


@patient
@given(types().flatmap(lambda sql: st.tuples(st.just(sql), st.lists(st.none() | values(sql), max_size=6))))
def test_a_column_holds_the_values_it_was_made_of(case: tuple[Any, list[Any]]) -> None:
    sql, content = case
    array = to_arrow(content, sql)
    assert array.type == sql.arrow
    array.validate(full=True)
    assert same(to_python(array, sql), content)
    assert same(to_python(array.slice(1), sql), content[1:])


def test_a_map_with_nested_keys_is_a_list_of_pairs() -> None:
    sql = map_of(list_of(parse_type("INTEGER")), parse_type("VARCHAR"))
    content = [[([1, 2], "a"), ([], None)], None]
    assert to_python(to_arrow(content, sql), sql) == content


@patient
@given(tables, st.data())
def test_merging_takes_the_new_value_where_it_is_given(
    case: tuple[Schema, list[list[Any]]], data: st.DataObject
) -> None:
    schema, old = case
    new = data.draw(st.lists(one_row(schema), min_size=len(old), max_size=len(old)))
    masks = [
        data.draw(st.booleans() | st.lists(st.booleans(), min_size=len(old), max_size=len(old)).map(np.array))
        for _ in schema.values
    ]
    masks = [mask.astype(bool) if isinstance(mask, np.ndarray) else mask for mask in masks]
    merged = merge_columns(columns_of(schema, old), columns_of(schema, new), masks)
    expected = [
        [b if np.broadcast_to(mask, len(old))[i] else a for a, b, mask in zip(was, now, masks, strict=True)]
        for i, (was, now) in enumerate(zip(old, new, strict=True))
    ]
    assert same(rows_of(schema, merged, len(old)), expected)
