"""Kill until something breaks: ``python -m tests.faults --kills 1000 --seed 7 [--minutes 30] [--cluster]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.faults.campaign import Campaign, Failed
from tests.zones.clusters import standalone


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="stop after so long, however many kills are left")
    parser.add_argument("--cluster", action="store_true", help="on a cluster of separate executors, which die too")
    asked = parser.parse_args()
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s {line}", flush=True)

    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        cluster = held.enter_context(standalone(folder / "spark")) if asked.cluster else None
        campaign = Campaign(folder / "town", asked.seed, cluster=cluster, say=say)
        try:
            campaign.run(asked.kills, asked.minutes)
        except Failed as failure:
            print(failure)
            return 1
    for point, count in sorted(campaign.died.items()):
        print(f"{count:5} {point}")
    print(f"{campaign.died.total()} kills, {campaign.checks} checks, {len(campaign.epochs)} epochs seen by the reader")
    if campaign.missed:
        print("nobody died at:", ", ".join(campaign.missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
