"""What DuckDB itself makes of the text that a query was read from.

Sqlglot reads more than DuckDB does and writes it otherwise, so where the user's
own words can be found and are DuckDB's SQL, DuckDB says whether they are well formed and what
the columns without an alias are called.

::

    SELECT list(x) FROM t        sqlglot writes array_agg(x), which would name the column so
    SELECT a,, b FROM t          sqlglot reads a, b

Words are not looked at where the text is in another dialect, has parameters, or says something
that is ours and not DuckDB's: then sqlglot's reading stands.
"""

from __future__ import annotations

import re

from sqlglot import exp

from everview.errors import EverviewError, SqlRefusedError, SqlSyntaxError
from everview.sql.dialects import DEFAULT, TRANSLATED, reader
from everview.sql.positions import STATEMENT, error_at
from everview.sql.statements import OwnWords
from everview.sql.ties import has_ties
from everview.sql.typer import Described, Failure, Inputs, typer

_BEGINNINGS = re.compile(r"\b(?:SELECT|WITH|FROM|VALUES)\b|\(", re.IGNORECASE)
_BEFORE = 2000
_TRIES = 8
"""How far before its first name a query begins at most, and at how many words it is tried."""


def has_names(query: exp.Expr) -> bool:
    """Whether every column of a query has a name of its own."""
    first = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    return isinstance(first, exp.Select) and all(
        isinstance(part, exp.Alias | exp.Column | exp.Star) for part in first.expressions
    )


def as_written(
    query: exp.Expr, text: str, words: OwnWords | None, inputs: Inputs, described: Described | Failure
) -> Described | Failure:
    """What DuckDB says of the query, with the names it gives to the words it was read from; where these are
    not known they are looked for in the text."""
    source = None if has_ties(query) or TRANSLATED in query.meta else words or _source(query, text)
    if source is None:
        return described
    found = typer().attempt(source.text, inputs)
    if isinstance(found, Failure) and found.kind == "Parser":
        offset = source.start + (found.offset or 0)
        token = found.message.partition("at or near ")[2].removeprefix('"').removesuffix('"')
        what = f"unexpected {token!r}" if token else "the query cannot be read"
        raise error_at(SqlSyntaxError, text, offset, what, width=len(token) or 1, why=None if token else found.message)
    if isinstance(found, Failure) or isinstance(described, Failure):
        return described
    if found.types != described.types:
        raise _otherwise(source, text, found, described)
    return found


def _otherwise(source: OwnWords, text: str, found: Described, described: Described) -> EverviewError:
    """The error of a column that would have another type: mostly a row taken as a value, whose fields
    are called after expressions without a name."""
    if len(found.columns) != len(described.columns):
        return error_at(
            SqlRefusedError,
            text,
            source.start,
            "the columns of the query can be read in two ways",
            why=f"DuckDB reads {len(found.columns)} of them, and Everview {len(described.columns)}",
            hint="name the columns one by one instead of *",
        )
    (name, own), (_, other) = next(
        pair for pair in zip(found.columns, described.columns, strict=True) if pair[0][1] != pair[1][1]
    )
    return error_at(
        SqlRefusedError,
        text,
        source.start,
        f"column {name} can be read in two ways",
        why=f"as {own} and as {other}",
        hint="give the columns of subqueries names: … AS name",
    )


def wording(query: exp.Expr, text: str, words: OwnWords | None) -> str:
    """How a query is worded, constants and spaces aside: two queries that sqlglot reads alike but
    of which DuckDB would refuse one are not worded alike."""
    if words is not None:
        return _plain(words.text)
    first, last = _extent(query)
    if first is None:
        return ""
    before = text[max(0, first - 60) : first]
    select = before.upper().rfind("SELECT")
    return _plain((before[select:] if select >= 0 else "") + text[first:last])


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"'[^']*'|\b\d+(?:\.\d+)?", "0", text))


def _source(query: exp.Expr, text: str) -> OwnWords | None:
    """The part of the text that the query was read from: it begins at some word before the
    first name in it, ends with its statement, and reads as the same query."""
    first, last = _extent(query)
    if first is None:
        return None
    end = text.find(";", last)
    end = len(text) if end < 0 else end
    starts = [found.start() for found in _BEGINNINGS.finditer(text, max(0, first - _BEFORE), first)]
    own = reader(DEFAULT)
    for start in [*reversed(starts[-_TRIES:]), first]:
        words = text[start:end]
        try:
            if own.read(words) == query:
                return OwnWords(words, start)
        except EverviewError:
            continue
    return None


def _extent(query: exp.Expr) -> tuple[int | None, int]:
    """From the first name or constant of a query to the end of the last."""
    places = [(node.meta["start"], node.meta["end"]) for node in query.walk() if "start" in node.meta]
    if not places:
        return query.meta.get(STATEMENT), query.meta.get(STATEMENT, 0)
    return min(places)[0], max(end for _, end in places) + 1
