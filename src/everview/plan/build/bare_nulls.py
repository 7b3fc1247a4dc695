"""Columns that are nothing but NULL: wherever one is used, NULL is written instead.

DuckDB gives a bare NULL a type of its own, which fits everywhere, while a field of a
relation has the type of a value, so uses of such a column do not go through a field.

::

    SELECT coalesce(q.note, o.name) FROM (SELECT id, NULL AS note FROM t) AS q JOIN o ON …
    SELECT coalesce(NULL, o.name) FROM (SELECT id, NULL AS note FROM t) AS q JOIN o ON …
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope


def without_bare_nulls(tree: exp.Query) -> exp.Query:
    """The checked query in which no column of a subquery that is nothing but NULL is used."""
    if not any(isinstance(part.unalias(), exp.Null) for select in tree.find_all(exp.Select) for part in select.selects):
        return tree
    tree = tree.copy()
    try:
        scopes = traverse_scope(tree)
    except SqlglotError:  # a part that stays whole is not resolved
        return tree
    for scope in scopes:
        for column in [column for column in scope.columns if _is_null(scope, column)]:
            null = exp.Null()
            column.replace(exp.alias_(null, column.name, quoted=True) if _is_output(column) else null)
    return tree


def _is_null(scope: Scope, column: exp.Column) -> bool:
    source = scope.sources.get(column.table)
    return isinstance(source, Scope) and column.name.lower() in _nulls(source.expression)


def _nulls(query: exp.Expr) -> set[str]:
    """The columns of a query that are NULL in every row, in lower case."""
    if isinstance(query, exp.Subquery):
        return _nulls(query.this)
    if isinstance(query, exp.SetOperation):
        left, right = query.left, query.right
        if query.args.get("by_name") or not isinstance(left, exp.Select) or not isinstance(right, exp.Select):
            return set()
        pairs = zip(left.selects, right.selects, strict=False)
        return {one.alias_or_name.lower() for one, other in pairs if _bare(one) and _bare(other)}
    return (
        {part.alias_or_name.lower() for part in query.selects if _bare(part)}
        if isinstance(query, exp.Select)
        else set()
    )


def _bare(output: exp.Expr) -> bool:
    return isinstance(output.unalias(), exp.Null)


def _is_output(column: exp.Column) -> bool:
    return isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
