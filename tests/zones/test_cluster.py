"""Pipelines on a standalone cluster, whose executors are processes of their own: copies of slow tasks, tasks
that fail, executors and Python workers that are killed.

The cluster and the driver take long to start, so all of it is one test with parts.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from everview.client.database import Database
from everview.errors import EverviewError, NotAStoreError, StoreError
from everview.store.opened import close_opened, opened
from tests.zones.clusters import Cluster, standalone
from tests.zones.market import KINDS, PATIENCE, business, check_now, do_business, epoch, open_market, wait_for
from tests.zones.mishaps import MOMENTS, Failing, failed, pipeline_of
from tests.zones.on_cluster import Driver, driver
from tests.zones.shop import assert_all_is_right, trade

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.task.duration.threshold": "150ms",
}
"""A task that takes longer than that is started once more, on the other host."""

ROUNDS = 40
"""Of writes, in which tasks must have failed in every way."""


@dataclass
class On:
    """Where a part of the test runs."""

    cluster: Cluster
    driver: Driver
    folder: Path
    db: Database

    @contextlib.contextmanager
    def running(self, kind: str, **options: object) -> Iterator[Path]:
        """While a pipeline runs whose tasks are of a kind; where they leave their marks. At the end all
        views are right."""
        marks = self.folder / "marks"
        marks.mkdir()
        self.driver.start(place=str(self.folder / "store"), kind=kind, marks=str(marks), **options)
        try:
            yield marks
            self.driver.drain(timeout=PATIENCE)
        finally:
            self.driver.stop()
        assert_all_is_right(self.db)

    def next_epoch(self, more: int = 1) -> None:
        goal = epoch(self.db) + more
        wait_for(lambda: epoch(self.db) >= goal, self.driver.check)


def views_under_a_running_writer(on: On) -> None:
    with on.running("plain"), business(on.db, seed=1):
        seen = set()
        for servers in (2, 3, 1):
            on.driver.serve(servers=servers)
            on.next_epoch()
            seen.add(check_now(on.db))
    assert len(on.db.catalog.views()) == KINDS and len(seen) == 3


def copies_of_tasks_at_the_same_time(on: On) -> None:
    """Every second epoch, tasks wait half-way for their copies."""
    with on.running("slow") as marks:
        for seed in range(4):
            do_business(on.db, seed)
            on.driver.drain(timeout=PATIENCE)
            check_now(on.db)
        marked = sorted(path.name for path in marks.iterdir())
    assert not [name for name in marked if name.startswith("alone")], marked
    both = [name.removeprefix("both-") for name in marked if name.startswith("both")]
    assert len(both) >= 4 and len({name.split("-")[1] for name in both}) > 1, marked
    assert all({f"wrote-{name}-0", f"wrote-{name}-1"} <= set(marked) for name in both)


def tasks_that_fail_at_random(on: On) -> None:
    with on.running("failing", seed=1) as marks:
        for seed in range(ROUNDS):
            do_business(on.db, seed)
            on.driver.drain(timeout=PATIENCE)
            check_now(on.db)
            if seed >= 2 and failed(marks) == set(MOMENTS):
                return
    raise AssertionError(f"tasks have failed only {failed(marks)}")


def killed_executors_and_python_workers(on: On) -> None:
    """Each while a task of a later epoch is in the middle of its writes."""
    rng = random.Random(3)
    with on.running("recording") as marks, business(on.db, seed=3):
        for who in (on.cluster.python_workers, on.cluster.executors, on.cluster.python_workers, on.cluster.executors):
            on.next_epoch()
            for path in marks.iterdir():
                path.unlink()
            wait_for(lambda: any(marks.iterdir()), on.driver.check)
            os.kill(rng.choice(who()), signal.SIGKILL)
            check_now(on.db)
        on.next_epoch(2)
        check_now(on.db)


def an_executor_whose_python_has_no_everview(on: On) -> None:
    """The error contains what to do about it, and when that is done the epoch is finished."""
    bare = on.folder / "bare"
    bare.mkdir()
    (bare / "everview.py").write_text("raise ModuleNotFoundError(\"No module named 'everview'\", name='everview')\n")
    python = bare / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={bare}:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    on.driver.start(place=str(on.folder / "store"))
    usual = on.driver.python(executable=str(python))
    try:
        do_business(on.db, 1)
        with pytest.raises(EverviewError, match="an epoch of group main failed") as found:
            on.driver.drain(timeout=PATIENCE)
        assert found.value.detail == "the Python that Spark runs finds no module everview"
        assert found.value.hint is not None and "PYSPARK_PYTHON" in found.value.hint
    finally:
        on.driver.python(executable=usual)
        with contextlib.suppress(EverviewError):
            on.driver.stop()
    with on.running("plain"):
        pass


PARTS: tuple[Callable[[On], None], ...] = (
    views_under_a_running_writer,
    copies_of_tasks_at_the_same_time,
    tasks_that_fail_at_random,
    killed_executors_and_python_workers,
    an_executor_whose_python_has_no_everview,
)


def test_on_a_cluster(tmp_path: Path, subtests: pytest.Subtests) -> None:
    with (
        standalone(tmp_path / "cluster") as cluster,
        driver(cluster.url, cluster.settings | SPECULATION, tmp_path / "driver.log") as found,
    ):
        for part in PARTS:
            folder = tmp_path / part.__name__
            folder.mkdir()
            with subtests.test(part.__name__), open_market(folder / "store") as db:
                part(On(cluster, found, folder, db))


def test_tasks_that_fail_at_random_on_a_local_master(shop: Database, spark: SparkSession, tmp_path: Path) -> None:
    shop.sql("CREATE MATERIALIZED VIEW popular AS SELECT count(*) AS n FROM totals WHERE orders > 1")
    marks = tmp_path / "marks"
    marks.mkdir()
    with pipeline_of(Failing, marks, seed=2)(tmp_path / "store", spark=spark, in_driver=0) as pipeline:
        for seed in range(ROUNDS):
            trade(shop, 5, seed)
            pipeline.drain(timeout=PATIENCE)
            assert_all_is_right(shop)
            if seed >= 2 and failed(marks) == set(MOMENTS):
                return
    raise AssertionError(f"tasks have failed only {failed(marks)}")


def test_a_store_on_another_machine_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used from") as found:
        opened(str(tmp_path), "another machine")
    assert found.value.hint is not None and "machine of the store" in found.value.hint


def test_a_directory_that_an_executor_does_not_see(tmp_path: Path) -> None:
    with pytest.raises(NotAStoreError, match="there is no store in") as found:
        opened(str(tmp_path / "none"))
    assert found.value.hint is not None and "under the same path" in found.value.hint
    close_opened(str(tmp_path / "none"))
