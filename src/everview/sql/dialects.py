"""How text is read into trees: the dialect Everview speaks, and those it reads besides.

Every tree that leaves this module means what DuckDB means by it, whatever dialect it
was written in, and knows where in the original text its names stand.

**Everview's own dialect** (:mod:`everview.sql.own_dialect`) is DuckDB's, where sqlglot reads it otherwise
put right. So trees are turned into text with :func:`to_sql`, never with sqlglot's own ``duckdb``.

**Other dialects** are read by sqlglot, written as Everview's text and read again::

    SELECT `a` / 2 FROM t ORDER BY a                  mysql: / is exact, nulls are small
    SELECT CAST(a AS DOUBLE) / 2 FROM t ORDER BY a NULLS FIRST

That loses positions, so names carry a number through the round trip: the text is written a
second time with each name replaced by ``"name⟨17⟩"``, and what comes back as number 17
stands where name 17 stood. Where the numbered text reads differently from the plain one
(sqlglot looks at names in some rewrites) the plain one is right, and its names are taken to
stand where the original has the same names in the same order. So are literals and calls, always.

**Three changes to sqlglot's parsers**, in every dialect: an error keeps the token it
happened at; a statement that cannot be read is an error instead of an opaque ``Command``;
and a parameter (``?``, ``$1``, ``:name``) keeps its place and name in its ``meta``, see
:mod:`everview.sql.parameters`.

**sqlglot's log.** Everything that is wrong with a text is in the error that is raised, so while a statement is read or
checked sqlglot's warnings about it go nowhere (:func:`quiet`); at other times, and in other threads, its logger does
what the application wants of it.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

from sqlglot import Dialects, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError, UnsupportedError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from everview.errors import DefinitionError, EverviewError, SqlRefusedError, SqlSyntaxError
from everview.sql.copies import copied
from everview.sql.marks import unwrapped
from everview.sql.other_meanings import with_our_meaning
from everview.sql.own_dialect import Everview
from everview.sql.positions import error_at, offset_of
from everview.sql.settings import connect

DEFAULT = "duckdb"
"""The dialect of texts that name none: Everview's own goes by DuckDB's name."""


TRANSLATED = "dialect"
"""The mark in ``meta`` of a tree that was written in another dialect: which one."""


def to_sql(tree: exp.Expr, *, pretty: bool = False) -> str:
    """The text of a tree, for DuckDB."""
    try:
        return copied(tree).sql(dialect=Everview, pretty=pretty, unsupported_level=ErrorLevel.RAISE, copy=False)
    except RecursionError:
        raise too_deep() from None
    except UnsupportedError as error:
        raise SqlRefusedError(
            "DuckDB's SQL has no words for a part of the text", detail=str(error), hint="write it in DuckDB's SQL"
        ) from None


def too_deep() -> SqlRefusedError:
    return SqlRefusedError(
        "the statement is nested too deeply",
        hint="name parts of it with WITH, or cut it into views on views",
    )


_AT_WORK: ContextVar[bool] = ContextVar("everview_reads_sql", default=False)


def _is_for_the_application(record: logging.LogRecord) -> bool:
    return not _AT_WORK.get()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let sqlglot log nothing inside."""
    logger = logging.getLogger("sqlglot")
    if _is_for_the_application not in logger.filters:
        logger.addFilter(_is_for_the_application)
    token = _AT_WORK.set(True)
    try:
        yield
    finally:
        _AT_WORK.reset(token)


class ParseFailure(ParseError):
    """sqlglot's error, with the token it happened at. sqlglot itself catches it where it tries
    one reading after another."""

    def __init__(self, message: str, token: Token | None, behind: bool, at_end: bool) -> None:
        super().__init__(message, [{"description": message}])
        self.token = token
        self.behind = behind
        """Whether the token itself was read, and what is behind it is wrong."""
        self.at_end = at_end


class _ChangedParser(Parser):
    """What is changed in the parser of every dialect."""

    _NAMES = Parser.ID_VAR_TOKENS | {TokenType.IDENTIFIER, TokenType.STRING}

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        found = token or self._curr or self._prev or None
        raise ParseFailure(message, found, behind=found is self._prev, at_end=not self._curr)

    def _parse_as_command(self, start: Token) -> NoReturn:
        self.raise_error("Unsupported syntax")

    def _parse_command(self) -> NoReturn:
        self.raise_error("Unsupported syntax", self._prev)

    def _parse_expression(self) -> exp.Expr | None:
        # DuckDB's "alias: value" is tried wherever a colon comes second, as in SELECT :name.
        if self._next.token_type == TokenType.COLON and self._curr.token_type not in self._NAMES:
            return Parser._parse_expression(self)
        return super()._parse_expression()

    def _parse_unnamed_parameter(self) -> exp.Expr:
        return self._parameter(self._prev, None)

    def _parse_dollar_parameter(self) -> exp.Expr | None:
        mark = self._prev
        if mark.text != "$":
            return self._parse_parameter()
        if self._is_connected() and (self._match(TokenType.NUMBER) or self._match_set(self.ID_VAR_TOKENS)):
            return self._parameter(mark, self._prev)
        return None

    def _parse_colon_parameter(self) -> exp.Expr | None:
        mark = self._prev
        if self._is_connected() and self._match_set(self.COLON_PLACEHOLDER_TOKENS):
            return self._parameter(mark, self._prev)
        return None

    def _parameter(self, mark: Token, name: Token | None) -> exp.Placeholder:
        found = self.expression(exp.Placeholder(this=str(mark.start)), mark)
        found.meta["parameter"] = name.text if name else ""
        found.meta["end"] = (name or mark).end
        return found


_READ_AS = {"athena": "trino"}
"""Athena's own parser hands each text over to Hive's or Trino's, out of our reach; queries go to Trino's."""

_NODES = 50
"""Parts of a tree that may be made for each token. Some parsers try every reading of every
argument, and at each level of nesting again: that ends here."""


class Reader:
    """Reads texts of one dialect."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._dialect = Everview() if name == DEFAULT else Dialect.get_or_raise(_READ_AS.get(name, name))
        parser, tokenizer = self._dialect.parser_class, self._dialect.tokenizer_class
        parameters = {
            TokenType.PLACEHOLDER: _ChangedParser._parse_unnamed_parameter,
            TokenType.PARAMETER: _ChangedParser._parse_dollar_parameter,
            TokenType.COLON: _ChangedParser._parse_colon_parameter,
        }
        # Without commands the tokenizer reads EXPLAIN and SHOW like everything else; with them it
        # swallows the rest of the statement as one string.
        self._tokenizer: type[Tokenizer] = type(f"{tokenizer.__name__}Whole", (tokenizer,), {"COMMANDS": set()})
        self._parser: type[Parser] = type(
            f"{parser.__name__}Reading",
            (_ChangedParser, parser),
            {"PLACEHOLDER_PARSERS": parser.PLACEHOLDER_PARSERS | parameters},
        )

    def read(self, text: str) -> exp.Expr:
        """The tree of a text that is one statement."""
        try:
            tokens = self.tokens(text)
        except TokenError as error:
            raise SqlSyntaxError("the text cannot be read", detail=str(error)) from None
        return self.tree(tokens, text)

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a text, without its comments: a tree holds what a text means."""
        tokens = self._tokenizer(dialect=self._dialect).tokenize(text)
        for token in tokens:
            token.comments = []
        return tokens

    def tree(self, tokens: list[Token], text: str) -> exp.Expr:
        """One statement as sqlglot reads it in this dialect; its shape, not yet its meaning."""
        most = _NODES * len(tokens) + 1000
        parser = self._parser(dialect=self._dialect, error_level=ErrorLevel.IMMEDIATE, max_nodes=most)
        try:
            trees = parser.parse(tokens, text)
        except ParseFailure as error:
            raise too_deep() if parser._node_count > most else _syntax_error(text, error) from None
        except RecursionError:
            raise too_deep() from None
        except EverviewError:
            raise
        except Exception as error:  # a parser fed with anything may fail in any way
            raise _unreadable(text, tokens[0], str(error)) from error
        if len(trees) != 1 or trees[0] is None:
            raise _unreadable(text, tokens[0], "there is no statement in it")
        return trees[0]

    def meaning(self, tree: exp.Expr, text: str) -> exp.Expr:
        """A query or expression of :meth:`tree` as Everview's own tree, which stands alone."""
        if isinstance(self._dialect, Everview):
            return tree.pop() if tree.parent else tree
        try:
            found = unwrapped(_translated(with_our_meaning(tree, self.name, text)))
            found.meta[TRANSLATED] = self.name
            return found
        except RecursionError:
            raise too_deep() from None
        except EverviewError:
            raise
        except Exception as error:  # whatever fails in translating, the text cannot be used
            what = f"this {self.name} text has no counterpart in DuckDB's SQL"
            raise error_at(
                SqlRefusedError,
                text,
                offset_of(_untranslatable(tree)),
                what,
                why=str(error) if isinstance(error, SqlglotError) else None,
                hint="write it in DuckDB's SQL",
            ) from error


@functools.cache
def reader(name: str) -> Reader:
    """The reader of a dialect, by any spelling of its name."""
    known = {dialect.value for dialect in Dialects if dialect.value}
    folded = name.strip().lower()
    if folded not in known:
        near = difflib.get_close_matches(folded, sorted(known), n=1)
        raise DefinitionError(
            f"there is no dialect {name}",
            hint=f"did you mean {near[0]}?" if near else f"the dialects are {', '.join(sorted(known))}",
        )
    return Reader(folded)


@functools.cache
def reserved_words() -> frozenset[str]:
    """The words, in lower case, that name a table only in quotes; sqlglot takes some of them."""
    with connect() as connection:
        found = connection.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
        return frozenset(word for (word,) in found.fetchall())


# ------------------------------------------------------------------ errors


def _syntax_error(text: str, error: ParseFailure) -> EverviewError:
    description = str(error)
    expected = re.fullmatch(r"[Ee]xpect(?:ing|ed) (.+?)(?: but got .*)?\.?", description, re.DOTALL)
    why = f"expected {expected[1]}" if expected else _plain(description)
    if error.token is None:
        return error_at(SqlSyntaxError, text, len(text), "the statement is not complete", why=why)
    if error.at_end:
        what = f"the statement ends too early after {error.token.text!r}"
        return error_at(SqlSyntaxError, text, error.token.end + 1, what, why=why)
    if error.behind:
        what = f"what follows {error.token.text!r} cannot be read"
        return error_at(SqlSyntaxError, text, error.token.end + 1, what, why=why)
    width = error.token.end - error.token.start + 1
    what = f"unexpected {text[error.token.start : error.token.end + 1]!r}"
    return error_at(SqlSyntaxError, text, error.token.start, what, width=width, why=why)


def _plain(description: str) -> str | None:
    """sqlglot's words without its classes; nothing where they add nothing to the mark."""
    missing = re.match(r"Required keyword: '(\w+)' missing for <class '(?:\w+\.)*(\w+)'>", description)
    if missing:
        return f"{_words(missing[2])} lacks a part"
    if description.startswith(("Invalid expression", "Unsupported syntax")):
        return None
    return re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", description)


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


def _unreadable(text: str, token: Token, why: str) -> EverviewError:
    return error_at(SqlSyntaxError, text, token.start, "the statement cannot be read", why=why or None)


# ------------------------------------------------------------------ translation

_Node = TypeVar("_Node", bound=exp.Expr)
_NUMBERED = re.compile(r"(.*)⟨(\d+)⟩", re.DOTALL)


def _translated(tree: exp.Expr) -> exp.Expr:
    plain = _reread(tree)
    names = list(tree.find_all(exp.Identifier))
    numbered = _renumbered(tree, names)
    if numbered is not None and numbered == plain:
        plain = numbered
    else:
        _place_by_order(plain, names, lambda name: name.name.lower())
    _place_by_order(plain, list(tree.find_all(exp.Literal)), lambda one: (one.is_string, one.this))
    _place_by_order(plain, list(tree.find_all(exp.Func)), _function)
    return plain


def _function(node: exp.Expr) -> object:
    """What calls of one function have in common."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else type(node)


def _untranslatable(tree: exp.Expr) -> exp.Expr:
    """The smallest part of a tree that cannot be written in DuckDB's SQL, or else the tree."""
    for node in reversed(list(tree.find_all(exp.Func, exp.Unary, exp.Binary, exp.Query))):
        try:
            _reread(node)
        except (SqlglotError, EverviewError, ValueError, TypeError, AttributeError):
            return node
    return tree


def _reread(tree: exp.Expr) -> exp.Expr:
    """The tree written and read as Everview's; an expression goes as the only column of a SELECT."""
    whole = isinstance(tree, (exp.Query, exp.Values))
    sql = tree.sql(dialect=Everview, unsupported_level=ErrorLevel.RAISE)
    text = sql if whole else f"SELECT {sql}"
    try:
        read = reader(DEFAULT).read(text)
    except SqlSyntaxError:  # its place is one in the written text, which the user never sees
        raise SqlglotError("it cannot be written in DuckDB's SQL") from None
    for node in read.walk():
        for key in ("line", "col", "start", "end"):
            node.meta.pop(key, None)
    return read if whole else read.expressions[0].pop()


def _renumbered(tree: exp.Expr, names: list[exp.Identifier]) -> exp.Expr | None:
    """The tree after the round trip, its names placed by number; None where that fails."""
    marked = tree.copy()
    for number, name in enumerate(list(marked.find_all(exp.Identifier))):
        name.replace(exp.to_identifier(f"{name.name}⟨{number}⟩", quoted=True))
    try:
        read = _reread(marked)
    except (SqlglotError, EverviewError):
        return None
    for name in list(read.find_all(exp.Identifier)):
        found = _NUMBERED.fullmatch(name.name)
        if found:
            original = names[int(found[2])]
            name.set("this", original.this)
            name.set("quoted", original.args.get("quoted"))
            name.meta.update(_placed(original))
    return read


def _place_by_order(tree: exp.Expr, originals: Sequence[_Node], key: Callable[[_Node], object]) -> None:
    """Nodes of a tree stand where the original has the same ones, in the same order."""
    placed = [node for node in originals if "start" in node.meta]
    if not placed:
        return
    kinds = {type(node) for node in placed}
    waiting: dict[object, list[_Node]] = {}
    for node in sorted(placed, key=lambda node: int(node.meta["start"]), reverse=True):
        waiting.setdefault(key(node), []).append(node)
    for node in tree.find_all(*kinds, bfs=False):
        same = waiting.get(key(node))
        if same and "start" not in node.meta:
            node.meta.update(_placed(same.pop() if len(same) > 1 else same[0]))


def _placed(name: exp.Expr) -> dict[str, Any]:
    return {key: name.meta[key] for key in ("line", "col", "start", "end") if key in name.meta}
