"""What has been shown, and whether it was right.

Every view must be right against its recomputation, and every snapshot that was taken must have
shown views that agree; anything else, and be it one row, fails the demonstration.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from everview.check.report import Report, Verdict
from everview.client.database import Database

STORE = "store"
"""The store's name in the directory of the demonstration."""
FIRST = 5
"""Differences of a view that are printed."""


@dataclass(frozen=True)
class Crash:
    """The pipeline's death, and its successor's first steps."""

    epoch: int
    """The epoch that was under way."""
    unfinished: bool
    """Whether it was still under way when the pipeline was dead; else its commit came just before."""
    resumed: float
    """Seconds from the kill to the first commit of the next pipeline."""
    caught_up: float
    """Seconds until everything was shown that had been written when the next pipeline was there."""
    missed: int
    """Operations that were written meanwhile."""


@dataclass(frozen=True)
class DemoOutcome:
    """The whole demonstration."""

    seconds: float
    """From the writer's start until all it wrote was shown."""
    operations: int
    """Operations that the writer wrote while the pipeline ran."""
    epochs: int
    crash: Crash
    snapshots: int
    """Snapshots that were taken while all of it went on."""
    disagreed: int
    """Those in which the views did not agree."""
    report: Report

    @property
    def right(self) -> bool:
        return proven(self.report) and not self.disagreed


def verified(db: Database) -> Report:
    """All views of a store against their recomputation from the base tables."""
    return db.verify(samples=FIRST)


def proven(report: Report) -> bool:
    """Whether every view was recomputed and is right, row by row; what is undecided is not."""
    return bool(report.views) and all(view.verdict is Verdict.RIGHT for view in report.views)


def summary(outcome: DemoOutcome) -> Iterator[str]:
    """The outcome in words."""
    crash = outcome.crash
    rows = sum(view.rows for view in outcome.report.views)
    wrong = sum(view.differences for view in outcome.report.views)
    yield (
        f"{outcome.operations:,} operations were written in {outcome.seconds:.0f} s, "
        f"and maintained in {outcome.epochs:,} epochs"
    )
    what = "in the middle of" if crash.unfinished else "right after the commit of"
    yield (
        f"the pipeline was killed {what} epoch {crash.epoch}; the next one committed its first epoch "
        f"{crash.resumed:.1f} s later, and had caught up after {crash.caught_up:.1f} s and {crash.missed:,} operations"
    )
    agreed = outcome.snapshots - outcome.disagreed
    yield f"{agreed:,} of {outcome.snapshots:,} snapshots taken meanwhile showed views that agree"
    views = len(outcome.report.views)
    yield f"{views} views recomputed from the base tables: {rows:,} rows compared, {wrong:,} differences"
    if not proven(outcome.report):
        yield str(outcome.report)


def further(folder: Path) -> Iterator[str]:
    """What to try next, ready to paste."""
    everview = _command()
    place = shlex.quote(str(folder / STORE))
    yield f"{everview} sql {place} -c 'SELECT * FROM best ORDER BY city, spent DESC'"
    yield f"{everview} sql {place} -c 'EXPLAIN SELECT city, count(*) FROM customers GROUP BY city'"
    yield f"{everview} status {place}"
    yield f"{everview} run {place} --local   # keeps the views up to date, while you write from another terminal"
    yield f"rm -r {shlex.quote(str(folder))}"


def _command() -> str:
    """The command as it can be typed here."""
    installed = Path(sys.executable).with_name("everview")
    if not installed.exists():
        return f"{shlex.quote(sys.executable)} -m everview.cli"
    near = installed.is_relative_to(Path.cwd())
    return shlex.quote(str(installed.relative_to(Path.cwd()) if near else installed))
