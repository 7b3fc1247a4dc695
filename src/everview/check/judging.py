"""A view judged: what it shows against what it should show.

Equal rows are right; differences are wrong, unless all that differs may be rows at a tie
that SQL leaves open, or the view cannot be recomputed: then it is undecided, and the report has the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from everview.catalog import Maintained
from everview.change.frontier import Frontier
from everview.check.compare import Compared
from everview.check.recompute import Recomputed, RecomputedRows, Unknown, Watched, Workspace
from everview.check.report import Verdict, ViewReport
from everview.errors import EverviewError


@dataclass(frozen=True)
class Case:
    """What is judged, and where it stands."""

    one: Maintained
    epoch: int
    frontier: Frontier
    quarantined: int = 0
    """What it is known to lack."""


def judged(workspace: Workspace, case: Case, rows: RecomputedRows, samples: int) -> ViewReport:
    """The report on a view, given the rows that it shows."""
    report = _begun(case)
    try:
        recomputed = workspace.recomputed(case.one)
    except Unknown as reason:
        return _with(report, Verdict.UNDECIDED, reason=str(reason))
    shown = Watched(rows)
    try:
        found = workspace.compared(recomputed, shown, samples)
        while found.differs and (again := workspace.otherwise(recomputed)) is not None:
            recomputed = again
            found = workspace.compared(recomputed, shown, samples)
        if found.missing and case.quarantined and not recomputed.left_out:
            # DuckDB may answer without looking at what has no value
            recomputed = workspace.leaving_out(recomputed)
            found = workspace.compared(recomputed, shown, samples)
    except Unknown as reason:
        return _with(report, Verdict.UNDECIDED, reason=str(reason))
    except (duckdb.Error, EverviewError, pa.ArrowException):
        if shown.failure is None:
            raise
        return unreadable(case, shown.failure)
    return _judgement(report, recomputed, found)


def unreadable(case: Case, error: Exception) -> ViewReport:
    """The report on a view whose records do not decode."""
    words = error.message if isinstance(error, EverviewError) else str(error)
    return _with(_begun(case), Verdict.WRONG, reason=f"its rows cannot be read: {words}")


def _begun(case: Case) -> ViewReport:
    one = case.one
    return ViewReport(
        one.name, one.kind, one.group, case.epoch, case.frontier, Verdict.UNDECIDED, quarantined=case.quarantined
    )


def _judgement(report: ViewReport, recomputed: Recomputed, found: Compared) -> ViewReport:
    if not found.differs:
        return _with(report, Verdict.RIGHT, found)
    if recomputed.doubts:
        open_ones = ", ".join(dict.fromkeys(recomputed.doubts))
        reason = f"its query leaves an order open ({open_ones}), and rows at a tie may be others"
        return _with(report, Verdict.UNDECIDED, found, reason)
    reason = f"rows whose expression failed were left out: {recomputed.left_out}" if recomputed.left_out else ""
    return _with(report, Verdict.WRONG, found, reason)


def _with(report: ViewReport, verdict: Verdict, found: Compared | None = None, reason: str = "") -> ViewReport:
    counts = found or Compared(0)
    return replace(
        report,
        verdict=verdict,
        rows=counts.rows,
        missing=counts.missing,
        extra=counts.extra,
        differing=counts.differing,
        first=counts.first,
        reason=reason,
    )
