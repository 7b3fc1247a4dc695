"""The rules of epochs one by one, where the random histories would take long to show why."""

from __future__ import annotations

import pyarrow as pa
import pytest

from everview.change.frontier import Frontier
from everview.errors import ConflictError, DamagedEntryError, EpochError, EpochOrderError, InputError, StaleEpochError
from everview.store.contract import BagRows, Commit, Deletes, Puts, StateTable, Store, ViewStore
from everview.store.encoding.ragged import Bytes
from tests.adapters.under_test import StoreUnderTest

TABLE = StateTable(1, "totals", "main")
BAGS = StateTable(2, "bags", "main")


def column(*items: bytes | None) -> Bytes:
    return pa.array(items, pa.large_binary())


def run(views: ViewStore, *, puts: dict[bytes, bytes] | None = None, deletes: tuple[bytes, ...] = ()) -> Commit:
    """One whole epoch of the main group."""
    begun = views.begin("main", Frontier(), b"")
    put = Puts(column(*(puts or {})), column(*(puts or {}).values()))
    views.write(TABLE, begun.epoch, put, Deletes(column(*deletes)))
    return views.commit("main", begun.epoch)


def rows_of(views: ViewStore, table: StateTable = TABLE) -> dict[bytes, bytes]:
    found = views.scan(table, b"", views.committed(table.group).epoch)
    return dict(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True))


def test_the_empty_beginning(store: Store) -> None:
    commit = store.views.committed("never heard of")
    assert (commit.epoch, commit.frontier) == (0, Frontier())
    assert store.views.begun("never heard of") is None
    assert store.views.read(TABLE, column(b"a"), 0).to_pylist() == [None]


def test_a_half_written_epoch_is_invisible_and_survives_a_restart(under_test: StoreUnderTest) -> None:
    store = under_test.open()
    run(store.views, puts={b"a": b"1", b"b": b"1"})
    begun = store.views.begin("main", Frontier(), b"plan")
    store.views.write(TABLE, begun.epoch, Puts(column(b"a"), column(b"2")), Deletes(column(b"b")))
    store.close()
    store = under_test.open()
    views = store.views
    assert rows_of(views) == {b"a": b"1", b"b": b"1"}
    resumed = views.begin("main", Frontier(), b"another plan")
    assert resumed.resumed
    assert (resumed.epoch, resumed.base, resumed.plan) == (begun.epoch, begun.base, b"plan")
    assert views.read(TABLE, column(b"a", b"b"), begun.base).to_pylist() == [b"1", b"1"]
    views.write(TABLE, begun.epoch, Puts(column(b"a"), column(b"2")), Deletes(column(b"b")))
    views.commit("main", begun.epoch)
    assert rows_of(views) == {b"a": b"2"}
    store.close()


def test_a_zombie_finds_the_door_closed_before_and_after_the_sweep(store: Store) -> None:
    views = store.views
    run(views, puts={b"a": b"1"})
    gone = run(views, deletes=(b"a",))
    for swept in (False, True):
        if swept:
            assert views.sweep("main") == 1
        for epoch in range(1, gone.epoch + 1):
            with pytest.raises(StaleEpochError):
                views.write(TABLE, epoch, Puts(column(b"a"), column(b"back from the dead")))
            with pytest.raises(StaleEpochError):
                views.write(TABLE, epoch, deletes=Deletes(column(b"a")))
        assert rows_of(views) == {}
    assert views.sweep("main") == 0


def test_every_tombstone_is_swept_once(store: Store) -> None:
    views = store.views
    names = [b"%d" % number for number in range(50)]
    run(views, puts=dict.fromkeys(names, b""))
    run(views, deletes=tuple(names))
    open_epoch = views.begin("main", Frontier(), b"")
    views.write(TABLE, open_epoch.epoch, Puts(column(b"0"), column(b"new")))
    assert views.sweep("main") == 49, "of record 0, the open epoch has a newer version"
    views.commit("main", open_epoch.epoch)
    assert views.sweep("main") == 0
    assert rows_of(views) == {b"0": b"new"}


def test_the_tombstones_of_an_open_epoch_stay(store: Store) -> None:
    views = store.views
    run(views, puts={b"a": b"1"})
    begun = views.begin("main", Frontier(), b"")
    views.write(TABLE, begun.epoch, deletes=Deletes(column(b"a")))
    assert views.sweep("main") == 0
    assert rows_of(views) == {b"a": b"1"}
    views.commit("main", begun.epoch)
    assert views.sweep("main") == 1
    assert rows_of(views) == {}


def test_a_record_deleted_and_put_again_is_there(store: Store) -> None:
    views = store.views
    run(views, puts={b"a": b"1"})
    run(views, deletes=(b"a",))
    run(views, puts={b"a": b"2"})
    views.sweep("main")
    assert rows_of(views) == {b"a": b"2"}


def test_groups_draw_from_one_counter_and_do_not_see_each_other(store: Store) -> None:
    views = store.views
    lazy = StateTable(9, "lazy", "lazy")
    first = views.begin("lazy", Frontier(), b"")
    second = views.begin("main", Frontier(), b"")
    assert second.epoch > first.epoch
    views.write(TABLE, second.epoch, Puts(column(b"a"), column(b"main")))
    views.write(lazy, first.epoch, Puts(column(b"a"), column(b"lazy")))
    views.commit("main", second.epoch)
    assert rows_of(views) == {b"a": b"main"}
    assert rows_of(views, lazy) == {}
    views.commit("lazy", first.epoch)
    assert rows_of(views, lazy) == {b"a": b"lazy"}
    third = views.begin("lazy", Frontier(), b"")
    assert third.epoch > second.epoch
    with pytest.raises(EpochError):
        views.write(TABLE, third.epoch, Puts(column(b"a"), column(b"of another group")))


def test_a_table_joins_a_group_with_its_next_epoch(store: Store) -> None:
    """All groups draw from one counter, so what it brings is older than that epoch."""
    views = store.views
    run(views, puts={b"m": b"main"})
    building = StateTable(5, "joining", "building")
    begun = views.begin("building", Frontier(), b"")
    views.write(building, begun.epoch, Puts(column(b"a", b"b"), column(b"1", b"1")))
    views.commit("building", begun.epoch)
    joined = StateTable(5, "joining", "main")
    joining = views.begin("main", Frontier(), b"")
    views.write(joined, joining.epoch, Puts(column(b"b"), column(b"2")))
    views.commit("main", joining.epoch)
    assert rows_of(views, joined) == {b"a": b"1", b"b": b"2"}
    assert rows_of(views) == {b"m": b"main"}


def test_epochs_end_in_the_order_they_began(store: Store) -> None:
    views = store.views
    with pytest.raises(EpochError):
        views.commit("main", 1)
    begun = views.begin("main", Frontier(), b"")
    with pytest.raises(EpochError):
        views.commit("main", begun.epoch + 1)
    with pytest.raises(EpochError):
        views.commit("other", begun.epoch)
    first = views.commit("main", begun.epoch)
    assert views.commit("main", begun.epoch) == first
    following = views.begin("main", Frontier(), b"")
    views.commit("main", following.epoch)
    with pytest.raises(EpochError):
        views.commit("main", begun.epoch)


def test_an_epoch_number_can_be_asked_for(store: Store) -> None:
    begun = store.views.begin("main", Frontier(), b"", epoch=7)
    assert begun.epoch == 7
    assert store.views.begin("main", Frontier(), b"", epoch=7).resumed
    store.views.commit("main", 7)
    with pytest.raises(EpochOrderError):
        store.views.begin("main", Frontier(), b"", epoch=7)
    assert store.views.begin("main", Frontier(), b"").epoch > 7


def test_a_key_stands_once_in_a_write(store: Store) -> None:
    views = store.views
    begun = views.begin("main", Frontier(), b"")
    with pytest.raises(InputError):
        views.write(TABLE, begun.epoch, Puts(column(b"a", b"a"), column(b"1", b"2")))
    with pytest.raises(InputError):
        views.write(TABLE, begun.epoch, Puts(column(b"a"), column(b"1")), Deletes(column(b"a")))
    views.commit("main", begun.epoch)
    assert rows_of(views) == {}


def test_nothing_can_be_taken_from_a_bag_that_is_not_in_it(store: Store) -> None:
    views = store.views
    begun = views.begin("main", Frontier(), b"")
    views.write_bags(BAGS, begun.epoch, BagRows(column(b"k"), column(b"e"), pa.array([2], pa.int64())))
    views.commit("main", begun.epoch)
    begun = views.begin("main", Frontier(), b"")
    changes = BagRows(column(b"k", b"k"), column(b"e", b"f"), pa.array([-3, 1], pa.int64()))
    with pytest.raises(DamagedEntryError, match="bags"):
        views.write_bags(BAGS, begun.epoch, changes)
    views.commit("main", begun.epoch)
    found = views.read_bags(BAGS, column(b"k"), begun.epoch)
    assert (found.entries.to_pylist(), found.counts.to_pylist()) == ([b"e"], [2])


def test_a_long_snapshot_outlives_many_epochs(store: Store) -> None:
    views = store.views
    commit = run(views, puts={b"%d" % number: b"old" for number in range(100)})
    with store.snapshot() as snapshot:
        for round in range(30):
            run(views, puts={b"%d" % number: b"new %d" % round for number in range(50)})
            run(views, deletes=tuple(b"%d" % number for number in range(0, 100, 2)))
            views.sweep("main")
        assert snapshot.committed("main") == commit
        assert set(snapshot.scan(TABLE, b"", commit.epoch).values.to_pylist()) == {b"old"}
        assert snapshot.read(TABLE, column(b"0", b"99"), commit.epoch).to_pylist() == [b"old", b"old"]
    assert len(rows_of(views)) == 50
    with pytest.raises(EpochError):
        views.read(TABLE, column(b"0"), commit.epoch)


def test_an_epoch_begins_only_on_the_base_it_was_planned_on(store: Store) -> None:
    first = run(store.views, puts={b"a": b"1"})
    with pytest.raises(ConflictError, match=f"at epoch {first.epoch}, not at 0"):
        store.views.begin("main", Frontier(), b"", base=0)
    assert store.views.begun("main") is None
    begun = store.views.begin("main", Frontier(), b"plan", base=first.epoch)
    assert store.views.begin("main", Frontier(), b"", base=0).epoch == begun.epoch, "one that has begun is resumed"
