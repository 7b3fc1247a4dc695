"""A sketch becomes a plan: drafts become steps, and steps are cut into zones.

What a draft has gained is put in order.

A plan is cut where the row key changes: steps are in one zone if changes pass between them without being redistributed,
or if they read the same redistributed changes.

Zones at the same depth are one stage: they run side by side, and one shuffle serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.change.schema import KeyPart
from everview.plan.maintenance.column_names import filled, pretty
from everview.plan.maintenance.family import parameter_type
from everview.plan.maintenance.fingerprint import fingerprint
from everview.plan.maintenance.model import Constants, Input, Role, Shape, State, Step, Zone
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    AnyOperator,
    DeltaOperator,
    ExpandOperator,
    ExtremeOperator,
    FilterProjectOperator,
    GroupReevaluationOperator,
    JoinOperator,
    PreAggregationOperator,
    ReevaluationOperator,
    RowsOperator,
    SetOperator,
    TopKOperator,
    UnnestOperator,
    WindowOperator,
)
from everview.plan.maintenance.sketch import StateDraft, StepDraft, with_prefix


def step_of(draft: StepDraft, before_images: bool, views: Sequence[str] = ()) -> Step:
    """The step of a draft that will gain nothing more; ``views`` are those that it writes."""
    members = tuple(sorted(draft.members))
    constants = None
    if draft.classes:
        types = [parameter_type(kind, (row[number] for row in members)) for number, kind in enumerate(draft.classes)]
        constants = Constants(tuple(types), members)
    operator = draft.complete()
    state = draft.state
    if isinstance(operator, DeltaOperator) and not before_images:
        state = StateDraft(
            Role.DELTA,
            Shape.RECORD,
            draft.subject,
            tuple(KeyPart(name, draft.columns[name].type) for name in operator.key),
        )
    title = title_of(operator, draft.subject)
    if views and state:
        title = called(views, len(views))
        state = replace(state, subject=title)
    return Step(
        draft.fingerprint,
        operator,
        filled(title, members[0]) if len(members) == 1 else title,
        tuple(Input(source.fingerprint, key) for source, key in draft.inputs),
        tuple(draft.columns[name] for name in sorted(draft.columns)),
        tuple(pretty(sql) for sql in draft.zone_key),
        (_state(draft, state),) if state else (),
        constants,
    )


def called(views: Sequence[str], count: int) -> str:
    """What a step is called that writes so many views, of which these are the first."""
    return ", ".join(views) if count < 4 else f"{views[0]} and {count - 1} more"


def _state(draft: StepDraft, state: StateDraft) -> State:
    inside = {part.name for part in state.key}
    fields = draft.columns if state.fields is None else state.fields
    return State(
        fingerprint("state", state.shape.value, [draft.fingerprint]),
        f"{state.role.value} {state.subject}",
        state.role,
        state.shape,
        state.key,
        tuple(fields[name] for name in sorted(fields) if name not in inside),
        state.order,
    )


def family_title(count: int, subject: str) -> str:
    """What a family of so many views is called, whose rows are these."""
    what = f"selections on {subject.removeprefix('filtered ')}" if subject.startswith("filtered ") else subject
    return f"family of {count} {what}"


def title_of(operator: AnyOperator, subject: str) -> str:
    """What a step does, in SQL where there is some, else what its rows are."""
    return pretty(_title(operator, subject))


def _title(operator: AnyOperator, subject: str) -> str:
    match operator:
        case DeltaOperator(table=table):
            return table
        case RowsOperator(query=query) | ReevaluationOperator(query=query):
            return query
        case FilterProjectOperator(condition=str(condition)):
            return condition
        case FilterProjectOperator(computed=computed):
            return ", ".join(column.sql for column in computed)
        case UnnestOperator(items=items, outer=outer):
            return f"{items}{' or nothing' if outer else ''}"
        case ExpandOperator(groups=groups):
            sets = ", ".join(f"({', '.join(groups[n] for n in one)})" for one in operator.sets)
            return f"to sets {sets}"
        case PreAggregationOperator(accumulators=kept):
            return ", ".join(_call(one.function, one.argument, one.filter) for one in kept)
        case ExtremeOperator(value=value, filter=where):
            return ", ".join(_call(end.function, value, where) for end in operator.ends)
        case GroupReevaluationOperator(calls=evaluated) | WindowOperator(calls=evaluated):
            return ", ".join(call.sql for call in evaluated)
        case AggregateOperator(calls=calls) if calls:
            return ", ".join(call.name.partition(".")[2] for call in calls)
        case JoinOperator():
            return _join(operator)
        case SetOperator(kind=kind):
            return f"{kind.value}{' all' if operator.all else ''}"
        case TopKOperator(limit=limit, offset=offset):
            first = "all" if limit is None else str(limit)
            skip = f" after {offset}" if offset else ""
            return f"first {first}{' with ties' if operator.ties is not None else ''}{skip}"
    return subject


def _join(operator: JoinOperator) -> str:
    prefix = operator.right_prefix
    conditions = [
        f"{one.left} {'IS NOT DISTINCT FROM' if one.nulls_match else '='} {with_prefix(one.right, prefix)}"
        for one in operator.on
    ]
    if operator.rest:
        conditions.append(operator.rest)
    return f"{operator.kind.value} {' AND '.join(conditions)}".rstrip()


def _call(function: str, argument: str | None, where: str | None) -> str:
    return f"{function}({argument or '*'})" + (f" FILTER (WHERE {where})" if where else "")


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
