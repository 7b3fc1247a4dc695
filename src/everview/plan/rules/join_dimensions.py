"""Chains of inner joins: what adds one row at most to a row is joined to it before rows are multiplied.

``FROM customer, orders, lineitem, nation`` joined as it is written keeps all lines by the nation of their customer,
only to look up its name::

    ((customer ⋈ orders) ⋈ lineitem) ⋈ nation     kept for the last join: every line, in 25 large bags
    lineitem ⋈ (orders ⋈ (customer ⋈ nation))     kept for that one: every customer

An input whose key a single other input names by equalities (nation by customer, customer by orders) is joined to that
one first, and what comes of it is an input in its place, until none is left; inputs that a filter makes smaller go
before others. A change of a customer then touches its orders once instead of its lines again and again.

What is left is joined in the written order. A chain where that saves nothing is left alone, as are chains whose
conditions can fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.plan.relations import Filter, Join, Relation
from everview.plan.rules.chains import Chain, chain_of, each_chain, instead_of, links


def join_dimensions(relation: Relation) -> Relation:
    return each_chain(relation, _best)


def _best(join: Join) -> Relation:
    chain = chain_of(join)
    if len(chain.inputs) < 3 or chain.can_fail:
        return join
    inputs = chain.inputs
    while (pair := _dimension(chain)) is not None:
        _, chain = chain.joined(*pair)
    best = instead_of(join, chain.orders())
    return best if _late(best, inputs) < _late(join, inputs) else join


def _dimension(chain: Chain) -> tuple[Relation, Relation] | None:
    """An input, and another one of which each of its rows meets one at most, and which nothing else names."""
    numbered = list(enumerate(chain.inputs))
    for number, found in sorted(numbered, key=lambda one: (not _is_filtered(one[1]), one[0])):
        homes = [(place, one) for place, one in numbered if one is not found and links(chain.equalities, one, found)]
        named = [e for e in chain.equalities if not found.by_name.keys().isdisjoint(e.left.fields | e.right.fields)]
        if len(homes) != 1:
            continue
        place, home = homes[0]
        on = links(chain.equalities, home, found)
        both_ways = set(home.key) <= {e.left.field for e in on}
        if (
            found.key
            and len(on) == len(named)
            and set(found.key) <= {e.right.field for e in on}
            and not (both_ways and number < place)
        ):
            return home, found
    return None


def _is_filtered(relation: Relation) -> bool:
    return any(isinstance(found, Filter) for found in relation.walk())


def _late(relation: Relation, inputs: Sequence[Relation]) -> int:
    """How many inputs have been joined by the time that each join looks its rows up, added up over all joins: the
    fewer, the smaller is what is kept for them."""
    late = 0

    def visit(node: Relation) -> int:
        nonlocal late
        if any(node is one for one in inputs):
            return 1
        if not isinstance(node, Join):
            (below,) = node.inputs
            return visit(below)
        left, right = visit(node.left), visit(node.right)
        looks_up = [size for side, size in ((node.left, left), (node.right, right)) if side.key == node.key]
        late += min(looks_up, default=left + right)
        return left + right

    visit(relation)
    return late
