"""The maintainer: everything that keeps the views of a store up to date, in this process.

One sentence: whoever holds the store's lease finishes what was begun, builds what is new, follows
what was dropped, and takes every group to where the logs end.

The same lease guards a pipeline on Spark, and epochs are the same, so the two take turns: each goes
on where the other stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from everview.catalog import Catalog, Definitions, ViewStatus
from everview.change.frontier import Frontier
from everview.errors import DeadlineError
from everview.maintain.building import Build, Builder, drop_members
from everview.maintain.epochs import OPERATIONS, Epochs
from everview.maintain.plans import GROUPS, Plans, commit, group_document
from everview.operators.members import members_of
from everview.plan.maintenance import continued
from everview.store.contract import StateTable, Store

LEASE = "maintenance"


class Maintainer:
    """Maintains the views of a store. All of it needs the lease."""

    def __init__(self, store: Store, catalog: Catalog, operations: int = OPERATIONS) -> None:
        self.store = store
        self.catalog = catalog
        self.operations = operations
        self.plans = Plans(store, catalog)
        self.epochs = Epochs(store, catalog, self.plans)
        self.builder = Builder(store, catalog, self.plans, self.epochs)
        self._planned: dict[str, tuple[int, str]] = {}

    @contextmanager
    def lease(self, wait: float | None = 0) -> Iterator[Maintainer]:
        """Be the one who maintains the store's views."""
        with self.store.lease(LEASE, wait):
            yield self

    # -------------------------------------------------------------- everything

    def catch_up(self, target: Frontier | None = None, deadline: float | None = None) -> None:
        """Build all views that are new, and take every group to the target, by default to where
        the logs end now. ``deadline`` is a time of :func:`time.monotonic`."""
        goal = self.store.log.latest() if target is None else target
        self.recover()
        self.build(deadline)
        for group in self.groups():
            self.advance(group, goal, deadline)
        self.tidy()

    def groups(self) -> list[str]:
        """The groups that have views to be maintained."""
        definitions = self.catalog.definitions()
        return sorted({one.group for one in definitions.maintained() if one.status is ViewStatus.LIVE})

    def recover(self) -> None:
        """Finish every epoch that somebody began and did not end, and every joining."""
        for group in self.catalog.groups():
            self.epochs.finish(group.name)
        for build in self.builder.builds():
            if build.joined is not None:
                self.builder.join(build)

    def advance(self, group: str, goal: Frontier, deadline: float | None = None) -> None:
        """Take a group to a frontier."""
        while self.epochs.step(group, self.plan_of(group), goal, self.operations) is not None:
            _check(deadline, f"the views of group {group} do not reflect every write yet")

    # -------------------------------------------------------------- views that come and go

    def build(self, deadline: float | None = None) -> None:
        """Build all views that are new, one group after another."""
        while True:
            builds = self.builder.builds()
            for build in builds:
                self._finish(build, deadline)
            waiting = self.builder.waiting()
            if not builds and not waiting:
                return
            for target, found in waiting.items():
                self.builder.start(target, found)

    def _finish(self, build: Build, deadline: float | None) -> None:
        if self.abandoned(build):
            self.builder.abandon(build)
            return
        self.plan_of(build.target)
        while not self.builder.near(build):
            build = self.builder.advance(build)
            _check(deadline, f"the views of group {build.target} are still being built")
        self.builder.join(build)

    def abandoned(self, build: Build) -> bool:
        """Whether a view that is being built was dropped or replaced: then the build is of no use."""
        definitions = self.catalog.definitions()
        known = {one.id: one for one in definitions.maintained()}
        built = self.plans.load(build.plan).plan.by_name
        return any(id not in known or known[id].name not in built for id in build.ids)

    def plan_of(self, group: str) -> str:
        """The group's plan as its views are defined now. Called between two epochs."""
        definitions = self.catalog.definitions()
        kept = self._planned.get(group)
        if kept is not None and kept[0] == definitions.version:
            return kept[1]
        digest = self._replanned(group, definitions)
        self._planned[group] = (self.catalog.definitions().version, digest)
        return digest

    def _replanned(self, group: str, definitions: Definitions) -> str:
        last = self.plans.since(group)
        if last is None:
            return ""
        digest, bound, since = last
        live = [one for one in definitions.maintained() if one.group == group and one.status is ViewStatus.LIVE]
        tables = {name: definitions.table(name) for name in bound.tables if definitions.find(name) is not None}
        if {one.name for one in live} == bound.plan.by_name.keys() and tables == dict(bound.tables):
            return digest
        plan = continued(self.plans.planned(definitions, live), bound.plan)
        again = self.plans.bound(plan, definitions, bound.states, _refuse, group)
        for step in bound.plan.steps:
            gone = members_of(step, bound.plan)
            now = again.plan.by_fingerprint.get(step.fingerprint)
            if gone is None or now is None:
                continue
            left = members_of(now, again.plan)
            tags = set(gone.tags.to_pylist()) - set(left.tags.to_pylist() if left is not None else ())
            drop_members(self.store, bound, step, sorted(tags))
        digest = self.plans.record(again)

        commit(self.store, lambda _: ({GROUPS + group: group_document(digest, since)}, ()))
        return digest

    # -------------------------------------------------------------- what is left over

    def tidy(self) -> None:
        """Remove the rows of what was dropped, and plans that nobody runs any more."""
        gone = self.catalog.discarded()
        for table in gone:
            if isinstance(table, StateTable):
                self.store.views.drop(table)
            else:
                self.store.drop_table(table)
        if gone:
            self.catalog.forget(gone)
        kept = {build.plan for build in self.builder.builds()}
        kept |= {last[0] for group in self.catalog.groups() if (last := self.plans.last(group.name)) is not None}
        self.plans.sweep(kept)


def _refuse(table: StateTable) -> StateTable:
    raise AssertionError(f"a plan that only lost views keeps something new: {table.name}")


def _check(deadline: float | None, what: str) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise DeadlineError(what, hint="wait longer, or see what maintains them in the status")
