"""What views leave behind, and how it goes.

State under a prefix of its own goes when the plan that had it is replaced, whole
tables are marked in the catalog and go when no plan names them any more.

A drop belongs to no epoch. It is done when the plan without it is recorded and no epoch of an older
one is under way; until then a document records that there is something to drop
(:func:`~everview.maintain.plans.left_document`), so one that was interrupted is done again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.members import tags_gone
from everview.operators.quarantine_records import gone_prefixes
from everview.plan.maintenance import Shape, Step
from everview.store.contract import StateTable, Store


def drop_gone(store: Store, last: BoundPlan, now: BoundPlan | None, kept: Collection[int]) -> None:
    """Remove what the last plan's steps keep under prefixes of their own and the next one's do not:
    in tables that stay, because the next plan or a build (``kept``, ids) writes there."""
    stay = set(kept) | (set() if now is None else {table.id for table in now.states.values()})
    known = {} if now is None else now.plan.by_fingerprint
    quarantine = last.states[QUARANTINE]
    if now is not None and quarantine.id in stay:
        for prefix in gone_prefixes(last.plan, now.plan):
            store.views.drop(quarantine, prefix)
    for step in last.plan.steps:
        tags = tags_gone(step, known.get(step.fingerprint))
        if tags and any(last.states[state.fingerprint].id in stay for state in step.states):
            drop_members(store, last, step, sorted(tags))


def drop_members(store: Store, bound: BoundPlan, step: Step, tags: Iterable[bytes]) -> None:
    """Remove the state of members that are gone."""
    for state in step.states:
        drop = store.views.drop if state.shape is Shape.RECORD else store.views.drop_bags
        for tag in tags:
            drop(bound.states[state.fingerprint], tag)


def tables_left(last: BoundPlan, now: BoundPlan | None) -> list[StateTable]:
    """The tables that only the last plan names."""
    stay = set() if now is None else {table.id for table in now.states.values()}
    return [table for table in last.states.values() if table.id not in stay]
