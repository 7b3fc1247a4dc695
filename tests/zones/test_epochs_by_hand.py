"""The steps of an epoch without Spark: any history, any split, any half-finished attempt."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everview.catalog import Catalog
from everview.client.database import Database
from everview.errors import DefinitionError, StaleEpochError
from everview.log.source import next_epoch, share_out
from everview.zones.views import create_aggregate_view
from tests.zones.shop import Write, assert_view_is_right, distribute, finish, open_shop, serve, trade, write, writes

counts = st.integers(1, 6)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(st.lists(st.lists(writes, max_size=5), max_size=5), st.data())
def test_every_epoch_equals_recomputation_whatever_failed_before(
    history: list[list[Write]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_shop(Path(folder), nodes=3, shards=2) as db:
        store = db.store
        catalog = Catalog(store.metadata, store.views)
        for some in history:
            write(db, *some)
            begun = next_epoch(store, catalog, "main", None)
            if begun is None:
                continue
            slices = begun.start.slices_to(begun.frontier)
            for _ in range(data.draw(st.integers(0, 2), label="failed attempts")):
                servers = data.draw(counts, label="servers of a failed attempt")
                blocks, _ = distribute(store, begun, [slices], servers)
                for server in data.draw(st.lists(st.integers(0, servers - 1)), label="servers that wrote"):
                    serve(store, begun, blocks, server)
            finish(store, begun, [slices], data.draw(counts, label="servers"))
            assert_view_is_right(store)


@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
def test_a_slice_cut_anywhere_gives_the_same_view(shop: Database, tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.log.source.WORTH_A_TASK", 1)
    trade(shop, 30, seed=tasks)
    begun = next_epoch(shop.store, shop.catalog, "main", None)
    assert begun is not None
    shares = share_out(begun.start.slices_to(begun.frontier), tasks)
    assert len(shares) == tasks
    finish(shop.store, begun, shares, 2)
    assert_view_is_right(shop.store)


def test_a_region_that_moves_between_nodes_inside_an_epoch(shop: Database) -> None:
    first, second = shop.topology.nodes()[:2]
    region = next(region for region in shop.topology.regions() if region.node == first)
    trade(shop, 10, seed=1)
    shop.topology.move(region.first, second)
    trade(shop, 10, seed=2)
    shop.topology.move(region.first, first)
    trade(shop, 10, seed=3)
    begun = next_epoch(shop.store, shop.catalog, "main", None)
    assert begun is not None
    finish(shop.store, begun, [begun.start.slices_to(begun.frontier)], 2)
    assert_view_is_right(shop.store)


def test_a_server_that_wakes_up_after_the_commit_is_refused(shop: Database) -> None:
    trade(shop, 5, seed=1)
    begun = next_epoch(shop.store, shop.catalog, "main", None)
    assert begun is not None
    slices = [begun.start.slices_to(begun.frontier)]
    blocks, _ = distribute(shop.store, begun, slices, 1)
    finish(shop.store, begun, slices, 1)
    with pytest.raises(StaleEpochError):
        serve(shop.store, begun, blocks, 0)
    assert_view_is_right(shop.store)


def test_an_epoch_takes_whole_batches_only(shop: Database) -> None:
    for first in range(0, 30, 10):
        write(shop, ("put", [{"id": i, "customer": 1} for i in range(first, first + 10)]))
    begun = next_epoch(shop.store, shop.catalog, "main", 15)
    assert begun is not None and begun.start.operations_to(begun.frontier) == 10


def test_an_epoch_under_way_is_offered_again_as_it_was_begun(shop: Database) -> None:
    write(shop, ("put", [{"id": 1}]))
    begun = next_epoch(shop.store, shop.catalog, "main", None)
    write(shop, ("put", [{"id": 2}]))
    again = next_epoch(shop.store, shop.catalog, "main", None)
    assert begun is not None and again is not None
    assert (again.epoch, again.frontier, again.plan) == (begun.epoch, begun.frontier, begun.plan)


def test_two_views_of_one_group_move_together(shop: Database) -> None:
    create_aggregate_view(shop.store, "notes", "orders", group_by=["note", "customer"], count="orders", sums={})
    trade(shop, 20, seed=5)
    begun = next_epoch(shop.store, shop.catalog, "main", None)
    assert begun is not None
    finish(shop.store, begun, [begun.start.slices_to(begun.frontier)], 3)
    assert assert_view_is_right(shop.store) == assert_view_is_right(shop.store, "notes")


def test_a_column_added_while_entries_wait(shop: Database) -> None:
    trade(shop, 3, seed=1)
    shop.add_column("orders", "colour", "VARCHAR")
    shop.table("orders").put({"id": 1, "customer": 5, "colour": "red"})
    begun = next_epoch(shop.store, shop.catalog, "main", None)
    assert begun is not None
    finish(shop.store, begun, [begun.start.slices_to(begun.frontier)], 2)
    assert_view_is_right(shop.store)


def test_a_view_cannot_join_a_group_that_has_moved(shop: Database) -> None:
    trade(shop, 1, seed=1)
    begun = next_epoch(shop.store, shop.catalog, "main", None)
    assert begun is not None
    with pytest.raises(DefinitionError, match="late"):
        create_aggregate_view(shop.store, "late", "orders", group_by=["note"], count="n", sums={})


def test_a_view_of_what_cannot_be_summed_is_refused(shop: Database) -> None:
    with pytest.raises(DefinitionError, match="note"):
        create_aggregate_view(shop.store, "odd", "orders", group_by=["customer"], count="n", sums={"notes": "note"})
    assert [view.name for view in shop.catalog.views()] == ["totals"]
