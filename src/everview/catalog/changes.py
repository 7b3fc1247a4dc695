"""From the definitions of one version to those of a later one: by what was changed, if that is still recorded.

A store that an older version of Everview has changed has no record of it, and one may be missing for any other reason:
the changes form a chain from version to version, and where the chain does not reach, everything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from everview.catalog import documents
from everview.catalog.definitions import Definitions
from everview.catalog.documents import DefinitionChange, Head
from everview.catalog.names import fold
from everview.catalog.objects import MAIN, Derived, Group
from everview.store.contract import Metadata


def read_definitions(metadata: Metadata, last: Head, known: Definitions, head: Head) -> Definitions:
    """The definitions that belong to a head, read from those that belong to the last one."""
    names = _changed(metadata, last, head)
    if names is None:
        return _everything(metadata, head.changed)
    return _Reading(known).after({name: _document(metadata, name) for name in names}, head.changed)


class _Reading(Definitions):
    """Definitions that take in documents."""

    def __init__(self, known: Definitions) -> None:
        super().__init__()
        self._shares(known)

    def after(self, changed: Mapping[str, bytes | None], version: int) -> Definitions:
        """With these documents as they are now; None: it was removed."""
        for name, document in changed.items():
            if document is None:
                self._leave(name)
        entered = [
            self._enter(name, document)
            for name, document in sorted(changed.items(), key=lambda one: _age(one[0]))
            if document is not None
        ]
        if any(id >= one.id and self._find_derived(id) is not None for one in entered if one for id in one.depends_on):
            self.refuse_circles()
        return self._published(version)

    def _leave(self, name: str) -> None:
        kind, id = _age(name)
        if kind == documents.GROUPS:
            self._groups.pop(name.removeprefix(documents.GROUPS), None)
            self._groups.setdefault(MAIN, Group(MAIN))
        elif kind == documents.TABLES and id in self._tables:
            self._remove_table(id)
        elif kind != documents.TABLES and self._find_derived(id) is not None:
            self._remove_derived(id)

    def _enter(self, name: str, document: bytes) -> Derived | None:
        kind, _ = _age(name)
        if kind == documents.TABLES:
            self._put_table(documents.read_table(name, document))
        elif kind == documents.GROUPS:
            group = documents.decode(name, document, documents.read_group)
            self._groups[fold(group.name)] = group
        else:
            one: Derived = documents.decode(name, document, _READ[kind])
            self._put_derived(one)
            return one
        return None


_READ: Mapping[str, Callable[[documents.Json], Derived]] = {
    documents.VIEWS: documents.read_view,
    documents.INDEXES: documents.read_index,
    documents.QUERIES: documents.read_query,
}


def _changed(metadata: Metadata, last: Head, head: Head) -> set[str] | None:
    """The documents that were written or removed between two heads; None where that is not known."""
    count = head.changes - last.changes
    if last.changes == 0 or not 0 < count <= documents.KEPT_CHANGES:
        return None
    names: set[str] = set()
    version = last.changed
    for change in _changes(metadata, range(last.changes + 1, head.changes + 1)):
        if change is None or change.before != version or change.names is None:
            return None
        names.update(change.names)
        version = change.version
    return names if version == head.changed else None


def _changes(metadata: Metadata, numbers: Sequence[int]) -> list[DefinitionChange | None]:
    found = {name: _document(metadata, name) for name in map(documents.change_name, numbers)}
    return [
        None if document is None else documents.decode(name, document, documents.read_change)
        for name, document in found.items()
    ]


def _document(metadata: Metadata, name: str) -> bytes | None:
    return metadata.documents(name, limit=1)[1].get(name)


def _age(name: str) -> tuple[str, int]:
    """The kind of what a document defines, and the id, in whose order they are entered."""
    kind, slash, id = name.partition("/")
    return kind + slash, int(id) if kind + slash != documents.GROUPS else 0


def _everything(metadata: Metadata, version: int) -> Definitions:
    def all_of(prefix: str) -> list[tuple[str, bytes]]:
        return list(metadata.documents(prefix)[1].items())

    derived = [documents.decode(*one, read) for kind, read in _READ.items() for one in all_of(kind)]
    tables = [documents.read_table(*one) for one in all_of(documents.TABLES)]
    groups = [documents.decode(*one, documents.read_group) for one in all_of(documents.GROUPS)]
    found = Definitions(version, tables, derived, groups)
    found.refuse_circles()
    return found
