"""Which calls are aggregates, and to which query each belongs.

DuckDB knows more aggregates than sqlglot has classes for, and an aggregate that stands in a
subquery may belong to a query around it: it belongs to the innermost query one of whose tables its arguments read,
as in the SQL standard, and there it is computed, wherever in that query's subqueries it stands.

::

    SELECT EXISTS (SELECT 1 FROM e WHERE e.a > MIN(o.a)) FROM t AS o       one row: the least a of all of t
    SELECT EXISTS (SELECT 1 FROM e WHERE e.a > m.x) FROM (SELECT MIN(o.a) AS x FROM t AS o) AS m

What counts as read are the columns of the arguments, of FILTER and of ORDER BY inside the call. A call
that reads no column (``count(*)``) belongs to the query it stands in; so does one over a subquery
alone, whatever that reads.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from sqlglot import exp

from everview.sql.typer import typer

WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""What may stand around the call of an aggregate or window function."""


@functools.cache
def aggregate_names() -> frozenset[str]:
    """Every aggregate of DuckDB, in lower case."""
    return frozenset(name for name, kind, _, _ in typer().functions() if kind == "aggregate")


def called(node: exp.Expr) -> str:
    """The name of a function in lower case, as sqlglot or the text has it."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a call is one of an aggregate; over a window it may be something else still."""
    if isinstance(node, exp.AggFunc):
        return True
    return isinstance(node, exp.Anonymous) and node.name.lower() in aggregate_names()


def aggregates(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregates that an expression of a SELECT computes: not those of subqueries inside
    it, nor what is computed over a window."""
    found = []
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)):
        over = node.parent
        while isinstance(over, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
            over = over.parent
        if is_aggregate(node) and not isinstance(over, exp.Window):
            found.append(node)
    return found


# ------------------------------------------------------------------ of which query


def sources_of(query: exp.Expr) -> list[exp.Expr]:
    """What stands in the FROM of a SELECT."""
    start = query.args.get("from_")
    joins = [join.this for join in query.args.get("joins") or ()]
    found = [*([start.this] if start else []), *joins, *(query.args.get("laterals") or ())]
    more = [join.this for source in found for join in source.args.get("joins") or ()]
    bare = [
        part
        for source in (*found, *more)
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table)
        for part in (source.this, *(join.this for join in source.this.args.get("joins") or ()))
    ]
    return [*found, *more, *bare]


def names_of(query: exp.Expr) -> frozenset[str]:
    """The names of what stands in the FROM of a SELECT, in lower case."""
    return frozenset(source.alias_or_name.lower() for source in sources_of(query))


def computed_parts(query: exp.Expr) -> list[exp.Expr]:
    """The parts of a SELECT in which its aggregates may stand."""
    parts = [*query.expressions]
    parts += [query.args[name] for name in ("having", "qualify", "order") if query.args.get(name)]
    return [*parts, *(query.args.get("windows") or ())]


def outer_aggregates(query: exp.Expr) -> list[exp.Expr]:
    """The aggregates in subqueries of a SELECT that belong to this SELECT, with their FILTER."""
    own = names_of(query)
    return [found for part in computed_parts(query) for found in _below(part, own, None)]


def plain_columns(query: exp.Expr) -> list[exp.Expr]:
    """The columns that a SELECT shows and in which none of its aggregates stands: those GROUP BY ALL is by."""
    own = names_of(query)
    return [
        part for part in query.expressions if not aggregates(part) and not any(True for _ in _below(part, own, None))
    ]


def may_hold_outer_aggregates(tree: exp.Expr) -> bool:
    """Whether an aggregate in a subquery inside a tree may belong to the query that the tree stands in,
    or to one around that. Columns without a table may be of any query."""
    return any(True for _ in _below(tree, None, None))


def _below(node: exp.Expr, own: frozenset[str] | None, inner: frozenset[str] | None) -> Iterator[exp.Expr]:
    """Calls that read one of the ``own`` tables (None: of any) and none of the ``inner`` ones; inner is None
    outside of all subqueries."""
    if isinstance(node, exp.Query):
        inner = (inner or frozenset()) | (names_of(node) if isinstance(node, exp.Select) else frozenset())
    if inner is not None and _is_call(node):
        read = {column.table.lower() for column in own_columns(node)}
        if read and not read & inner and (own is None or read & own):
            yield node
            return
    for part in _parts(node):
        yield from _below(part, own, inner)


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a node consists of. A call with its FILTER, or over a window, is one node."""
    called = node.this if isinstance(node, (exp.Window, *WRAPPERS)) else None
    for part in node.iter_expressions():
        if part is called:
            yield from _parts(part)
        else:
            yield part


def _is_call(node: exp.Expr) -> bool:
    while isinstance(node, WRAPPERS):
        node = node.this
    if is_aggregate(node):
        return True
    if not isinstance(node, exp.Func) or isinstance(node, exp.AggFunc | exp.Anonymous):
        return False
    return any(name.lower() in aggregate_names() for name in node.sql_names())


def own_columns(node: exp.Expr) -> list[exp.Column]:
    """The columns of a tree that stand outside of the subqueries in it."""
    return [part for part in node.walk(prune=lambda part: isinstance(part, exp.Query)) if isinstance(part, exp.Column)]
