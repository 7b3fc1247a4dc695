"""Chains of inner joins: their inputs, what must hold of their rows, and joining them in another order.

Nested inner joins are one chain whose inputs may be joined in any order, as long as every condition
is asked for as soon as all that it reads is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from everview.change.types import BOOLEAN
from everview.plan.expressions import Expr, conjunction, conjuncts, of_field
from everview.plan.relations import Equality, Join, JoinKind, Project, Relation
from everview.plan.rules.conditions import can_fail
from everview.plan.rules.trees import Rekeyed, rebuilt


@dataclass(frozen=True)
class Chain:
    """The inputs of a chain of inner joins, and what must hold of their rows."""

    inputs: tuple[Relation, ...]
    equalities: tuple[Equality, ...] = ()
    rest: tuple[Expr, ...] = ()
    crosses: int = 0
    """Joins without an equality, and those of them where both sides may have many rows."""
    wide_crosses: int = 0

    @property
    def can_fail(self) -> bool:
        """Whether a condition may have no value, so that the order in which they are asked for matters."""
        conditions = [*self.rest, *(side for e in self.equalities for side in (e.left, e.right))]
        return any(can_fail(found.sql) for found in conditions)

    def joined(self, left: Relation, right: Relation) -> tuple[Join, Chain]:
        """Two of the inputs, or of what was joined of them, as one; and the chain with it in the left one's place."""
        on = links(self.equalities, left, right)
        there = left.by_name.keys() | right.by_name.keys()
        equalities = [e for e in self.equalities if e not in on and turned(e) not in on]
        late = [e for e in equalities if e.left.fields | e.right.fields <= there]
        now = [part for part in self.rest if part.fields <= there]
        condition = conjunction([*(Expr(str(e), BOOLEAN) for e in late), *now])
        join = Join(JoinKind.INNER, left, right, tuple(on), condition)
        inputs = (join if found is left else found for found in self.inputs if found is not right)
        left_over = Chain(
            tuple(inputs),
            tuple(e for e in equalities if e not in late),
            tuple(part for part in self.rest if part not in now),
        )
        return join, left_over

    def in_order(self, first: Relation) -> Relation:
        """All of it, one input after another, starting with this one: the next is the first that an equality links
        to those already there; inputs of one row that nothing links come when no linked one is left."""
        tree, chain = first, self
        while len(chain.inputs) > 1:
            waiting = [found for found in chain.inputs if found is not tree]
            linked = [found for found in waiting if links(chain.equalities, tree, found)]
            single = [found for found in waiting if not found.key]
            tree, chain = chain.joined(tree, (linked or single or waiting)[0])
        return tree

    def orders(self) -> list[Relation]:
        """All of it, starting with each input that has many rows."""
        many = [found for found in self.inputs if found.key]
        return [self.in_order(first) for first in many or self.inputs[:1]]


def chain_of(node: Relation) -> Chain:
    if not isinstance(node, Join) or node.kind is not JoinKind.INNER:
        return Chain((node,))
    left, right = chain_of(node.left), chain_of(node.right)
    rest = conjuncts(node.rest) if node.rest is not None else ()
    return Chain(
        left.inputs + right.inputs,
        left.equalities + right.equalities + node.on,
        left.rest + right.rest + rest,
        left.crosses + right.crosses + (not node.on),
        left.wide_crosses + right.wide_crosses + node.compares_all,
    )


def each_chain(relation: Relation, change: Callable[[Join], Relation]) -> Relation:
    """The tree with every chain changed as a whole, those below it first."""
    return _visited(relation, change, inside=False)[0]


def _visited(node: Relation, change: Callable[[Join], Relation], *, inside: bool) -> Rekeyed:
    """``inside``: the node is part of a longer chain."""
    chain = isinstance(node, Join) and node.kind is JoinKind.INNER
    found, changed = rebuilt(node, [_visited(below, change, inside=chain) for below in node.inputs])
    if isinstance(found, Join) and chain and not inside:
        return change(found), changed
    return found, changed


def instead_of(join: Join, orders: Sequence[Relation]) -> Relation:
    """The first of these orders with the fewest joins that compare all rows with all, with the fields of the join;
    the join itself where none has a key that is a part of its own, or where all compare more."""
    possible = [found for found in orders if set(found.key) <= set(join.key)]
    best = min(possible, key=lambda found: chain_of(found).wide_crosses, default=join)
    if best == join or chain_of(best).wide_crosses > chain_of(join).wide_crosses:
        return join
    if [field.name for field in best.fields] == [field.name for field in join.fields]:
        return best
    return Project(best, tuple((best.field(field.name), of_field(field)) for field in join.fields))


def links(equalities: Sequence[Equality], left: Relation, right: Relation) -> list[Equality]:
    """The equalities between the two, the left one's side on the left."""
    found = [e for e in equalities if _between(e, left, right)]
    return found + [turned(e) for e in equalities if _between(turned(e), left, right)]


def _between(equality: Equality, left: Relation, right: Relation) -> bool:
    reads = equality.left.fields, equality.right.fields
    return all(reads) and reads[0] <= left.by_name.keys() and reads[1] <= right.by_name.keys()


def turned(equality: Equality) -> Equality:
    return Equality(equality.right, equality.left, equality.nulls_match)
