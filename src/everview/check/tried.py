"""A query that leaves out rows whose expression failed, as views do.

A view goes on without the rows for which an expression fails, while a query as a
whole fails, so every SELECT passes only rows over whose expressions TRY finds no error.

::

    SELECT id, CAST(s AS INTEGER) AS n FROM t
    SELECT t.id, TRY(CAST(t.s AS INTEGER)) AS n FROM t WHERE TRY(CAST(t.s AS INTEGER) IS NULL) IS NOT NULL

``TRY(e IS NULL)`` is null only where e fails. Of a grouped SELECT the rows are judged by what is grouped
by and what is aggregated; a group whose aggregate fails cannot be left out this way, and the query fails.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from everview.sql.aggregates import is_aggregate
from everview.sql.expansion import is_whole

_SIMPLE = (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Star)


def tried(tree: exp.Expr) -> exp.Expr:
    """A checked query in which rows whose expression failed are left out. The original is not changed."""
    holder = exp.Paren(this=tree.copy())
    for select in list(holder.find_all(exp.Select)):
        if not is_whole(select):
            _try_rows(select)
    found: exp.Expr = holder.this.pop()
    return found


def _try_rows(select: exp.Select) -> None:
    of_rows = [_has_value(one) for one in _of_rows(select)]
    for join in select.args.get("joins") or ():
        if join.args.get("on") is not None and _can_be_tried(join.args["on"]):
            join.set("on", _tried(join.args["on"]))
    where = select.args.get("where")
    conditions = [] if where is None else [_tried(where.this) if _can_be_tried(where.this) else where.this]
    conditions += of_rows
    if conditions:
        select.set("where", exp.Where(this=exp.and_(*conditions)))
    for output in select.expressions:
        inner = output.unalias()
        if not isinstance(inner, _SIMPLE) and _can_be_tried(inner):
            inner.replace(_tried(inner)) if inner is not output else output.replace(_tried(output))


def _of_rows(select: exp.Select) -> Iterator[exp.Expr]:
    """What is computed of each row that the SELECT reads: by itself, or to be grouped and aggregated."""
    group = select.args.get("group")
    groups = [part for one in (group.expressions if group is not None else ()) for part in _grouped(one)]
    parts = [*(output.unalias() for output in select.expressions), *groups, *_join_keys(select)]
    parts += [part.this for part in (select.args.get(place) for place in ("having", "qualify")) if part is not None]
    seen: set[exp.Expr] = set()
    for part in parts:
        for one in [part] if _can_be_tried(part) else _arguments(part):
            if not isinstance(one, _SIMPLE) and _can_be_tried(one) and one not in seen:
                seen.add(one)
                yield one


def _join_keys(select: exp.Select) -> Iterator[exp.Expr]:
    """What rows are joined by: a row without such a value is in no line of the answer, not even alone."""
    for join in select.args.get("joins") or ():
        waiting = [join.args["on"]] if join.args.get("on") is not None else []
        while waiting:
            one = waiting.pop().unnest()
            if isinstance(one, exp.And):
                waiting += [one.left, one.right]
            elif isinstance(one, exp.EQ | exp.NullSafeEQ):
                sides = (one.left, one.right)
                yield from (side for side in sides if len({column.table for column in side.find_all(exp.Column)}) == 1)


def _grouped(part: exp.Expr) -> Iterator[exp.Expr]:
    """What is grouped by, also in grouping sets."""
    if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        for one in part.expressions:
            yield from _grouped(one)
    else:
        yield part


def _arguments(part: exp.Expr) -> Iterator[exp.Expr]:
    for node in part.walk(prune=lambda node: isinstance(node, exp.Query)):
        if is_aggregate(node) or isinstance(node, exp.Window):
            for child in node.iter_expressions():
                yield from child.expressions if isinstance(child, exp.Distinct) else [child]


def _can_be_tried(node: exp.Expr) -> bool:
    return not any(isinstance(part, exp.Query | exp.Window | exp.Order) or is_aggregate(part) for part in node.walk())


def _tried(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="TRY", expressions=[node.copy()])


def _has_value(node: exp.Expr) -> exp.Expr:
    asked = _tried(exp.Is(this=exp.paren(node.copy()), expression=exp.Null()))
    return exp.Not(this=exp.Is(this=asked, expression=exp.Null()))
