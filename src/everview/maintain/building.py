"""Views that are being built: from rows that are there already to where their group is.

A build is a group of its own that takes in the base tables chunk by chunk, follows
the log meanwhile, and joins the group its views belong to when both are at one frontier.

A chunk is an epoch. It takes in the next rows of a table as they are at its frontier, and of the
log since the last chunk what concerns rows that are in already::

    chunk   rows taken in          of the log
    1       orders up to k₁        nothing
    2       orders up to k₂        orders up to k₁
    3       orders to the end      orders up to k₂
    4       customers to the end   orders

So no snapshot is held while a build goes on, memory is bounded by the chunk, and a build that is
killed goes on with the chunk it was at. What a build keeps is its own until it joins: of the states
that its group has already in the same columns the build's are dropped then, all others stay, and
take the place of narrower ones of the group (:mod:`everview.maintain.sharing`).

Joining is three writes, each of which can be found done by whoever comes next: the plan of both
together is recorded with the build; an epoch of the group runs under it; the catalog says that the
views can be read, and the build is forgotten.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace

from everview.catalog import Catalog, Draft, GroupKind, IndexDefinition, Maintained, ViewDefinition, ViewStatus
from everview.change.frontier import Frontier
from everview.errors import ConflictError, EpochError
from everview.maintain.builds import Build, builds_of
from everview.maintain.chunks import next_chunk
from everview.maintain.epochs import Epochs
from everview.maintain.leaving import drop_members, tables_left
from everview.maintain.plans import GROUPS, Plans, commit, left_document
from everview.maintain.rebuilding import (
    ask_rebuild,
    is_rebuilt,
    rebuild_document,
    rebuilt_part,
    rebuilt_states,
    to_rebuild,
)
from everview.maintain.rounds import Rounds
from everview.maintain.sharing import StatesOf, joined_states, own_part
from everview.maintain.tasks import Chunk, EpochTask
from everview.maintain.unfinished import may_pass
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.members import members_of
from everview.plan.maintenance import MaintenancePlan, continued
from everview.store.contract import StateTable, Store

CHUNK = 100_000
"""Rows that a chunk takes in."""
NEAR = 10_000
"""Log entries between a build and its group from which on it catches up with the group waiting."""


class Builder:
    """Builds views of one store."""

    def __init__(self, store: Store, catalog: Catalog, plans: Plans, epochs: Epochs, chunk: int = CHUNK) -> None:
        self.store = store
        self.catalog = catalog
        self.plans = plans
        self.epochs = epochs
        self.chunk = chunk
        self._outgrown = Rounds("views that were just rebuilt are planned otherwise once more")

    # -------------------------------------------------------------- what there is to do

    def builds(self) -> list[Build]:
        """The builds under way."""
        return builds_of(self.store)

    def waiting(self) -> dict[str, list[Maintained]]:
        """Views and indexes that nobody builds yet, by the group they are for."""
        taken = {one for build in self.builds() for one in build.views}
        found: dict[str, list[Maintained]] = {}
        definitions = self.catalog.definitions()
        for one in definitions.maintained():
            if one.status is ViewStatus.BUILDING and (one.id, one.version) not in taken:
                found.setdefault(one.group, []).append(one)
        again: dict[str, list[Maintained]] = {}
        for one in to_rebuild(self.store, definitions):
            if (one.id, one.version) not in taken:
                again.setdefault(one.group, []).append(one)
        return found | again  # a build is of new views or of old ones; the old ones first, whose state new ones share

    def start(self, target: str, found: Sequence[Maintained]) -> Build:
        """Begin to build these views of a group. One build of a group at a time, and the group's
        plan is as its views are defined now."""
        last = self.plans.last(target)
        held = last[1] if last else None
        whole = self.plans.planned(self.catalog.definitions(), [*self._live(target), *found])
        whole = whole if held is None else continued(whole, held.plan)
        names = [one.name for one in found]
        replaces = all(one.status is ViewStatus.LIVE for one in found)
        planned_otherwise = [] if held is None or replaces else _outgrown(whole, held, self._live(target))
        if planned_otherwise:
            outgrown, new = ({(one.id, one.name) for one in some} for some in (planned_otherwise, found))
            self._outgrown.changed((target, frozenset(outgrown), frozenset(new)))  # once for what is new, not for ever
            ask_rebuild(self.store, [one.id for one in planned_otherwise])
            return self.start(target, planned_otherwise)  # what is new waits for them
        shared: dict[str, StateTable] = {}
        if replaces:
            own, rebuilt = rebuilt_part(whole, names)
            found = [one for one in self._live(target) if one.name in rebuilt]
        else:
            own, shared = own_part(whole, names, held)

        def work(draft: Draft) -> Build:
            group = draft.fresh_group(GroupKind.BUILDING).name
            bound = self.plans.bound(own, draft, shared, draft.number_state, group)
            views = tuple((one.id, one.version) for one in found)
            digest, document = self.plans.document(bound)
            first = Chunk(min(bound.tables, default=None))
            build = Build(group, target, views, digest, first, base=0, replaces=replaces)
            draft.puts |= {**document, build.name: build.document()}
            return build

        return self.catalog.change(work)

    def abandoned(self, build: Build) -> bool:
        """Whether a view that is being built was dropped or replaced: then the build is of no use."""
        now = {(one.id, one.version) for one in self.catalog.definitions().maintained()}
        return not now.issuperset(build.views)

    def _live(self, target: str) -> list[Maintained]:
        definitions = self.catalog.definitions()
        return [one for one in definitions.maintained() if one.group == target and one.status is ViewStatus.LIVE]

    # -------------------------------------------------------------- chunks

    def advance(self, build: Build) -> Build:
        """One epoch of a build: the next chunk, or a step along the log. Where a chunk was interrupted
        whose rows nobody can tell any more, the build is given up, and its views wait for another."""
        begun = self.store.views.begun(build.group)
        if begun is not None:
            try:
                self.epochs.run(begun)
            except EpochError as error:
                if type(error) is not EpochError or self.store.log.guarantees.before_images:
                    raise
                self.abandon(build)
                return build
        committed = self.store.views.committed(build.group)
        if build.chunk is None:
            goal = self.store.log.latest()
            build = self._as_defined(build)
            self.epochs.step(build.group, build.plan, goal)
            return build
        if build.started and committed.epoch > build.base:
            return self._recorded(replace(build, chunk=self._following(build), base=committed.epoch, started=False))
        return self._take(build)

    def _take(self, build: Build) -> Build:
        """Choose where the next chunk ends, record it, and take it in."""
        assert build.chunk is not None
        chunk = build.chunk
        with self.store.snapshot() as snapshot:
            build = self._as_defined(build)
            if chunk.table is not None:
                table = self.plans.load(build.plan).tables[chunk.table]
                chunk = next_chunk(snapshot, table, chunk.after, self.chunk, chunk.loaded)
            base = self.store.views.committed(build.group).epoch
            build = self._recorded(replace(build, chunk=chunk, base=base, started=True))
            task = EpochTask(build.plan, first=base == 0, chunk=chunk, begun=time.time())
            begun = self.store.views.begin(build.group, snapshot.frontier, task.to_bytes())
            with self.epochs.holding(snapshot):
                self.epochs.run(begun)
        return self.advance(build)

    def _as_defined(self, build: Build) -> Build:
        """The build with the schemas that its tables have now. Called after the next epoch's
        frontier is known, so nothing up to it was written under a newer one."""
        bound = self.plans.load(build.plan)
        again = self.plans.as_defined(bound, self.catalog.definitions())
        return build if again is bound else self._recorded(replace(build, plan=self.plans.record(again)))

    def _following(self, build: Build) -> Chunk | None:
        chunk = build.chunk
        assert chunk is not None
        if chunk.upto is not None:
            return replace(chunk, after=chunk.upto, upto=None)
        if chunk.table is None:
            return None
        loaded = (*chunk.loaded, chunk.table)
        left = [name for name in sorted(self.plans.load(build.plan).tables) if name not in loaded]
        return Chunk(left[0], loaded=loaded) if left else None

    def _recorded(self, build: Build) -> Build:
        commit(self.store, lambda _: ({build.name: build.document()}, ()))
        return build

    # -------------------------------------------------------------- joining

    def near(self, build: Build) -> bool:
        """Whether all rows are in and the build is close behind the end of the logs."""
        if build.chunk is not None:
            return False
        reached = self.store.views.committed(build.group).frontier
        return reached.operations_to(self.store.log.latest()) <= NEAR

    def join(self, build: Build, deadline: float | None = None) -> bool:
        """Make the views the target's own. The target is between two epochs, and stays there; where
        somebody has begun another epoch of it all the same, nothing is done, and it is to be tried
        again: False. New views that cannot join because the target fails are built again once it is rebuilt."""
        target = build.target
        if build.joined is None:
            try:
                build = self._meet(build, deadline)
            except Exception as error:
                if build.replaces or may_pass(error) or not is_rebuilt(self.store, self.catalog.definitions(), target):
                    raise
                self.abandon(build)
                return False
            base = self._base(build)
            if base is None:
                return False
            build = self._recorded(replace(build, joined=self.plans.record(self._joined(build)), base=base))
        assert build.joined is not None
        begun = self.store.views.begun(target)
        if build.epoch is None:
            adopted = self.plans.load(build.plan).states[QUARANTINE]
            task = EpochTask(build.joined, chunk=Chunk(None), adopted=adopted, built=build.plan).to_bytes()
            frontier = self.store.views.committed(build.group).frontier
            with contextlib.suppress(ConflictError):
                begun = begun or self.store.views.begin(target, frontier, task, base=build.base)
            if begun is None or begun.plan != task:
                self._recorded(replace(build, joined=None))
                return False
            build = self._recorded(replace(build, epoch=begun.epoch))
        if begun is not None and begun.epoch == build.epoch:
            self.epochs.run(begun)
        self.store.views.sweep(build.group)  # nobody else will, once the group is gone
        self._publish(build)
        return True

    def _meet(self, build: Build, deadline: float | None) -> Build:
        """Bring build and target to one frontier. A target without views is wherever the build is; so is one of
        which nothing is kept, if its epochs fail: then what it has begun is closed as it is."""
        reached = self.store.views.committed(build.target).frontier
        goal = self.store.views.committed(build.group).frontier | reached
        build = self._as_defined(build)
        self._catch_up(build.group, build.plan, goal, deadline)
        last = self.plans.last(build.target)
        if last is not None and last[1].plan.views:
            try:
                self.epochs.fence(build.target, last[0])
                self._catch_up(build.target, last[0], goal, deadline)
            except Exception as error:  # damaged state fails in any way
                if may_pass(error) or self._keeps(build):
                    raise
                begun = self.store.views.begun(build.target)
                if begun is not None:
                    self.store.views.commit(build.target, begun.epoch)
        return build

    def _keeps(self, build: Build) -> bool:
        """Whether anything stays of what the target keeps."""
        last = self.plans.last(build.target)
        replaced = build.replaces and all(map(build.builds, self._live(build.target)))
        return last is not None and bool(last[1].plan.views) and not replaced

    def _base(self, build: Build) -> int | None:
        """The target's epoch at which the build has met it; None where somebody has taken the target on."""
        reached, own = self.store.views.committed(build.target), self.store.views.committed(build.group)
        met = reached.frontier == own.frontier or (reached.frontier <= own.frontier and not self._keeps(build))
        return reached.epoch if met else None

    def _catch_up(self, group: str, plan: str, goal: Frontier, deadline: float | None) -> None:
        rounds = Rounds(f"group {group} is not at {goal} yet, where new views join", deadline)
        while (done := self.epochs.step(group, plan, goal)) is not None:
            rounds.changed(done.commit.epoch)

    def _joined(self, build: Build) -> BoundPlan:
        """The target's plan with the views of the build, bound to the states of both."""
        definitions = self.catalog.definitions()
        own = self.plans.load(build.plan)
        last = self.plans.last(build.target)
        views = [one for one in definitions.maintained() if build.builds(one)]
        whole = self.plans.planned(definitions, [*self._live(build.target), *views])
        if last is not None:
            whole = continued(whole, last[1].plan)
        whole = continued(whole, own.plan)
        if build.replaces and last is not None:
            states = rebuilt_states(own, last[1])
        else:
            states = joined_states(own, last[1] if last is not None else None)
        return self.plans.bound(whole, definitions, states, _known, build.target)

    def _publish(self, build: Build) -> None:
        """Tell everybody that the views can be read, and forget the build."""
        assert build.joined is not None
        joined = build.joined
        bound = self.plans.load(joined)
        own = self.plans.load(build.plan)
        last = self.plans.last(build.target)
        reached = self.store.views.committed(build.target).epoch
        states = StatesOf(bound)

        def work(draft: Draft) -> None:
            kept = {table.id for table in bound.states.values()}
            draft.forget(table for table in self.catalog.discarded() if table.id in kept)
            draft.adopt(bound.states.values())
            for one in draft.maintained():
                if one.group != build.target or one.name not in bound.plan.by_name:
                    continue
                if one.status is ViewStatus.BUILDING and not build.builds(one):
                    continue
                tables = states.view(one.name)
                if one.status is ViewStatus.LIVE and one.state == tables:
                    continue
                if isinstance(one, ViewDefinition):
                    draft.alter_view(one.name, status=ViewStatus.LIVE, state=tables)
                elif isinstance(one, IndexDefinition):
                    draft.alter_index(one.name, status=ViewStatus.LIVE, state=tables)
            draft.discard(tables_left(own, bound))
            if last is not None and last[0] != joined:
                draft.discard(tables_left(last[1], bound))
                draft.puts[left_document(build.target, last[0])] = b""
            if own.plan.by_name.keys() - bound.plan.by_name.keys():  # dropped when they were about to join
                draft.puts[left_document(build.target, build.plan)] = b""
            draft.puts[GROUPS + build.target] = self.plans.group_document(build.target, joined, reached)
            draft.deletes.add(build.name)
            if build.replaces:
                draft.deletes.update(rebuild_document(id) for id, _ in build.views)
            self.epochs.metrics.leave(draft, build.group)
            draft.drop_group(build.group)

        self.catalog.change(work)

    def abandon(self, build: Build) -> None:
        """Forget a build whose views are gone, and what it kept."""
        views = self.store.views
        begun = views.begun(build.group)
        if begun is not None:
            views.commit(build.group, begun.epoch)  # so that nobody writes there any more
        own = self.plans.load(build.plan)
        last = self.plans.last(build.target)
        kept = {table.id for table in last[1].states.values()} if last else set()
        for step in own.plan.steps:
            members = members_of(step, own.plan)
            if members is not None and any(own.states[state.fingerprint].id in kept for state in step.states):
                drop_members(self.store, own, step, members.tags.to_pylist())
        views.sweep(build.group)

        def work(draft: Draft) -> None:
            draft.discard(table for table in own.states.values() if table.id not in kept)
            draft.deletes.add(build.name)
            self.epochs.metrics.leave(draft, build.group)
            draft.drop_group(build.group)

        self.catalog.change(work)


def _outgrown(whole: MaintenancePlan, held: BoundPlan, live: Sequence[Maintained]) -> list[Maintained]:
    """The views whose state is not what they would be planned with now: another version of Everview has planned
    them. They are maintained as they are, and are built anew before anything joins them."""
    new = [step for step in whole.steps if any(state.fingerprint not in held.states for state in step.states)]
    views = {view for step in new for view in whole.users[step.fingerprint]}
    return [one for one in live if one.name in views]


def _known(table: StateTable) -> StateTable:
    raise AssertionError(f"neither the build nor its group keeps {table.name}")
