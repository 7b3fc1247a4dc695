"""Names resolved by sqlglot, with what it needs before and what is put right after.

Before, what sqlglot cannot look into is hidden and names are folded, so that equal ones are equal;
after, names get the spelling of their declarations and of DuckDB's answer, and the hidden parts come back.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.optimizer.qualify_columns import qualify_columns
from sqlglot.optimizer.qualify_tables import qualify_tables
from sqlglot.optimizer.scope import Scope, traverse_scope

from everview.sql.dialects import to_sql
from everview.sql.expansion import WHOLE
from everview.sql.namespace import fold
from everview.sql.own_dialect import Everview
from everview.sql.resolution import Resolution, SelectScope, Unresolved
from everview.sql.select_clauses import AS_OF, BY_NAMES

_HIDDEN = "__whole_"
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")

# ------------------------------------------------------------------ before


def name_subquery_columns(query: Resolution) -> None:
    """Expressions without a name in a subquery of FROM get the one DuckDB gives them, since the
    query around may use it."""
    for subquery in query.tree.find_all(exp.Subquery):
        inner = subquery.this
        if not isinstance(subquery.parent, exp.From | exp.Join) or not isinstance(inner, exp.Query):
            continue
        first = inner
        while isinstance(first, exp.SetOperation | exp.Subquery):
            first = first.this
        if not isinstance(first, exp.Select) or not any(_unnamed(part) for part in first.expressions):
            continue
        described = query.describe(to_sql(inner))
        if described is None or len(described.columns) != len(first.expressions):
            continue
        for part, name in zip(first.expressions, described.names, strict=True):
            if _unnamed(part):
                part.replace(exp.alias_(part.copy(), name, quoted=True))


def _unnamed(part: exp.Expr) -> bool:
    return not isinstance(part, exp.Alias | exp.Column | exp.Dot | exp.Star) and not part.is_star


def hide_whole_parts(query: Resolution) -> None:
    """Tables of the same columns in the place of parts that sqlglot cannot look into."""
    for node in list(query.tree.walk(bfs=False, prune=_stays_whole)):
        if not _stays_whole(node) or not isinstance(node.parent, exp.From | exp.Join | exp.Table | exp.Subquery):
            continue
        joins = node.args.get("joins")
        node.set("joins", None)
        alias = _alias_of(node) or exp.to_identifier(f"whole_{len(query.hidden)}")
        described = query.describe(f"SELECT * FROM {to_sql(node)}")
        if described is None:
            raise Unresolved("it depends on what stands before it")
        name = f"{_HIDDEN}{len(query.hidden)}"
        table = exp.Table(this=exp.to_identifier(name), alias=exp.TableAlias(this=alias.copy()), joins=joins)
        node.replace(table)
        query.hidden[name] = (node, described.names)


def _stays_whole(node: exp.Expr) -> bool:
    if node.meta.get(WHOLE) or (isinstance(node, exp.Table | exp.Subquery) and node.args.get("pivots")):
        return True
    if isinstance(node, exp.Values):
        return isinstance(node.parent, exp.From | exp.Join) and not node.find(exp.Column, exp.Query)
    is_function = isinstance(node, exp.Table) and isinstance(node.this, exp.Func)
    return (is_function or isinstance(node, exp.Unnest)) and not node.find(exp.Column, exp.Query)


def _alias_of(node: exp.Expr) -> exp.Identifier | None:
    pivots = node.args.get("pivots")
    alias = (pivots[-1] if pivots else node).args.get("alias")
    if alias is not None and alias.this is not None:
        name: exp.Identifier = alias.this
        return name
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func) and not pivots:
        return exp.to_identifier(fold(to_sql(node.this).partition("(")[0]))
    return exp.to_identifier("unnest") if isinstance(node, exp.Unnest) else None


def fold_names(query: Resolution) -> None:
    """Names in lower case, so that equal ones are equal; fields of structs keep their spelling,
    which is part of the type."""
    for node in query.tree.walk(prune=lambda node: isinstance(node, exp.DataType)):
        if isinstance(node, exp.Join) and (node.args.get("using") or node.method == "NATURAL"):
            node.meta[BY_NAMES] = True
            node.meta[AS_OF] = node.method == "ASOF"
        if isinstance(node, exp.Identifier) and not isinstance(node.parent, exp.PropertyEQ | exp.Kwarg):
            node.set("this", fold(node.name))
    for node in list(query.tree.find_all(exp.Unnest, exp.Table)):
        if isinstance(node, exp.Unnest) or isinstance(node.this, exp.Func):
            _as_list(node)


def _as_list(node: exp.Expr) -> None:
    """A list taken apart is a table of one column, which has the table's alias as its name. So
    is a series whose ends depend on the row."""
    alias = node.args.get("alias") or exp.TableAlias()
    if not alias.this:
        alias.set("this", _alias_of(node))
    if not alias.columns:
        alias.set("columns", [alias.this.copy()])
    node.set("alias", alias)
    if isinstance(node.this, exp.GenerateSeries):
        node.replace(exp.Unnest(expressions=[node.this.copy()], alias=alias.copy()))


# ------------------------------------------------------------------ resolving


def qualify_names(query: Resolution) -> None:
    """What sqlglot resolves: aliases for all sources, a table for every column, stars written out."""
    tree = qualify_tables(query.tree.this, dialect=Everview)
    qualify_columns(tree, query.schema(), dialect=Everview)


def refuse_stars(query: SelectScope) -> None:
    if any(part.is_star for part in query.select.selects):
        raise Unresolved("a star is left")


def qualify_order_by(query: SelectScope) -> None:
    """Names inside an expression of ORDER BY: what FROM has goes before what is shown. Alone it is the
    other way round."""
    scope = query.scope
    order = query.select.args.get("order")
    for part in order.expressions if order is not None else ():
        if isinstance(part.this.unnest(), exp.Column):
            continue
        for column in part.this.walk(prune=lambda node: isinstance(node, exp.Query)):
            if not isinstance(column, exp.Column) or column.table:
                continue
            having = [name for name, source in scope.sources.items() if column.name in _names(source, query.resolution)]
            if len(having) > 1:
                raise Unresolved(f"{column.name} may be of several tables")
            if having:
                column.set("table", exp.to_identifier(having[0]))
    scope.clear_cache()


def _names(source: exp.Expr | Scope, resolution: Resolution) -> tuple[str, ...]:
    """The columns of a source, in lower case; none where they are not known."""
    if isinstance(source, exp.Table):
        return tuple(map(fold, resolution.columns(source.name)))
    if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
        return tuple(map(fold, source.expression.named_selects))
    return ()


def write_out_rows(query: SelectScope) -> None:
    """A table's name used as a value is a struct of its columns."""
    for row in list(query.select.find_all(exp.TableColumn)):
        source = query.scope.sources.get(row.name)
        if isinstance(source, exp.Table):
            names = query.resolution.columns(source.name)
        elif isinstance(source, Scope) and isinstance(source.expression, exp.Query):
            names = tuple(source.expression.named_selects)
        else:
            names = ()
        if not names:
            raise Unresolved(f"{row.name} is a row of something unknown")
        fields = [
            exp.PropertyEQ(this=exp.to_identifier(name), expression=exp.column(fold(name), table=row.name))
            for name in names
        ]
        row.replace(exp.Struct(expressions=fields))
    query.scope.clear_cache()


# ------------------------------------------------------------------ after


def spell_as_declared(query: Resolution) -> None:
    """Columns of tables and views in the spelling of their declarations."""
    for scope in traverse_scope(query.tree.this):
        for column in scope.columns:
            _spell(column, scope, query)


def _spell(column: exp.Column, scope: Scope, query: Resolution) -> None:
    around: Scope | None = scope
    while around is not None:
        source = around.sources.get(column.table)
        if isinstance(source, exp.Table):
            spelled = query.spelling(source.name, column.name)
            if spelled is not None:
                column.this.set("this", spelled)
            return
        if source is not None:
            return
        around = around.parent


def refuse_unqualified(query: Resolution) -> None:
    """Raise for a column without a table, unless it is an output column in ORDER BY."""
    for column in query.tree.find_all(exp.Column):
        if not column.table and not isinstance(column.find_ancestor(exp.Order, exp.Query), exp.Order):
            raise Unresolved(f"{column.name} has no table")


def quote_names(query: Resolution) -> None:
    """Tables and views as they are called, and quotes around names that need them."""
    for table in query.tree.find_all(exp.Table):
        relation = query.sources.relations.get(table.name)
        if relation is not None:
            table.set("this", exp.to_identifier(relation.name, quoted=True))
    for name in query.tree.find_all(exp.Identifier):
        if not _WORD.fullmatch(name.name):
            name.set("quoted", True)


def name_outputs(query: Resolution) -> None:
    """The outermost columns named as DuckDB names them."""
    tree, names = query.tree.this, query.described.names
    first = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if not isinstance(first, exp.Select) or len(first.expressions) != len(names):
        raise Unresolved("there are more or fewer columns than DuckDB has")
    renamed: dict[str, str] = {}
    for part, name in zip(first.expressions, names, strict=True):
        old = part.output_name
        if isinstance(part, exp.Alias):
            part.set("alias", exp.to_identifier(name, quoted=True))
        else:
            part.replace(exp.alias_(part.copy(), name, quoted=True))
        renamed[old] = name
    order = tree.args.get("order")
    for column in order.find_all(exp.Column) if order else ():
        if not column.table and column.name in renamed:
            column.set("this", exp.to_identifier(renamed[column.name], quoted=True))


def put_whole_parts_back(query: Resolution) -> None:
    """The hidden parts in the place of the tables that stand for them, as subqueries with the mark."""
    for table in list(query.tree.find_all(exp.Table)):
        if table.name not in query.hidden:
            continue
        node, columns = query.hidden[table.name]
        if node.args.get("pivots") or not isinstance(node, exp.Subquery):
            every = exp.select("*").from_(node)
            node = exp.Subquery(this=every)
        names = [exp.to_identifier(fold(column), quoted=True) for column in columns]
        node.set("alias", exp.TableAlias(this=table.args["alias"].this, columns=names))
        node.set("joins", table.args.get("joins"))
        node.meta[WHOLE] = True
        table.replace(node)
