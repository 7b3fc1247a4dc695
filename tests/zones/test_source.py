"""The streaming source: the offsets that Spark gets, whatever Spark remembers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from everview.change.frontier import Slice
from everview.client.database import Database
from everview.errors import DefinitionError
from everview.maintain.coordination import set_servers
from everview.maintain.tasks import EpochTask
from everview.zones.shares import Share
from everview.zones.source import LogReader
from tests.zones.by_hand import ByHand, beside
from tests.zones.shop import trade, write

LIMIT = ReadMaxRows(100)


@pytest.fixture
def reader(shop: Database, tmp_path: Path) -> Iterator[LogReader]:
    reader = LogReader({"path": str(tmp_path / "store"), "group": "main", "operations": "100"})
    yield reader
    reader.stop()


def _finish(shop: Database) -> None:
    begun = shop.store.views.begun("main")
    assert begun is not None
    ByHand(shop).finish(begun, servers=1, tasks=1)


def test_nothing_new_is_the_offset_spark_has(shop: Database, reader: LogReader) -> None:
    start = reader.initialOffset()
    assert reader.latestOffset(start, LIMIT) == start
    assert reader.partitions(start, start) == []


def test_growth_begins_an_epoch_and_its_number_is_the_offset(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    start = reader.initialOffset()
    offset = reader.latestOffset(start, LIMIT)
    begun = shop.store.views.begun("main")
    assert begun is not None
    assert offset == {"epoch": begun.epoch, "frontier": str(begun.frontier)}
    (partition,) = reader.partitions(start, offset)
    assert partition.value == Share(begun.epoch, begun.start.slices_to(begun.frontier), leads=True)
    (rows,) = reader.read(partition)
    slices = [Slice(row["node"], row["after"], row["upto"]) for row in rows.to_pylist()]
    assert slices == list(partition.value.slices) and {row["epoch"] for row in rows.to_pylist()} == {begun.epoch}


def test_as_many_tasks_read_logs_as_there_are_servers_now(
    shop: Database, reader: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everview.zones.shares.WORTH_A_TASK", 1)
    start = reader.initialOffset()
    trade(shop, 1, seed=0)
    _pass(shop, reader, start)
    trade(shop, 5, seed=1)
    offset = reader.latestOffset(start, LIMIT)
    for servers in (1, 3, 4, 2):
        set_servers(shop.store, servers)
        assert len(reader.partitions(start, offset)) == servers
    with pytest.raises(DefinitionError, match="0 view servers"):
        set_servers(shop.store, 0)


def _pass(shop: Database, reader: LogReader, start: dict[str, int | str]) -> None:
    """The first epoch of a reader is read in one place."""
    reader.latestOffset(start, LIMIT)
    _finish(shop)


def test_a_batch_that_was_committed_has_no_slices_when_spark_replays_it(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    start = reader.initialOffset()
    offset = reader.latestOffset(start, LIMIT)
    _finish(shop)
    assert reader.partitions(start, offset) == []
    assert reader.latestOffset(offset, LIMIT) == offset


def test_a_lost_checkpoint_resumes_the_epoch_under_way(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    offset = reader.latestOffset(reader.initialOffset(), LIMIT)
    write(shop, ("put", [{"id": 2}]))
    assert reader.latestOffset(reader.initialOffset(), LIMIT) == offset


def test_an_epoch_that_somebody_does_beside_the_stream_is_not_offered(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    begun = beside(shop)
    start = reader.initialOffset()
    assert reader.latestOffset(start, LIMIT) == start
    assert reader.partitions(start, {"epoch": begun.epoch}) == []
    _finish(shop)
    write(shop, ("put", [{"id": 2}]))
    offset = reader.latestOffset(start, LIMIT)
    assert offset["epoch"] == begun.epoch + 1 and reader.partitions(start, offset) != []


def test_an_epoch_spark_believes_done_is_offered_again(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    offset = reader.latestOffset(reader.initialOffset(), LIMIT)
    again = reader.latestOffset(offset, LIMIT)
    assert again != offset
    assert reader.latestOffset(again, LIMIT) not in (offset, again)
    assert reader.partitions(offset, again) != []


def test_the_limit_bounds_an_epoch_and_everything_means_everything(shop: Database, reader: LogReader) -> None:
    for first in range(0, 300, 30):
        write(shop, ("put", [{"id": i} for i in range(first, first + 30)]))
    assert isinstance(reader.getDefaultReadLimit(), ReadMaxRows)
    start = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    begun = shop.store.views.begun("main")
    assert begun is not None and begun.start.operations_to(begun.frontier) == 90
    _finish(shop)
    reader.latestOffset(start, ReadAllAvailable())
    begun = shop.store.views.begun("main")
    assert begun is not None and begun.frontier == shop.store.log.latest()


def test_available_now_stops_at_what_was_there(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    reader.prepareForTriggerAvailableNow()
    target = shop.store.log.latest()
    write(shop, ("put", [{"id": 2}]))
    offset = reader.latestOffset(reader.initialOffset(), LIMIT)
    _finish(shop)
    assert shop.store.views.committed("main").frontier == target
    assert reader.latestOffset(offset, LIMIT) == offset


def _alone(shop: Database) -> bool:
    begun = shop.store.views.begun("main")
    assert begun is not None
    return EpochTask.from_bytes(begun.plan).alone


def test_an_epoch_in_which_a_region_may_have_moved_is_read_in_one_place(shop: Database, reader: LogReader) -> None:
    """The reader knows nothing of what was before its first epoch, so that one is read in one place
    too."""
    start, offset = {}, reader.initialOffset()
    moves = [False, False, True, False]
    for seed, moved in enumerate(moves):
        trade(shop, 3, seed)
        if moved:
            node = shop.topology.add_node()
            shop.topology.move(shop.topology.regions()[0].first, node)
            trade(shop, 3, seed)
        start, offset = offset, reader.latestOffset(offset, LIMIT)
        assert _alone(shop) == (seed == 0 or moved)
        assert len(reader.partitions(start, offset)) == 1
        _finish(shop)


def test_an_epoch_that_was_begun_before_is_taken_as_it_was(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    ByHand(shop).begin()
    reader.latestOffset(reader.initialOffset(), LIMIT)
    assert not _alone(shop)


def test_a_group_without_views_has_no_epochs(shop: Database, reader: LogReader) -> None:
    shop.sql("DROP MATERIALIZED VIEW totals; FLUSH")
    write(shop, ("put", [{"id": 1}]))
    start = reader.initialOffset()
    assert reader.latestOffset(start, LIMIT) == start
