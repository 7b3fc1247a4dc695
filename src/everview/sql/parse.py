"""Text to statements.

:func:`parse` cuts a text at its semicolons and reads each piece into the
dataclass of what it asks for, or raises an error that shows where it is wrong.

    >>> [type(found).__name__ for found in parse("CREATE TABLE t (a INTEGER PRIMARY KEY); SELECT a FROM t")]
    ['CreateTable', 'Select']

What a statement begins with decides who reads it: a few are Everview's own (EXPLAIN, SHOW,
DESCRIBE, FLUSH, SET: :mod:`everview.sql.commands`), the others are read by sqlglot and taken
over field by field (:mod:`everview.sql.definition_statements`, :mod:`everview.sql.write_statements`). What a
field does not cover is refused, never ignored. Nothing is looked up in a catalog here.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from everview.errors import SqlError, SqlRefusedError, SqlSyntaxError
from everview.sql import commands, definition_statements, write_statements
from everview.sql.dialects import DEFAULT, quiet, reader, too_deep
from everview.sql.own_parse import parse_tree
from everview.sql.parameters import Parameters, Values
from everview.sql.pieces import Piece, stretch
from everview.sql.positions import error_at, otherwise_at
from everview.sql.statements import OwnWords, SetDialect, Statement

_OWN: dict[str, Callable[[Piece], Statement]] = {
    "SHOW": commands.read_show,
    "DESCRIBE": commands.read_describe,
    "DESC": commands.read_describe,
    "FLUSH": commands.read_flush,
    "SET": commands.read_set,
}

_READ: tuple[tuple[type[exp.Expr], Callable[[Piece, exp.Expr], Statement]], ...] = (
    (exp.Create, definition_statements.read_create),
    (exp.Alter, definition_statements.read_alter),
    (exp.Drop, definition_statements.read_drop),
    (exp.Insert, write_statements.read_insert),
    (exp.Update, write_statements.read_update),
    (exp.Delete, write_statements.read_delete),
    (exp.Query, write_statements.read_select),
    (exp.Values, write_statements.read_select),
)

_BEGINNINGS = (
    "CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE", "SELECT", "WITH", "VALUES", "FROM", "TABLE", "(",
    "EXPLAIN", "SHOW", "DESCRIBE", "DESC", "FLUSH", "SET",
)  # fmt: skip
SUPPORTED = (
    "CREATE TABLE, ALTER TABLE … ADD COLUMN, CREATE [MATERIALIZED] VIEW, CREATE INDEX, DROP, INSERT, UPDATE, "
    "DELETE, SELECT, EXPLAIN, SHOW, DESCRIBE, FLUSH and SET"
)
_INSTEAD = {
    "TRUNCATE": "write DELETE FROM table",
    "REPLACE": "write INSERT: a row whose key exists is replaced",
    "UPSERT": "write INSERT: a row whose key exists is replaced",
    "MERGE": "write INSERT … SELECT, which replaces rows whose key exists, and DELETE",
    "REFRESH": "views are kept up to date by themselves; FLUSH waits until they are",
    "BEGIN": "each statement is a transaction; for several writes at once use a batch of the client",
    "START": "each statement is a transaction; for several writes at once use a batch of the client",
    "COMMIT": "each statement is a transaction; for several writes at once use a batch of the client",
    "ROLLBACK": "each statement is a transaction; for several writes at once use a batch of the client",
    "PIVOT": "write SELECT … FROM table PIVOT (…)",
    "UNPIVOT": "write SELECT … FROM table UNPIVOT (…)",
    "PRAGMA": "write SET name = value",
    "USE": "there is one schema; leave it out",
}


def parse(text: str, dialect: str = DEFAULT, params: Values | None = None) -> tuple[Statement, ...]:
    """The statements of a text. ``params`` are the values of ``?`` and ``$1`` (a sequence) or of
    ``:name`` (a mapping)."""
    _refuse_surrogates(text)
    parameters = Parameters(params, text)
    found: list[Statement] = []
    begin, language = 0, reader(dialect)
    while begin < len(text):
        end = len(text)
        for piece in stretch(text, begin, language):
            piece.check_characters()
            parameters.number(piece.tokens)
            found.append(statement(piece, parameters))
            if isinstance(found[-1], SetDialect):
                language, end = reader(found[-1].dialect), piece.end
                break
        begin = end
    parameters.finish()
    return tuple(found)


def statement(piece: Piece, parameters: Parameters) -> Statement:
    """What one piece asks for."""
    with quiet(), otherwise_at(piece.source, piece.tokens[0].start):
        try:
            return replace(_read(piece, parameters), text=piece.text, at=piece.at, source=piece.source)
        except RecursionError:
            raise too_deep() from None


def _read(piece: Piece, parameters: Parameters) -> Statement:
    word = piece.word(0)
    if word == "EXPLAIN":
        return commands.read_explain(piece, lambda inner: statement(inner, parameters))
    if word in _OWN:
        return _OWN[word](piece)
    if word not in _BEGINNINGS:
        raise _unknown(piece)
    tree, words = _tree(piece, parameters)
    for kind, read in _READ:
        if isinstance(tree, kind):
            return replace(read(piece, tree), words=words)
    raise _unknown(piece)


def _tree(piece: Piece, parameters: Parameters) -> tuple[exp.Expr, OwnWords | None]:
    """A statement as it is read, and the words of its query. A query that DuckDB reads and sqlglot does not is
    nothing but words; in the tree another stands for it."""
    at = piece.query_at if piece.reader.name == DEFAULT else None
    try:
        tree = parameters.fill(piece.tree())
    except SqlSyntaxError:
        words = _words(piece, at, parameters)
        if words is None or parse_tree(words.text) is None:
            raise
        return piece.with_query("SELECT 1").tree(), replace(words, is_read=False)
    return tree, _words(piece, at, parameters)


def _words(piece: Piece, at: int | None, parameters: Parameters) -> OwnWords | None:
    if at is None:
        return None
    return OwnWords(parameters.filled(piece.tokens[at:], piece.source), piece.tokens[at].start)


def _refuse_surrogates(text: str) -> None:
    """Halves of characters, which no UTF-8 text has and DuckDB is not given."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"the character {text[error.start]!r} is half of one"
        raise error_at(SqlSyntaxError, text, error.start, what, why="the text is not valid UTF-8") from None


def _unknown(piece: Piece) -> Exception:
    word, token = piece.word(0), piece.tokens[0]
    shown = piece.source[token.start : token.end + 1]
    kind: type[SqlError] = SqlRefusedError if word in _INSTEAD else SqlSyntaxError
    hint = _INSTEAD.get(word) or _meant(word)
    what = f"Everview has no statement {shown}"
    return error_at(kind, piece.source, token.start, what, width=len(shown), hint=hint)


def _meant(word: str) -> str:
    near = difflib.get_close_matches(word, _BEGINNINGS, n=1)
    return f"did you mean {near[0]}?" if near else f"the statements are {SUPPORTED}"
