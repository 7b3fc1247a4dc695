"""What tasks report to the driver: a few numbers, and what they could not evaluate.

Each task returns one small report, and an epoch is committed only if the
reports together show that every log entry between its frontiers, and every row that a build takes in, was
read exactly once.

Of data a report holds only the rows that have no value: equal ones of several tasks are one record of
the quarantine, so the driver writes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from everview.change.frontier import Frontier, Position, Slice
from everview.errors import EpochError
from everview.maintain.tasks import EpochTask
from everview.operators.quarantine_records import RecordedChanges
from everview.operators.tally import Span, Tally, Updates, joined_spans
from everview.store.contract import Begun, Damage


@dataclass(frozen=True)
class TaskReport:
    """What one task did."""

    slices: tuple[Slice, ...] = ()
    damaged: tuple[Damage, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    quarantined: RecordedChanges = field(default_factory=dict)
    """Quarantined rows: :meth:`everview.operators.quarantine_records.QuarantineChanges.to_json`."""
    updates: list[list[Any]] = field(default_factory=list)
    """Of views: :meth:`everview.operators.tally.Updates.to_json`."""
    spans: tuple[tuple[int, Span], ...] = ()
    """The stage that the task was of, and when it began and ended."""
    pieces: tuple[int, ...] = ()
    """Of the rows that a build takes in, by number."""

    def to_json(self) -> str:
        return json.dumps(
            {
                "slices": [[piece.node, piece.after, piece.upto] for piece in self.slices],
                "damaged": [[str(d.position), d.table, d.reason] for d in self.damaged],
                "counts": self.counts,
                "seconds": self.seconds,
                "quarantined": self.quarantined,
                "updates": self.updates,
                "spans": [[stage, span.tasks, span.began, span.ended] for stage, span in self.spans],
                "pieces": self.pieces,
            }
        )

    @staticmethod
    def from_json(text: str | bytes) -> TaskReport:
        plain = json.loads(text)
        return TaskReport(
            tuple(Slice(*numbers) for numbers in plain["slices"]),
            tuple(Damage(Position.parse(position), table, reason) for position, table, reason in plain["damaged"]),
            plain["counts"],
            plain["seconds"],
            plain["quarantined"],
            plain["updates"],
            tuple((stage, Span(*times)) for stage, *times in plain["spans"]),
            tuple(plain["pieces"]),
        )


def total(reports: Iterable[TaskReport]) -> TaskReport:
    """The reports of all tasks as one, but for what each quarantined and changed in views."""
    slices: list[Slice] = []
    damaged: list[Damage] = []
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    spans: list[tuple[int, Span]] = []
    pieces: list[int] = []
    for report in reports:
        slices += report.slices
        damaged += report.damaged
        counts.update(report.counts)
        seconds.update(report.seconds)
        spans += report.spans
        pieces += report.pieces
    joined = tuple(joined_spans(spans).items())
    return TaskReport(tuple(slices), tuple(damaged), dict(counts), dict(seconds), spans=joined, pieces=tuple(pieces))


def tally_of(reports: Iterable[TaskReport], whole: TaskReport, servers: int, driver: Mapping[str, float]) -> Tally:
    """What all tasks did, for the epoch's figures. ``whole`` is their total, ``driver`` the seconds of the driver."""
    updates = Updates()
    for report in reports:
        updates.merge(report.updates)
    counts = whole.counts
    return Tally(
        rows=counts.get("rows", 0),
        changes=counts.get("changes", 0),
        sent=counts.get("bytes sent", 0),
        updates=updates,
        seconds=whole.seconds | dict(driver),
        spans=dict(whole.spans),
        servers=servers,
        on_spark=True,
    )


def require_whole(begun: Begun, task: EpochTask, report: TaskReport) -> None:
    """Refuse an epoch of which something was not read, or was read twice."""
    if task.reads_log:
        _require_slices(begun, report.slices)
    if task.chunk is not None and task.chunk.table is not None:
        wanted = list(range(task.pieces))
        if sorted(report.pieces) != wanted:
            why = f"of the pieces {wanted} of table {task.chunk.table} it took in {sorted(report.pieces)}"
            raise _not_whole(begun, why)


def _require_slices(begun: Begun, slices: Iterable[Slice]) -> None:
    reached = dict(begun.start)
    for piece in sorted(slices, key=lambda piece: (piece.node, piece.after)):
        at = reached.get(piece.node, 0)
        if piece.after != at:
            raise _not_whole(begun, f"node {piece.node} was read up to {at}, and then from {piece.after}")
        reached[piece.node] = piece.upto
    if Frontier(reached) != begun.frontier:
        raise _not_whole(begun, f"the logs were read up to {Frontier(reached)}")


def _not_whole(begun: Begun, why: str) -> EpochError:
    return EpochError(
        f"epoch {begun.epoch} of group {begun.group} cannot be committed",
        detail=f"it goes from {begun.start} to {begun.frontier}, but {why}",
        hint="is another pipeline maintaining the same group? one of them must stop",
    )
