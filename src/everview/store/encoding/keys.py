"""Keys: typed tuples as bytes that order as the tuples do.

A :class:`KeyCodec` writes the components of a key one after the other so
that comparing two keys as bytes compares them as tuples, and the bytes of the first few
components are the common beginning of exactly the keys that have them.

    >>> codec = KeyCodec(Schema.of({"shop": "VARCHAR", "id": "BIGINT"}, key=["shop", "id"]).key_parts)
    >>> codec.encode(("aix", 7)).hex(" ")
    '61 69 78 00 00 80 00 00 00 00 00 00 07'
    >>> codec.encode(("aix", -1)) < codec.encode(("aix", 7)) < codec.encode(("aixe", 0))
    True
    >>> codec.encode_prefix(("aix",)).hex(" ")
    '61 69 78 00 00'
    >>> codec.decode(codec.encode(("aix", 7)))
    ('aix', 7)

How a component is written stands in :mod:`everview.store.encoding.key_parts`, how whole columns
are in :mod:`everview.store.encoding.key_columns`.

A single key is encoded on every read of a base table, so each codec writes itself a
function for its types, as dataclasses do. That function takes only values of exactly the
expected classes; anything else (a null, a numpy number, a mistake) goes the long way,
which checks, converts or explains. For the codec above it reads::

    def encode(values):
        try:
            a0, a1, = values
            if a0.__class__ is str and a1.__class__ is int:
                return a0.encode().replace(ZERO, ESCAPED) + pack0(0, 0, a1 + 9223372036854775808)
        except FAILURES:
            pass
        return slow(values)
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Sequence

import pyarrow as pa

from everview.change.schema import KeyPart
from everview.change.types import INTEGERS, Kind
from everview.errors import (
    DamagedEntryError,
    DefinitionError,
    EverviewError,
    InputError,
    MissingColumnError,
    ValueTypeError,
)
from everview.store.encoding import key_columns
from everview.store.encoding.key_columns import RowRefused
from everview.store.encoding.key_parts import END, ESCAPED, INVERT, PRESENT, ZERO, Component, NullRefused, struct_of
from everview.store.encoding.key_words import is_unsigned, words_of
from everview.store.encoding.values import Refused, refusal, shown

Encoder = Callable[[Sequence[object]], bytes]


class KeyCodec:
    """The encoding of one table's keys.

    ``delimited``: the keys are followed by other bytes, so the last component too must mark
    where it ends. ``allow_nan``: NaN is a value like others, greater than all (keys of views);
    else it is refused. ``where`` names the table in messages, such as ``table orders``.
    """

    encode: Encoder
    """One key from its values, in key order. Raises ValueTypeError or MissingColumnError that
    name the column."""

    def __init__(
        self, parts: Sequence[KeyPart], *, delimited: bool = False, allow_nan: bool = False, where: str = ""
    ) -> None:
        if not parts:
            raise DefinitionError(f"{where or 'a key'} has no key columns", hint="name one or more key columns")
        for part in parts:
            if not part.type.is_scalar:
                raise DefinitionError(
                    f"{_place(where, part)} cannot be part of a key", detail=f"{part.type} is not a scalar type"
                )
        self.parts = tuple(parts)
        self.delimited = delimited
        self.allow_nan = allow_nan
        self.where = where
        last = len(parts) - 1
        self.components = tuple(
            Component(part, last=i == last and not delimited, allow_nan=allow_nan) for i, part in enumerate(parts)
        )
        self.encode = _generate(self.components, self._encode_slowly)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.parts, self.delimited, self.allow_nan, self.where)

    # -------------------------------------------------------------- one key

    def _encode_slowly(self, values: Sequence[object]) -> bytes:
        if len(values) < len(self.parts):
            missing = self.parts[len(values)]
            raise MissingColumnError(
                f"{_place(self.where, missing)} has no value", detail=self._counted(values), hint=self._hint()
            )
        return self.encode_prefix(values)

    def encode_prefix(self, values: Sequence[object]) -> bytes:
        """The bytes with which exactly the keys with these first components begin; of all
        components: the key itself."""
        if len(values) > len(self.parts):
            raise InputError(
                f"{self.where + ': ' if self.where else ''}{shown(tuple(values))} has too many values for a key",
                detail=self._counted(values),
                hint=self._hint(),
            )
        return b"".join(self._encode_one(*pair) for pair in zip(self.components, values, strict=False))

    def _encode_one(self, component: Component, value: object) -> bytes:
        try:
            return component.encode(value)
        except NullRefused:
            raise _null(_place(self.where, component.part)) from None
        except Refused as reason:
            raise refusal(_place(self.where, component.part), value, component.part.type, reason) from None

    def _counted(self, values: Sequence[object]) -> str:
        return f"the key has {len(self.parts)} component{'s'[: len(self.parts) > 1]}, not {len(values)}"

    def _hint(self) -> str:
        return f"the key is ({', '.join(f'{part.name} {part.type}' for part in self.parts)})"

    def decode(self, data: bytes) -> tuple[object, ...]:
        """The values of one key."""
        values = []
        at = 0
        for component in self.components:
            try:
                value, at = component.decode(data, at)
            except ValueError as error:
                raise self._damaged(data, f"column {component.part.name}: {error}") from None
            except OverflowError as error:
                raise ValueTypeError(
                    f"{_place(self.where, component.part)} holds a {component.part.type} that Python has no value for",
                    detail=str(error),
                    hint="read it as an Arrow column",
                ) from None
            values.append(value)
        if at != len(data):
            raise self._damaged(data, "there are bytes after the last component")
        return tuple(values)

    def _damaged(self, data: bytes, why: str) -> DamagedEntryError:
        short = data.hex(" ") if len(data) <= 40 else f"{data[:40].hex(' ')} … ({len(data)} bytes)"
        return DamagedEntryError(
            f"{self.where + ': ' if self.where else ''}the key {short} cannot be decoded",
            detail=why,
            hint="the entry is damaged: restore it from a backup, or rebuild the view",
        )

    # -------------------------------------------------------------- columns of keys

    def encode_columns(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.LargeBinaryArray:
        """The keys of equally long columns, one per part, of exactly the parts' Arrow types."""
        if len(columns) != len(self.parts):
            raise InputError(
                f"{self.where + ': ' if self.where else ''}{len(columns)} columns for a key",
                detail=self._counted(columns),
                hint=self._hint(),
            )
        for part, column in zip(self.parts, columns, strict=True):
            if column.type != part.type.arrow:
                raise ValueTypeError(
                    f"{_place(self.where, part)} cannot take a column of {column.type}",
                    hint=f"a {part.type} takes a column of {part.type.arrow}",
                )
            if len(column) != len(columns[0]):
                raise InputError(f"{_place(self.where, part)} has {len(column)} rows, not {len(columns[0])}")
        arrays = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
        try:
            return key_columns.encode(self.components, arrays)
        except RowRefused as reason:
            raise self._refused_row(reason) from None

    def _refused_row(self, reason: RowRefused) -> EverviewError:
        assert reason.component is not None
        place = f"{_place(self.where, reason.component.part)}, row {reason.row}"
        if reason.null:
            return _null(place)
        return refusal(place, float("nan"), reason.component.part.type, Refused(str(reason)))

    def decode_columns(self, keys: pa.LargeBinaryArray) -> list[pa.Array]:
        """The columns of keys: the inverse of :meth:`encode_columns`."""
        try:
            return key_columns.decode(self.components, keys)
        except RowRefused as reason:
            damaged = keys[reason.row].as_py()
            raise self._damaged(damaged or b"", f"row {reason.row}: {reason}") from None


def successor(prefix: bytes) -> bytes | None:
    """The smallest bytes greater than everything that begins with the prefix; None if there
    are none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def _rebuild(parts: tuple[KeyPart, ...], delimited: bool, allow_nan: bool, where: str) -> KeyCodec:
    return KeyCodec(parts, delimited=delimited, allow_nan=allow_nan, where=where)


def _place(where: str, part: KeyPart) -> str:
    return f"{where}, key column {part.name}" if where else f"key column {part.name}"


def _null(place: str) -> MissingColumnError:
    return MissingColumnError(f"{place} is null", detail="a key has no nulls", hint="give it a value")


# ------------------------------------------------------------------ the generated function

_CLASSES: dict[Kind, type] = {
    Kind.BOOLEAN: bool,
    **{kind: int for kind, bits in INTEGERS.items() if bits <= 64},
    Kind.DOUBLE: float,
    Kind.DATE: datetime.date,
    Kind.VARCHAR: str,
    Kind.BLOB: bytes,
}
"""The classes for which the generated function writes the bytes itself."""


def _generate(components: Sequence[Component], slow: Encoder) -> Encoder:
    scope: dict[str, object] = {
        "FAILURES": (ValueError, TypeError, struct.error),
        "ZERO": ZERO,
        "ESCAPED": ESCAPED,
        "INVERT": INVERT,
        "END": END,
        "slow": slow,
    }
    conditions: list[str] = []
    terms: list[str] = []
    words: list[tuple[int, str]] = []

    def flush() -> None:
        if words:
            name = f"pack{len(terms)}"
            scope[name] = struct_of(tuple(width for width, _ in words)).pack
            terms.append(f"{name}({', '.join(expression for _, expression in words)})")
            words.clear()

    for i, component in enumerate(components):
        name, part = f"a{i}", component.part
        expected = _CLASSES.get(part.type.kind)
        if expected is None:
            flush()
            scope[f"encode{i}"] = component.encode
            terms.append(f"encode{i}({name})")
            continue
        scope[expected.__name__] = expected
        conditions.append(f"{name}.__class__ is {expected.__name__}")
        if component.refuses_nan:
            conditions.append(f"{name} == {name}")
        if part.nullable:
            words.append((1, str(PRESENT ^ 255 if part.descending else PRESENT)))
        if component.words:
            words.append((component.words.width, _word(component, i, scope)))
            continue
        flush()
        text = f"{name}.encode()" if component.is_text else name
        if component.open_ended:
            terms.append(text)
        elif part.descending:
            terms.append(f"({text}.replace(ZERO, ESCAPED) + END).translate(INVERT)")
        else:
            terms.append(f"{text}.replace(ZERO, ESCAPED)")
            words.extend([(1, "0")] * len(END))
    flush()
    source = "\n".join(
        [
            "def encode(values):",
            "    try:",
            f"        {', '.join(f'a{i}' for i in range(len(components)))}, = values",
            f"        if {' and '.join(conditions) or 'True'}:",
            f"            return {' + '.join(terms)}",
            "    except FAILURES:",
            "        pass",
            "    return slow(values)",
        ]
    )
    exec(source, scope)
    return scope["encode"]  # type: ignore[return-value]


def _word(component: Component, i: int, scope: dict[str, object]) -> str:
    """The expression that makes a value's only word."""
    part, name = component.part, f"a{i}"
    words = words_of(part.type)
    assert words is not None
    most = (1 << 8 * words.width) - 1
    if part.type.kind is Kind.DOUBLE:
        scope["lower"] = words.lower
        return f"{most} - lower({name})[0]" if part.descending else f"lower({name})[0]"
    if part.type.kind is Kind.DATE:
        name = f"{name}.toordinal() - {datetime.date(1970, 1, 1).toordinal()}"
    bias = 0 if is_unsigned(part.type.kind) else (most + 1) // 2
    return f"{most - bias} - ({name})" if part.descending else f"{name} + {bias}" if bias else name
