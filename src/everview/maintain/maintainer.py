"""The maintainer: everything that keeps the views of a store up to date, in this process.

The process that holds the store's lease finishes what was begun, builds what is new, follows
what was dropped, and takes every group to where the logs end.

The same lease guards a pipeline on Spark, and epochs are the same, so the two take turns: each goes
on where the other stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from everview.catalog import Catalog, Definitions, Draft, GroupKind, Maintained, ViewStatus
from everview.change.frontier import Frontier
from everview.maintain.building import CHUNK, Builder
from everview.maintain.builds import Build
from everview.maintain.epoch_sizes import EpochSizes
from everview.maintain.epochs import Epochs
from everview.maintain.executor import Executor, LocalExecutor
from everview.maintain.fitting_executor import FittingExecutor
from everview.maintain.leaving import drop_gone, tables_left
from everview.maintain.plans import GROUPS, Plans, commit, left_document
from everview.maintain.rounds import Rounds
from everview.maintain.tasks import EpochTask
from everview.maintain.trimming import Trimmer
from everview.maintain.unfinished import finish_begun, standing
from everview.operators.bound import BoundChange, BoundPlan
from everview.plan.maintenance import continued, restricted, without
from everview.store.contract import StateTable, Store, Table

LEASE = "maintenance"
TURNS = 20
"""In which the logs are trimmed after views were brought to their end."""


class Maintainer:
    """Maintains the views of a store. All of it needs the lease. ``sizes`` are those of its epochs, ``executor`` makes
    what does their work in this process."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        sizes: EpochSizes | None = None,
        chunk: int = CHUNK,
        executor: Callable[[Store, Plans], Executor] = LocalExecutor,
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.plans = Plans(store, catalog)
        self.executor = FittingExecutor(executor(store, self.plans), sizes or EpochSizes())
        self.epochs = Epochs(store, catalog, self.plans, self.executor, self.executor.sizes)
        self.builder = Builder(store, catalog, self.plans, self.epochs, chunk)
        self.trimmer = Trimmer(store, catalog)
        self._planned: dict[str, tuple[Definitions, str]] = {}
        self._settled = -1
        """The counter of all documents when there was nothing to build or to clean up."""

    @contextmanager
    def lease(self, wait: float | None = 0) -> Iterator[Maintainer]:
        """Be the maintainer of the store's views."""
        with self.store.lease(LEASE, wait):
            yield self

    # -------------------------------------------------------------- everything

    def catch_up(self, target: Frontier | None = None, deadline: float | None = None) -> None:
        """Build all views that are new, and take every group to the target, by default to where
        the logs end now. ``deadline`` is a time of :func:`time.monotonic`."""
        goal = self.store.log.latest() if target is None else target
        self.recover(deadline)
        version = self.store.metadata.version()
        if version != self._settled:
            self.build(deadline)
        for group in self.groups():
            self.advance(group, goal, deadline)
        if version != self._settled and self.tidy():
            self._settled = version  # of the beginning: what came meanwhile is for the next time
        self.trim()

    def groups(self) -> list[str]:
        """The groups that have views to be maintained."""
        return self.catalog.definitions().live_groups()

    def recover(self, deadline: float | None = None) -> None:
        """Finish every epoch that another process began and did not end, and every joining. The epochs of
        builds are theirs to finish."""
        rounds = Rounds("epochs that another process began are not finished yet", deadline)
        for group in self.catalog.groups():
            if group.kind is not GroupKind.BUILDING and self.finish(group.name):
                rounds.check()
        for build in self.builder.builds():
            self.builder.join(build, deadline)

    def finish(self, group: str) -> bool:
        """Do the epoch of a group that is under way; whether there was one."""
        return finish_begun(self.epochs, group)

    def advance(
        self,
        group: str,
        goal: Frontier,
        deadline: float | None = None,
        *,
        over: Callable[[], bool] = bool,
    ) -> None:
        """Take a group to a frontier, unless it is ``over`` after one of the epochs."""
        rounds = Rounds(f"the views of group {group} do not reflect every write yet", deadline)
        while (done := self.epochs.step(group, self.plan_of(group), goal)) is not None and not over():
            rounds.changed(done.commit.epoch)

    # -------------------------------------------------------------- views that come and go

    def build(self, deadline: float | None = None) -> None:
        """Build all views that are new, one group after another."""
        rounds = Rounds(self._unbuilt, deadline)
        while True:
            builds = self.builder.builds()
            for build in builds:
                self._finish(build, deadline)
            waiting = self.builder.waiting()
            if not builds and not waiting:
                return
            rounds.changed((len(builds), standing(self.store, waiting)))
            for target, found in waiting.items():
                if self.start(target, found) is None:
                    self.finish(target)

    def start(self, target: str, found: Sequence[Maintained]) -> Build | None:
        """Begin to build views of a group. None where the epoch that is under way in it has to be finished
        first: it writes what was dropped since. A rebuild writes to tables of its own, and need not wait."""
        self.plan_of(target)
        is_rebuild = all(one.status is ViewStatus.LIVE for one in found)
        return self.builder.start(target, found) if self.retire(target) or is_rebuild else None

    def _finish(self, build: Build, deadline: float | None) -> None:
        rounds = Rounds(self._unbuilt, deadline)
        while self.step(build, deadline):
            left = [one for one in self.builder.builds() if one.group == build.group]
            if not left:
                return
            (build,) = left
            own = self.store.views.committed(build.group).epoch
            rounds.changed((build, own, standing(self.store, [build.target])))

    def _unbuilt(self) -> str:
        """What is not built yet, for the error of the caller that waits for it."""
        ids = {id for build in self.builder.builds() for id, _ in build.views}
        ids |= {one.id for found in self.builder.waiting().values() for one in found}
        names = sorted(one.name for one in self.catalog.definitions().maintained() if one.id in ids)
        return f"views are still being built: {', '.join(names)}"

    def step(self, build: Build, deadline: float | None = None) -> bool:
        """Do the next transition of a build, and those that its group waits for; whether there is more to do."""
        if self.builder.next(build).group_waits:
            self.plan_of(build.target)
            self.finish(build.target)
        after = self.builder.step(build, deadline)
        return after is not None and self.builder.join(after, deadline) is not None

    def plan_of(self, group: str) -> str:
        """The group's plan as its views are defined now. Called between two epochs."""
        definitions = self.catalog.definitions()
        kept = self._planned.get(group)
        if kept is not None and kept[0] is definitions:
            return kept[1]
        digest = self._replanned(group, definitions, None if kept is None else kept[0])
        self._planned[group] = (definitions, digest)  # what was defined meanwhile is for the next call
        return digest

    def _replanned(self, group: str, definitions: Definitions, before: Definitions | None) -> str:
        """``before``: the definitions when the group's plan was as they said."""
        last = self.plans.last(group)
        if last is None:
            return ""
        digest, bound = last
        if group not in definitions.live_groups():
            self._leave(group, digest, bound)
            return ""
        names, planned = definitions.live_names(group), bound.plan.by_name
        touched = None if before is None else definitions.live_changed(before, group)
        candidates = {*names, *planned} if touched is None else touched
        differs = {name for name in candidates if (name in names) != (name in planned)}
        again = self.plans.as_defined(bound, definitions)
        if not differs:
            if again is bound:
                return digest
            after = self.plans.record(again)
        elif not any(name in names for name in differs) and (change := without(bound.plan, differs)):
            whole = BoundChange.between(bound, change, again.tables, {}, bound.planner)
            after, again = self.plans.record_after(digest, whole)
        else:
            live = definitions.live(group)
            plan = continued(self.plans.planned(definitions, live), bound.plan)
            if any(state.fingerprint not in bound.states for step in plan.steps for state in step.states):
                plan = restricted(bound.plan, [one.name for one in live])  # another version has planned them
            again = self.plans.bound(plan, definitions, bound.states, _refuse, group)
            after = self.plans.record(again)

        def work(draft: Draft) -> None:
            draft.discard(tables_left(bound, again))
            draft.puts[GROUPS + group] = self.plans.group_document(group, after)
            draft.puts[left_document(group, digest)] = b""

        self.catalog.change(work)
        self.retire(group)
        return after

    def _leave(self, group: str, digest: str, bound: BoundPlan) -> None:
        """Forget the plan of a group that has no views."""

        def work(draft: Draft) -> None:
            draft.discard(bound.states.values())
            self.epochs.metrics.leave(draft, group)
            draft.deletes.add(GROUPS + group)
            draft.puts[left_document(group, digest)] = b""

        self.catalog.change(work)
        self.retire(group)

    def retire(self, group: str) -> bool:
        """Remove what plans that the group has left kept under prefixes of their own. False where an
        epoch that was begun with one of them is under way: then later. None is begun any more after that."""
        left = self.plans.left(group)
        if not left:
            return True
        last = self.plans.last(group)
        is_there = group in {known.name for known in self.catalog.groups()}
        if is_there:
            self.epochs.fence(group, left[0] if last is None else last[0])
        begun = self.store.views.begun(group)
        if begun is not None and not is_there:
            self.store.views.commit(group, begun.epoch)  # no process finishes the epochs of a group that is gone
        elif begun is not None and EpochTask.from_bytes(begun.plan).plan in left:
            return False
        for digest in left:
            drop_gone(self.store, self.plans.load(digest), None if last is None else last[1], self._of_builds())
        commit(self.store, lambda _: ({}, [left_document(group, digest) for digest in left]))
        return True

    def _of_builds(self) -> set[int]:
        """The tables that builds write into."""
        plans = [self.plans.load(build.plan) for build in self.builder.builds()]
        return {table.id for bound in plans for table in bound.states.values()}

    # -------------------------------------------------------------- what is left over

    def tidy(self) -> bool:
        """Remove the rows of what was dropped, and plans that no epoch runs any more; False where an epoch of a plan
        that was left has to be over first."""
        for group in self.plans.groups():
            self.plan_of(group)
        used = self._of_builds()
        is_retired = True
        for group in self.plans.groups():
            is_retired = self.retire(group) and is_retired
            for bound in self.plans.running(group):
                used |= {table.id for table in bound.states.values()}
        gone = [table for table in self.catalog.discarded() if isinstance(table, Table) or table.id not in used]
        for table in gone:
            if isinstance(table, StateTable):
                self.store.views.drop(table)
            else:
                self.store.drop_table(table)
        if gone:
            self.catalog.forget(gone)
        self.plans.sweep(build.plan for build in self.builder.builds())
        return is_retired

    def trim(self) -> None:
        """Forget what no group needs of the logs; the rest of much is for the next time."""
        for _ in range(TURNS):
            if not self.trimmer.turn():
                break


def _refuse(table: StateTable) -> StateTable:
    raise AssertionError(f"a plan that only lost views keeps something new: {table.name}")
