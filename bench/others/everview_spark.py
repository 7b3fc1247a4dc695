"""Everview's pipeline on Spark: two view servers on two cores, epochs as large as the pipeline chooses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.epochs import profile
from bench.others.child import Take, Taken
from bench.others.everview_process import fill, leave, opened
from bench.report.sessions import session
from everview.catalog import MAIN
from everview.maintain.plans import Plans
from everview.zones.pipeline import Pipeline
from everview.zones.rehearsal import rehearse

SERVERS = 2


@contextmanager
def system() -> Iterator[Take]:
    spark = session()
    rehearse(spark)  # as a pipeline does that starts Spark itself

    def take(view: str, stream: Path, out: Path) -> Taken:
        with opened(view, out) as db, Pipeline(out / "store", spark=spark, servers=SERVERS) as pipeline:
            pipeline.drain()
            plans = Plans(db.store, db.catalog)
            plans.pause(MAIN)
            base = fill(db, view, stream)
            started = time.perf_counter()
            plans.resume(MAIN)
            pipeline.drain()
            seconds = time.perf_counter() - started
            leave(db, view, out)
            return Taken(seconds, base, profile=profile(list(pipeline.reports)))

    yield take
