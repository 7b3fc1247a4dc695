"""Every order names the key that settles its ties.

Ties beyond the order are settled by the key of the rows. Other rules may find a smaller key, and
by that the ties would fall otherwise; so the order is made complete before they run::

    top-k first 3 by "t.a"  [t.x, t.id]   →   top-k first 3 by "t.a", "t.x", "t.id"  [t.x, t.id]

With ties kept there is nothing to settle.

**Texts of re-evaluations** with a nondeterministic ordering are settled by the rows' keys too. Wherever the
text depends on the order of rows that its ORDER BY does not distinguish, the key of those rows is appended,
so that it has one answer.

The rows of a SELECT are identified by the keys of what it reads: the key of an input, all columns of
anything else, but for the elements of one list, which come in their order; those of a grouped SELECT by the
group's columns, those of DISTINCT and of set operations by the shown ones. Where the order goes depends on
the construct::

    SELECT id FROM t LIMIT 10 PERCENT             SELECT id FROM t ORDER BY t.id LIMIT 10 PERCENT
    SELECT first(x) FROM t                        SELECT first(x ORDER BY t.id) FROM t
    lag(x) OVER (ORDER BY a)                      lag(x) OVER (ORDER BY a, t.id)
    last_value(x) OVER (ORDER BY a)               last_value(x ORDER BY a, t.id) OVER (ORDER BY a)
    t POSITIONAL JOIN u                           (… ORDER BY t.id) POSITIONAL JOIN (… ORDER BY u.id)

The last but one has a frame in which peers count as one, and a longer order would change the frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from everview.plan.expressions import of_field, parsed, quoted, written
from everview.plan.relations import Reevaluate, Relation, Sort, TopK
from everview.plan.rules.trees import bottom_up
from everview.sql.aggregates import aggregates, called, computed_parts, outer_aggregates
from everview.sql.nondeterministic_orders import nondeterministic_orders
from everview.sql.typer import Failure, typer


def settle_ties(relation: Relation) -> Relation:
    return bottom_up(relation, _settled)


def _settled(node: Relation) -> Relation:
    if isinstance(node, Reevaluate):
        text = settled_text(node)
        return node if text == node.query else replace(node, query=text)
    if not isinstance(node, TopK) or node.ties:
        return node
    ordered = {sort.by.field for sort in node.order} | {found.field for found in node.partition}
    missing = tuple(Sort(of_field(node.field(name))) for name in node.input.key if name not in ordered)
    return replace(node, order=node.order + missing) if missing else node


_ONE_BY_ONE = frozenset({"row_number", "lag", "lead", "ntile"})
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def settled_text(node: Reevaluate) -> str:
    """The query of a re-evaluation with no order left open, as far as DuckDB takes that."""
    tree = parsed(node.query)
    if not nondeterministic_orders(tree, "") and not _positional(tree):
        return node.query
    holder = exp.Paren(this=tree.copy())
    for found in [order.node for order in nondeterministic_orders(holder, "")]:
        query = found.find_ancestor(exp.Query)
        if isinstance(found, exp.Limit | exp.Offset | exp.Distinct):
            _order_rows(query, node)
        elif isinstance(query, exp.Select) and isinstance(found, exp.Window):
            _order_window(found, _group_keys(query) if _is_grouped(query) else _source_keys(query, node))
        elif isinstance(query, exp.Select):
            _order_call(found, _source_keys(query, node))
    for join in _positional(holder):
        for side in (join.parent.args["from_"].this if isinstance(join.parent, exp.Select) else None, join.this):
            if isinstance(side, exp.Subquery):
                _order_rows(side.this, node)
    after = written(holder.this)
    if after == written(tree):
        return node.query
    inputs = {f"in{n}": [(field.name, field.type) for field in one.fields] for n, one in enumerate(node.sources)}
    return node.query if isinstance(typer().attempt(after, inputs), Failure) else after


def _positional(tree: exp.Expr) -> list[exp.Join]:
    return [join for join in tree.find_all(exp.Join) if join.method.upper() == "POSITIONAL"]


# ---------------------------------------------------------------- what identifies rows


def _row_keys(query: exp.Expr | None, node: Reevaluate) -> list[str]:
    """What identifies the rows of a query, in terms of its ORDER BY."""
    if isinstance(query, exp.SetOperation):
        return _places(query)
    if not isinstance(query, exp.Select):
        return []
    distinct = query.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None:
        return _places(query)
    if _is_grouped(query):
        return _group_keys(query) or _places(query)
    return _source_keys(query, node)


def _is_grouped(query: exp.Select) -> bool:
    if query.args.get("group") is not None or query.args.get("having") is not None:
        return True
    return any(map(aggregates, computed_parts(query))) or bool(outer_aggregates(query))


def _group_keys(query: exp.Select) -> list[str]:
    """The group's columns, where GROUP BY lists them in full; none where there is one group."""
    group = query.args.get("group")
    if group is None:
        return []
    plain = not any(group.args.get(word) for word in ("all", "rollup", "cube", "grouping_sets"))
    other = (exp.Literal, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)
    named = plain and not any(isinstance(found, other) for found in group.expressions)
    return [written(found) for found in group.expressions] if named else []


def _places(query: exp.Query) -> list[str]:
    shown = query.selects
    return [] if any(found.is_star for found in shown) else [str(n) for n in range(1, len(shown) + 1)]


def _source_keys(query: exp.Select, node: Reevaluate) -> list[str]:
    first = query.args.get("from_")
    if first is None or _is_sequence(query):
        return []
    joins = [*(first.this.args.get("joins") or ()), *(query.args.get("joins") or ())]
    read = [first.this, *(join.this for join in joins if join.kind.upper() not in ("SEMI", "ANTI"))]
    return [key for source in read for key in _keys_of(source, node)]


def _is_sequence(query: exp.Expr) -> bool:
    """Whether all rows of a SELECT come from one list, VALUES or series, which has an order already."""
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.args.get("laterals"):
        return False
    first = query.args.get("from_")
    source = None if first is None else first.this
    if isinstance(source, exp.Subquery):
        below = source.this
        plain = isinstance(below, exp.Select) and not below.args.get("distinct") and not _is_grouped(below)
        return plain and not source.args.get("joins") and _is_sequence(below)
    if source is None:
        return query.find(exp.Unnest, exp.Explode) is not None
    made = isinstance(source, exp.Unnest | exp.Values) or (
        isinstance(source, exp.Table) and bool(source.find(exp.Func))
    )
    return made and not source.args.get("joins")


def _keys_of(source: exp.Expr, node: Reevaluate) -> Iterator[str]:
    alias = source.alias or (source.name if isinstance(source, exp.Table) else "")
    if not alias:
        return
    known = _input(source, node)
    if known is None:
        yield quoted(alias)  # the row as one value
        return
    relation, names = known
    key = [names[name] for name in relation.key] if set(relation.key) <= names.keys() else list(names.values())
    yield from (f"{quoted(alias)}.{quoted(name)}" for name in key)


def _input(source: exp.Expr, node: Reevaluate) -> tuple[Relation, dict[str, str]] | None:
    """The input that a source is, and what its fields are called there."""
    table = source
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        select = source.this
        only = {"from_", "expressions"} >= {key for key, value in select.args.items() if value}
        table = select.args["from_"].this if only and select.args.get("from_") else source
    alias = source.args.get("alias")
    if not isinstance(table, exp.Table) or (isinstance(alias, exp.TableAlias) and alias.columns):
        return None
    found = next((one for n, one in enumerate(node.sources) if table.name.lower() == f"in{n}"), None)
    if found is None:
        return None
    if table is source:
        return found, {field.name: field.name for field in found.fields}
    outputs = [(output.unalias(), output.alias_or_name) for output in source.this.expressions]
    return found, {column.name: name for column, name in outputs if isinstance(column, exp.Column)}


# ---------------------------------------------------------------- where the order goes


def _order_rows(query: exp.Expr | None, node: Reevaluate) -> None:
    if query is not None:
        _extend(query, _row_keys(query, node))


def _extend(holder: exp.Expr, keys: Sequence[str]) -> None:
    """Append to the ORDER BY of a query or window what it does not have yet."""
    order = holder.args.get("order")
    parts = list(order.expressions) if order is not None else []
    if len(parts) == 1 and isinstance(parts[0].this, exp.Var):
        return  # ORDER BY ALL
    there = {written(part.this) for part in parts}
    if isinstance(holder, exp.Window):  # where a bare name is a column, never what the query shows under it
        bare = {part.this.name for part in parts if isinstance(part.this, exp.Column) and not part.this.table}
        there |= {key for key in keys if parsed(key).name in bare}
    more = [exp.Ordered(this=parsed(key).copy(), nulls_first=False) for key in keys if key not in there]
    if more:
        holder.set("order", exp.Order(expressions=[*parts, *more]))


def _order_window(window: exp.Window, keys: Sequence[str]) -> None:
    if not keys or _numbers_copies(window):
        return
    call, spec = window.this, window.args.get("spec")
    while isinstance(call, _AROUND):
        call = call.this
    rows = spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS" and not spec.args.get("exclude")
    if called(call) in _ONE_BY_ONE or rows:
        _extend(window, keys)
    elif call.find(exp.Order, exp.Distinct) is None:
        order = window.args.get("order")
        _order_call(call, [*(written(part) for part in (order.expressions if order is not None else ())), *keys])


def _numbers_copies(window: exp.Window) -> bool:
    """Whether it numbers rows that agree in all columns: any order will do."""
    query = window.find_ancestor(exp.Select)
    source = query.args["from_"].this.args.get("alias") if query is not None and query.args.get("from_") else None
    if not isinstance(source, exp.TableAlias) or not source.columns:
        return False
    return {column.name for column in source.columns} <= {one.name for one in window.args.get("partition_by") or ()}


def _order_call(call: exp.Expr, keys: Sequence[str]) -> None:
    """Append to the ORDER BY inside a call. With DISTINCT only the values themselves can order it."""
    if isinstance(call, exp.AnyValue) and isinstance(call.parent, exp.IgnoreNulls):
        call = call.parent  # sqlglot adds to any_value what it does anyway
    around = call.parent
    text = written(call)
    distinct, order = call.find(exp.Distinct), call.find(exp.Order)
    if not keys or isinstance(around, exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls) or not text.endswith(")"):
        return
    if distinct is not None:
        if order is not None:
            return
        keys = [written(found) for found in distinct.expressions[:1]]
    there = {written(part.this) for part in order.expressions} if order is not None else set()
    more = [key for key in keys if key not in there]
    if more:
        call.replace(parsed(f"{text[:-1]}{', ' if order is not None else ' ORDER BY '}{', '.join(more)})").copy())
