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
killed goes on with the chunk it was at.

A build is a state machine. Its phase is recorded in the store, and :attr:`Builder.transitions` is the table of
what is done in each phase, and where that leads::

    LOADING ──load──▶ TAKING ──take──▶ LOADING … FOLLOWING ──follow──▶ FOLLOWING
                                                     │ meet
                                                     ▼
                              (gone) ◀──publish── ADOPTED ◀──enter── JOINING

Every transition decides by what the store holds and ends with one write of the build's document, so a transition
that was killed at any point is repeated by the next process, to the same end. While its rows are not in the group,
a build whose views were dropped is abandoned.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from everview.catalog import Catalog, Draft, GroupKind, Maintained, ViewStatus
from everview.change.frontier import Frontier
from everview.errors import ConflictError, EpochError
from everview.maintain.adoption import adopt_views, own_part, record_joined, shared_tables
from everview.maintain.builds import Build, BuildPhase, builds_of
from everview.maintain.epochs import Epochs
from everview.maintain.leaving import drop_members
from everview.maintain.plans import Plans, commit
from everview.maintain.rebuilding import ask_rebuild, is_rebuilt, rebuilt_part, to_rebuild
from everview.maintain.rounds import Rounds
from everview.maintain.table_chunks import next_chunk
from everview.maintain.tasks import Chunk, EpochTask
from everview.maintain.unfinished import lasting_failure
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.members import members_of
from everview.plan.maintenance import MaintenancePlan, continued
from everview.store.contract import StateTable, Store

CHUNK = 100_000
"""Rows that a chunk takes in."""
NEAR = 10_000
"""Log entries between a build and its group from which on it catches up with the group waiting."""


@dataclass(frozen=True)
class Transition:
    """What is done for a build in a phase. It may be repeated."""

    phase: BuildPhase
    work: Callable[[Build, float | None], Build | None]
    """Takes the build and a deadline; returns the build as it is recorded then, None where it is over."""
    leads_to: tuple[BuildPhase | None, ...]
    """The phases in which the build is then; None: it is over."""
    when: Callable[[Build], bool] = lambda build: True
    group_waits: bool = False
    """Whether the target must be between two epochs, and stay there."""


class Builder:
    """Builds views of one store."""

    def __init__(self, store: Store, catalog: Catalog, plans: Plans, epochs: Epochs, chunk: int = CHUNK) -> None:
        self.store = store
        self.catalog = catalog
        self.plans = plans
        self.epochs = epochs
        self.chunk = chunk
        self._outgrown = Rounds("views that were just rebuilt are planned otherwise once more")
        loading, taking, following, joining, adopted = BuildPhase
        self.transitions = (
            Transition(loading, self.abandon, (None,), self.is_abandoned),
            Transition(taking, self.abandon, (None,), self.is_abandoned),
            Transition(following, self.abandon, (None,), self.is_abandoned),
            Transition(loading, self.load, (taking,)),
            Transition(taking, self.take, (loading, following, None)),
            Transition(following, self.meet, (following, joining, None), self.is_near, group_waits=True),
            Transition(following, self.follow, (following,)),
            Transition(joining, self.enter, (following, adopted)),
            Transition(adopted, self.publish, (None,)),
        )
        """In each phase the first that applies is done."""

    # -------------------------------------------------------------- what there is to do

    def builds(self) -> list[Build]:
        """The builds under way."""
        return builds_of(self.store)

    def waiting(self) -> dict[str, list[Maintained]]:
        """Views and indexes that no build is for yet, by the group they are for."""
        taken = {one for build in self.builds() for one in build.views}
        new: dict[str, list[Maintained]] = {}
        definitions = self.catalog.definitions()
        for one in definitions.building():
            if (one.id, one.version) not in taken:
                new.setdefault(one.group, []).append(one)
        again: dict[str, list[Maintained]] = {}
        for one in to_rebuild(self.store, definitions):
            if (one.id, one.version) not in taken:
                again.setdefault(one.group, []).append(one)
        return new | again  # a build is of new views or of old ones; the old ones first, whose state new ones share

    def start(self, target: str, views: Sequence[Maintained]) -> Build:
        """Begin to build these views of a group. One build of a group at a time, and the group's
        plan is as its views are defined now. Views of the group that another version has planned are
        rebuilt first; the new ones wait for them."""
        last = self.plans.last(target)
        held = last[1] if last else None
        replaces = all(one.status is ViewStatus.LIVE for one in views)
        small = None if held is None or replaces else self._small_part(views, held)
        if small is not None:
            return self._started(target, views, *small)
        whole = self._whole(target, views, held)
        outgrown = [] if held is None or replaces else _outgrown(whole, held, self._live(target))
        if outgrown:
            old, new = ({(one.id, one.name) for one in some} for some in (outgrown, views))
            self._outgrown.changed((target, frozenset(old), frozenset(new)))  # once for what is new, not for ever
            ask_rebuild(self.store, [one.id for one in outgrown])
            views, replaces = outgrown, True
            whole = self._whole(target, views, held)
        names = [one.name for one in views]
        shared: dict[str, StateTable] = {}
        if replaces:
            own, rebuilt = rebuilt_part(whole, names)
            views = [one for one in self._live(target) if one.name in rebuilt]
        else:
            own, shared = own_part(whole, names, held)
        return self._started(target, views, own, shared, replaces=replaces)

    def _small_part(
        self, views: Sequence[Maintained], held: BoundPlan
    ) -> tuple[MaintenancePlan, dict[str, StateTable]] | None:
        """What a build of new views runs where they only add to the group's plan, and need none of its other views
        with them: their own plan."""
        own = continued(self.plans.planned(self.catalog.definitions(), views), held.plan)
        if self.plans.joining(held, own) is None:
            return None
        shared, mixed = shared_tables(own, held)
        return None if mixed else (own, shared)

    def _started(
        self,
        target: str,
        views: Sequence[Maintained],
        own: MaintenancePlan,
        shared: dict[str, StateTable],
        *,
        replaces: bool = False,
    ) -> Build:
        """Record a build that runs this plan, with these tables of the group."""

        def work(draft: Draft) -> Build:
            group = draft.fresh_group(GroupKind.BUILDING).name
            bound = self.plans.bound(own, draft, shared, draft.number_state, group)
            versions = tuple((one.id, one.version) for one in views)
            digest, document = self.plans.document(bound)
            first = Chunk(min(bound.tables, default=None))
            build = Build(group, target, versions, digest, BuildPhase.LOADING, first, base=0, replaces=replaces)
            draft.puts |= {**document, build.name: build.document()}
            self.epochs.metrics.allot(draft, group)
            return build

        return self.catalog.change(work)

    def _whole(self, target: str, views: Sequence[Maintained], held: BoundPlan | None) -> MaintenancePlan:
        """The plan of a group with these views."""
        whole = self.plans.planned(self.catalog.definitions(), [*self._live(target), *views])
        return whole if held is None else continued(whole, held.plan)

    def _live(self, target: str) -> Sequence[Maintained]:
        return self.catalog.definitions().live(target)

    # -------------------------------------------------------------- transitions

    def next(self, build: Build) -> Transition:
        """What is to be done for a build."""
        return next(one for one in self.transitions if one.phase is build.phase and one.when(build))

    def step(self, build: Build, deadline: float | None = None) -> Build | None:
        """Do the next transition of a build; None: it is over."""
        transition = self.next(build)
        after = transition.work(build, deadline)
        assert (None if after is None else after.phase) in transition.leads_to
        return after

    def join(self, build: Build, deadline: float | None = None) -> Build | None:
        """Do what a group waits for: all transitions until the build is over, or lets the group go."""
        after: Build | None = build
        while after is not None and after.phase.holds_group:
            after = self.step(after, deadline)
        return after

    def _recorded(self, build: Build) -> Build:
        commit(self.store, lambda _: ({build.name: build.document()}, ()))
        return build

    # -------------------------------------------------------------- chunks

    def load(self, build: Build, deadline: float | None = None) -> Build:
        """Choose where the next chunk ends, record that, and do its epoch."""
        assert build.chunk is not None
        chunk = build.chunk
        with self.store.snapshot() as snapshot:
            build = self._as_defined(build)
            if chunk.table is not None:
                table = self.plans.load(build.plan).tables[chunk.table]
                chunk = next_chunk(snapshot, table, chunk.after, self.chunk, chunk.loaded)
            base = self.store.views.committed(build.group).epoch
            build = self._recorded(replace(build, phase=BuildPhase.TAKING, chunk=chunk, base=base))
            task = EpochTask(build.plan, first=base == 0, chunk=chunk, begun=time.time())
            begun = self.store.views.begin(build.group, snapshot.frontier, task.to_bytes())
            self.epochs.run(begun, snapshot=snapshot)
        return build

    def take(self, build: Build, deadline: float | None = None) -> Build | None:
        """See that the epoch of a chunk is done, and record what comes next: the same chunk again where its epoch
        was never begun. Where a chunk was interrupted whose rows no log can restore, the build is given up,
        and its views wait for another."""
        begun = self.store.views.begun(build.group)
        if begun is not None:
            try:
                self.epochs.run(begun)
            except EpochError as error:
                if type(error) is not EpochError or self.store.log.guarantees.before_images:
                    raise
                self.abandon(build)
                return None
        reached = self.store.views.committed(build.group).epoch
        if reached == build.base:
            return self._recorded(replace(build, phase=BuildPhase.LOADING))
        following = self._following(build)
        phase = BuildPhase.FOLLOWING if following is None else BuildPhase.LOADING
        return self._recorded(replace(build, phase=phase, chunk=following, base=reached))

    def follow(self, build: Build, deadline: float | None = None) -> Build:
        """Take a build whose rows are in one epoch along the logs."""
        goal = self.store.log.latest()
        build = self._as_defined(build)
        self.epochs.step(build.group, build.plan, goal)
        return build

    def _as_defined(self, build: Build) -> Build:
        """The build with the schemas that its tables have now. Called after the next epoch's
        frontier is known, so nothing up to it was written under a newer one."""
        bound = self.plans.load(build.plan)
        again = self.plans.as_defined(bound, self.catalog.definitions())
        return build if again is bound else self._recorded(replace(build, plan=self.plans.record(again)))

    def _following(self, build: Build) -> Chunk | None:
        """Where the chunk after this one begins; None: all rows are in."""
        chunk = build.chunk
        assert chunk is not None
        if chunk.upto is not None:
            return Chunk(chunk.table, after=chunk.upto, loaded=chunk.loaded)
        if chunk.table is None:
            return None
        loaded = (*chunk.loaded, chunk.table)
        left = [name for name in sorted(self.plans.load(build.plan).tables) if name not in loaded]
        return Chunk(left[0], loaded=loaded) if left else None

    # -------------------------------------------------------------- joining

    def is_near(self, build: Build) -> bool:
        """Whether a build whose rows are in is close behind the end of the logs."""
        reached = self.store.views.committed(build.group).frontier
        return reached.operations_to(self.store.log.latest()) <= NEAR

    def meet(self, build: Build, deadline: float | None = None) -> Build | None:
        """Bring build and target to one frontier, and record the plan of both together. Where another process
        takes the target further, nothing is recorded, and it is to be tried again. New views that cannot join
        because the target fails are built again once it is rebuilt."""
        build = self._as_defined(build)
        failure = lasting_failure(lambda: self._catch_up_both(build, deadline))
        if failure is not None:
            if build.replaces or not is_rebuilt(self.store, self.catalog.definitions(), build.target):
                raise failure
            self.abandon(build)
            return None
        base = self._meeting_epoch(build)
        if base is None:
            return build
        joined = record_joined(self.plans, self.catalog, build)
        return self._recorded(replace(build, phase=BuildPhase.JOINING, joined=joined, base=base))

    def _catch_up_both(self, build: Build, deadline: float | None) -> None:
        """Take build and target to the frontier of the one that is further. A target without views is wherever the
        build is; so is one of which nothing is kept, if its epochs fail: then what it has begun is closed as it is."""
        views, target = self.store.views, build.target
        goal = views.committed(build.group).frontier | views.committed(target).frontier
        self._catch_up(build.group, build.plan, goal, deadline)
        last = self.plans.last(target)
        if last is None or not last[1].plan.views:
            return
        digest = last[0]

        def advance_target() -> None:
            self.epochs.fence(target, digest)
            self._catch_up(target, digest, goal, deadline)

        failure = lasting_failure(advance_target)
        if failure is not None:
            if self._keeps(build):
                raise failure
            begun = views.begun(target)
            if begun is not None:
                views.commit(target, begun.epoch)

    def _catch_up(self, group: str, plan: str, goal: Frontier, deadline: float | None) -> None:
        rounds = Rounds(f"group {group} is not at {goal} yet, where new views join", deadline)
        while (done := self.epochs.step(group, plan, goal)) is not None:
            rounds.changed(done.commit.epoch)

    def _keeps(self, build: Build) -> bool:
        """Whether anything stays of what the target keeps."""
        last = self.plans.last(build.target)
        replaced = build.replaces and all(map(build.builds, self._live(build.target)))
        return last is not None and bool(last[1].plan.views) and not replaced

    def _meeting_epoch(self, build: Build) -> int | None:
        """The target's epoch at which the build has met it; None where another process has taken the target on."""
        reached, own = self.store.views.committed(build.target), self.store.views.committed(build.group)
        met = reached.frontier == own.frontier or (reached.frontier <= own.frontier and not self._keeps(build))
        return reached.epoch if met else None

    def enter(self, build: Build, deadline: float | None = None) -> Build:
        """Begin the target's epoch that adopts the views. Where another process has begun a different one all the
        same, the build follows the logs again."""
        assert build.joined is not None
        adopted = self.plans.load(build.plan).states[QUARANTINE]
        task = EpochTask(build.joined, chunk=Chunk(None), adopted=adopted, built=build.plan).to_bytes()
        begun = self.store.views.begun(build.target)
        frontier = self.store.views.committed(build.group).frontier
        with contextlib.suppress(ConflictError):
            begun = begun or self.store.views.begin(build.target, frontier, task, base=build.base)
        if begun is None or begun.plan != task:
            return self._recorded(replace(build, phase=BuildPhase.FOLLOWING, joined=None))
        return self._recorded(replace(build, phase=BuildPhase.ADOPTED, epoch=begun.epoch))

    def publish(self, build: Build, deadline: float | None = None) -> None:
        """Do the target's epoch, make the views readable, and forget the build."""
        begun = self.store.views.begun(build.target)
        if begun is not None and begun.epoch == build.epoch:
            self.epochs.run(begun)
        self.store.views.sweep(build.group)  # no process will, once the group is gone
        adopt_views(self.store, self.plans, self.catalog, self.epochs.metrics, build)

    # -------------------------------------------------------------- builds that are of no use

    def is_abandoned(self, build: Build) -> bool:
        """Whether a view that is being built was dropped or replaced: then the build is of no use."""
        return len(build.views_of(self.catalog.definitions())) < len(build.views)

    def abandon(self, build: Build, deadline: float | None = None) -> None:
        """Forget a build whose views are gone, and what it kept."""
        views = self.store.views
        begun = views.begun(build.group)
        if begun is not None:
            views.commit(build.group, begun.epoch)  # so that no process writes there any more
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
    them. They are maintained as they are, and are rebuilt before anything joins them."""
    new = [step for step in whole.steps if any(state.fingerprint not in held.states for state in step.states)]
    views = {view for step in new for view in whole.users[step.fingerprint]}
    return [one for one in live if one.name in views]
