"""Reads of bags that look at no more of them than they need, and writes that are only tried."""

import struct
from functools import partial

import pyarrow as pa
import pytest

from everview.errors import DamagedEntryError, InputError, StaleEpochError
from everview.store.contract import BagRows, StateTable
from everview.store.embedded.environment import Transaction
from everview.store.embedded.views import EmbeddedViews
from tests.store.state_files import Files, bag, bag_epoch, begin, changes, column

TABLE = StateTable(5, "minima", "main")
ENTRIES = [struct.pack(">Q", 7 * number) for number in range(1000)]
LONG = [b"entry %04d" % number + b"x" * (number % 3) for number in range(1000)]


def firsts(*numbers: int | None) -> pa.Int64Array:
    return pa.array(numbers, pa.int64())


def listed(rows: BagRows) -> list[tuple[bytes, bytes, int]]:
    return list(zip(rows.keys.to_pylist(), rows.entries.to_pylist(), rows.counts.to_pylist(), strict=True))


def damage(files: Files, bound: bytes) -> None:
    """Break the chunk of bag k with this bound."""

    def overwrite(key: bytes, txn: Transaction) -> None:
        if txn.get(key):
            txn.put(key, struct.pack("<QIIQ", 1, 9, 0, 5 << 32 | 8 << 8))

    for shard in files.shards:
        shard.update(partial(overwrite, b"\0\0\0\5\0\1k" + bound))


def bounds(files: Files) -> list[bytes]:
    """The bounds of the chunks of bag k."""
    found = []
    for shard in files.shards:
        with shard.read() as txn:
            found += [key[7:] for key in txn.cursor().iternext(values=False) if key.startswith(b"\0\0\0\5\0\1k")]
    return sorted(found)


# ------------------------------------------------------------------ the first rows


def test_the_first_rows_of_bags_large_and_small(views: EmbeddedViews) -> None:
    rows = [(b"l", entry, 1) for entry in ENTRIES] + [(b"s", entry, 1) for entry in ENTRIES[:4]]
    number, _ = bag_epoch(views, TABLE, rows)
    keys = column([b"s", b"nobody", b"l"])
    found = listed(views.read_bags(TABLE, keys, number, firsts(2, 5, 350)))
    assert found == [(b"l", entry, 1) for entry in ENTRIES[:350]] + [(b"s", entry, 1) for entry in ENTRIES[:2]]
    assert listed(views.read_bags(TABLE, keys, number, firsts(0, 0, 0))) == []
    assert listed(views.read_bags(TABLE, keys, number, firsts(None, None, None))) == rows
    assert listed(views.read_bags(TABLE, column([]), number, firsts())) == []


@pytest.mark.parametrize("entries", [ENTRIES, LONG])
def test_counts_are_summed_and_the_last_row_comes_whole(views: EmbeddedViews, entries: list[bytes]) -> None:
    number, _ = bag_epoch(views, TABLE, [(b"k", entry, 3) for entry in entries])
    for wanted, rows in [(1, 1), (3, 1), (4, 2), (600, 200), (601, 201)]:
        found = views.read_bags(TABLE, column([b"k"]), number, firsts(wanted))
        assert found.entries.to_pylist() == entries[:rows]
        assert found.counts.to_pylist() == [3] * rows


def test_first_rows_and_ends_leave_the_other_chunks_alone(files: Files, views: EmbeddedViews) -> None:
    number, _ = bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in ENTRIES])
    for bound in bounds(files)[1:-1]:
        damage(files, bound)
    keys = column([b"k"])
    assert views.read_bags(TABLE, keys, number, firsts(50)).entries.to_pylist() == ENTRIES[:50]
    assert [end.to_pylist() for end in views.bag_ends(TABLE, keys, number)] == [ENTRIES[:1], ENTRIES[-1:]]
    with pytest.raises(DamagedEntryError, match="minima"):
        views.read_bags(TABLE, keys, number, firsts(500))


def test_first_rows_that_cannot_be_asked_for(views: EmbeddedViews) -> None:
    with pytest.raises(InputError, match="comes twice"):
        views.read_bags(TABLE, column([b"k", b"k"]), 0, firsts(1, 2))
    with pytest.raises(InputError, match="-1 rows"):
        views.read_bags(TABLE, column([b"k"]), 0, firsts(-1))
    for wrong in (firsts(), firsts(1, 2), pa.array([1], pa.int32())):
        with pytest.raises(InputError, match="one int64 for each key"):
            views.read_bags(TABLE, column([b"k"]), 0, wrong)
    with pytest.raises(InputError, match="one int64 for each key"):
        views.read_bags(TABLE, column([]), 0, firsts(1))


# ------------------------------------------------------------------ ends


def test_ends_of_bags_of_every_kind(views: EmbeddedViews) -> None:
    held = {
        b"empty entry": [b"", b"\0"],
        b"large": ENTRIES,
        b"long and large": LONG,
        b"long": LONG[3:8],
        b"one": [b"a"],
        b"one long": [b"a" * 100],
        b"wide": [b"aaaa", b"bbbb"],
    }
    number, _ = bag_epoch(views, TABLE, [(key, entry, 2) for key, entries in held.items() for entry in entries])
    asked = [b"nobody", *reversed(held), b"one", b"nobody"]
    firsts_found, lasts_found = views.bag_ends(TABLE, column(asked), number)
    assert firsts_found.to_pylist() == [held[key][0] if key in held else None for key in asked]
    assert lasts_found.to_pylist() == [held[key][-1] if key in held else None for key in asked]
    assert [len(end) for end in views.bag_ends(TABLE, column([]), number)] == [0, 0]


def test_ends_of_a_large_bag_that_lost_its_first_chunks(files: Files, views: EmbeddedViews) -> None:
    bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in ENTRIES])
    number, _ = bag_epoch(views, TABLE, [(b"k", entry, -1) for entry in ENTRIES[:450]])
    for _ in range(2):
        found = views.bag_ends(TABLE, column([b"k"]), number)
        assert [end.to_pylist() for end in found] == [[ENTRIES[450]], [ENTRIES[-1]]]
        assert views.read_bags(TABLE, column([b"k"]), number, firsts(1)).entries.to_pylist() == [ENTRIES[450]]
        views.sweep("main")


@pytest.mark.parametrize(
    "broken",
    [5 << 32 | 8 << 8, 1 << 32, 2 << 32 | 2, 9 << 8],
    ids=["too few words", "no ends", "no counts", "too wide"],
)
def test_a_chunk_whose_ends_cannot_be_found_is_reported(files: Files, views: EmbeddedViews, broken: int) -> None:
    number, _ = bag_epoch(views, TABLE, [(b"k", b"a", 1)])
    for shard in files.shards:
        shard.update(lambda txn: txn.put(b"\0\0\0\5\0\1k", struct.pack("<QIIQ", 1, 9, 0, broken)))
    with pytest.raises(DamagedEntryError, match="minima"):
        views.bag_ends(TABLE, column([b"k"]), number)


def test_an_end_beyond_its_chunk_is_reported(files: Files, views: EmbeddedViews) -> None:
    number, _ = bag_epoch(views, TABLE, [(b"k", b"a", 1)])
    record = struct.pack("<QIIQII", 1, 17, 0, 1 << 32, 100, 0)
    for shard in files.shards:
        shard.update(lambda txn: txn.put(b"\0\0\0\5\0\1k", record))
    with pytest.raises(DamagedEntryError, match="minima"):
        views.bag_ends(TABLE, column([b"k"]), number)


# ------------------------------------------------------------------ previews


def test_a_preview_says_what_the_write_says_and_writes_nothing(files: Files, views: EmbeddedViews) -> None:
    number, _ = bag_epoch(views, TABLE, [(b"l", entry, 1) for entry in ENTRIES] + [(b"s", b"a", 1)])
    work = changes([(b"l", ENTRIES[0], -1), (b"s", b"a", -1), (b"n", b"z", 2)])
    before = files.updates, files.entries()
    with views.snapshot() as snapshot:
        tried = views.preview_bags(TABLE, work, number)
        assert tried == snapshot.preview_bags(TABLE, work, number)
        assert (files.updates, files.entries()) == before
        assert bag(views, TABLE, b"s", number) == {b"a": 1}
        following, said = bag_epoch(views, TABLE, [(b"l", ENTRIES[0], -1), (b"s", b"a", -1), (b"n", b"z", 2)])
        assert tried == said
        assert snapshot.preview_bags(TABLE, work, number) == tried
    with pytest.raises(StaleEpochError):
        views.preview_bags(TABLE, work, number)
    assert views.preview_bags(TABLE, changes([(b"l", ENTRIES[1], -1)]), following).first_after.to_pylist() == [
        ENTRIES[2]
    ]
    assert views.preview_bags(TABLE, changes([]), following).keys.to_pylist() == []


def test_a_preview_is_blind_to_what_an_epoch_has_half_written(views: EmbeddedViews) -> None:
    base, _ = bag_epoch(views, TABLE, [(b"k", b"b", 1)])
    views.write_bags(TABLE, begin(views).epoch, changes([(b"k", b"a", 1)]))
    assert views.preview_bags(TABLE, changes([(b"k", b"c", 1)]), base).first_after.to_pylist() == [b"b"]


def test_a_preview_refuses_what_a_write_refuses(views: EmbeddedViews) -> None:
    with pytest.raises(DamagedEntryError, match="would stand there -1 times"):
        views.preview_bags(TABLE, changes([(b"k", b"a", -1)]), 0)
    with pytest.raises(InputError, match="differ in length"):
        views.preview_bags(TABLE, BagRows(column([b"k"]), column([]), firsts()), 0)
