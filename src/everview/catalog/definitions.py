"""Everything that is defined, at one catalog version.

A :class:`Definitions` is the catalog read at one moment: its tables, views and groups
belong together, whatever others change meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Any, TypeVar, cast

from everview.catalog.names import fold, unknown
from everview.catalog.objects import (
    MAIN,
    Derived,
    Group,
    IndexDefinition,
    Maintained,
    NamedQuery,
    ViewDefinition,
    ViewStatus,
)
from everview.catalog.shared_maps import SharedMaps
from everview.errors import DamagedEntryError, UnknownObjectError
from everview.store.contract import StateTable, Table

D = TypeVar("D", ViewDefinition, IndexDefinition, NamedQuery)
M = TypeVar("M", bound=Derived)


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


def _oldest_first(found: Iterable[M]) -> tuple[M, ...]:
    return tuple(sorted(found, key=attrgetter("id")))


class Definitions:
    """Tables, the objects derived from them, and groups, by name and id. Published definitions
    never change.

    There may be many thousands of views, of which a change touches one. So everything that is asked often is kept by
    what it is asked by, and copies share what they do not change (:meth:`_shares`)."""

    def __init__(
        self,
        version: int = 0,
        tables: Iterable[Table] = (),
        derived: Iterable[Derived] = (),
        groups: Iterable[Group] = (),
    ) -> None:
        self.version = version
        self.accepted: set[tuple[object, ...]] = set()
        """Recorded texts that were checked (:mod:`everview.catalog.recorded_texts`)."""
        self._tables: dict[int, Table] = {}
        """The oldest first."""
        self._derived: SharedMaps[type[Derived], int, Any] = SharedMaps()
        """By kind and id."""
        self._groups = {MAIN: Group(MAIN)} | {fold(group.name): group for group in groups}
        self._ids: SharedMaps[None, str, int] = SharedMaps()
        self._readers: SharedMaps[int, int, None] = SharedMaps()
        """By id: those that read it."""
        self._members: SharedMaps[str, int, Maintained] = SharedMaps()
        """By group."""
        self._live: SharedMaps[str, str, Maintained] = SharedMaps()
        """By group and name: those that can be read."""
        self._building: dict[int, Maintained] = {}
        self._states: dict[int, tuple[StateTable, int]] = {}
        """State tables by id, and how many views and indexes keep state in each."""
        self._tuples: dict[type, tuple[Derived, ...]] = {}
        for table in sorted(tables, key=lambda table: table.id):
            self._put_table(table)
        for one in sorted(derived, key=lambda one: one.id):
            self._put_derived(one)

    # -------------------------------------------------------------- copies and changes, before they are published

    def _shares(self, other: Definitions) -> None:
        """Become a copy of other definitions."""
        self.version = other.version
        self.accepted = other.accepted
        self._tables = dict(other._tables)
        self._derived = other._derived.copy()
        self._groups = dict(other._groups)
        self._ids = other._ids.copy()
        self._readers = other._readers.copy()
        self._members = other._members.copy()
        self._live = other._live.copy()
        self._building = dict(other._building)
        self._states = dict(other._states)
        self._tuples = dict(other._tuples)

    def _published(self, version: int) -> Definitions:
        """These definitions, under a version. Nothing may change here any more."""
        found = Definitions(version)
        fresh = {"version", "accepted"}
        found.__dict__.update({name: self.__dict__[name] for name in found.__dict__.keys() - fresh})
        return found

    def _put_table(self, table: Table) -> None:
        self._tables[table.id] = table
        self._ids.put(None, fold(table.name), table.id)

    def _remove_table(self, id: int) -> None:
        self._ids.remove(None, fold(self._tables.pop(id).name))

    def _put_derived(self, one: Derived) -> None:
        """Enter a view, an index or a named query, also in the place of its definition so far."""
        if self._find_derived(one.id) is not None:
            self._remove_derived(one.id, keeps_place=True)
        self._derived.put(type(one), one.id, one)
        self._tuples.pop(type(one), None)
        self._ids.put(None, fold(one.name), one.id)
        for id in one.depends_on:
            self._readers.put(id, one.id, None)
        if isinstance(one, NamedQuery):
            return
        self._members.put(one.group, one.id, one)
        if one.status is ViewStatus.LIVE:
            self._live.put(one.group, one.name, one)
        else:
            self._building[one.id] = one
        for table in one.state:
            known = self._states.get(table.id)
            self._states[table.id] = table, 1 if known is None else known[1] + 1

    def _remove_derived(self, id: int, *, keeps_place: bool = False) -> None:
        one = self._find_derived(id)
        assert one is not None
        if not keeps_place:
            self._derived.remove(type(one), id)
            self._tuples.pop(type(one), None)
        self._ids.remove(None, fold(one.name))
        for source in one.depends_on:
            self._readers.remove(source, id)
        if isinstance(one, NamedQuery):
            return
        self._members.remove(one.group, id)
        self._live.remove(one.group, one.name)
        self._building.pop(id, None)
        for table in one.state:
            known, users = self._states.pop(table.id)
            if users > 1:
                self._states[table.id] = known, users - 1

    # -------------------------------------------------------------- everything

    def find(self, name: str) -> Table | Derived | None:
        """The object with this name, in any spelling."""
        id = self._ids.of(None).get(fold(name), 0)
        return self._tables.get(id) or self._find_derived(id)

    def derived(self) -> tuple[Derived, ...]:
        """All views, indexes and named queries, the oldest first."""
        return tuple(sorted((*self.views(), *self.indexes(), *self.queries()), key=lambda one: one.id))

    def names(self) -> tuple[str, ...]:
        """The names of all tables, views and indexes, the oldest first."""
        return tuple(one.name for one in sorted((*self.tables(), *self.derived()), key=lambda one: one.id))

    def by_id(self, id: int) -> Table | Derived:
        found = self._tables.get(id) or self._find_derived(id)
        if found is None:
            raise UnknownObjectError(f"there is no table, view or index with the id {id}", hint="it was dropped")
        return found

    def _find_derived(self, id: int) -> Derived | None:
        kinds = ViewDefinition, IndexDefinition, NamedQuery
        return next((found for kind in kinds if (found := self._derived.of(kind).get(id)) is not None), None)

    # -------------------------------------------------------------- tables

    def tables(self) -> tuple[Table, ...]:
        """All tables, the oldest first."""
        return tuple(self._tables.values())

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
        if group is None:
            return self._of(ViewDefinition)
        members = self._members.of(self.group(group).name).values()
        return _oldest_first(one for one in members if isinstance(one, ViewDefinition))

    def view(self, name: str) -> ViewDefinition:
        return self._named(ViewDefinition, "view", name)

    def view_by_id(self, id: int) -> ViewDefinition:
        found: ViewDefinition | None = self._derived.of(ViewDefinition).get(id)
        if found is None:
            raise UnknownObjectError(f"there is no view with the id {id}", hint="it was dropped, or is a table")
        return found

    def indexes(self, on: int | None = None) -> tuple[IndexDefinition, ...]:
        """All indexes, or those on one table or view, the oldest first."""
        if on is None:
            return self._of(IndexDefinition)
        indexes = self._derived.of(IndexDefinition)
        return tuple(indexes[id] for id in sorted(self._readers.of(on)) if id in indexes)

    def index(self, name: str) -> IndexDefinition:
        return self._named(IndexDefinition, "index", name)

    def maintained(self) -> tuple[Maintained, ...]:
        """All views and indexes."""
        return (*self.views(), *self.indexes())

    def maintained_by_id(self, id: int) -> Maintained | None:
        """The view or index with this id, if it is there."""
        return self._derived.of(ViewDefinition).get(id) or self._derived.of(IndexDefinition).get(id)

    def live(self, group: str) -> tuple[Maintained, ...]:
        """The views and indexes of a group that can be read, the oldest first."""
        return _oldest_first(self._live.of(group).values())

    def live_names(self, group: str) -> Collection[str]:
        """Their names."""
        return self._live.of(group)

    def live_changed(self, before: Definitions, group: str) -> set[str] | None:
        """The names of what can be read of a group and may have come, gone or changed since earlier definitions of the
        same catalog; None where that would have to be looked up one by one."""
        return self._live.changed(before._live, group)

    def live_groups(self) -> list[str]:
        """The groups in which there are views or indexes that can be read, by name."""
        return sorted(self._live.keys())

    def building(self) -> tuple[Maintained, ...]:
        """The views and indexes that cannot be read yet."""
        return tuple(self._building.values())

    def queries(self) -> tuple[NamedQuery, ...]:
        """All named queries, the oldest first."""
        return self._of(NamedQuery)

    def query(self, name: str) -> NamedQuery:
        return self._named(NamedQuery, "view", name)

    def _of(self, kind: type[D]) -> tuple[D, ...]:
        known = self._tuples.get(kind)
        if known is None:
            known = self._tuples[kind] = _oldest_first(self._derived.of(kind).values())
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
        reached: set[int] = set()
        waiting = [id]
        while waiting:
            readers = set(self._readers.of(waiting.pop())) - reached
            reached |= readers
            waiting.extend(readers)
        return tuple(self._in_reading_order(reached))

    def _in_reading_order(self, ids: Collection[int] | None = None) -> list[Derived]:
        """These derived objects, or all, each after those it reads. Ids do not give this order: a view that was
        replaced may read a younger one."""
        ids = {one.id for one in self.derived()} if ids is None else ids
        done: dict[int, Derived] = {}
        for start in sorted(ids):
            path = [start]
            while path:
                view = self._find_derived(path[-1])
                assert view is not None
                waiting = [id for id in view.depends_on if id in ids and id not in done]
                if waiting and waiting[0] in path:
                    raise circular(view)
                if waiting:
                    path.append(waiting[0])
                else:
                    done.setdefault(path.pop(), view)
        return list(done.values())

    def refuse_circles(self) -> None:
        """Raise if an object is recorded as derived from itself. One that reads only older objects cannot be."""
        derived = {one.id: one for one in self.derived()}
        if any(id >= one.id and id in derived for one in derived.values() for id in one.depends_on):
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
