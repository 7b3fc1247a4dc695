"""SQL types, and how each is held in Arrow columns.

A :class:`Type` is a frozen description that knows its SQL text, its Arrow
type and the number of bytes a value takes at rest; everything else asks it.

The names are DuckDB's. A type prints as the SQL text that :func:`parse_type` reads back::

    >>> parse_type("decimal(10, 2)[]")
    Type('DECIMAL(10,2)[]')
    >>> str(parse_type("STRUCT(a INT, b MAP(TEXT, DOUBLE))"))
    'STRUCT(a INTEGER, b MAP(VARCHAR, DOUBLE))'

Arrow has no 128-bit integer, so HUGEINT and UHUGEINT travel as 16 little-endian bytes
under the extension type that DuckDB reads and writes itself, and so do TIMETZ, BIT and BIGNUM;
UUID and JSON use Arrow's own canonical extension types. A value of an ENUM is its place among
the members, a TUPLE a struct whose fields have no names.

DuckDB's type of a bare NULL, ``"NULL"``, is held as INTEGER: a column that is always null.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from everview.boundary import public_constructors
from everview.change.kinds import (
    ARROW,
    FLOATS,
    INTEGERS,
    NESTED,
    RECORDS,
    SIGNED,
    TEXTS,
    UNSIGNED,
    WIDTH,
    Kind,
)
from everview.errors import DefinitionError

__all__ = [
    "BIGINT", "BIGNUM", "BIT", "BLOB", "BOOLEAN", "DATE", "DOUBLE", "FLOATS", "HUGEINT", "INTEGER", "INTEGERS",
    "INTERVAL", "JSON", "NESTED", "REAL", "RECORDS", "SIGNED", "SMALLINT", "TEXTS", "TIME", "TIMESTAMP",
    "TIMESTAMPTZ", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_S", "TIMETZ", "TINYINT", "UBIGINT", "UHUGEINT",
    "UINTEGER", "UNSIGNED", "USMALLINT", "UTINYINT", "UUID", "VARCHAR", "Kind", "Type", "array_of", "decimal",
    "enum_of", "list_of", "map_of", "parse_type", "struct", "tuple_of", "type_of",
]  # fmt: skip


@public_constructors
@dataclass(frozen=True, repr=False)
class Type:
    """One SQL type. Build with the constants below, :func:`decimal`, :func:`list_of`,
    :func:`struct`, :func:`map_of`, :func:`array_of`, :func:`tuple_of`, :func:`enum_of`, or from text with
    :func:`parse_type`."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    children: tuple[tuple[str, Type], ...] = ()
    """LIST, ARRAY: one child ("item"); STRUCT: the fields; TUPLE: its parts ("1", "2", …); MAP: "key" and "value"."""
    length: int = 0
    """Of an ARRAY: how many items every value has."""
    members: tuple[str, ...] = ()
    """Of an ENUM: its texts, in their order."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Kind):
            raise DefinitionError(f"{self.kind!r} is not a kind of type", hint="types are given as text: 'BIGINT'")
        if self.kind is Kind.DECIMAL:
            if not 1 <= self.precision <= 38 or not 0 <= self.scale <= self.precision:
                raise DefinitionError(
                    f"DECIMAL({self.precision},{self.scale}) is not a type",
                    hint="the precision is 1 to 38, the scale 0 to the precision",
                )
        elif self.precision or self.scale:
            raise DefinitionError(f"{self.kind.value} takes no precision")
        names = [name for name, _ in self.children]
        if self.kind in (Kind.LIST, Kind.ARRAY) and names != ["item"]:
            raise DefinitionError(f"{self.kind.value} has exactly one type of items")
        if (self.kind is Kind.ARRAY) != (self.length > 0):
            raise DefinitionError(
                f"an ARRAY has a number of items, not {self.length}", hint="write INTEGER[3] for three of them"
            )
        if (self.kind is Kind.ENUM) != bool(self.members) or len(set(self.members)) != len(self.members):
            raise DefinitionError("an ENUM needs different members", hint="write ENUM('small', 'large')")
        if self.kind is Kind.TUPLE and names != [str(at + 1) for at in range(len(names) or 1)]:
            raise DefinitionError("a TUPLE has parts without names", hint="a STRUCT has names for its fields")
        if self.kind is Kind.MAP and names != ["key", "value"]:
            raise DefinitionError("a MAP has a type of keys and a type of values")
        if self.kind is Kind.STRUCT and (not names or len({n.lower() for n in names}) != len(names)):
            raise DefinitionError(
                f"a STRUCT needs fields with different names, not {names}", hint="give each field a name of its own"
            )
        if self.kind not in NESTED and names:
            raise DefinitionError(f"{self.kind.value} has no parts")

    @property
    def width(self) -> int | None:
        """Bytes of a value at rest, or None where values differ in length."""
        if self.kind is Kind.DECIMAL:
            return 8 if self.precision <= 18 else 16
        if self.kind is Kind.ENUM:
            return next(width for width in (1, 2, 4) if len(self.members) <= 1 << 8 * width)
        return WIDTH.get(self.kind)

    @property
    def is_scalar(self) -> bool:
        return self.kind not in NESTED

    @functools.cached_property
    def different_values_compare_equal(self) -> bool:
        """Whether there are different values that compare equal: 0.0 and -0.0, 1 month and 30 days."""
        return (
            self.kind in FLOATS
            or self.kind is Kind.INTERVAL
            or any(t.different_values_compare_equal for _, t in self.children)
        )

    @functools.cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type."""
        if self.kind is Kind.DECIMAL:
            return pa.decimal128(self.precision, self.scale)
        if self.kind is Kind.LIST:
            return pa.list_(pa.field("item", self.item.arrow))
        if self.kind is Kind.STRUCT:
            return pa.struct([pa.field(name, child.arrow) for name, child in self.children])
        if self.kind is Kind.MAP:
            return pa.map_(self.children[0][1].arrow, self.children[1][1].arrow)
        if self.kind is Kind.ARRAY:
            return pa.list_(pa.field("item", self.item.arrow), self.length)
        if self.kind is Kind.TUPLE:
            return pa.struct([pa.field("", child.arrow) for _, child in self.children])
        if self.kind is Kind.ENUM:
            return pa.opaque(_PLACES[self.width or 4], str(self), "Everview")
        return ARROW[self.kind]

    @property
    def item(self) -> Type:
        """What a LIST or an ARRAY holds; a MAP is held as a list of (key, value) structs."""
        if self.kind is Kind.MAP:
            return Type(Kind.STRUCT, children=self.children)
        return self.children[0][1]

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind is Kind.LIST:
            return f"{self.item}[]"
        if self.kind is Kind.STRUCT:
            return f"STRUCT({', '.join(f'{_quoted(n)} {t}' for n, t in self.children)})"
        if self.kind is Kind.MAP:
            return f"MAP({', '.join(str(t) for _, t in self.children)})"
        if self.kind is Kind.ARRAY:
            return f"{self.item}[{self.length}]"
        if self.kind is Kind.TUPLE:
            return f"TUPLE({', '.join(str(t) for _, t in self.children)})"
        if self.kind is Kind.ENUM:
            return f"ENUM({', '.join(_text(member) for member in self.members)})"
        return str(self.kind.value)

    def __repr__(self) -> str:
        return f"Type({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Type, (self.kind, self.precision, self.scale, self.children, self.length, self.members)


BOOLEAN = Type(Kind.BOOLEAN)
TINYINT = Type(Kind.TINYINT)
SMALLINT = Type(Kind.SMALLINT)
INTEGER = Type(Kind.INTEGER)
BIGINT = Type(Kind.BIGINT)
HUGEINT = Type(Kind.HUGEINT)
UTINYINT = Type(Kind.UTINYINT)
USMALLINT = Type(Kind.USMALLINT)
UINTEGER = Type(Kind.UINTEGER)
UBIGINT = Type(Kind.UBIGINT)
UHUGEINT = Type(Kind.UHUGEINT)
REAL = Type(Kind.REAL)
DOUBLE = Type(Kind.DOUBLE)
VARCHAR = Type(Kind.VARCHAR)
BLOB = Type(Kind.BLOB)
DATE = Type(Kind.DATE)
TIME = Type(Kind.TIME)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMPTZ = Type(Kind.TIMESTAMPTZ)
TIMESTAMP_S = Type(Kind.TIMESTAMP_S)
TIMESTAMP_MS = Type(Kind.TIMESTAMP_MS)
TIMESTAMP_NS = Type(Kind.TIMESTAMP_NS)
TIMETZ = Type(Kind.TIMETZ)
INTERVAL = Type(Kind.INTERVAL)
UUID = Type(Kind.UUID)
JSON = Type(Kind.JSON)
BIT = Type(Kind.BIT)
BIGNUM = Type(Kind.BIGNUM)


_BY_ARROW = {arrow: Type(kind) for kind, arrow in ARROW.items()}


@functools.lru_cache(maxsize=4096)
def type_of(arrow: pa.DataType) -> Type:
    """The type whose columns have this Arrow type, which is one that a :class:`Type` gave."""
    if isinstance(arrow, pa.MapType):
        return map_of(type_of(arrow.key_type), type_of(arrow.item_type))
    if isinstance(arrow, pa.FixedSizeListType):
        return array_of(type_of(arrow.value_type), arrow.list_size)
    if isinstance(arrow, pa.ListType):
        return list_of(type_of(arrow.value_type))
    if isinstance(arrow, pa.StructType):
        if all(not field.name for field in arrow):
            return tuple_of(*(type_of(field.type) for field in arrow))
        return Type(Kind.STRUCT, children=tuple((field.name, type_of(field.type)) for field in arrow))
    if isinstance(arrow, pa.Decimal128Type):
        return decimal(arrow.precision, arrow.scale)
    if isinstance(arrow, pa.OpaqueType) and arrow.vendor_name == "Everview":
        return parse_type(arrow.type_name)
    return _BY_ARROW[arrow]


def decimal(precision: int, scale: int = 0) -> Type:
    return Type(Kind.DECIMAL, precision, scale)


def list_of(item: Type) -> Type:
    return Type(Kind.LIST, children=(("item", item),))


def struct(**fields: Type) -> Type:
    return Type(Kind.STRUCT, children=tuple(fields.items()))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, children=(("key", key), ("value", value)))


def array_of(item: Type, length: int) -> Type:
    return Type(Kind.ARRAY, children=(("item", item),), length=length)


def tuple_of(*parts: Type) -> Type:
    return Type(Kind.TUPLE, children=tuple((str(at), part) for at, part in enumerate(parts, start=1)))


def enum_of(*members: str) -> Type:
    return Type(Kind.ENUM, members=members)


_ALIASES = {
    "BOOL": "BOOLEAN",
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "SHORT": "SMALLINT",
    "INT": "INTEGER",
    "INT4": "INTEGER",
    "INT8": "BIGINT",
    "LONG": "BIGINT",
    "INT128": "HUGEINT",
    "UINT8": "UTINYINT",
    "UINT16": "USMALLINT",
    "UINT32": "UINTEGER",
    "UINT64": "UBIGINT",
    "UINT128": "UHUGEINT",
    "FLOAT": "REAL",
    "FLOAT4": "REAL",
    "FLOAT8": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE",
    "NUMERIC": "DECIMAL",
    "TEXT": "VARCHAR",
    "STRING": "VARCHAR",
    "CHAR": "VARCHAR",
    "BYTEA": "BLOB",
    "BINARY": "BLOB",
    "VARBINARY": "BLOB",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
    "TIME WITH TIME ZONE": "TIMETZ",
    "TIMESTAMP_US": "TIMESTAMP",
    "BITSTRING": "BIT",
    "VARINT": "BIGNUM",
    '"NULL': "INTEGER",
}
_PLACES = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32()}
"""Arrow types of the places of an ENUM's values, by their width."""

_TOKEN = re.compile(r"""\s*(?:"((?:[^"]|"")*)"|'((?:[^']|'')*)'|([A-Za-z_][A-Za-z_0-9]*)|(\d+)|([(),\[\]]))""")


def parse_type(text: str) -> Type:
    """Read a type from its SQL text."""
    tokens = list(_tokens(text))
    found, rest = _parse(text, tokens)
    if rest:
        raise _unreadable(text, f"unexpected {rest[0]!r} after {found}")
    return found


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text, f"unexpected {text[at:].strip()[:1]!r} at position {at + 1}")
        quoted, text_, word, number, mark = match.groups()
        if quoted is not None:
            yield '"' + quoted.replace('""', '"')
        else:
            yield "'" + text_.replace("''", "'") if text_ is not None else word or number or mark
        at = match.end()


def _parse(text: str, tokens: list[str]) -> tuple[Type, list[str]]:
    if not tokens:
        raise _unreadable(text, "a type is missing")
    found, rest = _parse_plain(text, tokens[0].upper(), tokens[1:])
    while rest[:1] == ["["]:
        if rest[1:2] == ["]"]:
            found, rest = list_of(found), rest[2:]
        elif len(rest) > 2 and rest[1].isdigit() and rest[2] == "]":
            found, rest = array_of(found, int(rest[1])), rest[3:]
        else:
            raise _unreadable(text, "expected ']' or a number of items after '['")
    return found, rest


def _parse_plain(text: str, name: str, rest: list[str]) -> tuple[Type, list[str]]:
    for phrase in ("DOUBLE PRECISION", "TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE"):
        words = phrase.split()
        if name == words[0] and [t.upper() for t in rest[: len(words) - 1]] == words[1:]:
            name, rest = phrase, rest[len(words) - 1 :]
    name = _ALIASES.get(name, name)
    if name == "STRUCT":
        return _parse_struct(text, rest)
    if name == "MAP":
        rest = _expect(text, rest, "(")
        key, rest = _parse(text, rest)
        value, rest = _parse(text, _expect(text, rest, ","))
        return map_of(key, value), _expect(text, rest, ")")
    if name == "DECIMAL":
        numbers, rest = _parse_numbers(text, rest)
        precision, scale = [*numbers, 0][:2] if numbers else (18, 3)
        return decimal(precision, scale), rest
    if name == "TUPLE":
        parts, rest = [], _expect(text, rest, "(")
        while True:
            part, rest = _parse(text, rest)
            parts.append(part)
            if rest[:1] != [","]:
                return tuple_of(*parts), _expect(text, rest, ")")
            rest = rest[1:]
    if name == "ENUM":
        return _parse_enum(text, rest)
    if name in Kind.__members__ and name not in ("LIST", "ARRAY"):
        if name == "VARCHAR":
            _, rest = _parse_numbers(text, rest)
        return Type(Kind[name]), rest
    raise _unreadable(text, f"there is no type {name}")


def _parse_struct(text: str, rest: list[str]) -> tuple[Type, list[str]]:
    rest = _expect(text, rest, "(")
    fields: list[tuple[str, Type]] = []
    while True:
        if len(rest) < 2:
            raise _unreadable(text, "a field of the STRUCT is missing")
        name = rest[0].removeprefix('"')
        child, rest = _parse(text, rest[1:])
        fields.append((name, child))
        if rest[:1] != [","]:
            return Type(Kind.STRUCT, children=tuple(fields)), _expect(text, rest, ")")
        rest = rest[1:]


def _parse_enum(text: str, rest: list[str]) -> tuple[Type, list[str]]:
    rest = _expect(text, rest, "(")
    members = []
    while rest[:1] and rest[0].startswith("'"):
        members.append(rest[0][1:])
        if rest[1:2] != [","]:
            return enum_of(*members), _expect(text, rest[1:], ")")
        rest = rest[2:]
    raise _unreadable(text, "a member of the ENUM is missing")


def _parse_numbers(text: str, rest: list[str]) -> tuple[list[int], list[str]]:
    if rest[:1] != ["("]:
        return [], rest
    end = rest.index(")") if ")" in rest else len(rest)
    inside = [token for token in rest[1:end] if token != ","]
    if not 1 <= len(inside) <= 2 or not all(token.isdigit() for token in inside):
        raise _unreadable(text, "numbers in parentheses expected")
    return [int(token) for token in inside], _expect(text, rest[end:], ")")


def _expect(text: str, rest: list[str], mark: str) -> list[str]:
    if rest[:1] != [mark]:
        raise _unreadable(text, f"expected {mark!r}" + (f", found {rest[0]!r}" if rest else " at the end"))
    return rest[1:]


def _unreadable(text: str, why: str) -> DefinitionError:
    return DefinitionError(
        f"cannot read the type {text!r}",
        detail=why,
        hint="write a type such as BIGINT, DECIMAL(10,2), VARCHAR[], STRUCT(a INTEGER), MAP(VARCHAR, DOUBLE)"
        " or ENUM('a', 'b')",
    )


def _text(member: str) -> str:
    return "'" + member.replace("'", "''") + "'"


_RESERVED = frozenset({
    "all", "analyse", "analyze", "and", "anti", "any", "array", "as", "asc", "asof", "asymmetric", "at",
    "authorization", "binary", "both", "by", "case", "cast", "check", "collate", "collation", "column",
    "concurrently", "constraint", "create", "cross", "default", "deferrable", "desc", "describe", "distinct",
    "do", "else", "end", "except", "false", "fetch", "for", "foreign", "freeze", "from", "full", "glob", "group",
    "having", "ilike", "in", "initially", "inner", "intersect", "into", "is", "isnull", "join", "lambda",
    "lateral", "leading", "left", "like", "limit", "natural", "not", "notnull", "null", "offset", "on", "only",
    "or", "order", "outer", "overlaps", "pivot", "pivot_longer", "pivot_wider", "placing", "positional",
    "primary", "qualify", "references", "returning", "right", "select", "semi", "show", "similar", "some",
    "summarize", "symmetric", "table", "tablesample", "then", "to", "trailing", "true", "union", "unique",
    "unpack", "unpivot", "using", "variadic", "verbose", "when", "where", "window", "with",
})  # fmt: skip
"""Words that DuckDB does not take for the name of a field."""


def _quoted(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) and name.lower() not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'
