"""GROUP BY ALL and by number, ORDER BY ALL and DISTINCT ON, in expressions of the query's own columns.

::

    SELECT a, b + 1 AS c, sum(d) FROM t GROUP BY ALL     … GROUP BY t.a, t.b + 1
    SELECT a, b, sum(d) FROM t GROUP BY ROLLUP (1, 2)    … GROUP BY ROLLUP (t.a, t.b)
    SELECT a, b FROM t ORDER BY ALL DESC                 … ORDER BY a DESC, b DESC
    SELECT DISTINCT ON (c) t.b + 1 AS c FROM t           SELECT DISTINCT ON (t.b + 1) …
"""

from __future__ import annotations

from sqlglot import exp

from everview.sql.outer_aggregates import plain_columns


def grouping(select: exp.Select) -> None:
    group = select.args.get("group")
    if group is not None:
        _by_number(select, group)
    for call in [node for part in select.iter_expressions() for node in part.find_all(exp.GroupingId)]:
        call.replace(exp.Grouping(expressions=call.expressions))
    if group is not None and group.args.get("all"):
        plain = [part.unalias() for part in plain_columns(select)]
        varying = [part for part in plain if part.find(exp.Column)]
        # DuckDB groups by no constants: where nothing else is left there is one group, or none at all.
        select.set("group", exp.Group(expressions=[part.copy() for part in varying]) if varying else None)
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        outputs = {part.output_name: part.unalias() for part in select.expressions}
        for column in list(distinct.args["on"].find_all(exp.Column)):
            if not column.table and column.name in outputs:
                column.replace(outputs[column.name].copy())


def _by_number(select: exp.Select, group: exp.Group) -> None:
    """Numbers of columns inside ROLLUP, CUBE and GROUPING SETS; sqlglot has replaced the others."""
    waiting: list[exp.Expr] = [
        part for part in group.expressions if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets)
    ]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            waiting.extend(part.expressions)
        elif isinstance(part, exp.Paren):
            waiting.append(part.this)
        elif isinstance(part, exp.Literal) and part.is_int and 0 < int(part.name) <= len(select.expressions):
            meant = select.expressions[int(part.name) - 1].unalias()
            if not isinstance(meant, exp.Literal):
                part.replace(meant.copy())


def order_by_all(query: exp.Query) -> None:
    order = query.args.get("order")
    if order is None or len(order.expressions) != 1:
        return
    only = order.expressions[0]
    if isinstance(only.this, exp.Var) and only.this.name.upper() == "ALL":
        every = []
        for name in query.named_selects:
            one = only.copy()
            one.set("this", exp.column(name))
            every.append(one)
        order.set("expressions", every)
