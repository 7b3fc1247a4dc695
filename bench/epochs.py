"""How fast views are brought to the end of the logs, and whether they are right then.

As in the papers the logs are filled first, so that what is measured is maintenance alone, from
commit to commit on Spark, or from the call to the last commit in this process.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import everview
from everview.catalog import MAIN
from everview.maintain import Plans
from everview.maintain.epoch_sizes import CEILING
from everview.store.embedded import EmbeddedStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.maintain.epochs import EpochReport

SHOWN = 12
"""Parts of a profile."""
POLL = 0.002


@dataclass(frozen=True)
class Pace:
    """Epochs that were timed."""

    operations: int
    seconds: float
    each: tuple[float, ...] = ()
    """Seconds of every epoch after the first."""
    updates: int = 0
    """Rows of views that were inserted, updated and deleted."""
    work: float = 0.0
    """Seconds of processor time of this process."""
    sizes: tuple[int, ...] = ()
    """Operations of every epoch."""
    shared: float = 0.0
    """The share of the timed epochs that Spark has done."""
    profile: dict[str, float] = field(default_factory=dict)
    """Where an epoch's time goes: seconds by part, added up over tasks."""

    @property
    def rate(self) -> float:
        return self.operations / self.seconds


def on_spark(
    path: Path, db: everview.Database, spark: SparkSession, servers: int, per_epoch: int | None = None, cold: int = 0
) -> Pace:
    """Take the views to the end of the logs with Spark. By default epochs grow, and are done where they take least
    time; with ``per_epoch`` all of them are done on Spark, and none is larger. The first epoch is never timed, nor
    are ``cold`` more, nor those in which epochs still grow, nor the last, which takes what is left."""
    from everview.zones.pipeline import Pipeline
    from everview.zones.rehearsal import rehearse

    assert isinstance(db.store, EmbeddedStore)
    rehearse(spark)  # as a pipeline does that starts Spark itself
    in_driver = None if per_epoch is None else 0
    pipeline = Pipeline(path, spark=spark, servers=servers, operations=per_epoch or CEILING, in_driver=in_driver)
    pipeline.catch_up()
    reports = list(pipeline.reports)
    commits = db.store.views.history(MAIN)[: len(reports)][::-1]
    gaps = [later.time - earlier.time for earlier, later in itertools.pairwise(commits)]
    grown = max(one.operations for one in reports) / 2
    first = next(number for number, one in enumerate(reports) if one.operations >= grown)
    timed = [
        (report, gap)
        for number, (report, gap) in enumerate(zip(reports[1:], gaps, strict=True), 1)
        if number > max(first + 1, cold) and number < len(reports) - 1
    ]
    if not timed:
        raise ValueError(f"{len(reports)} epochs, of which none is warm: write more, or take fewer in an epoch")
    warm = [gap for _, gap in timed]
    found = [report for report, _ in timed]
    return Pace(
        sum(one.operations for one in found),
        sum(warm),
        tuple(gaps),
        profile=profile(found),
        sizes=tuple(one.operations for one in reports),
        shared=sum(one.on_spark for one in found) / len(found),
    )


class Turns:
    """A pipeline that waits while the logs are filled, and then does what is in them, so that a stream is
    started once for many measurements::

        with Turns(path, db, spark, per_epoch=100_000) as turns:
            turns.take(lambda: writer.write(1_000_000), servers=2).rate
    """

    def __init__(self, path: Path, db: everview.Database, spark: SparkSession, per_epoch: int) -> None:
        from everview.zones.pipeline import Pipeline

        self._db = db
        self._pipeline = Pipeline(path, spark=spark, operations=per_epoch, in_driver=0)
        self._plans = Plans(db.store, db.catalog)

    def __enter__(self) -> Turns:
        self._pipeline.start()
        self._pipeline.drain()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._pipeline.stop(finish=kind is None)

    def take(self, write: Callable[[], object], servers: int) -> Pace:
        """Write, and then take the views there with so many view servers. The first epoch waits for Spark to
        ask for news and is not timed."""
        assert isinstance(self._db.store, EmbeddedStore)
        before = self._db.store.views.committed(MAIN).epoch
        self._plans.pause(MAIN)
        write()
        self._pipeline.servers = servers
        self._plans.resume(MAIN)
        self._pipeline.drain()
        last = self._db.store.views.committed(MAIN).epoch
        while self._pipeline.reports[-1].epoch < last:
            time.sleep(POLL)  # an epoch is reported after its commit
        commits = [one for one in self._db.store.views.history(MAIN) if one.epoch > before][::-1]
        if len(commits) < 2:
            raise ValueError("one epoch took all that was written: write more, or take fewer in an epoch")
        gaps = [later.time - earlier.time for earlier, later in itertools.pairwise(commits)]
        operations = commits[0].frontier.operations_to(commits[-1].frontier)
        timed = [one for one in self._pipeline.reports if one.epoch > commits[0].epoch]
        return Pace(operations, sum(gaps), tuple(gaps), profile=profile(timed))


def profile(epochs: Sequence[EpochReport]) -> dict[str, float]:
    """Where the time of an epoch goes, the most first. Tasks run side by side, so what they say is
    added up over them; ``spark job`` is the driver's clock, and has them in it."""
    spent: Counter[str] = Counter()
    for epoch in epochs:
        spent.update(epoch.seconds)
    return {name: seconds / len(epochs) for name, seconds in spent.most_common(SHOWN)}


def in_process(db: everview.Database) -> Pace:
    """Take the views to the end of the logs in this process, on one core."""
    before = _sums(db)
    gc.collect()
    started, busy = time.perf_counter(), time.process_time()
    db.flush()
    seconds, work = time.perf_counter() - started, time.process_time() - busy
    operations, updates = (now - then for now, then in zip(_sums(db), before, strict=True))
    return Pace(operations, seconds, updates=updates, work=work)


def _sums(db: everview.Database) -> tuple[int, int]:
    """Operations that groups have taken in, and updates of their views, since they began. Every group takes in
    all operations: those of the one that has taken in the most."""
    asked = "SELECT coalesce(max(operations), 0), coalesce(sum(inserted + updated + deleted), 0) FROM everview.groups"
    ((operations, updates),) = db.sql(asked).rows()
    return int(operations), int(updates)


def seconds_by_part(db: everview.Database) -> dict[str, float]:
    """Seconds by part of all epochs so far, the most first."""
    asked = "SELECT part, sum(part_seconds) FROM everview.stages GROUP BY part ORDER BY 2 DESC"
    return {str(part): float(seconds) for part, seconds in db.sql(asked).rows()}


def state_megabytes(store: object) -> float:
    """What views and what is remembered for them take in the store: pages of its trees that are in use."""
    assert isinstance(store, EmbeddedStore)
    found = [shard.lmdb.stat() for shard in store._handle.core.shards]
    pages = sum(one["branch_pages"] + one["leaf_pages"] + one["overflow_pages"] for one in found)
    return pages * found[0]["psize"] / 2**20


def wrong(db: everview.Database, *views: str) -> str:
    """How views differ from a recomputation over the base rows, all of them if none is named. They must
    reflect everything that was written."""
    with db.store.snapshot() as snapshot:
        groups = {one.group for one in db.catalog.definitions().maintained()}
        behind = [group for group in sorted(groups) if snapshot.committed(group).frontier != snapshot.frontier]
    if behind:
        return f"not everything that was written is in the views of {', '.join(behind)}"
    report = db.verify(*views)
    return "" if report.right and not report.undecided else str(report)
