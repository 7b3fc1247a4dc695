"""How a group adopts the views that a build has made.

The plan of both together is bound to the states of both; once the group's epoch under that plan is committed, one
change of the catalog makes the views readable and forgets the build.

What a build keeps is its own until then: of the states that its group has already in the same columns the build's
are dropped, all others stay, and take the place of narrower ones of the group (:mod:`everview.maintain.sharing`).
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.catalog import Catalog, Draft, IndexDefinition, Maintained, ViewDefinition, ViewStatus
from everview.maintain.builds import Build
from everview.maintain.leaving import tables_left
from everview.maintain.metrics import Metrics
from everview.maintain.plans import GROUPS, Plans, left_document
from everview.maintain.rebuilding import rebuild_document, rebuilt_states
from everview.maintain.sharing import StatesOf, joined_states
from everview.operators.bound import BoundPlan
from everview.plan.maintenance import continued
from everview.store.contract import StateTable, Store


def joined_plan(plans: Plans, catalog: Catalog, build: Build, live: Sequence[Maintained]) -> BoundPlan:
    """The target's plan with the views of the build, bound to the states of both."""
    definitions = catalog.definitions()
    own = plans.load(build.plan)
    last = plans.last(build.target)
    views = [one for one in definitions.maintained() if build.builds(one)]
    whole = plans.planned(definitions, [*live, *views])
    if last is not None:
        whole = continued(whole, last[1].plan)
    whole = continued(whole, own.plan)
    if build.replaces and last is not None:
        states = rebuilt_states(own, last[1])
    else:
        states = joined_states(own, last[1] if last is not None else None)
    return plans.bound(whole, definitions, states, _refuse_new, build.target)


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
        draft.puts[GROUPS + build.target] = plans.group_document(build.target, joined, reached)
        draft.deletes.add(build.name)
        if build.replaces:
            draft.deletes.update(rebuild_document(id) for id, _ in build.views)
        metrics.leave(draft, build.group)
        draft.drop_group(build.group)

    catalog.change(work)


def _refuse_new(table: StateTable) -> StateTable:
    raise AssertionError(f"neither the build nor its group keeps {table.name}")
