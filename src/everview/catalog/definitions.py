"""Everything that is defined, at one catalog version.

A :class:`Definitions` is the catalog read at one moment: its tables, views and groups
belong together, whatever others change meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

from everview.catalog.names import fold, unknown
from everview.catalog.objects import MAIN, Derived, Group, IndexDefinition, Maintained, NamedQuery, ViewDefinition
from everview.errors import DamagedEntryError, UnknownObjectError
from everview.store.contract import Table

D = TypeVar("D", ViewDefinition, IndexDefinition, NamedQuery)


_A: dict[type, str] = {
    Table: "a table",
    ViewDefinition: "a view",
    IndexDefinition: "an index",
    NamedQuery: "a plain view",
}


def circular(one: Derived) -> DamagedEntryError:
    return DamagedEntryError(
        f"the recorded definition of {one.kind} {one.name} cannot be used",
        detail="it is made of itself",
        hint="restore the store from a backup",
    )


class Definitions:
    """Tables, the objects derived from them, and groups, by name and id. Published definitions
    never change."""

    def __init__(
        self, version: int, tables: Iterable[Table], derived: Iterable[Derived], groups: Iterable[Group]
    ) -> None:
        self.version = version
        self._tables = {table.id: table for table in tables}
        self._derived = {found.id: found for found in derived}
        self._groups = {MAIN: Group(MAIN)} | {fold(group.name): group for group in groups}
        self._ids = {fold(found.name): id for id, found in (self._tables | self._derived).items()}
        self._kinds: dict[type, tuple[Derived, ...]] = {}
        """Results by kind: there may be thousands of views, and every epoch reads them."""
        self.accepted: set[tuple[object, ...]] = set()
        """Recorded texts that were checked (:mod:`everview.catalog.recorded_texts`)."""

    def find(self, name: str) -> Table | Derived | None:
        """The object with this name, in any spelling."""
        id = self._ids.get(fold(name), 0)
        return self._tables.get(id) or self._derived.get(id)

    def derived(self) -> tuple[Derived, ...]:
        """All views, indexes and named queries, the oldest first."""
        return tuple(found for _, found in sorted(self._derived.items()))

    def names(self) -> tuple[str, ...]:
        """The names of all tables, views and indexes, the oldest first."""
        return tuple(found.name for _, found in sorted((self._tables | self._derived).items()))

    def by_id(self, id: int) -> Table | Derived:
        found = self._tables.get(id) or self._derived.get(id)
        if found is None:
            raise UnknownObjectError(f"there is no table, view or index with the id {id}", hint="it was dropped")
        return found

    # -------------------------------------------------------------- tables

    def tables(self) -> tuple[Table, ...]:
        """All tables, the oldest first."""
        return tuple(self._tables[id] for id in sorted(self._tables))

    def table(self, name: str) -> Table:
        """A table by name; an error that suggests the nearest name if there is none."""
        found = self.find(name)
        if isinstance(found, Table):
            return found
        if found is not None:
            hint = "a view is read, not written" if found.kind == "view" else None
            raise UnknownObjectError(f"{found.name} is {_A[type(found)]}, not a table", hint=hint)
        raise unknown("table", name, [table.name for table in self._tables.values()])

    def table_by_id(self, id: int) -> Table:
        found = self._tables.get(id)
        if found is None:
            raise UnknownObjectError(f"there is no table with the id {id}", hint="it was dropped, or is a view")
        return found

    # -------------------------------------------------------------- views, indexes, named queries

    def views(self, group: str | None = None) -> tuple[ViewDefinition, ...]:
        """All views, or those of one group, the oldest first."""
        found = self._of(ViewDefinition)
        if group is None:
            return found
        wanted = self.group(group).name
        return tuple(view for view in found if view.group == wanted)

    def view(self, name: str) -> ViewDefinition:
        return self._named(ViewDefinition, "view", name)

    def view_by_id(self, id: int) -> ViewDefinition:
        found = self._derived.get(id)
        if not isinstance(found, ViewDefinition):
            raise UnknownObjectError(f"there is no view with the id {id}", hint="it was dropped, or is a table")
        return found

    def indexes(self, on: int | None = None) -> tuple[IndexDefinition, ...]:
        """All indexes, or those on one table or view, the oldest first."""
        return tuple(index for index in self._of(IndexDefinition) if on is None or index.on == on)

    def index(self, name: str) -> IndexDefinition:
        return self._named(IndexDefinition, "index", name)

    def maintained(self) -> tuple[Maintained, ...]:
        """All views and indexes."""
        return (*self.views(), *self.indexes())

    def queries(self) -> tuple[NamedQuery, ...]:
        """All named queries, the oldest first."""
        return self._of(NamedQuery)

    def query(self, name: str) -> NamedQuery:
        return self._named(NamedQuery, "view", name)

    def _of(self, kind: type[D]) -> tuple[D, ...]:
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = tuple(one for one in self.derived() if isinstance(one, kind))
        return cast(tuple[D, ...], known)

    def _named(self, kind: type[D], called: str, name: str) -> D:
        found = self.find(name)
        if isinstance(found, kind):
            return found
        if found is not None:
            wanted = "a materialized view" if isinstance(found, NamedQuery) and called == "view" else _A[kind]
            raise UnknownObjectError(f"{found.name} is {_A[type(found)]}, not {wanted}")
        raise unknown(called, name, [one.name for one in self._of(kind)])

    def dependents(self, id: int) -> tuple[Derived, ...]:
        """The objects derived from this table or view, directly or through others; each one after
        those it depends on."""
        reached = {id}
        found = []
        for derived in self._in_reading_order():
            if not reached.isdisjoint(derived.depends_on):
                reached.add(derived.id)
                found.append(derived)
        return tuple(found)

    def _in_reading_order(self) -> list[Derived]:
        """The derived objects, each after those it reads. Ids do not give this order: a view that was
        replaced may read a younger one."""
        done: dict[int, Derived] = {}
        for start in sorted(self._derived):
            path = [start]
            while path:
                view = self._derived[path[-1]]
                waiting = [id for id in view.depends_on if id in self._derived and id not in done]
                if waiting and waiting[0] in path:
                    raise circular(view)
                if waiting:
                    path.append(waiting[0])
                else:
                    done.setdefault(path.pop(), view)
        return list(done.values())

    def refuse_circles(self) -> None:
        """Raise if an object is recorded as derived from itself. One that reads only older objects cannot be."""
        if any(id >= one.id and id in self._derived for one in self._derived.values() for id in one.depends_on):
            self._in_reading_order()

    # -------------------------------------------------------------- groups

    def groups(self) -> tuple[Group, ...]:
        """All groups, the main one first, then by name."""
        return tuple(sorted(self._groups.values(), key=lambda group: (group.name != MAIN, fold(group.name))))

    def group(self, name: str) -> Group:
        found = self._groups.get(fold(name))
        if found is None:
            raise unknown("group", name, [group.name for group in self._groups.values()])
        return found
