"""ORDER BY and LIMIT.

An order with a limit is a top-k, a limit alone is one by the key, and an order
alone is how the rows are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from everview.plan.build.context import NoOperator
from everview.plan.build.query_scopes import QueryScope, by_key, ordered
from everview.plan.expressions import of_field
from everview.plan.relations import Sort, TopK


def named(order: exp.Expr | None, names: Mapping[str, exp.Expr], positions: Sequence[exp.Expr]) -> exp.Order:
    """The order with the names and positions of output columns replaced by what those are."""

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in names:
            return names[node.name.lower()].copy()
        return node

    parts = []
    for part in ordered(order):
        made = part.copy()
        if isinstance(made.this, exp.Literal) and made.this.is_int and int(made.this.name) <= len(positions):
            made.set("this", positions[int(made.this.name) - 1].copy())
        elif made.this.sql().upper() == "ALL":
            parts += [exp.Ordered(**{**made.args, "this": one.copy()}) for one in positions]
            continue
        else:
            made.set("this", made.this.transform(change))
        parts.append(made)
    return exp.Order(expressions=parts)


def limited(scope: QueryScope, query: exp.Expr, order: exp.Order, partition: Sequence[str]) -> tuple[Sort, ...]:
    """The scope cut to LIMIT and OFFSET (for each set of values of some fields); the order it has."""
    sorts = scope.sorts(order)
    limit, ties = limit_of(query)
    offset = query.args.get("offset")
    skip = _number(offset.expression) if offset is not None else 0
    if limit is not None or skip:
        relation = scope.relation
        fields = tuple(of_field(relation.field(name)) for name in partition)
        scope.relation = TopK(relation, fields, sorts if ties else by_key(relation, sorts), limit, skip or 0, ties)
    return sorts


def limit_of(query: exp.Expr) -> tuple[int | None, bool]:
    """The number of a LIMIT or FETCH, and whether ties with the last row stay."""
    limit = query.args.get("limit")
    if limit is None:
        return None, False
    count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
    options = limit.args.get("limit_options")
    percent = limit.args.get("percent") or (options is not None and options.args.get("percent"))
    ties = limit.args.get("with_ties") or (options is not None and options.args.get("with_ties"))
    if percent or limit.expressions:
        raise NoOperator("a limit in percent", limit)
    return _number(count) if count is not None else 1, bool(ties)


def _number(node: exp.Expr) -> int | None:
    found = node.unnest()
    if isinstance(found, exp.Null):
        return None
    if not isinstance(found, exp.Literal) or not found.is_int:
        raise NoOperator("a limit that is computed", node)
    return int(found.name)
