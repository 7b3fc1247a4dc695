"""The pipeline on a real Spark session."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from everview.client.database import Database
from everview.errors import DamagedEntryError, DefinitionError, LeaseTakenError, LogTrimmedError
from everview.maintain import Maintainer
from everview.maintain.plans import PAUSES
from everview.store.contract import Begun
from everview.store.embedded.layout import LOG
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session
from everview.zones.shares import Share
from everview.zones.source import SCHEMA
from everview.zones.spark_executor import SparkExecutor
from everview.zones.stage_task import StageTask
from tests.zones.by_hand import beside
from tests.zones.quiet import Watched
from tests.zones.shop import assert_all_is_right, open_shop, trade, write, wrong

cloudpickle.register_pickle_by_value(sys.modules[__name__])

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
BANNER = ("WARNING: Using incubator modules", "Setting default log level", "To adjust logging level")
"""What Spark says when it starts."""


def test_the_view_equals_recomputation_at_every_epoch(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    with Pipeline(tmp_path / "store", spark=spark, in_driver=0, servers=3, operations=200) as pipeline:
        for seed in range(6):
            trade(shop, 10, seed)
            pipeline.drain(timeout=PATIENCE)
            assert_all_is_right(shop)
    reports = list(pipeline.reports)
    assert all(before.epoch < report.epoch for before, report in itertools.pairwise(reports))
    assert all(report.start == before.frontier for before, report in itertools.pairwise(reports))
    assert all(report.on_spark and report.operations <= 200 for report in reports)


def test_a_checkpoint_that_is_lost_between_runs(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    for seed, servers in enumerate([2, 3, 1]):
        trade(shop, 10, seed)
        Pipeline(
            tmp_path / "store",
            spark=spark,
            in_driver=0,
            servers=servers,
            operations=100,
            checkpoint=tmp_path / "checkpoint",
        ).catch_up()
        assert_all_is_right(shop)
        if seed == 0:
            shutil.rmtree(tmp_path / "checkpoint")


def test_a_checkpoint_that_is_half_a_file(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    """As a driver leaves it that is killed in its first epoch."""
    offsets = tmp_path / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    offsets.joinpath(".0.5b1d6a6e-3c0b-4a62-a0c5-2f1d4b3f0a11.tmp").write_text("v1\n{")
    trade(shop, 2, seed=1)
    Pipeline(tmp_path / "store", spark=spark, in_driver=0, checkpoint=tmp_path / "checkpoint").catch_up()
    assert_all_is_right(shop)


@dataclass(frozen=True)
class FailingOnce:
    """A task that does its work, says so, and then fails: the first time in an epoch."""

    task: StageTask
    marks: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.task(batches)
        try:
            os.close(os.open(f"{self.marks}/{self.task.epoch}-{self.task.stage}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        raise RuntimeError("the executor is gone")


class Unlucky(Pipeline):
    """The first task of every stage of an epoch fails after it has done its work."""

    class EXECUTOR(SparkExecutor):
        def stage_task(self, begun: Begun, stage: int, servers: int, shares: tuple[Share, ...]) -> StageTask:
            task = super().stage_task(begun, stage, servers, shares)
            return FailingOnce(task, str(Path(self.place).parent / "marks"))  # type: ignore[return-value]


def test_tasks_that_are_retried_change_nothing(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    shop.sql("CREATE MATERIALIZED VIEW dear AS SELECT * FROM orders WHERE amount > 10")
    shop.sql("CREATE MATERIALIZED VIEW popular AS SELECT count(*) AS n FROM totals WHERE orders > 1")
    marks = tmp_path / "marks"
    marks.mkdir()
    trade(shop, 20, seed=1)
    pipeline = Unlucky(tmp_path / "store", spark=spark, in_driver=0, operations=150)
    pipeline.catch_up()
    assert_all_is_right(shop)
    assert len(list(marks.iterdir())) == 3 * len(pipeline.reports) > 3


def test_a_batch_that_comes_while_somebody_else_does_an_epoch_has_nothing_to_do(
    shop: Database, spark: SparkSession, tmp_path: Path
) -> None:
    """As where Spark replays a batch that was committed, and a build joins meanwhile."""
    maintainer = Maintainer(shop.store, shop.catalog)
    with Pipeline(tmp_path / "store", spark=spark, in_driver=0) as pipeline:
        trade(shop, 5, seed=1)
        pipeline.drain(timeout=PATIENCE)
        maintainer.plans.pause("main")
        trade(shop, 5, seed=2)
        begun = beside(shop)
        pipeline._run(spark.createDataFrame([], SCHEMA), 0)
        assert shop.store.views.begun("main") == replace(begun, resumed=True)
        maintainer.epochs.run(begun)
        maintainer.plans.resume("main")
        trade(shop, 5, seed=3)
        pipeline.drain(timeout=PATIENCE)
    assert_all_is_right(shop)


def test_an_entry_that_cannot_be_read_is_quarantined_and_the_rest_goes_on(
    shop: Database, spark: SparkSession, tmp_path: Path
) -> None:
    write(shop, ("put", [{"id": 1, "customer": 1}]))
    _damage_last_block(shop)
    write(shop, ("put", [{"id": 2, "customer": 2}]))
    Pipeline(tmp_path / "store", spark=spark, in_driver=0).catch_up()
    assert shop.store.views.committed("main").frontier == shop.store.log.latest()
    (subject,) = shop.catalog.quarantine.subjects()
    (entry,) = shop.catalog.quarantine.page(subject)
    assert "checksum" in entry.reason


def _damage_last_block(db: Database) -> None:
    def work(transaction):  # type: ignore[no-untyped-def]
        cursor = transaction.cursor()
        keys = [key for key in cursor.iternext(values=False) if key.startswith(LOG)]
        value = transaction.get(keys[-1])
        transaction.put(keys[-1], value[:-1] + bytes([value[-1] ^ 1]))

    db.store._update_base(work)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Raising(StageTask):
    """A task that finds something wrong."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        yield from ()
        raise DamagedEntryError("view totals: group 7 does not add up", hint="rebuild the view")


class Broken(Pipeline):
    class EXECUTOR(SparkExecutor):
        def stage_task(self, begun: Begun, stage: int, servers: int, shares: tuple[Share, ...]) -> StageTask:
            task = super().stage_task(begun, stage, servers, shares)
            return Raising(**vars(task)) if stage == 2 else task


def test_what_fails_in_a_task_reaches_the_caller_as_it_was(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    before = shop.store.views.committed("main").epoch
    trade(shop, 2, seed=1)
    with pytest.raises(DamagedEntryError, match="group 7") as found:
        Broken(tmp_path / "store", spark=spark, in_driver=0).catch_up()
    assert found.value.hint == "rebuild the view"
    assert shop.store.views.committed("main").epoch == before
    Pipeline(tmp_path / "store", spark=spark, in_driver=0).catch_up()
    assert_all_is_right(shop)


def test_a_log_that_was_trimmed_too_early_names_the_views_to_rebuild(
    shop: Database, spark: SparkSession, tmp_path: Path
) -> None:
    trade(shop, 2, seed=1)
    shop.store.log.trim(shop.store.log.latest())
    with pytest.raises(LogTrimmedError, match="group main cannot go on") as found:
        Pipeline(tmp_path / "store", spark=spark, in_driver=0).catch_up()
    assert found.value.hint == "rebuild its views: totals"


def test_the_logs_are_trimmed_behind_the_views(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    shop.sql("SET GLOBAL log_retention_operations = 20; SET GLOBAL log_retention_age = '0 seconds'")
    for seed in range(2):
        trade(shop, 10, seed)
        Pipeline(tmp_path / "store", spark=spark, in_driver=0).catch_up()
        assert_all_is_right(shop)
        assert 20 <= shop.status().log.operations < 50


def test_a_pipeline_that_is_stopped_in_an_epoch_is_resumed_by_the_next(
    shop: Database, spark: SparkSession, tmp_path: Path
) -> None:
    trade(shop, 10, seed=1)
    Watched.EXECUTOR.inside.clear()
    with pytest.raises(KeyboardInterrupt), Watched(tmp_path / "store", spark=spark, in_driver=0):
        assert Watched.EXECUTOR.inside.wait(PATIENCE)
        raise KeyboardInterrupt
    Pipeline(tmp_path / "store", spark=spark, in_driver=0).catch_up()
    assert_all_is_right(shop)


def test_at_the_end_of_its_block_a_pipeline_finishes_its_epoch_and_begins_no_other(
    shop: Database, spark: SparkSession, tmp_path: Path
) -> None:
    trade(shop, 10, seed=1)
    with Watched(tmp_path / "store", spark=spark, in_driver=0, operations=20) as pipeline:
        pipeline.drain(timeout=PATIENCE)
        Watched.EXECUTOR.inside.clear()
        trade(shop, 20, seed=2)
        assert Watched.EXECUTOR.inside.wait(PATIENCE)
        begun = shop.store.views.begun("main")
    views = shop.store.views
    assert views.begun("main") is None and not wrong(shop)
    assert begun is None or begun.epoch <= views.committed("main").epoch
    assert views.committed("main").frontier < shop.store.log.latest(), "the rest is for the next one"
    assert not shop.store.metadata.documents(PAUSES)[1], "the next process begins epochs at once"
    with Pipeline(tmp_path / "store", spark=spark, in_driver=0) as pipeline:
        pipeline.drain(timeout=PATIENCE)
    assert_all_is_right(shop)


def test_a_failure_is_raised_at_the_end_of_the_block(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    trade(shop, 2, seed=1)
    with (
        pytest.raises(DamagedEntryError, match="group 7"),
        Broken(tmp_path / "store", spark=spark, in_driver=0) as pipeline,
    ):
        assert pipeline._query is not None
        with contextlib.suppress(StreamingQueryException):
            pipeline._query.awaitTermination(int(PATIENCE))


def test_logs_without_before_images(spark: SparkSession, tmp_path: Path) -> None:
    with open_shop(tmp_path / "store", before_images=False) as db:
        for seed in range(2):
            trade(db, 10, seed)
            Pipeline(tmp_path / "store", spark=spark, in_driver=0, operations=100).catch_up()
            assert_all_is_right(db)


def test_a_second_pipeline_is_refused_while_one_runs(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    with (
        Pipeline(tmp_path / "store", spark=spark, in_driver=0),
        pytest.raises(LeaseTakenError, match=f"process {os.getpid()}"),
    ):
        Pipeline(tmp_path / "store", spark=spark, in_driver=0).start()
    Pipeline(tmp_path / "store", spark=spark, in_driver=0).catch_up()


def test_a_pipeline_runs_once_and_can_be_waited_for_only_while_it_runs(
    shop: Database, spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = Pipeline(tmp_path / "store", spark=spark, in_driver=0)
    with pytest.raises(DefinitionError, match="not maintained here"):
        pipeline.drain()
    with pipeline, pytest.raises(DefinitionError, match="maintained here already"):
        pipeline.start()


def test_a_session_that_has_been_used_for_something_else(shop: Database, tmp_path: Path) -> None:
    """With ``createDataFrame`` a session becomes the active one of its thread."""
    spark = new_session()
    assert spark.createDataFrame([(1,)], "a int").count() == 1
    trade(shop, 3, seed=1)
    Pipeline(tmp_path / "store", spark=spark, in_driver=0).catch_up()
    assert_all_is_right(shop)
    assert SparkSession.getActiveSession() is not None
    assert spark.createDataFrame([(1,), (2,)], "a int").count() == 2


def test_the_settings_of_a_session_that_is_handed_in_stay_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.adaptive.enabled", "true")
    with open_shop(tmp_path / "store") as db:
        trade(db, 1, seed=1)
        Pipeline(tmp_path / "store", spark=theirs, in_driver=0).catch_up()
        assert_all_is_right(db)
    assert theirs.conf.get("spark.sql.adaptive.enabled") == "true"


def test_nothing_is_printed_by_a_pipeline_that_is_stopped_in_an_epoch(tmp_path: Path) -> None:
    """Neither by Spark, nor by its workers, nor by DuckDB at the end of the process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.zones.quiet", str(tmp_path / "store")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0 and done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith(BANNER)]
    assert lines == []
