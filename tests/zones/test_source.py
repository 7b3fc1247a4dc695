"""The streaming source: the offsets that Spark gets, whatever Spark remembers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from everview.client.database import Database
from everview.maintain.epochs import begin_next
from everview.store.contract import Begun
from everview.zones.source import LogReader
from tests.zones.by_hand import ByHand, beside
from tests.zones.shop import write

LIMIT = ReadAllAvailable()


@pytest.fixture
def reader(shop: Database, tmp_path: Path) -> Iterator[LogReader]:
    reader = LogReader({"path": str(tmp_path / "store"), "group": "main"})
    yield reader
    reader.stop()


def _begin(shop: Database, *, here: bool = False) -> Begun:
    hand = ByHand(shop).maintainer
    begun = begin_next(shop.store, shop.catalog, hand.plans, "main", None, here=here)
    assert begun is not None
    return begun


def _finish(shop: Database) -> None:
    begun = shop.store.views.begun("main")
    assert begun is not None
    ByHand(shop).finish(begun, servers=1, tasks=1)


def test_nothing_new_is_the_offset_spark_has(shop: Database, reader: LogReader) -> None:
    start = reader.initialOffset()
    write(shop, ("put", [{"id": 1}]))
    assert reader.latestOffset(start, LIMIT) == start, "the mover begins epochs, not the source"


def test_the_number_of_an_epoch_that_was_begun_is_the_offset(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    start = reader.initialOffset()
    begun = _begin(shop)
    offset = reader.latestOffset(start, LIMIT)
    assert offset == {"epoch": begun.epoch, "frontier": str(begun.frontier)}
    assert reader.partitions(start, offset) == [], "no task runs for the source"


def test_an_epoch_that_was_committed_is_not_offered(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    start = reader.initialOffset()
    _begin(shop)
    offset = reader.latestOffset(start, LIMIT)
    _finish(shop)
    assert reader.latestOffset(offset, LIMIT) == offset


def test_a_lost_checkpoint_resumes_the_epoch_under_way(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    _begin(shop)
    offset = reader.latestOffset(reader.initialOffset(), LIMIT)
    write(shop, ("put", [{"id": 2}]))
    assert reader.latestOffset(reader.initialOffset(), LIMIT) == offset


@pytest.mark.parametrize("whose", ["a build", "the driver"])
def test_an_epoch_that_is_not_the_streams_is_not_offered(shop: Database, reader: LogReader, whose: str) -> None:
    write(shop, ("put", [{"id": 1}]))
    begun = beside(shop) if whose == "a build" else _begin(shop, here=True)
    start = reader.initialOffset()
    assert reader.latestOffset(start, LIMIT) == start
    _finish(shop)
    write(shop, ("put", [{"id": 2}]))
    _begin(shop)
    offset = reader.latestOffset(start, LIMIT)
    assert offset["epoch"] == begun.epoch + 1


def test_an_epoch_spark_believes_done_is_offered_again(shop: Database, reader: LogReader) -> None:
    write(shop, ("put", [{"id": 1}]))
    _begin(shop)
    offset = reader.latestOffset(reader.initialOffset(), LIMIT)
    again = reader.latestOffset(offset, LIMIT)
    assert again != offset
    assert reader.latestOffset(again, LIMIT) not in (offset, again)
