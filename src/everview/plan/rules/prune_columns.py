"""Columns that nothing reads are not kept: every node has the fields that are read above it, and its key.

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

**Texts of re-evaluations.** A column that a text only passes on, and that nothing reads, is not named in
it any more, so that its inputs need not keep it.

Two places pass columns on: the outermost SELECT, of which only what is read above and the key is
wanted, and a SELECT that does nothing but name the columns of an input::

    SELECT o.id FROM (SELECT "orders.id" AS id, "orders.amount" AS amount FROM in0) AS o LIMIT 10 PERCENT
    SELECT o.id FROM (SELECT "orders.id" AS id FROM in0) AS o LIMIT 10 PERCENT

Texts that take columns without naming them (a star over the input, NATURAL, COLUMNS, a pivot, a row as
one value) are left alone.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from sqlglot import exp

from everview.plan.expressions import Definition, of_field, parsed, written
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


_PLAIN = {"expressions", "from_", "joins", "where", "qualify"}


def without_outputs(node: Reevaluate, read: Set[str]) -> Reevaluate:
    """The re-evaluation with the columns that are read and its key, where its text just lists them."""
    tree = parsed(node.query)
    if not isinstance(tree, exp.Select) or not {key for key, value in tree.args.items() if value} <= _PLAIN:
        return node
    if len(tree.expressions) != len(node.columns):
        return node
    wanted = {*read, *node.identity}
    kept = [
        n
        for n, (field, output) in enumerate(zip(node.columns, tree.expressions, strict=True))
        if field.name in wanted or not isinstance(output.unalias(), exp.Column) or output.is_star
    ]
    if len(kept) == len(node.columns):
        return node
    kept = kept or [0]
    fewer = tree.copy()
    fewer.set("expressions", [tree.expressions[n].copy() for n in kept])
    columns = tuple(node.columns[n] for n in kept)
    still = set(node.shown_as) <= {field.name for field in columns}
    return replace(node, query=written(fewer), columns=columns, shown_as=node.shown_as if still else ())


def without_names(node: Reevaluate) -> Reevaluate:
    """The re-evaluation whose text names no column of an input in vain."""
    tree = parsed(node.query).copy()
    if tree.find(exp.Columns, exp.Pivot, exp.Command) or any(
        join.method.upper() == "NATURAL" for join in tree.find_all(exp.Join)
    ):
        return node
    changed = False
    for source in [found for found in tree.find_all(exp.Subquery) if _names_an_input(found)]:
        select, around = source.this, source.find_ancestor(exp.Select)
        if around is None or not source.alias or _takes_whole(around, source.alias):
            continue
        inside = set(map(id, select.find_all(exp.Identifier)))
        named = {found.name.lower() for found in tree.find_all(exp.Identifier) if id(found) not in inside}
        kept = [output for output in select.expressions if output.alias_or_name.lower() in named]
        kept = kept or select.expressions[:1]
        if len(kept) < len(select.expressions):
            select.set("expressions", kept)
            changed = True
    return replace(node, query=written(tree)) if changed else node


def _names_an_input(source: exp.Subquery) -> bool:
    select = source.this
    alias = source.args.get("alias")
    return (
        isinstance(select, exp.Select)
        and {key for key, value in select.args.items() if value} <= {"expressions", "from_", "order"}
        and select.args.get("from_") is not None
        and isinstance(select.args["from_"].this, exp.Table)
        and all(isinstance(output.unalias(), exp.Column) and not output.is_star for output in select.expressions)
        and not (isinstance(alias, exp.TableAlias) and alias.columns)
    )


def _takes_whole(select: exp.Select, alias: str) -> bool:
    """Whether a SELECT takes all columns of one of its sources without naming them. In a subquery the
    source may be meant from further in."""
    for star in select.find_all(exp.Star):
        of_source = isinstance(star.parent, exp.Column) and star.parent.table == alias
        of_all = isinstance(star.parent, exp.Select) and star.parent is select
        if of_source or of_all or not isinstance(star.parent, exp.Column | exp.Select | exp.Count):
            return True
    return any(not column.table and column.name.lower() == alias.lower() for column in select.find_all(exp.Column))
