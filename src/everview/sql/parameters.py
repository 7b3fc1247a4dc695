"""Parameters: ``?``, ``$1`` and ``:name`` become literals of their values' types.

A value never becomes text that is read again; it becomes a tree, a literal or a
cast of one, that stands where the parameter stood.

=====================  ====================================================
Python                 in the tree
=====================  ====================================================
None, bool, str        ``NULL``, ``TRUE``, ``'text'``
int                    a number; past HUGEINT a cast to UHUGEINT, else to BIGNUM
float                  ``CAST('0.1' AS DOUBLE)``; a bare 0.1 would be a DECIMAL
Decimal                ``CAST('1.50' AS DECIMAL(3, 2))``: the digits it has
bytes, UUID            casts to BLOB and UUID
date, time, datetime   casts to DATE, TIME, TIMETZ and TIMESTAMP; with a time zone, in UTC,
                       to TIMESTAMPTZ
timedelta              a cast to INTERVAL, in days and microseconds
list, tuple            ``[…]``
dict                   ``{'field': …}``, a STRUCT
=====================  ====================================================

``?`` are numbered from 1 over the whole text, ``$1`` has its number, ``:name`` and ``$name``
have their name. A text uses one of the three, and every value that is given.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import InputError, SqlError, ValueTypeError
from everview.sql.positions import error_at, offset_of

Values: TypeAlias = Sequence[object] | Mapping[str, object]


class Parameters:
    """The values given with one text, and which of them it has used."""

    def __init__(self, given: Values | None, text: str) -> None:
        if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, Mapping, type(None))):
            raise ValueTypeError(
                f"parameters cannot be {_a(type(given).__name__)}",
                hint="give a list for ? and $1, or a dict for :name",
            )
        self._text = text
        self._named = isinstance(given, Mapping)
        if isinstance(given, Mapping):
            self._given = {str(name): value for name, value in given.items()}
        else:
            self._given = {str(number): value for number, value in enumerate(given or (), start=1)}
        self._style: str | None = None
        self._used: set[str] = set()
        self._ordinals: dict[int, str] = {}

    def number(self, tokens: Sequence[Token]) -> None:
        """Number the ``?`` of one more stretch of the text."""
        for token in tokens:
            if token.token_type == TokenType.PLACEHOLDER:
                self._ordinals.setdefault(token.start, str(len(self._ordinals) + 1))

    def fill(self, tree: exp.Expr) -> exp.Expr:
        """The tree with literals for its parameters."""
        for node in list(tree.find_all(exp.Placeholder)):
            literal = self._literal(node)
            literal.meta.update(node.meta)
            if node is tree:
                return literal
            node.replace(literal)
        return tree

    def filled(self, tokens: Sequence[Token], text: str) -> str:
        """The part of a text that these tokens are, with the values' literals for its parameters."""
        made: list[str] = []
        done = tokens[0].start
        waiting = iter(range(len(tokens)))
        for index in waiting:
            token = tokens[index]
            name = _name_behind(tokens, index)
            if token.token_type is not TokenType.PLACEHOLDER and name is None:
                continue
            end = token.end if name is None else name.end
            called = self._ordinals.get(token.start, "") if name is None else name.text
            if called not in self._given:
                continue
            self._used.add(called)
            made += [text[done : token.start], literal(self._given[called]).sql(dialect="duckdb")]
            done = end + 1
            if name is not None:
                next(waiting, None)
        return "".join([*made, text[done : tokens[-1].end + 1]])

    def finish(self) -> None:
        """Check that every value was used."""
        unused = [name for name in self._given if name not in self._used]
        if unused:
            what = f"parameter {unused[0]} is given, but the text does not use it"
            raise InputError(
                what, hint=f"leave it out, or write {':' if self._named else '$'}{unused[0]} where it goes"
            )

    def _literal(self, node: exp.Expr) -> exp.Expr:
        if "parameter" not in node.meta:
            raise error_at(SqlError, self._text, offset_of(node), "a parameter is written ?, $1 or :name")
        offset, end = node.meta["start"], node.meta["end"]
        spelled, width = self._text[offset : end + 1], end + 1 - offset
        name = node.meta["parameter"] or self._ordinals[offset]
        style = "?" if not node.meta["parameter"] else "$1" if name.isdigit() else ":name"
        if self._style not in (None, style):
            what = f"parameter {spelled} is mixed with parameters like {self._style}"
            raise error_at(SqlError, self._text, offset, what, width=width, hint="use ?, $1 or :name in one text")
        self._style = style
        if isinstance(node.parent, (exp.Table, exp.TableAlias, exp.Identifier, exp.Property)) and not (
            isinstance(node.parent, exp.Property) and node.arg_key == "value"
        ):
            what = f"parameter {spelled} cannot stand for a name"
            raise error_at(SqlError, self._text, offset, what, width=width, hint="parameters stand for values")
        if name not in self._given:
            what = f"parameter {spelled} has no value"
            raise error_at(SqlError, self._text, offset, what, width=width, why=self._what_is_given(), hint=_HOW[style])
        self._used.add(name)
        try:
            return literal(self._given[name])
        except RecursionError:
            raise ValueTypeError(f"parameter {spelled} is nested too deeply") from None
        except ValueTypeError as error:
            raise ValueTypeError(
                f"parameter {spelled} cannot be used: {error.message}", detail=error.detail, hint=error.hint
            ) from None

    def _what_is_given(self) -> str:
        if not self._given:
            return "no parameters are given"
        if self._named:
            return f"the given names are {', '.join(self._given)}"
        return f"{len(self._given)} given, without names" if len(self._given) > 1 else "one is given, without a name"


def _name_behind(tokens: Sequence[Token], index: int) -> Token | None:
    """The name of a parameter whose mark (``$`` or ``:``) is the token of this number."""
    mark = tokens[index]
    if mark.token_type not in (TokenType.PARAMETER, TokenType.COLON) or index + 1 == len(tokens):
        return None
    name = tokens[index + 1]
    return name if name.start == mark.end + 1 and (name.text.isidentifier() or name.text.isdigit()) else None


_HOW = {
    "?": "give a list with one value for each ?",
    "$1": "give a list with a value for each number",
    ":name": "give a dict with a value for each name",
}


# ------------------------------------------------------------------ values


def literal(value: object) -> exp.Expr:
    """A value as a tree that DuckDB gives the value's type."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return _cast(repr(float(value)), exp.DType.DOUBLE)
    if isinstance(value, str):
        return exp.Literal.string(_utf8(value))
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _cast("".join(f"\\x{byte:02X}" for byte in bytes(value)), exp.DType.VARBINARY)
    if isinstance(value, uuid.UUID):
        return _cast(str(value), exp.DType.UUID)
    if isinstance(value, (list, tuple)):
        return exp.Array(expressions=[literal(item) for item in value])
    if isinstance(value, dict):
        return _struct(value)
    return _time(value)


def _integer(value: int) -> exp.Expr:
    if -(1 << 127) <= value < 1 << 127:
        number = exp.Literal.number(str(abs(value)))
        return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
    if 0 <= value < 1 << 128:
        return _cast(str(value), exp.DType.UINT128)
    # Python limits how long a text it makes of an int; its decimals have no limit.
    return _cast(str(decimal.Decimal(value)), exp.DType.BIGNUM)


def _decimal(value: decimal.Decimal) -> exp.Expr:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueTypeError(f"{value} is not a DECIMAL", hint="give it as a float")
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > 38:
        raise ValueTypeError(f"the number has {precision} digits, a DECIMAL at most 38", hint="round it")
    kind = exp.DataType(
        this=exp.DType.DECIMAL,
        expressions=[exp.DataTypeParam(this=exp.Literal.number(number)) for number in (precision, scale)],
    )
    return exp.Cast(this=exp.Literal.string(f"{value:f}"), to=kind)


def _struct(value: dict[object, object]) -> exp.Expr:
    if not value or not all(isinstance(name, str) and name for name in value):
        raise ValueTypeError("a dict stands for a STRUCT, and its keys for names of fields", hint="use names as keys")
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(_utf8(str(name)), quoted=True), expression=literal(item))
            for name, item in value.items()
        ]
    )


def _time(value: object) -> exp.Expr:
    if isinstance(value, datetime.datetime):
        nanoseconds = int(getattr(value, "nanosecond", 0))
        if value.tzinfo is None and nanoseconds:
            return _cast(value.isoformat(sep=" "), exp.DType.TIMESTAMP_NS)
        if value.tzinfo is None:
            return _cast(value.isoformat(sep=" "), exp.DType.TIMESTAMPNTZ)
        try:
            return _cast(value.astimezone(datetime.UTC).isoformat(sep=" "), exp.DType.TIMESTAMPTZ)
        except OverflowError:
            raise ValueTypeError(f"{value} is out of range in UTC") from None
    if isinstance(value, datetime.date):
        return _cast(value.isoformat(), exp.DType.DATE)
    if isinstance(value, datetime.time) and value.tzinfo is None:
        return _cast(value.isoformat(), exp.DType.TIME)
    if isinstance(value, datetime.time) and value.utcoffset() is not None:
        return _cast(value.isoformat(), exp.DType.TIMETZ)
    if isinstance(value, datetime.timedelta):
        micros = value // datetime.timedelta(microseconds=1)
        days, rest = divmod(abs(micros), 86_400_000_000)
        sign = "-" if micros < 0 else ""
        return _cast(f"{sign}{days} days {sign}{rest} microseconds", exp.DType.INTERVAL)
    raise ValueTypeError(f"there is no SQL type for {_a(type(value).__name__)}", hint="convert it to a plain value")


def _cast(text: str, kind: exp.DType) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=kind))


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueTypeError("the text is not valid UTF-8", hint="remove lone surrogates") from None
    return text


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
