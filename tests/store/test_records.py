"""Versioned records: as-of reads, retries over what failed attempts left, zombies, sweeps."""

import random
import tempfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import DamagedEntryError, InputError, KeyTooLongError, StaleEpochError
from everview.store.contract import Puts, StateTable
from everview.store.embedded import records, tombstones
from everview.store.embedded.views import EmbeddedViews
from everview.store.encoding.tokens import tokens_of
from tests.store.state_files import Files, Killed, begin, column, deletes, epoch, get, puts

TABLE = StateTable(7, "totals", "main")
NEIGHBOUR = StateTable(8, "neighbour", "main")
ROWS = {b"key %04d" % number: b"value %d" % number for number in range(50)}


def all_of(views: EmbeddedViews, as_of: int, table: StateTable = TABLE) -> dict[bytes, bytes]:
    found = views.scan(table, b"", as_of)
    assert found.keys.to_pylist() == sorted(found.keys.to_pylist())
    return dict(zip(found.keys.to_pylist(), found.values.to_pylist(), strict=True))


# ------------------------------------------------------------------ as of


def test_a_record_shows_its_current_value_from_its_epoch_on_and_its_previous_one_before(views: EmbeddedViews) -> None:
    base = epoch(views, TABLE, {b"kept": b"1", b"changed": b"1", b"deleted": b"1"})
    number = begin(views).epoch
    views.write(TABLE, number, puts({b"changed": b"2", b"new": b"2"}), deletes([b"deleted"]))
    assert all_of(views, base) == {b"kept": b"1", b"changed": b"1", b"deleted": b"1"}
    views.commit("main", number)
    assert all_of(views, number) == {b"kept": b"1", b"changed": b"2", b"new": b"2"}


def test_reads_answer_in_the_order_of_the_keys_and_repeat_themselves(views: EmbeddedViews) -> None:
    number = epoch(views, TABLE, ROWS)
    wanted = [*reversed(ROWS), b"absent", next(iter(ROWS)), b"", b"absent"]
    assert views.read(TABLE, column(wanted), number).to_pylist() == [ROWS.get(key) for key in wanted]
    assert views.read(TABLE, column([]), number).to_pylist() == []


def test_a_slice_of_a_column_is_a_column(views: EmbeddedViews) -> None:
    number = begin(views).epoch
    keys, values = column(ROWS)[10:20], column(ROWS.values())[10:20]
    views.write(TABLE, number, Puts(keys, values, pa.nulls(12, pa.large_binary())[1:11]))
    views.commit("main", number)
    assert all_of(views, number) == dict(list(ROWS.items())[10:20])
    assert views.read(TABLE, column(ROWS)[9:21], number).to_pylist() == [None, *list(ROWS.values())[10:20], None]


def test_empty_values_are_values(views: EmbeddedViews) -> None:
    base = epoch(views, TABLE, {b"a": b"", b"": b"empty key"})
    assert all_of(views, base) == {b"": b"empty key", b"a": b""}
    number = begin(views).epoch
    views.write(TABLE, number, puts({b"a": b"x"}))
    assert get(views, TABLE, b"a", base) == b""


@pytest.mark.parametrize("known", [True, False])
def test_a_retry_keeps_the_previous_values_that_the_failed_attempt_saw(views: EmbeddedViews, known: bool) -> None:
    before = {b"changed": b"1", b"deleted": b"1"}
    base = epoch(views, TABLE, before)
    number = begin(views).epoch
    previous = before if known else None
    for _ in range(3):
        views.write(TABLE, number, puts({b"changed": b"2", b"new": b"2"}, previous), deletes([b"deleted"], previous))
        assert all_of(views, base) == before
    views.commit("main", number)
    assert all_of(views, number) == {b"changed": b"2", b"new": b"2"}


def test_a_half_written_epoch_is_invisible_and_can_be_finished_by_another_process(
    files: Files, views: EmbeddedViews
) -> None:
    base = epoch(views, TABLE, ROWS)
    number = begin(views).epoch
    files.dies_at = {files.shards[2]}
    with pytest.raises(Killed):
        views.write(TABLE, number, puts(dict.fromkeys(ROWS, b"new")))
    assert all_of(views, base) == ROWS
    files.dies_at = set()
    other = EmbeddedViews(files)
    assert begin(other).epoch == number
    other.write(TABLE, number, puts(dict.fromkeys(ROWS, b"new")))
    other.commit("main", number)
    assert all_of(views, number) == dict.fromkeys(ROWS, b"new")


def test_a_record_that_only_a_failed_attempt_wrote_can_be_taken_back(files: Files, views: EmbeddedViews) -> None:
    base = epoch(views, TABLE)
    number = begin(views).epoch
    views.write(TABLE, number, puts({b"k": b"v"}))
    views.write(TABLE, number, deletes=deletes([b"k"]))
    assert get(views, TABLE, b"k", base) is None
    views.commit("main", number)
    assert get(views, TABLE, b"k", number) is None
    assert views.sweep("main") == 1


def test_deleting_what_is_not_there_leaves_nothing_behind(files: Files, views: EmbeddedViews) -> None:
    epoch(views, TABLE)
    entries = files.entries()
    epoch(views, TABLE, delete=[b"a", b"b"])
    assert files.entries() == entries
    epoch(views, TABLE, {b"a": b"1"})
    epoch(views, TABLE, delete=[b"a"])
    with_tombstone = files.entries()
    epoch(views, TABLE, delete=[b"a"])
    assert files.entries() == with_tombstone


def test_tables_do_not_see_each_other(views: EmbeddedViews) -> None:
    number = begin(views).epoch
    views.write(TABLE, number, puts({b"k": b"mine"}))
    views.write(NEIGHBOUR, number, puts({b"k": b"theirs", b"l": b"theirs"}))
    views.commit("main", number)
    assert all_of(views, number) == {b"k": b"mine"}
    assert all_of(views, number, NEIGHBOUR) == {b"k": b"theirs", b"l": b"theirs"}


@pytest.mark.parametrize("width", [1, 2, 7, 8, 17, 48, 49, None])
@pytest.mark.parametrize("count", [10, 1000])
def test_tokens_of_few_and_of_many_keys(width: int | None, count: int) -> None:
    chosen = random.Random(width)
    keys = [chosen.randbytes(chosen.randrange(20) if width is None else width) for _ in range(count)]
    assert tokens_of(column([b"x", *keys])[1:]).tolist() == [zlib.crc32(key) for key in keys]


@pytest.mark.parametrize("width", [0, 1, 2, 7, 8, 15, 16, 17, None])
def test_a_key_lies_in_the_part_that_its_token_says(files: Files, views: EmbeddedViews, width: int | None) -> None:
    chosen = random.Random(width)
    keys = {chosen.randbytes(chosen.randrange(20) if width is None else width) for _ in range(40)}
    assert tokens_of(column([b"x", *keys])[1:]).tolist() == [zlib.crc32(key) for key in keys]
    epoch(views, TABLE, dict.fromkeys(keys, b"v"))
    for part in range(views.parts):
        with files.shards[part].read() as txn:
            held = {key[4:] for key, _ in txn.cursor() if key.startswith(b"\0\0\0\7")}
        assert held == {key for key in keys if zlib.crc32(key) % views.parts == part}


# ------------------------------------------------------------------ groups


def test_an_epoch_of_one_group_does_not_close_those_of_another(views: EmbeddedViews) -> None:
    lazy = StateTable(9, "lazy view", "lazy")
    base = epoch(views, lazy, {b"k": b"1", b"gone": b"1"})
    slow = begin(views, "lazy").epoch
    views.write(lazy, slow, puts({b"k": b"2"}), deletes([b"gone"]))
    for _ in range(3):
        epoch(views, TABLE, {b"k": b"x"}, [])
        views.sweep("main")
    assert views.sweep("lazy") == 0
    assert all_of(views, base, lazy) == {b"k": b"1", b"gone": b"1"}
    views.write(lazy, slow, puts({b"k": b"2"}), deletes([b"gone"]))
    views.commit("lazy", slow)
    assert all_of(views, slow, lazy) == {b"k": b"2"}
    assert views.sweep("lazy") == 1


def test_a_table_that_moves_to_another_group_brings_its_records(views: EmbeddedViews) -> None:
    building = StateTable(9, "view", "building")
    for _ in range(2):
        epoch(views, TABLE, {b"x": b"1"})
    epoch(views, building, {b"k": b"1", b"l": b"1", b"m": b"1"})
    epoch(views, building, {b"k": b"2"}, [b"m"])
    moved = StateTable(9, "view", "main")
    number = begin(views).epoch
    assert all_of(views, number - 1, moved) == {b"k": b"2", b"l": b"1"}
    views.write(moved, number, puts({b"m": b"3"}), deletes([b"l"]))
    views.sweep("building")
    assert all_of(views, number - 1, moved) == {b"k": b"2", b"l": b"1"}
    views.commit("main", number)
    assert all_of(views, number, moved) == {b"k": b"2", b"m": b"3"}


def test_a_sweep_leaves_the_tombstone_of_another_groups_open_epoch(views: EmbeddedViews) -> None:
    """The key was a tombstone of group building before the table moved; now it is one of an
    open epoch of main whose number building has passed."""
    building = StateTable(9, "view", "building")
    epoch(views, building, {b"k": b"1"})
    epoch(views, building, delete=[b"k"])
    moved = StateTable(9, "view", "main")
    base = epoch(views, moved, {b"k": b"2"})
    number = begin(views).epoch
    views.write(moved, number, deletes=deletes([b"k"]))
    epoch(views, building)
    assert views.sweep("building") == 0
    assert get(views, moved, b"k", base) == b"2"


# ------------------------------------------------------------------ sweeping and dropping


def test_a_sweep_removes_the_tombstones_of_committed_epochs(files: Files, views: EmbeddedViews) -> None:
    epoch(views, TABLE, {b"x": b"1"})
    clean = files.entries()
    epoch(views, TABLE, ROWS)
    number = epoch(views, TABLE, delete=ROWS)
    assert views.sweep("main") == len(ROWS)
    assert files.entries() == clean
    assert all_of(views, number) == {b"x": b"1"}
    assert views.sweep("main") == 0


def test_a_sweep_leaves_an_open_epoch_alone(views: EmbeddedViews) -> None:
    base = epoch(views, TABLE, {b"k": b"1"})
    number = begin(views).epoch
    views.write(TABLE, number, deletes=deletes([b"k"]))
    assert views.sweep("main") == 0
    assert get(views, TABLE, b"k", base) == b"1"


def test_a_sweep_leaves_a_record_that_came_back(views: EmbeddedViews) -> None:
    epoch(views, TABLE, {b"k": b"1"})
    base = epoch(views, TABLE, delete=[b"k"])
    number = begin(views).epoch
    views.write(TABLE, number, puts({b"k": b"2"}))
    assert views.sweep("main") == 0
    assert get(views, TABLE, b"k", base) is None
    views.commit("main", number)
    assert get(views, TABLE, b"k", number) == b"2"


def test_a_sweep_works_in_bounded_transactions(
    files: Files, views: EmbeddedViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tombstones, "BOUNDED", 3)
    epoch(views, TABLE, ROWS)
    epoch(views, TABLE, delete=ROWS)
    before = files.updates
    assert views.sweep("main") == len(ROWS)
    assert files.updates - before >= len(ROWS) // 3


def test_a_zombie_cannot_revive_a_swept_record(files: Files, views: EmbeddedViews) -> None:
    epoch(views, TABLE, {b"k": b"1"})
    number = epoch(views, TABLE, delete=[b"k"])
    for swept in (False, True):
        if swept:
            views.sweep("main")
        with pytest.raises(StaleEpochError):
            views.write(TABLE, number, puts({b"k": b"zombie"}, previous={}))
        with pytest.raises(StaleEpochError):
            records.write_records(files, views._doors, TABLE, number, puts({b"k": b"zombie"}, previous={}), None)
        assert get(views, TABLE, b"k", number) is None


# ------------------------------------------------------------------ scanning


@pytest.fixture
def scanned(views: EmbeddedViews) -> int:
    epoch(views, TABLE, {**ROWS, b"key": b"short", b"kez": b"after", b"\xff\xff": b"last"})
    number = epoch(views, TABLE, delete=list(ROWS)[::2])
    views.write(TABLE, begin(views).epoch, puts({b"key 0000": b"not yet"}), deletes(list(ROWS)[1::2]))
    return number


def test_a_scan_takes_the_keys_with_the_prefix_in_order(views: EmbeddedViews, scanned: int) -> None:
    found = views.scan(TABLE, b"key ", scanned)
    assert found.keys.to_pylist() == list(ROWS)[1::2]
    assert found.values.to_pylist() == list(ROWS.values())[1::2]
    assert views.scan(TABLE, b"\xff", scanned).values.to_pylist() == [b"last"]
    assert views.scan(TABLE, b"nothing", scanned).keys.to_pylist() == []


@pytest.mark.parametrize("block", [1, 3, 4096])
def test_pages_of_a_scan_add_up_to_the_scan(
    views: EmbeddedViews, scanned: int, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(records, "SCAN_BLOCK", block)
    whole = views.scan(TABLE, b"k", scanned).keys.to_pylist()
    assert whole == [b"key", *list(ROWS)[1::2], b"kez"]
    pages: list[bytes] = []
    after = None
    while page := views.scan(TABLE, b"k", scanned, limit=4, after=after).keys.to_pylist():
        assert len(page) == min(4, len(whole) - len(pages))
        pages += page
        after = page[-1]
    assert pages == whole


def test_where_a_scan_begins(views: EmbeddedViews, scanned: int) -> None:
    assert views.scan(TABLE, b"kez", scanned, after=b"a").keys.to_pylist() == [b"kez"]
    assert views.scan(TABLE, b"key", scanned, after=b"kez").keys.to_pylist() == []
    assert views.scan(TABLE, b"", scanned, limit=0).keys.to_pylist() == []
    assert views.scan(TABLE, b"", scanned, after=b"k" * 600).keys.to_pylist() == [b"\xff\xff"]
    assert views.scan(TABLE, b"k" * 600, scanned).keys.to_pylist() == []
    with pytest.raises(InputError, match="limit -1"):
        views.scan(TABLE, b"", scanned, limit=-1)


def test_pages_go_on_after_the_longest_key(views: EmbeddedViews) -> None:
    longest = [b"k" * 506 + last for last in (b"a", b"b", b"c")]
    number = epoch(views, TABLE, dict.fromkeys(longest, b"v"))
    assert views.scan(TABLE, b"", number, after=longest[0]).keys.to_pylist() == longest[1:]


# ------------------------------------------------------------------ refusals


def test_a_key_that_comes_twice_is_refused(views: EmbeddedViews) -> None:
    number = begin(views).epoch
    twice = Puts(column([b"k", b"a", b"k"]), column([b"1", b"2", b"3"]))
    with pytest.raises(InputError, match="key 6b comes twice in one write to state table totals"):
        views.write(TABLE, number, twice)
    with pytest.raises(InputError, match="comes twice"):
        views.write(TABLE, number, puts({b"k": b"1"}), deletes([b"k"]))
    assert all_of(views, number) == {}


def test_a_key_that_is_too_long_is_refused_before_anything_is_written(views: EmbeddedViews) -> None:
    number = begin(views).epoch
    views.write(TABLE, number, puts({b"k" * 507: b"v"}))
    with pytest.raises(KeyTooLongError, match="state table totals has 508 bytes"):
        views.write(TABLE, number, puts({b"a": b"v", b"k" * 508: b"v"}))
    with pytest.raises(KeyTooLongError):
        get(views, TABLE, b"k" * 508, number)
    assert list(all_of(views, number)) == [b"k" * 507]


@pytest.mark.parametrize(
    "wrong",
    [
        Puts(column([b"k", None]), column([b"v", b"v"])),
        Puts(column([b"k"]), column([None])),
        Puts(column([b"k"]), column([])),
        Puts(column([b"k"]), column([b"v"]), column([])),
    ],
)
def test_columns_that_do_not_fit_are_refused(views: EmbeddedViews, wrong: Puts) -> None:
    with pytest.raises(InputError, match="totals"):
        views.write(TABLE, begin(views).epoch, wrong)


def test_a_column_of_another_type_is_refused(views: EmbeddedViews) -> None:
    number = begin(views).epoch
    narrow = pa.array([b"k"], pa.binary())
    for wrong in (Puts(narrow, column([b"v"])), Puts(column([b"k"]), narrow), Puts(column([b"k"]), narrow, narrow)):
        with pytest.raises(InputError, match="large_binary"):
            views.write(TABLE, number, wrong)
    for keys in (narrow, pa.chunked_array([column([b"k"])])):
        with pytest.raises(InputError, match="large_binary"):
            views.read(TABLE, keys, number)


@pytest.mark.parametrize("wrong", [0, -1, 1 << 32])
def test_a_table_needs_an_id_of_its_own(views: EmbeddedViews, wrong: int) -> None:
    table = StateTable(wrong, "nobody", "main")
    number = epoch(views, TABLE)
    for call in (lambda: views.drop(table), lambda: views.scan(table, b"", number)):
        with pytest.raises(InputError, match="nobody cannot have the id"):
            call()


@pytest.mark.parametrize("few", [0, 32])
@pytest.mark.parametrize("record", [b"short", b"x" * 16, bytes(16) + b"x"])
def test_a_record_that_cannot_be_decoded_is_reported(
    files: Files, views: EmbeddedViews, monkeypatch: pytest.MonkeyPatch, record: bytes, few: int
) -> None:
    monkeypatch.setattr(records, "FEW", few)
    number = epoch(views, TABLE, {b"k": b"v"})
    for shard in files.shards:
        shard.update(lambda txn: txn.put(b"\0\0\0\7k", record))
    with pytest.raises(DamagedEntryError, match="totals"):
        get(views, TABLE, b"k", number)


# ------------------------------------------------------------------ against a model

KEYS = [b"", b"a", b"a\0", b"a\0b", b"b", b"\xff", b"\xff\xff", *(b"%d" % number for number in range(5))]
steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "retry", "commit", "commit", "sweep"]),
        st.dictionaries(st.sampled_from(KEYS), st.none() | st.binary(max_size=9), max_size=6),
        st.booleans(),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(steps, st.sampled_from([2, 32]))
def test_records_agree_with_two_dictionaries(
    history: list[tuple[str, dict[bytes, bytes | None], bool]], few: int
) -> None:
    """One dictionary as of the last commit, one as the open epoch would leave it. A retry
    starts over from the committed one and, unlike a real one, need not write the same."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "FEW", few)
        files = Files(Path(directory), shards=2)
        views = EmbeddedViews(files)
        base, committed = 0, dict[bytes, bytes]()
        number, written = begin(views).epoch, dict[bytes, bytes | None]()
        for kind, rows, known in history:
            if kind in ("write", "retry"):
                rows = {**dict.fromkeys(written), **rows} if kind == "retry" else rows
                put = {key: value for key, value in rows.items() if value is not None}
                previous = committed if known else None
                views.write(TABLE, number, puts(put, previous), deletes(set(rows) - set(put), previous))
                written |= rows
            elif kind == "commit":
                views.commit("main", number)
                base = number
                committed = {key: value for key, value in {**committed, **written}.items() if value is not None}
                number, written = begin(views).epoch, {}
            else:
                views.sweep("main")
            now = {key: value for key, value in {**committed, **written}.items() if value is not None}
            assert all_of(views, base) == committed
            assert all_of(views, number) == now
            assert views.read(TABLE, column(KEYS), base).to_pylist() == [committed.get(key) for key in KEYS]
        files.close()
