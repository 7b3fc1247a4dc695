"""Nobody keeps what nobody reads: every node has the fields that are read above it, and its key.

Walking down with the set of names that are read above, scans lose columns,
projections outputs, aggregates and windows calls; and below what keeps rows (a side of a join, a
window, a top-k, a re-evaluation, the view itself) a projection is put where an input still has
more than is read.

A filter or a join has the fields of its inputs, read above or not: in
``a JOIN b ON a.x = b.x JOIN c ON b.y = c.y`` the second join need not keep ``a.x`` and ``b.x``::

    join inner ON "b.y" = "c.y"               join inner ON "b.y" = "c.y"
      join inner ON "a.x" = "b.x"               project a.id, b.id, b.y
        …                               →         join inner ON "a.x" = "b.x"
                                                    …

Columns that go by position (of distinct rows and set operations) all count as read. A UNION ALL
loses a column together with all of its inputs, where the column lives on hidden if it is part of
the input's key.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from everview.plan.expressions import Definition, of_field
from everview.plan.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Project,
    Reevaluate,
    Relation,
    Scan,
    SetOperation,
    TopK,
    Union,
    Unnest,
    Window,
)
from everview.plan.rules.merge_projections import merged
from everview.plan.rules.pruned_texts import without_names, without_outputs
from everview.plan.rules.trees import over, read_by_query, reads

Names = Set[str]


def prune_columns(relation: Relation) -> Relation:
    return _narrow(relation, _shown(relation))


def _shown(node: Relation) -> Names:
    return {field.name for field in node.shown}


def _narrow(node: Relation, read: Names) -> Relation:
    """The node with the fields that are read and its key, and no others."""
    found = _pruned(node, read)
    kept = _kept(found, read)
    if len(kept) == len(found.fields) or isinstance(found, Project | Scan):
        return found
    return Project(found, kept)


def _kept(node: Relation, read: Names) -> tuple[Definition, ...]:
    wanted = {*read, *node.key}
    kept = tuple((field, of_field(field)) for field in node.fields if field.name in wanted)
    return kept or ((node.fields[0], of_field(node.fields[0])),)


def _pruned(node: Relation, read: Names) -> Relation:
    """The node without what is neither read nor needed below or for the key."""
    if isinstance(node, Scan):
        return _scan(node, read)
    if isinstance(node, Project):
        return _project(node, read)
    if isinstance(node, Union):
        return _union(node, read)
    if isinstance(node, Window):
        return _window(node, read)
    if isinstance(node, Aggregate):
        return _aggregate(node, read)
    if isinstance(node, Join):
        below = {*read, *reads(node), *((node.marker,) if node.marker else ())}
        one_sided = node.kind in (JoinKind.SEMI, JoinKind.ANTI)
        right = reads(node) if one_sided else below
        return over(node, [_narrow(node.left, below), _narrow(node.right, right)])
    if isinstance(node, TopK):
        return over(node, [_narrow(node.input, {*read, *reads(node)})])
    if isinstance(node, Filter | Unnest):
        return over(node, [_pruned(node.input, {*read, *reads(node)})])
    if isinstance(node, Distinct | SetOperation):
        return over(node, [_pruned(found, _shown(found)) for found in node.inputs])
    if isinstance(node, Reevaluate):
        node = without_names(without_outputs(node, read))
        return over(node, [_narrow(found, read_by_query(node, n)) for n, found in enumerate(node.sources)])
    return node


def _scan(node: Scan, read: Names) -> Relation:
    wanted = {*read, *node.key}
    kept = tuple(c for c, field in zip(node.columns, node.fields, strict=True) if field.name in wanted)
    kept = kept or node.columns[:1]
    return node if len(kept) == len(node.columns) else replace(node, columns=kept)


def _project(node: Project, read: Names) -> Relation:
    wanted = {*read, *node.key}
    kept = tuple(output for output in node.outputs if output[0].name in wanted) or node.outputs[:1]
    below = _pruned(node.input, frozenset().union(*(found.fields for _, found in kept)))
    if len(kept) == len(node.outputs) and below is node.input:
        return node
    return Project(below, kept)


def _aggregate(node: Aggregate, read: Names) -> Relation:
    calls = tuple(call for call in node.calls if call.field.name in read)
    if not calls and not node.groups:
        calls = node.calls[:1]
    found = node if len(calls) == len(node.calls) else replace(node, calls=calls)
    return over(found, [_pruned(found.input, reads(found))])


def _window(node: Window, read: Names) -> Relation:
    calls = tuple(call for call in node.calls if call.field.name in read)
    if not calls:
        return _pruned(node.input, read)
    found = node if len(calls) == len(node.calls) else replace(node, calls=calls)
    return over(found, [_narrow(found.input, {*read, *reads(found)} & found.input.by_name.keys())])


def _union(node: Union, read: Names) -> Relation:
    kept = [n for n, column in enumerate(node.columns) if column.name in read] or [0]
    if len(kept) == len(node.columns):
        return over(node, [_pruned(part, _shown(part)) for part in node.parts])
    parts = (_with_shown(part, kept) for part in node.parts)
    columns = tuple(node.columns[n] for n in kept)
    return replace(node, parts=tuple(_pruned(part, _shown(part)) for part in parts), columns=columns)


def _with_shown(node: Relation, numbers: list[int]) -> Relation:
    """The node showing only some of its columns; the rest of its key is hidden."""
    shown = [node.shown[n] for n in numbers]
    rest = [field for field in node.fields if field.name in node.key and field not in shown]
    outputs = [*((field, of_field(field)) for field in shown)]
    outputs += [(replace(field, hidden=True), of_field(field)) for field in rest]
    return merged(Project(node, tuple(outputs)))
