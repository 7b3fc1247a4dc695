"""Queries of other projects' test suites as views under random histories of writes.

    python -m tests.strangers --repo DIR[,DIR…] [--suite NAME] [--limit N] [--per-file N] [--seed S]
                              [--report FILE] [--again] [--spark]

``--repo`` takes clones of Materialize (its own tests, and its copy of CockroachDB's), Feldera, PostgreSQL, SQLite,
SQLite's logic tests, RisingWave, DataFusion or DuckDB: git directories or work trees. Nothing of them is kept.

Of every file the CREATE TABLE and INSERT statements give tables with rows, and every query over them that DuckDB takes
as it is written becomes ``CREATE MATERIALIZED VIEW … AS`` these very words. Then rows come, change and go, and after
every flush each view is compared with DuckDB's answer to the same words over the same rows
(:mod:`tests.strangers.trial` lists the outcomes). What DuckDB does not take, and what is volatile, is not for us.

Every outcome is a line of JSON in the report, those that are wrong or crashed with a small reproduction. A campaign
that is interrupted goes on where it was, if it is started with the same report; with ``--again`` the files in which
something was refused, wrong or crashed are tried once more. The same seed draws the same files, queries and histories.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from tests.strangers.campaign import Campaign, forget_failures, lines_of
from tests.strangers.on_spark import run
from tests.strangers.report import distinct, tables

ON_SPARK = 500


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.strangers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repo", required=True, help="directories, separated by commas")
    parser.add_argument("--suite", action="append", default=[], help="only this suite; may be given several times")
    parser.add_argument("--limit", type=int, default=1500, help="queries of a suite")
    parser.add_argument("--per-file", type=int, default=40, help="queries of a file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, default=Path("strangers.jsonl"))
    parser.add_argument("--spark", action="store_true", help=f"then try {ON_SPARK} of the right ones on Spark")
    parser.add_argument("--again", action="store_true", help="first forget the files in which something was not right")
    parser.add_argument("--whole", action="store_true", help="histories of what is wrong are not made smaller")
    asked = parser.parse_args()
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s {line}", flush=True)

    places = tuple(Path(place) for place in asked.repo.split(","))
    if asked.again:
        say(f"{forget_failures(asked.report)} files are tried again")
    campaign = Campaign(
        places,
        frozenset(asked.suite),
        asked.limit,
        asked.per_file,
        asked.seed,
        asked.report,
        shrinks=not asked.whole,
        say=say,
    )
    campaign.run()
    lines = list(lines_of(asked.report))
    if asked.spark:
        on_spark = run(places, asked.report, ON_SPARK, asked.per_file, asked.seed, say)
        with asked.report.open("a") as out:
            out.writelines(json.dumps(line) + "\n" for line in on_spark)
        lines += on_spark
    print(tables(lines))
    judged = [*distinct(lines), *(line for line in lines if line["kind"] == "spark")]
    return 1 if any(line["outcome"] in ("wrong", "crashed", "timed out", "harness") for line in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
