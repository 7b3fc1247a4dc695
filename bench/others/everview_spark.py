"""Everview's pipeline on Spark: two view servers on two cores, epochs as large as the pipeline chooses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.epochs import profile
from bench.others.child import Take, Taken
from bench.others.everview_process import filled, leave
from bench.report.sessions import session
from everview.zones.pipeline import Pipeline

SERVERS = 2


@contextmanager
def system() -> Iterator[Take]:
    spark = session()

    def take(view: str, stream: Path, out: Path) -> Taken:
        with filled(view, stream, out) as (db, base):
            pipeline = Pipeline(out / "store", spark=spark, servers=SERVERS)
            started = time.perf_counter()
            pipeline.catch_up()
            seconds = time.perf_counter() - started
            leave(db, view, out)
            return Taken(seconds, base, profile=profile(list(pipeline.reports)))

    yield take
