"""What an epoch did, in numbers.

Every place where an epoch is worked on counts what it takes in, what it changes in views
and where its time goes, and the numbers of all places add up to those of the epoch.

An update of a view is a record that is written: a row that comes, a row that is another under the same
key, or a row that goes. A row that changes in nothing that the view keeps is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from everview.plan.maintenance import Step

Three: TypeAlias = tuple[int, int, int]
"""Rows inserted, updated and deleted."""

_Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int32]
_Counts = npt.NDArray[np.int64]


class Updates:
    """How many rows of views came, changed and went: of each step a row of three numbers for every member, by its
    number, since a family may have thousands."""

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}

    def __bool__(self) -> bool:
        """Whether any row came, changed or went."""
        return any(counts.any() for counts in self._counts.values())

    def add(
        self, step: Step, inserted: _Mask, updated: _Mask, deleted: _Mask, members: tuple[_Numbers, _Numbers] | None
    ) -> None:
        """Rows of one step: masks over those that come (``inserted``, ``updated``) and those that go,
        and the members that either belong to, where the step has any."""
        if members is None:
            counts = np.array([[inserted.sum(), updated.sum(), deleted.sum()]], np.int64)
        else:
            came, went = members
            parts = [np.bincount(of[mask]) for of, mask in ((came, inserted), (came, updated), (went, deleted))]
            counts = np.zeros((max(map(len, parts)), 3), np.int64)
            for column, part in enumerate(parts):
                counts[: len(part), column] = part
        self._add(step.fingerprint, counts)

    def _add(self, step: str, counts: _Counts) -> None:
        known = self._counts.get(step)
        if known is None:
            self._counts[step] = counts
            return
        more, fewer = (known, counts) if len(known) >= len(counts) else (counts, known)
        more[: len(fewer)] += fewer
        self._counts[step] = more

    def to_json(self) -> list[list[Any]]:
        """Plain values, for :mod:`json`: of each step the members that were changed, with their numbers."""
        return [[step, *_changed(counts)] for step, counts in self._counts.items() if counts.any()]

    def merge(self, others: Iterable[list[Any]]) -> None:
        """What was counted in another place."""
        for step, members, threes in others:
            counts = np.zeros((members[-1] + 1, 3), np.int64)
            counts[members] = threes
            self._add(step, counts)

    def by_view(self, views: Mapping[tuple[str, int], Sequence[str]]) -> dict[str, Three]:
        """The views that were changed. ``views`` are those of each step and member, which may be several."""
        found: dict[str, Three] = {}
        for step, counts in self._counts.items():
            for member, (inserted, updated, deleted) in zip(*_changed(counts), strict=True):
                for view in views.get((step, member), ()):
                    found[view] = inserted, updated, deleted
        return found


def _changed(counts: _Counts) -> tuple[list[int], list[list[int]]]:
    """The members that were changed, in order, and their numbers."""
    members = np.flatnonzero(counts.any(axis=1))
    return members.tolist(), counts[members].tolist()


@dataclass(frozen=True)
class Span:
    """The tasks of a stage: how many, when the first began and the last ended, as times of
    :func:`time.time`."""

    tasks: int
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(0.0, self.ended - self.began)

    def __or__(self, other: Span) -> Span:
        return Span(self.tasks + other.tasks, min(self.began, other.began), max(self.ended, other.ended))


@dataclass(frozen=True)
class Tally:
    """What one place, or all of them, did in an epoch."""

    rows: int = 0
    """Rows of base tables that a build took in."""
    changes: int = 0
    """Rows of base tables that came or went, after many writes of a key have become one."""
    sent: int = 0
    """Bytes that went from one stage to another between processes."""
    updates: Updates = field(default_factory=Updates)
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By ``stage 1: view``, added up over tasks."""
    spans: Mapping[int, Span] = field(default_factory=dict)
    """Of each stage."""
    servers: int = 1
    on_spark: bool = False

    @property
    def began(self) -> float | None:
        """When the first task began."""
        return min((span.began for span in self.spans.values()), default=None)


@dataclass(frozen=True)
class Taken:
    """The moment at which work on an epoch begins."""

    time: float
    """Of :func:`time.time`."""
    queue: int
    """Operations in the logs that the views did not reflect then, the epoch's own among them."""


def joined_spans(spans: Iterable[tuple[int, Span]]) -> dict[int, Span]:
    """The spans of many tasks, by stage."""
    found: dict[int, Span] = {}
    for stage, span in spans:
        found[stage] = found[stage] | span if stage in found else span
    return dict(sorted(found.items()))


def added(seconds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Seconds of many places by name."""
    found: Counter[str] = Counter()
    for one in seconds:
        found.update(one)
    return dict(found)
