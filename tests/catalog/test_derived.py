"""Indexes and named queries beside views: names, dependencies, drops, the past."""

from __future__ import annotations

import json

import pytest

from everview.catalog import (
    MAIN,
    NEW,
    Catalog,
    IndexDefinition,
    NamedQuery,
    Ordering,
    ViewDefinition,
    ViewStatus,
)
from everview.change.schema import Column, Schema
from everview.change.types import BIGINT, INTEGER
from everview.errors import DefinitionError, DuplicateObjectError, UnknownObjectError, UnsupportedFormatError
from everview.store.contract import Metadata, StateTable, Table

A = Column("a", INTEGER)


@pytest.fixture
def orders(catalog: Catalog) -> Table:
    return catalog.create_table("orders", Schema.of({"id": "BIGINT", "customer": "INTEGER"}, key=["id"]))


def named(name: str, *on: int) -> NamedQuery:
    return NamedQuery(name, "SELECT 1 AS a", (A,), on)


def test_a_view_is_read_back_with_all_it_says(catalog: Catalog, metadata: Metadata, orders: Table) -> None:
    view = catalog.create_view(
        ViewDefinition(
            "totals",
            "SELECT …",
            depends_on=(orders.id,),
            options={"refresh": "lazy"},
            text="CREATE MATERIALIZED VIEW totals AS SELECT …",
            dialect="spark",
            columns=(Column("customer", INTEGER, nullable=False), Column("n", BIGINT)),
            key=("customer",),
            order=(Ordering('"n"', descending=True, nulls_first=True),),
            seen={orders.id: 1},
        )
    )
    assert Catalog(metadata).view("totals") == view
    bag = catalog.create_view(ViewDefinition("bag", "SELECT …", columns=(A,), bag=True))
    assert Catalog(metadata).view("bag") == bag


def test_a_key_is_among_the_columns_or_hidden() -> None:
    with pytest.raises(DefinitionError, match="cannot have the key"):
        ViewDefinition("v", "SELECT …", columns=(A,), key=("b",))
    with pytest.raises(DefinitionError, match="cannot have the key"):
        ViewDefinition("v", "SELECT …", columns=(A,), key=("a",), bag=True)


def test_indexes_and_named_queries_are_read_back(catalog: Catalog, metadata: Metadata, orders: Table) -> None:
    index = catalog.create_index(
        IndexDefinition("by_customer", orders.id, ("customer",), state=(StateTable(NEW, "index", MAIN),))
    )
    query = catalog.create_query(NamedQuery("recent", "SELECT 1 AS a", (A,), (orders.id,), "CREATE VIEW …", "mysql"))
    found = Catalog(metadata).definitions()
    assert found.index("BY_CUSTOMER") == index == found.indexes(orders.id)[0]
    assert found.query("Recent") == query == found.queries()[0]
    assert found.names() == ("orders", "by_customer", "recent")
    assert found.by_id(index.id) == index and found.find("nothing") is None


def test_all_names_are_unique_together(catalog: Catalog, orders: Table) -> None:
    catalog.create_query(named("recent"))
    catalog.create_index(IndexDefinition("by_customer", orders.id, ("customer",)))
    with pytest.raises(DuplicateObjectError, match="there is a view recent already"):
        catalog.create_view(ViewDefinition("Recent", "SELECT 1"))
    with pytest.raises(DuplicateObjectError, match="there is an index by_customer already"):
        catalog.create_table("BY_CUSTOMER", orders.schema, if_not_exists=True)
    with pytest.raises(DuplicateObjectError, match="there is a table orders already"):
        catalog.create_index(IndexDefinition("orders", orders.id, ("customer",)))
    with pytest.raises(DuplicateObjectError, match="there is an index by_customer already"):
        catalog.create_query(named("by_customer"))


def test_a_name_of_another_kind_is_said_to_be_so(catalog: Catalog, orders: Table) -> None:
    catalog.create_query(named("recent"))
    catalog.create_index(IndexDefinition("by_customer", orders.id, ("customer",)))
    with pytest.raises(UnknownObjectError, match="recent is a plain view, not a table"):
        catalog.table("recent")
    with pytest.raises(UnknownObjectError, match="by_customer is an index, not a table"):
        catalog.table("by_customer")
    with pytest.raises(UnknownObjectError, match="recent is a plain view, not a materialized view"):
        catalog.view("recent")
    with pytest.raises(UnknownObjectError, match="orders is a table, not an index"):
        catalog.index("orders")
    with pytest.raises(UnknownObjectError, match=r"no index by_custmer\n.*did you mean by_customer"):
        catalog.index("by_custmer")


def test_what_others_depend_on_is_dropped_with_cascade_only(catalog: Catalog, orders: Table) -> None:
    recent = catalog.create_query(named("recent", orders.id))
    totals = catalog.create_view(ViewDefinition("totals", "SELECT 1", depends_on=(recent.id, orders.id)))
    index = catalog.create_index(IndexDefinition("by_total", totals.id, ("a",)))
    with pytest.raises(DefinitionError, match=r"these views depend on it: recent, totals"):
        catalog.drop_table("orders")
    with pytest.raises(DefinitionError, match=r"view recent cannot be dropped\n.*these views depend on it: totals"):
        catalog.drop_query("recent")
    with pytest.raises(DefinitionError, match=r"view recent cannot be replaced\n.*views depend on it: totals"):
        catalog.replace_query(named("recent"))
    with pytest.raises(DefinitionError, match=r"view totals cannot be replaced\n.*indexes depend on it: by_total"):
        catalog.replace_view(ViewDefinition("totals", "SELECT 2"))
    assert catalog.drop_table("orders", cascade=True) == (index, totals, recent, orders)
    assert catalog.definitions().names() == ()


def test_an_index_goes_with_what_it_is_on(catalog: Catalog, orders: Table) -> None:
    state = (StateTable(NEW, "index", MAIN),)
    index = catalog.create_index(IndexDefinition("by_customer", orders.id, ("customer",), state=state))
    assert catalog.drop_table("orders") == (index, orders)
    assert {table.id for table in catalog.discarded()} == {orders.id, index.state[0].id}


def test_an_index_is_dropped_alone(catalog: Catalog, orders: Table) -> None:
    index = catalog.create_index(IndexDefinition("by_customer", orders.id, ("customer",)))
    assert catalog.drop_index("by_customer") == (index,)
    assert catalog.indexes() == ()


def test_an_index_moves_with_its_view(catalog: Catalog) -> None:
    catalog.create_group("build-1", "building")
    view = catalog.create_view(ViewDefinition("v", "SELECT 1", group="build-1"))
    state = (StateTable(NEW, "index", "build-1"),)
    catalog.create_index(IndexDefinition("i", view.id, ("a",), "build-1", state=state))
    with pytest.raises(DefinitionError, match="views depend on it: v"):
        catalog.drop_group("build-1")
    catalog.change(lambda draft: draft.alter_view("v", group=MAIN, status=ViewStatus.LIVE))
    index = catalog.index("i")
    assert index.group == MAIN and index.state[0].group == MAIN
    live = catalog.change(lambda draft: draft.alter_index("i", status=ViewStatus.LIVE))
    assert catalog.index("i") == live
    catalog.drop_group("build-1")


def test_a_named_query_is_replaced_under_its_id(catalog: Catalog) -> None:
    old = catalog.create_query(named("recent"))
    new = catalog.replace_query(NamedQuery("RECENT", "SELECT 2 AS a", (A,)))
    assert (new.id, new.name, new.sql) == (old.id, "recent", "SELECT 2 AS a")
    with pytest.raises(DefinitionError, match="cannot read itself"):
        catalog.replace_query(named("recent", old.id))
    with pytest.raises(UnknownObjectError, match="which is not there"):
        catalog.create_query(named("other", 99))


def test_views_of_the_first_format_are_still_read(catalog: Catalog, metadata: Metadata, orders: Table) -> None:
    view = catalog.create_view(ViewDefinition("totals", "SELECT 1", depends_on=(orders.id,)))
    version, found = metadata.documents(f"view/{view.id}")
    old = json.loads(found[f"view/{view.id}"])
    for name in ("text", "dialect", "columns", "key", "bag", "order", "seen"):
        del old[name]
    metadata.commit(version, {f"view/{view.id}": json.dumps(old | {"format": 1}).encode()})
    assert Catalog(metadata).view("totals") == view


def test_a_newer_format_is_said_to_be_one(catalog: Catalog, metadata: Metadata, orders: Table) -> None:
    index = catalog.create_index(IndexDefinition("i", orders.id, ("customer",)))
    version, found = metadata.documents(f"index/{index.id}")
    newer = json.loads(found[f"index/{index.id}"]) | {"format": 99}
    metadata.commit(version, {f"index/{index.id}": json.dumps(newer).encode()})
    with pytest.raises(UnsupportedFormatError, match="format 99"):
        Catalog(metadata).indexes()
