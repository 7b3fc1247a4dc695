"""The sources of a checked query: one version of the store, and as few rows of each table as possible.

Every reference to a table or view becomes a source of its own, restricted to the
keys that the query names, and all of them read one snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from everview.catalog import Catalog, Definitions, Maintained, NamedQuery, ViewDefinition, ViewStatus
from everview.catalog.catalog_names import CatalogNames
from everview.catalog.compiling import compiled_index, compiled_view
from everview.change.schema import RESERVED
from everview.change.types import Type
from everview.client.answers import Answer, AnswerSource, Connections
from everview.client.known_views import KnownViews
from everview.client.lookups import Lookup, lookup
from everview.client.maintenance import Maintenance
from everview.client.result import ResultColumn
from everview.client.system_tables import SYSTEM_RELATIONS, system_source
from everview.client.table_handles import shown
from everview.client.validating import Validation, ViewTrial
from everview.client.view_rows import ViewRows
from everview.plan.compile import CompiledView
from everview.sql.dialects import DEFAULT, to_sql
from everview.sql.namespace import fold
from everview.sql.refused_constructs import refuse_endless_join
from everview.sql.statements import CreateMaterializedView
from everview.sql.words import Worded
from everview.store.contract import Store, Table, TableReader, TableSnapshot

SOURCE = f"{RESERVED}source_"
SAMPLED = 20
"""Rows of a table that a new view is tried on."""


@dataclass
class SessionSettings:
    """The settings of SET, for later statements."""

    dialect: str = DEFAULT
    on_reevaluation: str = "notice"


class VersionChoice(Protocol):
    """Chooses the version of the store that a statement reads."""

    def opened(self, trees: Sequence[exp.Expr]) -> tuple[TableSnapshot, Definitions]:
        """The version of the store for these trees, and its definitions."""

    def rows(self, view: ViewDefinition, snapshot: TableSnapshot) -> ViewRows:
        """The place of a view's rows in the opened version."""


@dataclass
class SessionContext:
    """The context in which statements are executed."""

    store: Store
    catalog: Catalog
    clean_up: Callable[[], None]
    """Removes the rows of dropped objects."""
    settings: SessionSettings = field(default_factory=SessionSettings)
    connections: Connections = field(default_factory=Connections)
    maintenance: Maintenance = field(init=False)
    views: KnownViews = field(init=False)
    versions: VersionChoice | None = None
    """None: the store as it is."""
    wrote: Callable[[], None] = field(default=lambda: None)
    """Called after every statement that wrote rows."""
    _compiled: dict[tuple[int, int], CompiledView] = field(default_factory=dict)
    _validation: Validation = field(default_factory=Validation)

    def __post_init__(self) -> None:
        self.maintenance = Maintenance(self.store, self.catalog)
        self.views = KnownViews(self.store, self.catalog)

    def opened(self, trees: Sequence[exp.Expr]) -> tuple[TableSnapshot, Definitions]:
        """A version of the store for a statement with these trees, and its definitions. The
        snapshot comes first: rows may be older than the definitions, never newer."""
        if self.versions is not None:
            return self.versions.opened(trees)
        snapshot = self.store.snapshot()
        try:
            return snapshot, self.catalog.definitions()
        except BaseException:
            snapshot.close()
            raise

    def compiled(self, found: Maintained, definitions: Definitions) -> CompiledView:
        """The relation of a recorded view or index; cached, since a definition never changes."""
        identity = found.id, found.version
        if identity not in self._compiled:
            if isinstance(found, ViewDefinition):
                self._compiled[identity] = compiled_view(found, definitions)
            else:
                self._compiled[identity] = compiled_index(found, definitions)
        return self._compiled[identity]

    def validated(
        self, statement: CreateMaterializedView, compiled: CompiledView, definitions: Definitions
    ) -> ViewTrial:
        """The result of trying a view's plan on some rows of its tables, and on generated rows."""
        names = CatalogNames(definitions)
        return self._validation.of(statement, compiled, names, lambda: self._some_rows(compiled, definitions))

    def _some_rows(self, compiled: CompiledView, definitions: Definitions) -> dict[str, pa.Table]:
        found: dict[str, pa.Table] = {}
        with self.store.snapshot() as snapshot:
            for source in compiled.sources:
                one = definitions.find(source.name)
                rows: pa.Table | None = None
                if isinstance(one, Table):
                    rows = pa.Table.from_batches(snapshot.table(one).scan(limit=SAMPLED), one.schema.arrow)
                elif isinstance(one, ViewDefinition) and one.status is ViewStatus.LIVE:
                    epoch = snapshot.committed(one.group).epoch
                    reader = self.views.at(one, epoch).reader
                    rows = next(map(reader.shown, reader.scan(snapshot, epoch, block=SAMPLED)), None)
                if rows is not None and len(rows):
                    found[source.name] = rows.select([column.name for column in source.columns])
        return found

    def answer(
        self,
        tree: exp.Expr,
        columns: Sequence[ResultColumn],
        definitions: Definitions,
        snapshot: TableSnapshot,
        *,
        target: exp.Table | None = None,
        around: Callable[[str], str] = str,
    ) -> Answer:
        """Evaluate a checked query over the tables and views of a snapshot. For ``target``, one of
        its tables, the hidden key is included. ``around`` is the text to put it in."""
        refuse_endless_join(tree, "")
        query = tree.copy() if target is None else tree
        sources: dict[str, AnswerSource] = {}
        for table in list(query.find_all(exp.Table)):
            if table.name in SYSTEM_RELATIONS:
                name = f"{SOURCE}{len(sources)}"
                sources[name] = system_source(table.name, self.views.metrics, definitions, snapshot)
                table.set("this", exp.to_identifier(name, quoted=True))
                continue
            found = definitions.find(table.name)
            if not isinstance(found, Table | ViewDefinition) or not isinstance(table.this, exp.Identifier):
                continue
            if fold(found.name) != fold(table.name) or _is_with_name(table):
                continue
            name = f"{SOURCE}{len(sources)}"
            if isinstance(found, Table):
                sources[name] = _table_source(found, snapshot.table(found), table, hidden=table is target)
            else:
                sources[name] = self._view_source(found, snapshot, table)
            table.set("this", exp.to_identifier(name, quoted=True))
        return Answer(self.connections, around(to_sql(query)), columns, sources)

    def answer_in_words(self, query: Worded, definitions: Definitions, snapshot: TableSnapshot) -> Answer:
        """Evaluate the user's own query text over the tables and views of a snapshot."""
        sources: dict[str, AnswerSource] = {}
        given: dict[str, str] = {}
        for number, relation in enumerate(query.uses):
            name = f"{SOURCE}{number}"
            found = definitions.find(relation.name)
            node = exp.to_table(relation.name)
            if isinstance(found, Table):
                sources[name] = _table_source(found, snapshot.table(found), node, hidden=False)
            else:
                assert isinstance(found, ViewDefinition)
                sources[name] = self._view_source(found, snapshot, node)
            given[relation.name] = f"SELECT * FROM {name}"
        return Answer(self.connections, query.over(given), result_columns(query.columns), sources)

    def _view_source(self, view: ViewDefinition, snapshot: TableSnapshot, table: exp.Table) -> AnswerSource:
        kinds = {column.name: column.type for column in view.columns}
        asked = lookup(table, [(name, kinds[name]) for name in view.key])
        prefixes = None if asked is None else asked.prefixes
        schema = pa.schema([pa.field(column.name, column.type.arrow) for column in view.columns])
        epoch = snapshot.committed(view.group).epoch
        rows = self.views.at(view, epoch) if self.versions is None else self.versions.rows(view, snapshot)
        return AnswerSource(schema, lambda: rows.matching(snapshot, epoch, prefixes))


def result_columns(columns: Sequence[tuple[str, Type]]) -> tuple[ResultColumn, ...]:
    return tuple(ResultColumn(name, type) for name, type in columns)


def _is_with_name(table: exp.Table) -> bool:
    """Whether the name belongs to an enclosing WITH query: a recursive one keeps its name."""
    node: exp.Expr | None = table
    while node is not None:
        with_ = node.args.get("with_")
        if with_ is not None and any(fold(cte.alias) == fold(table.name) for cte in with_.expressions):
            return True
        node = node.parent
    return False


def _table_source(table: Table, reader: TableReader, node: exp.Table, *, hidden: bool) -> AnswerSource:
    schema = table.schema
    asked = None if schema.hidden_key else lookup(node, [(part.name, part.type) for part in schema.key_parts])
    if not schema.hidden_key:
        return AnswerSource(schema.arrow, lambda: _rows(reader, asked))
    if hidden:
        return AnswerSource(schema.arrow, reader.scan)
    seen = pa.schema([schema.arrow.field(column.name) for column in schema.shown])
    return AnswerSource(seen, lambda: map(shown, reader.scan()))


def _rows(reader: TableReader, asked: Lookup | None) -> Iterator[pa.RecordBatch]:
    """The rows asked for, in the order of the key."""
    if asked is None:
        yield from reader.scan()
        return
    prefixes = sorted(asked.prefixes)
    if asked.whole:
        yield from reader.get_many(prefixes).to_batches()
        return
    for prefix in prefixes:
        yield from reader.scan(prefix)


def views_in(trees: Sequence[exp.Expr], definitions: Definitions) -> list[ViewDefinition]:
    """The materialized views that queries read, directly or through plain views."""
    waiting = [table.name for tree in trees for table in tree.find_all(exp.Table)]
    seen: set[int] = set()
    found: list[ViewDefinition] = []
    while waiting:
        one = definitions.find(waiting.pop())
        if one is None or one.id in seen:
            continue
        seen.add(one.id)
        if isinstance(one, ViewDefinition):
            found.append(one)
        elif isinstance(one, NamedQuery):
            waiting += [definitions.by_id(id).name for id in one.depends_on]
    return found
