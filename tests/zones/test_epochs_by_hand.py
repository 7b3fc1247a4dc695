"""The tasks of an epoch without Spark: any history, any split, any half-finished attempt."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everview.catalog import MAIN
from everview.client.database import Database
from everview.errors import StaleEpochError
from tests.zones.by_hand import ByHand
from tests.zones.shop import Write, assert_all_is_right, open_shop, trade, write, writes

counts = st.integers(1, 6)
MORE = """
    CREATE MATERIALIZED VIEW dear AS SELECT * FROM orders WHERE amount > 10;
    CREATE MATERIALIZED VIEW notes AS SELECT note, min(amount) AS lo, max(amount) AS hi FROM orders GROUP BY note;
    CREATE MATERIALIZED VIEW pairs AS
        SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id;
    CREATE MATERIALIZED VIEW popular AS SELECT count(*) AS n FROM totals WHERE orders > 1;
"""
"""Views of four stages: one in the zone of the table, one on another view."""


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(st.lists(st.lists(writes, max_size=5), min_size=1, max_size=4), st.data())
def test_every_epoch_equals_recomputation_whatever_failed_before(
    history: list[list[Write]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_shop(Path(folder), nodes=3, shards=2) as db:
        db.sql(MORE)
        hand = ByHand(db)
        for some in history:
            write(db, *some)
            begun = hand.begin()
            if begun is None:
                continue
            for _ in range(data.draw(st.integers(0, 2), label="failed attempts")):
                servers = data.draw(counts, label="servers of a failed attempt")
                blocks = hand.read(begun, hand.shares(begun, 1), servers)
                for stage in range(2, data.draw(st.integers(2, hand.stages(begun)), label="stages done") + 1):
                    some_servers = data.draw(st.lists(st.integers(0, servers - 1)), label="servers that wrote")
                    blocks = [one for s in some_servers for one in hand.serve(begun, stage, servers, s, blocks)]
                    if len(set(some_servers)) < servers or len(some_servers) > servers:
                        break
            hand.finish(begun, data.draw(counts, label="servers"))
            assert_all_is_right(db)


@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
def test_logs_shared_out_in_any_way_give_the_same_views(
    shop: Database, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everview.zones.shares.WORTH_A_TASK", 1)
    shop.sql(MORE)
    hand = ByHand(shop)
    trade(shop, 30, seed=tasks)
    begun = hand.begin()
    assert begun is not None
    assert len([share for share in hand.shares(begun, tasks) if share.slices]) == min(tasks, 4)
    hand.finish(begun, servers=3, tasks=tasks)
    assert_all_is_right(shop)


def test_tasks_of_one_stage_in_any_order(shop: Database) -> None:
    shop.sql(MORE)
    hand = ByHand(shop)
    for seed in range(4):
        rng = random.Random(seed)
        trade(shop, 5, seed)
        begun = hand.begin()
        assert begun is not None
        servers = rng.randint(2, 6)
        blocks = hand.read(begun, hand.shares(begun, 2), servers)
        for stage in range(2, hand.stages(begun) + 1):
            order = rng.sample(range(servers), servers)
            made = [hand.serve(begun, stage, servers, server, blocks) for server in order]
            blocks = [block for part in made for block in rng.sample(part, len(part))]
        shop.store.views.commit(MAIN, begun.epoch)
        assert_all_is_right(shop)


def test_a_region_that_moves_between_nodes_inside_an_epoch(shop: Database) -> None:
    """Then keys stand in two logs, and all logs are read in one place."""
    shop.sql(MORE)
    hand = ByHand(shop)
    first, second = shop.topology.nodes()[:2]
    region = next(region for region in shop.topology.regions() if region.node == first)
    trade(shop, 10, seed=1)
    shop.topology.move(region.first, second)
    trade(shop, 10, seed=2)
    shop.topology.move(region.first, first)
    trade(shop, 10, seed=3)
    begun = hand.begin(alone=True)
    assert begun is not None
    slices = begun.start.slices_to(begun.frontier)
    assert [set(share.slices) for share in hand.shares(begun, 8)] == [set(slices)]
    hand.finish(begun, tasks=8)
    assert_all_is_right(shop)


def test_a_task_that_wakes_up_after_the_commit_is_refused(shop: Database) -> None:
    shop.sql(MORE)
    hand = ByHand(shop)
    trade(shop, 5, seed=1)
    begun = hand.begin()
    assert begun is not None
    blocks = hand.read(begun, hand.shares(begun, 1), 1)
    hand.finish(begun)
    with pytest.raises(StaleEpochError):
        hand.read(begun, hand.shares(begun, 1), 1)
    with pytest.raises(StaleEpochError):
        hand.serve(begun, 2, 1, 0, blocks)
    assert_all_is_right(shop)


def test_an_epoch_takes_whole_batches_only(shop: Database) -> None:
    for first in range(0, 30, 10):
        write(shop, ("put", [{"id": i, "customer": 1} for i in range(first, first + 10)]))
    begun = ByHand(shop).begin(15)
    assert begun is not None and begun.start.operations_to(begun.frontier) == 10


def test_an_epoch_under_way_is_offered_again_as_it_was_begun(shop: Database) -> None:
    hand = ByHand(shop)
    write(shop, ("put", [{"id": 1}]))
    begun = hand.begin()
    write(shop, ("put", [{"id": 2}]))
    again = hand.begin()
    assert begun is not None and again is not None
    assert (again.epoch, again.frontier, again.plan) == (begun.epoch, begun.frontier, begun.plan)


def test_no_epoch_begins_while_views_are_about_to_join(shop: Database) -> None:
    hand = ByHand(shop)
    write(shop, ("put", [{"id": 1}]))
    hand.maintainer.plans.pause(MAIN)
    assert hand.begin() is None
    hand.maintainer.plans.resume(MAIN)
    assert hand.begin() is not None


def test_a_column_added_while_entries_wait(shop: Database) -> None:
    hand = ByHand(shop)
    trade(shop, 3, seed=1)
    shop.sql("ALTER TABLE orders ADD COLUMN colour VARCHAR")
    shop.table("orders").put({"id": 1, "customer": 5, "colour": "red"})
    begun = hand.begin()
    assert begun is not None
    hand.finish(begun)
    assert_all_is_right(shop)


def test_logs_without_before_images(tmp_path: Path) -> None:
    with open_shop(tmp_path / "store", before_images=False) as db:
        db.sql(MORE)
        hand = ByHand(db)
        for seed in range(3):
            trade(db, 10, seed)
            begun = hand.begin()
            assert begun is not None
            hand.finish(begun, servers=seed + 1, tasks=4)
            assert_all_is_right(db)
