"""Bags: contents, first and last entries, as-of reads, retries, and what stays on disk."""

import random
import struct
import tempfile
import zlib
from collections import Counter
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import DamagedEntryError, InputError, KeyTooLongError, StaleEpochError
from everview.store.contract import BagEnds, BagRows, StateTable
from everview.store.embedded import bag_cuts
from everview.store.embedded.bag_entries import rank
from everview.store.embedded.environment import Transaction
from everview.store.embedded.views import EmbeddedViews
from tests.store.state_files import Files, Killed, bag, bag_epoch, begin, changes, column

TABLE = StateTable(5, "minima", "main")
NARROW = [struct.pack(">Q", 7 * number) for number in range(10_000)]


def ends(found: BagEnds) -> dict[bytes, tuple[bytes | None, ...]]:
    """(first before, last before, first after, last after) by key."""
    keys = found.keys.to_pylist()
    assert keys == sorted(set(keys))
    rows = zip(*(part.to_pylist() for part in _columns(found)), strict=True)
    return dict(zip(keys, rows, strict=True))


def _columns(found: BagEnds) -> tuple:
    return found.first_before, found.last_before, found.first_after, found.last_after


def chunk_sizes(files: Files, table: StateTable = TABLE) -> list[int]:
    """Entries of the chunks that stand in the shards, whatever the bag."""
    sizes = []
    for shard in files.shards:
        with shard.read() as txn:
            for key, record in txn.cursor():
                if key.startswith(struct.pack(">I", table.id)) and struct.unpack_from("<QI", record)[1]:
                    sizes.append(struct.unpack_from("<I", record, 20)[0])
    return sizes


# ------------------------------------------------------------------ contents


def test_entries_are_added_up_and_leave_when_nothing_remains(views: EmbeddedViews) -> None:
    first, _ = bag_epoch(views, TABLE, [(b"k", b"b", 1), (b"k", b"a", 2), (b"l", b"z", 1), (b"k", b"b", 1)])
    assert bag(views, TABLE, b"k", first) == {b"a": 2, b"b": 2}
    second, _ = bag_epoch(views, TABLE, [(b"k", b"a", -2), (b"k", b"c", 1), (b"l", b"z", -1), (b"k", b"b", -1)])
    assert bag(views, TABLE, b"k", second) == {b"b": 1, b"c": 1}
    assert bag(views, TABLE, b"l", second) == {}


def test_read_bags_orders_by_key_and_entry_and_names_each_bag_once(views: EmbeddedViews) -> None:
    rows = [(b"%d" % key, b"%d" % entry, 1 + entry) for key in range(9) for entry in range(3)]
    number, _ = bag_epoch(views, TABLE, rows)
    wanted = column([b"7", b"nothing", b"3", b"7"])
    found = views.read_bags(TABLE, wanted, number)
    assert found.keys.to_pylist() == [b"3"] * 3 + [b"7"] * 3
    assert found.entries.to_pylist() == [b"0", b"1", b"2"] * 2
    assert found.counts.to_pylist() == [1, 2, 3] * 2
    assert views.read_bags(TABLE, column([]), number).keys.to_pylist() == []


@pytest.mark.parametrize(
    "entries",
    [
        [b""],
        [b"", b"\0", b"\0\0"],
        [bytes([first, second]) for first in (0, 1, 255) for second in (0, 128, 255)],
        [b"a" * size for size in range(1, 12)],
        [b"long" * 1000, b"long" * 1000 + b"er", b"short"],
        [struct.pack(">QQ", first, second) for first in (0, 1, 2**64 - 1) for second in (0, 2**63)],
    ],
    ids=["empty", "zeros", "two bytes", "many lengths", "long", "sixteen bytes"],
)
def test_entries_of_any_length(views: EmbeddedViews, entries: list[bytes]) -> None:
    first, found = bag_epoch(views, TABLE, [(b"k", entry, number + 1) for number, entry in enumerate(entries)])
    assert bag(views, TABLE, b"k", first) == {entry: number + 1 for number, entry in enumerate(entries)}
    assert ends(found) == {b"k": (None, None, min(entries), max(entries))}
    second, found = bag_epoch(views, TABLE, [(b"k", b"12345678", 1), (b"k", entries[0], -1)])
    left = [*entries[1:], b"12345678"]
    assert sorted(bag(views, TABLE, b"k", second)) == sorted(left)
    assert ends(found) == {b"k": (min(entries), max(entries), min(left), max(left))}


def test_bags_of_narrow_and_of_long_entries_in_one_write(views: EmbeddedViews) -> None:
    rows = [(b"narrow", NARROW[number], 1) for number in range(5)] + [(b"text", b"word" * size, 1) for size in range(5)]
    rows += [(b"short", b"%d" % number, 2) for number in range(5)]
    number, _ = bag_epoch(views, TABLE, rows)
    number, _ = bag_epoch(views, TABLE, [(key, entry, 1) for key, entry, _ in rows])
    for name in (b"narrow", b"text", b"short"):
        assert bag(views, TABLE, name, number) == {entry: count + 1 for key, entry, count in rows if key == name}


def test_keys_of_which_one_is_the_beginning_of_another(views: EmbeddedViews) -> None:
    keys = [b"", b"\0", b"a", b"a\0", b"ab", b"\xff" * 505]
    rows = [(key, b"%03d" % number, 1) for key in keys for number in range(300)]
    number, _ = bag_epoch(views, TABLE, rows)
    for key in keys:
        assert list(bag(views, TABLE, key, number)) == [b"%03d" % number for number in range(300)]


# ------------------------------------------------------------------ sizes


@pytest.mark.parametrize("size", [1, 100, 201, 10_000])
@pytest.mark.parametrize("wide", [False, True])
def test_a_bag_grows_and_shrinks(files: Files, views: EmbeddedViews, size: int, wide: bool) -> None:
    entries = [entry * 3 for entry in NARROW[:size]] if wide else NARROW[:size]
    shuffled = random.Random(size).sample(entries, size)
    steps = [part for part in (shuffled[: size // 3], shuffled[size // 3 : -1], shuffled[-1:]) if part]
    held: set[bytes] = set()
    for step in steps:
        before = (min(held, default=None), max(held, default=None))
        held |= set(step)
        number, found = bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in step])
        assert ends(found) == {b"k": (*before, min(held), max(held))}
        assert list(bag(views, TABLE, b"k", number)) == sorted(held)
    sizes = chunk_sizes(files)
    assert max(sizes) <= bag_cuts.MOST
    assert len(sizes) <= size // 50 + 1
    for step in steps:
        before = (min(held), max(held))
        held -= set(step)
        number, found = bag_epoch(views, TABLE, [(b"k", entry, -1) for entry in step])
        assert ends(found) == {b"k": (*before, min(held, default=None), max(held, default=None))}
        assert list(bag(views, TABLE, b"k", number)) == sorted(held)
    views.sweep("main")
    assert chunk_sizes(files) == []
    assert files.entries() == len(files.shards)


def test_a_change_to_a_large_bag_writes_one_chunk(files: Files, views: EmbeddedViews) -> None:
    bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in NARROW[::2]])
    shard = next(shard for shard in files.shards if shard.lmdb.stat()["entries"] > 1)
    with shard.read() as txn:
        before = dict(txn.cursor())
    _, found = bag_epoch(views, TABLE, [(b"k", NARROW[5001], 1)])
    with shard.read() as txn:
        after = dict(txn.cursor())
    written = [key for key in after if key.startswith(b"\0\0\0\5") and after[key] != before.get(key)]
    assert len(written) == 1
    assert ends(found) == {b"k": (NARROW[0], NARROW[-2], NARROW[0], NARROW[-2])}


@pytest.mark.parametrize("apart", [90, 350, 2500])
def test_changes_far_apart_find_their_chunks(views: EmbeddedViews, apart: int) -> None:
    bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in NARROW])
    bag_epoch(views, TABLE, [(b"k", entry, -1) for entry in NARROW[3000:5000]])
    held = Counter(NARROW[:3000] + NARROW[5000:])
    for shift in (0, 41):
        work = [(b"k", struct.pack(">Q", 7 * place + shift % 7), 1) for place in range(shift, 10_000, apart)]
        number, _ = bag_epoch(views, TABLE, work)
        held.update(entry for _, entry, _ in work)
        assert bag(views, TABLE, b"k", number) == held
        views.sweep("main")


def test_a_queue_that_loses_its_front_and_grows_at_its_end(files: Files, views: EmbeddedViews) -> None:
    bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in NARROW[:1000]])
    for step in range(1000, 3000, 250):
        gone, come = NARROW[step - 1000 : step - 750], NARROW[step : step + 250]
        rows = [(b"k", entry, -1) for entry in gone] + [(b"k", entry, 1) for entry in come]
        number, found = bag_epoch(views, TABLE, rows)
        left = NARROW[step - 750 : step + 250]
        assert ends(found) == {b"k": (gone[0], NARROW[step - 1], left[0], left[-1])}
        assert list(bag(views, TABLE, b"k", number)) == left
        views.sweep("main")
        assert len(chunk_sizes(files)) <= 12


def test_a_large_bag_that_lost_its_middle_chunks_merges_those_that_fit(files: Files, views: EmbeddedViews) -> None:
    bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in NARROW[:1000]])
    number, _ = bag_epoch(views, TABLE, [(b"k", entry, -1) for entry in NARROW[:1000] if entry not in NARROW[:1000:20]])
    assert list(bag(views, TABLE, b"k", number)) == NARROW[:1000:20]
    assert chunk_sizes(files) == [50]


def test_chunks_with_an_untouched_one_between_them_are_not_merged(files: Files, views: EmbeddedViews) -> None:
    bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in NARROW[:300]])
    assert chunk_sizes(files) == [100, 100, 100]
    number, _ = bag_epoch(views, TABLE, [(b"k", entry, -1) for entry in NARROW[:60] + NARROW[240:300]])
    assert chunk_sizes(files) == [40, 100, 40]
    assert list(bag(views, TABLE, b"k", number)) == NARROW[60:240]


def test_a_chunk_has_the_same_bytes_whatever_is_written_with_it(files: Files, views: EmbeddedViews) -> None:
    narrow = [(b"k", entry, 1) for entry in NARROW[:300]]
    number = begin(views).epoch
    views.write_bags(TABLE, number, changes(narrow))
    alone = contents(files)
    views.write_bags(TABLE, number, changes([*narrow, (b"text", b"a long entry", 1), (b"text", b"", 1)]))
    together = contents(files)
    assert {key: together[key] for key in alone} == alone
    views.write_bags(TABLE, number, changes([(b"text", b"a long entry", 1), (b"text", b"", 1)]))
    assert contents(files) == together


def test_long_entries_make_chunks_of_fewer(files: Files, views: EmbeddedViews) -> None:
    entries = [b"%04d" % number + b"x" * 5000 for number in range(100)]
    number, _ = bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in entries])
    assert list(bag(views, TABLE, b"k", number)) == entries
    assert max(chunk_sizes(files)) <= 10


def test_a_chunk_stays_whole_where_no_bound_is_short_enough(files: Files, views: EmbeddedViews) -> None:
    entries = [b"x" * 600 + b"%04d" % number for number in range(250)]
    number, found = bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in entries])
    assert ends(found) == {b"k": (None, None, entries[0], entries[-1])}
    assert chunk_sizes(files) == [250]
    other = [b"%04d" % number + b"y" * 600 for number in range(250)]
    number, _ = bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in other])
    assert list(bag(views, TABLE, b"k", number)) == sorted(entries + other)
    number, found = bag_epoch(views, TABLE, [(b"k", entries[-1], -1), (b"k", other[0], -1)])
    assert ends(found) == {b"k": (other[0], entries[-1], other[1], entries[-2])}


# ------------------------------------------------------------------ epochs


@pytest.mark.parametrize("size", [3, 2000])
def test_bags_whose_ends_nobody_asks_for_are_written_like_others(views: EmbeddedViews, size: int) -> None:
    number = begin(views).epoch
    views.add_to_bags(TABLE, number, changes((b"k", entry, 1) for entry in NARROW[:size]))
    views.add_to_bags(TABLE, number, changes([]))
    views.commit("main", number)
    assert bag(views, TABLE, b"k", number) == dict.fromkeys(NARROW[:size], 1)
    with pytest.raises(StaleEpochError):
        views.add_to_bags(TABLE, number, changes([(b"k", NARROW[0], 1)]))


@pytest.mark.parametrize("size", [3, 2000])
def test_a_retry_writes_the_same_bytes_over_a_half_written_epoch(files: Files, views: EmbeddedViews, size: int) -> None:
    keys = [b"%d" % key for key in range(12)]
    start = [(key, entry, 1) for key in keys for entry in NARROW[:size:2]]
    base, _ = bag_epoch(views, TABLE, start)
    expected = {key: bag(views, TABLE, key, base) for key in keys}
    step = changes([(key, entry, 1) for key in keys for entry in NARROW[1:size:2]] + [(keys[0], NARROW[0], -1)])
    number = begin(views).epoch
    files.dies_at = {files.shards[3]}
    with pytest.raises(Killed):
        views.write_bags(TABLE, number, step)
    assert {key: bag(views, TABLE, key, base) for key in keys} == expected
    files.dies_at = set()
    begin(views)
    first = views.write_bags(TABLE, number, step)
    content = contents(files)
    second = views.write_bags(TABLE, number, step)
    assert contents(files) == content
    assert ends(first) == ends(second)
    views.add_to_bags(TABLE, number, step)
    assert contents(files) == content
    one_by_one = list(zip(*(part.to_pylist() for part in _parts(step)), strict=True))
    for key in keys:
        views.write_bags(TABLE, number, changes(row for row in one_by_one if row[0] == key))
    chunks = {key: value for key, value in content.items() if key[1].startswith(b"\0\0\0\5")}
    assert {key: value for key, value in contents(files).items() if key in chunks} == chunks
    assert {key: bag(views, TABLE, key, base) for key in keys} == expected
    views.commit("main", number)
    for key in keys:
        assert list(bag(views, TABLE, key, number)) == NARROW[1 if key == keys[0] else 0 : size]


def _parts(rows: BagRows) -> tuple:
    return rows.keys, rows.entries, rows.counts


def contents(files: Files) -> dict[tuple[int, bytes], bytes]:
    found: dict[tuple[int, bytes], bytes] = {}
    for number, shard in enumerate(files.shards):
        with shard.read() as txn:
            found |= {(number, key): value for key, value in txn.cursor()}
    return found


def test_zombies_are_refused(views: EmbeddedViews) -> None:
    number, _ = bag_epoch(views, TABLE, [(b"k", b"a", 1)])
    following, _ = bag_epoch(views, TABLE, [(b"k", b"a", -1)])
    for _ in range(2):
        for epoch in (number, following):
            with pytest.raises(StaleEpochError):
                views.write_bags(TABLE, epoch, changes([(b"k", b"a", 1)]))
        views.sweep("main")
    with pytest.raises(StaleEpochError):
        bag(views, TABLE, b"k", number)
    assert bag(views, TABLE, b"k", following) == {}


def test_a_snapshot_shows_a_large_bag_as_it_was(views: EmbeddedViews) -> None:
    number, _ = bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in NARROW[:1000]])
    with views.snapshot() as snapshot:
        for step in range(0, 1000, 250):
            bag_epoch(views, TABLE, [(b"k", entry, -1) for entry in NARROW[step : step + 250]])
            views.sweep("main")
        assert snapshot.read_bags(TABLE, column([b"k"]), number).entries.to_pylist() == NARROW[:1000]


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("size", [1, 1000])
def test_taking_away_what_is_not_there_is_an_error_and_nothing_is_written(
    files: Files, views: EmbeddedViews, size: int
) -> None:
    bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in NARROW[:size]])
    before = contents(files)
    number = begin(views).epoch
    with pytest.raises(DamagedEntryError, match=f"bag {b'k'.hex()} of state table minima would stand there -1 times"):
        views.write_bags(TABLE, number, changes([(b"a", b"x", 1), (b"k", NARROW[0], -2), (b"z", b"x", 1)]))
    assert contents(files) == before


def test_columns_that_do_not_fit_are_refused(views: EmbeddedViews) -> None:
    number = begin(views).epoch
    good = changes([(b"k", b"a", 1)])
    with pytest.raises(InputError, match="differ in length"):
        views.write_bags(TABLE, number, BagRows(good.keys, good.entries, good.counts[:0]))
    with pytest.raises(InputError, match="null"):
        views.write_bags(TABLE, number, BagRows(good.keys, column([None]), good.counts))
    with pytest.raises(InputError, match="null"):
        views.write_bags(TABLE, number, BagRows(column([None]), good.entries, good.counts))
    with pytest.raises(InputError, match="large_binary"):
        views.write_bags(TABLE, number, BagRows(good.keys, pa.array([b"a"], pa.binary()), good.counts))
    with pytest.raises(KeyTooLongError, match="506 bytes"):
        views.write_bags(TABLE, number, changes([(b"k" * 506, b"a", 1)]))
    assert views.write_bags(TABLE, number, changes([])).keys.to_pylist() == []


def overwrite(key: bytes, record: bytes, txn: Transaction) -> None:
    txn.put(key, record)


def test_a_chunk_that_cannot_be_decoded_is_reported(files: Files, views: EmbeddedViews) -> None:
    bag_epoch(views, TABLE, [(b"k", b"a", 1)])
    number = begin(views).epoch
    key = b"\0\0\0\5\0\1k"
    for broken in (struct.pack("<QIIQ", 1, 9, 0, 5 << 32 | 8 << 8), struct.pack("<QIIB", 1, 2, 0, 0)):
        for shard in files.shards:
            shard.update(partial(overwrite, key, broken))
        with pytest.raises(DamagedEntryError, match="minima"):
            views.write_bags(TABLE, number, changes([(b"k", b"a", 1)]))


def test_a_chunk_at_the_end_of_a_large_bag_that_cannot_be_decoded_is_reported(
    files: Files, views: EmbeddedViews
) -> None:
    bag_epoch(views, TABLE, [(b"k", entry, 1) for entry in NARROW[:1000]])
    key = b"\0\0\0\5\0\1k" + NARROW[999]
    broken = struct.pack("<QIIQ", 1, 9, 0, 5 << 32 | 8 << 8)
    for shard in files.shards:
        shard.update(partial(overwrite, key, broken))
    with pytest.raises(DamagedEntryError, match="minima"):
        views.write_bags(TABLE, begin(views).epoch, changes([(b"k", NARROW[0], 1)]))


@settings(deadline=None)
@given(st.lists(st.binary(max_size=3) | st.binary(max_size=50) | st.just(b"a" * 40), max_size=30))
def test_codes_order_as_entries_do(entries: list[bytes]) -> None:
    codes, rows = rank(column([b"before", *entries, b"after"])[1:-1])
    distinct = sorted(set(entries))
    assert [distinct[code] for code in codes.tolist()] == entries
    assert [entries[row] for row in rows.tolist()] == distinct


# ------------------------------------------------------------------ against a model

narrow_entries = st.integers(0, 40).map(lambda number: struct.pack(">H", number))
any_entries = st.sampled_from([b"", b"\0", b"a", b"ab", b"b" * 8, b"c" * 20]) | narrow_entries


def histories(entries: st.SearchStrategy[bytes]) -> st.SearchStrategy:
    change = st.tuples(st.sampled_from([b"", b"k", b"k\0", b"l"]), entries, st.integers(-3, 3))
    kinds = st.sampled_from(["commit", "commit", "retry", "die", "sweep"])
    return st.lists(st.tuples(kinds, st.lists(change, max_size=40)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.one_of(histories(narrow_entries), histories(any_entries)))
def test_bags_agree_with_counters(history: list[tuple[str, list[tuple[bytes, bytes, int]]]]) -> None:
    """Chunks of two or three entries, so that splits and merges come often."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag_cuts, "TARGET", 2)
        patch.setattr(bag_cuts, "MOST", 3)
        files = Files(Path(directory), shards=2)
        views = EmbeddedViews(files)
        base, committed = 0, Counter[tuple[bytes, bytes]]()
        for kind, rows in history:
            step = possible(committed, rows)
            number = begin(views).epoch
            if kind == "die":
                files.dies_at = {files.shards[1]}
                with pytest.raises(Killed) if touches(files, step) else nullcontext():
                    views.write_bags(TABLE, number, changes(step))
                files.dies_at = set()
            found = views.write_bags(TABLE, number, changes(step))
            if kind == "retry":
                assert ends(views.write_bags(TABLE, number, changes(step))) == ends(found)
            assert everything(views, base) == committed
            after = committed.copy()
            for key, entry, count in step:
                after[key, entry] += count
            after = +after
            assert everything(views, number) == after
            assert ends(found) == {key: (*span(committed, key), *span(after, key)) for key, _, _ in step}
            views.commit("main", number)
            base, committed = number, after
            if kind == "sweep":
                views.sweep("main")
        files.close()


def possible(committed: Counter[tuple[bytes, bytes]], rows: list[tuple[bytes, bytes, int]]) -> list:
    """The changes, none taking away more than there is."""
    left = committed.copy()
    made = []
    for key, entry, count in rows:
        count = max(count, -left[key, entry])
        left[key, entry] += count
        made.append((key, entry, count))
    return made


def touches(files: Files, step: list[tuple[bytes, bytes, int]]) -> bool:
    """Whether a write of these changes comes to the second shard."""
    return any(zlib.crc32(key) % len(files.shards) == 1 for key, _, _ in step)


def everything(views: EmbeddedViews, as_of: int) -> Counter[tuple[bytes, bytes]]:
    rows = views.read_bags(TABLE, column([b"", b"k", b"k\0", b"l"]), as_of)
    pairs = list(zip(rows.keys.to_pylist(), rows.entries.to_pylist(), strict=True))
    assert pairs == sorted(set(pairs))
    return Counter(dict(zip(pairs, rows.counts.to_pylist(), strict=True)))


def span(bags: Counter[tuple[bytes, bytes]], key: bytes) -> tuple[bytes | None, bytes | None]:
    entries = [entry for (of, entry), count in bags.items() if of == key and count]
    return min(entries, default=None), max(entries, default=None)
