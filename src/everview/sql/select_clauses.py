"""Clauses of a SELECT in the one form that later stages read.

Parentheses in FROM, USING, WINDOW, GROUP BY and ORDER BY have short forms, which are written out here in
expressions of the query's own columns.

::

    SELECT q.a FROM ((SELECT a FROM t) AS q)              SELECT q.a FROM (SELECT a FROM t) AS q
    SELECT a.x FROM (a JOIN b ON a.x = b.x) JOIN c ON …   SELECT a.x FROM a JOIN b ON a.x = b.x JOIN c ON …
    SELECT sum(x) OVER w FROM t WINDOW w AS (…)           SELECT sum(x) OVER (…) FROM t
    SELECT a, b + 1 AS c, sum(d) FROM t GROUP BY ALL      … GROUP BY t.a, t.b + 1
    SELECT a, b, sum(d) FROM t GROUP BY ROLLUP (1, 2)     … GROUP BY ROLLUP (t.a, t.b)
    SELECT a, b FROM t ORDER BY ALL DESC                  … ORDER BY a DESC, b DESC
    SELECT DISTINCT ON (c) t.b + 1 AS c FROM t            SELECT DISTINCT ON (t.b + 1) …
"""

from __future__ import annotations

from sqlglot import exp

from everview.sql.aggregates import plain_columns
from everview.sql.resolution import Resolution, SelectScope

# ------------------------------------------------------------------ FROM


def take_off_parentheses(query: Resolution) -> None:
    """Parentheses around what FROM names, taken off where they change nothing. Joins in parentheses on the right of
    another join stay: they are made first."""
    for select in list(query.tree.find_all(exp.Select)):
        _unwrap(select)


def _unwrap(select: exp.Select) -> None:
    from_ = select.args.get("from_")
    for holder in [*([from_] if from_ is not None else []), *(select.args.get("joins") or [])]:
        while _is_wrapper(holder.this):
            around, inside = holder.this, holder.this.this
            joins = inside.args.get("joins") or []
            if joins and around.args.get("joins"):
                break
            holder.set("this", inside.pop())
            holder.this.set("joins", joins or around.args.get("joins"))
            if joins and holder is not from_ and not _is_wrapper(holder.this):
                holder.set("this", exp.Subquery(this=holder.this))
                break
    if from_ is not None and from_.this.args.get("joins") and not isinstance(from_.this, exp.Values):
        first = from_.this.args["joins"]
        from_.this.set("joins", None)
        select.set("joins", [*first, *(select.args.get("joins") or [])])


def _is_wrapper(node: exp.Expr) -> bool:
    """Whether a node is parentheses around a table or a subquery."""
    plain = isinstance(node, exp.Subquery) and not any(node.args.get(key) for key in ("alias", "pivots", "sample"))
    return plain and not node.meta and isinstance(node.this, exp.Table | exp.Subquery)


# ------------------------------------------------------------------ USING

BY_NAMES = "by_names"
"""The mark of a join that was written with USING or NATURAL."""
AS_OF = "as_of_using"
"""The mark of an as-of join that was written with USING."""


def choose_joined_columns(query: SelectScope) -> None:
    """Which side of a join the columns of USING come from.

    Sqlglot writes ``coalesce(a.k, b.k)``, which has no place in the text, for a column that USING or NATURAL has
    made one of two; all but full joins can do with a plain column, which is what keys are made of.

    | join | ``k`` is |
    |---|---|
    | inner, left, semi, anti, as-of | the left side's |
    | right | the right side's |
    | full | the first of both that is not null |

    So is what the next join by USING compares with, where sqlglot takes the first table that has such a column.

    An as-of join by USING has its inequality in the last column, which sqlglot takes for one more
    equality: the left side's is at least the right side's.
    """
    select = query.select
    joins = [join for join in select.find_all(exp.Join) if join.parent_select is select]
    sides = {join.alias_or_name: join.side for join in joins}
    made: dict[str, list[exp.Expr]] = {}
    for join in joins:
        if join.meta.pop(BY_NAMES, False):
            _compare(join, made)
        _as_of(join)
    for coalesce in list(select.find_all(exp.Coalesce)):
        parts = [coalesce.this, *coalesce.expressions]
        ours = "start" not in coalesce.meta and all(isinstance(part, exp.Column) for part in parts)
        if (
            not ours
            or len({part.name for part in parts}) != 1
            or not {part.table for part in parts[1:]} <= sides.keys()
        ):
            continue
        kept = [parts[0]]
        for part in parts[1:]:
            side = sides[part.table]
            if side == "FULL":
                kept.append(part)
            elif side == "RIGHT":
                kept = [part]
        if len(kept) < len(parts):
            coalesce.replace(_first(kept))


def _compare(join: exp.Join, made: dict[str, list[exp.Expr]]) -> None:
    """Have a join compare with the columns that earlier ones have made, and add its own."""
    on = join.args.get("on")
    for equal in list(on.flatten()) if isinstance(on, exp.And) else [on] if on is not None else []:
        if not isinstance(equal, exp.EQ) or not isinstance(equal.expression, exp.Column):
            continue
        right = equal.expression
        left = made.get(right.name) or [equal.this.copy()]
        if right.name in made:
            equal.set("this", _first(left))
        side = join.side.upper()
        made[right.name] = [right] if side == "RIGHT" else [*left, right] if side == "FULL" else left


def _first(columns: list[exp.Expr]) -> exp.Expr:
    """The first of some columns that is not null."""
    first, *others = (column.copy() for column in columns)
    return exp.Coalesce(this=first, expressions=others) if others else first


def _as_of(join: exp.Join) -> None:
    if not join.meta.pop(AS_OF, False):
        return
    last = join.args["on"]
    last = last.expression if isinstance(last, exp.And) else last
    last.replace(exp.GTE(this=last.this.copy(), expression=last.expression.copy()))


# ------------------------------------------------------------------ WINDOW


def write_out_windows(query: SelectScope) -> None:
    """WINDOW clauses, written out where they are used."""
    select = query.select
    defined: dict[str, exp.Window] = {}
    for window in select.args.get("windows") or ():
        _write_out(window, defined)
        defined[window.name] = window
    select.set("windows", None)
    for window in select.find_all(exp.Window):
        if window.parent_select is select:
            _write_out(window, defined)


def _write_out(window: exp.Window, defined: dict[str, exp.Window]) -> None:
    name = window.args.get("alias")
    if name is None or name.name not in defined:
        return
    base = defined[name.name].copy()
    window.set("alias", None)
    for key in ("partition_by", "order", "spec"):
        if not window.args.get(key) and base.args.get(key):
            window.set(key, base.args[key])


# ------------------------------------------------------------------ GROUP BY, DISTINCT ON, ORDER BY


def write_out_grouping(query: SelectScope) -> None:
    """GROUP BY ALL and by number, and DISTINCT ON, in expressions of the query's own columns."""
    select = query.select
    group = select.args.get("group")
    if group is not None:
        _group_by_number(select, group)
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


def _group_by_number(select: exp.Select, group: exp.Group) -> None:
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


def order_by_all_columns(query: Resolution) -> None:
    """ORDER BY ALL as a list of all columns."""
    for ordered in list(query.tree.find_all(exp.Query)):
        _list_order(ordered)


def _list_order(query: exp.Query) -> None:
    order = query.args.get("order")
    if order is None or len(order.expressions) != 1:
        return
    only = order.expressions[0]
    if isinstance(only.this, exp.Var) and only.this.name.upper() == "ALL":
        every = []
        for name in query.named_selects:
            key = only.copy()
            key.set("this", exp.column(name))
            every.append(key)
        order.set("expressions", every)
