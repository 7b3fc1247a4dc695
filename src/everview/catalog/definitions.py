"""Everything that is defined, at one catalog version.

One sentence: a :class:`Definitions` is the catalog read at one moment; whoever holds one
sees tables, views and groups that belong together, whatever others change meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

from everview.catalog.names import fold, unknown
from everview.catalog.objects import MAIN, Group, ViewDefinition
from everview.errors import UnknownObjectError
from everview.store.contract import Table


class Definitions:
    """Tables, views and groups by name and id. Published ones are never changed."""

    def __init__(
        self, version: int, tables: Iterable[Table], views: Iterable[ViewDefinition], groups: Iterable[Group]
    ) -> None:
        self.version = version
        self._tables = {table.id: table for table in tables}
        self._views = {view.id: view for view in views}
        self._groups = {MAIN: Group(MAIN)} | {fold(group.name): group for group in groups}
        self._ids = {fold(table.name): id for id, table in self._tables.items()} | {
            fold(view.name): id for id, view in self._views.items()
        }

    # -------------------------------------------------------------- tables

    def tables(self) -> tuple[Table, ...]:
        """All tables, the oldest first."""
        return tuple(self._tables[id] for id in sorted(self._tables))

    def table(self, name: str) -> Table:
        found = self._tables.get(self._ids.get(fold(name), 0))
        if found is not None:
            return found
        if fold(name) in self._ids:
            raise UnknownObjectError(f"{name} is a view, not a table", hint="a view is read, not written")
        raise unknown("table", name, [table.name for table in self._tables.values()])

    def table_by_id(self, id: int) -> Table:
        found = self._tables.get(id)
        if found is None:
            raise UnknownObjectError(f"there is no table with the id {id}", hint="it was dropped, or is a view")
        return found

    # -------------------------------------------------------------- views

    def views(self, group: str | None = None) -> tuple[ViewDefinition, ...]:
        """All views, or those of one group, the oldest first."""
        wanted = None if group is None else self.group(group).name
        return tuple(self._views[id] for id in sorted(self._views) if wanted is None or self._views[id].group == wanted)

    def view(self, name: str) -> ViewDefinition:
        found = self._views.get(self._ids.get(fold(name), 0))
        if found is not None:
            return found
        if fold(name) in self._ids:
            raise UnknownObjectError(f"{name} is a table, not a view")
        raise unknown("view", name, [view.name for view in self._views.values()])

    def view_by_id(self, id: int) -> ViewDefinition:
        found = self._views.get(id)
        if found is None:
            raise UnknownObjectError(f"there is no view with the id {id}", hint="it was dropped, or is a table")
        return found

    def dependents(self, id: int) -> tuple[ViewDefinition, ...]:
        """The views that read this table or view, directly or through other views; each
        one after those it reads."""
        reached = {id}
        found = []
        for view in self._in_reading_order():
            if not reached.isdisjoint(view.depends_on):
                reached.add(view.id)
                found.append(view)
        return tuple(found)

    def _in_reading_order(self) -> list[ViewDefinition]:
        """The views, each one after the views it reads. Ids alone do not say: a view that
        was replaced may read one that is younger."""
        done: dict[int, ViewDefinition] = {}
        for start in sorted(self._views):
            path = [start]
            while path:
                view = self._views[path[-1]]
                waiting = [id for id in view.depends_on if id in self._views and id not in done]
                if waiting:
                    path.append(waiting[0])
                else:
                    done.setdefault(path.pop(), view)
        return list(done.values())

    # -------------------------------------------------------------- groups

    def groups(self) -> tuple[Group, ...]:
        """All groups, the main one first, then by name."""
        return tuple(sorted(self._groups.values(), key=lambda group: (group.name != MAIN, fold(group.name))))

    def group(self, name: str) -> Group:
        found = self._groups.get(fold(name))
        if found is None:
            raise unknown("group", name, [group.name for group in self._groups.values()])
        return found
