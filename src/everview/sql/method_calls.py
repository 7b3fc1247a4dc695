"""Functions called like methods, written as plain calls.

::

    SELECT p.name.upper().left(3) FROM people p
    SELECT left(upper(p.name), 3) FROM people p

What stands before the dot is a column, with or without its table, or any other expression; if it
is the schema ``main``, which all functions are in, it goes.
"""

from __future__ import annotations

from sqlglot import exp

from everview.sql.namespace import fold


def method_calls(tree: exp.Expr) -> None:
    """Rewrite such calls in place, the innermost first."""
    for column in [column for column in tree.find_all(exp.Column) if isinstance(column.this, exp.Filter)]:
        # sqlglot takes a call with FILTER for the column of a table.
        names = column.parts[:-1]
        column.replace(exp.Dot.build([*(name.copy() for name in names), column.this.copy()]))
    for dot in reversed(list(tree.find_all(exp.Dot))):
        call, owner = dot.expression, dot.this
        while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.Window):
            call = call.this
        if not isinstance(call, exp.Anonymous):
            continue
        first = _value(owner)
        if isinstance(owner, exp.Identifier) and fold(owner.name) == "main" and call.expressions:
            dot.replace(dot.expression.pop())
        elif first is not None:
            call.set("expressions", [first, *call.expressions])
            dot.replace(dot.expression.pop())


def _value(owner: exp.Expr) -> exp.Expr | None:
    """The expression before the dot; names are read as a column of at most a table."""
    if isinstance(owner, exp.Paren) and isinstance(owner.this, exp.Identifier):
        owner = owner.this
    if isinstance(owner, exp.Identifier):
        return exp.Column(this=owner.copy())
    if not isinstance(owner, exp.Dot):
        return owner.copy()
    table, column = owner.this, owner.expression
    if isinstance(table, exp.Dot):
        return None
    if not isinstance(table, exp.Identifier) or not isinstance(column, exp.Identifier):
        return owner.copy()
    return exp.Column(this=column.copy(), table=table.copy())
