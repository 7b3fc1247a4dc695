"""A plan bound to a store: which table of the store is which state of the plan.

A :class:`BoundPlan` is all that an attempt of an epoch must know, in a form that
survives the process that began it.

Schemas are as they were when the epoch began: they are looked up after the frontier was chosen,
so no entry of the epoch was written under a newer one.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from everview.change.schema import Schema
from everview.errors import DefinitionError
from everview.operators.members import Members, members_of
from everview.plan.maintenance import MaintenancePlan, PlanChange, PlannedView, Step, changed
from everview.plan.maintenance.recorded import decoded, encoded
from everview.store.contract import StateTable, Table

QUARANTINE = "quarantine"
"""What the table of rows that have no value is called among the states."""


@dataclass(frozen=True)
class Edge:
    """The way from one step to an input of another."""

    source: str
    target: str
    number: int


@dataclass(frozen=True)
class BoundPlan:
    """A maintenance plan, its base tables by name, and its state tables by fingerprint."""

    plan: MaintenancePlan
    tables: Mapping[str, Table]
    states: Mapping[str, StateTable]
    """Of every state of every step, and of the quarantine."""
    first: frozenset[str] = field(default=frozenset())
    """Steps that have kept nothing yet: what is there without any change is theirs to emit now."""
    planner: str = ""
    """What has planned it: by another one its views may be planned otherwise."""

    def __post_init__(self) -> None:
        missing = [use.name for use in self.plan.tables if use.name not in self.tables]
        if missing:
            raise DefinitionError(f"the plan reads table {missing[0]}, which it is not bound to")
        wanted = {state.fingerprint: state.name for step in self.plan.steps for state in step.states}
        lost = [name for named, name in wanted.items() if named not in self.states]
        if lost or QUARANTINE not in self.states:
            raise DefinitionError(f"the plan keeps {lost[0] if lost else QUARANTINE}, which has no table")

    @functools.cached_property
    def consumers(self) -> dict[str, tuple[tuple[Step, int], ...]]:
        """For each step those that read it, each with the number of the input."""
        found: dict[str, list[tuple[Step, int]]] = {step.fingerprint: [] for step in self.plan.steps}
        for step in self.plan.steps:
            for number, one in enumerate(step.inputs):
                found[one.step].append((step, number))
        return {name: tuple(readers) for name, readers in found.items()}

    @functools.cached_property
    def edges(self) -> tuple[tuple[Edge, Step], ...]:
        """All ways between steps, with the steps they lead to, in an order that is the same in
        every process."""
        return tuple(
            (Edge(one.step, step.fingerprint, number), step)
            for step in self.plan.steps
            for number, one in enumerate(step.inputs)
        )

    @functools.cached_property
    def views(self) -> dict[tuple[str, int], tuple[str, ...]]:
        """The views that each step writes, by the number of the member."""
        found: dict[tuple[str, int], tuple[str, ...]] = {}
        for view in self.plan.views:
            place = view.step, self.number_of(view)
            found[place] = (*found.get(place, ()), view.name)
        return found

    def number_of(self, view: PlannedView) -> int:
        """The number of the member that a view is of the step that writes it."""
        if view.step not in self._numbers:
            constants = self.plan.step(view.step).constants
            rows = () if constants is None else constants.members
            self._numbers[view.step] = {row: number for number, row in enumerate(rows)}
        return self._numbers[view.step].get(view.constants, 0)

    @functools.cached_property
    def _numbers(self) -> dict[str, dict[tuple[str, ...], int]]:
        return {}

    def members(self, step: Step) -> Members | None:
        """The members of a step, made once: there may be thousands."""
        if step.fingerprint not in self._members:
            self._members[step.fingerprint] = members_of(step, self.plan)
        return self._members[step.fingerprint]

    @functools.cached_property
    def _members(self) -> dict[str, Members | None]:
        return {}

    @functools.cached_property
    def stages(self) -> tuple[tuple[Step, ...], ...]:
        """The steps of each stage, in the order in which they run."""
        count = max((zone.stage for zone in self.plan.zones), default=0)
        found: list[list[Step]] = [[] for _ in range(count)]
        for step in self.plan.steps:
            found[self.stage_of(step) - 1].append(step)
        return tuple(map(tuple, found))

    def stage_of(self, step: Step) -> int:
        """The number of the stage in which a step runs."""
        return self.plan.zone_of[step.fingerprint].stage

    def zone_name(self, step: Step) -> str:
        """What the zone of a step is called where its keys are dealt out."""
        return " ".join(self.plan.zone_of[step.fingerprint].key)

    def state_table(self, step: Step) -> StateTable:
        return self.states[step.states[0].fingerprint]

    def after(self, change: BoundChange) -> BoundPlan:
        """The plan after a change."""
        plan = changed(self.plan, change.plan)
        tables = {**self.tables, **change.tables}
        states = {**self.states, **change.states}
        wanted = [QUARANTINE, *(state.fingerprint for step in plan.steps for state in step.states)]
        return BoundPlan(
            plan,
            {use.name: tables[use.name] for use in plan.tables},
            {named: states[named] for named in wanted},
            planner=change.planner,
        )

    # -------------------------------------------------------------- recorded with an epoch

    def to_bytes(self) -> bytes:
        recorded: dict[str, Any] = {
            "plan": self.plan.to_json(),
            "tables": _tables_to_json(self.tables),
            "states": _states_to_json(self.states),
            "first": sorted(self.first),
            "planner": self.planner,
        }
        return json.dumps(recorded, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(recorded: bytes) -> BoundPlan:
        found = json.loads(recorded)
        return BoundPlan(
            MaintenancePlan.from_json(found["plan"]),
            _tables_from_json(found["tables"]),
            _states_from_json(found["states"]),
            frozenset(found["first"]),
            found.get("planner", ""),
        )


@dataclass(frozen=True)
class BoundChange:
    """From one bound plan of a group to the next."""

    plan: PlanChange
    tables: Mapping[str, Table]
    """New, or with other schemas."""
    states: Mapping[str, StateTable]
    """New, or in other tables."""
    planner: str

    @staticmethod
    def between(
        before: BoundPlan, plan: PlanChange, tables: Mapping[str, Table], states: Mapping[str, StateTable], planner: str
    ) -> BoundChange:
        """The change to a plan with these tables and states."""
        return BoundChange(
            plan,
            {
                name: table
                for name, table in tables.items()
                if name not in before.tables or before.tables[name].schema != table.schema
            },
            {named: table for named, table in states.items() if before.states.get(named) != table},
            planner,
        )

    def to_bytes(self) -> bytes:
        recorded: dict[str, Any] = {
            "change": encoded(self.plan),
            "tables": _tables_to_json(self.tables),
            "states": _states_to_json(self.states),
            "planner": self.planner,
        }
        return json.dumps(recorded, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(recorded: bytes) -> BoundChange:
        found = json.loads(recorded)
        return BoundChange(
            decoded(PlanChange, found["change"]),
            _tables_from_json(found["tables"]),
            _states_from_json(found["states"]),
            found["planner"],
        )


def _tables_to_json(tables: Mapping[str, Table]) -> list[object]:
    return [[table.id, table.name, table.schema.to_json()] for table in tables.values()]


def _tables_from_json(recorded: Any) -> dict[str, Table]:
    return {name: Table(id, name, Schema.from_json(schema)) for id, name, schema in recorded}


def _states_to_json(states: Mapping[str, StateTable]) -> dict[str, object]:
    return {named: [table.id, table.name, table.group] for named, table in states.items()}


def _states_from_json(recorded: Any) -> dict[str, StateTable]:
    return {named: StateTable(*fields) for named, fields in recorded.items()}
