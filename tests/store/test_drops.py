"""Drops: whole tables and single prefixes, interrupted, repeated, beside writers and zombies."""

import struct

import pytest

from everview.errors import StaleEpochError
from everview.store.contract import StateTable
from everview.store.embedded import bags, drops, epoch_records, records
from everview.store.embedded.views import EmbeddedViews
from tests.store.state_files import (
    Files,
    Killed,
    bag,
    bag_epoch,
    begin,
    changes,
    column,
    deletes,
    epoch,
    get,
    puts,
)

TABLE = StateTable(7, "shared", "main")
NEIGHBOUR = StateTable(8, "neighbour", "main")
MINE, OTHER = struct.pack(">Q", 1), struct.pack(">Q", 2)
ROWS = {prefix + b"%04d" % number: b"value" for prefix in (MINE, OTHER) for number in range(50)}
KEPT = {key: value for key, value in ROWS.items() if key.startswith(OTHER)}
ENTRIES = [struct.pack(">Q", number) for number in range(700)]


@pytest.fixture(autouse=True)
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drops, "BOUNDED", 5)


def all_of(views: EmbeddedViews, as_of: int, table: StateTable = TABLE) -> dict[bytes, bytes]:
    found = views.scan(table, b"", as_of)
    return dict(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True))


def fill_bags(views: EmbeddedViews) -> int:
    """Bags of each prefix with keys of several lengths, one of them large."""
    rows = [
        (prefix + b"k" * size, entry, 1)
        for prefix in (MINE, OTHER)
        for size in (0, 1, 3, 200)
        for entry in (ENTRIES if size == 3 else ENTRIES[:2])
    ]
    return bag_epoch(views, TABLE, rows)[0]


def test_a_dropped_table_is_gone_and_its_neighbours_stay(files: Files, views: EmbeddedViews) -> None:
    epoch(views, NEIGHBOUR, {b"k": b"1"})
    clean = files.entries()
    number = epoch(views, TABLE, ROWS)
    files.dies_at = {files.shards[1]}
    with pytest.raises(Killed):
        views.drop(TABLE)
    files.dies_at = set()
    views.drop(TABLE)
    assert all_of(views, number) == {}
    assert all_of(views, number, NEIGHBOUR) == {b"k": b"1"}
    assert files.entries() == clean
    views.drop(TABLE)


def test_a_dropped_prefix_is_gone_and_the_rest_of_the_table_stays(files: Files, views: EmbeddedViews) -> None:
    epoch(views, TABLE, KEPT)
    clean = files.entries()
    number = epoch(views, TABLE, {key: value for key, value in ROWS.items() if key not in KEPT})
    before = files.updates
    views.drop(TABLE, MINE)
    assert files.updates - before >= 50 // 5, "a transaction removes no more than it may"
    assert all_of(views, number) == KEPT
    assert files.entries() == clean
    views.drop(TABLE, MINE)
    views.drop(TABLE, b"k" * 600)
    assert all_of(views, number) == KEPT


def test_bags_under_a_prefix_go_whatever_the_length_of_their_keys(files: Files, views: EmbeddedViews) -> None:
    number = fill_bags(views)
    every = files.entries()
    views.drop_bags(TABLE, b"k" * 600)
    views.drop_bags(TABLE, MINE + b"x")
    assert files.entries() == every
    views.drop_bags(TABLE, MINE)
    for size in (0, 1, 3, 200):
        assert bag(views, TABLE, MINE + b"k" * size, number) == {}
        assert len(bag(views, TABLE, OTHER + b"k" * size, number)) == (700 if size == 3 else 2)
    views.drop_bags(TABLE)
    assert bag(views, TABLE, OTHER + b"kkk", number) == {}
    assert files.entries() == len(files.shards), "all that is left are the fences"


def test_a_bag_whose_key_holds_the_prefix_elsewhere_stays(views: EmbeddedViews) -> None:
    inside = b"x" + MINE
    number, _ = bag_epoch(views, TABLE, [(inside, MINE, 1), (MINE[:7], MINE, 1), (MINE, b"a", 1)])
    views.drop_bags(TABLE, MINE)
    assert bag(views, TABLE, inside, number) == {MINE: 1}
    assert bag(views, TABLE, MINE[:7], number) == {MINE: 1}
    assert bag(views, TABLE, MINE, number) == {}


def test_tombstones_of_a_dropped_prefix_are_swept_without_a_trace(files: Files, views: EmbeddedViews) -> None:
    epoch(views, TABLE, ROWS)
    number = epoch(views, TABLE, delete=list(ROWS)[::2])
    views.drop(TABLE, MINE)
    assert views.sweep("main") == 25, "those of the other prefix"
    assert all_of(views, number) == dict(list(KEPT.items())[1::2])
    assert files.entries() == len(all_of(views, number)) + len(files.shards)


def test_a_prefix_is_dropped_in_the_middle_of_an_epoch_that_writes_elsewhere(views: EmbeddedViews) -> None:
    base = epoch(views, TABLE, ROWS)
    number = begin(views).epoch
    half = list(KEPT)[:25]
    views.write(TABLE, number, puts(dict.fromkeys(half, b"new")))
    with views.snapshot() as snapshot:
        views.drop(TABLE, MINE)
        assert all_of(views, base) == KEPT
        views.write(TABLE, number, None, deletes(list(KEPT)[25:]))
        views.commit("main", number)
        assert all_of(views, number) == dict.fromkeys(half, b"new")
        assert snapshot.read(TABLE, column(ROWS), base).to_pylist() == list(ROWS.values())


def test_a_zombie_cannot_write_under_a_dropped_prefix(
    files: Files, views: EmbeddedViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process that committed the last epoch died before it raised the fences."""
    number = begin(views).epoch
    views.write(TABLE, number, puts(ROWS))
    with monkeypatch.context() as dying:
        dying.setattr(epoch_records, "raise_fences", lambda *_: None)
        views.commit("main", number)
    views.drop(TABLE, MINE)
    zombie = puts({MINE + b"zombie": b"1"}, previous={})
    with pytest.raises(StaleEpochError):
        records.write_records(files, views._doors, TABLE, number, zombie, None)
    with pytest.raises(StaleEpochError):
        bags.write_bags(files, views._doors, TABLE, number, changes([(MINE + b"zombie", b"a", 1)]))
    assert get(views, TABLE, MINE + b"zombie", number) is None
    assert all_of(views, number) == KEPT
