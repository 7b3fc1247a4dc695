"""Statements that are Everview's own, read word by word.

EXPLAIN, SHOW, DESCRIBE, FLUSH and SET mean the same in every dialect, so they
are read from the tokens and sqlglot never sees them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot.tokenizer_core import TokenType

from everview.sql.dialects import reader
from everview.sql.options import SETTINGS, STORE_SETTINGS, Option, checked_option, nearest
from everview.sql.pieces import Piece
from everview.sql.statements import (
    CreateIndex,
    CreateMaterializedView,
    CreateView,
    Describe,
    Explain,
    ExplainFormat,
    Flush,
    Select,
    SetDialect,
    SetGlobal,
    SetOption,
    Show,
    ShowCreate,
    ShowKind,
    Statement,
)

_NAME = re.compile(r"[^\W\d][\w$]*")
_CREATED = (("TABLE",), ("VIEW",), ("MATERIALIZED", "VIEW"), ("INDEX",))


def read_explain(piece: Piece, read: Callable[[Piece], Statement]) -> Explain:
    """``EXPLAIN [(FORMAT TEXT | JSON | SVG)] statement``."""
    form, begin = ExplainFormat.TEXT, 1
    if piece.word(1) == "(" and piece.word(2) == "FORMAT":
        if piece.word(3) not in ExplainFormat.__members__:
            raise piece.unexpected(3, "TEXT, JSON or SVG")
        if piece.word(4) != ")":
            raise piece.unexpected(4, ")")
        form, begin = ExplainFormat[piece.word(3)], 5
    if piece.word(begin) in ("ANALYZE", "ANALYSE", "VERBOSE"):
        raise piece.refuse(
            piece.tokens[begin],
            f"there is no EXPLAIN {piece.word(begin)}",
            hint="write EXPLAIN: it says what each change will cost without making one",
        )
    inner = piece.rest(begin)
    explained = read(inner)
    if not isinstance(explained, (Select, CreateMaterializedView, CreateView, CreateIndex)):
        raise piece.refuse(
            inner.tokens[0],
            f"{inner.word(0)} has no plan to explain",
            hint="explain a SELECT, a CREATE [MATERIALIZED] VIEW or a CREATE INDEX",
        )
    return Explain(explained, form)


def read_show(piece: Piece) -> Show | ShowCreate:
    """``SHOW TABLES | VIEWS | INDEXES | GROUPS`` and ``SHOW CREATE [kind] name``."""
    word = piece.word(1)
    if word == "CREATE":
        return _read_show_create(piece)
    if word not in ShowKind.__members__:
        hint = nearest(word, [*ShowKind.__members__, "CREATE"], "show") if word else None
        raise piece.unexpected(1, "TABLES, VIEWS, INDEXES, GROUPS or CREATE", hint)
    _end(piece, 2)
    return Show(ShowKind[word])


def _read_show_create(piece: Piece) -> ShowCreate:
    for words in _CREATED:
        begin = 2 + len(words)
        # A table may be called "view": the word is a kind only where a name follows it.
        if begin < len(piece.tokens) and all(piece.word(2 + i) == word for i, word in enumerate(words)):
            name = _name(piece, begin)
            _end(piece, begin + 1)
            return ShowCreate(name, " ".join(words).lower())
    name = _name(piece, 2)
    _end(piece, 3)
    return ShowCreate(name)


def read_describe(piece: Piece) -> Describe:
    begin = 2 if piece.word(1) in ("TABLE", "VIEW") and len(piece.tokens) > 2 else 1
    if piece.word(begin) in ("SELECT", "WITH", "FROM", "VALUES", "("):
        raise piece.refuse(
            piece.tokens[begin], "a query cannot be described", hint="describe a table or view, or EXPLAIN the query"
        )
    name = _name(piece, begin)
    _end(piece, begin + 1)
    return Describe(name)


def read_flush(piece: Piece) -> Flush:
    _end(piece, 1)
    return Flush()


def read_set(piece: Piece) -> SetDialect | SetOption | SetGlobal:
    """``SET [GLOBAL] name = value`` or ``SET [GLOBAL] name TO value``."""
    at = 2 if piece.word(1) == "GLOBAL" and piece.word(2) not in ("=", "TO") else 1
    name = _name(piece, at, "the name of a setting")
    if piece.word(at + 1) not in ("=", "TO"):
        raise piece.unexpected(at + 1, "= or TO")
    value = _value(piece, at + 2)
    _end(piece, at + 3)
    if at == 1 and name.lower() in STORE_SETTINGS:
        raise piece.refuse(
            piece.tokens[1], f"{name} holds for the store, not for a session", hint=f"write SET GLOBAL {name} = …"
        )
    with piece.placed(piece.tokens[at]):
        kind, known = ("setting", SETTINGS) if at == 1 else ("global setting", STORE_SETTINGS)
        name, value = checked_option(kind, known, name, value)
    if at == 2:
        return SetGlobal(name, value)
    if name == "dialect":
        with piece.placed(piece.tokens[3]):
            return SetDialect(reader(value).name)
    return SetOption(name, value)


# ------------------------------------------------------------------ tokens


def _name(piece: Piece, index: int, expected: str = "a name") -> str:
    if index < len(piece.tokens):
        token = piece.tokens[index]
        if token.token_type == TokenType.IDENTIFIER or (piece.word(index) and _NAME.fullmatch(token.text)):
            if piece.word(index + 1) == ".":
                raise piece.refuse(token, "names stand without a schema", hint="there is one schema; leave it out")
            return token.text
    raise piece.unexpected(index, expected)


def _value(piece: Piece, index: int) -> Option:
    if index < len(piece.tokens):
        token = piece.tokens[index]
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return token.text
        if piece.word(index) in ("TRUE", "FALSE"):
            return piece.word(index) == "TRUE"
        if re.fullmatch(r"\d{1,18}", token.text):
            return int(token.text)
        if piece.word(index) and _NAME.fullmatch(token.text):
            return token.text
    raise piece.unexpected(index, "a value such as 'text', 5 or true")


def _end(piece: Piece, index: int) -> None:
    if index < len(piece.tokens):
        raise piece.unexpected(index, "the end of the statement")
