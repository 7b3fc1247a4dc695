"""Queries: SELECT, set operations, VALUES and WITH, each to its builder.

A query is built by the operators it consists of, and where one is missing, the
query that stands on its own around it is re-evaluated.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.plan.build import from_clause, reevaluate, select, set_operations
from everview.plan.build.context import BuildContext, NoOperator
from everview.plan.build.links import QueryPiece
from everview.plan.build.query_scopes import free_columns
from everview.plan.expressions import of_field
from everview.plan.relations import project


def build_query(context: BuildContext, query: exp.Expr, alias: str | None, needed: bool = True) -> QueryPiece:
    """A query as a relation. The root has no alias; where ``needed`` is false only the existence of
    rows matters. Types that no table can hold may occur on the way to columns that one can."""
    names, notices = context.names.mark(), len(context.notices)
    try:
        return _built(context, query, alias, needed)
    except NoOperator as why:
        if alias is not None and (free_columns(query) or query.meta.get("around")):
            raise
        context.names.back_to(names)
        del context.notices[notices:]
        return reevaluate.whole(context, query, alias, NoOperator(why.construct, why.node or query))


_PARTS = frozenset(
    {"with_", "expressions", "distinct", "from_", "laterals", "joins", "where", "group", "having", "qualify"}
    | {"windows", "order", "limit", "offset", "this", "expression", "by_name", "on", "side", "kind"}
)
"""What a query consists of, as far as operators go. What else one has is not left out: it has no operator."""


def _built(context: BuildContext, query: exp.Expr, alias: str | None, needed: bool) -> QueryPiece:
    with_ = query.args.get("with_")
    if with_ is not None:
        return _with(context, query, with_, alias, needed)
    if isinstance(query, exp.Subquery):
        if any(query.args.get(part) for part in ("order", "limit", "offset")):
            outer = exp.select("*").from_(
                exp.Subquery(this=query.this, alias=exp.TableAlias(this=exp.to_identifier("q")))
            )
            raise NoOperator("a query in parentheses with an order of its own", outer)
        return build_query(context, query.this, alias, needed)
    unknown = next((part for part, value in query.args.items() if value and part not in _PARTS), None)
    if isinstance(query, exp.Select | exp.SetOperation) and unknown is not None:
        raise NoOperator(f"a query with {unknown.rstrip('_')}", query)
    if isinstance(query, exp.Select):
        return select.build_select(context, query, alias, needed)
    if isinstance(query, exp.SetOperation):
        return set_operations.build_set(context, query, alias)
    if isinstance(query, exp.Values | exp.Table):
        return _rows(context, query, alias)
    raise NoOperator("a query of this form", query)


def _with(context: BuildContext, query: exp.Expr, with_: exp.Expr, alias: str | None, needed: bool) -> QueryPiece:
    """WITH names are expanded where they are used."""
    if with_.args.get("recursive") and any(_names_itself(cte) for cte in with_.expressions):
        raise NoOperator("a recursive query", with_)
    outer = dict(context.named)
    bare = query.copy()
    bare.set("with_", None)
    try:
        for cte in with_.expressions:
            context.named[cte.alias.lower()] = _named(cte, context)
        return build_query(context, bare, alias, needed)
    finally:
        context.named = outer


def _names_itself(cte: exp.Expr) -> bool:
    return any(table.name.lower() == cte.alias.lower() for table in cte.this.find_all(exp.Table))


def _named(cte: exp.Expr, context: BuildContext) -> exp.Expr:
    """The query of a name, with names before it expanded, and its columns as the name calls them."""
    query: exp.Expr = cte.this.copy()
    for table in list(query.find_all(exp.Table)):
        found = context.named.get(table.name.lower())
        if found is not None and not table.db:
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
            table.replace(exp.Subquery(this=found.copy(), alias=alias.copy()))
    alias = cte.args["alias"]
    if alias.columns:
        named = exp.TableAlias(this=exp.to_identifier("q"), columns=[column.copy() for column in alias.columns])
        columns = [exp.column(column.copy(), "q") for column in alias.columns]
        query = exp.select(*columns).from_(exp.Subquery(this=query, alias=named))
    return query


def _rows(context: BuildContext, query: exp.Expr, alias: str | None) -> QueryPiece:
    relation, columns = from_clause.build_source(context, query)
    if alias is not None:
        return QueryPiece(relation, tuple(columns.values()), tuple(name for _, name in columns))
    fields = [relation.field(name) for name in columns.values()]
    outputs = [replace(field, name=name) for field, (_, name) in zip(fields, columns, strict=True)]
    relation = project(relation, [(output, of_field(field)) for output, field in zip(outputs, fields, strict=True)])
    names = tuple(field.name for field in outputs)
    return QueryPiece(relation, names, names)
