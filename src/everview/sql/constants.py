"""Queries that differ only in the constants of their WHERE are resolved once.

What a comparison in WHERE compares with changes neither names nor types, so a
query that was checked before with other constants is answered by putting the new ones in.

::

    SELECT id FROM orders WHERE amount > 10 AND region = 'north'      resolved
    SELECT id FROM orders WHERE amount > 25 AND region = 'south'      the same, two constants later

Thousands of selection views on one table are the case in point: DuckDB is asked once, and
sqlglot resolves names once. Only comparisons with literals at the top of the outermost WHERE
count, joined by AND, OR and NOT: everything else may show in a type or in a column's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from sqlglot import exp

from everview.sql.copies import copied
from everview.sql.dialects import to_sql
from everview.sql.typer import Columns

CONSTANT = "constant"
"""The mark of a constant in ``meta``: its number."""

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)


@dataclass(frozen=True)
class ResolvedQuery:
    """A query that was checked: as it was before its names were resolved, and after."""

    before: exp.Expr
    after: exp.Expr
    columns: Columns


_KNOWN: dict[tuple[object, ...], ResolvedQuery] = {}
_MOST_KNOWN = 1000
"""Queries that were resolved, by what they are without their constants; past so many all are forgotten."""


def known_query(key: tuple[object, ...]) -> ResolvedQuery | None:
    return _KNOWN.get(key)


def remember_query(key: tuple[object, ...], resolved: ResolvedQuery) -> None:
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[key] = resolved


def mark_constants(tree: exp.Expr) -> list[exp.Literal]:
    """The constants of a query's WHERE, marked with their numbers."""
    found = list(_constants(tree))
    for number, literal in enumerate(found):
        literal.meta[CONSTANT] = number
    return found


def template(tree: exp.Expr, constants: Sequence[exp.Literal]) -> str:
    """The query's text without its constants, but with what kind each is of."""
    values = [literal.this for literal in constants]
    for literal in constants:
        literal.set("this", "a text" if literal.is_string else "an integer" if literal.is_int else "a number")
    try:
        return to_sql(tree)
    finally:
        for literal, value in zip(constants, values, strict=True):
            literal.set("this", value)


def with_constants(known: ResolvedQuery, tree: exp.Expr, constants: Sequence[exp.Literal]) -> exp.Expr | None:
    """The resolved query with these constants, and with the places of this query's text; None if
    the queries are different after all, which two trees of one text can be."""
    pairs = list(zip_longest(known.before.walk(), tree.walk()))
    if any(type(old) is not type(new) or old.meta.get(CONSTANT) != new.meta.get(CONSTANT) for old, new in pairs):
        return None
    places = {
        old.meta["start"]: {key: new.meta[key] for key in _PLACE if key in new.meta}
        for old, new in pairs
        if "start" in old.meta
    }
    found = copied(known.after)
    for node in list(found.walk()):
        number = node.meta.get(CONSTANT)
        if number is not None:
            node.replace(copied(constants[number]))
        elif "start" in node.meta:
            node.meta.update(places.get(node.meta["start"], {}))
    return found


_PLACE = ("line", "col", "start", "end")


def _constants(tree: exp.Expr) -> Iterator[exp.Literal]:
    where = tree.args.get("where") if isinstance(tree, exp.Select) else None
    waiting = [where.this] if where is not None else []
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And | exp.Or | exp.Paren | exp.Not):
            waiting.extend(node.iter_expressions())
        elif isinstance(node, _COMPARISONS) and not node.args.get("query"):
            yield from (part for part in node.iter_expressions() if isinstance(part, exp.Literal))
