"""The catalog of one store: read from a cache, changed by compare-and-set.

All definitions share the store's one document counter, so a reader
checks one number to know whether its cache is valid, and a writer commits only on top of
exactly what it read.

A change is a function of a :class:`~everview.catalog.draft.Draft`. If another process
commits first, the draft is discarded and the function runs again on the new state, so
it must have no other effect::

    process A: read at 7 ── draft ── commit(expected=7) → 8
    process B: read at 7 ────── draft ────── commit(expected=7) → conflict
               read at 8 ── draft ── commit(expected=8) → 9

The counter also moves for documents that define nothing (a quarantine entry). The head
document has the version of the last change of a definition; only then is anything read again.
:meth:`Catalog.version` is that number: it rises when a definition changes and at no other time, in every
process.

There may be thousands of views, so a change costs what it changes. It records, in the same commit, which documents it
wrote or removed; a reader goes from change to change and reads those documents. Where a change was very large, or too
long ago to be recorded still, everything is read. The process that has made a change reads nothing::

    changes    17: view/9    18: view/9 group/main    19: very many    20: table/7    21: view/12
    a reader at 19 reads table/7 and view/12; a reader at 18 reads everything
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from everview.boundary import fast, public
from everview.catalog import documents
from everview.catalog.changes import read_definitions
from everview.catalog.definitions import Definitions
from everview.catalog.documents import Head
from everview.catalog.draft import Draft, Dropped
from everview.catalog.objects import Group, GroupKind, GroupProgress, IndexDefinition, NamedQuery, Past, ViewDefinition
from everview.catalog.quarantine import Quarantine
from everview.change.schema import Column, Schema
from everview.errors import ConflictError, StoreError, UnknownObjectError
from everview.store.contract import Metadata, StateTable, Table, ViewStore

T = TypeVar("T")

ATTEMPTS = 100
"""How often a change is tried again after changes of other processes."""


@dataclass(frozen=True)
class _KnownCatalog:
    """The catalog as it was at ``counter``."""

    counter: int
    head: Head
    definitions: Definitions


@public
@fast
class Catalog:
    """Tables, views, groups, epochs and quarantine of one store. Safe for many threads."""

    def __init__(
        self, metadata: Metadata, views: ViewStore | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._metadata = metadata
        self._view_store = views
        self._clock = clock
        self._lock = threading.Lock()
        self._last = _KnownCatalog(0, Head(), Definitions())
        self.quarantine = Quarantine(metadata)

    # -------------------------------------------------------------- reads

    def definitions(self) -> Definitions:
        """All current definitions, as one immutable value."""
        return self._read().definitions

    def tables(self) -> tuple[Table, ...]:
        return self.definitions().tables()

    def table(self, name: str) -> Table:
        return self.definitions().table(name)

    def views(self, group: str | None = None) -> tuple[ViewDefinition, ...]:
        return self.definitions().views(group)

    def view(self, name: str) -> ViewDefinition:
        """A view by name; an error that suggests the nearest name if there is none."""
        return self.definitions().view(name)

    def indexes(self) -> tuple[IndexDefinition, ...]:
        return self.definitions().indexes()

    def index(self, name: str) -> IndexDefinition:
        return self.definitions().index(name)

    def queries(self) -> tuple[NamedQuery, ...]:
        return self.definitions().queries()

    def query(self, name: str) -> NamedQuery:
        return self.definitions().query(name)

    def groups(self) -> tuple[Group, ...]:
        """All groups, those of builds too."""
        return self.definitions().groups()

    def group(self, name: str) -> Group:
        return self.definitions().group(name)

    def epochs(self, group: str) -> GroupProgress:
        """The last committed epoch of a group, and the one under way."""
        if self._view_store is None:
            raise StoreError("this catalog was opened without a view store, which keeps the epochs")
        name = self.group(group).name
        return GroupProgress(self._view_store.committed(name), self._view_store.begun(name))

    # -------------------------------------------------------------- changes

    def change(self, work: Callable[[Draft], T]) -> T:
        """Run ``work`` on a draft and commit it; again on a newer one if another process was
        first. ``work`` must change nothing but the draft."""
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(ConflictError):
                return self._attempt(work)
        return self._attempt(work)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Draft]:
        """A draft that is committed at the end of the block, or forgotten if the block
        raises. Raises ConflictError if another process was first: unlike a function, a block
        cannot be run again."""
        draft = self._draft()
        yield draft
        self._commit(draft)

    def create_table(self, name: str, schema: Schema, if_not_exists: bool = False) -> Table:
        return self.change(lambda draft: draft.create_table(name, schema, if_not_exists))

    def add_column(self, table: str | Table, column: Column) -> Table:
        return self.change(lambda draft: draft.add_column(table, column))

    def drop_table(self, name: str, cascade: bool = False) -> Dropped:
        return self.change(lambda draft: draft.drop_table(name, cascade))

    def create_view(self, view: ViewDefinition) -> ViewDefinition:
        return self.change(lambda draft: draft.create_view(view))

    def replace_view(self, view: ViewDefinition) -> ViewDefinition:
        return self.change(lambda draft: draft.replace_view(view))

    def drop_view(self, name: str, cascade: bool = False) -> Dropped:
        return self.change(lambda draft: draft.drop_view(name, cascade))

    def create_index(self, index: IndexDefinition) -> IndexDefinition:
        return self.change(lambda draft: draft.create_index(index))

    def drop_index(self, name: str, cascade: bool = False) -> Dropped:
        return self.change(lambda draft: draft.drop_index(name, cascade))

    def create_query(self, query: NamedQuery) -> NamedQuery:
        return self.change(lambda draft: draft.create_query(query))

    def replace_query(self, query: NamedQuery) -> NamedQuery:
        return self.change(lambda draft: draft.replace_query(query))

    def drop_query(self, name: str, cascade: bool = False) -> Dropped:
        return self.change(lambda draft: draft.drop_query(name, cascade))

    def create_group(
        self, name: str, kind: GroupKind | str = GroupKind.CONTINUOUS, if_not_exists: bool = False
    ) -> Group:
        return self.change(lambda draft: draft.create_group(name, kind, if_not_exists))

    def drop_group(self, name: str) -> Group:
        return self.change(lambda draft: draft.drop_group(name))

    def discarded(self) -> tuple[Table | StateTable, ...]:
        """Tables and state tables that the catalog no longer contains, but whose rows may still be
        stored: drop them from the store, then call :meth:`forget`."""
        _, found = self._metadata.documents(documents.DISCARDS)
        return tuple(documents.decode(name, found[name], documents.read_discard) for name in sorted(found))

    def forget(self, discarded: Iterable[Table | StateTable]) -> None:
        """Record that the rows of these discarded tables are removed from the store."""
        gone = tuple(discarded)
        if gone:
            self.change(lambda draft: draft.forget(gone))

    # -------------------------------------------------------------- versions

    def version(self) -> int:
        """The version of the last change of a definition, by any process."""
        return self._read().head.changed

    def changed_since(self, version: int) -> bool:
        return self.version() > version

    def watch(self, since: int, *, poll: float = 0.05, timeout: float | None = None) -> int:
        """Wait until a definition changes after the version ``since``; returns the new
        version, or the unchanged one after the timeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (found := self.version()) <= since:
            left = poll if deadline is None else min(poll, deadline - time.monotonic())
            if left <= 0:
                break
            time.sleep(left)
        return found

    def table_history(self, id: int) -> tuple[Past[Table], ...]:
        """Every definition of the table, the oldest first; also of a dropped table."""
        return self._history("table", documents.table_name(id), documents.read_past_table)

    def view_history(self, id: int) -> tuple[Past[ViewDefinition], ...]:
        """Every definition of the view, the oldest first; also of a dropped view."""
        return self._history("view", documents.view_name(id), documents.read_past_view)

    def table_at(self, id: int, version: int) -> Table:
        """The table as it was defined at a catalog version."""
        return _at("table", id, version, self.table_history(id))

    def view_at(self, id: int, version: int) -> ViewDefinition:
        """The view as it was defined at a catalog version."""
        return _at("view", id, version, self.view_history(id))

    def _history(self, kind: str, name: str, read: Callable[[documents.Json], Past[T]]) -> tuple[Past[T], ...]:
        _, found = self._metadata.documents(documents.history_prefix(name))
        if not found:
            raise UnknownObjectError(f"there never was a {kind} with the id {name.rpartition('/')[2]}")
        return tuple(documents.decode(past, found[past], read) for past in sorted(found))

    # -------------------------------------------------------------- the cache and the commit

    def _read(self) -> _KnownCatalog:
        """The current catalog. Only the counter is read while the counter does not change,
        and only the head while no definition changes."""
        counter = self._metadata.version()
        with self._lock:
            if counter == self._last.counter:
                return self._last
            self._last = self._refreshed(self._last)
            return self._last

    def _refreshed(self, last: _KnownCatalog) -> _KnownCatalog:
        counter, head = self._read_head()
        if head == last.head:
            return _KnownCatalog(counter, head, last.definitions)
        while True:
            found = read_definitions(self._metadata, last.head, last.definitions, head)
            counter, after = self._read_head()
            # the reads are of one version if no definition changed from before the first to after the last
            if after == head:
                return _KnownCatalog(counter, head, found)
            head = after

    def _read_head(self) -> tuple[int, Head]:
        counter, found = self._metadata.documents(documents.HEAD)
        document = found.get(documents.HEAD)
        return counter, Head() if document is None else documents.decode(documents.HEAD, document, documents.read_head)

    def _draft(self) -> Draft:
        read = self._read()

        def used_before(document: str) -> bool:
            return bool(self._metadata.documents(documents.history_prefix(document), limit=1)[1])

        return Draft(read.definitions, read.head, read.counter, self._clock, used_before)

    def _attempt(self, work: Callable[[Draft], T]) -> T:
        draft = self._draft()
        result = work(draft)
        self._commit(draft)
        return result

    def _commit(self, draft: Draft) -> None:
        if not draft.is_changed:
            return
        head = draft.head()
        own = {
            documents.HEAD: documents.encode_head(head),
            documents.change_name(head.changes): documents.encode_change(draft.change()),
        }
        counter = self._metadata.commit(draft.counter, draft.puts | own, draft.deletes)
        with self._lock:
            if self._last.counter < counter:
                self._last = _KnownCatalog(counter, head, draft.published())


def _at(kind: str, id: int, version: int, history: tuple[Past[T], ...]) -> T:
    reached = [past for past in history if past.version <= version]
    if not reached or reached[-1].dropped:
        raise UnknownObjectError(f"at version {version} there was no {kind} with the id {id}")
    return reached[-1].definition
