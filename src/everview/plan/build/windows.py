"""Window functions: one node for each partition, and top-k where a filter asks for the first rows.

One sentence: a window function whose result depends on the order of rows that tie gets the
rows' key appended to its order.

The key is appended to the order of the window where rows are counted one by one (row_number,
lag, ROWS frames); where peers count as one (RANGE and GROUPS frames) that would change the
frame, so functions that pick a value get an order of their own inside the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from everview.plan.build import calls, subqueries
from everview.plan.build.context import NoOperator, field_column, text_of
from everview.plan.build.links import Link
from everview.plan.build.scopes import Stage, as_sort, by_key, conjuncts, ordered
from everview.plan.expressions import Expr, Field, of_field, parsed, written
from everview.plan.relations import Call, Relation, TopK, Window

_ONE_BY_ONE = frozenset({"row_number", "lag", "lead", "ntile"})
_PEERS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
_PICKED = frozenset({"first_value", "last_value", "nth_value"})


@dataclass(frozen=True)
class _Call:
    text: str
    partition: tuple[Expr, ...]
    call: Call


def build_windows(stage: Stage, nodes: Sequence[exp.Window], links: Sequence[Link]) -> None:
    """Compute window functions; the stage knows them afterwards."""
    for node in nodes:
        subqueries.absorb_within(stage, node)
    made: dict[str, _Call] = {}
    for node in nodes:
        tree = stage.lower(node)
        text = text_of(tree)
        if text not in made and text not in stage.known:
            made[text] = _call(stage, tree, text, links)
    partitions = dict.fromkeys(one.partition for one in made.values())
    for partition in partitions:
        own = [one for one in made.values() if one.partition == partition]
        stage.relation = Window(stage.relation, partition, tuple(one.call for one in own))
    stage.known.update({one.text: one.call.field.name for one in made.values()})


def _call(stage: Stage, tree: exp.Expr, text: str, links: Sequence[Link]) -> _Call:
    context, relation = stage.context, stage.relation
    if any(isinstance(part, exp.Window) for part in tree.this.walk()):
        raise NoOperator("a window function inside a window function", tree)
    function = calls.function_of(tree.this)
    settled = _settled(tree, function, relation)
    linked = [field_column(link.inner) for link in links]
    by = [*(settled.args.get("partition_by") or ()), *linked]
    settled.set("partition_by", by)
    partition = tuple(sorted(context.typed(dict.fromkeys(text_of(one) for one in by), relation), key=lambda e: e.sql))
    parts = ordered(settled.args.get("order"))
    fields = sorted({column.name for column in settled.find_all(exp.Column)})
    orders = context.typed([text_of(part.this) for part in parts], relation)
    sorts = tuple(as_sort(e, part) for e, part in zip(orders, parts, strict=True))
    sql = text_of(settled)
    kind = context.one(sql, relation).type
    field = Field(
        context.names.fresh(function or "window"),
        kind,
        nullable=function not in {*_PEERS, *_ONE_BY_ONE} or function in ("lag", "lead"),
    )
    arguments = tuple(of_field(relation.field(name)) for name in fields)
    return _Call(text, partition, Call(field, function, arguments, order=sorts, sql=sql))


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
        (function in _PICKED or function in calls.OPEN)
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


def first_rows(stage: Stage, condition: exp.Expr, links: Sequence[Link]) -> TopK | None:
    """``row_number() OVER (…) <= k`` as a top-k for each partition; rank() keeps ties."""
    found = as_first(condition)
    if found is None:
        return None
    window, limit = found
    function = calls.function_of(window.this)
    by = [*(window.args.get("partition_by") or ()), *(field_column(link.inner) for link in links)]
    sorts = stage.sorts(window.args.get("order"))
    if function == "rank" and not sorts:
        return None
    partition = tuple(dict.fromkeys(stage.exprs(by)))
    ties = function == "rank"
    return TopK(stage.relation, partition, sorts if ties else by_key(stage.relation, sorts), limit, 0, ties)


def as_first(condition: exp.Expr) -> tuple[exp.Window, int] | None:
    """The window and the number of a condition that asks for the first rows of a window."""
    found = condition.unnest()
    swap = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}
    if isinstance(found, exp.Binary) and type(found) in swap and isinstance(found.this.unnest(), exp.Literal):
        found = swap[type(found)](this=found.expression, expression=found.this)
    if not isinstance(found, exp.LT | exp.LTE | exp.EQ):
        return None
    window, bound = found.this.unnest(), found.expression.unnest()
    if not isinstance(window, exp.Window) or calls.function_of(window.this) not in ("row_number", "rank"):
        return None
    if not isinstance(bound, exp.Literal) or not bound.is_int or window.args.get("spec"):
        return None
    limit = int(bound.name) - (1 if isinstance(found, exp.LT) else 0)
    if limit < 1 or (isinstance(found, exp.EQ) and limit != 1):
        return None
    return window, limit


def push_first_rows(query: exp.Expr) -> None:
    """``SELECT … FROM (SELECT …, row_number() OVER … AS n …) AS s WHERE s.n <= k``: the condition
    moves into the subquery, as QUALIFY."""
    where, start = query.args.get("where"), query.args.get("from_")
    if where is None or start is None or any(join.side in ("RIGHT", "FULL") for join in query.args.get("joins") or ()):
        return
    plain = [join.this for join in query.args.get("joins") or () if not (join.side or join.method)]
    for source in (start.this, *plain):
        inner = source.this if isinstance(source, exp.Subquery) else None
        if not isinstance(inner, exp.Select) or any(
            inner.args.get(part) for part in ("distinct", "limit", "offset", "with_")
        ):
            continue
        shown = {part.alias_or_name.lower(): part.unalias() for part in inner.expressions}
        for condition in conjuncts(where.this):
            columns = list(condition.find_all(exp.Column))
            if len(columns) != 1 or columns[0].table.lower() != source.alias.lower():
                continue
            window = shown.get(columns[0].name.lower())
            if window is None:
                continue
            moved = condition.copy().transform(
                lambda node, w=window: w.copy() if isinstance(node, exp.Column) else node
            )
            if as_first(moved) is None:
                continue
            qualify = inner.args.get("qualify")
            inner.set("qualify", exp.Qualify(this=exp.and_(qualify.this, moved) if qualify else moved))
