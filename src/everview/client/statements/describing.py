"""EXPLAIN, SHOW, SHOW CREATE and DESCRIBE: definitions, and the cost of maintenance."""

from __future__ import annotations

import json
from collections.abc import Sequence

from everview.catalog import MAIN, Definitions, IndexDefinition, NamedQuery, ViewDefinition
from everview.catalog.catalog_names import CatalogNames
from everview.catalog.compiling import define_query
from everview.catalog.names import unknown
from everview.catalog.recorded_texts import recorded_query
from everview.change.schema import Column
from everview.change.types import BIGINT, BOOLEAN, VARCHAR
from everview.client.reading import SessionContext
from everview.client.result import Result, ResultColumn
from everview.client.statements.index_statements import define_index
from everview.client.statements.view_statements import defined, with_session_options
from everview.errors import UnknownObjectError
from everview.plan.compile import CompiledView, compile_index, plan_views
from everview.plan.explain import explain_json, explain_svg, explain_text
from everview.plan.expressions import quoted
from everview.sql.check import check
from everview.sql.dialects import to_sql
from everview.sql.statements import (
    CreateIndex,
    CreateMaterializedView,
    CreateView,
    Describe,
    Explain,
    ExplainFormat,
    Show,
    ShowCreate,
    ShowKind,
)
from everview.store.contract import Table

# ------------------------------------------------------------------ EXPLAIN


def explain(context: SessionContext, statement: Explain) -> Result:
    """The cost of maintaining a view, or a query if it were a view, and the part of it that is shared
    with the views of its group."""
    definitions = context.catalog.definitions()
    compiled, group, verdict = _explained(context, statement, definitions)
    others = [
        context.compiled(found, definitions)
        for found in definitions.maintained()
        if found.group == group and found.columns
    ]
    before_images = context.store.log.guarantees.before_images
    plan = plan_views([*(one for one in others if one.name != compiled.name), compiled], before_images)
    column = [ResultColumn("plan", VARCHAR)]
    validated = {compiled.name: verdict}
    notices = [str(notice) for notice in compiled.notices]
    if statement.format is ExplainFormat.TEXT:
        lines = explain_text(plan, [compiled.name], validated).rstrip("\n").split("\n")
        return Result.of(column, [[line] for line in lines], notices)
    if statement.format is ExplainFormat.JSON:
        document = json.dumps(explain_json(plan, [compiled.name], validated), indent=2, ensure_ascii=False)
    else:
        document = explain_svg(plan, [compiled.name])
    return Result.of(column, [[document]], notices)


def _explained(context: SessionContext, statement: Explain, definitions: Definitions) -> tuple[CompiledView, str, str]:
    """The explained query, its group, and the result of trying its plan."""
    asked = statement.statement
    if isinstance(asked, CreateIndex):
        return compile_index(asked, CatalogNames(definitions)), define_index(asked, definitions).group, ""
    group = MAIN
    if isinstance(asked, CreateMaterializedView):
        wanted = str(asked.options.get("group", MAIN))
        group = wanted if wanted.lower() in {one.name.lower() for one in definitions.groups()} else MAIN
        view = asked
    else:
        if isinstance(asked, CreateView):
            define_query(asked, definitions)
        name = _free_name(definitions, asked.name if isinstance(asked, CreateView) else "query")
        columns = asked.columns if isinstance(asked, CreateView) else ()
        view = CreateMaterializedView(
            name, asked.query, columns, text=asked.text, at=asked.at, source=asked.source, words=asked.words
        )
    made, compiled = defined(context, definitions, with_session_options(context, view))
    return compiled, group, made.validated


def _free_name(definitions: Definitions, wanted: str) -> str:
    name, number = wanted, 1
    while definitions.find(name) is not None:
        number += 1
        name = f"{wanted} {number}"
    return name


# ------------------------------------------------------------------ SHOW and DESCRIBE


def show(context: SessionContext, statement: Show) -> Result:
    definitions = context.catalog.definitions()
    if statement.kind is ShowKind.TABLES:
        rows = [[t.name, _key(t), context.store.table(t).count()] for t in definitions.tables()]
        return Result.of([_text("name"), _text("key"), ResultColumn("rows", BIGINT)], rows)
    if statement.kind is ShowKind.VIEWS:
        found = [one for one in definitions.derived() if not isinstance(one, IndexDefinition)]
        columns = [_text("name"), ResultColumn("materialized", BOOLEAN), _text("key"), _text("group"), _text("status")]
        return Result.of(columns, [_view_row(view) for view in found])
    if statement.kind is ShowKind.INDEXES:
        rows = [
            [index.name, definitions.by_id(index.on).name, ", ".join(index.columns), str(index.status)]
            for index in definitions.indexes()
        ]
        return Result.of([_text("name"), _text("on"), _text("columns"), _text("status")], rows)
    rows = [
        [
            group.name,
            str(group.kind),
            len(definitions.views(group.name)),
            context.catalog.epochs(group.name).committed.epoch,
        ]
        for group in definitions.groups()
    ]
    return Result.of([_text("name"), _text("kind"), ResultColumn("views", BIGINT), ResultColumn("epoch", BIGINT)], rows)


def _view_row(view: ViewDefinition | NamedQuery) -> list[object]:
    if isinstance(view, NamedQuery):
        return [view.name, False, None, None, None]
    return [view.name, True, None if view.bag else ", ".join(view.key), view.group, str(view.status)]


def describe(context: SessionContext, statement: Describe) -> Result:
    found = _named(context.catalog.definitions(), statement.name)
    if isinstance(found, IndexDefinition):
        raise UnknownObjectError(f"{found.name} is an index", hint="DESCRIBE a table or a view")
    columns = found.schema.shown if isinstance(found, Table) else found.columns
    key = _key_of(found)
    rows = [[one.name, str(one.type), one.nullable, one.name in key] for one in columns]
    shown = [_text("column"), _text("type"), ResultColumn("nullable", BOOLEAN), ResultColumn("key", BOOLEAN)]
    return Result.of(shown, rows)


def _text(name: str) -> ResultColumn:
    return ResultColumn(name, VARCHAR)


def _key(table: Table) -> str | None:
    return None if table.schema.hidden_key else ", ".join(table.schema.key)


def _key_of(found: Table | ViewDefinition | NamedQuery) -> Sequence[str]:
    if isinstance(found, Table):
        return found.schema.key
    return () if isinstance(found, NamedQuery) else found.key


def _named(definitions: Definitions, name: str) -> Table | ViewDefinition | NamedQuery | IndexDefinition:
    found = definitions.find(name)
    if found is None:
        raise unknown("table or view", name, definitions.names())
    return found


# ------------------------------------------------------------------ SHOW CREATE

_CALLED = {"table": Table, "view": NamedQuery, "materialized view": ViewDefinition, "index": IndexDefinition}


def show_create(context: SessionContext, statement: ShowCreate) -> Result:
    """A statement that defines the same, in DuckDB's SQL."""
    definitions = context.catalog.definitions()
    found = _named(definitions, statement.name)
    if statement.kind is not None and not isinstance(found, _CALLED[statement.kind]):
        kind = next(name for name, one in _CALLED.items() if isinstance(found, one))
        raise UnknownObjectError(
            f"{found.name} is not a {statement.kind}", hint=f"write SHOW CREATE {kind.upper()} {found.name}"
        )
    return Result.of([_text("statement")], [[create_text(found, definitions)]])


def create_text(found: Table | ViewDefinition | NamedQuery | IndexDefinition, definitions: Definitions) -> str:
    name = quoted(found.name)
    if isinstance(found, Table):
        return _table_text(found)
    if isinstance(found, IndexDefinition):
        return f"CREATE INDEX {name} ON {quoted(definitions.by_id(found.on).name)} ({_listed(found.columns)})"
    names = [column.name for column in found.columns]
    seen = found.seen if isinstance(found, ViewDefinition) else None
    if isinstance(found, ViewDefinition) and found.verbatim:
        query, columns = found.words, f" ({_listed(names)})"
    else:
        query = to_sql(recorded_query(found.sql), pretty=True)
        own = check(recorded_query(found.sql), CatalogNames(definitions, seen), found.sql, allow_volatile=True)
        columns = "" if [one for one, _ in own.columns] == names else f" ({_listed(names)})"
    if isinstance(found, NamedQuery):
        return f"CREATE VIEW {name}{columns} AS\n{query}"
    options = ", ".join(f"{option} = '{value}'" for option, value in found.options.items())
    with_ = f" WITH ({options})" if options else ""
    return f"CREATE MATERIALIZED VIEW {name}{columns}{with_} AS\n{query}"


def _table_text(table: Table) -> str:
    schema = table.schema
    parts = [_column_text(column) for column in schema.shown]
    if not schema.hidden_key:
        parts.append(f"PRIMARY KEY ({_listed(schema.key)})")
    return f"CREATE TABLE {quoted(table.name)} (\n  " + ",\n  ".join(parts) + "\n)"


def _column_text(column: Column) -> str:
    return f"{quoted(column.name)} {column.type}{'' if column.nullable else ' NOT NULL'}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))
