"""How everything is: groups, views, builds, what is set aside, and who maintains it.

One sentence: a status is read from one snapshot, is a tree of plain values, and prints as a few lines.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from everview.catalog import Catalog, GroupKind
from everview.catalog.quarantine import UNKNOWN
from everview.change.frontier import Frontier
from everview.maintain import Plans
from everview.maintain.builds import Build, builds_of
from everview.maintain.maintainer import LEASE
from everview.maintain.quarantine import DAMAGED, set_aside
from everview.store.contract import Snapshot, Store

COUNTED = 10_000
"""Up to how many of each kind what is set aside is counted."""


@dataclass(frozen=True)
class ViewState:
    """A view or an index."""

    name: str
    kind: str
    status: str
    """``live``, or ``building``: it cannot be read yet."""
    set_aside: int
    """How many rows, groups or partitions it lacks because they have no value, and log entries of
    its tables that cannot be read."""


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
    """Seconds since the last commit, where something is missing; else 0."""
    under_way: int | None
    """The epoch that has begun and is not committed."""
    views: tuple[ViewState, ...]


@dataclass(frozen=True)
class BuildState:
    """Views that are being built."""

    target: str
    """The group that they will belong to."""
    views: tuple[str, ...]
    phase: str
    """What it does now."""
    tables: tuple[int, int]
    """How many tables are taken in, and how many there are."""
    lag: int
    """Operations in the logs that it has not taken in."""


@dataclass(frozen=True)
class Status:
    """How a store's views are."""

    groups: tuple[GroupState, ...]
    builds: tuple[BuildState, ...]
    tables: tuple[tuple[str, int], ...]
    """Base tables, and how many rows they have."""
    latest: Frontier
    """Where the logs end."""
    unreadable: int
    """Log entries that cannot be read."""
    maintainer: str | None
    """Who maintains the views, as far as it is known; None: nobody does."""

    def view(self, name: str) -> ViewState:
        """One view or index by name."""
        return next(view for group in self.groups for view in group.views if view.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for :mod:`json`."""
        found = dataclasses.asdict(self, dict_factory=_plain)
        return {**found, "latest": str(self.latest)}

    def __repr__(self) -> str:
        lines = [f"maintained by {self.maintainer or 'nobody at the moment'}"]
        for group in self.groups:
            lag = f"{group.lag} operations, {group.behind:.1f} s behind" if group.lag else "up to date"
            lines.append(f"group {group.name} ({group.kind}): epoch {group.epoch}, {lag}")
            for view in group.views:
                state = "" if view.status == "live" else f" ({view.status})"
                lacks = f", {view.set_aside} set aside" if view.set_aside else ""
                lines.append(f"  {view.kind} {view.name}{state}{lacks}")
        for build in self.builds:
            taken, all_of_them = build.tables
            lines.append(
                f"building {', '.join(build.views)} for {build.target}: {build.phase}; "
                f"{taken} of {all_of_them} tables, {build.lag} operations to follow"
            )
        lines += [f"table {name}: {count} rows" for name, count in self.tables]
        if self.unreadable:
            lines.append(f"{self.unreadable} log entries cannot be read")
        return "\n".join(lines)


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Frontier) else value for name, value in items}


def status(store: Store, catalog: Catalog, plans: Plans) -> Status:
    """How the views of a store are now."""
    definitions = catalog.definitions()
    with store.snapshot() as snapshot:
        latest = snapshot.frontier
        unreadable = sum(catalog.quarantine.count(id) for id in (UNKNOWN, *(table.id for table in catalog.tables())))
        groups = tuple(
            _group(store, catalog, plans, snapshot, group.name, group.kind)
            for group in definitions.groups()
            if group.kind is not GroupKind.BUILDING
        )
        builds = tuple(_build(plans, snapshot, build, catalog) for build in builds_of(store))
        tables = tuple((table.name, snapshot.table(table).count()) for table in definitions.tables())
    return Status(groups, builds, tables, latest, unreadable, store.holder(LEASE))


def _group(store: Store, catalog: Catalog, plans: Plans, snapshot: Snapshot, name: str, kind: GroupKind) -> GroupState:
    commit = snapshot.committed(name)
    begun = store.views.begun(name)
    lacking: Counter[str] = Counter()
    for one in set_aside(catalog, plans, name, snapshot, COUNTED):
        lacking.update(dict.fromkeys(one.views, 1 if one.what == DAMAGED else one.count))
    views = tuple(
        ViewState(one.name, one.kind, str(one.status), lacking[one.name])
        for one in catalog.definitions().maintained()
        if one.group == name
    )
    lag = commit.frontier.operations_to(snapshot.frontier) if views else 0
    behind = time.time() - commit.time if lag and commit.time else 0.0
    under_way = None if begun is None else begun.epoch
    return GroupState(name, str(kind), commit.epoch, commit.frontier, commit.time, lag, behind, under_way, views)


def _build(plans: Plans, snapshot: Snapshot, build: Build, catalog: Catalog) -> BuildState:
    names = tuple(one.name for one in catalog.definitions().maintained() if build.builds(one))
    total = len(plans.load(build.plan).tables)
    chunk = build.chunk
    if build.joined is not None:
        phase = "its views become the group's own"
    elif chunk is None:
        phase = "follows the logs"
    else:
        phase = f"takes in {chunk.table}" if chunk.table is not None else "begins"
    done = total if chunk is None else len(chunk.loaded)
    commit = snapshot.committed(build.group)
    lag = commit.frontier.operations_to(snapshot.frontier) if commit.epoch else 0
    return BuildState(build.target, names, phase, (done, total), lag)
