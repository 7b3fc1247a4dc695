"""The catalog as queries see it.

:class:`CatalogNames` finds tables, views and named queries of one version of the
catalog by name, and records the names that were looked up: a query depends on those.

A view keeps the columns it was made with. ``SELECT * FROM orders`` does not grow when the table
does, so a view is compiled again with the tables as they were: ``seen`` contains the version
of each table's schema at that time.
"""

from __future__ import annotations

from collections.abc import Mapping

from everview.catalog.definitions import Definitions
from everview.catalog.objects import IndexDefinition, NamedQuery, ViewDefinition
from everview.catalog.recorded_texts import refuse_tampered
from everview.errors import DefinitionError
from everview.sql.namespace import NamedRelation, fold
from everview.store.contract import Table


class CatalogNames:
    """A :class:`~everview.sql.namespace.Namespace` over one version of the catalog."""

    def __init__(self, definitions: Definitions, seen: Mapping[int, int] | None = None) -> None:
        self._definitions = definitions
        self._known = seen or {}
        self.used: dict[int, Table | ViewDefinition | NamedQuery] = {}
        """The objects that were looked up, by id, in the order of the first lookup."""

    def find(self, name: str) -> NamedRelation | None:
        """The table, view or named query of this name, as the compiler of queries knows it."""
        found = self._definitions.find(name)
        # Stores distinguish names that DuckDB does not: É and é are one name here, two there.
        if found is None or isinstance(found, IndexDefinition) or fold(found.name) != fold(name):
            return None
        self.used.setdefault(found.id, found)
        if isinstance(found, Table):
            return table_relation(found, self._known.get(found.id))
        if isinstance(found, NamedQuery):
            refuse_tampered(found, self._definitions, CatalogNames(self._definitions))
            return query_relation(found)
        return view_relation(found)

    def names(self) -> list[str]:
        indexes = {index.name for index in self._definitions.indexes()}
        return [name for name in self._definitions.names() if name not in indexes]

    @property
    def depends_on(self) -> tuple[int, ...]:
        return tuple(self.used)

    @property
    def seen(self) -> dict[int, int]:
        """The schema version of every table that was looked up."""
        return {
            id: self._known.get(id, found.schema.version) for id, found in self.used.items() if isinstance(found, Table)
        }


def table_relation(table: Table, version: int | None = None) -> NamedRelation:
    """A table as queries see it, or saw it under an earlier version of its schema."""
    schema = table.schema
    columns = tuple(column for column in schema.shown if version is None or column.since <= version)
    return NamedRelation(table.name, "table", columns, () if schema.hidden_key else schema.key, bag=schema.hidden_key)


def view_relation(view: ViewDefinition) -> NamedRelation:
    if not view.columns:
        raise DefinitionError(
            f"view {view.name} cannot be used in a query",
            detail="its definition has no columns",
            hint="drop it, and create it with CREATE MATERIALIZED VIEW",
        )
    return NamedRelation(view.name, "view", view.columns, view.key, bag=view.bag)


def query_relation(query: NamedQuery) -> NamedRelation:
    return NamedRelation(query.name, "named query", query.columns, query=query.sql)
