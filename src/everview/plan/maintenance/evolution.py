"""Plans of a group one after another: a part of one, one that keeps what another held, and their difference.

Views come and go while state stays, so a plan can be cut down to some views, and a
new plan keeps the columns of every state that the last plan kept.

A fingerprint names what a step computes, and views only ever add columns to it. So the columns of
two plans' steps of the same fingerprint go together, and what a dropped view alone had needed
of a shared state is still maintained there: the state's rows stay as they are, and nothing is
built again because a view went.

For the difference of two plans, state is compared by fingerprint and by the columns it holds, so it
is known what a restart may keep, what must be built, and what may go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from everview.plan.expressions import Field
from everview.plan.maintenance.fingerprint import member_fingerprint
from everview.plan.maintenance.model import MaintenancePlan, State, Step


def restricted(plan: MaintenancePlan, views: Collection[str]) -> MaintenancePlan:
    """The part of a plan that maintains these views: its steps, and of families the members."""
    views = frozenset(views)
    members = _members(plan, views)
    steps = tuple(_with_members(step, members[step.fingerprint]) for step in plan.steps_of(*views))
    kept = {step.fingerprint for step in steps}
    zones = [
        replace(zone, steps=left) for zone in plan.zones if (left := tuple(one for one in zone.steps if one in kept))
    ]
    families = [
        replace(family, views=left)
        for family in plan.families
        if len(left := tuple(name for name in family.views if name in views)) > 1
    ]
    return MaintenancePlan(
        tuple(use for use in plan.tables if use.step in kept),
        steps,
        tuple(zones),
        tuple(view for view in plan.views if view.name in views),
        tuple(families),
        plan.before_images,
    )


def _members(plan: MaintenancePlan, views: Collection[str]) -> dict[str, set[tuple[str, ...]]]:
    """For each step the members that these views need."""
    found: dict[str, set[tuple[str, ...]]] = {step.fingerprint: set() for step in plan.steps}
    for name in views:
        view = plan.view(name)
        found[view.step].add(view.constants)
    for step in reversed(plan.steps):
        at = 0
        for one in step.inputs:
            constants = plan.step(one.step).constants
            width = len(constants.types) if constants else 0
            found[one.step].update(row[at : at + width] for row in found[step.fingerprint])
            at += width
    return found


def _with_members(step: Step, members: set[tuple[str, ...]]) -> Step:
    if step.constants is None:
        return step
    kept = tuple(row for row in step.constants.members if row in members)
    return replace(step, constants=replace(step.constants, members=kept))


def continued(plan: MaintenancePlan, last: MaintenancePlan) -> MaintenancePlan:
    """A plan that goes on after another: its steps, with all that the last plan's held."""
    known = last.by_fingerprint
    steps = tuple(_widened(step, known[step.fingerprint]) if step.fingerprint in known else step for step in plan.steps)
    used = {use.step: use for use in last.tables}
    tables = tuple(
        replace(use, columns=fields_of_both(use.columns, used[use.step].columns)) if use.step in used else use
        for use in plan.tables
    )
    return replace(plan, steps=steps, tables=tables)


def _widened(step: Step, held: Step) -> Step:
    states = tuple(_state(state, before) for state, before in zip(step.states, held.states, strict=True))
    return replace(
        step,
        fields=fields_of_both(step.fields, held.fields),
        operator=step.operator.widened(held.operator),
        states=states,
    )


def _state(state: State, held: State) -> State:
    return replace(state, fields=fields_of_both(state.fields, held.fields))


def fields_of_both(fields: Iterable[Field], held: Iterable[Field]) -> tuple[Field, ...]:
    """Fields of both, in the order of their names; nullable where either is."""
    both = {field.name: field for field in fields}
    for field in held:
        known = both.get(field.name)
        if known is None or (field.nullable and not known.nullable):
            both[field.name] = field
    return tuple(both[name] for name in sorted(both))


@dataclass(frozen=True)
class PlanDifference:
    """State tables by fingerprint, members of families one by one."""

    kept: tuple[str, ...]
    built: tuple[str, ...]
    widened: Mapping[str, tuple[str, ...]]
    """Kept, but columns are missing: these."""
    dropped: tuple[str, ...]


def difference(old: MaintenancePlan, new: MaintenancePlan) -> PlanDifference:
    """From one plan of a group to the next."""
    before, after = _columns(old), _columns(new)
    both = before.keys() & after.keys()
    missing = {one: tuple(sorted(after[one] - before[one])) for one in sorted(both)}
    return PlanDifference(
        tuple(one for one, columns in missing.items() if not columns),
        tuple(sorted(after.keys() - before.keys())),
        {one: columns for one, columns in missing.items() if columns},
        tuple(sorted(before.keys() - after.keys())),
    )


def _columns(plan: MaintenancePlan) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for step in plan.steps:
        for state in step.states:
            held = frozenset(field.name for field in state.fields)
            for constants in step.constants.members if step.constants else [()]:
                found[member_fingerprint(state.fingerprint, constants)] = held
    return found
