"""Values of our types in JSON.

Values that JSON has are written as such, others as text or as a list of parts.

| type | in JSON |
|---|---|
| integers, BOOLEAN, VARCHAR | themselves |
| REAL, DOUBLE | numbers; ``"nan"``, ``"inf"``, ``"-inf"`` |
| DECIMAL | text, so that nothing is rounded; numbers are read too |
| DATE, TIME, TIMETZ, TIMESTAMP, …, TIMESTAMPTZ | text of ISO 8601 |
| BLOB | text in hexadecimal |
| INTERVAL | ``[months, days, nanoseconds]`` |
| BIT, ENUM | text |
| BIGNUM | text, so that nothing is rounded; integers are read too |
| UUID, JSON | text; a value that is not text is read as JSON |
| lists, arrays and tuples, structs | lists, objects |
| maps | objects, their keys as text; lists of pairs if keys are nested |
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa

from everview.change.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOATS,
    HUGEINT,
    INTEGERS,
    JSON,
    RECORDS,
    VARCHAR,
    Kind,
    Type,
    list_of,
)
from everview.plan.expressions import quoted

Read: TypeAlias = Callable[[Any], Any]

# ------------------------------------------------------------------ in


def read(kind: Type) -> Read:
    """The conversion from JSON to values of a type, which a table then checks; it raises ValueError, TypeError or
    LookupError if it fails."""
    if kind.kind is Kind.TUPLE:
        parts = [read(child) for _, child in kind.children]
        return lambda value: (
            None if value is None else tuple(p(one) for p, one in zip(parts, _listed(value), strict=True))
        )
    if kind.kind in (Kind.LIST, Kind.ARRAY):
        item = read(kind.item)
        return lambda value: None if value is None else [item(one) for one in _listed(value)]
    if kind.kind is Kind.STRUCT:
        fields = {name: read(child) for name, child in kind.children}
        return lambda value: None if value is None else {name: fields[name](one) for name, one in value.items()}
    if kind.kind is Kind.MAP:
        key, held = (read(child) for _, child in kind.children)
        return lambda value: None if value is None else [(key(one), held(two)) for one, two in _pairs(value)]
    return _or_null(_SCALARS.get(kind.kind, _unchanged))


def _or_null(reading: Read) -> Read:
    return lambda value: None if value is None else reading(value)


def _unchanged(value: Any) -> Any:
    return value


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("a list is expected")
    return value


def _pairs(value: Any) -> Iterable[Any]:
    return value.items() if isinstance(value, dict) else _listed(value)


def _integer(value: Any) -> Any:
    if isinstance(value, Decimal):
        if value != value.to_integral_value():
            raise ValueError("it is not a whole number")
        return int(value)
    return int(value) if isinstance(value, str) else value


def _float(value: Any) -> Any:
    return float(value) if isinstance(value, str | Decimal) else value


def _decimal(value: Any) -> Any:
    try:
        return Decimal(value) if isinstance(value, str) else value
    except InvalidOperation:
        raise ValueError("it is not a number") from None


def _boolean(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _json(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_number)


def _timestamp_ns(value: Any) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    return pd.Timestamp(value)


def _interval(value: Any) -> Any:
    parts = json.loads(value) if isinstance(value, str) else value  # a key of an object is text
    return pa.MonthDayNano(_listed(parts))


def _number(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError


_SCALARS: dict[Kind, Read] = {
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLOATS, _float),
    Kind.BOOLEAN: _boolean,
    Kind.DECIMAL: _decimal,
    Kind.BLOB: bytes.fromhex,
    Kind.DATE: datetime.date.fromisoformat,
    Kind.TIME: datetime.time.fromisoformat,
    Kind.TIMESTAMP: datetime.datetime.fromisoformat,
    Kind.TIMESTAMPTZ: datetime.datetime.fromisoformat,
    Kind.TIMESTAMP_S: datetime.datetime.fromisoformat,
    Kind.TIMESTAMP_MS: datetime.datetime.fromisoformat,
    Kind.TIMESTAMP_NS: _timestamp_ns,
    Kind.TIMETZ: datetime.time.fromisoformat,
    Kind.INTERVAL: _interval,
    Kind.JSON: _json,
}

# ------------------------------------------------------------------ out


def json_expression(value: str, kind: Type, depth: int = 0) -> str:
    """SQL for the JSON that DuckDB writes for a value. ``depth`` is the number of enclosing lists."""
    if kind.kind in _AS_THEY_ARE:
        return value
    if kind.kind in FLOATS:
        return f"CASE WHEN isfinite({value}) THEN to_json({value}) ELSE to_json(CAST({value} AS VARCHAR)) END"
    if kind.kind is Kind.BLOB:
        return f"lower(hex({value}))"
    if kind.kind is Kind.INTERVAL:
        months = f"12 * year({value}) + month({value})"
        micros = f"(60 * hour({value}) + minute({value})) * 60000000 + microsecond({value})"
        return f"CASE WHEN {value} IS NOT NULL THEN [{months}, day({value}), 1000 * ({micros})] END"
    if kind.is_scalar:
        text = f"CAST({value} AS VARCHAR)"
        return f"replace({text}, ' ', 'T'){_OFFSET.get(kind.kind, '')}" if kind.kind in _MOMENTS else text
    return f"CASE WHEN {value} IS NOT NULL THEN {_nested_expression(value, kind, depth)} END"


def _nested_expression(value: str, kind: Type, depth: int) -> str:
    if kind.kind in RECORDS:
        fields = [
            (name, json_expression(f"struct_extract_at({value}, {at})", child, depth))
            for at, (name, child) in enumerate(kind.children, 1)
        ]
        if kind.kind is Kind.TUPLE:
            return f"json_array({', '.join(field for _, field in fields)})"
        return f"struct_pack({', '.join(f'{quoted(name)} := {field}' for name, field in fields)})"
    item = f"item{depth}"
    if kind.kind is not Kind.MAP:
        return f"list_transform({value}, lambda {item}: {json_expression(item, kind.item, depth + 1)})"
    (_, key_type), (_, held_type) = kind.children
    key = json_expression(f"{item}.key", key_type, depth + 1)
    held = json_expression(f"{item}.value", held_type, depth + 1)
    if not key_type.is_scalar:
        return f"list_transform(map_entries({value}), lambda {item}: json_array({key}, {held}))"
    entry = f"struct_pack(key := to_json({key}) ->> '$', value := {held})"
    return f"map_from_entries(list_transform(map_entries({value}), lambda {item}: {entry}))"


_AS_THEY_ARE = {*INTEGERS, Kind.BOOLEAN, Kind.VARCHAR}
_OFFSET = {Kind.TIMESTAMPTZ: " || ':00'"}
_MOMENTS = {Kind.TIMESTAMP, Kind.TIMESTAMP_S, Kind.TIMESTAMP_MS, Kind.TIMESTAMP_NS, Kind.TIMESTAMPTZ}

# ------------------------------------------------------------------ which type


def guessed(values: Sequence[Any]) -> Type:
    """A type for these values of JSON: the type of all of them, else JSON; VARCHAR if all are null. Raises
    ValueError if there are texts and other values: in a JSON column a text is JSON, and these are not."""
    seen = [value for value in values if value is not None]
    kinds = {type(value) for value in seen}
    if not kinds or kinds == {str}:
        return VARCHAR
    if kinds == {bool}:
        return BOOLEAN
    if kinds == {int}:
        return BIGINT if all(-(1 << 63) <= value < 1 << 63 for value in seen) else HUGEINT
    if kinds <= {int, float, Decimal}:
        return DOUBLE
    if kinds == {list}:
        return list_of(guessed([item for value in seen for item in value]))
    if kinds == {dict} and any(seen):
        names = dict.fromkeys(name for value in seen for name in value)
        if len({name.lower() for name in names}) == len(names):
            fields = tuple((name, guessed([value.get(name) for value in seen])) for name in names)
            return Type(Kind.STRUCT, children=fields)
    if str in kinds:
        raise ValueError("some values are texts and some are not")
    return JSON
