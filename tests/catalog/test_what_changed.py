"""A reader follows the catalog by what was changed: it reads no more than that, and everything where it must."""

from __future__ import annotations

import json

import pytest

from everview.catalog import Catalog, Draft, ViewDefinition, ViewStatus, documents
from everview.change.schema import Schema
from everview.errors import DefinitionError
from tests.catalog.memory import MemoryMetadata
from tests.catalog.test_random_histories import contents

ORDERS = Schema.of({"id": "BIGINT"}, key=["id"])
EVERYTHING = {documents.TABLES, documents.VIEWS, documents.INDEXES, documents.QUERIES, documents.GROUPS}


@pytest.fixture
def metadata() -> MemoryMetadata:
    return MemoryMetadata()


@pytest.fixture
def writer(metadata: MemoryMetadata) -> Catalog:
    writer = Catalog(metadata)
    writer.create_table("orders", ORDERS)
    for number in range(20):
        writer.create_view(ViewDefinition(f"v{number}", "SELECT …"))
    return writer


@pytest.fixture
def reader(metadata: MemoryMetadata, writer: Catalog) -> Catalog:
    reader = Catalog(metadata)
    assert len(reader.views()) == 20
    metadata.reads.clear()
    return reader


def test_the_one_that_made_a_change_reads_nothing(metadata: MemoryMetadata, writer: Catalog) -> None:
    metadata.reads.clear()
    writer.create_view(ViewDefinition("more", "SELECT …"))
    assert writer.view("more").name == "more"
    assert metadata.reads == []


def test_a_reader_reads_what_was_changed(metadata: MemoryMetadata, writer: Catalog, reader: Catalog) -> None:
    made = writer.create_view(ViewDefinition("more", "SELECT …"))
    writer.change(lambda draft: draft.alter_view("v3", status=ViewStatus.LIVE))
    gone = writer.view("v4")
    writer.drop_view("v4")
    assert contents(reader) == contents(writer)
    wanted = {documents.view_name(view.id) for view in (made, writer.view("v3"), gone)}
    assert {name for name in metadata.reads if name.startswith(documents.VIEWS)} == wanted
    assert not EVERYTHING & set(metadata.reads)


def test_a_large_change_has_everything_read(metadata: MemoryMetadata, writer: Catalog, reader: Catalog) -> None:
    def work(draft: Draft) -> None:
        for number in range(documents.LARGE_CHANGE):
            draft.create_view(ViewDefinition(f"w{number}", "SELECT …"))

    writer.change(work)
    assert contents(reader) == contents(writer)
    assert set(metadata.reads) >= EVERYTHING


def test_a_reader_that_was_away_for_long_reads_everything(
    metadata: MemoryMetadata, writer: Catalog, reader: Catalog
) -> None:
    for _ in range(documents.KEPT_CHANGES // 2 + 1):
        writer.create_table("short", ORDERS)
        writer.drop_table("short")
    assert contents(reader) == contents(writer)
    assert set(metadata.reads) >= EVERYTHING
    recorded = metadata.documents(documents.CHANGES)[1]
    assert len(recorded) == documents.KEPT_CHANGES


def test_a_reader_that_was_away_almost_as_long_does_not(
    metadata: MemoryMetadata, writer: Catalog, reader: Catalog
) -> None:
    for _ in range(documents.KEPT_CHANGES // 2):
        writer.create_table("short", ORDERS)
        writer.drop_table("short")
    assert contents(reader) == contents(writer)
    assert not EVERYTHING & set(metadata.reads)


def test_changes_that_an_older_version_has_not_recorded_have_everything_read(
    metadata: MemoryMetadata, writer: Catalog, reader: Catalog
) -> None:
    writer.create_view(ViewDefinition("more", "SELECT …"))
    before = metadata.documents()[1]
    head = documents.decode(documents.HEAD, before[documents.HEAD], documents.read_head)
    view = json.loads(before[documents.view_name(writer.view("v3").id)])
    counter = metadata.version()
    older = {
        documents.HEAD: documents.encode("head", {"next_id": head.next_id, "changed": counter + 1}),
        documents.view_name(view["id"]): documents.encode("view", view | {"status": "live", "version": counter + 1}),
    }
    metadata.commit(counter, older)
    assert reader.view("v3").status is ViewStatus.LIVE
    Catalog(metadata).create_view(ViewDefinition("again", "SELECT …"))
    assert contents(reader) == contents(Catalog(metadata))
    assert {"again", "more"} <= {view.name for view in reader.views()}


def test_a_record_that_is_missing_has_everything_read(
    metadata: MemoryMetadata, writer: Catalog, reader: Catalog
) -> None:
    writer.create_view(ViewDefinition("more", "SELECT …"))
    writer.create_view(ViewDefinition("yet more", "SELECT …"))
    last = sorted(metadata.documents(documents.CHANGES)[1], key=lambda name: int(name.rpartition("/")[2]))[-1]
    metadata.commit(metadata.version(), {}, [last])
    assert contents(reader) == contents(writer)
    assert set(metadata.reads) >= EVERYTHING


def test_definitions_that_were_read_do_not_change(writer: Catalog, reader: Catalog) -> None:
    before, own = reader.definitions(), writer.definitions()
    known = len(before.views()), len(own.views()), len(own.dependents(own.table("orders").id))
    writer.create_view(ViewDefinition("more", "SELECT …", depends_on=(own.table("orders").id,)))
    writer.drop_view("v1")
    assert reader.view("more").depends_on == (own.table("orders").id,)
    assert (len(before.views()), len(own.views()), len(own.dependents(own.table("orders").id))) == known
    assert before.view("v1") == own.view("v1")


def test_a_change_that_fails_leaves_nothing(writer: Catalog) -> None:
    def work(draft: Draft) -> None:
        draft.create_view(ViewDefinition("half", "SELECT …"))
        draft.drop_view("v1")
        raise ZeroDivisionError

    before = contents(writer)
    with pytest.raises(ZeroDivisionError):
        writer.change(work)
    assert contents(writer) == before


def test_a_draft_that_is_committed_cannot_be_changed(writer: Catalog) -> None:
    with writer.transaction() as draft:
        draft.create_view(ViewDefinition("more", "SELECT …"))
    before = contents(writer)
    with pytest.raises(DefinitionError, match="is committed"):
        draft.create_view(ViewDefinition("late", "SELECT …"))
    with pytest.raises(DefinitionError, match="is committed"):
        draft.drop_view("more")
    with pytest.raises(DefinitionError, match="is committed"):
        draft.create_group("late")
    assert contents(writer) == before
