"""The mover: which epochs it begins, where they are done, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.catalog import MAIN
from everview.client.database import Database
from everview.errors import EverviewError
from everview.maintain import Maintainer
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.epochs import offered, streamed
from everview.maintain.mover import Mover
from everview.maintain.tasks import EpochTask
from tests.zones.by_hand import beside
from tests.zones.shop import assert_all_is_right, open_shop, trade


class Moved:
    """A store, and a mover that is turned by hand."""

    def __init__(self, db: Database, in_driver: int | None, operations: int = 1000) -> None:
        self.db = db
        self.views = db.store.views
        self.errors: list[EverviewError] = []
        self.maintainer = Maintainer(db.store, db.catalog, EpochSizes(operations, lambda: 2, in_driver))
        self.mover = Mover(self.maintainer, MAIN, lambda error: False)

    @property
    def task(self) -> EpochTask:
        """Of the epoch under way."""
        begun = self.views.begun(MAIN)
        assert begun is not None
        return EpochTask.from_bytes(begun.plan)

    def commit_as_a_stream(self) -> None:
        begun = offered(self.db.store, MAIN)
        assert begun is not None
        self.maintainer.epochs.run(begun, self.maintainer.executor.here)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with open_shop(tmp_path / "store") as found:
        yield found


class StreamError(EverviewError):
    """A stream has failed."""


def fail() -> None:
    raise StreamError("the stream has failed")


def test_without_a_stream_everything_is_done_here(db: Database) -> None:
    moved = Moved(db, in_driver=None)
    assert not moved.mover.turn(), "nothing is new"
    trade(db, 20, seed=1)
    while moved.mover.turn():
        assert moved.views.begun(MAIN) is None
    assert_all_is_right(db)


def test_a_large_epoch_is_left_to_the_stream_and_a_small_one_is_not(db: Database) -> None:
    moved = Moved(db, in_driver=3)
    moved.mover.hand_over(fail)  # asked for while the mover waits
    db.table("orders").put({"id": 1, "customer": 1})
    assert moved.mover.turn() and moved.views.begun(MAIN) is None
    trade(db, 20, seed=1)
    with pytest.raises(StreamError):
        moved.mover.turn()
    assert moved.task.streamed and not moved.task.here
    assert offered(db.store, MAIN) is not None
    moved.commit_as_a_stream()
    while moved.views.committed(MAIN).frontier != db.store.log.latest():
        with pytest.raises(StreamError):
            moved.mover.turn()
        moved.commit_as_a_stream()
    assert not moved.mover.turn()
    assert_all_is_right(db)


def test_an_epoch_of_a_stream_that_is_gone_is_done_here(db: Database) -> None:
    """As after a driver was killed, where the next one has no Spark yet."""
    before = Moved(db, in_driver=0)
    before.mover.hand_over(fail)
    trade(db, 2, seed=1)
    with pytest.raises(StreamError):
        before.mover.turn()
    begun = moved_begun = offered(db.store, MAIN)
    assert begun is not None
    after = Moved(db, in_driver=None)
    assert after.mover.turn()
    assert moved_begun is not None and after.views.committed(MAIN).epoch == begun.epoch
    assert after.views.committed(MAIN).frontier == begun.frontier
    assert_all_is_right(db)


def test_an_epoch_that_was_begun_beside_is_not_the_movers(db: Database) -> None:
    moved = Moved(db, in_driver=None)
    trade(db, 2, seed=1)
    begun = beside(db)
    assert not moved.mover.turn() and moved.views.begun(MAIN) is not None
    moved.maintainer.finish(MAIN)
    assert moved.views.committed(MAIN).epoch == begun.epoch


def test_nothing_is_begun_while_views_join(db: Database) -> None:
    moved = Moved(db, in_driver=None)
    trade(db, 2, seed=1)
    moved.maintainer.plans.pause(MAIN)
    assert not moved.mover.turn() and moved.views.begun(MAIN) is None
    moved.maintainer.plans.resume(MAIN)
    assert moved.mover.turn() and streamed(db.store, MAIN) is None


def test_logs_are_read_in_one_place_where_a_region_may_have_moved(db: Database) -> None:
    """The mover knows nothing of what was before its first epoch, so that one is read in one place too."""
    moved = Moved(db, in_driver=0)
    moved.mover.hand_over(fail)
    for seed, moves in enumerate([False, False, True, False]):
        trade(db, 3, seed)
        if moves:
            node = db.topology.add_node()
            db.topology.move(db.topology.regions()[0].first, node)
            trade(db, 3, seed)
        with pytest.raises(StreamError):
            moved.mover.turn()
        assert moved.task.alone == (seed == 0 or moves)
        moved.commit_as_a_stream()


def test_a_stopped_mover_begins_nothing_and_gives_up_what_a_stream_has(db: Database) -> None:
    moved = Moved(db, in_driver=0)
    moved.mover.hand_over(lambda: None)
    moved.mover.start()
    trade(db, 1, seed=1)
    while offered(db.store, MAIN) is None:
        pass
    moved.mover.stop(finish=False)
    assert offered(db.store, MAIN) is not None, "the next process does it"
    trade(db, 1, seed=2)
    after = Moved(db, in_driver=None)
    while after.mover.turn():
        pass
    assert_all_is_right(db)


def test_a_stopped_mover_waits_for_the_stream(db: Database) -> None:
    moved = Moved(db, in_driver=0)
    moved.mover.hand_over(lambda: None)
    moved.mover.start()
    trade(db, 1, seed=1)
    while offered(db.store, MAIN) is None:
        pass
    moved.commit_as_a_stream()
    moved.mover.stop()
    assert moved.views.begun(MAIN) is None


def test_a_group_without_views_has_no_epochs(db: Database) -> None:
    db.sql("DROP MATERIALIZED VIEW totals; FLUSH")
    trade(db, 1, seed=1)
    moved = Moved(db, in_driver=None)
    assert not moved.mover.turn() and moved.views.begun(MAIN) is None
