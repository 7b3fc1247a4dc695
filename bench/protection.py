"""What it costs that Spark is closed to others: ``python -m bench.protection``.

The same epochs are done in sessions that authenticate and encrypt and in sessions that do not, in
turns (closed, open, open, closed, …) of one process, and ratios are those of the medians.

| figure | what is measured |
|---|---|
| operations per second | q2 of ``bench.operators``: warm epochs of 250,000 operations, commit to commit |
| processor seconds | of Java and the Python workers, for all epochs of q2 |
| milliseconds, median | a single change with an idle pipeline: from the put to the commit of the view |

The first turn of each kind is left out: it warms the Java process. Views are compared with a recomputation.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys

from bench.pipeline import Found, freshness, throughput
from bench.processes import processor_seconds
from everview.zones.session import new_session

OPEN = {
    "spark.authenticate": "false",
    "spark.network.crypto.enabled": "false",
    "spark.io.encryption.enabled": "false",
}
KINDS: dict[str, dict[str, str]] = {"closed": {}, "open": OPEN}
RATE = "operations per second"
WORK = "processor seconds"
DELAY = "milliseconds, median"


def turn(kind: str, operations: int, changes: int) -> Found:
    """One session of a kind."""
    spark = new_session(**KINDS[kind])
    try:
        before = _children()
        paced = throughput("q2", spark, operations, per_epoch=250_000)
        work = _children() - before
        delayed = freshness(spark, changes, in_driver=0)
    finally:
        spark.stop()
    wrong = [paced["differences"], delayed["differences"]]
    return {RATE: paced[RATE], WORK: work, DELAY: delayed[DELAY], "differences": [one for one in wrong if one]}


def _children() -> float:
    """Processor seconds of all that this process has started and that still runs."""
    own = os.times()
    return processor_seconds(os.getpid()) - own.user - own.system


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.protection", description=__doc__)
    parser.add_argument("--turns", type=int, default=4, help="of each kind, without the first one")
    parser.add_argument("--operations", type=int, default=2_000_000)
    parser.add_argument("--changes", type=int, default=20)
    asked = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {kind: {RATE: [], WORK: [], DELAY: []} for kind in KINDS}
    wrong: list[object] = []
    for number in range(asked.turns + 1):
        for kind in KINDS if number % 2 else reversed(KINDS):
            measured = turn(kind, asked.operations, asked.changes)
            wrong += [measured["differences"]] if measured["differences"] else []
            print(json.dumps({kind: measured, "load": os.getloadavg()[0]}), flush=True)
            if number:
                for name, values in found[kind].items():
                    values.append(float(str(measured[name])))
    closed, opened = ({name: statistics.median(found[kind][name]) for name in found[kind]} for kind in KINDS)
    ratios = {name: round(closed[name] / opened[name], 3) for name in closed}
    print(json.dumps({"closed : open": ratios, "turns": found, "differences": wrong}, indent=2))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
