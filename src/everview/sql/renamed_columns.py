"""ORDER BY of a subquery whose columns get other names outside of it.

Sqlglot gives the columns of a subquery the names that its alias lists, and leaves the old
ones in its ORDER BY, so what names a column there names its place instead.

::

    FROM (SELECT a, b FROM t ORDER BY b) AS q(x, y)        FROM (SELECT a, b FROM t ORDER BY 2) AS q(x, y)
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from everview.sql.dialects import to_sql
from everview.sql.expand import is_whole
from everview.sql.namespace import fold
from everview.sql.typer import Described


def renamed_columns(tree: exp.Expr, describe: Callable[[str], Described | None]) -> None:
    """Replace names of columns in such an ORDER BY by their places, in every subquery below a node. Raises
    where a name stands for several columns."""
    for subquery in tree.find_all(exp.Subquery):
        alias = subquery.args.get("alias")
        if not isinstance(alias, exp.TableAlias) or not alias.columns or is_whole(subquery):
            continue
        for query in _named_queries(subquery.this):
            if query.args.get("order") is not None:
                _by_place(query, describe)


def _named_queries(query: exp.Expr) -> list[exp.Expr]:
    """The queries whose columns are renamed with those of a query: itself, and the sides of a set operation."""
    if isinstance(query, exp.SetOperation):
        return [query, *_named_queries(query.left), *_named_queries(query.right)]
    return [query, *_named_queries(query.this)] if isinstance(query, exp.Subquery) else [query]


def _by_place(query: exp.Expr, describe: Callable[[str], Described | None]) -> None:
    parts = [(part, _key(part)) for part in query.args["order"].expressions]
    waiting = [part for part, key in parts if isinstance(key, exp.Column) and not key.table]
    described = describe(to_sql(query)) if waiting else None
    if described is None:
        return
    names = [fold(name) for name in described.names]
    for part in waiting:
        name = fold(_key(part).name)
        if names.count(name) > 1:
            raise ValueError(f"{name} is the name of several columns")
        if name in names:
            place = exp.Literal.number(names.index(name) + 1)
            part.set("this", place) if isinstance(part, exp.Ordered) else part.replace(place)


def _key(part: exp.Expr) -> exp.Expr:
    found: exp.Expr = part.this if isinstance(part, exp.Ordered) else part
    return found
