"""A query bound by DuckDB: which columns of which types it has.

DuckDB binds the text that is written from our tree. Sqlglot reads more than DuckDB does and writes it otherwise, so
where the user's own words can be found and are DuckDB's SQL, DuckDB binds these too: they decide whether the query is
well formed and what the columns without an alias are called.

::

    SELECT list(x) FROM t        sqlglot writes array_agg(x), which would name the column so
    SELECT a,, b FROM t          sqlglot reads a, b

Words are not used where the text is in another dialect, has parameters, or has constructs
that are ours and not DuckDB's: then sqlglot's reading stands.

For ``SELECT customer, sum(amount) FROM orders GROUP BY 1`` the columns are
``(('customer', Type('INTEGER')), ('sum(amount)', Type('DOUBLE')))``.
"""

from __future__ import annotations

import re

from sqlglot import exp

from everview.errors import EverviewError, SqlRefusedError, SqlSyntaxError, SqlTypeError
from everview.sql.aggregates import is_aggregate
from everview.sql.dialects import DEFAULT, TRANSLATED, reader
from everview.sql.positions import STATEMENT, error_at, offset_of
from everview.sql.refused_constructs import endless_join
from everview.sql.statements import OwnWords
from everview.sql.ties import has_ties
from everview.sql.typer import Columns, Described, Failure, Inputs, storable, typer

# ------------------------------------------------------------------ columns and types


def typed_columns(described: Described, tree: exp.Expr, text: str) -> Columns:
    """The columns with types that a table can hold, or the error at the first that has another."""
    columns = []
    for number, (name, type) in enumerate(described.columns):
        try:
            columns.append((name, storable(name, type)))
        except SqlTypeError as error:
            offset = offset_of(_output(tree, number, described))
            raise error_at(SqlTypeError, text, offset, error.message, why=error.detail, hint=error.hint) from None
    return tuple(columns)


def _output(tree: exp.Expr, number: int, described: Described) -> exp.Expr:
    """The expression of an output column where the query lists its columns one by one; else the query."""
    first = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if isinstance(first, exp.Select) and len(first.expressions) == len(described.columns):
        output: exp.Expr = first.expressions[number]
        return output
    return tree


_ROWS = (exp.Unnest, exp.Explode, exp.GenerateSeries, exp.Lateral)


def makes_rows(tree: exp.Expr) -> bool:
    """Whether a query over empty tables may have rows nevertheless, many of them or one that fails only there: it
    is not evaluated to see whether it can be."""
    if any(with_.recursive for with_ in tree.find_all(exp.With)) or endless_join(tree) is not None:
        return True
    functions = any(isinstance(table.this, exp.Func) for table in tree.find_all(exp.Table))
    functions = functions or any(is_aggregate(node) for node in tree.walk())
    return functions or next(tree.find_all(*_ROWS), None) is not None


# ------------------------------------------------------------------ the user's own words

_BEGINNINGS = re.compile(r"\b(?:SELECT|WITH|FROM|VALUES)\b|\(", re.IGNORECASE)
_BEFORE = 2000
_TRIES = 8
"""How far before its first name a query begins at most, and at how many words it is tried."""


ASSEMBLED = "assembled"
"""The mark in ``meta`` of a query that is put together from parts of a statement: no text has all of its words."""


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
    """DuckDB's description of the query, with the names it gives to the words it was read from; where these are
    not known they are looked for in the text."""
    is_worded = not (has_ties(query) or TRANSLATED in query.meta or ASSEMBLED in query.meta)
    source = (words or _source(query, text)) if is_worded else None
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
