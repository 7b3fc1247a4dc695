"""The plan of a group out of the relations of its views.

Views are compiled one after another into one sketch, a template only once
however many views it has, and the sketch is then fixed and cut into zones.

The order of the views does not matter, and leaving one out changes nothing about the others
but the columns and members that only it needed: see :func:`everview.plan.maintenance.evolution.difference`.

Each kind of relation is compiled by one function, in the table below: a relation with the fields
that are needed of it becomes a stream, inputs first, and every step on the way is found by its
fingerprint or made.

Projections are no steps: a computed column is carried as an expression over the columns that
are there, until a step keeps it or sends it on. So two views that compute different things of
the same rows share everything below.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everview.change.types import VARCHAR
from everview.errors import DefinitionError
from everview.plan.expressions import Expr, Field, quoted
from everview.plan.maintenance.aggregate_steps import aggregate
from everview.plan.maintenance.counting_steps import distinct, set_operation
from everview.plan.maintenance.family import Shapeless, relation_template
from everview.plan.maintenance.fixing import family_title, step_of, zones_of
from everview.plan.maintenance.join_steps import join
from everview.plan.maintenance.model import (
    Family,
    MaintenancePlan,
    PlannedView,
    ReadOrder,
    Role,
    Shape,
    ShownColumn,
    TableUse,
)
from everview.plan.maintenance.operator_definitions import DeltaOperator, IndexOperator, ViewOperator
from everview.plan.maintenance.operator_parts import ComputedColumn
from everview.plan.maintenance.partition_steps import reevaluation, top_k, window
from everview.plan.maintenance.rowwise_steps import ROW_ID, filtered, projected, rows, scan, union, unnest
from everview.plan.maintenance.sketch import (
    CompileContext,
    Sketch,
    Slot,
    StateDraft,
    StepDraft,
    Stream,
    place_for,
    resolved,
)
from everview.plan.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    QueryRows,
    Reevaluate,
    Relation,
    Scan,
    SetOperation,
    Sort,
    TopK,
    Union,
    Unnest,
    Window,
)

COMPILED_BY: Mapping[type[Relation], Callable[[Any, frozenset[str], CompileContext], Stream]] = {
    Scan: scan,
    QueryRows: rows,
    Filter: filtered,
    Project: projected,
    Unnest: unnest,
    Union: union,
    Aggregate: aggregate,
    Distinct: distinct,
    SetOperation: set_operation,
    Join: join,
    Window: window,
    TopK: top_k,
    Reevaluate: reevaluation,
}


@dataclass(frozen=True)
class ViewInput:
    """A view to be planned: its relation, whose shown fields are its columns and whose key is its
    row key, and the order in which it is read."""

    name: str
    relation: Relation
    order: tuple[Sort, ...] = ()
    index: tuple[str, ...] = ()
    """For an index: the fields it is by. Its entries are (these fields, row key) and nothing else."""

    @functools.cached_property
    def template(self) -> tuple[Shapeless, tuple[str, ...]]:
        """What it has in common with views that differ from it only in constants, and its own."""
        return relation_template(self.relation)

    def __post_init__(self) -> None:
        known = self.relation.by_name.keys()
        lost = sorted({name for sort in self.order for name in sort.by.fields - known} | (set(self.index) - known))
        if lost:
            raise DefinitionError(f"view {self.name} is ordered by what its rows do not hold", detail=", ".join(lost))


def plan_group(views: Sequence[ViewInput], before_images: bool = True) -> MaintenancePlan:
    """Plan all views of a group together."""
    planner = _Planner({view.name: view for view in views})
    if len(planner.inputs) != len(views):
        raise DefinitionError("two views of a group have the same name")
    for name in sorted(planner.inputs):
        planner.plan(name)
    drafts = list(planner.sketch.drafts.values())
    planned = tuple(planner.planned[name] for name in sorted(planner.planned))
    called: dict[str, list[str]] = {}
    for view in planned:
        called.setdefault(view.step, []).append(view.name)
    return MaintenancePlan(
        _tables(drafts),
        tuple(step_of(draft, before_images, called.get(draft.fingerprint, ())) for draft in drafts),
        zones_of(drafts),
        planned,
        _families(called, planner.sketch),
        before_images,
    )


@dataclass(frozen=True)
class _Compiled:
    """A template: what all its views have in common."""

    stream: Stream
    key: tuple[str, ...]
    columns: tuple[ShownColumn, ...]
    order: tuple[ReadOrder, ...]
    touched: tuple[tuple[StepDraft, tuple[Slot, ...]], ...]
    subject: str


@dataclass
class _Planner:
    inputs: dict[str, ViewInput]
    sketch: Sketch = field(default_factory=Sketch)
    templates: dict[Shapeless, _Compiled] = field(default_factory=dict)
    planned: dict[str, PlannedView] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)
    under_way: set[str] = field(default_factory=set)

    def plan(self, name: str) -> None:
        if name in self.planned:
            return
        if name in self.under_way:
            raise DefinitionError(f"view {name} is defined by itself")
        self.under_way.add(name)
        view = self.inputs[name]
        template, constants = view.template
        identity = (template, view.order, view.index)
        compiled = self.templates.get(identity)
        if compiled is None:
            compiled = self._compiled(view, iter(range(len(constants))))
            self.templates[identity] = compiled
        self.sketch.join_members(compiled.touched, constants)
        own = resolved(compiled.stream.slots, constants)
        self.planned[name] = PlannedView(
            name,
            compiled.stream.draft.fingerprint,
            compiled.key,
            compiled.columns,
            compiled.order,
            own,
            compiled.subject,
        )
        names = {column.name: Expr(quoted(column.stored), column.type) for column in compiled.columns}
        hidden = {name: found for name, found in compiled.stream.names.items() if name not in names}
        names[ROW_ID] = _row_id([compiled.stream.draft.columns[stored] for stored in compiled.key])
        self.streams[name] = Stream(compiled.stream.draft, compiled.stream.labels, hidden | names, own)

    def _view(self, name: str) -> Stream | None:
        if name not in self.inputs:
            return None
        self.plan(name)
        return self.streams[name]

    def _compiled(self, view: ViewInput, slots: Iterator[Slot]) -> _Compiled:
        for relation in view.relation.walk():  # before this one is under way: they touch steps of their own
            if isinstance(relation, Scan) and relation.table in self.inputs:
                self.plan(relation.table)
        relation = view.relation
        self.sketch.touched = []
        context = CompileContext(self.sketch, COMPILED_BY, self._view, slots)
        by = (*view.index, *(name for name in relation.key if name not in view.index))
        needed = frozenset(by) if view.index else frozenset(relation.by_name)
        below = context.stream(relation, needed)
        key = list({below.names[name].sql: below.names[name] for name in by}.values())
        stored = {name: below.name_of(below.names[name]) for name in needed}
        named = tuple(below.name_of(one) for one in key)
        columns = sorted((below.name_of(one), one.sql) for one in set(below.names.values()))
        kind, role = (IndexOperator, Role.INDEX) if view.index else (ViewOperator, Role.VIEW)
        operator = kind(columns=tuple(ComputedColumn(name, sql) for name, sql in columns), key=named)
        place = place_for(below.draft, [one.sql for one in key])
        draft, own = self.sketch.step(operator, [(below, place)], below.draft.subject)
        stream = below.carried_by(draft, sorted(needed), own)
        if draft.state is None:
            draft.state = StateDraft(role, Shape.RECORD, below.draft.subject, below.key_parts(key))
        shown = [column for column in relation.fields if column.name in needed and not column.hidden]
        return _Compiled(
            stream,
            named,
            tuple(ShownColumn(one.name, one.type, one.nullable, stored[one.name]) for one in shown),
            tuple(ReadOrder(stream.over(one.by).sql, one.descending, one.nulls_first) for one in view.order),
            tuple(self.sketch.touched),
            below.draft.subject,
        )


def _row_id(key: Sequence[Field]) -> Expr:
    """One value for a key: the field itself, or the texts of all, each after its length."""
    if len(key) == 1:
        return Expr(quoted(key[0].name), key[0].type)
    texts = [f"CAST({quoted(field.name)} AS VARCHAR)" for field in key]
    values = [f"COALESCE(LENGTH({text}) || ':' || {text}, '-')" for text in texts]
    return Expr(" || ".join(values) or "''", VARCHAR)


def _tables(drafts: Sequence[StepDraft]) -> tuple[TableUse, ...]:
    found: list[TableUse] = []
    for draft in drafts:
        if isinstance(draft.operator, DeltaOperator):
            operator = draft.operator.with_gained(draft.gained.values())
            real = {column.name: column.column for column in operator.columns}
            columns = [Field(real[c.name], c.type, c.nullable) for c in draft.columns.values()]
            key = tuple(real[name] for name in operator.key)
            held = tuple(sorted(columns, key=lambda c: c.name))
            found.append(TableUse(operator.table, key, held, draft.fingerprint))
    return tuple(sorted(found, key=lambda table: table.name))


def _families(called: Mapping[str, Sequence[str]], sketch: Sketch) -> tuple[Family, ...]:
    found: list[Family] = []
    for step, names in called.items():
        draft = sketch.drafts[step]
        if len(draft.members) > 1:
            found.append(Family(family_title(len(names), draft.subject), step, tuple(names)))
    return tuple(found)
