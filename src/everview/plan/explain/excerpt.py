"""The part of a plan that some views need.

EXPLAIN shows the steps of the views it was asked about, numbered from 1, and names
for each with which other views of the group it is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.errors import DefinitionError
from everview.plan.maintenance import MaintenancePlan, Step, Zone

NAMED = 3
"""So many views are named one by one; of more, the first and a number."""


@dataclass(frozen=True)
class PlanExcerpt:
    """Steps and zones of some views."""

    plan: MaintenancePlan
    views: tuple[str, ...]
    steps: tuple[Step, ...]
    numbers: dict[str, int]
    """Of the steps, in the order in which they are shown."""
    zones: tuple[tuple[int, Zone, tuple[Step, ...]], ...]
    """With their numbers here."""

    def zone_number(self, step: str) -> int:
        return next(number for number, zone, _ in self.zones if step in zone.steps)

    def shared_with(self, step: Step) -> tuple[str, ...]:
        """The views beside those asked about that need a step."""
        return tuple(name for name in self.plan.users[step.fingerprint] if name not in set(self.views))

    def alike(self) -> tuple[tuple[str, ...], ...]:
        """The views asked about, those of one family together."""
        found: dict[str, list[str]] = {}
        for name in self.views:
            found.setdefault(self.plan.view(name).step, []).append(name)
        return tuple(tuple(names) for names in found.values())


def part_of(plan: MaintenancePlan, views: Sequence[str] | None = None) -> PlanExcerpt:
    """What maintains these views; all of them, unless some are given."""
    names = tuple(view.name for view in plan.views) if views is None else tuple(views)
    unknown = [name for name in names if name not in plan.by_name]
    if unknown:
        raise DefinitionError(f"the plan has no view {unknown[0]}")
    steps = plan.steps_of(*names)
    needed = {step.fingerprint for step in steps}
    zones: list[tuple[int, Zone, tuple[Step, ...]]] = []
    for zone in plan.zones:
        inside = tuple(plan.step(one) for one in zone.steps if one in needed)
        if inside:
            zones.append((len(zones) + 1, zone, inside))
    ordered = [step for _, _, inside in zones for step in inside]
    numbers = {step.fingerprint: number for number, step in enumerate(ordered, start=1)}
    return PlanExcerpt(plan, names, steps, numbers, tuple(zones))


def listed(names: Sequence[str]) -> str:
    """Names for people, also where there are thousands."""
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1:,} more"
