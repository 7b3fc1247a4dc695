"""Changes of a group's plan: what views that come or go add to it, and take from it.

A group may have many thousands of views, and they come one at a time. So the plan of a group with one more is not
planned again from all of them: the new views are planned alone, and what is new of that is a :class:`PlanChange`.
A change is recorded as it is, and applied to the plan before it, so that its maker and every reader of it have the same
plan::

    plan of 12,800 views ──────────────╮
    plan of one more view ──▶ joined ──▶ change ──▶ changed ──▶ plan of 12,801 views

Fingerprints make that possible: a view's steps have the same names in its own plan as in the group's. Where both plans
do not lie over each other as they are (a step is in another stage because of other views) there is no change, and the
whole group is planned again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter

from immutables import Map

from everview.change.types import Type
from everview.plan.maintenance.column_names import filled
from everview.plan.maintenance.evolution import fields_of_both
from everview.plan.maintenance.family import NUMBER, parameter_type
from everview.plan.maintenance.fixing import called, family_title, title_of
from everview.plan.maintenance.model import (
    Constants,
    Family,
    MaintenancePlan,
    PlannedView,
    State,
    Step,
    TableUse,
    Zone,
)
from everview.plan.maintenance.operator_definitions import AnyOperator

Row = tuple[str, ...]
FEW = 8
"""More than a title names."""

_NUMBER = re.compile(r"\d+(\.\d+)?")
_NAME = attrgetter("name")


@dataclass(frozen=True)
class ChangedStep:
    """A step that is new or has changed, and who its members are."""

    fingerprint: str
    step: Step | None
    """Without its members; None: only members have changed."""
    types: tuple[Type, ...] = ()
    """Of the parameters that its members give values to; none: it has no members."""
    entered: tuple[Row, ...] = ()
    left: tuple[Row, ...] = ()


@dataclass(frozen=True)
class PlanChange:
    """From one plan of a group to the next."""

    entered: tuple[PlannedView, ...] = ()
    left: tuple[str, ...] = ()
    """Names of views."""
    steps: tuple[ChangedStep, ...] = ()
    """New ones after those they read."""
    gone: tuple[str, ...] = ()
    """Steps."""
    zones: tuple[Zone, ...] | None = None
    """All of them; None: those that there were."""
    tables: tuple[TableUse, ...] = ()
    """New or with more columns."""
    families: tuple[Family, ...] = ()
    """New ones."""


# ------------------------------------------------------------------ views that come


def joined(held: MaintenancePlan, own: MaintenancePlan) -> PlanChange | None:
    """What new views add to the plan of a group: ``own`` is theirs alone, continued after the group's. None where the
    whole group has to be planned."""
    known = held.by_fingerprint
    if held.before_images != own.before_images or any(view.name in held.by_name for view in own.views):
        return None
    steps: list[ChangedStep] = []
    for step in own.steps:
        if step.fingerprint not in known:
            types = () if step.constants is None else step.constants.types
            steps.append(ChangedStep(step.fingerprint, replace(step, constants=None), types, tuple(_members(step))))
            continue
        if not _lies_over(held, own, step):
            return None
        found = _joined_step(held, own, step)
        if found is None:
            return None
        if found.step is not None or found.entered:
            steps.append(found)
    zones = _joined_zones(held, own)
    if zones is None:
        return None
    uses = {use.name: use for use in held.tables}
    tables: list[TableUse] = []
    for use in own.tables:
        before = uses.get(use.name)
        wide = use if before is None else replace(use, columns=fields_of_both(use.columns, before.columns))
        if wide != before:
            tables.append(wide)
    added = any(step.fingerprint not in known for step in own.steps)
    return PlanChange(
        own.views,
        steps=tuple(steps),
        zones=zones if added else None,
        tables=tuple(tables),
        families=tuple(family for family in own.families if family.step not in known),
    )


def _lies_over(held: MaintenancePlan, own: MaintenancePlan, step: Step) -> bool:
    """Whether a step is in the same place in both plans."""
    known = held.step(step.fingerprint)
    return (
        known.inputs == step.inputs
        and known.zone_key == step.zone_key
        and held.zone_of[step.fingerprint].stage == own.zone_of[step.fingerprint].stage
    )


def _joined_step(held: MaintenancePlan, own: MaintenancePlan, step: Step) -> ChangedStep | None:
    """A step that the group has already, with what the new views need of it beyond."""
    known = held.step(step.fingerprint)
    types: tuple[Type, ...] | None = ()
    entered: list[Row] = []
    if known.constants is not None and step.constants is not None:
        entered = [row for row in step.constants.members if row not in known.constants.rows]
        types = _types_of_both(known.constants, step.constants) if entered else known.constants.types
    if types is None:
        return None
    operator = known.operator.widened(step.operator)  # another name may mean the same: it keeps the one it has
    title = known.title
    if operator != known.operator or (entered and known.members == 1):
        title = _titled(operator, title, (*_rows(known), *entered))
    states = tuple(replace(old, fields=new.fields) for new, old in zip(step.states, known.states, strict=True))
    written = [view.name for view in own.views if view.step == step.fingerprint]
    if written and states:
        before = _written_by(held, step.fingerprint)
        first = sorted([*before[:FEW], *written])
        title, states = _written(first, len(before) + len(written), states)
    again = replace(step, title=title, operator=operator, states=states, constants=known.constants)
    changed = replace(again, constants=None) if again != known else None
    return ChangedStep(step.fingerprint, changed, types, tuple(entered))


def _titled(operator: AnyOperator, before: str, rows: Sequence[Row]) -> str:
    """What a step is called that has these members: with the constants of the only one."""
    title = title_of(operator, before)
    return filled(title, rows[0]) if len(rows) == 1 else title


def _written(first: Sequence[str], count: int, states: Sequence[State]) -> tuple[str, tuple[State, ...]]:
    """What a step is called that writes so many views, of which these are the first, and what its states are."""
    title = called(first[:count], count)
    return title, tuple(replace(state, name=f"{state.role.value} {title}") for state in states)


def _types_of_both(held: Constants, own: Constants) -> tuple[Type, ...] | None:
    """Types of parameters for the constants of both; None where it takes more to know them."""
    found: list[Type] = []
    for number, (one, other) in enumerate(zip(held.types, own.types, strict=True)):
        if one == other:
            found.append(one)
            continue
        constants = [row[number] for row in (*held.members, *own.members)]
        if not all(map(_NUMBER.fullmatch, constants)):
            return None
        found.append(parameter_type(NUMBER, constants))
    return tuple(found)


def _written_by(plan: MaintenancePlan, step: str) -> Sequence[str]:
    """The names of the views that a step writes, in their order."""
    family = plan.family_of.get(step)
    if family is not None:
        return family.views
    return [view.name for view in plan.views if view.step == step]


def _joined_zones(held: MaintenancePlan, own: MaintenancePlan) -> tuple[Zone, ...] | None:
    """The zones with the new steps: a step is where its inputs are, and where the same changes are read."""
    known = held.by_fingerprint
    zones = {number: list(zone.steps) for number, zone in enumerate(held.zones)}
    described = dict(enumerate(held.zones))
    place = {fingerprint: number for number, steps in zones.items() for fingerprint in steps}
    readers = {
        (one.step, one.key, held.zone_of[step.fingerprint].stage): place[step.fingerprint]
        for step in held.steps
        for one in step.inputs
        if one.key is not None
    }
    for step in own.steps:
        if step.fingerprint in known:
            continue
        stage = own.zone_of[step.fingerprint].stage
        met = {place[one.step] for one in step.inputs if one.key is None}
        sent = [(one.step, one.key, stage) for one in step.inputs if one.key is not None]
        met |= {readers[one] for one in sent if one in readers}
        if len(met) > 1:
            return None
        number = next(iter(met), len(zones))
        if number not in zones:
            zones[number], described[number] = [], Zone(number, stage, step.zone_key, ())
        elif described[number].stage != stage:
            return None
        zones[number].append(step.fingerprint)
        place[step.fingerprint] = number
        readers |= dict.fromkeys(sent, number)
    return _numbered(replace(described[number], steps=tuple(steps)) for number, steps in zones.items())


def _numbered(zones: Iterable[Zone]) -> tuple[Zone, ...]:
    ordered = sorted(zones, key=lambda zone: zone.stage)
    return tuple(replace(zone, number=number) for number, zone in enumerate(ordered, start=1))


# ------------------------------------------------------------------ views that go


def without(held: MaintenancePlan, names: Collection[str]) -> PlanChange | None:
    """What goes with views. What they alone had needed of a step that stays is still kept in it: nothing is built again
    because a view went. None where the whole group has to be planned."""
    gone_views = [held.view(name) for name in names]
    left: dict[str, set[Row]] = {}
    for view in gone_views:
        left.setdefault(view.step, set()).add(view.constants)
    consumers: dict[str, list[tuple[Step, int, int]]] = {}
    for step in held.steps:
        at = 0
        for one in step.inputs:
            constants = held.step(one.step).constants
            width = len(constants.types) if constants else 0
            consumers.setdefault(one.step, []).append((step, at, at + width))
            at += width
    going = Counter((view.step, view.constants) for view in gone_views)
    steps: list[ChangedStep] = []
    gone: set[str] = set()
    for step in reversed(held.steps):
        readers = consumers.get(step.fingerprint, ())
        leaving = set(left.get(step.fingerprint, ()))
        for consumer, start, end in readers:
            leaving |= {row[start:end] for row in left.get(consumer.fingerprint, ())}
        if not leaving:
            continue
        leaving -= {
            row for row in leaving if held.written.get((step.fingerprint, row), 0) > going[step.fingerprint, row]
        }
        for consumer, start, end in readers:
            leaving -= _still_read(consumer, start, end, leaving, left.get(consumer.fingerprint, set()))
        left[step.fingerprint] = leaving
        if len(leaving) == step.members:
            gone.add(step.fingerprint)
            continue
        found = _step_without(held, step, leaving, names)
        if found is None:
            return None
        steps.append(found)
    zones = [replace(zone, steps=tuple(one for one in zone.steps if one not in gone)) for zone in held.zones]
    return PlanChange(
        left=tuple(sorted(names)),
        steps=tuple(one for one in reversed(steps) if one.step is not None or one.left),
        gone=tuple(step.fingerprint for step in held.steps if step.fingerprint in gone),
        zones=_numbered(zone for zone in zones if zone.steps) if gone else None,
    )


def _still_read(consumer: Step, start: int, end: int, rows: set[Row], gone: set[Row]) -> set[Row]:
    """Those of a step's members, of which some are about to go, that stay because a step that reads them stays."""
    if consumer.constants is None:
        return set() if gone else {()}
    if start == end:  # all of its members read the same
        return {()} if any(row not in gone for row in consumer.constants.members) else set()
    if (start, end) == (0, len(consumer.constants.types)):
        return {row for row in rows if row in consumer.constants.rows and row not in gone}
    return {row[start:end] for row in consumer.constants.members if row not in gone}


def _step_without(held: MaintenancePlan, step: Step, leaving: set[Row], names: Collection[str]) -> ChangedStep | None:
    title, states = step.title, step.states
    gone = sum(held.view(name).step == step.fingerprint for name in names)
    if gone:
        written = _written_by(held, step.fingerprint)
        first = list(islice((name for name in written if name not in names), FEW))
        if not first:
            return None
        title, states = _written(first, len(written) - gone, states)
    elif leaving and step.members - len(leaving) == 1:
        title = _titled(step.operator, title, [row for row in _members(step) if row not in leaving])
    again = replace(step, title=title, states=states, constants=None) if title != step.title else None
    types = () if step.constants is None else step.constants.types
    return ChangedStep(step.fingerprint, again, types, left=tuple(sorted(leaving)))


def _members(step: Step) -> Sequence[Row]:
    return () if step.constants is None else step.constants.members


def _rows(step: Step) -> Sequence[Row]:
    return [()] if step.constants is None else step.constants.members


# ------------------------------------------------------------------ applied


def changed(plan: MaintenancePlan, change: PlanChange) -> MaintenancePlan:
    """The plan after a change."""
    steps = dict(plan.by_fingerprint)
    for fingerprint in change.gone:
        del steps[fingerprint]
    for one in change.steps:
        steps[one.fingerprint] = _applied(one, steps.get(one.fingerprint))
    uses = {use.name: use for use in plan.tables if use.step in steps} | {use.name: use for use in change.tables}
    views = list(plan.views)
    with plan.by_name.mutate() as by_name:
        for name in change.left:
            del views[bisect_left(views, name, key=_NAME)], by_name[name]
        for entered in change.entered:
            view = _like_others(entered, plan)
            insort(views, view, key=_NAME)
            by_name[view.name] = view
        named = by_name.finish()
    families = _families(plan, change, steps, views)
    found = MaintenancePlan(
        tuple(sorted(uses.values(), key=_NAME)),
        tuple(steps.values()),
        plan.zones if change.zones is None else change.zones,
        change.entered,  # of which it is checked that they are written
        families,
        plan.before_images,
    )
    found.__dict__.update(views=tuple(views), by_fingerprint=steps, by_name=named)  # not looked at one by one
    if "written" in plan.__dict__:
        found.__dict__["written"] = _written_after(plan, change)
    return found


def _written_after(plan: MaintenancePlan, change: PlanChange) -> Map[tuple[str, Row], int]:
    moved = Counter((view.step, view.constants) for view in change.entered)
    moved.subtract((view.step, view.constants) for view in map(plan.view, change.left))
    found = plan.written
    for member, count in moved.items():
        after = found.get(member, 0) + count
        found = found.set(member, after) if after else found.delete(member)
    return found


def _like_others(view: PlannedView, plan: MaintenancePlan) -> PlannedView:
    """A view with the very columns of the others that its step writes: they are recorded once."""
    if view.step not in plan.by_fingerprint:
        return view
    others = _written_by(plan, view.step)
    if not others:
        return view
    other = plan.view(others[0])
    if (view.key, view.columns, view.order) != (other.key, other.columns, other.order):
        return view
    return replace(other, name=view.name, constants=view.constants)


def _applied(one: ChangedStep, known: Step | None) -> Step:
    step = one.step or known
    assert step is not None
    before = None if known is None else known.constants
    if before is None and not one.types:
        return step
    if before is None:
        return replace(step, constants=Constants(one.types, one.entered))
    return replace(step, constants=before.changed(one.types or before.types, one.left, one.entered))


def _families(
    plan: MaintenancePlan, change: PlanChange, steps: Mapping[str, Step], views: Sequence[PlannedView]
) -> tuple[Family, ...]:
    """The families, with the views that have come and without those that have gone."""
    touched: dict[str, list[str]] = {}
    families = {family.step: family for family in (*plan.families, *change.families) if family.step in steps}
    new = {family.step for family in change.families}
    for name in change.left:
        found = families.get(plan.view(name).step)
        if found is not None:
            names = touched.setdefault(found.step, list(found.views))
            del names[bisect_left(names, name)]
    for view in change.entered:
        found = families.get(view.step)
        if found is not None and view.step not in new:
            insort(touched.setdefault(found.step, list(found.views)), view.name)
        elif found is None and steps[view.step].members > 1:
            of_step = tuple(other.name for other in views if other.step == view.step)
            families[view.step] = Family(family_title(len(of_step), view.subject), view.step, of_step)
            new.add(view.step)
    for step, names in touched.items():
        what = families[step].title.removeprefix(f"family of {len(families[step].views)} ")
        families[step] = Family(f"family of {len(names)} {what}", step, tuple(names))
    return tuple(family for family in families.values() if len(family.views) > 1 and steps[family.step].members > 1)
