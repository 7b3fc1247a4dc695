"""The status of a store: groups, views, builds, the quarantine, and the maintainer.

A status is read from one snapshot. It is a tree of plain values and prints as a few lines.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from everview.boundary import public
from everview.catalog import Catalog, GroupKind
from everview.catalog.quarantine import UNKNOWN
from everview.change.frontier import Frontier
from everview.errors import DamagedEntryError, UnknownObjectError
from everview.maintain import Plans
from everview.maintain.builds import Build, builds_of
from everview.maintain.demand import demand, per_minute
from everview.maintain.figures import EpochFigures, Totals
from everview.maintain.maintainer import LEASE
from everview.maintain.metrics import Metrics
from everview.maintain.quarantined import DAMAGED, quarantined_items
from everview.maintain.staleness import max_throughput, staleness
from everview.maintain.trimming import KeptLogs, kept
from everview.store.contract import Store, TableSnapshot

COUNTED = 10_000
"""Quarantined items of each kind are counted up to this number."""
RECENT = 64
"""Rates are computed from at most so many epochs."""
WINDOW = 10.0
"""Rates are computed from at most so many seconds."""


@dataclass(frozen=True)
class ViewState:
    """A view or an index."""

    name: str
    kind: str
    status: str
    """``live``, or ``building``: it cannot be read yet."""
    quarantined: int
    """How many rows, groups or partitions it lacks because an expression failed, and log entries of
    its tables that cannot be read."""
    inserted: int = 0
    """Rows inserted since it was created, including those of its build."""
    updated: int = 0
    deleted: int = 0
    rate: float = 0.0
    """Rows inserted, updated and deleted per second, lately."""


@dataclass(frozen=True)
class GroupState:
    """Views that move together."""

    name: str
    kind: str
    epoch: int
    frontier: Frontier
    committed: float
    """When the last epoch was committed, as a time of :func:`time.time`; 0: none was."""
    lag: int
    """Operations in the logs that its views do not reflect."""
    behind: float
    """How many seconds ago the oldest of them was written; 0 if there is none."""
    under_way: int | None
    """The epoch that has begun and is not committed."""
    views: tuple[ViewState, ...]
    throughput: float = 0.0
    """Operations per second that its epochs took in, lately."""
    arrival: float = 0.0
    """Operations per second that were written, lately."""
    max_throughput: float | None = None
    """Operations per second that it could take in, by equation 1; None: not known."""
    staleness: float | None = None
    """Age of the oldest operation of the last epoch when it was committed."""
    predicted: float | None = None
    """How long an operation that is written now has to wait, by equation 2; None: not known."""
    last: EpochFigures | None = None
    """The figures of the last epoch."""
    totals: Totals | None = None
    """All epochs since the group's first."""
    asked: float = 0.0
    """How often it is asked for each minute while it lags, lately: of lazy groups, the one that is asked for most is
    moved first."""


@dataclass(frozen=True)
class BuildState:
    """Views that are being built."""

    target: str
    """The group that they will belong to."""
    views: tuple[str, ...]
    phase: str
    """The current phase."""
    tables: tuple[int, int]
    """How many tables are taken in, and how many there are."""
    lag: int
    """Operations in the logs that it has not taken in."""


@public
@dataclass(frozen=True)
class Status:
    """The state of a store's views."""

    groups: tuple[GroupState, ...]
    builds: tuple[BuildState, ...]
    tables: tuple[tuple[str, int], ...]
    """Base tables, and how many rows they have."""
    latest: Frontier
    """The end of the logs."""
    unreadable: int
    """Log entries that cannot be read."""
    maintainer: str | None
    """The process that maintains the views, as far as it is known; None: no process does."""
    log: KeptLogs
    """The kept part of the logs, and the reader that needs it."""

    def view(self, name: str) -> ViewState:
        """One view or index by name."""
        for group in self.groups:
            for view in group.views:
                if view.name == name:
                    return view
        raise UnknownObjectError(f"there is no view or index {name} in this status")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for :mod:`json`."""
        found = dataclasses.asdict(self, dict_factory=_plain)
        return {**found, "latest": str(self.latest)}

    def __repr__(self) -> str:
        lines = [f"maintained by {self.maintainer or 'nobody at the moment'}"]
        for group in self.groups:
            lag = f"{group.lag} operations, {group.behind:.1f} s behind" if group.lag else "up to date"
            asked = f", asked for {group.asked:.0f} times a minute" if group.asked >= 0.5 else ""
            lines.append(f"group {group.name} ({group.kind}): epoch {group.epoch}, {lag}{asked}")
            if group.last is not None:
                lines.append(f"  {_pace(group, group.last)}")
            for view in group.views:
                state = "" if view.status == "live" else f" ({view.status})"
                lacks = f", {view.quarantined} quarantined" if view.quarantined else ""
                rate = f", {view.rate:.0f} updates/s" if view.rate >= 0.5 else ""
                lines.append(f"  {view.kind} {view.name}{state}{rate}{lacks}")
        for build in self.builds:
            taken, all_of_them = build.tables
            lines.append(
                f"building {', '.join(build.views)} for {build.target}: {build.phase}; "
                f"{taken} of {all_of_them} tables, {build.lag} operations to follow"
            )
        lines += [f"table {name}: {count} rows" for name, count in self.tables]
        lines.append(f"logs: {self.log}")
        if self.unreadable:
            lines.append(f"{self.unreadable} log entries cannot be read")
        return "\n".join(lines)


def _pace(group: GroupState, last: EpochFigures) -> str:
    """The throughput and staleness of a group, in one line."""
    shown = [f"{group.throughput:.0f} operations/s, {group.arrival:.0f}/s written"]
    if group.staleness is not None:
        shown.append(f"shown after {group.staleness:.2f} s")
    if group.predicted is not None:
        shown.append(f"what is written now in about {group.predicted:.2f} s")
    stages = ", ".join(f"{stage.seconds:.2f}" for stage in last.stages)
    shown.append(f"last epoch {last.seconds:.2f} s (stages {stages})" if stages else f"last epoch {last.seconds:.2f} s")
    return "; ".join(shown)


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Frontier) else value for name, value in items}


def status(store: Store, catalog: Catalog, plans: Plans) -> Status:
    """The current state of a store's views."""
    definitions = catalog.definitions()
    metrics = Metrics(store, catalog, plans)
    with store.snapshot() as snapshot:
        latest = snapshot.frontier
        asked_for = demand(store)
        unreadable = sum(catalog.quarantine.count(id) for id in (UNKNOWN, *(table.id for table in catalog.tables())))
        groups = tuple(
            replace(
                _group(store, catalog, plans, metrics, snapshot, group.name, group.kind),
                asked=per_minute(asked_for.get(group.name, 0.0)),
            )
            for group in definitions.groups()
            if group.kind is not GroupKind.BUILDING
        )
        asked = (_build(store, plans, snapshot, build, catalog) for build in builds_of(store))
        builds = tuple(found for found in asked if found is not None)
        tables = tuple((table.name, snapshot.table(table).count()) for table in definitions.tables())
    return Status(groups, builds, tables, latest, unreadable, store.holder(LEASE), kept(store, catalog))


def _group(
    store: Store,
    catalog: Catalog,
    plans: Plans,
    metrics: Metrics,
    snapshot: TableSnapshot,
    name: str,
    kind: GroupKind,
) -> GroupState:
    commit = snapshot.committed(name)
    begun = store.views.begun(name)
    lacking: Counter[str] = Counter()
    for one in quarantined_items(catalog, plans, name, snapshot, COUNTED):
        lacking.update(dict.fromkeys(one.views, 1 if one.what == DAMAGED else one.count))
    now = time.time()
    sums = metrics.sums(snapshot, name)
    recent = Recent(metrics.last(snapshot, name, RECENT), now)
    views = tuple(
        ViewState(
            one.name,
            one.kind,
            str(one.status),
            lacking[one.name],
            *((0, 0, 0) if sums is None else sums.views[one.name].updates),
            rate=recent.updates(one.name),
        )
        for one in catalog.definitions().maintained()
        if one.group == name
    )
    lag = commit.frontier.operations_to(snapshot.frontier) if views else 0
    written = store.log.written_after(commit.frontier) if lag else None
    behind = 0.0 if written is None else max(0.0, now - written)
    under_way = None if begun is None else begun.epoch
    pace = None if sums is None or not sums.totals.pace.known else sums.totals.pace
    servers = 1 if recent.last is None else recent.last.servers
    return GroupState(
        name,
        str(kind),
        commit.epoch,
        commit.frontier,
        commit.time,
        lag,
        behind,
        under_way,
        views,
        throughput=recent.throughput,
        arrival=recent.arrival(sum(snapshot.frontier.values()), lag, behind),
        max_throughput=None if pace is None else max_throughput(servers, pace.latency),
        staleness=recent.staleness,
        predicted=None if pace is None else staleness(lag + 1, servers, pace.latency, pace.rest),
        last=recent.last,
        totals=None if sums is None else sums.totals,
    )


class Recent:
    """The last epochs of a group, and the rates of those of the last seconds."""

    def __init__(self, epochs: Sequence[EpochFigures], now: float) -> None:
        self.last = epochs[-1] if epochs else None
        self.staleness = next((one.staleness for one in reversed(epochs) if one.staleness is not None), None)
        """Of the last epoch that showed something."""
        self._epochs = [one for one in epochs if one.time > now - WINDOW]
        self._now = now
        began = self._epochs[0].time - self._epochs[0].seconds if self._epochs else now
        self._span = max(now - began, 0.001)

    @property
    def throughput(self) -> float:
        return sum(one.operations for one in self._epochs) / self._span

    def updates(self, view: str) -> float:
        return sum(sum(one.views.get(view, (0, 0, 0))) for one in self._epochs) / self._span

    def arrival(self, written: int, lag: int, behind: float) -> float:
        """By how much the logs have grown since the first of the epochs was committed; without any, since
        the oldest operation that no epoch has taken in."""
        if not self._epochs:
            return lag / max(behind, 0.001)
        first = self._epochs[0]
        return max(0, written - first.written) / max(self._now - first.time, 0.001)


def _build(store: Store, plans: Plans, snapshot: TableSnapshot, build: Build, catalog: Catalog) -> BuildState | None:
    """The state of a build; None if it has ended meanwhile."""
    names = tuple(one.name for one in build.views_of(catalog.definitions()))
    try:
        total = len(plans.load(build.plan).tables)
    except DamagedEntryError:
        if any(one.plan == build.plan for one in builds_of(store)):
            raise
        return None
    chunk = build.chunk
    if build.phase.holds_group:
        phase = "its views become the group's own"
    elif chunk is None:
        phase = "follows the logs"
    else:
        phase = f"takes in {chunk.table}" if chunk.table is not None else "begins"
    done = total if chunk is None else len(chunk.loaded)
    commit = snapshot.committed(build.group)
    lag = commit.frontier.operations_to(snapshot.frontier) if commit.epoch else 0
    return BuildState(build.target, names, phase, (done, total), lag)
