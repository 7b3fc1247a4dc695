"""Views that are being built: from rows that are there already to where their group is.

One sentence: a build is a group of its own that takes in the base tables chunk by chunk, follows
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
take the place of narrower ones of the group.

The build's document says where it is::

    maintenance/build/<group>     target, views, plan, the chunk under way, whether it is joining
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everview.catalog import Catalog, Draft, GroupKind, IndexDefinition, Maintained, ViewDefinition, ViewStatus
from everview.change.frontier import Frontier
from everview.maintain.chunks import next_chunk
from everview.maintain.epochs import Epochs
from everview.maintain.plans import GROUPS, Plans, commit, group_document
from everview.maintain.tasks import Chunk, EpochTask, chunk_from_json, chunk_to_json
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.members import members_of
from everview.plan.maintenance import MaintenancePlan, Shape, Step, continued, restricted
from everview.store.contract import StateTable, Store

BUILDS = "maintenance/build/"
CHUNK = 100_000
"""Rows that a chunk takes in."""
NEAR = 10_000
"""Log entries between a build and its group from which on it catches up with the group waiting."""


@dataclass(frozen=True)
class Build:
    """Where a build is."""

    group: str
    target: str
    ids: tuple[int, ...]
    """Of the views and indexes that it builds."""
    plan: str
    chunk: Chunk | None
    """The chunk to take in next; None: all rows are in."""
    base: int
    """The build's last committed epoch when the chunk was chosen: a later one is the chunk's."""
    started: bool = False
    joined: str | None = None
    """The plan with which the target's next epoch makes the views its own."""

    def document(self) -> dict[str, bytes]:
        said: dict[str, Any] = {
            "target": self.target,
            "ids": self.ids,
            "plan": self.plan,
            "chunk": None if self.chunk is None else chunk_to_json(self.chunk),
            "base": self.base,
            "started": self.started,
            "joined": self.joined,
        }
        return {BUILDS + self.group: json.dumps(said).encode()}

    @staticmethod
    def of(name: str, document: bytes) -> Build:
        said = json.loads(document)
        chunk = None if said["chunk"] is None else chunk_from_json(said["chunk"])
        group = name.removeprefix(BUILDS)
        return Build(
            group,
            said["target"],
            tuple(said["ids"]),
            said["plan"],
            chunk,
            said["base"],
            said["started"],
            said["joined"],
        )


class Builder:
    """Builds views of one store."""

    def __init__(self, store: Store, catalog: Catalog, plans: Plans, epochs: Epochs) -> None:
        self.store = store
        self.catalog = catalog
        self.plans = plans
        self.epochs = epochs

    # -------------------------------------------------------------- what there is to do

    def builds(self) -> list[Build]:
        """The builds under way."""
        _, found = self.store.metadata.documents(BUILDS)
        return [Build.of(name, found[name]) for name in sorted(found)]

    def waiting(self) -> dict[str, list[Maintained]]:
        """Views and indexes that nobody builds yet, by the group they are for."""
        definitions = self.catalog.definitions()
        taken = {id for build in self.builds() for id in build.ids}
        found: dict[str, list[Maintained]] = {}
        for one in definitions.maintained():
            if one.status is ViewStatus.BUILDING and one.id not in taken:
                found.setdefault(one.group, []).append(one)
        return found

    def start(self, target: str, found: Sequence[Maintained]) -> Build:
        """Begin to build these views of a group. One build of a group at a time."""
        last = self.plans.last(target)
        held = last[1] if last else None
        whole = self.plans.planned(self.catalog.definitions(), [*self._live(target), *found])
        whole = whole if held is None else continued(whole, held.plan)
        own, shared = _own_part(whole, [one.name for one in found], held)

        def work(draft: Draft) -> BoundPlan:
            group = draft.fresh_group(GroupKind.BUILDING).name
            return self.plans.bound(own, draft, shared, draft.number_state, group)

        bound = self.catalog.change(work)
        return self._recorded(
            Build(
                bound.states[QUARANTINE].group,
                target,
                tuple(one.id for one in found),
                self.plans.record(bound),
                Chunk(min(bound.tables, default=None)),
                base=0,
            )
        )

    def _live(self, target: str) -> list[Maintained]:
        definitions = self.catalog.definitions()
        return [one for one in definitions.maintained() if one.group == target and one.status is ViewStatus.LIVE]

    # -------------------------------------------------------------- chunks

    def advance(self, build: Build) -> Build:
        """One epoch of a build: the next chunk, or a step along the log."""
        begun = self.store.views.begun(build.group)
        if begun is not None:
            self.epochs.run(begun)
        committed = self.store.views.committed(build.group)
        if build.chunk is None:
            self.epochs.step(build.group, build.plan, self.store.log.latest())
            return build
        if build.started and committed.epoch > build.base:
            return self._recorded(replace(build, chunk=self._following(build), base=committed.epoch, started=False))
        return self._take(build)

    def _take(self, build: Build) -> Build:
        """Choose where the next chunk ends, record it, and take it in."""
        assert build.chunk is not None
        chunk = build.chunk
        bound = self.plans.load(build.plan)
        with self.store.snapshot() as snapshot:
            if chunk.table is not None:
                chunk = next_chunk(snapshot, bound.tables[chunk.table], chunk.after, CHUNK, chunk.loaded)
            frontier = snapshot.frontier
        base = self.store.views.committed(build.group).epoch
        build = self._recorded(replace(build, chunk=chunk, base=base, started=True))
        task = EpochTask(build.plan, first=base == 0, chunk=chunk)
        self.epochs.run(self.store.views.begin(build.group, frontier, task.to_bytes()))
        return self.advance(build)

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
        commit(self.store, lambda _: (build.document(), ()))
        return build

    # -------------------------------------------------------------- joining

    def near(self, build: Build) -> bool:
        """Whether all rows are in and the build is close behind the end of the logs."""
        if build.chunk is not None:
            return False
        reached = self.store.views.committed(build.group).frontier
        return reached.operations_to(self.store.log.latest()) <= NEAR

    def join(self, build: Build) -> None:
        """Make the views the target's own. The target is between two epochs, and stays there."""
        target = build.target
        if build.joined is None:
            self._meet(build)
            bound = self._joined(build)
            build = self._recorded(
                replace(build, joined=self.plans.record(bound), base=self.store.views.committed(target).epoch)
            )
        assert build.joined is not None
        if self.store.views.committed(target).epoch <= build.base:
            frontier = self.store.views.committed(build.group).frontier
            adopted = self.plans.load(build.plan).states[QUARANTINE]
            task = EpochTask(build.joined, chunk=Chunk(None), adopted=adopted)
            self.epochs.run(self.store.views.begin(target, frontier, task.to_bytes()))
        self._publish(build)

    def _meet(self, build: Build) -> None:
        """Bring build and target to one frontier. A target without views is wherever the build is."""
        reached = self.store.views.committed(build.target).frontier
        goal = self.store.views.committed(build.group).frontier | reached
        self._catch_up(build.group, build.plan, goal)
        last = self.plans.last(build.target)
        if last is not None and self._live(build.target):
            self._catch_up(build.target, last[0], goal)

    def _catch_up(self, group: str, plan: str, goal: Frontier) -> None:
        while self.epochs.step(group, plan, goal) is not None:
            pass

    def _joined(self, build: Build) -> BoundPlan:
        """The target's plan with the views of the build, bound to the states of both."""
        definitions = self.catalog.definitions()
        own = self.plans.load(build.plan)
        last = self.plans.last(build.target)
        found = [definitions.by_id(id) for id in build.ids]
        views = [one for one in found if isinstance(one, ViewDefinition | IndexDefinition)]
        whole = self.plans.planned(definitions, [*self._live(build.target), *views])
        states = dict(own.states)
        if last is not None:
            whole = continued(whole, last[1].plan)
            states |= {named: t for named, t in last[1].states.items() if not _replaced(named, own, last[1])}
        whole = continued(whole, own.plan)
        return self.plans.bound(whole, definitions, states, _known, build.target)

    def _publish(self, build: Build) -> None:
        """Tell everybody that the views can be read, and forget the build."""
        assert build.joined is not None
        joined = build.joined
        bound = self.plans.load(joined)
        own = self.plans.load(build.plan)
        reached = self.store.views.committed(build.target).epoch

        def work(draft: Draft) -> None:
            draft.adopt(bound.states.values())
            for one in draft.maintained():
                if one.name not in bound.plan.by_name or one.group != build.target:
                    continue
                tables = states_of(bound, one.name)
                if one.status is ViewStatus.LIVE and one.state == tables:
                    continue
                if isinstance(one, ViewDefinition):
                    draft.alter_view(one.name, status=ViewStatus.LIVE, state=tables)
                else:
                    draft.alter_index(one.name, status=ViewStatus.LIVE, state=tables)
            kept = {table.id for table in bound.states.values()}
            draft.discard(table for table in own.states.values() if table.id not in kept)
            draft.puts[GROUPS + build.target] = group_document(joined, reached)
            draft.deletes.add(BUILDS + build.group)
            draft.drop_group(build.group)

        self.catalog.change(work)

    def abandon(self, build: Build) -> None:
        """Forget a build whose views are gone, and what it kept."""
        own = self.plans.load(build.plan)
        last = self.plans.last(build.target)
        kept = {table.id for table in last[1].states.values()} if last else set()
        for step in own.plan.steps:
            members = members_of(step, own.plan)
            if members is not None and any(own.states[state.fingerprint].id in kept for state in step.states):
                drop_members(self.store, own, step, members.tags.to_pylist())

        def work(draft: Draft) -> None:
            draft.discard(table for table in own.states.values() if table.id not in kept)
            draft.deletes.add(BUILDS + build.group)
            draft.drop_group(build.group)

        self.catalog.change(work)


def drop_members(store: Store, bound: BoundPlan, step: Step, tags: Iterable[bytes]) -> None:
    """Remove the state of members that are gone."""
    for state in step.states:
        drop = store.views.drop if state.shape is Shape.RECORD else store.views.drop_bags
        for tag in tags:
            drop(bound.states[state.fingerprint], tag)


def states_of(bound: BoundPlan, name: str) -> tuple[StateTable, ...]:
    """The state tables that a view of a plan needs, its own last."""
    found = {bound.states[QUARANTINE].id: bound.states[QUARANTINE]}
    for step in bound.plan.steps_of(name):
        for state in step.states:
            table = bound.states[state.fingerprint]
            found[table.id] = table
    return tuple(found.values())


def _known(table: StateTable) -> StateTable:
    raise AssertionError(f"neither the build nor its group keeps {table.name}")


def _own_part(
    whole: MaintenancePlan, names: Sequence[str], held: BoundPlan | None
) -> tuple[MaintenancePlan, dict[str, StateTable]]:
    """The part of a group's next plan that a build runs, and the tables of the group that it writes
    into: those whose records are told apart by members, of which the group has none of the build's.
    Where the group has some of the members, or holds less of each, the build takes them all."""
    known = {} if held is None else held.plan.by_fingerprint
    asked = set(names)
    while True:
        own = restricted(whole, sorted(asked))
        shared: dict[str, StateTable] = {}
        mixed: set[str] = set()
        for step in own.steps:
            before = known.get(step.fingerprint)
            if before is None or held is None or before.constants is None or step.constants is None:
                continue
            mine, theirs = set(step.constants.members), set(before.constants.members)
            same = step.states == before.states
            if same and mine.isdisjoint(theirs):
                shared |= {state.fingerprint: held.states[state.fingerprint] for state in step.states}
            elif step.states and not (same and mine <= theirs) and not mine >= theirs:
                mixed |= set(whole.users[step.fingerprint])
        if mixed <= asked:
            return own, shared
        asked |= mixed


def _replaced(named: str, own: BoundPlan, last: BoundPlan) -> bool:
    """Whether the build's table of a state takes the place of the group's: it holds more columns,
    or members that the group's does not."""
    if named not in own.states or named == QUARANTINE or own.states[named].id == last.states[named].id:
        return False
    mine, theirs = (
        next(step for step in bound.plan.steps for state in step.states if state.fingerprint == named)
        for bound in (own, last)
    )
    if not set(mine.states[0].fields) <= set(theirs.states[0].fields):
        return True
    if mine.constants is None or theirs.constants is None:
        return False
    return not set(mine.constants.members) <= set(theirs.constants.members)
