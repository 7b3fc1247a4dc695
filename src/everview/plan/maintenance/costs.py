"""What one change costs.

A change of one row is followed through the steps of a view, and every state it
touches counts as a read and a write of one key.

A join turns one change into as many as there are rows it meets, so from there on costs come per
match: ``2 + 3m`` is 2 and 3 for each of the *m* rows that the change meets (or makes: the items
of a list, the rows of a window's partition that come out different). A record or bag that is
evaluated again is one read however long it is; what it consists of is listed beside.

View tables are written without being read: changes carry the old row. Steps shared with other
views are paid once for all of them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from everview.plan.maintenance.model import MaintenancePlan, Role, Step
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    ExpandOperator,
    GroupReevaluationOperator,
    JoinOperator,
    ReevaluationOperator,
    TopKOperator,
    UnnestOperator,
    WindowOperator,
)

_WHOLE = (GroupReevaluationOperator, WindowOperator, ReevaluationOperator)
_FANNED = (JoinOperator, WindowOperator, TopKOperator, ReevaluationOperator, UnnestOperator)


class Change(enum.Enum):
    """What may happen to a row."""

    INSERT = "insert"
    UPDATE = "update"
    MOVE = "update of a key"
    """Of a column that another row key than the table's is made of: a group, a join key, …"""
    DELETE = "delete"


@dataclass(frozen=True)
class Amount:
    """A number, and another for each match."""

    fixed: int = 0
    per_match: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.fixed + other.fixed, self.per_match + other.per_match)

    def times(self, factor: int) -> Amount:
        return Amount(self.fixed * factor, self.per_match * factor)

    def matched(self) -> Amount:
        return Amount(0, self.fixed + self.per_match)

    def __str__(self) -> str:
        matches = f"{self.per_match if self.per_match > 1 else ''}m" if self.per_match else ""
        return f"{self.fixed} + {matches}" if matches and self.fixed else matches or str(self.fixed)


NOTHING = Amount()


@dataclass(frozen=True)
class Cost:
    """Of one change of one row of a table, for one view."""

    table: str
    change: Change
    reads: Amount
    writes: Amount
    shuffles: int
    whole: tuple[str, ...] = ()
    """State that is read as a whole for the keys that change."""


def costs(plan: MaintenancePlan, view: str) -> tuple[Cost, ...]:
    """What changes of each base table cost a view."""
    steps = plan.steps_of(view)
    needed = {step.fingerprint for step in steps}
    return tuple(
        _cost(plan, steps, table.step, table.name, change)
        for table in plan.tables
        if table.step in needed
        for change in Change
    )


def _cost(plan: MaintenancePlan, steps: Iterable[Step], source: str, table: str, change: Change) -> Cost:
    flow: dict[str, Amount] = {}
    reads, writes, shuffles = NOTHING, NOTHING, 0
    whole: list[str] = []
    split: set[str] = set()  # where the old and the new row have gone different ways
    for step in steps:
        found = _arriving(step, flow, split, change) if step.fingerprint != source else Amount(1)
        if found is None:
            continue
        shuffles = max(shuffles, plan.zone_of[step.fingerprint].stage - 1)
        for state in step.states:
            writes += found
            reads += NOTHING if state.role in (Role.VIEW, Role.INDEX) else found
        if isinstance(step.operator, JoinOperator):
            reads += found
        if isinstance(step.operator, (*_WHOLE, TopKOperator)):
            reads += found
        if isinstance(step.operator, _WHOLE):
            whole += [state.name for one in step.inputs for state in plan.step(one.step).states]
        flow[step.fingerprint] = _leaving(step, found)
    return Cost(table, change, reads, writes, shuffles, tuple(dict.fromkeys(whole)))


def _arriving(step: Step, flow: dict[str, Amount], split: set[str], change: Change) -> Amount | None:
    """How many keys of a step are touched; None: none ever."""
    arrived: list[Amount] = []
    for source in step.inputs:
        found = flow.get(source.step)
        if found is None:
            continue
        if source.step in split:
            split.add(step.fingerprint)
        elif source.key is not None and change is Change.MOVE:
            split.add(step.fingerprint)
            found = found.times(2)
        arrived.append(found)
    if not arrived:
        return None
    if isinstance(step.operator, AggregateOperator):  # its parts saw changes of the same groups
        return max(arrived, key=lambda one: (one.per_match, one.fixed))
    return sum(arrived, NOTHING)


def _leaving(step: Step, touched: Amount) -> Amount:
    if isinstance(step.operator, ExpandOperator):
        return touched.times(len(step.operator.sets))
    return touched.matched() if isinstance(step.operator, _FANNED) else touched


def notices(plan: MaintenancePlan, view: str) -> tuple[str, ...]:
    """What should be known before such a view is made: evaluations that no partition bounds."""
    found: list[str] = []
    for step in plan.steps_of(view):
        if not isinstance(step.operator, _WHOLE) or any(plan.step(one.step).zone_key for one in step.inputs):
            continue
        held = " and ".join(plan.step(one.step).title for one in step.inputs)
        reason = step.operator.reason if isinstance(step.operator, ReevaluationOperator) else ""
        found.append(
            f"each change evaluates {step.title} again over all rows of {held}" + (f": {reason}" if reason else "")
        )
    return tuple(found)
