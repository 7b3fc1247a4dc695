"""State that several views share: whose table is kept when a build joins its group.

A state is named by its fingerprint, so the build's table and the group's hold the
same, and the wider one, or the one with more members, is kept.

::

    group has             build needs                 build writes           kept on joining
    nothing               PRE-AGGREGATION (a)         a table of its own     the build's
    PRE-AGGREGATION (a)   PRE-AGGREGATION (a)         a table of its own     the group's
    PRE-AGGREGATION (a)   PRE-AGGREGATION (a, b)      a table of its own     the build's
    VIEW of members 1, 2  VIEW of member 3            the group's table      the group's
    VIEW of members 1, 2  VIEW of members 2, 3        all three, its own     the build's

Members have a prefix each, so a build can write into the group's table beside the group.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.operators.bound import QUARANTINE, BoundPlan
from everview.plan.maintenance import MaintenancePlan, Step, restricted
from everview.store.contract import StateTable


def own_part(
    whole: MaintenancePlan, names: Sequence[str], held: BoundPlan | None
) -> tuple[MaintenancePlan, dict[str, StateTable]]:
    """The part of a group's next plan that a build runs, and the tables of the group that it writes
    into: those whose records are told apart by members, of which the group has none of the build's.
    Where the group has some of the members, or holds less of each, the build takes them all."""
    known = {} if held is None else held.plan.by_fingerprint
    asked = set(names)
    while True:
        own = restricted(whole, sorted(asked))
        shared: dict[str, StateTable] = {}
        mixed: set[str] = set()
        for step in own.steps:
            before = known.get(step.fingerprint)
            if before is None or held is None or before.constants is None or step.constants is None:
                continue
            mine, theirs = set(step.constants.members), set(before.constants.members)
            same = [state.fields for state in step.states] == [state.fields for state in before.states]
            if same and mine.isdisjoint(theirs):
                shared |= {state.fingerprint: held.states[state.fingerprint] for state in step.states}
            elif step.states and not (same and mine <= theirs) and not mine >= theirs:
                mixed |= set(whole.users[step.fingerprint])
        if mixed <= asked:
            return own, shared
        asked |= mixed


def joined_states(own: BoundPlan, last: BoundPlan | None) -> dict[str, StateTable]:
    """The tables of the group after a build has joined it."""
    found = dict(own.states)
    if last is not None:
        mine, theirs = _keepers(own), _keepers(last)
        for named, table in last.states.items():
            if named not in mine or not _is_replaced(mine[named], theirs[named]):
                found[named] = table
    return found


def _keepers(bound: BoundPlan) -> dict[str, Step]:
    return {state.fingerprint: step for step in bound.plan.steps for state in step.states}


def _is_replaced(mine: Step, theirs: Step) -> bool:
    """Whether the build's state takes the place of the group's: it holds more columns, or members
    that the group's does not."""
    if not set(mine.states[0].fields) <= set(theirs.states[0].fields):
        return True
    if mine.constants is None or theirs.constants is None:
        return False
    return not set(mine.constants.members) <= set(theirs.constants.members)


class StatesOf:
    """The state tables that views of a plan need, each one's own last."""

    def __init__(self, bound: BoundPlan) -> None:
        self._bound = bound
        self._found: dict[str, dict[int, StateTable]] = {}

    def view(self, name: str) -> tuple[StateTable, ...]:
        quarantine = self._bound.states[QUARANTINE]
        below = self._step(self._bound.plan.view(name).step)
        return tuple(({quarantine.id: quarantine} | below).values())

    def _step(self, fingerprint: str) -> dict[int, StateTable]:
        found = self._found.get(fingerprint)
        if found is None:
            step = self._bound.plan.step(fingerprint)
            found = {}
            for one in step.inputs:
                found |= self._step(one.step)
            tables = [self._bound.states[state.fingerprint] for state in step.states]
            found |= {table.id: table for table in tables}
            self._found[fingerprint] = found
        return found
