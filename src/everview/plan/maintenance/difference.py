"""What changes in a group when its views do.

State is compared by fingerprint and by the columns it holds, so it is known what
a restart may keep, what must be built, and what may go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from everview.plan.maintenance.fingerprint import member_fingerprint
from everview.plan.maintenance.model import MaintenancePlan


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
