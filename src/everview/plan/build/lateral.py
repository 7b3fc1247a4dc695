"""Lateral: what is computed of each row of the FROM so far.

A list of the row's own is unnested, and a subquery that reads the row is joined
to it by the columns they are linked with.
"""

from __future__ import annotations

from sqlglot import exp

from everview.change.types import BIGINT, Kind
from everview.plan.build import around, links
from everview.plan.build.context import BuildContext, NoOperator, text_of
from everview.plan.build.query_scopes import Columns, QueryScope, free_columns
from everview.plan.expressions import Expr, Field
from everview.plan.relations import Relation, Unnest


def reads_others(source: exp.Expr, columns: Columns) -> bool:
    """Whether an item of a FROM reads the items before it."""
    aliases = {alias for alias, _ in columns}
    return any(column.table.lower() in aliases for column in free_columns(source))


def joined(
    context: BuildContext, left: Relation, columns: Columns, source: exp.Expr, outer: bool
) -> tuple[Relation, Columns]:
    """The rows so far, each with what the source makes of it."""
    scope = QueryScope(context, left, dict(columns))
    inner = source.this if isinstance(source, exp.Lateral) else source
    if isinstance(inner, exp.Subquery):
        piece = around.linked(scope, inner.this, source.alias, plain=False)
        outputs = links.attach_rows(scope, piece, outer, source)
        alias = source.args.get("alias")
        given = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        names = [*given, *piece.names[len(given) :]]
        return scope.relation, {(source.alias.lower(), n.lower()): f for n, f in zip(names, outputs, strict=True)}
    return _unnested(scope, source, inner, outer)


def _unnested(scope: QueryScope, source: exp.Expr, inner: exp.Expr, outer: bool) -> tuple[Relation, Columns]:
    call = inner.this if isinstance(inner, exp.Table) else inner
    if isinstance(call, exp.Unnest | exp.Explode):
        lists = call.expressions if isinstance(call, exp.Unnest) else [call.this]
        if len(lists) != 1:
            raise NoOperator("unnest of several lists", source)
        items = lists[0]
    elif isinstance(call, exp.GenerateSeries):
        items = call
    else:
        raise NoOperator("a table function over rows", source)
    alias = source.args.get("alias") or inner.args.get("alias")
    given = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    name = alias.name if alias is not None else "unnest"
    offset = call.args.get("offset")
    unnested, item, position = unnest(
        scope.context, scope.relation, scope.expr(items), name, given, offset, outer, source
    )
    found: Columns = {(name.lower(), (given[0] if given else "unnest").lower()): item}
    if offset:
        found[name.lower(), offset.name.lower()] = position
    return unnested, found


def unnest(
    context: BuildContext,
    relation: Relation,
    items: Expr,
    name: str,
    given: list[str],
    offset: exp.Expr | None,
    outer: bool,
    place: exp.Expr,
) -> tuple[Relation, str, str]:
    """One row for each item; the names of the fields of the item and of its position."""
    if items.type.kind is not Kind.LIST:
        raise NoOperator(f"unnest of a {items.type}", place)
    prefix = context.names.source(name)
    item = Field(context.names.fresh(f"{prefix}.{given[0] if given else 'unnest'}"), items.type.item)
    shown = offset is not None
    position = Field(
        context.names.fresh(f"{prefix}.{text_of(offset) if shown and offset else 'position'}"), BIGINT, outer, not shown
    )
    return Unnest(relation, items, item, position, outer), item.name, position.name
