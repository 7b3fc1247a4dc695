"""Functions written for one schema, for the two calls that every ``get`` and ``put`` makes.

The source of the function is put together from the columns and compiled,
as dataclasses do it, so that a row costs one ``unpack`` and one dict.

For the columns id BIGINT (the key), amount DOUBLE, name VARCHAR, note VARCHAR it is::

    def compiled(key, data):
        try:
            version, nulls, c0, c1, c2 = unpack_from(data)
            if version == 1 and nulls == none and c1 <= c2 == len(data) - 19:
                return {'id': key[0], 'amount': c0, 'name': data[19:19 + c1].decode(),
                        'note': data[19 + c1:].decode()}
        except DAMAGE:
            pass
        return general(key, data)

    def compiled(values):
        c0, c1, c2 = values
        if c0 is None or c1 is None or c2 is None:
            return general(values)
        b1 = w1(c1)
        b2 = w2(c2)
        return pack(1, none, c0, len(b1), len(b1) + len(b2)) + b1 + b2

A row with nulls, of an older version, or damaged takes the general way, which also knows
what to say about it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from everview.change.schema import Schema
from everview.change.types import TEXTS, Kind
from everview.store.encoding.row_layout import VAR_LIMIT, Layout, too_long
from everview.store.encoding.row_python import DAMAGE, from_payload, from_slot, slot_format, to_payload, to_slot

F = TypeVar("F", bound=Callable[..., object])
Decode = Callable[[Sequence[object], bytes], dict[str, object]]
Encode = Callable[[Sequence[object]], bytes]


def row_decoder(schema: Schema, general: Decode) -> Decode:
    """A function that makes the whole row, in table order, of a key and a stored row."""
    scope, easy, values = _reader(schema)
    places = {name: f"key[{i}]" for i, name in enumerate(schema.key)} | values
    row = ", ".join(f"{name!r}: {places[name]}" for name in schema.names)
    return _compiled(_DECODE.format(arguments="key, data", easy=easy, result="{" + row + "}"), scope, general)


def values_decoder(schema: Schema, general: Callable[[bytes], list[object]]) -> Callable[[bytes], list[object]]:
    """A function that makes the list of values of a stored row."""
    scope, easy, values = _reader(schema)
    return _compiled(
        _DECODE.format(arguments="data", easy=easy, result=f"[{', '.join(values.values())}]"), scope, general
    )


_DECODE = """
def compiled({arguments}):
    try:
        {easy}
            return {result}
    except DAMAGE:
        pass
    return general({arguments})
"""


def _reader(schema: Schema) -> tuple[dict[str, Any], str, dict[str, str]]:
    """What the source may use, how it takes a row apart if that is easy, and how it makes
    the value of each column."""
    whole = _whole(schema)
    size = whole.size
    scope: dict[str, Any] = {"unpack_from": whole.unpack_from, "none": _no_nulls(schema), "DAMAGE": DAMAGE}
    variable = [f"c{i}" for i, column in enumerate(schema.values) if column.type.width is None]
    values: dict[str, str] = {}
    start = str(size)
    for i, column in enumerate(schema.values):
        if column.type.width is not None:
            convert = scope[f"r{i}"] = from_slot(column.type)
            values[column.name] = f"r{i}(c{i})" if convert else f"c{i}"
            continue
        end = "" if f"c{i}" == variable[-1] else f"{size} + c{i}"
        piece = f"data[{start}:{end}]"
        start = end
        if column.type.kind is Kind.BLOB:
            values[column.name] = piece
        elif column.type.kind in TEXTS:
            values[column.name] = f"{piece}.decode()"
        else:
            scope[f"r{i}"] = from_payload(column.type)
            values[column.name] = f"r{i}({piece})"
    slots = "".join(f", c{i}" for i in range(len(schema.values)))
    fits = f"{' <= '.join(variable)} == len(data) - {size}" if variable else f"len(data) == {size}"
    easy = f"""version, nulls{slots} = unpack_from(data)
        if version == {schema.version} and nulls == none and {fits}:"""
    return scope, easy, values


def row_encoder(schema: Schema, general: Encode) -> Encode:
    """A function that makes a stored row of the values of all value columns."""
    if not schema.values:
        return general
    scope: dict[str, Any] = {
        "pack": _whole(schema).pack,
        "none": _no_nulls(schema),
        "too_long": too_long,
    }
    columns = range(len(schema.values))
    slots: list[str] = []
    payloads: list[str] = []
    lines: list[str] = []
    for i, column in enumerate(schema.values):
        if column.type.width is None:
            scope[f"w{i}"] = to_payload(column.type)
            lines.append(f"    b{i} = w{i}(c{i})\n")
            payloads.append(f"b{i}")
            slots.append(" + ".join(f"len({name})" for name in payloads))
        else:
            convert = scope[f"w{i}"] = to_slot(column.type)
            slots.append(f"w{i}(c{i})" if convert else f"c{i}")
    if payloads:
        lines.append(f"    if {slots[int(payloads[-1][1:])]} > {VAR_LIMIT}:\n        raise too_long()\n")
    return _compiled(
        f"""
def compiled(values):
    {", ".join(f"c{i}" for i in columns)}, = values
    if {" or ".join(f"c{i} is None" for i in columns)}:
        return general(values)
{"".join(lines)}    return pack({schema.version}, none, {", ".join(slots)}){"".join(f" + {name}" for name in payloads)}
""",
        scope,
        general,
    )


def _whole(schema: Schema) -> struct.Struct:
    """Version, bitmap and slots in one."""
    bitmap = _no_nulls(schema)
    head = "HB" if isinstance(bitmap, int) else f"H{len(bitmap)}s"
    return struct.Struct(f"<{head}" + "".join(slot_format(column.type) for column in schema.values))


def _no_nulls(schema: Schema) -> int | bytes:
    """What ``unpack`` gives for a bitmap without a set bit."""
    size = Layout([column.type for column in schema.values]).bitmap
    return 0 if size == 1 else bytes(size)


def _compiled(source: str, scope: dict[str, Any], general: F) -> F:
    scope["general"] = general
    exec(compile(source, "<a function written for one schema>", "exec"), scope)
    function: F = scope["compiled"]
    return function
