"""Changes of the catalog, staged.

One sentence: a :class:`Draft` is a private copy of the definitions that remembers which
documents must be written and deleted to make its content the public one.

Reads of a draft see its own changes, so several changes that belong together are made
one after the other and become visible at once::

    def work(draft: Draft) -> ViewDefinition:
        orders = draft.create_table("orders", schema)
        return draft.create_view(ViewDefinition("totals", sql, depends_on=(orders.id,)))

    totals = catalog.change(work)

A draft never touches a store. What it takes out of the catalog (a dropped table, a state
table no view uses any more) it marks as discarded in the same commit; whoever removes the
rows afterwards takes the mark away. So a crash in between leaks nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NoReturn, TypeAlias

from everview.catalog import documents
from everview.catalog.definitions import Definitions
from everview.catalog.names import checked_name, fold
from everview.catalog.objects import MAIN, NEW, Group, GroupKind, Option, ViewDefinition, ViewStatus
from everview.change.schema import Column, Schema
from everview.errors import DefinitionError, DuplicateObjectError, UnknownObjectError
from everview.store.contract import StateTable, Table

Dropped: TypeAlias = tuple[Table | ViewDefinition, ...]


class Draft(Definitions):
    """Definitions that can be changed, and the documents that say how they were.

    ``counter`` is the counter the draft was made at; committed there, its changes are
    version ``counter + 1``. ``used_before`` tells whether a group's name was ever taken."""

    def __init__(
        self,
        base: Definitions,
        head: documents.Head,
        counter: int,
        clock: Callable[[], float],
        used_before: Callable[[str], bool],
    ) -> None:
        super().__init__(base.version, base.tables(), base.views(), base.groups())
        self.counter = counter
        self.puts: dict[str, bytes] = {}
        self.deletes: set[str] = set()
        self._version = counter + 1
        self._next_id = head.next_id
        self._clock = clock
        self._used_before = used_before
        self._numbered: set[int] = set()
        self._users: dict[int, dict[int, StateTable]] = {}
        """Id of a state table to the views that keep state in it, and how each describes it."""
        for view in self._views.values():
            self._use_state(view)

    @property
    def is_changed(self) -> bool:
        return bool(self.puts or self.deletes)

    def head(self) -> documents.Head:
        """The head document that belongs to this draft."""
        return documents.Head(self._next_id, self._version)

    # -------------------------------------------------------------- tables

    def create_table(self, name: str, schema: Schema, if_not_exists: bool = False) -> Table:
        """Define a table. With ``if_not_exists`` a table that is there is returned as it is."""
        checked_name("table", name)
        existing = self._tables.get(self._ids.get(fold(name), NEW))
        if if_not_exists and existing is not None:
            return existing
        self._refuse_taken(name)
        return self._write_table(Table(self._number(), name, schema), self._clock())

    def add_column(self, table: str | Table, column: Column) -> Table:
        """Append a column; rows that are there read as null in it."""
        found = self.table(table) if isinstance(table, str) else self.table_by_id(table.id)
        if fold(column.name) in map(fold, found.schema.names):
            raise DuplicateObjectError(f"table {found.name} has a column {column.name} already")
        created = json.loads(found.stamp)["created"]
        return self._write_table(replace(found, schema=found.schema.add(column)), created)

    def drop_table(self, name: str, cascade: bool = False) -> Dropped:
        """Remove a table, with ``cascade`` also the views that read it. Returns what went,
        readers before what they read."""
        table = self.table(name)
        views = self._drop_dependents(f"table {table.name}", table.id, cascade)
        document = documents.table_name(table.id)
        created = json.loads(table.stamp)["created"]
        self._remove(document, documents.encode_table(table, self._version, created, dropped=True))
        del self._tables[table.id], self._ids[fold(table.name)]
        self._discard(table)
        return (*views, table)

    def _write_table(self, table: Table, created: float) -> Table:
        stamped = replace(table, stamp=documents.encode_table(table, self._version, created))
        self._tables[table.id] = stamped
        self._ids[fold(table.name)] = table.id
        self._write(documents.table_name(table.id), stamped.stamp)
        return stamped

    # -------------------------------------------------------------- views

    def create_view(self, view: ViewDefinition) -> ViewDefinition:
        """Define a view. Its id, version and time, and the ids of its new state tables, are
        those of the definition returned."""
        self._refuse_taken(view.name)
        return self._write_view(replace(view, id=self._number(), created=self._clock()))

    def replace_view(self, view: ViewDefinition) -> ViewDefinition:
        """Give the view of this name another definition; its id stays. Refused while other
        views read it, since their plans were made for the old one."""
        old = self.view(view.name)
        readers = self.dependents(old.id)
        if readers:
            _refuse_dependents(f"view {old.name} cannot be replaced", readers, "drop them first")
        return self._write_view(replace(view, id=old.id, name=old.name, created=old.created))

    def alter_view(
        self,
        name: str,
        *,
        status: ViewStatus | None = None,
        group: str | None = None,
        state: tuple[StateTable, ...] | None = None,
        options: dict[str, Option] | None = None,
    ) -> ViewDefinition:
        """Change where a view stands without changing what it means. A view that joins
        another group takes its state tables along, unless others are given."""
        old = self.view(name)
        if status is ViewStatus.DROPPED:
            raise DefinitionError(f"view {old.name} cannot be altered to be dropped", hint="drop it")
        target = old.group if group is None else self.group(group).name
        tables = state if state is not None else tuple(replace(table, group=target) for table in old.state)
        return self._write_view(
            replace(
                old,
                status=old.status if status is None else status,
                group=target,
                state=tables,
                options=old.options if options is None else options,
            )
        )

    def drop_view(self, name: str, cascade: bool = False) -> Dropped:
        """Remove a view, with ``cascade`` also the views that read it. Returns what went,
        readers before what they read."""
        view = self.view(name)
        readers = self._drop_dependents(f"view {view.name}", view.id, cascade)
        self._drop_view(view)
        return (*readers, view)

    def number_state(self, table: StateTable) -> StateTable:
        """The state table with an id of its own, for callers whose plan must name it."""
        numbered = replace(table, id=self._number())
        self._numbered.add(numbered.id)
        return numbered

    def _write_view(self, view: ViewDefinition) -> ViewDefinition:
        if view.status is ViewStatus.DROPPED:
            raise DefinitionError(f"view {view.name} cannot be defined as dropped")
        self._check_dependencies(view)
        group = self.group(view.group).name
        state = tuple(replace(table, group=group) for table in view.state)
        state = tuple(self.number_state(table) if table.id == NEW else table for table in state)
        written = replace(view, group=group, state=state, version=self._version)
        self._check_state(written)
        old = self._views.get(view.id)
        self._views[view.id] = written
        self._ids[fold(view.name)] = view.id
        self._write(documents.view_name(view.id), documents.encode_view(written))
        if old is not None:
            self._leave_state(old)
        self._use_state(written)
        return written

    def _check_dependencies(self, view: ViewDefinition) -> None:
        for id in view.depends_on:
            if id not in self._tables and id not in self._views:
                raise UnknownObjectError(
                    f"view {view.name} reads the table or view with the id {id}, which is not there",
                    hint="it was dropped after the view was compiled: compile the view again",
                )
            # replace_view refuses a view that others read, so reading itself is the only cycle there can be
            if id == view.id:
                raise DefinitionError(f"view {view.name} cannot read itself")

    def _check_state(self, view: ViewDefinition) -> None:
        """A state table with an id is this view's own, newly numbered, or shared with views
        that describe it in the same words."""
        for table in view.state:
            if table.id not in self._users and table.id not in self._numbered:
                raise UnknownObjectError(f"view {view.name} names a state table {table.id} that is not there")
            for user, known in self._users.get(table.id, {}).items():
                if user != view.id and known != table:
                    raise DefinitionError(
                        f"view {view.name} cannot have state table {table.name} of group {table.group}",
                        detail=f"view {self._views[user].name} shares it as {known.name} of group {known.group}",
                    )

    def _use_state(self, view: ViewDefinition) -> None:
        for table in view.state:
            self._users.setdefault(table.id, {})[view.id] = table
            self.puts.pop(documents.discard_name(table.id), None)

    def _leave_state(self, view: ViewDefinition) -> None:
        for table in view.state:
            users = self._users[table.id]
            del users[view.id]
            if not users:
                del self._users[table.id]
                self._discard(table)

    def _drop_view(self, view: ViewDefinition) -> None:
        gone = replace(view, status=ViewStatus.DROPPED, version=self._version)
        self._remove(documents.view_name(view.id), documents.encode_view(gone))
        del self._views[view.id], self._ids[fold(view.name)]
        self._leave_state(view)

    def _drop_dependents(self, what: str, id: int, cascade: bool) -> tuple[ViewDefinition, ...]:
        readers = self.dependents(id)[::-1]
        if readers and not cascade:
            _refuse_dependents(f"{what} cannot be dropped", readers[::-1], "drop them first, or drop with cascade")
        for reader in readers:
            self._drop_view(reader)
        return readers

    # -------------------------------------------------------------- groups

    def create_group(
        self, name: str, kind: GroupKind | str = GroupKind.CONTINUOUS, if_not_exists: bool = False
    ) -> Group:
        """Define a group. The store knows a group's epochs by its name, so the name of a
        group that was dropped is never given again."""
        existing = self._groups.get(fold(name))
        if if_not_exists and existing is not None:
            return existing
        if existing is not None:
            raise DuplicateObjectError(f"there is a group {existing.name} already", hint="choose another name")
        group = Group(name, _group_kind(kind), self._version, self._clock())
        document = documents.group_name(fold(name))
        if document in self.deletes or self._used_before(document):
            raise DuplicateObjectError(
                f"there was a group {name} before",
                detail="the store knows a group's epochs by its name",
                hint="choose another name",
            )
        self._groups[fold(name)] = group
        self._write(document, documents.encode_group(group))
        return group

    def drop_group(self, name: str) -> Group:
        """Remove a group that has no views."""
        group = self.group(name)
        if group.name == MAIN:
            raise DefinitionError(f"group {MAIN} cannot be dropped", detail="every catalog has it")
        views = self.views(group.name)
        if views:
            _refuse_dependents(f"group {group.name} cannot be dropped", views, "drop them or move them first")
        document = documents.group_name(fold(group.name))
        self._remove(document, documents.encode_group(replace(group, version=self._version), dropped=True))
        del self._groups[fold(group.name)]
        return group

    # -------------------------------------------------------------- what is staged

    def forget(self, discarded: Iterable[Table | StateTable]) -> None:
        """Take away the marks of discarded tables whose rows are gone."""
        for table in discarded:
            self._delete(documents.discard_name(table.id))

    def _discard(self, table: Table | StateTable) -> None:
        self.puts[documents.discard_name(table.id)] = documents.encode_discard(table)

    def _write(self, name: str, document: bytes) -> None:
        self.puts[name] = document
        self.puts[documents.history_name(name, self._version)] = document

    def _remove(self, name: str, last: bytes) -> None:
        self._delete(name)
        self.puts[documents.history_name(name, self._version)] = last

    def _delete(self, name: str) -> None:
        """A name that is deleted is never written again: ids and groups' names are not reused."""
        self.puts.pop(name, None)
        self.deletes.add(name)

    def _number(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _refuse_taken(self, name: str) -> None:
        id = self._ids.get(fold(name))
        if id is not None:
            kind, taken = ("table", self._tables[id].name) if id in self._tables else ("view", self._views[id].name)
            raise DuplicateObjectError(f"there is a {kind} {taken} already", hint="choose another name, or drop it")


def _refuse_dependents(what: str, views: tuple[ViewDefinition, ...], hint: str) -> NoReturn:
    names = ", ".join(view.name for view in views)
    raise DefinitionError(what, detail=f"these views depend on it: {names}", hint=hint)


def _group_kind(text: str) -> GroupKind:
    try:
        return GroupKind(text)
    except ValueError:
        raise DefinitionError(
            f"there is no kind of group called {text}", hint=f"the kinds are {', '.join(GroupKind)}"
        ) from None
