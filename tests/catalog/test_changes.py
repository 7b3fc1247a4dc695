"""Changes: all or nothing, on top of what others changed, noticed by everybody."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from everview.catalog import Catalog, Draft, GroupProgress, QuarantineEntry, ViewDefinition, ViewStatus
from everview.catalog import catalog as catalog_module
from everview.change.frontier import Frontier, Position
from everview.change.schema import Column, Schema
from everview.change.types import VARCHAR
from everview.errors import (
    ConflictError,
    DamagedEntryError,
    DefinitionError,
    StoreError,
    UnknownObjectError,
    UnsupportedFormatError,
)
from everview.store.contract import Begun, Commit, Metadata, Table
from tests.catalog.memory import MemoryMetadata

ORDERS = Schema.of({"id": "BIGINT", "customer": "INTEGER"}, key=["id"])
EDITS: list[Callable[[Draft], object]] = [
    lambda draft: draft.create_table("more", ORDERS),
    lambda draft: draft.create_view(ViewDefinition("v", "SELECT 1")),
    lambda draft: draft.create_group("g"),
    lambda draft: draft.drop_table("orders"),
]


def test_several_changes_become_visible_at_once(catalog: Catalog, metadata: Metadata) -> None:
    other = Catalog(metadata)
    with catalog.transaction() as draft:
        table = draft.create_table("orders", ORDERS)
        view = draft.create_view(ViewDefinition("v", "SELECT …", depends_on=(table.id,)))
        assert (draft.table("orders"), draft.view("v")) == (table, view)
        assert (other.tables(), catalog.tables()) == ((), ())
    assert (other.tables(), other.views()) == ((table,), (view,))
    assert other.version() == view.version == 1


def test_what_comes_and_goes_in_one_change_was_never_visible(catalog: Catalog) -> None:
    with catalog.transaction() as draft:
        table = draft.create_table("orders", ORDERS)
        draft.create_view(ViewDefinition("v", "SELECT …", depends_on=(table.id,)))
        draft.drop_table("orders", cascade=True)
    assert (catalog.tables(), catalog.views()) == ((), ())
    assert [past.dropped for past in catalog.table_history(table.id)] == [True]


def test_a_block_that_raises_changes_nothing(catalog: Catalog) -> None:
    with pytest.raises(DefinitionError, match="a table needs a column"), catalog.transaction() as draft:
        draft.create_table("orders", ORDERS)
        Schema.of({}, key=[])
    assert (catalog.version(), catalog.tables()) == (0, ())


@pytest.mark.parametrize("edit", EDITS)
def test_a_block_whose_ground_moved_is_refused(
    catalog: Catalog, metadata: Metadata, edit: Callable[[Draft], object]
) -> None:
    catalog.create_table("orders", ORDERS)
    with pytest.raises(ConflictError), catalog.transaction() as draft:
        edit(draft)
        Catalog(metadata).create_table("other", ORDERS)
    assert [table.name for table in catalog.tables()] == ["orders", "other"]
    assert (catalog.views(), len(catalog.groups())) == ((), 1)


def test_a_function_runs_again_on_what_the_others_left(catalog: Catalog, metadata: Metadata) -> None:
    other = Catalog(metadata)
    seen: list[list[str]] = []

    def work(draft: Draft) -> Table:
        seen.append([table.name for table in draft.tables()])
        if len(seen) < 3:
            other.create_table(f"other{len(seen)}", ORDERS)
        return draft.create_table("mine", ORDERS)

    mine = catalog.change(work)
    assert seen == [[], ["other1"], ["other1", "other2"]]
    assert [table.id for table in other.tables()] == [1, 2, mine.id]
    assert catalog.table("mine") == mine


def test_a_function_that_always_comes_second_gives_up(
    catalog: Catalog, metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_module, "ATTEMPTS", 3)
    other = Catalog(metadata)
    calls: list[int] = []

    def work(draft: Draft) -> None:
        calls.append(draft.counter)
        other.create_table(f"other{len(calls)}", ORDERS)
        draft.create_table("mine", ORDERS)

    with pytest.raises(ConflictError):
        catalog.change(work)
    assert calls == [0, 1, 2]


def test_threads_that_change_at_once_lose_nothing(catalog: Catalog) -> None:
    def create(worker: int) -> None:
        for number in range(10):
            catalog.create_table(f"t{worker}_{number}", ORDERS)

    threads = [threading.Thread(target=create, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {table.name for table in catalog.tables()} == {f"t{w}_{n}" for w in range(4) for n in range(10)}
    assert [table.id for table in catalog.tables()] == list(range(1, 41))
    assert catalog.version() == 40


def test_a_change_of_nothing_is_no_change(catalog: Catalog) -> None:
    catalog.change(lambda draft: draft.tables())
    assert catalog.version() == 0


# ------------------------------------------------------------------ versions


def test_the_version_rises_with_definitions_only(catalog: Catalog, metadata: Metadata) -> None:
    other = Catalog(metadata)
    catalog.create_table("orders", ORDERS)
    before = other.version()
    catalog.quarantine.add([QuarantineEntry(1, Position(1, 1), "broken", 0.0)])
    assert metadata.version() > before
    assert (other.version(), other.changed_since(before)) == (before, False)
    catalog.create_group("g")
    assert other.changed_since(before)


def test_a_watcher_wakes_up_when_another_changes_a_definition(catalog: Catalog, metadata: Metadata) -> None:
    start = catalog.version()
    creator = threading.Thread(target=Catalog(metadata).create_table, args=("orders", ORDERS))
    creator.start()
    assert catalog.watch(start, poll=0.001, timeout=60) == start + 1
    creator.join()
    assert catalog.watch(start, timeout=0) == start + 1
    assert catalog.watch(start + 1, poll=0.001, timeout=0.002) == start + 1


def test_a_picture_does_not_change_in_its_holders_hands(catalog: Catalog) -> None:
    before = catalog.create_table("orders", ORDERS)
    picture = catalog.definitions()
    catalog.add_column("orders", Column("note", VARCHAR))
    catalog.create_group("g")
    catalog.create_view(ViewDefinition("v", "SELECT 1"))
    assert (picture.tables(), picture.views(), len(picture.groups())) == ((before,), (), 1)
    assert picture.version < catalog.definitions().version


def test_every_definition_can_be_read_as_of_its_time(catalog: Catalog, metadata: Metadata) -> None:
    table = catalog.create_table("orders", ORDERS)
    view = catalog.create_view(ViewDefinition("v", "SELECT 1", depends_on=(table.id,)))
    live = catalog.change(lambda draft: draft.alter_view("v", status=ViewStatus.LIVE))
    wider = catalog.add_column("orders", Column("note", VARCHAR))
    last = catalog.version()
    catalog.drop_table("orders", cascade=True)
    catalog.create_table("orders", Schema.of({"x": "DATE"}, key=["x"]))

    other = Catalog(metadata)
    assert other.table_at(table.id, 1).schema == ORDERS
    assert other.table_at(table.id, view.version).schema == ORDERS
    assert other.table_at(table.id, last).schema == wider.schema
    assert (other.view_at(view.id, view.version), other.view_at(view.id, last)) == (view, live)
    assert [(past.version, past.dropped) for past in other.table_history(table.id)] == [
        (1, False),
        (4, False),
        (5, True),
    ]
    assert [past.definition.status for past in other.view_history(view.id)] == ["building", "live", "dropped"]
    for version in (0, last + 1):
        with pytest.raises(UnknownObjectError, match=f"at version {version} there was no table with the id {table.id}"):
            other.table_at(table.id, version)
    with pytest.raises(UnknownObjectError, match="there never was a view with the id 99"):
        other.view_at(99, 1)


# ------------------------------------------------------------------ the cache


def test_nothing_is_read_again_while_nothing_changes() -> None:
    metadata = MemoryMetadata()
    catalog = Catalog(metadata)
    catalog.create_table("orders", ORDERS)
    first = catalog.definitions()
    metadata.reads.clear()
    assert catalog.definitions() is first
    assert metadata.reads == []
    catalog.quarantine.add([QuarantineEntry(1, Position(1, 1), "broken", 0.0)])
    assert catalog.definitions() is first
    assert metadata.reads == ["catalog/head"]


def test_what_did_not_change_is_not_parsed_again(metadata: Metadata) -> None:
    catalog = Catalog(metadata)
    catalog.create_table("orders", ORDERS)
    catalog.create_table("people", ORDERS)
    kept = catalog.table("people")
    Catalog(metadata).add_column("orders", Column("note", VARCHAR))
    assert catalog.table("orders").schema.version == 2
    assert catalog.table("people") is kept


def test_a_reader_between_two_writes_never_sees_a_mixture() -> None:
    class Interrupted(MemoryMetadata):
        """Another process drops the table, and the view that reads it, between two reads."""

        def __init__(self) -> None:
            super().__init__()
            self.interruptions: list[Callable[[], object]] = []

        def documents(
            self, prefix: str = "", *, after: str = "", limit: int | None = None
        ) -> tuple[int, dict[str, bytes]]:
            if prefix == "view/" and self.interruptions:
                self.interruptions.pop()()
            counter, found = super().documents(prefix, after=after, limit=limit)
            return counter, dict(found)

    metadata = Interrupted()
    writer = Catalog(metadata)
    table = writer.create_table("orders", ORDERS)
    writer.create_view(ViewDefinition("v", "SELECT …", depends_on=(table.id,)))
    writer.definitions()
    metadata.interruptions.append(lambda: writer.drop_table("orders", cascade=True))
    seen = Catalog(metadata).definitions()
    assert not metadata.interruptions
    assert (seen.tables(), seen.views()) == ((), ())


# ------------------------------------------------------------------ documents


def test_a_document_of_a_newer_version_is_said_to_be_one(catalog: Catalog, metadata: Metadata) -> None:
    table = catalog.create_table("orders", ORDERS)
    newer = table.stamp.replace(b'"format":2', b'"format":3')
    metadata.commit(metadata.version(), {f"table/{table.id}": newer})
    with pytest.raises(
        UnsupportedFormatError, match=f"document table/{table.id} has format 3, this version reads up to 2"
    ):
        Catalog(metadata).tables()


@pytest.mark.parametrize("broken", [b"", b"\xff", b"{}", b"[]", b"null", b'{"format":1}', b'{"format":"x"}'])
def test_a_damaged_document_is_named(catalog: Catalog, metadata: Metadata, broken: bytes) -> None:
    view = catalog.create_view(ViewDefinition("v", "SELECT 1"))
    metadata.commit(metadata.version(), {f"view/{view.id}": broken})
    with pytest.raises(DamagedEntryError, match=f"the catalog document view/{view.id} cannot be read"):
        Catalog(metadata).views()


# ------------------------------------------------------------------ epochs


class OneEpoch:
    """As much of a view store as epochs need."""

    def committed(self, group: str) -> Commit:
        return Commit(group, 7, Frontier({1: 5}), 99.0)

    def begun(self, group: str) -> Begun | None:
        return Begun(group, 8, 7, Frontier({1: 5}), Frontier({1: 9}), b"plan", resumed=False)


def test_epochs_are_those_of_the_view_store(metadata: Metadata) -> None:
    views = OneEpoch()
    catalog = Catalog(metadata, views)  # type: ignore[arg-type]
    catalog.create_group("Nightly", "lazy")
    assert catalog.epochs("nightly") == GroupProgress(views.committed("Nightly"), views.begun("Nightly"))
    with pytest.raises(UnknownObjectError, match="there is no group weekly"):
        catalog.epochs("weekly")
    with pytest.raises(StoreError, match="without a view store"):
        Catalog(metadata).epochs("main")
