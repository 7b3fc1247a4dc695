"""Every column of a query tied to the table it comes from.

Sqlglot resolves names, stars, USING, aliases and positions, DuckDB checks whether
the result still has the same columns and types, and what sqlglot cannot resolve stays whole for
DuckDB to evaluate.

::

    SELECT name, sum(amount) AS total FROM orders JOIN people USING (id) GROUP BY 1
    SELECT people.name AS name, sum(orders.amount) AS total
    FROM orders AS orders JOIN people AS people ON orders.id = people.id GROUP BY people.name

The passes that do it are :data:`everview.sql.passes.NAME_PASSES`; each changes the tree of a
:class:`Resolution` in place. In the result

- every source has an alias and every column is qualified by one, except in ORDER BY, where a
  name without a table is an output column of the same SELECT;
- columns of tables and views are spelled as declared, all other names in lower case, the
  outermost ones as DuckDB names them;
- there is no star, no USING, no position in GROUP BY, no alias used beside its definition;
- places in the text (``meta``) are those of the original.

**What stays whole.** Recursive queries, PIVOT and UNPIVOT, VALUES and table functions with
constant arguments are hidden behind a table of the same columns while sqlglot works, and put
back after. If a pass fails nevertheless, or the result has other columns or types for DuckDB, the
smallest subqueries of FROM at fault stay whole, or else the query itself:
``SELECT whole.a AS a FROM (…) AS whole``. The mark is ``meta["whole"]`` of the subquery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.scope import Scope
from sqlglot.schema import MappingSchema

from everview.errors import SqlRefusedError
from everview.sql.copies import copied
from everview.sql.dialects import to_sql
from everview.sql.expansion import WHOLE
from everview.sql.namespace import NamedRelation, fold
from everview.sql.own_dialect import Everview
from everview.sql.typer import Described, Inputs, typer


class Unresolved(Exception):
    """A name that no pass can tie to a table."""


@dataclass(frozen=True)
class QuerySources:
    """The tables and views that a query reads."""

    relations: Mapping[str, NamedRelation]
    inputs: Inputs

    def describe(self, sql: str) -> Described | None:
        """The columns that DuckDB gives a query over them; None where it refuses it."""
        described = typer().attempt(sql, self.inputs)
        return described if isinstance(described, Described) else None


@dataclass
class Resolution:
    """A query whose names are being resolved."""

    tree: exp.Paren
    """A holder of the query, so that the query itself can be replaced too."""
    sources: QuerySources
    described: Described
    """The columns that DuckDB gives the query, which have to stay the same."""
    hidden: dict[str, tuple[exp.Expr, tuple[str, ...]]] = field(default_factory=dict)
    """The parts that stay whole, with their columns, by the names of the tables that stand for them."""

    def describe(self, sql: str) -> Described | None:
        return self.sources.describe(sql)

    def spelling(self, table: str, column: str) -> str | None:
        """How the column of a table or view is declared."""
        relation = self.sources.relations.get(fold(table))
        declared = relation.column(column) if relation else None
        return declared.name if declared else None

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table, view or hidden part, as spelled."""
        relation = self.sources.relations.get(fold(table))
        if relation is not None:
            return tuple(column.name for column in relation.columns)
        return self.hidden[table][1] if table in self.hidden else ()

    def schema(self) -> MappingSchema:
        tables: dict[str, object] = {
            name: {fold(column.name): str(column.type) for column in relation.columns}
            for name, relation in self.sources.relations.items()
        }
        for name, (_, columns) in self.hidden.items():
            tables[name] = {fold(column): "unknown" for column in columns}
        return MappingSchema(tables, dialect=Everview, normalize=False)


@dataclass(frozen=True)
class SelectScope:
    """One SELECT of a query whose names are being resolved, with the sources in its sight."""

    select: exp.Select
    scope: Scope
    resolution: Resolution


def qualified(
    query: exp.Expr,
    relations: tuple[NamedRelation, ...],
    inputs: Inputs,
    described: Described,
    resolve: Callable[[Resolution], None],
) -> exp.Expr:
    """The query, of which ``described`` are the columns, with every column tied to its source. ``resolve`` runs the
    passes."""
    sources = QuerySources({fold(relation.name): relation for relation in relations}, inputs)
    tree = _resolved(query, sources, described, resolve)
    if tree is None:
        retried = copied(query)
        if _keep_whole(retried, sources, resolve):
            tree = _resolved(retried, sources, described, resolve)
    if tree is None:
        tree = _resolved(_whole_query(query), sources, described, resolve)
    if tree is None:
        raise SqlRefusedError(
            "two columns of the query cannot be distinguished", hint="give each a simple name of its own: … AS name"
        )
    return tree


def _resolved(
    query: exp.Expr, sources: QuerySources, described: Described, resolve: Callable[[Resolution], None]
) -> exp.Expr | None:
    """The query resolved, if the passes can do it and DuckDB finds it the same."""
    if not isinstance(query, exp.Query):
        return None
    resolution = Resolution(exp.Paren(this=copied(query)), sources, described)
    try:
        resolve(resolution)
    except RecursionError:
        raise
    except Exception:  # sqlglot signals what it cannot do in many ways
        return None
    tree: exp.Expr = resolution.tree.this.pop()
    again = sources.describe(to_sql(tree))
    return tree if again is not None and again == described else None


# ------------------------------------------------------------------ what cannot be resolved


def _keep_whole(tree: exp.Expr, sources: QuerySources, resolve: Callable[[Resolution], None]) -> bool:
    """Mark the innermost subqueries of FROM that cannot be resolved on their own."""
    marked = False
    for subquery in reversed(list(_subqueries(tree))):
        described = sources.describe(to_sql(subquery.this))
        if described is None or any(part.meta.get(WHOLE) for part in subquery.walk()):
            continue
        if _resolved(subquery.this, sources, described, resolve) is None:
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
