"""Views of all kinds on Spark, right at every epoch we look at, whatever changes meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from everview.zones.pipeline import Pipeline
from tests.zones.live import PATIENCE, Live
from tests.zones.writer import writing


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    found = Live(tmp_path / "store", seed=1, views=50)
    yield found
    found.close()


def test_fifty_views_of_all_kinds_under_a_running_writer(live: Live, spark: SparkSession) -> None:
    with Pipeline(live.path, spark=spark, in_driver=0) as pipeline:
        live.pipeline = pipeline
        epochs = set()
        for pause in (0.02, 0.1):
            end = time.monotonic() + 8
            with writing(live.path, live.seed, pause):
                while time.monotonic() < end:
                    epochs.add(live.check())
            pipeline.drain(timeout=PATIENCE)
            epochs.add(live.check())
            assert live.db.store.views.committed("main").frontier == live.db.store.log.latest()
    assert len(live.db.catalog.views()) >= 50 and len(epochs) > 2


def test_views_servers_regions_and_nodes_that_come_and_go_under_a_running_writer(
    tmp_path: Path, spark: SparkSession
) -> None:
    live = Live(tmp_path / "store", seed=2, views=5)
    with Pipeline(live.path, spark=spark, in_driver=0, servers=1) as pipeline:
        live.pipeline = pipeline
        steps = [live.create, live.add_node, live.move, live.index, live.split, live.replace, live.drop, live.move]
        for servers, step in zip((1, 2, 8, 8, 5, 3, 2, 1), steps, strict=True):
            pipeline.servers = servers
            with writing(live.path, live.seed):
                step()
                live.check()
            pipeline.drain(timeout=PATIENCE)
            live.check()
            assert live.db.store.views.committed("main").frontier == live.db.store.log.latest()
    live.close()
