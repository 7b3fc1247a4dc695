"""Chains of inner joins: an equality for every join where there is one, one-row sides last.

``FROM a, b, c WHERE a.x = c.x AND b.y = c.y`` says first that every row of ``a`` meets every row
of ``b``. Joined as a, c, b each join has an equality. The written order is kept as far as that
allows: a chain in which every join has an equality is left alone. Otherwise the chain starts with
the first input that has many rows, takes the first one that an equality links to those already
there, and so on; inputs of one row that nothing links come when no linked one is left.

An order is taken only if the key of the result stays, or becomes a part of what it was; and a
chain whose conditions can fail keeps the order in which they are evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.change.types import BOOLEAN
from everview.plan.expressions import Expr, conjunction, conjuncts, of_field
from everview.plan.relations import Equality, Join, JoinKind, Project, Relation
from everview.plan.rules.conditions import can_fail
from everview.plan.rules.trees import Rekeyed, rebuilt


def order_joins(relation: Relation) -> Relation:
    return _ordered(relation, inside=False)[0]


def _ordered(node: Relation, inside: bool) -> Rekeyed:
    """``inside``: the node is part of a longer chain, which is ordered as a whole."""
    chain = _is_inner(node)
    found, changed = rebuilt(node, [_ordered(below, inside=chain) for below in node.inputs])
    if isinstance(found, Join) and chain and not inside:
        return _best(found), changed
    return found, changed


def _is_inner(node: Relation) -> bool:
    return isinstance(node, Join) and node.kind is JoinKind.INNER


@dataclass(frozen=True)
class _Chain:
    """The inputs of a chain of inner joins, and what must hold of their rows."""

    inputs: tuple[Relation, ...]
    equalities: tuple[Equality, ...]
    rest: tuple[Expr, ...]
    crosses: int
    """Joins without an equality, and those of them where both sides may have many rows."""
    wide_crosses: int


def _chain(node: Relation) -> _Chain:
    if not isinstance(node, Join) or node.kind is not JoinKind.INNER:
        return _Chain((node,), (), (), 0, 0)
    left, right = _chain(node.left), _chain(node.right)
    rest = conjuncts(node.rest) if node.rest is not None else ()
    return _Chain(
        left.inputs + right.inputs,
        left.equalities + right.equalities + node.on,
        left.rest + right.rest + rest,
        left.crosses + right.crosses + (not node.on),
        left.wide_crosses + right.wide_crosses + node.compares_all,
    )


def _best(join: Join) -> Relation:
    chain = _chain(join)
    conditions = [*chain.rest, *(side for e in chain.equalities for side in (e.left, e.right))]
    if not chain.crosses or any(can_fail(found.sql) for found in conditions):
        return join
    many = [found for found in chain.inputs if found.key]
    orders = [_joined(chain, first) for first in many or chain.inputs[:1]]
    possible = [found for found in orders if set(found.key) <= set(join.key)]
    best = min(possible, key=lambda found: _chain(found).wide_crosses, default=join)
    if best == join or _chain(best).wide_crosses > chain.wide_crosses:
        return join
    if [field.name for field in best.fields] == [field.name for field in join.fields]:
        return best
    return Project(best, tuple((best.field(field.name), of_field(field)) for field in join.fields))


def _joined(chain: _Chain, first: Relation) -> Relation:
    """The chain joined one input after another, starting with this one."""
    tree, equalities, rest = first, list(chain.equalities), list(chain.rest)
    waiting = [found for found in chain.inputs if found is not first]
    while waiting:
        linked = [found for found in waiting if _links(equalities, tree, found)]
        single = [found for found in waiting if not found.key]
        right = (linked or single or waiting)[0]
        waiting.remove(right)
        on = _links(equalities, tree, right)
        there = tree.by_name.keys() | right.by_name.keys()
        equalities = [e for e in equalities if e not in on and _turned(e) not in on]
        late = [e for e in equalities if e.left.fields | e.right.fields <= there]
        equalities = [e for e in equalities if e not in late]
        now = [part for part in rest if part.fields <= there]
        rest = [part for part in rest if part not in now]
        condition = conjunction([*(Expr(str(e), BOOLEAN) for e in late), *now])
        tree = Join(JoinKind.INNER, tree, right, tuple(on), condition)
    return tree


def _links(equalities: Sequence[Equality], left: Relation, right: Relation) -> list[Equality]:
    """The equalities between the two, the left one's side on the left."""
    found = [e for e in equalities if _between(e, left, right)]
    turned = [_turned(e) for e in equalities if _between(_turned(e), left, right)]
    return found + turned


def _between(equality: Equality, left: Relation, right: Relation) -> bool:
    reads = equality.left.fields, equality.right.fields
    return all(reads) and reads[0] <= left.by_name.keys() and reads[1] <= right.by_name.keys()


def _turned(equality: Equality) -> Equality:
    return Equality(equality.right, equality.left, equality.nulls_match)
