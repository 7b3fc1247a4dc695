"""The figures of one epoch, and what all epochs of a group add up to.

An :class:`EpochFigures` says what an epoch took in, what it changed, how long that took
and how old the views were, and a :class:`Totals` is the sum of all of them since the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from everview.maintain.staleness import Pace
from everview.operators.tally import Three

NAMED = 256
"""Views whose updates an epoch's figures list one by one: those with the most. Totals contain all."""
PLACES = 6
"""Of seconds that are kept: the clock is not more precise here."""


@dataclass(frozen=True)
class StageFigures:
    """One stage of an epoch."""

    stage: int
    tasks: int
    seconds: float
    """From the beginning of its first task to the end of its last one."""
    parts: Mapping[str, float]
    """Seconds by what they were spent on, added up over tasks."""


@dataclass(frozen=True)
class EpochFigures:
    """One committed epoch. Times are those of :func:`time.time`."""

    epoch: int
    time: float
    """When it was committed."""
    servers: int
    """View servers; 1 where a process did it without Spark."""
    operations: int
    """Log entries that it took in."""
    rows: int
    """Rows of base tables that a build took in."""
    changes: int
    """Rows of base tables that came or went, after many writes of a key have become one."""
    updates: Three
    """Rows inserted, updated and deleted in all views and indexes."""
    views: Mapping[str, Three]
    """The same by view, for the :data:`NAMED` views with the most."""
    shuffled: int
    """Bytes sent from stage to stage between processes."""
    quarantined: int
    """Rows, groups and partitions without a value that came, or came once more."""
    unreadable: int
    """Log entries that could not be read."""
    seconds: float
    """From its begin to its commit; where it was resumed, from when it was taken up again."""
    waited: float | None
    """From its begin to its first task; None where it was resumed."""
    worked: float
    """From its first task to its last report."""
    commit: float | None
    """What committing and tidying took for the epoch before it, where the same process did it."""
    stages: tuple[StageFigures, ...]
    written: int
    """Operations in the logs at its commit, since the store was made."""
    lag: int
    """Those of them that it does not reflect."""
    lag_seconds: float
    """How old the oldest of them was."""
    queue: int
    """Operations that waited when its work began, its own among them."""
    staleness: float | None
    """How old its oldest operation was when it was committed; None where it had none, or where that
    is not known."""
    predicted: float | None
    """What that was going to be as it looked when the epoch began: how old the operation was then, and
    what equation 2 says of the epoch's operations; None if there was no earlier epoch to predict it from."""

    def to_json(self) -> bytes:
        record = {one.name: getattr(self, one.name) for one in fields(self)}
        record["stages"] = [
            [one.stage, one.tasks, round(one.seconds, PLACES), _rounded(one.parts)] for one in self.stages
        ]
        for name, value in record.items():
            if isinstance(value, float) and name != "time":
                record[name] = round(value, PLACES)
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()

    @staticmethod
    def from_json(recorded: bytes) -> EpochFigures:
        record: dict[str, Any] = json.loads(recorded)
        record["updates"] = tuple(record["updates"])
        record["views"] = {name: tuple(three) for name, three in record["views"].items()}
        record["stages"] = tuple(StageFigures(*one) for one in record["stages"])
        return EpochFigures(**record)


@dataclass(frozen=True)
class Totals:
    """Everything since the group's first epoch."""

    epochs: int = 0
    since: float = 0.0
    """When the first of them was committed."""
    operations: int = 0
    rows: int = 0
    changes: int = 0
    updates: Three = (0, 0, 0)
    shuffled: int = 0
    quarantined: int = 0
    unreadable: int = 0
    seconds: float = 0.0
    pace: Pace = field(default_factory=Pace)

    def after(self, one: EpochFigures, *, pace: bool = True) -> Totals:
        """With one more epoch. ``pace``: whether it says how fast epochs are."""
        return replace(
            self,
            epochs=self.epochs + 1,
            since=self.since or one.time,
            operations=self.operations + one.operations,
            rows=self.rows + one.rows,
            changes=self.changes + one.changes,
            updates=plus(self.updates, one.updates),
            shuffled=self.shuffled + one.shuffled,
            quarantined=self.quarantined + one.quarantined,
            unreadable=self.unreadable + one.unreadable,
            seconds=self.seconds + one.seconds,
            pace=self.pace.after(one.operations, one.servers, one.seconds) if pace and one.operations else self.pace,
        )

    def to_json(self) -> bytes:
        record = {one.name: getattr(self, one.name) for one in fields(self)}
        record["pace"] = [getattr(self.pace, one.name) for one in fields(Pace)]
        return json.dumps(record, separators=(",", ":")).encode()

    @staticmethod
    def from_json(recorded: bytes) -> Totals:
        record: dict[str, Any] = json.loads(recorded)
        return Totals(**{**record, "updates": tuple(record["updates"]), "pace": Pace(*record["pace"])})


def plus(one: Three, other: Three) -> Three:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _rounded(parts: Mapping[str, float]) -> dict[str, float]:
    return {name: round(seconds, PLACES) for name, seconds in parts.items()}
