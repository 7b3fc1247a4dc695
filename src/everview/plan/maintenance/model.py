"""The maintenance plan of a group: what is kept, under which key, and where changes go.

A plan is a graph of steps, each named by a fingerprint of what it computes, cut
into zones in which all state lives under one row key.

For ``SELECT sum(c2) FROM bt1 WHERE c2 < 10 GROUP BY c1`` (Figure 6 of the VMS paper)::

    zone 1, by bt1.k                 zone 2, by bt1.c1
      delta bt1                        pre-aggregation   state PRE-AGGREGATION bt1 by c1
      filter-project c2 < 10   ──→     aggregate
                                       view              state VIEW

A fingerprint stands for what a step computes, whichever view needs it: aliases, names of views and
the columns that other views need are no part of it. So two views share a step when they mean
the same, and a further view changes no fingerprint: it adds steps, or columns to steps.

Views that differ only in constants have the same steps. A step with parameters lists the
constants of all its members; each member has state of its own (:func:`member_fingerprint`).
The parameters of a step are those of its inputs, one input after another, and then its own.
"""

from __future__ import annotations

import enum
import weakref
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

from immutables import Map

from everview.change.schema import KeyPart
from everview.change.types import Type
from everview.errors import DefinitionError
from everview.plan.expressions import Field, fields_of
from everview.plan.maintenance.fingerprint import member_fingerprint
from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import AnyOperator
from everview.plan.maintenance.recorded import decoded, encoded

FORMAT = 3
"""Of the recorded plan. Plans are stored with epochs; one of an unknown format is refused."""
VIEWS_ONE_BY_ONE = 2
"""The format in which each view was recorded by itself."""
FEW = 8
"""Members that leave one by one: more of them are looked for all at once."""

OperatorKind = TypeVar("OperatorKind", bound=Operator)


class Shape(enum.Enum):
    """The two shapes of state."""

    RECORD = "record"
    """One row per key."""
    BAG = "bag"
    """Ordered rows with counts per key."""


class Role(enum.Enum):
    """What a state remembers."""

    DELTA = "DELTA"
    """The last row of each base key, used columns only."""
    PRE_AGGREGATION = "PRE-AGGREGATION"
    """Counts and sums of each group."""
    EXTREME = "EXTREME"
    """The values of each group with their counts: min, max, and what is asked DISTINCT."""
    REVERSE_JOIN = "REVERSE-JOIN"
    """The rows of each join key."""
    PARTITION = "PARTITION"
    """The rows of each group or partition that is evaluated again."""
    DISTINCT_COUNT = "DISTINCT-COUNT"
    """How often each row stands in the input, or in either of two."""
    VIEW = "VIEW"
    INDEX = "INDEX"


@dataclass(frozen=True)
class State:
    """A table that a step keeps."""

    fingerprint: str
    name: str
    role: Role
    shape: Shape
    key: tuple[KeyPart, ...]
    fields: tuple[Field, ...]
    """What a record, or a row of a bag, holds beside the key."""
    order: tuple[KeyPart, ...] = ()
    """The order of a bag's rows; none: any."""

    def __post_init__(self) -> None:
        if self.order and self.shape is not Shape.BAG:
            raise DefinitionError(f"{self.name} is a record and has no order")
        names = [part.name for part in self.key] + [field.name for field in self.fields]
        if len(names) != len(set(names)):
            raise DefinitionError(f"{self.name} holds a column twice", detail=", ".join(names))


@dataclass(frozen=True)
class Input:
    """Where a step's changes come from."""

    step: str
    key: tuple[str, ...] | None = None
    """The expressions by whose values the changes are redistributed; None: they stay in the zone."""


@dataclass(frozen=True)
class Constants:
    """The parameters ``$1``, ``$2``, … of a step, and the values that its members give them."""

    types: tuple[Type, ...]
    members: tuple[tuple[str, ...], ...]
    """SQL literals."""

    def __post_init__(self) -> None:
        if set(map(len, self.members)) != {len(self.types)}:
            raise DefinitionError("every member gives every parameter a value", detail=f"types: {self.types}")

    @cached_property
    def rows(self) -> Map[tuple[str, ...], int]:
        """The members, to be looked up, with numbers that rise from each to the next: plans that are made of one
        another share most of them."""
        return Map(zip(self.members, range(len(self.members)), strict=True))

    def contains(self, other: Constants) -> bool:
        """Whether all members of another step are among these."""
        mine, others = self.members, other.members
        return mine[: len(others)] == others or (len(others) <= len(mine) and all(row in self.rows for row in others))

    def changed(
        self, types: tuple[Type, ...], left: Collection[tuple[str, ...]], entered: Collection[tuple[str, ...]]
    ) -> Constants:
        """These constants without members that leave and with others that enter."""
        found = Constants(types, (*self._without(left), *entered))
        number = self.rows[self.members[-1]] + 1 if self.members else 0
        with self.rows.mutate() as rows:
            for row in left:
                rows.pop(row, None)
            rows.update(zip(entered, range(number, number + len(entered)), strict=True))
            found.__dict__["rows"] = rows.finish()
        found.__dict__["_before"] = weakref.ref(self), left
        return found

    def _without(self, left: Collection[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
        """The members but some that leave. A few of them are found by their numbers."""
        if len(left) > FEW:
            gone = frozenset(left)
            return [row for row in self.members if row not in gone]
        kept = list(self.members)
        for row in left:
            del kept[bisect_left(kept, self.rows[row], key=self.rows.__getitem__)]
        return kept

    def gone_since(self, before: Constants) -> list[tuple[str, ...]]:
        """The members of a step that it had before and has no more."""
        known, left = self.__dict__.get("_before", (None, ()))
        candidates = left if known is not None and known() is before else before.members
        return [row for row in candidates if row not in self.rows]


@dataclass(frozen=True)
class Step:
    """One operator at work."""

    fingerprint: str
    operator: AnyOperator
    title: str
    """One line for people, without the operator's name."""
    inputs: tuple[Input, ...]
    fields: tuple[Field, ...]
    """What the changes it emits consist of."""
    zone_key: tuple[str, ...]
    """The fields or expressions of the input under which its state lives, and its work is split."""
    states: tuple[State, ...] = ()
    constants: Constants | None = None

    @property
    def members(self) -> int:
        return len(self.constants.members) if self.constants else 1

    def operator_as(self, kind: type[OperatorKind]) -> OperatorKind:
        """The operator, which is of this kind."""
        if not isinstance(self.operator, kind):
            raise DefinitionError(f"step {self.operator.name} {self.title} is no {kind.__name__}")
        return self.operator

    def __hash__(self) -> int:
        return hash(self.fingerprint)


@dataclass(frozen=True)
class Zone:
    """Steps whose state and work share one row key. Zones of one stage run in one Spark stage;
    between stages changes are redistributed."""

    number: int
    stage: int
    key: tuple[str, ...]
    steps: tuple[str, ...]
    """In the order in which they run."""


@dataclass(frozen=True)
class TableUse:
    """A base table with what the group's views use of it."""

    name: str
    key: tuple[str, ...]
    columns: tuple[Field, ...]
    step: str
    """Its delta."""


@dataclass(frozen=True)
class ShownColumn:
    """A column of a view, and the stored field that holds it."""

    name: str
    type: Type
    nullable: bool
    stored: str


@dataclass(frozen=True)
class ReadOrder:
    """One part of the order in which a view is read: SQL over its stored fields."""

    sql: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class PlannedView:
    """A view: the step that writes it, its row key, and what a reader sees of its rows."""

    name: str
    step: str
    key: tuple[str, ...]
    """Stored fields, ascending: the row key."""
    columns: tuple[ShownColumn, ...]
    order: tuple[ReadOrder, ...] = ()
    constants: tuple[str, ...] = ()
    """Its member's values of the step's parameters."""
    subject: str = ""
    """What its rows are, for people."""


@dataclass(frozen=True)
class Family:
    """Views that differ only in constants, evaluated together."""

    title: str
    step: str
    views: tuple[str, ...]


@dataclass(frozen=True)
class MaintenancePlan:
    """How the views of one group are kept."""

    tables: tuple[TableUse, ...]
    steps: tuple[Step, ...]
    """Inputs before those that read them."""
    zones: tuple[Zone, ...]
    views: tuple[PlannedView, ...]
    families: tuple[Family, ...] = ()
    before_images: bool = True
    """The logs have before-images, so there is no DELTA state."""

    def __post_init__(self) -> None:
        known: dict[str, Step] = {}
        for step in self.steps:
            for found in step.inputs:
                source = known.get(found.step)
                if source is None:
                    raise DefinitionError(f"step {step.operator.name} {step.title} reads what is not before it")
                emitted = {field.name for field in source.fields}
                if any(not fields_of(sql) <= emitted for sql in found.key or ()):
                    raise DefinitionError(
                        f"step {step.operator.name} {step.title} is sent changes by what they do not hold",
                        detail=f"by {found.key}, of {sorted(emitted)}",
                    )
            known[step.fingerprint] = step
        if len(known) != len(self.steps):
            raise DefinitionError("a plan holds a step twice")
        placed = [fingerprint for zone in self.zones for fingerprint in zone.steps]
        if len(placed) != len(known) or set(placed) != known.keys():
            raise DefinitionError("every step of a plan is in exactly one zone")
        if not set(map(attrgetter("step"), self.views)) <= known.keys():
            raise DefinitionError("a view is written by a step of the plan")

    @cached_property
    def by_fingerprint(self) -> dict[str, Step]:
        return {step.fingerprint: step for step in self.steps}

    @cached_property
    def by_name(self) -> Map[str, PlannedView]:
        return Map({view.name: view for view in self.views})

    @cached_property
    def written(self) -> Map[tuple[str, tuple[str, ...]], int]:
        """How many views each member of a step is written for."""
        return Map(Counter((view.step, view.constants) for view in self.views))

    @cached_property
    def family_of(self) -> dict[str, Family]:
        """By the step that writes the family's views."""
        return {family.step: family for family in self.families}

    @cached_property
    def zone_of(self) -> dict[str, Zone]:
        return {step: zone for zone in self.zones for step in zone.steps}

    def is_more_than(self, other: MaintenancePlan) -> bool:
        """Whether every step of another plan, with every member, is also one of this."""
        return all(
            step.fingerprint in self.by_fingerprint and _has_members(self.step(step.fingerprint), step)
            for step in other.steps
        )

    @property
    def shuffles(self) -> int:
        """How often an epoch redistributes changes, whatever the number of views."""
        return max((zone.stage for zone in self.zones), default=1) - 1

    def step(self, fingerprint: str) -> Step:
        """The step with this fingerprint."""
        return self.by_fingerprint[fingerprint]

    def view(self, name: str) -> PlannedView:
        return self.by_name[name]

    def view_fingerprint(self, name: str) -> str:
        """Of the table that holds the view: it changes when, and only when, the view means
        something else."""
        view = self.view(name)
        return member_fingerprint(self.step(view.step).states[0].fingerprint, view.constants)

    def steps_of(self, *views: str) -> tuple[Step, ...]:
        """The steps that maintain these views, in order."""
        wanted = {self.view(name).step for name in views}
        for step in reversed(self.steps):
            if step.fingerprint in wanted:
                wanted.update(found.step for found in step.inputs)
        return tuple(step for step in self.steps if step.fingerprint in wanted)

    @cached_property
    def users(self) -> dict[str, tuple[str, ...]]:
        """For each step the views that need it, in order of their names."""
        found: dict[str, set[str]] = {step.fingerprint: set() for step in self.steps}
        for view in self.views:
            found[view.step].add(view.name)
        for step in reversed(self.steps):
            for source in step.inputs:
                found[source.step] |= found[step.fingerprint]
        return {fingerprint: tuple(sorted(names)) for fingerprint, names in found.items()}

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values, for :mod:`json`. Views that differ only in constants have the rest of them once."""
        alike: dict[tuple[object, ...], list[PlannedView]] = {}
        for view in self.views:
            alike.setdefault((view.step, id(view.key), id(view.columns), id(view.order)), []).append(view)
        views = [
            {**encoded(replace(found[0], name="", constants=())), "members": [(v.name, *v.constants) for v in found]}
            for found in alike.values()
        ]
        return {"format": FORMAT, **encoded(replace(self, views=())), "views": views}

    @staticmethod
    def from_json(recorded: Mapping[str, Any]) -> MaintenancePlan:
        if recorded.get("format") not in (FORMAT, VIEWS_ONE_BY_ONE):
            raise DefinitionError(
                f"a plan of format {recorded.get('format')} cannot be read",
                hint=f"this version reads format {FORMAT}; use the version that wrote it, or define the views again",
            )
        plain = {name: value for name, value in recorded.items() if name != "format"}
        if recorded["format"] == VIEWS_ONE_BY_ONE:
            return _decoded(plain)
        views = [view for kind in plain.pop("views") for view in _views_alike(kind)]
        return replace(_decoded({**plain, "views": ()}), views=tuple(sorted(views, key=lambda view: view.name)))


def _has_members(step: Step, other: Step) -> bool:
    if step.constants is None or other.constants is None:
        return step.constants is other.constants
    return step.constants.contains(other.constants)


def _decoded(plain: Mapping[str, Any]) -> MaintenancePlan:
    found = decoded(MaintenancePlan, plain)
    assert isinstance(found, MaintenancePlan)
    return found


def _views_alike(recorded: Mapping[str, Any]) -> list[PlannedView]:
    """Views that differ only in constants."""
    one = decoded(PlannedView, {name: value for name, value in recorded.items() if name != "members"})
    return [replace(one, name=name, constants=tuple(constants)) for name, *constants in recorded["members"]]
