"""An outer join whose missing rows are dropped above is no outer join.

A LEFT JOIN shows a row of the left side that has no match with nulls on the right. If a condition
above is not true of such rows, they never get far, and the join may be INNER: it need not count
matches, and filters on the right side may go down. Conditions above are filters, and also the
conditions of joins above in which this one takes part: ``(a LEFT JOIN b …) JOIN c ON b.x = c.x``.

| join | nulls rejected on | becomes |
|---|---|---|
| left | right | inner |
| right | left | inner |
| full | left; right; both | left; right; inner |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from everview.change.types import BOOLEAN
from everview.plan.expressions import Expr, conjuncts, quoted
from everview.plan.relations import Filter, Join, JoinKind, Relation
from everview.plan.rules.conditions import is_strict, rejects_nulls
from everview.plan.rules.descent import ASKED, MATCHED, below
from everview.plan.rules.trees import Rekeyed, rebuilt

_OUTER = (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)


def outer_to_inner(relation: Relation) -> Relation:
    outer = any(isinstance(node, Join) and node.kind in _OUTER for node in relation.walk())
    return _converted(relation, ())[0] if outer else relation


def _converted(node: Relation, known: Sequence[Expr]) -> Rekeyed:
    """The node as part of a query that drops every row of it for which ``known`` does not hold."""
    if isinstance(node, Filter):
        return rebuilt(node, [_converted(node.input, (*conjuncts(node.condition), *known))])
    if isinstance(node, Join):
        node = _inner(node, known)
    downs, _ = below(node, known)
    if isinstance(node, Join):
        downs = tuple((*down, *_present(node, side, known)) for side, down in enumerate(downs))
    return rebuilt(node, [_converted(found, down) for found, down in zip(node.inputs, downs, strict=True)])


def _inner(node: Join, known: Sequence[Expr]) -> Join:
    left, right = (
        any(rejects_nulls(part, frozenset(side.by_name)) for part in known) for side in (node.left, node.right)
    )
    kind = node.kind
    if kind in (JoinKind.LEFT, JoinKind.FULL) and right:
        kind = JoinKind.INNER if kind is JoinKind.LEFT or left else JoinKind.RIGHT
    elif kind in (JoinKind.RIGHT, JoinKind.FULL) and left:
        kind = JoinKind.INNER if kind is JoinKind.RIGHT else JoinKind.LEFT
    found = replace(node, kind=kind, marker=node.marker if kind is JoinKind.FULL else None)
    # Where both sides are met once an inner join takes the left key, and a right join the right one.
    return found if kind is not node.kind and set(found.key) <= set(node.key) else node


def _present(node: Join, number: int, known: Sequence[Expr]) -> Iterator[Expr]:
    """What the join and conditions over both of its sides imply for the fields of one side."""
    side = node.inputs[number]
    own = conjuncts(node.rest) if node.rest is not None else ()
    known_true = (*(own if number in MATCHED[node.kind] else ()), *(known if number in ASKED[node.kind] else ()))
    for name in sorted({name for part in known_true for name in part.fields} & side.by_name.keys()):
        if any(rejects_nulls(part, frozenset([name])) for part in known_true):
            yield Expr(f"NOT {quoted(name)} IS NULL", BOOLEAN)
    if number in MATCHED[node.kind]:
        for equality in node.on:
            found = (equality.left, equality.right)[number]
            if not equality.nulls_match and is_strict(found, found.fields):
                yield Expr(f"NOT ({found.sql}) IS NULL", BOOLEAN)
