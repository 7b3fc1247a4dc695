"""A draft becomes a step: what it has gained is put in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from everview.change.schema import KeyPart
from everview.plan.maintenance.family import parameter_type
from everview.plan.maintenance.fingerprint import fingerprint
from everview.plan.maintenance.model import Constants, Input, Operator, Role, Shape, State, Step
from everview.plan.maintenance.names import filled, pretty
from everview.plan.maintenance.sketch import Draft, StateDraft, with_prefix


def fixed(draft: Draft, before_images: bool, views: Sequence[str] = ()) -> Step:
    """The step of a draft that will gain nothing more; ``views`` are those that it writes."""
    members = tuple(sorted(draft.members))
    constants = None
    if draft.classes:
        types = [parameter_type(kind, (row[number] for row in members)) for number, kind in enumerate(draft.classes)]
        constants = Constants(tuple(types), members)
    gained = {name: tuple(said[one] for one in sorted(said)) for name, said in draft.merged.items()}
    state = draft.state
    if draft.operator is Operator.DELTA and not before_images:
        state = StateDraft(
            Role.DELTA,
            Shape.RECORD,
            draft.subject,
            tuple(KeyPart(name, draft.columns[name].type) for name in draft.parameters["key"]),
        )
    title = pretty(_title(draft, gained))
    if views and state:
        title = ", ".join(views) if len(views) < 4 else f"{views[0]} and {len(views) - 1} more"
        state = replace(state, subject=title)
    return Step(
        draft.fingerprint,
        draft.operator,
        filled(title, members[0]) if len(members) == 1 else title,
        tuple(Input(source.fingerprint, key) for source, key in draft.inputs),
        draft.parameters | gained,
        tuple(draft.columns[name] for name in sorted(draft.columns)),
        tuple(pretty(sql) for sql in draft.zone_key),
        (_state(draft, state),) if state else (),
        constants,
    )


def _state(draft: Draft, state: StateDraft) -> State:
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


def _title(draft: Draft, gained: dict[str, tuple[Any, ...]]) -> str:
    """What the step does, in SQL where there is some."""
    told = draft.parameters
    match draft.operator:
        case Operator.DELTA:
            return str(told["table"])
        case Operator.ROWS:
            return str(told["query"])
        case Operator.FILTER_PROJECT if "condition" in told:
            return str(told["condition"])
        case Operator.FILTER_PROJECT:
            return ", ".join(sql for _, sql in gained["computed"])
        case Operator.UNNEST:
            return f"{told['items']}{' or nothing' if told['outer'] else ''}"
        case Operator.EXPAND:
            sets = ", ".join(f"({', '.join(told['groups'][n] for n in one)})" for one in told["sets"])
            return f"to sets {sets}"
        case Operator.PRE_AGGREGATION:
            return ", ".join(_call(function, one, where) for _, function, one, where in gained["accumulators"])
        case Operator.EXTREME:
            return ", ".join(_call(function, told["value"], told["filter"]) for _, function in gained["ends"])
        case Operator.GROUP_REEVALUATION | Operator.WINDOW:
            return ", ".join(sql for _, sql in gained.get("calls", ()))
        case Operator.AGGREGATE if told["calls"]:
            return ", ".join(name.partition(".")[2] for name, _, _ in told["calls"])
        case Operator.JOIN:
            match = [
                f"{left} {'IS NOT DISTINCT FROM' if nulls else '='} {with_prefix(right, told['right prefix'])}"
                for left, right, nulls in zip(told["left"], told["right"], told["nulls match"], strict=True)
            ]
            return f"{told['kind']} {' AND '.join([*match, told['rest']] if told['rest'] else match)}".rstrip()
        case Operator.SET:
            return f"{told['kind']}{' all' if told['all'] else ''}"
        case Operator.TOP_K:
            first = "all" if told["limit"] is None else str(told["limit"])
            skip = f" after {told['offset']}" if told["offset"] else ""
            return f"first {first}{' with ties' if told['ties'] is not None else ''}{skip}"
        case Operator.REEVALUATION:
            return str(told["query"])
    return draft.subject


def _call(function: str, argument: str | None, where: str | None) -> str:
    return f"{function}({argument or '*'})" + (f" FILTER (WHERE {where})" if where else "")
