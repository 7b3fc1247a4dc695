"""The operators alone, on one core, in one process: ``python -m bench.operators``.

A stream of operations on the papers' table bt1 (and bt2 for the join) is written to an embedded
store first. Then the runner takes it in epochs, from reading the log to the commit; the rate is
that of all epochs but the first two, when caches are cold and the base is small. At the end every
view is compared with its query, and the run fails if a row differs.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import platform
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import lmdb
import numpy as np

from bench.workloads.synthetic import BATCH, BT1, BT2, Stream, Writer
from everview.change.frontier import Frontier
from everview.change.schema import Schema
from tests.oracle.maintained import GROUP, Maintained

KEYS = 100_000
GROUPS = 10_000
CHANGES = 1_000
EPOCHS = 15
"""Of a run over a base that has grown."""
LOAD = 1_000_000
"""Rows of an epoch that fills it."""

VIEWS: dict[str, dict[str, str]] = {
    "q1": {"q1": "SELECT k, c1, c2 FROM bt1 WHERE c2 < 500"},
    "q2": {"q2": "SELECT c1, count(*) AS n, sum(c2) AS s FROM bt1 GROUP BY c1"},
    "q3": {
        "q3": "SELECT c1, count(*) AS n, sum(c3) AS s, avg(c3) AS a, min(c3) AS lo, max(c3) AS hi FROM bt1 GROUP BY c1"
    },
    "q4": {"q4": "SELECT bt1.k, bt1.c2, bt2.k AS l, bt2.c4 FROM bt1 JOIN bt2 ON bt1.c1 = bt2.c1"},
    "family": {f"f{n}": f"SELECT k, c2 FROM bt1 WHERE c2 = {n}" for n in range(1000)},
}
"""What is maintained in each run. q1 to q4 are the views of the VMS paper's evaluation."""


def fill(found: Maintained, streams: list[Stream], operations: int) -> list[Frontier]:
    """Write the log; returns the frontier after each batch."""
    frontiers = []
    writer = Writer(found, streams)
    for _ in range(0, operations, BATCH):
        writer.write(BATCH)
        frontiers.append(found.store.log.latest())
    return frontiers


def run(name: str, operations: int, profile: bool) -> dict[str, object]:
    schemas: Mapping[str, Schema] = {"bt1": BT1, "bt2": BT2} if name == "q4" else {"bt1": BT1}
    with tempfile.TemporaryDirectory() as folder:
        found = Maintained(Path(folder) / "store", schemas, VIEWS[name])
        groups = KEYS // 2 if name == "q4" else GROUPS
        streams = [Stream(table, KEYS // len(schemas), groups, seed) for seed, table in enumerate(schemas)]
        frontiers = fill(found, streams, operations)
        profiler = cProfile.Profile()
        seconds: list[float] = []
        worked: list[float] = []
        for number, frontier in enumerate(frontiers):
            if profile and number == 2:
                profiler.enable()
            start, busy = time.perf_counter(), time.process_time()
            found.epoch(frontier)
            seconds.append(time.perf_counter() - start)
            worked.append(time.process_time() - busy)
        profiler.disable()
        if profile:
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(35)
        warm, busy_warm = seconds[2:] or seconds, worked[2:] or worked
        size = operations / len(frontiers)
        wrong = found.differences()
        rows = sum(found.view(view).num_rows for view in list(VIEWS[name])[:5])
        found.close()
        return {
            "view": name,
            "operations": operations,
            "seconds of each epoch": " ".join(f"{one:.3f}" for one in seconds),
            "operations per second": round(size * len(warm) / sum(warm)),
            "operations per second of processor time": round(size * len(warm) / sum(busy_warm)),
            "rows of the first views": rows,
            "differences": len(wrong),
        }


def grow(views: Sequence[str], sizes: Sequence[int]) -> list[dict[str, object]]:
    """What a change costs while the base grows, view by view, in epochs of a thousand changes; and what
    the same number of puts costs in a plain LMDB file with as many records.

    Groups have ten rows whatever the size, so a change of q4 comes and goes with ten join rows each.
    Keys are drawn at random: the larger the table, the fewer changes of an epoch share a page of the
    B-tree, up to where each has pages of its own. That is the store's price, and the plain puts pay it
    too, so the ratio of the two is what maintenance adds."""
    found: list[dict[str, object]] = []
    for size in sizes:
        plain = plain_put(size)
        for name in views:
            cost, wrong = change_cost(name, size)
            line = {"view": name, "rows": size, "microseconds per change": round(cost, 1)}
            found.append(
                line | {"of a plain put": round(plain, 2), "ratio": round(cost / plain, 1), "differences": wrong}
            )
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def change_cost(name: str, size: int) -> tuple[float, int]:
    """Microseconds of processor time per change, and the number of differing views."""
    tables = {"bt1": BT1, "bt2": BT2} if name == "q4" else {"bt1": BT1}
    rows = size // len(tables)
    with tempfile.TemporaryDirectory() as folder:
        maintained = Maintained(Path(folder) / "store", tables, VIEWS[name])
        streams = [Stream(table, rows, max(size // 20, 1), seed) for seed, table in enumerate(tables)]
        rng = np.random.default_rng(size)
        for low in range(0, rows, LOAD):
            ids = np.arange(low, min(low + LOAD, rows))
            for stream in streams:
                maintained.table(stream.table).put_many(stream.rows(rng, ids))
            maintained.epoch()
        worked = []
        for _ in range(EPOCHS):
            for stream in streams:
                ids = rng.integers(0, rows, CHANGES // len(streams))
                maintained.table(stream.table).put_many(stream.rows(rng, ids))
            busy = time.process_time()
            maintained.epoch()
            worked.append(time.process_time() - busy)
        wrong = maintained.differences() if size <= 1_000_000 else {}
        maintained.close()
    return 1e6 * statistics.median(worked) / CHANGES, len(wrong)


def plain_put(size: int) -> float:
    """Microseconds of processor time per put of a random key, a thousand in a transaction."""
    with tempfile.TemporaryDirectory() as folder:
        environment = lmdb.open(folder, map_size=1 << 34, sync=False, metasync=False)
        with environment.begin(write=True) as transaction:
            first = ((number.to_bytes(8, "big"), bytes(60)) for number in range(size))
            transaction.cursor().putmulti(first, append=True)
        rng = np.random.default_rng(size)
        worked = []
        for _ in range(EPOCHS):
            keys = np.sort(rng.integers(0, size, CHANGES)).tolist()
            busy = time.process_time()
            with environment.begin(write=True) as transaction:
                transaction.cursor().putmulti([(key.to_bytes(8, "big"), bytes(60)) for key in keys])
            worked.append(time.process_time() - busy)
        environment.close()
    return 1e6 * statistics.median(worked) / CHANGES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.operators", description=__doc__)
    parser.add_argument("views", nargs="*", default=["q1", "q2", "q3", "q4", "family"], help="which of q1 … q4, family")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--grow", type=int, nargs="*", metavar="ROWS", help="what a change costs over so many rows")
    asked = parser.parse_args()
    if asked.grow is not None:
        grown = grow(asked.views, asked.grow or [10_000, 100_000, 1_000_000, 10_000_000])
        print(json.dumps(grown, indent=2))
        return 1 if any(result["differences"] for result in grown) else 0
    results = [run(name, asked.operations, asked.profile) for name in asked.views]
    machine = f"{platform.machine()}, {platform.system()} {platform.release()}"
    print(json.dumps({"machine": machine, "group": GROUP, "runs": results}, indent=2))
    return 1 if any(result["differences"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
