"""Names of columns without an alias, as DuckDB makes them of what the user wrote.

One sentence: sqlglot writes ``list(x)`` as ``array_agg(x)``, which means the same but would
name the column otherwise; so where DuckDB understands the user's own text, it names the columns.
"""

from __future__ import annotations

from sqlglot import exp

from everview.errors import EverviewError
from everview.sql.dialects import DEFAULT, reader
from everview.sql.positions import offset_of
from everview.sql.typer import Described, Inputs, typer


def has_names(query: exp.Expr) -> bool:
    """Whether every column of a query has a name of its own."""
    first = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    return isinstance(first, exp.Select) and all(
        isinstance(part, exp.Alias | exp.Column | exp.Star) for part in first.expressions
    )


def source_names(query: exp.Expr, text: str, inputs: Inputs, described: Described) -> Described:
    """What DuckDB says of the query, with the names it gives to the text it was read from."""
    source = _text_of(query, text)
    found = typer().attempt(source, inputs) if source else None
    return found if isinstance(found, Described) and found.types == described.types else described


def _text_of(query: exp.Expr, text: str) -> str | None:
    """The part of the text that the query was read from: it begins at some token before the
    first name in it, ends with its statement, and reads as the same query."""
    begin = offset_of(query)
    if begin is None:
        return None
    own = reader(DEFAULT)
    try:
        tokens = own.tokens(text)
        ends = [token.start for token in tokens if token.text == ";" and token.start > begin]
        end = min(ends, default=len(text))
        for token in tokens:
            if token.start > begin:
                return None
            if token.text.upper() in ("SELECT", "WITH", "FROM", "VALUES", "("):
                source = text[token.start : end]
                try:
                    if own.tree(own.tokens(source), source) == query:
                        return source
                except EverviewError:
                    continue
    except EverviewError:
        return None
    return None
