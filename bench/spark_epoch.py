"""Where the time of an epoch on Spark goes, to the millisecond: ``python -m bench.spark_epoch``.

Epochs of a size, one after another with a pause between them, all on Spark. Times are put together from three clocks of
one machine: the driver's, Spark's own of jobs, stages and tasks, and that of the code inside of tasks. Every line is
the median over those epochs in which every stage had something to do; the view is compared with a recomputation at the
end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from bench.epochs import wrong
from bench.operators import GROUPS, KEYS
from bench.pipeline import fill, opened
from bench.workloads.synthetic import Stream, Writer
from everview.catalog import MAIN
from everview.maintain import Plans
from everview.maintain.tasks import EpochTask
from everview.operators.runner import Outcome
from everview.store.contract import Begun, TableSnapshot
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session
from everview.zones.spark_executor import SparkExecutor

WARM = 15
"""Epochs before those that are timed."""
PAUSE = 0.05
"""Seconds between two epochs."""


@dataclass
class Times:
    """When the driver did something in an epoch, as times of :func:`time.time`."""

    begun: float = 0.0
    called: float = 0.0
    worked: float = 0.0
    done: float = 0.0
    outcome: Outcome | None = None


class TimedExecutor(SparkExecutor):
    """Remembers when the work of epochs began and ended."""

    times: ClassVar[dict[int, Times]] = {}

    def work(self, begun: Begun, task: EpochTask, snapshot: TableSnapshot | None = None) -> Outcome:
        found = self.times.setdefault(begun.epoch, Times())
        found.begun, found.called = task.begun or 0.0, time.time()
        found.outcome = super().work(begun, task, snapshot)
        found.worked = time.time()
        return found.outcome


class TimedPipeline(Pipeline):
    """A pipeline whose executor remembers times."""

    EXECUTOR = TimedExecutor

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        known = set(TimedExecutor.times)
        super()._run(batch, batch_id)
        for epoch in TimedExecutor.times.keys() - known:
            TimedExecutor.times[epoch].done = time.time()


# ------------------------------------------------------------------ Spark's own clocks


def _items(seq: Any) -> list[Any]:
    """The items of a sequence of Scala."""
    return [seq.apply(number) for number in range(seq.size())]


def _time(option: Any) -> float:
    """A time of Java as one of :func:`time.time`."""
    return float(option.get().getTime()) / 1000


@dataclass
class SparkStage:
    """When a stage was submitted, when its first task was launched and its last one ended."""

    submitted: float
    launched: float
    ended: float


def stages_of_jobs(spark: SparkSession, epochs: int) -> Iterator[tuple[float, float, list[SparkStage]]]:
    """The last jobs, the oldest first: when each was submitted and ended, and its stages."""
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = sorted(_items(store.jobsList(None)), key=lambda job: int(job.jobId()))[-epochs:]
    for job in jobs:
        found = []
        for number in sorted(int(stage) for stage in _items(job.stageIds())):
            stage = store.lastStageAttempt(number)
            if stage.submissionTime().isDefined():
                found.append(
                    SparkStage(
                        _time(stage.submissionTime()),
                        _time(stage.firstTaskLaunchedTime()),
                        _time(stage.completionTime()),
                    )
                )
        yield _time(job.submissionTime()), _time(job.completionTime()), found


# ------------------------------------------------------------------ one line for each part


def parts(times: Times, job: tuple[float, float, list[SparkStage]], commit: float) -> dict[str, float]:
    """Seconds of an epoch by part, in the order in which they pass."""
    assert times.outcome is not None
    submitted, ended, stages = job
    found = {
        "the stream notices, plans and calls": times.called - times.begun,
        "the driver builds the job, Spark plans it": submitted - times.called,
    }
    last = submitted
    for (number, span), stage in zip(sorted(times.outcome.tally.spans.items()), stages, strict=True):
        found[f"stage {number}: scheduled"] = stage.launched - last
        found[f"stage {number}: task start, transfer to Python"] = span.began - stage.launched
        found[f"stage {number}: our code"] = span.ended - span.began
        found[f"stage {number}: transfer from Python, task end"] = stage.ended - span.ended
        last = stage.ended
    found["the job ends"] = ended - last
    found["the driver reads the reports"] = times.worked - ended
    found["commit"] = commit - times.worked
    found["sweep, figures read, return to Spark"] = times.done - commit
    return found


def profiled(name: str, spark: SparkSession, operations: int, epochs: int, keys: int) -> dict[str, object]:
    """The profile of epochs of so many operations."""
    TimedExecutor.times.clear()
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        path = Path(folder) / "store"
        with opened(path, name) as db, TimedPipeline(path, spark=spark, in_driver=0) as pipeline:
            fill(db, 2 * keys, keys)
            pipeline.drain()
            tables, plans, took = db.tables(), Plans(db.store, db.catalog), []
            streams = [Stream(table, keys // len(tables), GROUPS, 7 + n) for n, table in enumerate(tables)]
            writer = Writer(db, streams, max(len(tables), operations))
            for _ in range(WARM + epochs):
                plans.pause(MAIN)
                writer.write(operations)
                plans.resume(MAIN)
                started = time.perf_counter()
                pipeline.drain()
                took.append(time.perf_counter() - started)
                time.sleep(PAUSE)
            pipeline.stop()
            commits = {commit.epoch: commit.time for commit in db.store.views.history(MAIN)}
            differences = wrong(db, name)
    jobs = list(stages_of_jobs(spark, epochs))
    timed = sorted(TimedExecutor.times.items())[-epochs:]
    found = [
        (times, job, commits[epoch])
        for (epoch, times), job in zip(timed, jobs, strict=True)
        if times.outcome is not None and len(times.outcome.tally.spans) == len(job[2])
    ]
    lines = [parts(*one) for one in found]
    steps = [times.outcome.tally.seconds for times, _, _ in found if times.outcome is not None]
    return {
        "epochs in which every stage had something to do": f"{len(found)} of {epochs}",
        "from the last write to the commit, ms": median(took[-epochs:]),
        "parts, ms": {part: median([line[part] for line in lines]) for part in (lines[0] if lines else ())},
        "of our code, added up over tasks, ms": {
            part: median([step.get(part, 0.0) for step in steps])
            for part in (steps[-1] if steps else ())
            if part.startswith("stage ")
        },
        "differences": differences,
    }


def median(seconds: list[float]) -> float:
    """In milliseconds."""
    return round(1000 * statistics.median(seconds), 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_epoch", description=__doc__)
    parser.add_argument("views", nargs="*", default=["q2", "q4"])
    parser.add_argument("--operations", type=int, nargs="*", default=[1, 100_000])
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--keys", type=int, default=KEYS)
    asked = parser.parse_args()
    spark, wrong_views = new_session(), False
    for name in asked.views:
        for operations in asked.operations:
            found = profiled(name, spark, operations, asked.epochs, asked.keys)
            wrong_views = wrong_views or bool(found["differences"])
            print(json.dumps({f"{name}, {operations:,} operations": found}, indent=2), flush=True)
    spark.stop()
    return 1 if wrong_views else 0


if __name__ == "__main__":
    sys.exit(main())
