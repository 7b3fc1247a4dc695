"""Values for people: in messages, in the quarantine, in what verify finds.

A value is Python's, or, where Python has none (``infinity``, years before 1 and after 9999), the
text that DuckDB writes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from everview.change.types import VARCHAR
from everview.operators.evaluation import evaluator, one_array


def readable(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column. Each is what it is whatever others are beside it."""
    array = one_array(column)
    try:
        found: list[Any] = array.to_pylist()
        return found
    except (OverflowError, ValueError):
        return [_readable(array.slice(number, 1)) for number in range(len(array))]


def _readable(one: pa.Array) -> object:
    try:
        return one.to_pylist()[0]
    except (OverflowError, ValueError):
        text = "SELECT CAST(x AS VARCHAR) AS x FROM input"
        return evaluator().query(text, [("x", VARCHAR)], {"input": pa.table({"x": one})})["x"][0].as_py()
