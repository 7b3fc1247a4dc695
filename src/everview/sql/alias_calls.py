"""alias(…), which is the name of a column, as that name.

::

    SELECT alias(a) AS x, upper(alias(a)) AS y FROM t        SELECT 'x' AS x, upper('a') AS y FROM t

A call that is a column of its own is called what the column is called; inside an expression it is the name
of its argument. Of an argument that is no column that would be the words of the text, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from everview.errors import SqlRefusedError
from everview.sql.positions import error_at, offset_of


def refuse_unnamed(tree: exp.Expr, text: str) -> None:
    """Refuse calls whose argument has no name."""
    for call in _calls(tree):
        if _name(call) is None:
            raise error_at(
                SqlRefusedError,
                text,
                offset_of(call),
                "alias() takes a column",
                width=len("alias"),
                why="the name of an expression depends on the words of the text",
                hint="write the name itself: 'name'",
            )


def alias_calls(tree: exp.Expr) -> None:
    """Replace the calls below a node."""
    for call in list(_calls(tree)):
        call.replace(exp.Literal.string(_name(call) or ""))


def _calls(tree: exp.Expr) -> Iterator[exp.Anonymous]:
    calls = tree.find_all(exp.Anonymous)
    return (call for call in calls if call.name.lower() == "alias" and len(call.expressions) == 1)


def _name(call: exp.Anonymous) -> str | None:
    if isinstance(call.parent, exp.Alias):
        return call.parent.alias
    (argument,) = call.expressions
    if isinstance(argument, exp.Column | exp.Columns | exp.Star):
        return argument.name
    return None
