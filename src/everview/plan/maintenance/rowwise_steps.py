"""Sources, and what is done to each row by itself: these keep no state and stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.change.types import VARCHAR
from everview.plan.expressions import Expr, Field, quoted
from everview.plan.maintenance.column_names import above, column_name, computed_name, numbered_from
from everview.plan.maintenance.failing import can_fail
from everview.plan.maintenance.family import template_of
from everview.plan.maintenance.operator_definitions import (
    DeltaOperator,
    FilterProjectOperator,
    RowsOperator,
    UnionOperator,
    UnnestOperator,
)
from everview.plan.maintenance.operator_parts import TableColumn
from everview.plan.maintenance.sketch import CompileContext, Place, Stream
from everview.plan.relations import Filter, Project, QueryRows, Scan, Union, Unnest

ROW_ID = ""
"""What identifies the rows of a view, in one value, under this name: a query over a view that does
not show its key reads it as the view's hidden row id."""

LONGEST = 4_000
"""Characters up to which a computed column is carried as an expression. Beyond, it is computed:
projections upon projections that name a column twice would double its text each time."""


def scan(relation: Scan, needed: frozenset[str], context: CompileContext) -> Stream:
    """A base table's changes; or those of a view of the group, which are there already."""
    names = {f"{relation.alias}.{column.name}": column for column in relation.columns}
    view = context.views(relation.table)
    if view is not None:
        return replace(view, names={name: view.names.get(names[name].name, view.names[ROW_ID]) for name in needed})
    key = [column_name(relation.table, name) for name in relation.primary]
    operator = DeltaOperator(table=relation.table, key=tuple(key))
    draft, slots = context.sketch.step(operator, (), relation.table)
    draft.located = tuple(frozenset({quoted(name)}) for name in key)
    draft.zone_key = tuple(map(quoted, key))
    wanted = needed | set(relation.key)
    found: dict[str, Expr] = {}
    for name, column in names.items():
        if name in wanted:
            stored = column_name(relation.table, column.name)
            draft.carry([Field(stored, column.type, column.nullable)])
            draft.gain(TableColumn(stored, column.name))
            found[name] = Expr(quoted(stored), column.type)
    return Stream(draft, (relation.table,), {name: found[name] for name in needed}, slots)


def rows(relation: QueryRows, needed: frozenset[str], context: CompileContext) -> Stream:
    """Rows of the query itself: inserted once, when the view is built."""
    operator = RowsOperator(query=relation.query, rounds=relation.rounds)
    draft, slots = context.sketch.step(operator, (), "rows")
    stored = [f"rows.{number}" for number, _ in enumerate(relation.columns, start=1)]
    if relation.number:
        stored.append("rows.number")
    draft.located = tuple(frozenset({quoted(name)}) for name in stored[len(relation.columns) :])
    draft.zone_key = tuple(map(quoted, stored[len(relation.columns) :]))
    found: dict[str, Expr] = {}
    for column, name in zip(relation.fields, stored, strict=True):
        draft.carry([Field(name, column.type, column.nullable)])
        found[column.name] = Expr(quoted(name), column.type)
    return Stream(draft, ("rows",), {name: found[name] for name in needed}, slots)


def filtered(relation: Filter, needed: frozenset[str], context: CompileContext) -> Stream:
    below = context.stream(relation.input, needed | relation.condition.fields)
    template = template_of(relation.condition.sql, relation.input.fields)
    own = [(kind, next(context.slots)) for kind in template.classes]
    condition = below.over(Expr(numbered_from(template.sql, len(below.slots) + 1), relation.condition.type))
    subject = below.draft.subject
    draft, slots = context.sketch.step(
        FilterProjectOperator(condition=condition.sql),
        [(below, None)],
        subject if subject.startswith("filtered ") else f"filtered {subject}",
        own=own,
    )
    names = {name: below.names[name] for name in needed}
    draft.carry(below.columns_of(*names.values()))
    return Stream(draft, below.labels, names, slots)


def projected(relation: Project, needed: frozenset[str], context: CompileContext) -> Stream:
    outputs = [(column, expression) for column, expression in relation.outputs if column.name in needed]
    below = context.stream(relation.input, frozenset().union(*(expression.fields for _, expression in outputs)))
    names = {column.name: below.over(expression) for column, expression in outputs}
    if all(len(found.sql) <= LONGEST for found in names.values()):
        return Stream(below.draft, below.labels, names, below.slots)
    kinds = {name: column.type for name, column in below.draft.columns.items()}
    failing = tuple(sorted({found.sql for found in names.values() if can_fail(found.sql, kinds)}))
    draft, slots = context.sketch.step(FilterProjectOperator(first=failing), [(below, None)], below.draft.subject)
    return Stream(below.draft, below.labels, names, below.slots).carried_by(draft, names, slots)


def unnest(relation: Unnest, needed: frozenset[str], context: CompileContext) -> Stream:
    own = {relation.item.name, relation.position.name}
    below = context.stream(relation.input, (needed - own) | relation.items.fields)
    items = below.over(relation.items).sql
    item, position = (computed_name(below.labels, f"{made}({items})") for made in ("unnest", "position"))
    operator = UnnestOperator(items=items, outer=relation.outer, item=item, position=position)
    draft, slots = context.sketch.step(operator, [(below, None)], f"items of {below.draft.subject}")
    names = {name: below.names[name] for name in needed - own}
    draft.carry(below.columns_of(*names.values()))
    for column, stored in ((relation.item, item), (relation.position, position)):
        draft.carry([Field(stored, column.type, column.nullable)])
        names[column.name] = Expr(quoted(stored), column.type)
    return Stream(draft, above("unnested", below.labels), names, slots)


def union(relation: Union, needed: frozenset[str], context: CompileContext) -> Stream:
    """Columns are matched by position, so which column of an input goes where is the meaning:
    all of them are needed."""
    columns = relation.fields
    streams: list[Stream] = []
    sent: list[list[Expr]] = []
    apart = True
    for number, part in enumerate(relation.parts):
        shown = [column.name for column in part.shown]
        places = relation.places(number)
        below = context.stream(part, frozenset([*shown, *(name for name in places if name is not None)]))
        streams.append(below)
        branch = Expr(str(number), columns[len(shown)].type)
        found = [*(below.names[name] for name in shown), branch]
        found += [below.names[name] if name is not None else _NOTHING for name in places]
        sent.append(found)
        keys = {below.names[name].sql for name in part.key}
        apart = apart and below.draft.located is not None and all(one & keys for one in below.draft.located)
    columns = tuple(_typed(column, [row[n] for row in sent]) for n, column in enumerate(columns))
    level = max(below.draft.level for below in streams)
    inputs = [
        (below, _moved(below, part.key, level) if below.draft.level < level else None)
        for below, part in zip(streams, relation.parts, strict=True)
    ]
    count = len(relation.columns)
    stored = [f"union.{n + 1}" for n in range(count)] + ["union.branch"]
    stored += [f"union.key {n + 1}" for n in range(len(columns) - len(stored))]
    draft, slots = context.sketch.step(
        UnionOperator(columns=tuple(stored), inputs=tuple(tuple(map(_cast, row, columns)) for row in sent)),
        inputs,
        " + ".join(below.draft.subject for below in streams),
    )
    draft.located = tuple(frozenset({quoted(name)}) for name in stored[count:]) if apart else None
    draft.carry(Field(name, column.type, column.nullable) for name, column in zip(stored, columns, strict=True))
    names = {column.name: Expr(quoted(name), column.type) for name, column in zip(stored, columns, strict=True)}
    return Stream(draft, ("union",), names, slots)


def _moved(below: Stream, key: tuple[str, ...], level: int) -> Place:
    by = tuple(below.names[name].sql for name in key)
    return Place(level, tuple(frozenset({one}) for one in by), by)


_NOTHING = Expr("NULL", VARCHAR)


def _typed(column: Field, sent: Sequence[Expr]) -> Field:
    """A hidden key holds what the inputs have there: the row ids of views are of various types."""
    kinds = {one.type for one in sent if one is not _NOTHING}
    if not column.hidden or kinds <= {column.type}:
        return column
    return replace(column, type=kinds.pop() if len(kinds) == 1 else VARCHAR)


def _cast(expression: Expr, column: Field) -> str:
    return expression.sql if expression.type == column.type else f"CAST({expression.sql} AS {column.type})"
