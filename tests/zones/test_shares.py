"""Shares of an epoch on a real Spark: which task reads what."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from everview.change.frontier import Slice
from everview.client.database import Database
from everview.errors import DefinitionError
from everview.store.contract import Begun, Store
from everview.zones.pipeline import Pipeline
from everview.zones.shares import Share
from everview.zones.shuffle_blocks import Block
from everview.zones.spark_executor import SparkExecutor
from everview.zones.stage_task import StageTask
from tests.zones.shop import assert_all_is_right, write

cloudpickle.register_pickle_by_value(sys.modules[__name__])

PATIENCE = 120.0


@dataclass(frozen=True)
class Recorded(StageTask):
    """A task that records what it reads of the logs."""

    marks: str = ""

    def first(self, store: Store, number: int, share: Share) -> Iterator[Block]:
        for piece in share.slices:
            Path(self.marks, f"{self.epoch} {number} {piece.node} {piece.after} {piece.upto}").touch()
        yield from super().first(store, number, share)


class Recording(Pipeline):
    class EXECUTOR(SparkExecutor):
        def stage_task(self, begun: Begun, stage: int, servers: int, shares: tuple[Share, ...]) -> StageTask:
            task = super().stage_task(begun, stage, servers, shares)
            return Recorded(**vars(task), marks=str(Path(self.place).parent / "marks"))


def test_as_many_tasks_read_logs_as_there_are_servers_now(
    shop: Database, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everview.zones.shares.WORTH_A_TASK", 1)
    marks = tmp_path / "marks"
    marks.mkdir()
    views = shop.store.views
    with Recording(tmp_path / "store", spark=spark, in_driver=0) as pipeline:
        pipeline.drain(timeout=PATIENCE)
        for servers in (1, 3, 4, 2):
            pipeline.servers = servers
            start = views.committed("main").frontier
            write(shop, ("put", [{"id": number, "customer": servers} for number in range(100)]))
            pipeline.drain(timeout=PATIENCE)
            done = views.committed("main")
            read = [tuple(map(int, mark.name.split())) for mark in marks.iterdir()]
            slices = {Slice(*piece) for epoch, _, *piece in read if epoch == done.epoch}
            assert slices == set(start.slices_to(done.frontier)) and len(slices) == 4
            assert {number for epoch, number, *_ in read if epoch == done.epoch} == set(range(servers))
            assert_all_is_right(shop)
        with pytest.raises(DefinitionError, match="0 view servers"):
            pipeline.servers = 0


def test_an_epoch_is_one_job_and_nothing_runs_for_the_source(
    shop: Database, spark: SparkSession, tmp_path: Path
) -> None:
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    with Pipeline(tmp_path / "store", spark=spark, in_driver=0) as pipeline:
        pipeline.drain(timeout=PATIENCE)
        for number in range(3):
            epoch, jobs = shop.store.views.committed("main").epoch, scheduler.numTotalJobs()
            write(shop, ("put", [{"id": number, "customer": 1}]))
            pipeline.drain(timeout=PATIENCE)
            assert scheduler.numTotalJobs() - jobs == shop.store.views.committed("main").epoch - epoch == 1
    assert_all_is_right(shop)
