"""Subqueries that read the rows around them in other ways than by equalities.

Such a subquery gets the rows around it as one more input, so that all it reads is
its own, and is linked to them by their key (and by what it reads, which the key decides).

::

    SELECT o.id, (SELECT count(*) FROM items i WHERE i.price > o.limit AND i.order = o.id) FROM orders o

    piece:   SELECT x.id, count(*) FROM items i, orders x WHERE i.price > x.limit AND i.order = x.id
             GROUP BY x.id                                          link: x.id = o.id

It costs a second use of the outer relation, so links by equalities alone are tried first.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.change.schema import RESERVED
from everview.plan.build import queries
from everview.plan.build.context import Around, NoOperator
from everview.plan.build.links import QueryPiece
from everview.plan.build.query_scopes import QueryScope, free_columns
from everview.plan.expressions import Definition, of_field
from everview.plan.relations import project


def linked(scope: QueryScope, query: exp.Expr, alias: str = "", needed: bool = True, plain: bool = True) -> QueryPiece:
    """A subquery of the scope. A plain one is linked by equalities only."""
    context = scope.context
    names, notices = context.names.mark(), len(context.notices)
    try:
        piece = queries.build_query(context, query, alias, needed)
        if not (plain and piece.rest):
            return piece
    except NoOperator:
        if not free_columns(query) or not isinstance(query, exp.Select):
            raise
    context.names.back_to(names)
    del context.notices[notices:]
    return queries.build_query(context, _with_rows(scope, query), alias, needed)


def _with_rows(scope: QueryScope, query: exp.Expr) -> exp.Expr:
    """The subquery with the rows around it in its FROM."""
    context, relation = scope.context, scope.relation
    query = query.copy()
    columns = free_columns(query)
    read = {column: scope.lower(column) for column in columns}
    if any(not isinstance(tree, exp.Column) for tree in read.values()):
        raise NoOperator("a subquery that reads what is computed around it", query)
    if any(tree.name not in relation.by_name for tree in read.values()):
        raise NoOperator("a subquery that reads what is grouped around it", query)
    wanted = dict.fromkeys([*relation.key, *(tree.name for tree in read.values())])
    name = context.names.source(f"{RESERVED}around")
    copies = {old: context.names.fresh(f"{name}.{old}") for old in wanted}
    outputs: list[Definition] = []
    for old, new in copies.items():
        field = relation.field(old)
        outputs.append((replace(field, name=new, hidden=False), of_field(field)))
    context.around[name] = Around(project(relation, outputs), {new: old for old, new in copies.items()})
    table = exp.to_identifier(name, quoted=True)
    for column in columns:
        copy = exp.to_identifier(copies[read[column].name], quoted=True)
        column.replace(exp.column(copy, table=table))
    source = exp.Table(this=table.copy())
    if query.args.get("from_") is None:
        query.set("from_", exp.From(this=source))
    else:
        query.append("joins", exp.Join(this=source))
    query.meta["around"] = name
    return query
