"""The thin slice end to end: ``python -m bench.slice``.

A log of a million operations and more is written first; then the pipeline takes it in epochs
of 250,000 operations on two cores. The rate is that of the warm epochs, from commit to commit,
so everything between two commits is in it. The view is compared with a recomputation at the
end, and the run fails if a row differs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from everview.cli.recompute import differences, recomputed
from everview.client.database import Database
from everview.client.database import open as open_database
from everview.store.embedded import EmbeddedStore
from everview.zones.pipeline import Pipeline
from everview.zones.reports import EpochReport
from everview.zones.session import new_session
from everview.zones.views import create_aggregate_view, read_view

KEYS = 100_000
CUSTOMERS = 10_000
BATCH = 10_000
DELETES = 0.15
TASK_STAGES = ("read log", "condense", "aggregate", "cut", "combine", "read state", "step", "write state")


@dataclass(frozen=True)
class Load:
    operations: int
    inserts: int
    updates: int
    deletes: int
    seconds: float


def fill_log(db: Database, operations: int) -> Load:
    """Atomic batches of puts and deletes of random orders."""
    rng = np.random.default_rng(1)
    there = np.zeros(KEYS, bool)
    inserts = updates = deletes = 0
    gone = int(BATCH * DELETES)
    started = time.perf_counter()
    for _ in range(0, operations, BATCH):
        ids = rng.choice(KEYS, BATCH - gone, replace=False)
        updates += int(there[ids].sum())
        inserts += int((~there[ids]).sum())
        there[ids] = True
        dead = rng.choice(np.flatnonzero(there), gone, replace=False)
        there[dead] = False
        deletes += gone
        cents = pa.array(rng.integers(0, 10**7, len(ids)))
        rows = pa.table(
            {
                "id": pa.array(ids.astype(np.int64)),
                "customer": pa.array(rng.integers(0, CUSTOMERS, len(ids)).astype(np.int32)),
                "amount": _hundredths(cents),
                "status": pa.array(["new"] * len(ids)),
            }
        )
        with db.batch() as batch:
            batch.table("orders").put_many(rows)
            batch.table("orders").delete_many(pa.table({"id": pa.array(dead.astype(np.int64))}))
    return Load(inserts + updates + deletes, inserts, updates, deletes, time.perf_counter() - started)


def _hundredths(cents: pa.Array) -> pa.Array:
    unscaled = cents.cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), unscaled.buffers())


def profile(epochs: list[EpochReport], tasks: int) -> dict[str, float]:
    """Milliseconds of a warm epoch by what they went to. Tasks run side by side, so their
    seconds are divided by their number; what is left of the job is Spark's."""
    spent: Counter[str] = Counter()
    for epoch in epochs:
        spent.update(epoch.seconds)
    each = {name: 1000 * spent[name] / tasks / len(epochs) for name in TASK_STAGES}
    job = 1000 * spent["spark job"] / len(epochs)
    rest = {name: 1000 * spent[name] / len(epochs) for name in ("commit", "sweep")}
    return each | {"Spark: planning, scheduling, shuffle, waiting": job - sum(each.values())} | rest


def run(path: Path, operations: int, per_epoch: int, servers: int, master: str) -> dict[str, object]:
    with open_database(path) as db:
        db.create_table(
            "orders",
            {"id": "BIGINT", "customer": "INTEGER", "amount": "DECIMAL(12,2)", "status": "VARCHAR"},
            key=["id"],
        )
        view = create_aggregate_view(
            db.store, "totals", "orders", group_by=["customer"], count="orders", sums={"total": "amount"}
        )
        load = fill_log(db, operations)
        pipeline = Pipeline(path, spark=new_session(master), servers=servers, operations=per_epoch)
        pipeline.catch_up()
        store = db.store
        assert isinstance(store, EmbeddedStore)
        commits = store.views.history("main")[::-1]
        with store.views.snapshot() as snapshot:
            commit, shown = read_view(snapshot, view)
        assert commit.frontier == store.log.latest()
        wrong = differences(recomputed(store.table(view.table), view.sql), shown)
        reports = list(pipeline.reports)
        gaps = [
            (report.operations, later.time - earlier.time)
            for report, (earlier, later) in zip(reports[1:], itertools.pairwise(commits), strict=True)
        ]
        warm = len(gaps) // 2
        return {
            "machine": f"{platform.machine()}, {platform.system()} {platform.release()}, master {master}",
            "load": {**load.__dict__, "operations per second": load.operations / load.seconds},
            "epochs": [
                {"operations": count, "seconds": seconds, "per second": count / seconds} for count, seconds in gaps
            ],
            "warm epochs": len(gaps) - warm,
            "operations per second": sum(c for c, _ in gaps[warm:]) / sum(s for _, s in gaps[warm:]),
            "profile of a warm epoch, ms": profile(reports[1 + warm :], servers),
            "groups": len(shown),
            "differences": wrong,
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.slice", description=__doc__)
    parser.add_argument("--operations", type=int, default=3_000_000)
    parser.add_argument("--per-epoch", type=int, default=250_000)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--json", type=Path, default=Path("build/bench/slice.json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everview-bench-") as folder:
        found = run(Path(folder) / "store", asked.operations, asked.per_epoch, asked.servers, asked.master)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(found, indent=2))
    show(found)
    return 1 if found["differences"] else 0


def show(found: dict[str, object]) -> None:
    """The figures as a table."""
    load, epochs, stages = found["load"], found["epochs"], found["profile of a warm epoch, ms"]
    assert isinstance(load, dict) and isinstance(epochs, list) and isinstance(stages, dict)
    print(found["machine"])
    print(
        f"log: {load['operations']:,} operations ({load['inserts']:,} inserts, {load['updates']:,} updates, "
        f"{load['deletes']:,} deletes), written at {load['operations per second']:,.0f}/s"
    )
    for epoch in epochs:
        print(f"  epoch of {epoch['operations']:,} in {epoch['seconds']:.3f} s: {epoch['per second']:,.0f}/s")
    print(f"warm epochs: {found['operations per second']:,.0f} operations/s end to end")
    for name, milliseconds in stages.items():
        print(f"  {milliseconds:8.1f} ms  {name}")
    wrong = found["differences"]
    assert isinstance(wrong, list)
    print(f"view of {found['groups']} groups against recomputation: {len(wrong)} differences", *wrong[:10], sep="\n  ")


if __name__ == "__main__":
    sys.exit(main())
