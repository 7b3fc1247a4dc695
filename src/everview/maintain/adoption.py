"""How a group adopts the views that a build has made: the plan of both, and whose state tables are kept.

A state is named by its fingerprint, so the build's table and the group's hold the same, and the wider one, or the one
with more members, is kept::

    group has             build needs                 build writes           kept on joining
    nothing               PRE-AGGREGATION (a)         a table of its own     the build's
    PRE-AGGREGATION (a)   PRE-AGGREGATION (a)         a table of its own     the group's
    PRE-AGGREGATION (a)   PRE-AGGREGATION (a, b)      a table of its own     the build's
    VIEW of members 1, 2  VIEW of member 3            the group's table      the group's
    VIEW of members 1, 2  VIEW of members 2, 3        all three, its own     the build's

Members have a prefix each, so a build can write into the group's table beside the group.

The plan of both together is bound to the states of both. Once the group's epoch under that plan is committed, one
change of the catalog makes the views readable and forgets the build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.catalog import Catalog, Draft, IndexDefinition, ViewDefinition, ViewStatus
from everview.maintain.builds import Build
from everview.maintain.leaving import tables_left
from everview.maintain.metrics import Metrics
from everview.maintain.plans import GROUPS, Plans, left_document
from everview.maintain.rebuilding import rebuild_document, rebuilt_states
from everview.operators.bound import QUARANTINE, BoundChange, BoundPlan
from everview.plan.maintenance import MaintenancePlan, PlanChange, Step, continued, restricted
from everview.store.contract import StateTable, Store


def record_joined(plans: Plans, catalog: Catalog, build: Build) -> str:
    """Record the target's plan with the views of the build, bound to the states of both; returns its digest. Where the
    views only add to the plan, what they add is recorded."""
    definitions = catalog.definitions()
    own = plans.load(build.plan)
    last = plans.last(build.target)
    views = build.views_of(definitions)
    if last is not None and not build.replaces and len(views) == len(build.views):
        change = plans.joining(last[1], own.plan)
        if change is not None:
            return plans.record_after(last[0], _bound_change(own, last[1], change, build.target))[0]
    whole = plans.planned(definitions, [*definitions.live(build.target), *views])
    if last is not None:
        whole = continued(whole, last[1].plan)
    whole = continued(whole, own.plan)
    if build.replaces and last is not None:
        states = rebuilt_states(own, last[1])
    else:
        states = joined_states(own, last[1] if last is not None else None)
    return plans.record(plans.bound(whole, definitions, states, _refuse_new, build.target))


def _bound_change(own: BoundPlan, held: BoundPlan, change: PlanChange, target: str) -> BoundChange:
    """What the views of a build add to the target's plan, bound to the states of both."""
    states = {named: replace(table, group=target) for named, table in joined_states(own, held).items()}
    return BoundChange.between(held, change, own.tables, states, held.planner)


def adopt_views(store: Store, plans: Plans, catalog: Catalog, metrics: Metrics, build: Build) -> None:
    """Make the views of a build readable, and forget the build."""
    assert build.joined is not None
    joined = build.joined
    bound = plans.load(joined)
    own = plans.load(build.plan)
    last = plans.last(build.target)
    reached = store.views.committed(build.target).epoch
    states = StatesOf(bound)

    def work(draft: Draft) -> None:
        kept = {table.id for table in bound.states.values()}
        draft.forget(table for table in catalog.discarded() if table.id in kept)
        draft.adopt(bound.states.values())
        moved = last is None or any(bound.states.get(named) != table for named, table in last[1].states.items())
        for one in (*(draft.live(build.target) if moved else ()), *build.views_of(draft)):
            if one.group != build.target or one.name not in bound.plan.by_name:
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
            if moved or not bound.plan.is_more_than(last[1].plan):
                draft.puts[left_document(build.target, last[0])] = b""
        if any(view.name not in bound.plan.by_name for view in own.plan.views):  # dropped when they were about to join
            draft.puts[left_document(build.target, build.plan)] = b""
        draft.puts[GROUPS + build.target] = plans.group_document(build.target, joined, reached)
        draft.deletes.add(build.name)
        if build.replaces:
            draft.deletes.update(rebuild_document(id) for id, _ in build.views)
        metrics.leave(draft, build.group)
        draft.drop_group(build.group)

    catalog.change(work)


def _refuse_new(table: StateTable) -> StateTable:
    raise AssertionError(f"neither the build nor its group keeps {table.name}")


def own_part(
    whole: MaintenancePlan, names: Sequence[str], held: BoundPlan | None
) -> tuple[MaintenancePlan, dict[str, StateTable]]:
    """The part of a group's next plan that a build runs, and the tables of the group that it writes
    into: those whose records are distinguished by members, of which the group has none of the build's.
    Where the group has some of the members, or holds less of each, the build takes them all."""
    asked = set(names)
    while True:
        own = restricted(whole, sorted(asked))
        shared: dict[str, StateTable]
        mixed: Sequence[Step]
        shared, mixed = ({}, []) if held is None else shared_tables(own, held)
        needed = {view for step in mixed for view in whole.users[step.fingerprint]}
        if needed <= asked:
            return own, shared
        asked |= needed


def shared_tables(own: MaintenancePlan, held: BoundPlan) -> tuple[dict[str, StateTable], list[Step]]:
    """The tables of a group that a build with this plan writes into; and the steps of which the group has some of the
    build's members, or holds less of each."""
    known = held.plan.by_fingerprint
    shared: dict[str, StateTable] = {}
    mixed: list[Step] = []
    for step in own.steps:
        before = known.get(step.fingerprint)
        if before is None or before.constants is None or step.constants is None:
            continue
        mine, theirs = step.constants, before.constants
        same = [state.fields for state in step.states] == [state.fields for state in before.states]
        if same and not any(row in theirs.rows for row in mine.members):
            shared |= {state.fingerprint: held.states[state.fingerprint] for state in step.states}
        elif step.states and not (same and theirs.contains(mine)) and not mine.contains(theirs):
            mixed.append(step)
    return shared, mixed


def joined_states(own: BoundPlan, last: BoundPlan | None) -> dict[str, StateTable]:
    """The tables of the group after a build has joined it."""
    found = dict(own.states)
    if last is not None:
        mine, theirs = _keepers(own), _keepers(last)
        for named, table in last.states.items():
            if named not in mine or not _is_replaced(mine[named], theirs[named]):
                found[named] = table
    return found


def _keepers(bound: BoundPlan) -> dict[str, Step]:
    return {state.fingerprint: step for step in bound.plan.steps for state in step.states}


def _is_replaced(mine: Step, theirs: Step) -> bool:
    """Whether the build's state takes the place of the group's: it holds more columns, or members
    that the group's does not."""
    if not set(mine.states[0].fields) <= set(theirs.states[0].fields):
        return True
    if mine.constants is None or theirs.constants is None:
        return False
    return not theirs.constants.contains(mine.constants)


class StatesOf:
    """The state tables that views of a plan need, each one's own last."""

    def __init__(self, bound: BoundPlan) -> None:
        self._bound = bound
        self._found: dict[str, dict[int, StateTable]] = {}

    def view(self, name: str) -> tuple[StateTable, ...]:
        quarantine = self._bound.states[QUARANTINE]
        below = self._step(self._bound.plan.view(name).step)
        return tuple(({quarantine.id: quarantine} | below).values())

    def _step(self, fingerprint: str) -> dict[int, StateTable]:
        found = self._found.get(fingerprint)
        if found is None:
            step = self._bound.plan.step(fingerprint)
            found = {}
            for one in step.inputs:
                found |= self._step(one.step)
            tables = [self._bound.states[state.fingerprint] for state in step.states]
            found |= {table.id: table for table in tables}
            self._found[fingerprint] = found
        return found
