"""From statements to definitions, and from definitions back to relations.

The recorded definition of a view (its query in DuckDB's SQL, the names of its columns,
the schema versions of its tables) compiles to the same relation in every process and at every later
time, so a plan need not be stored to be found again.

A view is recorded in DuckDB's SQL, whatever dialect it was written in, with its parameters filled in. The
names of its columns are recorded beside it: DuckDB names a column without an alias by the words
of the text, and the recorded text has other words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from everview.catalog.catalog_names import CatalogNames
from everview.catalog.definitions import Definitions
from everview.catalog.objects import MAIN, IndexDefinition, NamedQuery, Option, Ordering, ViewDefinition
from everview.catalog.recorded_texts import as_recorded, recorded_query
from everview.change.schema import Column
from everview.errors import DefinitionError
from everview.plan.compile import CompiledView, compile_index, compile_view, in_own_words
from everview.sql.check import check
from everview.sql.dialects import DEFAULT, to_sql
from everview.sql.namespace import distinct_names
from everview.sql.statements import CreateIndex, CreateMaterializedView, CreateView, OwnWords
from everview.sql.typed_meanings import with_types


def define_view(
    statement: CreateMaterializedView,
    definitions: Definitions,
    *,
    dialect: str = DEFAULT,
    group: str = MAIN,
    options: Mapping[str, Option] | None = None,
    instead: str = "",
) -> tuple[ViewDefinition, CompiledView]:
    """Compile a CREATE MATERIALIZED VIEW against what is defined: the definition to record, which
    the catalog has not numbered yet, and what it compiled to. ``instead`` is the reason to keep the query's
    own words instead of a plan."""
    names = CatalogNames(definitions)
    statement = replace(statement, query=with_types(statement.query, names, statement.source))
    compiled = in_own_words(statement, names, instead) if instead else compile_view(statement, names)
    relation = compiled.named
    return ViewDefinition(
        name=statement.name,
        sql=compiled.words or statement.sql,
        group=group,
        depends_on=names.depends_on,
        options=dict(statement.options if options is None else options),
        text=statement.text,
        dialect=dialect,
        columns=relation.columns,
        key=relation.key,
        bag=relation.bag,
        order=tuple(Ordering(one.by.sql, one.descending, one.nulls_first) for one in compiled.order),
        seen=names.seen,
        words=compiled.words or ("" if statement.words is None else statement.words.text),
        verbatim=compiled.verbatim,
    ), compiled


def compiled_view(view: ViewDefinition, definitions: Definitions) -> CompiledView:
    """The relation of a recorded view, the same as when it was created."""
    with as_recorded(view):
        return _compiled_view(view, definitions)


def _compiled_view(view: ViewDefinition, definitions: Definitions) -> CompiledView:
    columns = tuple(column.name for column in view.columns)
    names = CatalogNames(definitions, view.seen)
    limit = view.options.get("recursion_limit")
    options = {} if limit is None else {"recursion_limit": limit}
    if view.verbatim:
        query = exp.select("*")  # there is only the query's text
        words = OwnWords(view.words, is_read=False)
        statement = CreateMaterializedView(view.name, query, columns, text=view.text, source=view.words, words=words)
        return in_own_words(replace(statement, options=options), names, view.verbatim)
    statement = CreateMaterializedView(view.name, recorded_query(view.sql), columns, text=view.text, source=view.sql)
    return compile_view(replace(statement, options=options), names)


def compiled_index(index: IndexDefinition, definitions: Definitions) -> CompiledView:
    """The relation of a recorded index."""
    statement = CreateIndex(index.name, definitions.by_id(index.on).name, index.columns)
    return compile_index(statement, CatalogNames(definitions))


def define_query(statement: CreateView, definitions: Definitions, *, dialect: str = DEFAULT) -> NamedQuery:
    """Check a CREATE VIEW against what is defined: the definition to record."""
    names = CatalogNames(definitions)
    statement = replace(statement, query=with_types(statement.query, names, statement.source))
    found = check(statement.query, names, statement.source, allow_volatile=True)
    given = [name for name, _ in found.columns]
    if statement.columns and len(statement.columns) != len(given):
        raise DefinitionError(
            f"view {statement.name} names {len(statement.columns)} columns, and its query has {len(given)}",
            hint="name all columns or none",
        )
    chosen = statement.columns or distinct_names(given)
    sql = to_sql(_with_columns(statement.query, given, chosen))
    columns = tuple((name, kind) for name, (_, kind) in zip(chosen, found.columns, strict=True))
    if check(recorded_query(sql), CatalogNames(definitions), sql, allow_volatile=True).columns != columns:
        raise DefinitionError(
            f"view {statement.name} has columns without a name that lasts", hint="give every column a name: … AS name"
        )
    return NamedQuery(
        name=statement.name,
        sql=sql,
        columns=tuple(Column(name, kind) for name, kind in columns),
        depends_on=names.depends_on,
        text=statement.text,
        dialect=dialect,
    )


def _with_columns(query: exp.Expr, given: Sequence[str], chosen: Sequence[str]) -> exp.Expr:
    """The query with these columns under these names, whatever its tables gain: by name where it
    says ``*``, since new columns come in between; else by position, since recorded words differ."""
    star = isinstance(query, exp.Query) and query.is_star
    if not star and isinstance(query, exp.Select) and _has_names(query, chosen):
        return query
    alias = exp.TableAlias(this=exp.to_identifier("q", quoted=True))
    if not star:
        alias.set("columns", [exp.to_identifier(name, quoted=True) for name in chosen])
    sources = distinct_names(given) if star else chosen
    outputs = [
        exp.alias_(exp.column(old, quoted=True), new, quoted=True) for old, new in zip(sources, chosen, strict=True)
    ]
    return exp.select(*outputs).from_(exp.Subquery(this=query.copy(), alias=alias))


def _has_names(query: exp.Select, names: Sequence[str]) -> bool:
    """Whether a query itself gives its columns these names: sqlglot names a cast of c after c, DuckDB does not."""
    given = [one.alias_or_name if isinstance(one, exp.Alias | exp.Column) else None for one in query.selects]
    return given == list(names)
