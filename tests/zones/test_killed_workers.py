"""Python workers killed while they run tasks: Spark tries the tasks again, and nothing is lost or done twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path

from pyspark.sql import SparkSession

from bench.processes import family
from everview.zones.pipeline import Pipeline
from tests.zones.live import PATIENCE, Live
from tests.zones.writer import writing

KILLS = 12


def workers() -> list[int]:
    """The processes that Spark's Python daemons have forked."""
    return [child for daemon in _daemons(os.getpid()) for child in _daemons(daemon) if child != daemon]


def _daemons(process: int) -> list[int]:
    """A daemon of Spark looks as its workers do, which are its children."""
    found: list[int] = []
    for one in family(process):
        with contextlib.suppress(OSError):
            if b"-m\0everview.zones.daemon\0" in Path(f"/proc/{one}/cmdline").read_bytes():
                found.append(one)
    return found


def test_workers_killed_at_any_moment(tmp_path: Path, spark: SparkSession) -> None:
    """One after another, each in a later epoch: of a task that fails four times Spark despairs."""
    live = Live(tmp_path / "store", seed=4, views=10)
    rng = random.Random(4)
    views = live.db.store.views
    with Pipeline(live.path, spark=spark) as pipeline:
        live.pipeline = pipeline
        with writing(live.path, live.seed):
            for _ in range(KILLS):
                before = views.committed("main").epoch
                while views.committed("main").epoch == before:
                    pipeline.check()
                    time.sleep(0.01)
                time.sleep(rng.uniform(0, 0.3))
                for worker in rng.sample(alive := workers(), min(1, len(alive))):
                    os.kill(worker, signal.SIGKILL)
            live.check()
        pipeline.drain(timeout=PATIENCE)
        live.check()
        assert views.committed("main").frontier == live.db.store.log.latest()
    live.close()
