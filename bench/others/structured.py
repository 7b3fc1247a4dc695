"""Plain Structured Streaming: signed changes from Parquet files, state in Spark's own state store.

Spark has no stream of updates and deletes, so an operation is fed as a row with weight −1 for what
it took away and one with +1 for what it put, and each view is what Spark can make of that.

| view | how | what comes out |
|---|---|---|
| q1 | a filter; no state | signed rows |
| q2 | sums of weights and of weighted values by group, in the state store | groups as they became |
| q3 | ``applyInPandasWithState`` with all values of a group: a minimum cannot be taken back | groups as they became |
| q4 | a join of the two streams, weights multiplied; it keeps every row that there ever was | signed rows |

State is in RocksDB, with a log of changes instead of snapshots; two shuffle partitions for two cores; 100,000
operations a batch. Nothing is left but files of changes: to keep the view itself, a table format with MERGE would
have to be added.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from bench.others.child import Take, Taken
from bench.others.views import COLUMNS, TYPES, shape, tables
from bench.report.sessions import session

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

FILES = 2
"""Of a batch."""
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@contextmanager
def system() -> Iterator[Take]:
    spark = session().newSession()
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)

    def take(view: str, stream: Path, out: Path) -> Taken:
        inputs = {name: _read(spark, name, stream) for name in tables(view)}
        found, mode = _VIEWS[shape(view)](inputs)

        def keep(batch: DataFrame, number: int) -> None:
            batch.withColumn("batch", f.lit(number)).write.parquet(str(out / "changes" / f"{number:05}"))

        writer = found.writeStream.outputMode(mode).foreachBatch(keep).trigger(availableNow=True)
        started = time.perf_counter()
        asked = writer.option("checkpointLocation", str(out / "checkpoint")).start()
        asked.awaitTermination()
        seconds = time.perf_counter() - started
        spent: dict[str, float] = {}
        for progress in asked.recentProgress:
            for name, value in progress["durationMs"].items():
                if name != "triggerExecution":  # which is all of them together
                    spent[name] = spent.get(name, 0.0) + value / 1000
        return Taken(seconds, profile=spent)

    yield take


def _read(spark: SparkSession, table: str, stream: Path) -> DataFrame:
    columns = ", ".join(f"{name} {TYPES[name]}" for name in COLUMNS[table])
    reader = spark.readStream.schema(f"{columns}, w INTEGER").option("maxFilesPerTrigger", FILES)
    return reader.parquet(str(stream / "signed" / table))


def _q1(inputs: dict[str, DataFrame]) -> tuple[DataFrame, str]:
    return inputs["bt1"].where("c2 < 500").select("k", "c1", "c2", "w"), "append"


def _q2(inputs: dict[str, DataFrame]) -> tuple[DataFrame, str]:
    return inputs["bt1"].groupBy("c1").agg(f.expr("sum(w) AS n"), f.expr("sum(w * c2) AS s")), "update"


def _q3(inputs: dict[str, DataFrame]) -> tuple[DataFrame, str]:
    found = inputs["bt1"].select("c1", "c3", "w").groupBy("c1")
    result = "c1 INTEGER, n BIGINT, s DOUBLE, a DOUBLE, lo DOUBLE, hi DOUBLE"
    return (
        found.applyInPandasWithState(_group, result, "values BINARY", "update", GroupStateTimeout.NoTimeout),
        "update",
    )


def _group(key: tuple[int], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """A group of q3: what came is added to its values, what went is taken out. A batch is a set: what went
    may be read before it came."""
    import pandas as pd

    values = array("d", state.get[0] if state.exists else b"")
    gone: list[float] = []
    for part in parts:
        values.extend(part["c3"][part["w"] > 0].tolist())
        gone += part["c3"][part["w"] < 0].tolist()
    for value in gone:
        values.remove(value)
    if values:
        state.update((values.tobytes(),))
        total = math.fsum(values)
        row: tuple[float | None, ...] = (key[0], len(values), total, total / len(values), min(values), max(values))
    else:
        if state.exists:
            state.remove()
        row = (key[0], 0, None, None, None, None)
    yield pd.DataFrame([row], columns=["c1", "n", "s", "a", "lo", "hi"])


def _q4(inputs: dict[str, DataFrame]) -> tuple[DataFrame, str]:
    left, right = inputs["bt1"].alias("a"), inputs["bt2"].alias("b")
    joined = left.join(right, f.expr("a.c1 = b.c1"))
    return joined.selectExpr("a.k", "a.c2", "b.k AS l", "b.c4", "a.w * b.w AS w"), "append"


_VIEWS = {"q1": _q1, "q2": _q2, "q3": _q3, "q4": _q4}
