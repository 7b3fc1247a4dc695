"""Changes of the catalog, staged.

A :class:`Draft` is a private copy of the definitions that remembers which
documents must be written and deleted to make its content the public one.

Reads of a draft see its own changes, so several changes that belong together are made
one after the other and become visible at once::

    def work(draft: Draft) -> ViewDefinition:
        orders = draft.create_table("orders", schema)
        return draft.create_view(ViewDefinition("totals", sql, depends_on=(orders.id,)))

    totals = catalog.change(work)

A draft never touches a store. What it removes from the catalog (a dropped table, a state
table that no view uses any more) is marked as discarded in the same commit; the process
that removes the rows afterwards removes the mark. So a crash in between leaks nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NoReturn, TypeAlias, TypeVar

from everview.boundary import fast, public
from everview.catalog import documents
from everview.catalog.definitions import Definitions
from everview.catalog.names import checked_name, fold
from everview.catalog.objects import (
    MAIN,
    NEW,
    Derived,
    Group,
    GroupKind,
    IndexDefinition,
    Maintained,
    NamedQuery,
    Option,
    ViewDefinition,
    ViewStatus,
)
from everview.change.schema import Column, Schema
from everview.errors import DefinitionError, DuplicateObjectError, UnknownObjectError
from everview.store.contract import StateTable, Table

Dropped: TypeAlias = tuple[Table | Derived, ...]
D = TypeVar("D", ViewDefinition, IndexDefinition, NamedQuery)
M = TypeVar("M", ViewDefinition, IndexDefinition)


@public
@fast
class Draft(Definitions):
    """Definitions that can be changed, and the documents as they were before.

    ``counter`` is the counter the draft was made at; committed there, its changes are
    version ``counter + 1``. ``used_before`` returns whether a group's name was ever taken."""

    def __init__(
        self,
        base: Definitions,
        head: documents.Head,
        counter: int,
        clock: Callable[[], float],
        used_before: Callable[[str], bool],
    ) -> None:
        super().__init__()
        self._shares(base)
        self.counter = counter
        self.puts: dict[str, bytes] = {}
        self.deletes: set[str] = set()
        self._version = counter + 1
        self._next_id = head.next_id
        self._changes = head.changes
        self._is_over = False
        self._clock = clock
        self._used_before = used_before
        self._numbered: set[int] = set()

    @property
    def is_changed(self) -> bool:
        return bool(self.puts or self.deletes)

    def head(self) -> documents.Head:
        """The head document that belongs to this draft."""
        return documents.Head(self._next_id, self._version, self._changes + 1)

    def change(self) -> documents.DefinitionChange:
        """The record of what this draft changes in the definitions."""
        names = sorted(name for name in {*self.puts, *self.deletes} if name.startswith(documents.DEFINING))
        return documents.DefinitionChange(self._version, self.version, tuple(names))

    def published(self) -> Definitions:
        """The definitions that this draft has made, once it is committed. It cannot be changed any more."""
        self._is_over = True
        return self._published(self._version)

    # -------------------------------------------------------------- tables

    def create_table(self, name: str, schema: Schema, if_not_exists: bool = False) -> Table:
        """Define a table. With ``if_not_exists`` an existing table is returned unchanged."""
        checked_name("table", name)
        existing = self.find(name)
        if if_not_exists and isinstance(existing, Table):
            return existing
        self._refuse_taken(name)
        return self._write_table(Table(self._number(), name, schema), self._clock())

    def add_column(self, table: str | Table, column: Column) -> Table:
        """Append a column; existing rows read as null in it."""
        found = self.table(table) if isinstance(table, str) else self.table_by_id(table.id)
        if fold(column.name) in map(fold, found.schema.names):
            raise DuplicateObjectError(f"table {found.name} has a column {column.name} already")
        created = json.loads(found.stamp)["created"]
        return self._write_table(replace(found, schema=found.schema.add(column)), created)

    def drop_table(self, name: str, cascade: bool = False) -> Dropped:
        """Remove a table, with ``cascade`` also the views that read it. Returns the removed
        objects, readers before the objects that they read."""
        table = self.table(name)
        views = self._drop_dependents(f"table {table.name}", table.id, cascade)
        document = documents.table_name(table.id)
        created = json.loads(table.stamp)["created"]
        self._remove(document, documents.encode_table(table, self._version, created, dropped=True))
        self._remove_table(table.id)
        self._discard(table)
        return (*views, table)

    def _write_table(self, table: Table, created: float) -> Table:
        stamped = replace(table, stamp=documents.encode_table(table, self._version, created))
        self._write(documents.table_name(table.id), stamped.stamp)
        self._put_table(stamped)
        return stamped

    # -------------------------------------------------------------- views

    def create_view(self, view: ViewDefinition) -> ViewDefinition:
        """Define a view. Its id, version and time, and the ids of its new state tables, are
        those of the definition returned."""
        self._refuse_taken(view.name)
        return self._write_derived(replace(view, id=self._number(), created=self._clock()))

    def replace_view(self, view: ViewDefinition) -> ViewDefinition:
        """Give the view of this name another definition; its id stays. Refused while other
        views read it, since their plans were made for the old one."""
        return self._write_derived(self._replacing(self.view(view.name), view))

    def alter_view(
        self,
        name: str,
        *,
        status: ViewStatus | None = None,
        group: str | None = None,
        state: tuple[StateTable, ...] | None = None,
        options: dict[str, Option] | None = None,
    ) -> ViewDefinition:
        """Change the status, group or state tables of a view, but not its query. A view that joins
        another group takes its indexes and state tables along, unless others are given."""
        old = self.view(name)
        if status is ViewStatus.DROPPED:
            raise DefinitionError(f"view {old.name} cannot be altered to be dropped", hint="drop it")
        target = old.group if group is None else self.group(group).name
        tables = state if state is not None else tuple(replace(table, group=target) for table in old.state)
        altered = self._write_derived(
            replace(
                old,
                status=old.status if status is None else status,
                group=target,
                state=tables,
                options=old.options if options is None else options,
            )
        )
        for index in self.indexes(old.id) if target != old.group else ():
            moved = tuple(replace(table, group=target) for table in index.state)
            self._write_derived(replace(index, group=target, state=moved))
        return altered

    def drop_view(self, name: str, cascade: bool = False) -> Dropped:
        """Remove a view and its indexes, with ``cascade`` also the objects that read it. Returns the removed
        objects, readers before the objects that they read."""
        return self._drop(self.view(name), cascade)

    # -------------------------------------------------------------- indexes and named queries

    def create_index(self, index: IndexDefinition) -> IndexDefinition:
        """Define an index on a table or view, in the group of the view."""
        self._refuse_taken(index.name)
        return self._write_derived(replace(index, id=self._number(), created=self._clock()))

    def alter_index(
        self, name: str, *, status: ViewStatus | None = None, state: tuple[StateTable, ...] | None = None
    ) -> IndexDefinition:
        """Change the status, group or state tables of an index."""
        old = self.index(name)
        status = old.status if status is None else status
        return self._write_derived(replace(old, status=status, state=old.state if state is None else state))

    def drop_index(self, name: str, cascade: bool = False) -> Dropped:
        return self._drop(self.index(name), cascade)

    def create_query(self, query: NamedQuery) -> NamedQuery:
        """Give a query a name."""
        self._refuse_taken(query.name)
        return self._write_derived(replace(query, id=self._number(), created=self._clock()))

    def replace_query(self, query: NamedQuery) -> NamedQuery:
        """Give the name to another query. Refused while others use it: they were created with
        the old one."""
        return self._write_derived(self._replacing(self.query(query.name), query))

    def drop_query(self, name: str, cascade: bool = False) -> Dropped:
        return self._drop(self.query(name), cascade)

    # -------------------------------------------------------------- what all derived objects have in common

    def number_state(self, table: StateTable) -> StateTable:
        """The state table with an id of its own, for callers whose plan must name it."""
        numbered = replace(table, id=self._number())
        self._numbered.add(numbered.id)
        return numbered

    def adopt(self, tables: Iterable[StateTable]) -> None:
        """Let views keep state in tables that were numbered in an earlier change."""
        self._numbered.update(table.id for table in tables)

    def discard(self, tables: Iterable[StateTable]) -> None:
        """Mark state tables that no view keeps its state in."""
        for table in tables:
            if table.id not in self._states:
                self._discard(table)

    def _write_derived(self, given: D) -> D:
        self._check_dependencies(given)
        written = replace(given, version=self._version)
        if not isinstance(written, NamedQuery):
            written = self._placed(written)
            self._check_state(written)
        before = self._state_of(written.id)
        self._write(documents.derived_name(written), documents.encode_derived(written))
        self._put_derived(written)
        self._mark_state(before)
        self._mark_state(written.state)
        return written

    def _state_of(self, id: int) -> tuple[StateTable, ...]:
        found = self._find_derived(id)
        return () if found is None else found.state

    def _placed(self, found: M) -> M:
        """In its group, its new state tables numbered."""
        if found.status is ViewStatus.DROPPED:
            raise DefinitionError(f"{found.kind} {found.name} cannot be defined as dropped")
        group = self.group(found.group).name
        state = tuple(replace(table, group=group) for table in found.state)
        state = tuple(self.number_state(table) if table.id == NEW else table for table in state)
        return replace(found, group=group, state=state)

    def _replacing(self, old: D, new: D) -> D:
        readers = self.dependents(old.id)
        if readers:
            _refuse_dependents(f"{old.kind} {old.name} cannot be replaced", readers, "drop them first")
        return replace(new, id=old.id, name=old.name, created=old.created)

    def _check_dependencies(self, found: Derived) -> None:
        for id in found.depends_on:
            if id not in self._tables and self._find_derived(id) is None:
                raise UnknownObjectError(
                    f"{found.kind} {found.name} reads the table or view with the id {id}, which is not there",
                    hint="it was dropped meanwhile: compile the statement again",
                )
            # a view that others read is not replaced, so the only possible cycle is a view that reads itself
            if id == found.id:
                raise DefinitionError(f"{found.kind} {found.name} cannot read itself")

    def _check_state(self, found: Maintained) -> None:
        """A state table with an id is this view's own, newly numbered, or shared with views
        that describe it identically."""
        own = {table.id for table in self._state_of(found.id)}
        for table in found.state:
            known, users = self._states.get(table.id, (table, 0))
            if users == 0 and table.id not in self._numbered:
                raise UnknownObjectError(f"{found.kind} {found.name} names a state table {table.id} that is not there")
            if known != table and users > (table.id in own):
                everyone = (one for one in self.maintained() if one.id != found.id and known in one.state)
                other = next(everyone)  # all describe it identically: one is enough
                raise DefinitionError(
                    f"{found.kind} {found.name} cannot have state table {table.name} of group {table.group}",
                    detail=f"{other.kind} {other.name} shares it as {known.name} of group {known.group}",
                )

    def _mark_state(self, tables: Iterable[StateTable]) -> None:
        """Mark those of these state tables that nothing keeps its state in any more."""
        for table in tables:
            if table.id in self._states:
                self.puts.pop(documents.discard_name(table.id), None)
            else:
                self._discard(table)

    def _drop(self, found: Derived, cascade: bool) -> Dropped:
        readers = self._drop_dependents(f"{found.kind} {found.name}", found.id, cascade)
        self._drop_alone(found)
        return (*readers, found)

    def _drop_dependents(self, what: str, id: int, cascade: bool) -> tuple[Derived, ...]:
        """Indexes are dropped with their table or view; other dependents only with ``cascade``."""
        found = self.dependents(id)
        readers = tuple(one for one in found if not isinstance(one, IndexDefinition))
        if readers and not cascade:
            _refuse_dependents(f"{what} cannot be dropped", readers, "drop them first, or drop with CASCADE")
        for one in found[::-1]:
            self._drop_alone(one)
        return found[::-1]

    def _drop_alone(self, found: Derived) -> None:
        gone = documents.encode_derived(replace(found, version=self._version), dropped=True)
        self._remove(documents.derived_name(found), gone)
        self._remove_derived(found.id)
        self._mark_state(found.state)

    # -------------------------------------------------------------- groups

    def create_group(
        self, name: str, kind: GroupKind | str = GroupKind.CONTINUOUS, if_not_exists: bool = False
    ) -> Group:
        """Define a group. The store knows a group's epochs by its name, so the name of a
        dropped group is never used again."""
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
        self._write(document, documents.encode_group(group))
        self._groups[fold(name)] = group
        return group

    def fresh_group(self, kind: GroupKind) -> Group:
        """A group of its own for one view, under a name that was never used."""
        return self.create_group(f"{kind}-{self._number()}", kind)

    def drop_group(self, name: str) -> Group:
        """Remove a group that has no views."""
        group = self.group(name)
        if group.name == MAIN:
            raise DefinitionError(f"group {MAIN} cannot be dropped", detail="every catalog has it")
        views = self.views(group.name)
        if views:
            _refuse_dependents(f"group {group.name} cannot be dropped", views, "drop them or move them first")
        indexes = self._members.of(group.name)
        if indexes:
            _refuse_dependents(f"group {group.name} cannot be dropped", tuple(indexes.values()), "drop them first")
        document = documents.group_name(fold(group.name))
        self._remove(document, documents.encode_group(replace(group, version=self._version), dropped=True))
        del self._groups[fold(group.name)]
        return group

    # -------------------------------------------------------------- what is staged

    def forget(self, discarded: Iterable[Table | StateTable]) -> None:
        """Remove the marks of discarded tables whose rows are removed."""
        for table in discarded:
            self._delete(documents.discard_name(table.id))

    def _discard(self, table: Table | StateTable) -> None:
        self.puts[documents.discard_name(table.id)] = documents.encode_discard(table)

    def _write(self, name: str, document: bytes) -> None:
        self._refuse_over()
        self.puts[name] = document
        self.puts[documents.history_name(name, self._version)] = document

    def _remove(self, name: str, last: bytes) -> None:
        self._delete(name)
        self.puts[documents.history_name(name, self._version)] = last

    def _delete(self, name: str) -> None:
        """A name that is deleted is never written again: ids and groups' names are not reused."""
        self._refuse_over()
        self.puts.pop(name, None)
        self.deletes.add(name)

    def _refuse_over(self) -> None:
        if self._is_over:
            raise DefinitionError("this draft is committed and cannot be changed", hint="begin another change")

    def _number(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _refuse_taken(self, name: str) -> None:
        taken = self.find(name)
        if taken is not None:
            a = "a table" if isinstance(taken, Table) else "an index" if taken.kind == "index" else "a view"
            raise DuplicateObjectError(f"there is {a} {taken.name} already", hint="choose another name, or drop it")


def _refuse_dependents(what: str, found: Sequence[Derived], hint: str) -> NoReturn:
    kinds = " and ".join(sorted({"indexes" if one.kind == "index" else "views" for one in found}))
    names = ", ".join(one.name for one in found)
    raise DefinitionError(what, detail=f"these {kinds} depend on it: {names}", hint=hint)


def _group_kind(text: str) -> GroupKind:
    try:
        return GroupKind(text)
    except ValueError:
        raise DefinitionError(
            f"there is no kind of group called {text}", hint=f"the kinds are {', '.join(GroupKind)}"
        ) from None
