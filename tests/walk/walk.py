"""One UPDATE on its way to a view's row, traced: in this process, and on Spark.

The shop has a join and an aggregate, so that changes are redistributed twice. What is traced is the second change:
caches are filled, as they are in a process that runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.datasource import ReadMaxRows

import everview
from everview.catalog import MAIN
from everview.maintain import Maintainer
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.mover import Mover
from everview.maintain.trimming import Trimmer
from everview.store.contract import Begun
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session
from everview.zones.shares import Share
from everview.zones.source import LogReader
from everview.zones.spark_executor import SparkExecutor
from everview.zones.stage_task import StageTask
from tests.walk.trace import Function, Trace

SHOP = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR, city VARCHAR);
    CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(10,2));
    INSERT INTO customers VALUES (1, 'ada', 'London'), (2, 'bob', 'Paris');
    INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7.50), (12, 2, 3);
    CREATE MATERIALIZED VIEW cities AS
    SELECT city, count(*) AS orders, sum(amount) AS total
    FROM orders JOIN customers ON orders.customer = customers.id
    GROUP BY city
"""
PATIENCE = 300.0

Walk = dict[str, Trace]
"""What was called in each part of the way."""


def update(number: int) -> str:
    return f"UPDATE orders SET amount = {number} WHERE id = 11"


def in_process(path: Path) -> Walk:
    """UPDATE, flush and get in one process."""
    walk: Walk = {"update": Trace(), "flush": Trace(), "get": Trace()}
    with everview.open(path) as db, patch.object(Trimmer, "turn", return_value=False):  # trimming goes by the clock
        db.sql(SHOP)
        for number, is_traced in ((8, False), (9, True)):
            with walk["update"].on() if is_traced else nullcontext():
                db.sql(update(number))
            with walk["flush"].on() if is_traced else nullcontext():
                db.flush()
            with walk["get"].on() if is_traced else nullcontext():
                row = db.view("cities").get("London")
            assert row is not None and row["total"] == 5 + number
    return walk


# ------------------------------------------------------------------ on Spark


def begun(path: Path) -> Walk:
    """How an epoch begins when the logs have grown, and what Spark asks its source then."""
    walk: Walk = {"mover": Trace(), "source": Trace()}
    with everview.open(path) as db:
        db.sql(SHOP)
        db.flush()
        reader = LogReader({"path": str(path), "group": MAIN})
        start = reader.initialOffset()
        mover = Mover(Maintainer(db.store, db.catalog, EpochSizes(in_driver=0)), MAIN, lambda error: False)
        mover.hand_over(_begun_is_enough)
        db.sql(update(8))
        with walk["mover"].on(), suppress(_BegunError):
            mover.turn()
        with walk["source"].on():
            end = reader.latestOffset(start, ReadMaxRows(1000))
        assert end != start
        db.flush()
        reader.stop()
    return walk


class _BegunError(Exception):
    """The mover has begun an epoch, and waits for the stream."""


def _begun_is_enough() -> None:
    raise _BegunError


@dataclass(frozen=True)
class TracedTask(StageTask):
    """A task that writes down what it called, where a file asks for it."""

    marks: str = ""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not Path(self.marks, "on").exists():
            yield from super().__call__(batches)
            return
        trace = Trace()
        with trace.on():
            made = list(super().__call__(batches))
        with Path(self.marks, f"stage-{self.stage}").open("a") as file:
            file.write(json.dumps(_functions(trace)) + "\n")
        yield from made


class TracedPipeline(Pipeline):
    """A pipeline of which the driver's part of each epoch is traced."""

    marks = Path()
    trace = Trace()

    class EXECUTOR(SparkExecutor):
        def stage_task(self, begun: Begun, stage: int, servers: int, shares: tuple[Share, ...]) -> StageTask:
            return TracedTask(
                **vars(super().stage_task(begun, stage, servers, shares)), marks=str(TracedPipeline.marks)
            )

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        with self.trace.on() if Path(self.marks, "on").exists() else nullcontext():
            super()._run(batch, batch_id)


def on_spark(path: Path) -> Walk:
    """The same change, followed by a pipeline on Spark: its source, its driver, and its tasks."""
    walk = begun(path / "begun")
    TracedPipeline.marks = path / "marks"
    TracedPipeline.marks.mkdir(parents=True)
    spark = new_session("local[1]")  # one worker process for all tasks, so that its caches are filled when it is traced
    try:
        with everview.open(path / "store") as db:
            db.sql(SHOP)
            with TracedPipeline(path / "store", spark=spark, in_driver=0) as pipeline:
                for number in (6, 7, 8):
                    db.sql(update(number))
                    pipeline.drain(timeout=PATIENCE)
                (TracedPipeline.marks / "on").touch()
                db.sql(update(9))
                pipeline.drain(timeout=PATIENCE)
            row = db.view("cities").get("London")
            assert row is not None and row["total"] == 14
    finally:
        spark.stop()
    walk["driver"] = TracedPipeline.trace
    for file in sorted(TracedPipeline.marks.glob("stage-*")):
        tasks = map(json.loads, file.read_text().splitlines())
        walk[file.name.replace("-", " ")] = _trace(function for functions in tasks for function in functions)
    return walk


def to_json(walk: Walk) -> str:
    return json.dumps({part: _functions(trace) for part, trace in walk.items()})


def from_json(text: str) -> Walk:
    return {part: _trace(functions) for part, functions in json.loads(text).items()}


def _functions(trace: Trace) -> list[tuple[str, str, bool]]:
    return [(one.file, one.name, one in trace.hops) for one in trace.functions]


def _trace(functions: Iterable[tuple[str, str, bool]]) -> Trace:
    trace = Trace()
    for file, name, is_hop in functions:
        trace.functions.setdefault(Function(file, name))
        if is_hop:
            trace.hops.setdefault(Function(file, name))
    return trace


if __name__ == "__main__":
    print(to_json({**in_process(Path(sys.argv[1]) / "local"), **on_spark(Path(sys.argv[1]) / "spark")}))
