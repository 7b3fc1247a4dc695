"""Which changes of base tables can touch rows of a view that hold given values.

A condition on columns of a view is carried from the view back to the base tables, step by step, as far as
every step allows. Changes that it excludes are left out before the steps run (paper 001, section 3.5).

::

    totals: SELECT customer, sum(amount) … FROM orders GROUP BY customer      asked: customer = 7

    view             customer = 7
    aggregate        customer = 7        a group's row depends on the rows of the group
    pre-aggregation  customer = 7
    delta orders     customer = 7        other rows of orders, before and after a write, are left out

What holds of every step: of what it emits, the rows that fulfil its condition depend on nothing but the rows of
its inputs that fulfil theirs. Other rows that it emits may be wrong, so they are left out before the next step.

A condition is carried through

========================  ===========================================================================
filter, project, bag      a column that is passed on, or computed from columns below
unnest                    a column of the row whose list it is
union, set, distinct      what each input sends for the column
aggregate and its parts   a part of the group's key
window, top-k             a column of the partition
join                      a column of a side whose rows are all pairs or lines of that side; to the other side
                          only a part of the join key
========================  ===========================================================================

and through nothing else. Parts of a condition that cannot be carried are dropped, which lets more rows pass;
a step without a condition, or with two readers of which one has none, works on everything.

Values are compared as keys are encoded: what is equal in SQL is equal there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from everview.operators.evaluation import plain
from everview.operators.rows_by_key import key_columns_of
from everview.plan.expressions import fields_of, quoted, replaced
from everview.plan.maintenance import MaintenancePlan, Step
from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    ComputingOperator,
    DistinctOperator,
    ExtremeOperator,
    FilterProjectOperator,
    GroupReevaluationOperator,
    IndexOperator,
    JoinOperator,
    PartitionOperator,
    PreAggregationOperator,
    ReverseJoinOperator,
    SetOperator,
    TopKOperator,
    UnionOperator,
    UnnestOperator,
    ViewOperator,
    WindowOperator,
    WrittenRowsOperator,
)
from everview.plan.relations import JoinKind

Part: TypeAlias = tuple[str, int]
"""An expression over the fields of a step, and the number of the asked column whose values it must have."""
Conjunction: TypeAlias = frozenset[Part]
Alternatives: TypeAlias = frozenset[Conjunction]
"""A row matters if it fulfils one of them."""


@dataclass(frozen=True)
class Touching:
    """The condition of each step; steps that need everything have none."""

    conditions: Mapping[str, Alternatives]
    checked: frozenset[str]
    """The steps that may emit rows that do not fulfil their condition."""


def touching(plan: MaintenancePlan, view: str, columns: Iterable[str]) -> Touching:
    """The conditions under which changes matter to rows of a view that hold asked values in these of its stored
    fields. The plan maintains nothing else."""
    asked: Alternatives = frozenset({frozenset((quoted(name), number) for number, name in enumerate(columns))})
    found: dict[str, Alternatives | None] = {plan.view(view).step: asked}
    exact: set[str] = set()
    for step in reversed(plan.steps):
        own = found[step.fingerprint]
        carried = [_carried(step, plan, number, own) for number, _ in enumerate(step.inputs)]
        if own is not None and step.inputs and all(_is_whole(own, one) for one in carried):
            exact.add(step.fingerprint)
        for one, condition in zip(step.inputs, carried, strict=True):
            known = found.get(one.step, frozenset())
            found[one.step] = None if known is None or condition is None else known | condition
    conditions = {name: condition for name, condition in found.items() if condition is not None}
    return Touching(conditions, frozenset(conditions) - _settled(plan, exact, conditions))


def _is_whole(own: Alternatives, carried: Alternatives | None) -> bool:
    """Whether an input's condition has all parts of the step's."""
    if carried is None or len(own) > 1 or len(carried) > 1:
        return False
    return all(len(one) == len(other) for one, other in zip(own, carried, strict=True))


def _settled(plan: MaintenancePlan, exact: set[str], conditions: Mapping[str, Alternatives]) -> set[str]:
    """The steps that emit nothing beyond their condition, since their inputs hold nothing beyond it: no other
    reader of an input needs more of it."""
    return {named for named in exact if all(len(conditions.get(one.step, ())) == 1 for one in plan.step(named).inputs)}


def _carried(step: Step, plan: MaintenancePlan, number: int, own: Alternatives | None) -> Alternatives | None:
    """The condition of an input; None: everything matters."""
    if own is None:
        return None
    source = plan.step(step.inputs[number].step)
    fields = _sources(step, plan, number)
    kinds = {field.name: field.type for field in step.fields}
    below = {field.name: field.type for field in source.fields}
    found = set()
    for conjunction in own:
        parts: set[Part] = set()
        for sql, value in conjunction:
            name = plain(sql)
            if name is None:
                texts = {read: fields.get(read, "") for read in fields_of(sql)}
                if all(plain(text) in below if text else False for text in texts.values()):
                    parts.add((replaced(sql, texts), value))
                continue
            text = fields.get(name)
            if text is None or "$" in text or not fields_of(text) or not fields_of(text) <= below.keys():
                continue
            if (passed := plain(text)) is None or below[passed] == kinds[name]:
                parts.add((text, value))
        if not parts:
            return None
        found.add(frozenset(parts))
    return frozenset(found)


# -------------------------------------------------------------- what fields are in fields of an input


Sources: TypeAlias = Mapping[str, str]
"""What fields of a step are in fields of an input: expressions."""


def _sources(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    """Of the fields by which the condition of a step can be carried to an input, what they are there."""
    find = _SOURCES.get(type(step.operator))
    return {} if find is None else find(step, plan, number)


def _computed(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    columns = {one.name: one.sql for one in step.operator_as(ComputingOperator).computed}
    if isinstance(step.operator, WrittenRowsOperator):
        columns = {one.name: one.sql for one in step.operator.columns}
    return {field.name: columns.get(field.name, quoted(field.name)) for field in step.fields}


def _unnested(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    own = {step.operator_as(UnnestOperator).item, step.operator_as(UnnestOperator).position}
    return {field.name: quoted(field.name) for field in step.fields if field.name not in own}


def _united(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    operator = step.operator_as(UnionOperator)
    return dict(zip(operator.columns, operator.inputs[number], strict=True))


def _counted(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    names = [part.name for part in step.states[0].key]
    return dict(zip(names, step.operator_as(SetOperator).inputs[number], strict=True))


def _grouped(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    operator = step.operator
    assert isinstance(operator, PreAggregationOperator | ExtremeOperator)
    return dict(zip(operator.key_names, operator.key, strict=True))


def _grouped_again(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    names = key_columns_of(plan.step(step.inputs[number].step))
    return dict(zip(step.operator_as(GroupReevaluationOperator).key_names, map(quoted, names), strict=True))


def _assembled(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    return {name: quoted(name) for name in step.operator_as(AggregateOperator).key}


def _partitioned(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    return {name: quoted(name) for name in key_columns_of(plan.step(step.inputs[number].step))}


def _joined(step: Step, plan: MaintenancePlan, number: int) -> Sources:
    """Columns of a side, and of the other side the columns of the join key."""
    operator = step.operator_as(JoinOperator)
    if operator.kind is JoinKind.FULL:  # a line of one side depends on all rows of the other
        return {}
    sides = [plan.step(one.step) for one in step.inputs]
    there = [{field.name for field in side.fields} for side in sides]
    keys = [key_columns_of(side) for side in sides]
    across = dict(zip(keys[1 - number], keys[number], strict=True))
    found: dict[str, str] = {}
    for field in step.fields:
        side, name = 0, field.name
        if name not in there[0]:
            side, name = 1, name.removeprefix(operator.right_prefix)
        if name not in there[side] or (side == 1 and operator.kind is not JoinKind.INNER):
            continue
        text = name if side == number else across.get(name)
        if text is not None:
            found[field.name] = quoted(text)
    return found


_SOURCES: Mapping[type[Operator], Callable[[Step, MaintenancePlan, int], Sources]] = {
    **dict.fromkeys(
        (
            FilterProjectOperator,
            PartitionOperator,
            ReverseJoinOperator,
            DistinctOperator,
            ViewOperator,
            IndexOperator,
        ),
        _computed,
    ),
    UnnestOperator: _unnested,
    UnionOperator: _united,
    SetOperator: _counted,
    PreAggregationOperator: _grouped,
    ExtremeOperator: _grouped,
    GroupReevaluationOperator: _grouped_again,
    AggregateOperator: _assembled,
    WindowOperator: _partitioned,
    TopKOperator: _partitioned,
    JoinOperator: _joined,
}
