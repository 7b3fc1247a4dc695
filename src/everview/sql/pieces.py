"""A text cut into its statements.

A :class:`Piece` is the tokens of one statement with the text and the dialect
they come from, and every error about it is made here, because here the places are known.

Statements are separated by semicolons. ``SET dialect`` changes how the rest of the text is
cut into tokens (a backtick is a quote here and a mistake there), so a text is cut in
stretches, each one up to the next ``SET dialect``.

The tree of a statement is taken over field by field: a reader of a node names the fields that it understands
(:func:`only`), and any other field that is set is refused, so that no part of a user's text is silently ignored.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import DefinitionError, SqlError, SqlRefusedError, SqlSyntaxError
from everview.sql.dialects import DEFAULT, Reader
from everview.sql.positions import STATEMENT, TextPosition, error_at, offset_of, position

QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
"""What a query begins with."""
_SET_DIALECT = re.compile(r"\bset\s+dialect\b[^;]*;", re.IGNORECASE)
_MISSING = re.compile(r"Missing (.+) from \d+:(\d+)")
_QUOTED = frozenset({TokenType.STRING, TokenType.IDENTIFIER, TokenType.HEREDOC_STRING, TokenType.NATIONAL_STRING})


@dataclass(frozen=True)
class Piece:
    """One statement, or the rest of one, in tokens. There is at least one."""

    reader: Reader
    tokens: tuple[Token, ...]
    source: str

    @property
    def text(self) -> str:
        return self.source[self.tokens[0].start : self.end]

    @property
    def at(self) -> TextPosition:
        return position(self.source, self.tokens[0].start)

    @property
    def end(self) -> int:
        """The offset behind the last token."""
        return self.tokens[-1].end + 1

    def word(self, index: int) -> str:
        """A word or mark in upper case; empty for what is quoted, and past the end."""
        if index >= len(self.tokens) or self.tokens[index].token_type in _QUOTED:
            return ""
        return self.tokens[index].text.upper()

    def rest(self, index: int) -> Piece:
        """The statement that begins at a token inside this one."""
        if index >= len(self.tokens):
            raise self.ends_early("a statement")
        return Piece(self.reader, self.tokens[index:], self.source)

    def tree(self) -> exp.Expr:
        return self.reader.tree(list(self.tokens), self.source)

    def meaning(self, tree: exp.Expr) -> exp.Expr:
        """A query or expression of :meth:`tree` in Everview's dialect."""
        found = self.reader.meaning(tree, self.source)
        found.meta[STATEMENT] = self.tokens[0].start
        return found

    def find(self, *words: str, after: int = 0) -> Token | None:
        """The first token from an offset on that is, or begins with, one of these words."""
        for index, token in enumerate(self.tokens):
            if token.start >= after and self.word(index).split(" ")[0] in words:
                return token
        return None

    def following(self, offset: int) -> Token | None:
        """The first token behind the one at an offset."""
        return next((token for token in self.tokens if token.start > offset), None)

    @property
    def query_at(self) -> int | None:
        """The number of the token at which the statement's query begins; None where it has none."""
        if self.word(0) != "CREATE":
            return 0 if self.word(0) in QUERIES else None
        depth = 0
        for index, token in enumerate(self.tokens):
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            if depth == 0 and self.word(index) == "AS" and index + 1 < len(self.tokens):
                return index + 1
        return None

    def with_query(self, query: str) -> Piece:
        """The statement with another query in the place of its own."""
        start, at = self.tokens[0].start, self.query_at
        kept = self.source[start : self.tokens[at].start if at is not None else self.end]
        text = f"{' ' * start}{kept}{query}"
        return Piece(self.reader, tuple(self.reader.tokens(text)), text)

    def check_characters(self) -> None:
        """Refuse what sqlglot lets pass: odd characters in names, and 0x1F, which is a number
        there and 0 with the alias x1F in DuckDB."""
        for token in self.tokens:
            if token.token_type == TokenType.HEX_STRING and self.source.startswith("0", token.start):
                hint = "write numbers in decimal, and bytes as x'1F'"
                if self.reader.name == DEFAULT:
                    raise self._error(SqlSyntaxError, token, "a number has no digits in hexadecimal", None, hint)
            known = token.token_type != TokenType.UNKNOWN or token.text.upper() == "UNKNOWN"
            if known and (token.token_type != TokenType.VAR or token.text.isprintable()):
                continue
            raise error_at(
                SqlSyntaxError,
                self.source,
                token.start,
                f"the character {token.text[:1]!r} has no meaning",
                why="it stands outside of quotes",
                hint='names are quoted like "this", unless SET dialect says otherwise',
            )

    # -------------------------------------------------------------- errors

    def refuse(
        self, place: exp.Expr | Token | None, what: str, *, why: str | None = None, hint: str | None = None
    ) -> SqlError:
        """The error for what Everview does not do."""
        return self._error(SqlRefusedError, place, what, why, hint)

    def unexpected(self, index: int, expected: str, hint: str | None = None) -> SqlError:
        """The error for a token that cannot stand where it stands."""
        if index >= len(self.tokens):
            return self.ends_early(expected)
        token = self.tokens[index]
        what = f"unexpected {self.source[token.start : token.end + 1]!r}"
        return self._error(SqlSyntaxError, token, what, f"expected {expected}", hint)

    def ends_early(self, expected: str) -> SqlError:
        what = f"the statement ends too early after {self.tokens[-1].text!r}"
        return error_at(SqlSyntaxError, self.source, self.end, what, why=f"expected {expected}")

    @contextlib.contextmanager
    def placed(self, place: exp.Expr | Token | None) -> Iterator[None]:
        """Errors of definitions made inside get this place."""
        try:
            yield
        except SqlError:
            raise
        except DefinitionError as error:
            raise self._error(SqlRefusedError, place, error.message, error.detail, error.hint) from None

    def _error(
        self, kind: type[SqlError], place: exp.Expr | Token | None, what: str, why: str | None, hint: str | None
    ) -> SqlError:
        if isinstance(place, Token):
            width = place.end - place.start + 1
            return error_at(kind, self.source, place.start, what, width=width, why=why, hint=hint)
        offset = None if place is None else offset_of(place)
        start = self.tokens[0].start if offset is None else offset
        width = next((token.end - token.start + 1 for token in self.tokens if token.start == start), 1)
        return error_at(kind, self.source, start, what, width=width, why=why, hint=hint)


def stretch(text: str, begin: int, reader: Reader) -> list[Piece]:
    """The statements of a text from an offset on: all of them, or those up to the next ``SET
    dialect`` where the text behind it cannot be cut into tokens in this dialect."""
    try:
        return _pieces(text, begin, reader, text)
    except TokenError as error:
        switch = _SET_DIALECT.search(text, begin)
        if switch:
            with contextlib.suppress(TokenError):
                pieces = _pieces(text[: switch.end()], begin, reader, text)
                if pieces and (pieces[-1].word(0), pieces[-1].word(1)) == ("SET", "DIALECT"):
                    return pieces
        raise _token_error(text, error) from None


def _pieces(text: str, begin: int, reader: Reader, source: str) -> list[Piece]:
    # What was read already becomes blanks, so that tokens keep their offsets.
    tokens = reader.tokens(" " * begin + text[begin:])
    pieces: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [Piece(reader, tuple(piece), source) for piece in pieces if piece]


def _token_error(text: str, error: TokenError) -> SqlError:
    missing = _MISSING.search(str(error.__cause__ or error))
    if missing:
        what = f"the quote {missing[1]} is not closed"
        return error_at(SqlSyntaxError, text, int(missing[2]), what, why="it begins at the mark")
    offset = (error.start + 50 if error.start else error.end) or 0
    return error_at(SqlSyntaxError, text, offset, "the text cannot be read", why=str(error.__cause__ or error))


# ------------------------------------------------------------------ trees taken over field by field

_WORDS = {"cluster": "ON", "order": "ORDER BY", "group": "GROUP BY", "exists": "IF EXISTS"}
"""How fields are written that have other names in sqlglot."""


def only(piece: Piece, node: exp.Expr, understood: Collection[str], what: str) -> None:
    """Refuse the node if a field is set that is not understood."""
    for name, value in node.args.items():
        if name in understood or value is None or value is False or value == []:
            continue
        word = _WORDS.get(name) or name.strip("_").replace("_", " ").upper()
        first = value[0] if isinstance(value, list) else value
        token = piece.find(word.split(" ")[0])
        place = token or (first if isinstance(first, exp.Expr) else node)
        raise piece.refuse(place, f"{what} cannot have {word}", hint="leave it out")


def plain_name(piece: Piece, node: object, what: str) -> str:
    """The name of a table, view or index, which stands alone: no schema, no alias."""
    if isinstance(node, exp.Identifier):
        return node.name
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        place = node if isinstance(node, exp.Expr) else None
        raise piece.refuse(place, f"{what} needs a name", hint="write a plain name")
    if node.args.get("db") or node.args.get("catalog"):
        raise piece.refuse(
            node, f"{node.name} stands without a schema before it", hint=f"there is one schema; write {node.name}"
        )
    only(piece, node, ("this",), what)
    return node.name


def aliased_name(piece: Piece, node: object, what: str) -> tuple[str, str | None]:
    """The name of a table, and the alias behind it."""
    alias = node.args.get("alias") if isinstance(node, exp.Table) else None
    if not isinstance(node, exp.Table) or alias is None:
        return plain_name(piece, node, what), None
    only(piece, alias, ("this",), what)
    bare = node.copy()
    bare.set("alias", None)
    return plain_name(piece, bare, what), alias.name


def names(piece: Piece, nodes: Collection[object], what: str) -> tuple[str, ...]:
    """A list of names of columns."""
    found = []
    for node in nodes:
        if isinstance(node, exp.Column) and not node.args.get("table"):
            node = node.this
        if not isinstance(node, exp.Identifier):
            place = node if isinstance(node, exp.Expr) else None
            raise piece.refuse(place, f"{what} takes names of columns", hint="list plain names")
        found.append(node.name)
    return tuple(found)
