"""Tables: created, widened, dropped; names and ids."""

from __future__ import annotations

import pytest

from everview.catalog import Catalog, ViewDefinition
from everview.change.schema import Column, Schema
from everview.change.types import VARCHAR
from everview.errors import DefinitionError, DuplicateObjectError, UnknownObjectError
from everview.store.contract import Metadata

ORDERS = Schema.of({"id": "BIGINT", "customer": "INTEGER", "amount": "DECIMAL(10,2)"}, key=["id"])


def test_a_table_is_found_by_any_spelling_and_keeps_its_own(catalog: Catalog) -> None:
    created = catalog.create_table("Orders", ORDERS)
    assert catalog.table("oRDERS") == created
    assert (created.name, created.schema) == ("Orders", ORDERS)
    assert catalog.tables() == (created,)


def test_another_catalog_on_the_same_store_sees_the_same_table(catalog: Catalog, metadata: Metadata) -> None:
    created = catalog.create_table("orders", ORDERS)
    assert Catalog(metadata).table("orders") == created


def test_the_stamp_is_the_document_byte_for_byte(catalog: Catalog, metadata: Metadata) -> None:
    created = catalog.create_table("orders", ORDERS)
    assert metadata.documents("table/")[1] == {f"table/{created.id}": created.stamp}
    wider = catalog.add_column("orders", Column("note", VARCHAR))
    assert metadata.documents("table/")[1] == {f"table/{created.id}": wider.stamp}
    assert catalog.table("orders").stamp == wider.stamp != created.stamp
    assert all(b'"created":1234.5,' in table.stamp for table in (created, wider))


def test_a_taken_name_is_refused_in_every_spelling(catalog: Catalog) -> None:
    catalog.create_table("orders", ORDERS)
    catalog.create_view(ViewDefinition("totals", "SELECT 1"))
    with pytest.raises(DuplicateObjectError, match="there is a table orders already"):
        catalog.create_table("ORDERS", ORDERS)
    with pytest.raises(DuplicateObjectError, match="there is a view totals already"):
        catalog.create_table("Totals", ORDERS)
    with pytest.raises(DuplicateObjectError, match="there is a table orders already"):
        catalog.create_view(ViewDefinition("Orders", "SELECT 1"))


def test_if_not_exists_returns_the_table_that_is_there(catalog: Catalog) -> None:
    created = catalog.create_table("orders", ORDERS)
    version = catalog.version()
    assert catalog.create_table("ORDERS", Schema.of({"x": "DATE"}, key=["x"]), if_not_exists=True) == created
    assert catalog.version() == version


def test_if_not_exists_does_not_take_a_view_for_a_table(catalog: Catalog) -> None:
    catalog.create_view(ViewDefinition("totals", "SELECT 1"))
    with pytest.raises(DuplicateObjectError, match="there is a view totals already"):
        catalog.create_table("totals", ORDERS, if_not_exists=True)


def test_an_unknown_name_brings_the_nearest_one(catalog: Catalog) -> None:
    with pytest.raises(UnknownObjectError, match="there are no tables yet"):
        catalog.table("orders")
    catalog.create_table("Orders", ORDERS)
    catalog.create_table("people", ORDERS)
    with pytest.raises(UnknownObjectError, match=r"did you mean Orders\?"):
        catalog.table("order")
    with pytest.raises(UnknownObjectError, match="the tables are Orders, people"):
        catalog.table("zzzz")
    with pytest.raises(UnknownObjectError, match="people is a table, not a view"):
        catalog.view("people")


@pytest.mark.parametrize("name", ["", " ", " orders", "a\x00b", "a\nb", "__orders", "ä" * 101])
def test_what_is_not_a_name_is_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(DefinitionError, match="is not a name for a table"):
        catalog.create_table(name, ORDERS)
    with pytest.raises(DefinitionError, match="is not a name for a view"):
        ViewDefinition(name, "SELECT 1")
    assert catalog.version() == 0


def test_a_name_may_have_spaces_and_letters_of_any_script(catalog: Catalog) -> None:
    created = catalog.create_table("Été / заказы 订单", ORDERS)
    assert catalog.table("été / ЗАКАЗЫ 订单") == created


def test_an_added_column_is_a_new_schema_version_of_the_same_table(catalog: Catalog) -> None:
    created = catalog.create_table("orders", ORDERS)
    wider = catalog.add_column(created, Column("note", VARCHAR))
    assert (wider.id, wider.name) == (created.id, created.name)
    assert (wider.schema.version, wider.schema.names[-1], wider.schema.columns[-1].since) == (2, "note", 2)
    assert catalog.table("orders") == wider


def test_a_column_cannot_be_added_twice_nor_to_a_table_that_is_gone(catalog: Catalog) -> None:
    created = catalog.create_table("orders", ORDERS)
    with pytest.raises(DuplicateObjectError, match="table orders has a column AMOUNT already"):
        catalog.add_column("orders", Column("AMOUNT", VARCHAR))
    with pytest.raises(UnknownObjectError, match="there is no table nothing"):
        catalog.add_column("nothing", Column("note", VARCHAR))
    catalog.drop_table("orders")
    catalog.create_table("orders", ORDERS)
    with pytest.raises(UnknownObjectError, match=f"no table with the id {created.id}"):
        catalog.add_column(created, Column("note", VARCHAR))


def test_a_dropped_table_is_gone_and_its_id_is_never_given_again(catalog: Catalog) -> None:
    first = catalog.create_table("orders", ORDERS)
    assert catalog.drop_table("Orders") == (first,)
    assert catalog.tables() == ()
    second = catalog.create_table("orders", ORDERS)
    assert second.id > first.id


def test_a_dropped_table_is_discarded_until_somebody_says_that_its_rows_are_gone(
    catalog: Catalog, metadata: Metadata
) -> None:
    table = catalog.create_table("orders", ORDERS)
    assert catalog.discarded() == ()
    catalog.drop_table("orders")
    other = Catalog(metadata)
    (left,) = other.discarded()
    assert (left.id, left.name) == (table.id, table.name)
    other.forget([left])
    assert catalog.discarded() == ()
