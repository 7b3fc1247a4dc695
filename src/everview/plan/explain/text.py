"""EXPLAIN as text.

Zones are blocks, steps are numbered lines that show where their changes come from,
and below a step stands what it keeps and who shares it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from everview.plan.explain.excerpt import PlanExcerpt, listed, part_of
from everview.plan.maintenance import MaintenancePlan, Shape, State, Step, costs, notices
from everview.plan.maintenance.column_names import pretty


def explain_text(
    plan: MaintenancePlan, views: Sequence[str] | None = None, validated: Mapping[str, str] | None = None
) -> str:
    """How these views, or all of the group, are maintained. ``validated`` is what came of trying each."""
    part = part_of(plan, views)
    return "\n".join([*_summary(part), *_zones(part), *_views(part, validated or {})]) + "\n"


def _summary(part: PlanExcerpt) -> Iterator[str]:
    shuffles = max((zone.stage for _, zone, _ in part.zones), default=1) - 1
    yield (
        f"{_many(len(part.views), 'view')}, {_many(len(part.steps), 'step')}, "
        f"{_many(len(part.zones), 'zone')}, {_many(shuffles, 'shuffle')}"
    )
    shown = {step.fingerprint for step in part.steps}
    for family in part.plan.families:
        if family.step in shown:
            yield f"{family.title}: {listed(family.views)}"


def _zones(part: PlanExcerpt) -> Iterator[str]:
    for number, zone, steps in part.zones:
        yield f"zone {number}, stage {zone.stage}, by {', '.join(zone.key) or 'one key'}"
        for step in steps:
            yield from _step(part, step)


def _step(part: PlanExcerpt, step: Step) -> Iterator[str]:
    sources = [
        f"{part.numbers[one.step]}" + ("" if one.key is None else f" by {', '.join(map(pretty, one.key)) or 'one key'}")
        for one in step.inputs
    ]
    origin = f"  ← {'; '.join(sources)}" if sources else ""
    yield f"  {part.numbers[step.fingerprint]} {step.operator.name} {step.title}{origin}"
    if step.members > 1:
        yield f"      for {step.members:,} members"
    for state in step.states:
        yield f"      keeps {state.name}: {_held(state)}"
    shared = part.shared_with(step)
    if shared:
        yield f"      shared with {listed(shared)}"


def _held(state: State) -> str:
    key = ", ".join(one.name + (" DESC" if one.descending else "") for one in state.key) or "one key"
    fields = ", ".join(one.name for one in state.fields)
    if state.shape is Shape.RECORD:
        return f"({key}) → ({fields})"
    order = ", ".join(one.name + (" DESC" if one.descending else "") for one in state.order)
    return f"({key}) → rows ({fields})" + (f" ordered by ({order})" if order else "")


def _views(part: PlanExcerpt, validated: Mapping[str, str]) -> Iterator[str]:
    for names in part.alike():
        view = part.plan.view(names[0])
        yield f"view {listed(names)}"
        yield f"  row key ({', '.join(view.key) or 'one row'})"
        if view.order:
            order = [f"{pretty(one.sql)}{' DESC' if one.descending else ''}" for one in view.order]
            yield f"  read in the order ({', '.join(order)})"
        yield from _costs(part.plan, names[0])
        for notice in notices(part.plan, names[0]):
            yield f"  notice: {notice}"
        for verdict in dict.fromkeys(validated[name] for name in names if validated.get(name)):
            yield f"  {verdict}"


def _costs(plan: MaintenancePlan, view: str) -> Iterator[str]:
    rows = [("one", "reads", "writes", "shuffles")]
    whole: dict[str, None] = {}
    for cost in costs(plan, view):
        rows.append((f"{cost.change.value} in {cost.table}", str(cost.reads), str(cost.writes), str(cost.shuffles)))
        whole.update(dict.fromkeys(cost.whole))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        yield "  " + "  ".join(
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
    for state in whole:
        yield f"  reads the whole of a changed key's {state}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
