"""Begin and commit: their order, what survives a crash between them, and who is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from everview.change.frontier import Frontier
from everview.errors import EpochOrderError, InputError, SnapshotExpiredError, StaleEpochError
from everview.store.contract import StateTable
from everview.store.embedded import epoch_records, snapshots
from everview.store.embedded.epoch_records import fence_in
from everview.store.embedded.views import EmbeddedViews
from tests.store.state_files import Files, Killed, begin, epoch, get, puts

TABLE = StateTable(7, "totals", "main")


def test_a_group_begins_empty(views: EmbeddedViews) -> None:
    commit = views.committed("main")
    assert (commit.epoch, commit.frontier) == (0, Frontier())
    assert views.begun("main") is None
    assert views.history("main") == ()


def test_a_commit_moves_the_group_to_what_was_begun(views: EmbeddedViews) -> None:
    begun = views.begin("main", Frontier({1: 5}), b"a plan")
    assert (begun.base, begun.start, begun.frontier, begun.resumed) == (0, Frontier(), Frontier({1: 5}), False)
    assert views.committed("main").epoch == 0
    commit = views.commit("main", begun.epoch)
    assert views.committed("main") == commit
    assert (commit.epoch, commit.frontier) == (begun.epoch, Frontier({1: 5}))
    assert commit.time > 0
    following = views.begin("main", Frontier({1: 5, 2: 1}), b"")
    assert (following.base, following.start) == (begun.epoch, Frontier({1: 5}))


def test_an_epoch_that_was_begun_is_resumed_with_its_own_frontier_and_plan(files: Files, views: EmbeddedViews) -> None:
    first = views.begin("main", Frontier({1: 5}), b"first plan")
    again = EmbeddedViews(files).begin("main", Frontier({1: 9}), b"another plan")
    assert again.resumed
    assert (again.epoch, again.frontier, again.plan) == (first.epoch, Frontier({1: 5}), b"first plan")
    assert views.begun("main") == again
    assert views.begin("main", Frontier({1: 9}), b"", epoch=first.epoch) == again
    with pytest.raises(EpochOrderError, match="cannot begin epoch 9"):
        views.begin("main", Frontier({1: 9}), b"", epoch=9)


def test_a_frontier_never_goes_back(views: EmbeddedViews) -> None:
    views.commit("main", views.begin("main", Frontier({1: 5, 2: 5}), b"").epoch)
    with pytest.raises(EpochOrderError, match="f:1=5,2=5 to f:1=4,2=9"):
        views.begin("main", Frontier({1: 4, 2: 9}), b"")
    assert views.begun("main") is None


def test_groups_draw_their_numbers_from_one_counter(views: EmbeddedViews) -> None:
    numbers = [begin(views, group).epoch for group in ("a", "b", "c")]
    views.commit("b", numbers[1])
    numbers.append(begin(views, "b").epoch)
    assert numbers == [1, 2, 3, 4]
    assert [views.committed(group).epoch for group in ("a", "b", "c")] == [0, 2, 0]


def test_a_number_that_the_caller_chooses_must_be_new(views: EmbeddedViews) -> None:
    assert views.begin("a", Frontier(), b"", epoch=10).epoch == 10
    with pytest.raises(EpochOrderError, match="epoch 10 was begun before"):
        views.begin("b", Frontier(), b"", epoch=10)
    assert views.begin("b", Frontier(), b"").epoch == 11


def test_commit_takes_the_epoch_under_way_or_repeats_the_last(views: EmbeddedViews) -> None:
    first = epoch(views, TABLE)
    last = views.commit("main", epoch(views, TABLE))
    assert views.commit("main", last.epoch) == last
    with pytest.raises(StaleEpochError, match="no epoch is under way, the last committed epoch is 2"):
        views.commit("main", first)
    with pytest.raises(EpochOrderError):
        views.commit("main", 99)
    under_way = begin(views)
    assert views.commit("main", last.epoch) == last
    assert views.begun("main") is not None
    with pytest.raises(EpochOrderError, match="epoch 3 is under way"):
        views.commit("main", under_way.epoch + 1)


def test_history_keeps_the_last_commits(views: EmbeddedViews, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_records, "HISTORY", 3)
    for _ in range(5):
        epoch(views, TABLE)
        epoch(views, StateTable(8, "other", "other"))
    assert [commit.epoch for commit in views.history("main")] == [9, 7, 5]
    assert [commit.frontier[1] for commit in views.history("main", 2)] == [5, 4]
    assert [commit.epoch for commit in views.history("other")] == [10, 8, 6]


@pytest.mark.parametrize("name", ["", "a\0b", "g" * 201])
def test_a_name_that_no_group_can_have(views: EmbeddedViews, name: str) -> None:
    with pytest.raises(InputError, match="not a name for a group"):
        views.begin(name, Frontier(), b"")


# ------------------------------------------------------------------ fences


def fences(files: Files, group: str = "main") -> set[int]:
    found = set()
    for shard in files.shards:
        with shard.read() as txn:
            found.add(fence_in(txn, group))
    return found


def test_commit_raises_the_fence_of_its_group_in_every_shard(files: Files, views: EmbeddedViews) -> None:
    number = epoch(views, TABLE)
    assert fences(files) == {number}
    assert fences(files, "other") == {0}


def test_begin_raises_the_fences_that_a_killed_commit_left(files: Files, views: EmbeddedViews) -> None:
    begun = begin(views)
    files.dies_at = set(files.shards[2:])
    with pytest.raises(Killed):
        views.commit("main", begun.epoch)
    assert views.committed("main").epoch == begun.epoch
    assert fences(files) == {begun.epoch, 0}
    with pytest.raises(Killed):
        begin(views)
    files.dies_at = set()
    assert begin(views).resumed
    assert fences(files) == {begun.epoch}


def test_a_write_needs_an_epoch_that_is_under_way(views: EmbeddedViews) -> None:
    row = puts({b"k": b"v"})
    with pytest.raises(StaleEpochError, match="epoch 1 of group main is not open"):
        views.write(TABLE, 1, row)
    number = epoch(views, TABLE)
    with pytest.raises(StaleEpochError):
        views.write(TABLE, number, row)
    under_way = begin(views)
    for wrong in (number, under_way.epoch + 1):
        with pytest.raises(StaleEpochError, match="out of date"):
            views.write(TABLE, wrong, row)
    assert get(views, TABLE, b"k", under_way.epoch) is None


def test_a_write_is_refused_by_the_fence_when_the_commit_comes_after_the_check(
    files: Files, views: EmbeddedViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task finds its epoch under way, sleeps through commit and sweep, and writes."""
    number = begin(views).epoch
    views.write(TABLE, number, puts({b"k": b"v"}))
    asleep = EmbeddedViews(files)
    check = asleep._epochs.require_begun

    def check_then_sleep(group: str, epoch: int) -> object:
        found = check(group, epoch)
        views.commit(group, epoch)
        return found

    monkeypatch.setattr(asleep._epochs, "require_begun", check_then_sleep)
    with pytest.raises(StaleEpochError, match=f"epoch {number} of group main is closed"):
        asleep.write(TABLE, number, puts({b"k": b"zombie", b"l": b"zombie"}, previous={}))
    assert get(views, TABLE, b"k", number) == b"v"
    assert get(views, TABLE, b"l", number) is None


def test_a_read_behind_the_last_commit_is_refused(views: EmbeddedViews) -> None:
    first = epoch(views, TABLE, {b"k": b"1"})
    second = epoch(views, TABLE, {b"k": b"2"})
    with pytest.raises(StaleEpochError, match="no longer be read as of epoch 1"):
        get(views, TABLE, b"k", first)
    with pytest.raises(StaleEpochError):
        views.scan(TABLE, b"", first)
    assert get(views, TABLE, b"k", second) == b"2"


# ------------------------------------------------------------------ snapshots


def test_a_snapshot_stays_readable_however_many_epochs_commit(files: Files, views: EmbeddedViews) -> None:
    number = epoch(views, TABLE, {b"a": b"1", b"b": b"1", b"c": b"1"})
    with views.snapshot() as snapshot:
        for round_ in range(5):
            epoch(views, TABLE, {b"a": b"%d" % round_}, [b"b"] if round_ == 0 else [])
            views.sweep("main")
        assert snapshot.committed("main").epoch == number
        assert snapshot.scan(TABLE, b"", number).values.to_pylist() == [b"1", b"1", b"1"]
        assert get(snapshot, TABLE, b"b", number) == b"1"
    assert views.scan(TABLE, b"", views.committed("main").epoch).values.to_pylist() == [b"4", b"1"]


def test_a_snapshot_does_not_show_an_epoch_under_way(views: EmbeddedViews) -> None:
    number = epoch(views, TABLE, {b"a": b"1"})
    views.write(TABLE, begin(views).epoch, puts({b"a": b"2", b"b": b"2"}))
    with views.snapshot() as snapshot:
        assert snapshot.scan(TABLE, b"", number).values.to_pylist() == [b"1"]


def test_a_snapshot_that_is_closed_says_so(views: EmbeddedViews) -> None:
    with views.snapshot() as snapshot:
        pass
    snapshot.close()
    with pytest.raises(SnapshotExpiredError, match="closed"):
        snapshot.committed("main")
    with pytest.raises(SnapshotExpiredError, match="closed"):
        snapshot.scan(TABLE, b"", 0)


class CommitsWhileOpening(Files):
    """Commits an epoch while a snapshot opens the shards, the first ``times`` times."""

    times = 0
    _busy = False

    def meddle(self) -> None:
        if self.times and not self._busy:
            self.times -= 1
            self._busy = True
            views = EmbeddedViews(self)
            epoch(views, TABLE, {b"%d" % number: b"%d" % self.times for number in range(8)})
            self._busy = False


@pytest.mark.parametrize("times", [1, snapshots.OPTIMISTIC_ATTEMPTS - 1])
def test_a_snapshot_waits_for_a_moment_between_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    files = CommitsWhileOpening(tmp_path)
    views = EmbeddedViews(files)
    epoch(views, TABLE, {b"%d" % number: b"start" for number in range(8)})
    _meddle_with(files, monkeypatch)
    files.times = times
    with views.snapshot() as snapshot:
        rows = snapshot.scan(TABLE, b"", snapshot.committed("main").epoch)
        assert rows.values.to_pylist() == [b"0"] * 8
    files.close()


def test_a_snapshot_that_finds_no_such_moment_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = CommitsWhileOpening(tmp_path)
    views = EmbeddedViews(files)
    _meddle_with(files, monkeypatch)
    files.times = snapshots.OPTIMISTIC_ATTEMPTS
    locked: list[bool] = []
    update = files.base.update

    def seen(work: Callable[[object], object]) -> object:
        locked.append(not files.times and not files._busy)
        return update(work)

    monkeypatch.setattr(files.base, "update", seen)
    with views.snapshot() as snapshot:
        assert snapshot.committed("main") == views.committed("main")
    assert locked[-1]
    files.close()


def _meddle_with(files: CommitsWhileOpening, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commits come after the second shard has been opened."""
    shard = files.shards[1]
    open_one = shard.begin_read

    def begin_read() -> object:
        opened = open_one()
        files.meddle()
        return opened

    monkeypatch.setattr(shard, "begin_read", begin_read)
