"""What verifying found, view by view.

A report records of every view whether it is what its query returns over the base rows at one
frontier, counts the rows that are not, and names the first of them.

    >>> from everview.check.report import Difference, Report, Verdict, ViewReport
    >>> wrong = Difference("differing", {"customer": 7}, shown={"total": 3}, expected={"total": 5})
    >>> at = Frontier({1: 40})
    >>> view = ViewReport("totals", "view", "main", 12, at, Verdict.WRONG, rows=10, differing=1, first=(wrong,))
    >>> Report((view,)).right
    False
    >>> print(Report((view,)))
    view totals: wrong at epoch 12 (f:1=40): 10 rows, 0 missing, 0 extra, 1 differing
      differing customer=7: shows total=3, should be total=5
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everview.boundary import public
from everview.change.frontier import Frontier
from everview.errors import UnknownObjectError


class Verdict(enum.StrEnum):
    """What is known of a view."""

    RIGHT = "right"
    WRONG = "wrong"
    UNDECIDED = "undecided"
    """It could not be recomputed, or differs only in what SQL leaves open; the reason is given."""


@dataclass(frozen=True)
class Difference:
    """A row that is not what it should be."""

    kind: str
    """``missing``, ``extra``, or ``differing``: the key is there with other values."""
    key: Mapping[str, Any]
    """The columns that the row is found by; all of them where the view has no key to see."""
    shown: Mapping[str, Any] | None = None
    """What the view shows: of a differing row the columns that differ. None where it is missing."""
    expected: Mapping[str, Any] | None = None
    """What the query returns. None where the row is extra."""

    def __str__(self) -> str:
        text = f"{self.kind} {_words(self.key)}".rstrip()
        if self.kind == "differing":
            return f"{text}: shows {_words(self.shown)}, should be {_words(self.expected)}"
        other = {name: value for name, value in (self.shown or self.expected or {}).items() if name not in self.key}
        return f"{text}: {_words(other)}" if other else text


@dataclass(frozen=True)
class ViewReport:
    """What was found of one view, index, or state."""

    name: str
    kind: str
    """``view``, ``index``, or ``state``: what maintenance remembers."""
    group: str
    epoch: int
    frontier: Frontier
    verdict: Verdict
    rows: int = 0
    """How many it has."""
    missing: int = 0
    extra: int = 0
    differing: int = 0
    first: tuple[Difference, ...] = ()
    """The first of each kind of difference."""
    quarantined: int = 0
    """Rows, groups, partitions and log entries that it lacks because they have no value, or cannot be read."""
    reason: str = ""
    """Why it is undecided, or cannot be read."""
    views: tuple[str, ...] = ()
    """Of a state: the views that need it."""

    @property
    def differences(self) -> int:
        return self.missing + self.extra + self.differing

    def __str__(self) -> str:
        counts = f"{self.rows} rows"
        if self.verdict is not Verdict.RIGHT:
            counts += f", {self.missing} missing, {self.extra} extra, {self.differing} differing"
        counts += f", {self.quarantined} quarantined" if self.quarantined else ""
        of = f" (of {', '.join(self.views)})" if self.views else ""
        lines = [f"{self.kind} {self.name}{of}: {self.verdict} at epoch {self.epoch} ({self.frontier}): {counts}"]
        lines += [f"  {self.reason}"] if self.reason else []
        return "\n".join([*lines, *(f"  {one}" for one in self.first)])


@public
@dataclass(frozen=True)
class Report:
    """What was found of all that was asked for."""

    views: tuple[ViewReport, ...]

    @property
    def right(self) -> bool:
        """Whether nothing is wrong; what is undecided is not."""
        return all(view.verdict is not Verdict.WRONG for view in self.views)

    @property
    def wrong(self) -> tuple[ViewReport, ...]:
        return tuple(view for view in self.views if view.verdict is Verdict.WRONG)

    @property
    def undecided(self) -> tuple[ViewReport, ...]:
        return tuple(view for view in self.views if view.verdict is Verdict.UNDECIDED)

    @property
    def to_rebuild(self) -> tuple[str, ...]:
        """The views and indexes that a rebuild repairs, by name."""
        found = [name for view in self.wrong for name in (view.views if view.kind == "state" else (view.name,))]
        return tuple(dict.fromkeys(found))

    def view(self, name: str) -> ViewReport:
        """What was found of one view or index."""
        for view in self.views:
            if view.name == name and view.kind != "state":
                return view
        raise UnknownObjectError(f"there is no view or index {name} in this report")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for :mod:`json`."""
        return {"right": self.right, "views": [_plain(view) for view in self.views]}

    def __repr__(self) -> str:
        return "\n".join(map(str, self.views)) or "there are no views"

    __str__ = __repr__


def _plain(view: ViewReport) -> dict[str, Any]:
    found = {name: getattr(view, name) for name in ViewReport.__dataclass_fields__}
    parts = ("key", "shown", "expected")
    first = [{"kind": one.kind, **{part: _texts(getattr(one, part)) for part in parts}} for one in view.first]
    return found | {
        "frontier": str(view.frontier),
        "verdict": str(view.verdict),
        "views": list(view.views),
        "first": first,
    }


def _texts(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Values that JSON has as they are, and others as texts."""
    if values is None:
        return None
    plain = (str, int, bool, type(None))
    return {name: value if isinstance(value, plain) else str(value) for name, value in values.items()}


def _words(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name}={value}" for name, value in (values or {}).items())
