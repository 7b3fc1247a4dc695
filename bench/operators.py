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
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import growing
from bench.workloads.queries import QUERIES
from bench.workloads.synthetic import BATCH, BT1, BT2, Stream, Writer
from everview.change.frontier import Frontier
from everview.change.schema import Schema
from tests.oracle.maintained import GROUP, Maintained

KEYS = 100_000
GROUPS = 10_000

VIEWS: dict[str, dict[str, str]] = {
    **{name: {name: query} for name, query in QUERIES.items()},
    "family": {f"f{n}": f"SELECT k, c2 FROM bt1 WHERE c2 = {n}" for n in range(1000)},
}
"""What is maintained in each run."""


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
    """What a change costs while the base grows, view by view, beside a put into a plain LMDB file with as many
    records: :mod:`bench.growing`."""
    found: list[dict[str, object]] = []
    for size in sizes:
        plain = growing.plain_put(size)
        for name in views:
            cost = growing.maintained(name, VIEWS[name][name], size)
            found.append(
                {
                    "view": name,
                    "rows": size,
                    "microseconds per change": round(cost.microseconds, 1),
                    "pages per change": round(cost.pages, 1),
                    "of a plain put": round(plain.microseconds, 2),
                    "pages of a plain put": round(plain.pages, 1),
                    "differences": cost.wrong,
                }
            )
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


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
