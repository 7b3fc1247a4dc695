"""Zones: a plan cut where the row key changes.

Steps are in one zone if changes pass between them without being redistributed,
or if they read the same redistributed changes.

Zones at the same depth are one stage: they run side by side, and one shuffle serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.plan.maintenance.column_names import pretty
from everview.plan.maintenance.model import Zone
from everview.plan.maintenance.sketch import StepDraft


def zones_of(drafts: Sequence[StepDraft]) -> tuple[Zone, ...]:
    """The zones of all drafts, in order of their stages."""
    leader: dict[str, str] = {draft.fingerprint: draft.fingerprint for draft in drafts}

    def led_by(one: str) -> str:
        while leader[one] != one:
            leader[one] = leader[leader[one]]
            one = leader[one]
        return one

    readers: dict[tuple[str, tuple[str, ...], int], str] = {}
    for draft in drafts:
        for source, key in draft.inputs:
            if key is None:
                met = source.fingerprint
            else:
                met = readers.setdefault((source.fingerprint, key, draft.level), draft.fingerprint)
            leader[led_by(draft.fingerprint)] = led_by(met)

    found: dict[str, list[StepDraft]] = {}
    for draft in drafts:
        found.setdefault(led_by(draft.fingerprint), []).append(draft)
    ordered = sorted(found.values(), key=lambda zone: zone[0].level)
    return tuple(
        Zone(number, zone[0].level, _key(zone), tuple(draft.fingerprint for draft in zone))
        for number, zone in enumerate(ordered, start=1)
    )


def _key(zone: Sequence[StepDraft]) -> tuple[str, ...]:
    """The row key in names for people: as the first step of the zone calls it."""
    return tuple(pretty(sql) for sql in zone[0].zone_key)
