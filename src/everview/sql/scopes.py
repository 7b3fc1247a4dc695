"""Every column of a query tied to the table it comes from.

Sqlglot resolves names, stars, USING, aliases and positions, DuckDB says whether
the result still has the same columns and types, and what sqlglot cannot resolve stays whole for
DuckDB to evaluate.

::

    SELECT name, sum(amount) AS total FROM orders JOIN people USING (id) GROUP BY 1
    SELECT people.name AS name, sum(orders.amount) AS total
    FROM orders AS orders JOIN people AS people ON orders.id = people.id GROUP BY people.name

In the result

- every source has an alias and every column is qualified by one, except in ORDER BY, where a
  name without a table is an output column of the same SELECT;
- columns of tables and views are spelled as declared, all other names in lower case, the
  outermost ones as DuckDB names them;
- there is no star, no USING, no position in GROUP BY, no alias used beside its definition;
- places in the text (``meta``) are those of the original.

**What stays whole.** Recursive queries, PIVOT and UNPIVOT, VALUES and table functions with
constant arguments are hidden behind a table of the same columns while sqlglot works, and put
back after. If it fails nevertheless, or what it made has other columns or types for DuckDB, the
smallest subqueries of FROM at fault stay whole, or else the query itself:
``SELECT whole.a AS a FROM (…) AS whole``. The mark is ``meta["whole"]`` of the subquery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.qualify_columns import qualify_columns
from sqlglot.optimizer.qualify_tables import qualify_tables
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from everview.errors import SqlRefusedError
from everview.sql.alias_calls import alias_calls
from everview.sql.column_sets import column_sets
from everview.sql.comprehensions import comprehensions
from everview.sql.copies import copied
from everview.sql.dialects import to_sql
from everview.sql.expand import WHOLE
from everview.sql.grouping import grouping, order_by_all
from everview.sql.joined_columns import AS_OF, BY_NAMES, joined_columns
from everview.sql.macros import macros
from everview.sql.method_calls import method_calls
from everview.sql.named_windows import named_windows
from everview.sql.namespace import Relation, fold
from everview.sql.own_dialect import Everview
from everview.sql.parentheses import parentheses
from everview.sql.positional_columns import positional_columns
from everview.sql.renamed_columns import renamed_columns
from everview.sql.typer import Described, Inputs, typer
from everview.sql.union_by_name import union_by_name

_HIDDEN = "__whole_"
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class _Unresolved(Exception):
    """sqlglot left something that we cannot use."""


@dataclass
class _Sources:
    """What a query reads: relations, and the hidden parts with their columns."""

    relations: Mapping[str, Relation]
    inputs: Inputs
    hidden: dict[str, tuple[exp.Expr, tuple[str, ...]]] = field(default_factory=dict)

    def described(self, sql: str) -> Described | None:
        found = typer().attempt(sql, self.inputs)
        return found if isinstance(found, Described) else None

    def spelling(self, table: str, column: str) -> str | None:
        """How the column of a table or view is declared."""
        relation = self.relations.get(fold(table))
        found = relation.column(column) if relation else None
        return found.name if found else None

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table, view or hidden part, as spelled."""
        relation = self.relations.get(fold(table))
        if relation is not None:
            return tuple(column.name for column in relation.columns)
        return self.hidden[table][1] if table in self.hidden else ()

    def schema(self) -> MappingSchema:
        tables: dict[str, object] = {
            name: {fold(column.name): str(column.type) for column in relation.columns}
            for name, relation in self.relations.items()
        }
        for name, (_, columns) in self.hidden.items():
            tables[name] = {fold(column): "unknown" for column in columns}
        return MappingSchema(tables, dialect=Everview, normalize=False)


def qualified(query: exp.Expr, relations: tuple[Relation, ...], inputs: Inputs, described: Described) -> exp.Expr:
    """The query with every column tied to its source. ``described`` is what DuckDB says of it."""
    sources = _Sources({fold(relation.name): relation for relation in relations}, inputs)
    found = _resolved(query, sources, described)
    if found is None:
        retried = copied(query)
        if _keep_whole(retried, sources):
            found = _resolved(retried, sources, described)
    if found is None:
        found = _resolved(_whole_query(query), sources, described)
    if found is None:
        raise SqlRefusedError(
            "the columns of the query cannot be told apart", hint="give each a simple name of its own: … AS name"
        )
    return found


def _resolved(query: exp.Expr, sources: _Sources, described: Described) -> exp.Expr | None:
    """The query resolved, if sqlglot can do it and DuckDB finds it the same."""
    if not isinstance(query, exp.Query):
        return None
    sources.hidden.clear()
    holder = exp.Paren(this=copied(query))
    try:
        for rewrite in BEFORE:
            rewrite(holder)
        positional_columns(holder, sources.described)
        union_by_name(holder, sources.described)
        column_sets(holder, sources.described)
        alias_calls(holder)
        _name_columns(holder, sources)
        renamed_columns(holder, sources.described)
        _hide(holder, sources)
        _fold(holder)
        _resolve(holder, sources)
        _name_outputs(holder.this, described)
        _put_back(holder, sources)
    except RecursionError:
        raise
    except Exception:  # sqlglot signals what it cannot do in many ways
        return None
    tree = holder.this.pop()
    again = sources.described(to_sql(tree))
    return tree if again is not None and again == described else None


# ------------------------------------------------------------------ before


def _name_columns(tree: exp.Expr, sources: _Sources) -> None:
    """Expressions without a name in a subquery of FROM get the one DuckDB gives them, since the
    query around may use it."""
    for subquery in tree.find_all(exp.Subquery):
        inner = subquery.this
        if not isinstance(subquery.parent, exp.From | exp.Join) or not isinstance(inner, exp.Query):
            continue
        first = inner
        while isinstance(first, exp.SetOperation | exp.Subquery):
            first = first.this
        if not isinstance(first, exp.Select) or not any(_unnamed(part) for part in first.expressions):
            continue
        found = sources.described(to_sql(inner))
        if found is None or len(found.columns) != len(first.expressions):
            continue
        for part, name in zip(first.expressions, found.names, strict=True):
            if _unnamed(part):
                part.replace(exp.alias_(part.copy(), name, quoted=True))


def _unnamed(part: exp.Expr) -> bool:
    return not isinstance(part, exp.Alias | exp.Column | exp.Dot | exp.Star) and not part.is_star


def _hide(tree: exp.Expr, sources: _Sources) -> None:
    for node in list(tree.walk(bfs=False, prune=_stays_whole)):
        if not _stays_whole(node) or not isinstance(node.parent, exp.From | exp.Join | exp.Table | exp.Subquery):
            continue
        joins = node.args.get("joins")
        node.set("joins", None)
        alias = _alias_of(node) or exp.to_identifier(f"whole_{len(sources.hidden)}")
        found = sources.described(f"SELECT * FROM {to_sql(node)}")
        if found is None:
            raise _Unresolved("it depends on what stands before it")
        name = f"{_HIDDEN}{len(sources.hidden)}"
        table = exp.Table(this=exp.to_identifier(name), alias=exp.TableAlias(this=alias.copy()), joins=joins)
        node.replace(table)
        sources.hidden[name] = (node, found.names)


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
        found: exp.Identifier = alias.this
        return found
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func) and not pivots:
        return exp.to_identifier(fold(to_sql(node.this).partition("(")[0]))
    return exp.to_identifier("unnest") if isinstance(node, exp.Unnest) else None


def _fold(tree: exp.Expr) -> None:
    """Names in lower case, so that equal ones are equal; fields of structs keep their spelling,
    which is part of the type."""
    for node in tree.walk(prune=lambda node: isinstance(node, exp.DataType)):
        if isinstance(node, exp.Join) and (node.args.get("using") or node.method == "NATURAL"):
            node.meta[BY_NAMES] = True
            node.meta[AS_OF] = node.method == "ASOF"
        if isinstance(node, exp.Identifier) and not isinstance(node.parent, exp.PropertyEQ | exp.Kwarg):
            node.set("this", fold(node.name))
    for node in list(tree.find_all(exp.Unnest, exp.Table)):
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


def _resolve(holder: exp.Expr, sources: _Sources) -> None:
    tree = qualify_tables(holder.this, dialect=Everview)
    tree = qualify_columns(tree, sources.schema(), dialect=Everview)
    for scope in traverse_scope(tree):
        if isinstance(scope.expression, exp.Query):
            order_by_all(scope.expression)
        if not isinstance(scope.expression, exp.Select):
            continue
        if any(part.is_star for part in scope.expression.selects):
            raise _Unresolved("a star is left")
        _order_by_sources(scope, sources)
        _whole_rows(scope, sources)
        for rewrite in AFTER:
            rewrite(scope.expression)
    for scope in traverse_scope(tree):
        for column in scope.columns:
            _spell(column, scope, sources)
    for column in tree.find_all(exp.Column):
        if not column.table and not isinstance(column.find_ancestor(exp.Order, exp.Query), exp.Order):
            raise _Unresolved(f"{column.name} has no table")
    for table in tree.find_all(exp.Table):
        relation = sources.relations.get(table.name)
        if relation is not None:
            table.set("this", exp.to_identifier(relation.name, quoted=True))
    for name in tree.find_all(exp.Identifier):
        if not _WORD.fullmatch(name.name):
            name.set("quoted", True)


BEFORE = (parentheses, method_calls, comprehensions, macros)
"""What is written more plainly before names are resolved, in this order."""

AFTER = (joined_columns, named_windows, grouping)
"""What is made plainer in every SELECT once its columns are known, in this order."""


def _order_by_sources(scope: Scope, sources: _Sources) -> None:
    """Names inside an expression of ORDER BY: what FROM has goes before what is shown. Alone it is the
    other way round."""
    order = scope.expression.args.get("order")
    for part in order.expressions if order is not None else ():
        if isinstance(part.this.unnest(), exp.Column):
            continue
        for column in part.this.walk(prune=lambda node: isinstance(node, exp.Query)):
            if not isinstance(column, exp.Column) or column.table:
                continue
            having = [name for name, source in scope.sources.items() if column.name in _names(source, sources)]
            if len(having) > 1:
                raise _Unresolved(f"{column.name} may be of several tables")
            if having:
                column.set("table", exp.to_identifier(having[0]))
    scope.clear_cache()


def _names(source: exp.Expr | Scope, sources: _Sources) -> tuple[str, ...]:
    """The columns of a source, in lower case; none where they cannot be told."""
    if isinstance(source, exp.Table):
        return tuple(map(fold, sources.columns(source.name)))
    if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
        return tuple(map(fold, source.expression.named_selects))
    return ()


def _whole_rows(scope: Scope, sources: _Sources) -> None:
    """A table's name used as a value is a struct of its columns."""
    for row in list(scope.expression.find_all(exp.TableColumn)):
        source = scope.sources.get(row.name)
        if isinstance(source, exp.Table):
            names = sources.columns(source.name)
        elif isinstance(source, Scope) and isinstance(source.expression, exp.Query):
            names = tuple(source.expression.named_selects)
        else:
            names = ()
        if not names:
            raise _Unresolved(f"{row.name} is a row of something unknown")
        fields = [
            exp.PropertyEQ(this=exp.to_identifier(name), expression=exp.column(fold(name), table=row.name))
            for name in names
        ]
        row.replace(exp.Struct(expressions=fields))
    scope.clear_cache()


def _spell(column: exp.Column, scope: Scope, sources: _Sources) -> None:
    around: Scope | None = scope
    while around is not None:
        source = around.sources.get(column.table)
        if isinstance(source, exp.Table):
            spelled = sources.spelling(source.name, column.name)
            if spelled is not None:
                column.this.set("this", spelled)
            return
        if source is not None:
            return
        around = around.parent


# ------------------------------------------------------------------ after


def _name_outputs(tree: exp.Expr, described: Described) -> None:
    """The outermost columns named as DuckDB names them."""
    first = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if not isinstance(first, exp.Select) or len(first.expressions) != len(described.names):
        raise _Unresolved("the columns cannot be told apart")
    renamed: dict[str, str] = {}
    for part, name in zip(first.expressions, described.names, strict=True):
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


def _put_back(tree: exp.Expr, sources: _Sources) -> None:
    for table in list(tree.find_all(exp.Table)):
        if table.name not in sources.hidden:
            continue
        node, columns = sources.hidden[table.name]
        if node.args.get("pivots") or not isinstance(node, exp.Subquery):
            every = exp.select("*").from_(node)
            node = exp.Subquery(this=every)
        names = [exp.to_identifier(fold(column), quoted=True) for column in columns]
        node.set("alias", exp.TableAlias(this=table.args["alias"].this, columns=names))
        node.set("joins", table.args.get("joins"))
        node.meta[WHOLE] = True
        table.replace(node)


# ------------------------------------------------------------------ what cannot be resolved


def _keep_whole(tree: exp.Expr, sources: _Sources) -> bool:
    """Mark the innermost subqueries of FROM that cannot be resolved on their own."""
    marked = False
    for subquery in reversed(list(_subqueries(tree))):
        described = sources.described(to_sql(subquery.this))
        if described is None or any(part.meta.get(WHOLE) for part in subquery.walk()):
            continue
        if _resolved(subquery.this, sources, described) is None:
            subquery.meta[WHOLE] = marked = True
    return marked


def _subqueries(tree: exp.Expr) -> Iterator[exp.Subquery]:
    for subquery in tree.find_all(exp.Subquery, bfs=True):
        if isinstance(subquery.parent, exp.From | exp.Join) and isinstance(subquery.this, exp.Query):
            yield subquery


def _whole_query(query: exp.Expr) -> exp.Select:
    inner = exp.Subquery(this=copied(query), alias=exp.TableAlias(this=exp.to_identifier("whole")))
    inner.meta[WHOLE] = True
    return exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier("whole"))).from_(inner)
