"""Window functions: one node for each partition.

A window function whose result depends on the order of rows that tie gets the
rows' key appended to its order.

The key is appended to the order of the window where rows are counted one by one (row_number,
lag, ROWS frames); where peers count as one (RANGE and GROUPS frames) that would change the
frame, so functions that pick a value get an order of their own inside the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from everview.plan.build import function_calls, subqueries
from everview.plan.build.context import NoOperator, field_column, text_of
from everview.plan.build.links import Link
from everview.plan.build.query_scopes import QueryScope, as_sort, ordered
from everview.plan.collations import compared_by
from everview.plan.expressions import Expr, Field, of_field, parsed, written
from everview.plan.relations import Call, Relation, Window

_ONE_BY_ONE = frozenset({"row_number", "lag", "lead", "ntile"})
_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
_PICKED = frozenset({"first_value", "last_value", "nth_value"})


@dataclass(frozen=True)
class _WindowCall:
    text: str
    partition: tuple[Expr, ...]
    call: Call


def build_windows(scope: QueryScope, nodes: Sequence[exp.Window], links: Sequence[Link]) -> None:
    """Compute window functions; the scope knows them afterwards."""
    for node in nodes:
        subqueries.absorb_within(scope, node)
    made: dict[str, _WindowCall] = {}
    for node in nodes:
        tree = scope.lower(node)
        text = text_of(tree)
        if text not in made and text not in scope.known:
            made[text] = _call(scope, tree, text, links)
    partitions = dict.fromkeys(one.partition for one in made.values())
    for partition in partitions:
        own = [one for one in made.values() if one.partition == partition]
        scope.relation = Window(scope.relation, partition, tuple(one.call for one in own))
    scope.known.update({one.text: one.call.field.name for one in made.values()})


def _call(scope: QueryScope, tree: exp.Expr, text: str, links: Sequence[Link]) -> _WindowCall:
    context, relation = scope.context, scope.relation
    if any(isinstance(part, exp.Window) for part in tree.this.walk()):
        raise NoOperator("a window function inside a window function", tree)
    function = function_calls.function_of(tree.this)
    settled = _settled(tree, function, relation)
    linked = [field_column(link.inner) for link in links]
    by = [*(settled.args.get("partition_by") or ()), *linked]
    settled.set("partition_by", by)
    keys = map(compared_by, context.typed(dict.fromkeys(text_of(one) for one in by), relation))
    partition = tuple(sorted(dict.fromkeys(keys), key=lambda e: e.sql))
    parts = ordered(settled.args.get("order"))
    fields = sorted({column.name for column in settled.find_all(exp.Column)})
    orders = context.typed([text_of(part.this) for part in parts], relation)
    sorts = tuple(as_sort(e, part) for e, part in zip(orders, parts, strict=True))
    sql = text_of(settled)
    kind = context.expression(sql, relation).type
    field = Field(
        context.names.fresh(function or "window"),
        kind,
        nullable=function not in {*_PEERS, *_ONE_BY_ONE} or function in ("lag", "lead"),
    )
    arguments = tuple(of_field(relation.field(name)) for name in fields)
    return _WindowCall(text, partition, Call(field, function, arguments, order=sorts, sql=sql))


def _settled(tree: exp.Expr, function: str, relation: Relation) -> exp.Expr:
    """The window with its order settled by the key."""
    tree = tree.copy()
    spec = tree.args.get("spec")
    frame = str(spec.args.get("kind") or "").upper() if spec is not None else "RANGE"
    order = tree.args.get("order")
    keys = [
        key
        for key in relation.key
        if key not in {part.this.name for part in ordered(order) if isinstance(part.this, exp.Column)}
    ]
    if not keys or function in _PEERS:
        return tree
    more = [exp.Ordered(this=field_column(key), nulls_first=False) for key in keys]
    if function in _ONE_BY_ONE or (spec is not None and frame == "ROWS" and not spec.args.get("exclude")):
        tree.set("order", exp.Order(expressions=[*(order.expressions if order else ()), *more]))
    elif (
        (function in _PICKED or function in function_calls.OPEN)
        and isinstance(tree.this, exp.Func)
        and not tree.this.find(exp.Order, exp.Distinct)
    ):
        inside = ", ".join(text_of(part) for part in (*(order.expressions if order else ()), *more))
        tree.set("this", parsed(f"{text_of(tree.this)[:-1]} ORDER BY {inside})").copy())
    return parsed(written(tree)).copy()


def named_windows(query: exp.Expr) -> None:
    """Write the windows of a WINDOW clause out where they are used."""
    named = {window.this.name.lower(): window for window in query.args.get("windows") or ()}
    for window in list(query.find_all(exp.Window)):
        base = window.args.get("alias")
        if base is not None and window.args.get("over") and base.name.lower() in named:
            found = named[base.name.lower()]
            for part in ("partition_by", "order", "spec"):
                value = found.args.get(part)
                if value and not window.args.get(part):
                    window.set(part, [one.copy() for one in value] if isinstance(value, list) else value.copy())
            window.set("alias", None)
            window.set("first", None)
    query.set("windows", None)
