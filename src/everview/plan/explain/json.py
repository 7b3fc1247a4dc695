"""EXPLAIN as plain values for :mod:`json`: a stable schema, named fields, nothing left out.

The numbers of steps and zones are those of the text. ``reads`` and ``writes`` are
``[fixed, per match]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from everview.plan.explain.excerpt import PlanExcerpt, part_of
from everview.plan.maintenance import Cost, MaintenancePlan, Step, costs, notices
from everview.plan.maintenance.column_names import pretty
from everview.plan.maintenance.recorded import encoded

FORMAT = 1


def explain_json(
    plan: MaintenancePlan, views: Sequence[str] | None = None, validated: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """How these views, or all of the group, are maintained. ``validated`` is what came of trying each."""
    part = part_of(plan, views)
    return {
        "format": FORMAT,
        "shuffles": max((zone.stage for _, zone, _ in part.zones), default=1) - 1,
        "zones": [
            {
                "number": number,
                "stage": zone.stage,
                "key": list(zone.key),
                "steps": [_step(part, step) for step in steps],
            }
            for number, zone, steps in part.zones
        ],
        "views": [entry for names in part.alike() for entry in _views(part, names, validated or {})],
        "families": [
            {"title": family.title, "step": part.numbers[family.step], "views": list(family.views)}
            for family in plan.families
            if family.step in part.numbers
        ],
    }


def _step(part: PlanExcerpt, step: Step) -> dict[str, Any]:
    return {
        "number": part.numbers[step.fingerprint],
        "fingerprint": step.fingerprint,
        "operator": step.operator.name,
        "title": step.title,
        "inputs": [
            {"step": part.numbers[one.step], "key": None if one.key is None else [pretty(sql) for sql in one.key]}
            for one in step.inputs
        ],
        "fields": [{"name": one.name, "type": str(one.type), "nullable": one.nullable} for one in step.fields],
        "states": [encoded(state) for state in step.states],
        "members": step.members,
        "shared_with": list(part.shared_with(step)),
    }


def _views(part: PlanExcerpt, names: Sequence[str], validated: Mapping[str, str]) -> list[dict[str, Any]]:
    """Views of one family cost the same."""
    paid = [_cost(cost) for cost in costs(part.plan, names[0])]
    costly = list(notices(part.plan, names[0]))
    found: list[dict[str, Any]] = []
    for name in names:
        view = part.plan.view(name)
        found.append(
            {
                "name": name,
                "fingerprint": part.plan.view_fingerprint(name),
                "step": part.numbers[view.step],
                "key": list(view.key),
                "columns": [encoded(column) for column in view.columns],
                "order": [encoded(one) for one in view.order],
                "constants": list(view.constants),
                "costs": paid,
                "notices": costly,
                "validated": validated.get(name),
            }
        )
    return found


def _cost(cost: Cost) -> dict[str, Any]:
    return {
        "table": cost.table,
        "change": cost.change.value,
        "reads": [cost.reads.fixed, cost.reads.per_match],
        "writes": [cost.writes.fixed, cost.writes.per_match],
        "shuffles": cost.shuffles,
        "whole": list(cost.whole),
    }
