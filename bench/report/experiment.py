"""What an experiment is: something measured in one process, and how the report shows it.

An experiment yields rows of figures, each with whether the view it ended with was right, and
says for each figure of the papers what they saw, what we see and why that differs.

A row is plain values by name. A row whose result was wrong has no figures in the report, only that it is
wrong, and how: nothing that is wrong is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Value = str | int | float | bool | None
Row = dict[str, Value]
T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """How an experiment is run. ``quick`` is for correctness: small, all of it in seconds."""

    quick: bool
    seed: int
    folder: Path
    """Where it may keep what it needs; empty at the beginning, removed at the end."""
    install: bool = False
    """Whether systems that are not there may be installed first. Otherwise a row says that they are not."""

    def pick(self, full: T, quick: T) -> T:
        return quick if self.quick else full


@dataclass(frozen=True)
class Found:
    """One row, as it is measured: figures that are shown, and what was wrong with the result."""

    row: Row
    wrong: str = ""
    """How the result differs from a recomputation; nothing where it does not."""
    profile: dict[str, float] = field(default_factory=dict)
    """Where the time goes, in seconds by name: kept with the results, shown where it explains something."""
    ours: bool = True
    """Whether the result is ours to answer for. Another system's that is wrong is shown as wrong, and fails nothing."""


@dataclass(frozen=True)
class Plot:
    """A picture of the rows: ``y`` over ``x``, a line (or a bar of each group) for each value of ``by``."""

    name: str
    """Of the file, unique within the experiment."""
    title: str
    x: str
    y: str
    by: str | None = None
    kind: str = "lines"
    """``lines`` or ``bars``."""
    log_x: bool = False
    log_y: bool = False
    where: Callable[[Row], bool] = lambda row: True


@dataclass(frozen=True)
class Comparison:
    """A figure of a paper beside ours."""

    figure: str
    """For example ``004, Figure 9``."""
    they: str
    """What they saw."""
    we: str
    """What we see, with the numbers of this run."""
    why: str
    """Why that differs, or why it is the same."""


@dataclass(frozen=True)
class Experiment:
    """Something to measure. ``measure`` yields rows as they are found, so that what was measured before
    an error is kept; ``columns`` are those of the report's table, with their headings."""

    name: str
    title: str
    text: str
    """What is measured, and how: a paragraph of the report."""
    measure: Callable[[Setting], Iterator[Found]]
    columns: dict[str, str]
    plots: tuple[Plot, ...] = ()
    comparisons: Callable[[Sequence[Row]], list[Comparison]] = lambda rows: []
    """Sentences about the papers' figures, made of rows that are right."""
    notes: Callable[[Sequence[Row]], list[str]] = lambda rows: []
    """What else to say: where we lose, and why."""
    headline: Callable[[Sequence[Row]], str] = lambda rows: ""
    """The one sentence of the summary; without one it is the first of what we see beside the papers."""
    listed: Callable[[Row], bool] = lambda row: True
    """Which rows stand in the table. The others, such as those of a time series, are for pictures; where one is
    wrong it is listed as well."""
    always: bool = True
    """Whether it belongs to a run of all. What takes longer than a report may is run when it is named, and the
    report shows it as it was measured then."""
    alone: bool = False
    """Whether it needs a process of its own when it is quick, too: where it changes its process for good."""
    limit: float = 900
    """Seconds after which it is given up."""
