"""The pipeline on Spark, from the logs to committed views: ``python -m bench.pipeline``.

| run | what is measured |
|---|---|
| q1 … q4 | the streams and views of ``bench.operators``: operations per second of warm epochs, commit to commit |
| freshness | a single change with an idle pipeline: from the put to the commit of the view (one shuffle) |
| idle | processor time of all processes of a pipeline that has nothing to do |
| writer | puts per second on one core: alone, beside a core that is busy otherwise, and while q2 is maintained on it |
| build | q2 and q3 created over ten million rows, beside a running pipeline: rows per second, memory |

In each run the view is compared with a recomputation at the end, and the command fails if a row
differs. Memory is that of all processes together, shared pages counted once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

import everview
from bench.beside import maintained, on_core, spinning, two_cores
from bench.calls import timed
from bench.epochs import Pace, in_process, on_spark, profile, wrong
from bench.operators import GROUPS, KEYS, VIEWS
from bench.processes import Memory, memory, processor_seconds
from bench.workloads.paced import prepared
from bench.workloads.synthetic import BATCH, BT1, BT2, Stream, Writer
from everview.catalog import MAIN
from everview.zones.pipeline import Pipeline
from everview.zones.session import new_session

Found = dict[str, object]


def opened(path: Path, name: str) -> everview.Database:
    """A database with the tables and the views of a run."""
    db = everview.open(path)
    db.create_table("bt1", BT1)
    if name == "q4":
        db.create_table("bt2", BT2)
    db.sql("; ".join(f"CREATE MATERIALIZED VIEW {view} AS {query}" for view, query in VIEWS[name].items()))
    return db


def fill(db: everview.Database, operations: int, keys: int = KEYS, seed: int = 0) -> None:
    """Write the log, the tables in turn."""
    tables = db.tables()
    groups = keys // 2 if len(tables) > 1 else GROUPS * keys // KEYS
    streams = [Stream(table, keys // len(tables), groups, seed + number) for number, table in enumerate(tables)]
    Writer(db, streams).write(operations)


def one_core(path: Path, name: str, operations: int, keys: int) -> Pace:
    """The same without Spark, in this process: of what is written, the last half is timed."""
    with opened(path, name) as db:
        fill(db, operations // 2, keys)
        db.flush()
        fill(db, operations // 2, keys, seed=len(db.tables()))
        return in_process(db)


def wrong_rows(db: everview.Database, view: str) -> list[str]:
    """How a view differs from its recomputation; it must show everything that was written."""
    found = wrong(db, view)
    return [found] if found else []


# ------------------------------------------------------------------ operations per second


def throughput(
    name: str,
    spark: SparkSession,
    operations: int,
    *,
    keys: int = KEYS,
    per_epoch: int | None = None,
    servers: int = 2,
) -> Found:
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        path = Path(folder) / "store"
        with opened(path, name) as db:
            fill(db, operations, keys)
            pace = on_spark(path, db, spark, servers, per_epoch)
            alone = one_core(Path(folder) / "alone", name, operations, keys)
            return {
                "operations of each epoch": list(pace.sizes),
                "share of the timed epochs that were done on Spark": round(pace.shared, 2),
                "seconds of each epoch": [round(seconds, 3) for seconds in pace.each],
                "operations per second": round(pace.rate),
                "operations per second, one core in process": round(alone.rate),
                "times one core": round(pace.rate / alone.rate, 2),
                "milliseconds of a warm epoch": milliseconds(pace.profile),
                "megabytes of all processes": round(memory(os.getpid()).all),
                "rows": db.sql(f"SELECT count(*) FROM {name}").rows()[0][0],
                "differences": wrong_rows(db, name),
            }


def milliseconds(parts: dict[str, float]) -> dict[str, float]:
    return {name: round(1000 * seconds, 1) for name, seconds in parts.items()}


# ------------------------------------------------------------------ an idle pipeline


def freshness(spark: SparkSession, changes: int, in_driver: int | None = None) -> Found:
    """Single puts, each after the view has shown the last one and a pause."""
    rng = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        path = Path(folder) / "store"
        with opened(path, "q2") as db, Pipeline(path, spark=spark, in_driver=in_driver) as pipeline:
            table = db.table("bt1")

            def change() -> float:
                start = time.perf_counter()
                table.put({"k": rng.randrange(KEYS), "c1": rng.randrange(GROUPS), "c2": 1, "c3": 1.0})
                wanted = db.store.log.latest()
                while not wanted <= db.store.views.committed(MAIN).frontier:
                    time.sleep(0.001)
                return time.perf_counter() - start

            for _ in range(20):
                change()
            took = []
            for _ in range(changes):
                time.sleep(rng.random() / 2)
                took.append(1000 * change())
            stages = milliseconds(profile(list(pipeline.reports)[-changes:]))
            wrong = wrong_rows(db, "q2")
            busy = idle(os.getpid(), 20)
    return {
        "milliseconds, median": round(statistics.median(took)),
        "milliseconds, 9 in 10 within": round(statistics.quantiles(took, n=10)[-1]),
        "milliseconds of an epoch": stages,
        "idle: share of a core": round(busy, 3),
        "differences": wrong,
    }


def idle(process: int, seconds: float) -> float:
    """The share of a core that a process and all that it started take."""
    before = processor_seconds(process)
    time.sleep(seconds)
    return (processor_seconds(process) - before) / seconds


# ------------------------------------------------------------------ writers

MANY = 1_000
"""Rows of a batch."""


def writer(seconds: float, turns: int = 3) -> Found:
    """Single puts and batches on one core, in turns alone and while views are maintained on another."""
    mine, other = two_cores()
    if mine == other:
        return {"skipped": "there is only one core", "differences": []}
    rates: dict[str, list[float]] = {}
    stream = Stream("bt1", KEYS, GROUPS, 1)
    batches = prepared(stream, MANY, 20)
    singles = [row for rows in batches for row in rows.slice(0, 100).to_pylist()]
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        path = Path(folder) / "store"
        with opened(path, "q2") as db, on_core(mine):
            table = db.table("bt1")

            def measure(how: str) -> None:
                rates.setdefault(f"put, {how}", []).append(timed(table.put, singles, seconds, block=100).rate)
                many = timed(table.put_many, batches, seconds, rows=MANY)
                rates.setdefault(f"put_many of 1,000, {how}", []).append(many.rate)

            for _ in range(turns):
                measure("alone")
                with spinning(other):
                    measure("beside a busy core")
                with maintained(db, path, core=other, master="local[1]", servers=1):
                    measure("maintained")
            db.flush()
            wrong = wrong_rows(db, "q2")
    best = {name: max(found) for name, found in rates.items()}
    slowed = {
        f"{name}, {how}": f"{100 * (1 - best[f'{name}, {how}'] / best[f'{name}, alone']):.1f} %"
        for name in ("put", "put_many of 1,000")
        for how in ("beside a busy core", "maintained")
    }
    return {
        "rows per second, the best turn": {name: round(rate) for name, rate in best.items()},
        "slowed by": slowed,
        "differences": wrong,
    }


# ------------------------------------------------------------------ a build


def build(spark: SparkSession, rows: int, servers: int) -> Found:
    """Two views created over a large table while a third is maintained."""
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        path = Path(folder) / "store"
        with opened(path, "q1") as db, Pipeline(path, spark=spark, servers=servers) as pipeline:
            stream = Stream("bt1", rows, rows // 10, 1)
            rng = np.random.default_rng(1)
            for low in range(0, rows, BATCH):
                db.table("bt1").put_many(stream.rows(rng, np.arange(low, min(low + BATCH, rows))))
            pipeline.drain()
            before = memory(os.getpid())
            most = before
            started = time.perf_counter()
            drained = threading.Event()
            views = {name: VIEWS[name][name] for name in ("q2", "q3")}
            db.sql("; ".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in views.items()))

            def drain() -> None:
                pipeline.drain()
                drained.set()

            waiting = threading.Thread(target=drain, daemon=True)
            waiting.start()
            while not drained.wait(0.5) and waiting.is_alive():
                now = memory(os.getpid())
                most = Memory(max(most.own, now.own), max(most.files, now.files))
            waiting.join()
            took = time.perf_counter() - started
            pipeline.check()
            wrong = [*wrong_rows(db, "q2"), *wrong_rows(db, "q3")]
    return {
        "rows": rows,
        "seconds": round(took, 1),
        "rows per second": round(rows / took),
        "most megabytes of processes, without mapped files": round(most.own),
        "most megabytes of mapped files": round(most.files),
        "differences": wrong,
    }


# ------------------------------------------------------------------ all of it


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__)
    parser.add_argument("runs", nargs="*", default=["q1", "q2", "q3", "q4", "freshness", "writer", "build"])
    parser.add_argument("--operations", type=int, default=12_000_000)
    parser.add_argument("--per-epoch", type=int, help="all on Spark, in epochs of this size; by default epochs grow")
    parser.add_argument("--keys", type=int, default=KEYS, help="of the tables together: with many little condenses")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--changes", type=int, default=40, help="single changes whose freshness is measured")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table that views are built over")
    parser.add_argument("--seconds", type=float, default=5, help="of writing in each turn")
    parser.add_argument("--master", default=None, help="of Spark")
    parser.add_argument("--json", type=Path, default=Path("build/bench/pipeline.json"))
    asked = parser.parse_args()
    found: dict[str, Found] = {}
    spark = new_session(asked.master)
    for name in asked.runs:
        load = os.getloadavg()[0]
        if name == "freshness":
            found[name] = freshness(spark, asked.changes)
        elif name == "writer":
            found[name] = writer(asked.seconds)
        elif name == "build":
            found[name] = build(spark, asked.rows, asked.servers)
        else:
            found[name] = throughput(
                name, spark, asked.operations, keys=asked.keys, per_epoch=asked.per_epoch, servers=asked.servers
            )
        found[name]["load average before"] = load
        print(json.dumps({name: found[name]}, indent=2, default=str), flush=True)
    spark.stop()
    machine = f"{platform.machine()}, {platform.system()} {platform.release()}, {os.cpu_count()} cores"
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps({"machine": machine, "runs": found}, indent=2, default=str))
    return 1 if any(result["differences"] for result in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
