"""Orders that subqueries give their rows.

DuckDB hands the rows of a subquery in FROM on in the order of its ORDER BY, so what depends on the
order of its rows and names none itself is given that of the subquery.

::

    SELECT list(x) FROM (SELECT x FROM t ORDER BY y) AS s
    SELECT list(s.x ORDER BY s.__order_1) FROM (SELECT t.x, t.y AS __order_1 FROM t ORDER BY t.y) AS s

WHERE and what is computed row by row leave the order as it is, so it is passed on through subqueries that have none of
their own. Joins, groups, windows, DISTINCT and UNION ALL have orders of DuckDB's own making behind them: where one of
them stands between an ORDER BY and what depends on it, the order cannot be written, and only DuckDB knows it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from everview.sql.aggregates import aggregates, called, computed_parts, outer_aggregates
from everview.sql.copies import copied
from everview.sql.dialects import DEFAULT, reader, to_sql
from everview.sql.nondeterministic_orders import nondeterministic_orders

ORDER = "__order_"
"""What columns are called that a subquery passes its order on in."""

_ONE_BY_ONE = frozenset({"row_number", "lag", "lead", "ntile"})
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


class _Unwritten(Exception):
    """An order that cannot be named."""


def with_inherited_orders(tree: exp.Expr) -> tuple[exp.Expr, bool]:
    """A checked query with these orders written out, and whether that was possible everywhere."""
    if not any(_is_passed_on(order) for order in tree.find_all(exp.Order)):
        return tree, True
    holder = exp.Paren(this=copied(tree))
    possible = True
    for select in reversed(list(holder.find_all(exp.Select))):  # inner ones first
        try:
            for node in list(_without_order(select)):
                _give(node, select)
        except _Unwritten:
            possible = False
    return holder.this.pop(), possible


def _is_passed_on(order: exp.Order) -> bool:
    """Whether it orders a subquery in FROM, or what is part of one."""
    query = order.parent
    while isinstance(query, exp.SetOperation | exp.Subquery | exp.Select):
        if isinstance(query.parent, exp.From | exp.Join | exp.Lateral):
            return True
        query = query.parent
    return False


def _without_order(select: exp.Select) -> Iterator[exp.Expr]:
    """What depends on the order of the rows of this very SELECT, and names none. (Equal rows of an order that is
    named come in any order: DuckDB's sort does not keep them as they were.) Calls over different values do not."""
    for found in nondeterministic_orders(select, ""):
        node = found.node
        if found.ties_only or node.find_ancestor(exp.Query) is not select:
            continue
        if isinstance(node, exp.Limit | exp.Offset | exp.Distinct) or node.find(exp.Distinct) is None:
            yield node


# ------------------------------------------------------------------ what order there is


@dataclass(frozen=True)
class _Key:
    """One key of an order: a column of a subquery."""

    column: str
    like: exp.Ordered

    def of(self, table: str) -> exp.Ordered:
        name = exp.to_identifier(self.column, quoted=True)
        column = exp.column(name, table=exp.to_identifier(table, quoted=True) if table else None)
        found = copied(self.like)
        found.set("this", column)
        return found


def _incoming(select: exp.Select) -> list[exp.Ordered]:
    """The order in which a SELECT takes its rows; none where there is none."""
    first = select.args.get("from_")
    if first is None:
        return []
    source = first.this
    others = [*(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
    others += [*(source.args.get("joins") or ()), *(source.args.get("pivots") or ())]
    if others:
        if any(_is_ordered(one) for one in (source, *others)):
            raise _Unwritten
        return []
    if not isinstance(source, exp.Subquery):
        return []
    keys = _passed_on(source.this, source)
    return [key.of(source.alias) for key in keys]


def _is_ordered(source: exp.Expr) -> bool:
    return any(isinstance(order.parent, exp.Query) for order in source.find_all(exp.Order))


def _passed_on(query: exp.Expr, source: exp.Subquery) -> list[_Key]:
    """The order of a subquery's rows, by its columns; those that are missing are added to it."""
    order = query.args.get("order")
    if isinstance(query, exp.Select) and order is None:
        if query.args.get("distinct") or _is_grouped(query) or _has_windows(query):
            if _incoming(query):
                raise _Unwritten
            return []
        parts = _incoming(query)
    elif order is None:
        if _is_ordered(query):
            raise _Unwritten
        return []
    else:
        parts = list(order.expressions)
    return [_Key(_exported(part.this, query, source), part) for part in parts]


def _exported(key: exp.Expr, query: exp.Expr, source: exp.Subquery) -> str:
    """The column of a subquery that is what it is ordered by."""
    if not isinstance(query, exp.Query) or isinstance(key, exp.Var) or key.find(exp.Collate):
        raise _Unwritten
    outputs = query.selects
    names: list[str] = [column.name for column in source.args["alias"].columns] if source.args.get("alias") else []
    names += [part.alias_or_name for part in outputs[len(names) :]]
    if isinstance(key, exp.Literal) and key.is_int and not any(part.is_star for part in outputs):
        return names[int(key.name) - 1]
    bare = isinstance(key, exp.Column) and not key.table
    for name, part in zip(names, outputs, strict=False):
        if part.unalias() == key or (bare and part.alias_or_name.lower() == key.name.lower()):
            return name
    distinct = query.args.get("distinct")
    if not isinstance(query, exp.Select) or (distinct is not None and distinct.args.get("on") is None):
        raise _Unwritten
    taken = {one.lower() for one in names}
    name = next(one for number in itertools.count(1) if (one := f"{ORDER}{number}") not in taken)
    query.select(exp.alias_(copied(key), name, quoted=True), copy=False)
    return name


def _is_grouped(query: exp.Select) -> bool:
    if query.args.get("group") is not None or query.args.get("having") is not None:
        return True
    return any(map(aggregates, computed_parts(query))) or bool(outer_aggregates(query))


def _has_windows(query: exp.Select) -> bool:
    return any(window.find_ancestor(exp.Query) is query for window in query.find_all(exp.Window))


# ------------------------------------------------------------------ where it goes


def _give(node: exp.Expr, select: exp.Select) -> None:
    keys = _incoming(select)
    if not keys:
        return
    if any(part.is_star for part in select.expressions):
        raise _Unwritten  # it would show the columns that were added
    if isinstance(node, exp.Limit | exp.Offset | exp.Distinct):
        distinct = select.args.get("distinct")
        if _is_grouped(select) or _has_windows(select) or (distinct is not None and distinct.args.get("on") is None):
            raise _Unwritten
        select.set("order", exp.Order(expressions=keys))
    elif isinstance(node, exp.Window):
        if _is_grouped(select):
            raise _Unwritten
        _give_window(node, keys)
    else:
        _give_call(node, keys)


def _give_window(window: exp.Window, keys: list[exp.Ordered]) -> None:
    call, spec = window.this, window.args.get("spec")
    while isinstance(call, _AROUND):
        call = call.this
    if called(call) in _ONE_BY_ONE or (spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS"):
        window.set("order", exp.Order(expressions=keys))
    else:  # an order of the window would cut its frame
        _give_call(call, keys)


def _give_call(call: exp.Expr, keys: list[exp.Ordered]) -> None:
    if isinstance(call, exp.AnyValue) and isinstance(call.parent, exp.IgnoreNulls):
        call = call.parent  # sqlglot adds to any_value what it does anyway
    text = to_sql(call)
    if isinstance(call.parent, exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls) or not text.endswith(")"):
        raise _Unwritten
    ordered = f"{text[:-1]} ORDER BY {', '.join(map(to_sql, keys))})"
    again = reader(DEFAULT).read(f"SELECT {ordered}")
    assert isinstance(again, exp.Select)
    found = again.expressions[0]
    found.meta.update(call.meta)
    call.replace(found.pop())
