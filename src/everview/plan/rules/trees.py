"""Rebuilding trees: what a rule needs to put changed inputs below an unchanged node.

Nodes read their inputs' fields by name, so an input may be replaced by any other
that has those names with the same meaning and a key that is a part of the old one.

There is one kind of name whose meaning may change. The key of a UNION ALL lays the keys of its
inputs over each other, so when the key of an input gets smaller (a LEFT JOIN became an INNER
JOIN), the union's hidden key fields hold something else than before. Projections above pass them
on, and are replaced; whatever else reads them by name (the order of a top-k) must not notice, so
there the old input stays. Rules that make keys smaller therefore return the names that changed,
with the relation: ``Rekeyed``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

from everview.plan.expressions import Expr, fields_of, parsed
from everview.plan.relations import (
    Aggregate,
    Call,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Project,
    Reevaluate,
    Relation,
    SetOperation,
    TopK,
    Union,
    Unnest,
    Window,
    distinguishes_sides,
    project,
)

Rekeyed = tuple[Relation, frozenset[str]]
"""A relation, and the hidden names that now mean something else or are gone."""

UNCHANGED: frozenset[str] = frozenset()


def over(node: Relation, inputs: Sequence[Relation]) -> Relation:
    """The node over these inputs; itself, if they are its own."""
    same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
    return node if same else node.with_inputs(*inputs)


def bottom_up(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """The tree with every node changed, inputs first."""

    def visit(node: Relation) -> Rekeyed:
        below, names = rebuilt(node, [visit(found) for found in node.inputs])
        now = change(below)
        if now is not below and isinstance(below, Union):
            names |= hidden(below)
        return now, names

    return visit(relation)[0]


def rebuilt(node: Relation, inputs: Sequence[Rekeyed]) -> Rekeyed:
    """The node over changed inputs, or the node as it was where it would notice the change."""
    relations = [relation for relation, _ in inputs]
    if (
        isinstance(node, Join)
        and node.kind is JoinKind.FULL
        and not distinguishes_sides(relations[0], relations[1], node.marker)
    ):
        return node, UNCHANGED
    changed = UNCHANGED.union(*(names for _, names in inputs))
    if isinstance(node, Union):
        union = over(node, relations)
        return union, hidden(node) if changed or _moved(node, union) else UNCHANGED
    if not changed:
        return over(node, relations), UNCHANGED
    if changed & reads(node):
        return node, UNCHANGED
    if isinstance(node, Project):
        gone = frozenset(field.name for field, found in node.outputs if found.field in changed)
        return project(relations[0], [output for output in node.outputs if output[0].name not in gone]), gone
    visible = UNCHANGED if isinstance(node, Aggregate | Distinct | SetOperation) else changed
    return node.with_inputs(*relations), visible


def _moved(before: Union, after: Relation) -> bool:
    """Whether the key fields of a union hold other fields of its inputs than before."""
    if before is after or not isinstance(after, Union):
        return False
    numbers = range(len(before.parts))
    return before.fields != after.fields or any(before.places(n) != after.places(n) for n in numbers)


def hidden(node: Relation) -> frozenset[str]:
    return frozenset(field.name for field in node.fields if field.hidden)


def reads(node: Relation) -> frozenset[str]:
    """The fields of its inputs that a node reads itself. What a projection only passes on hidden
    is not read, nor are the shown fields of set operations, which go by position."""
    if isinstance(node, Filter):
        return node.condition.fields
    if isinstance(node, Project):
        return _fields(found for field, found in node.outputs if not (field.hidden and found.field))
    if isinstance(node, Join):
        rest = (node.rest,) if node.rest else ()
        return _fields([*(e.left for e in node.on), *(e.right for e in node.on), *rest])
    if isinstance(node, Aggregate):
        return _fields(found for _, found in node.groups).union(*map(read_by_call, node.calls))
    if isinstance(node, Window):
        return _fields(node.partition).union(*map(read_by_call, node.calls))
    if isinstance(node, TopK):
        return _fields([*node.partition, *(sort.by for sort in node.order)])
    if isinstance(node, Unnest):
        return node.items.fields
    if isinstance(node, Reevaluate):
        return frozenset().union(*(read_by_query(node, number) for number in range(len(node.sources))))
    return frozenset()


def read_by_call(call: Call) -> frozenset[str]:
    return _fields(call.reads) | (fields_of(call.sql) if call.sql else frozenset())


def read_by_query(node: Reevaluate, number: int) -> frozenset[str]:
    """The fields of one input that the query of a re-evaluation may read: those it names, or all
    where it takes whole rows (``*``, ``COLUMNS``, ``NATURAL``, the row itself as a value)."""
    every = frozenset(node.sources[number].by_name)
    tree = parsed(node.query)
    whole = any(map(_takes_all, tree.find_all(exp.Star)))
    whole |= any(join.method.upper() == "NATURAL" or join.args.get("using") for join in tree.find_all(exp.Join))
    whole |= any(column.name.lower() == f"in{number}" for column in tree.find_all(exp.Column))
    whole |= any(tree.find(kind) is not None for kind in (exp.Columns, exp.Pivot, exp.Command))
    named = {found.name.lower() for found in tree.find_all(exp.Identifier)}
    partition = _fields(node.partition[number]) if node.partition else frozenset()
    return every if whole else frozenset(name for name in every if name.lower() in named) | partition


def _takes_all(star: exp.Star) -> bool:
    """Whether a star may show columns that are not named elsewhere. One that only hands an input on to a
    query that names what it reads does not."""
    select = star.parent
    if isinstance(select, exp.Count):
        return False
    if not isinstance(select, exp.Select) or select.args.get("distinct") or select.args.get("joins"):
        return True
    source, around = select.args.get("from_"), select.find_ancestor(exp.Select)
    if source is None or not isinstance(source.this, exp.Table) or not isinstance(select.parent, exp.Subquery):
        return True
    return around is None or any(output.is_star for output in around.selects)


def _fields(expressions: Iterable[Expr]) -> frozenset[str]:
    return frozenset().union(*(found.fields for found in expressions))
