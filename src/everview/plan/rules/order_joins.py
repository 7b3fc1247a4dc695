"""Chains of inner joins: an equality for every join where there is one, one-row sides last.

``FROM a, b, c WHERE a.x = c.x AND b.y = c.y`` asks first that every row of ``a`` meets every row
of ``b``. Joined as a, c, b each join has an equality. The written order is kept as far as that
allows: a chain in which every join has an equality is left alone. Otherwise the chain starts with
the first input that has many rows, takes the first one that an equality links to those already
there, and so on; inputs of one row that nothing links come when no linked one is left.

An order is taken only if the key of the result stays, or becomes a part of what it was; and a
chain whose conditions can fail keeps the order in which they are evaluated.
"""

from __future__ import annotations

from everview.plan.relations import Join, Relation
from everview.plan.rules.chains import chain_of, each_chain, instead_of


def order_joins(relation: Relation) -> Relation:
    return each_chain(relation, _best)


def _best(join: Join) -> Relation:
    chain = chain_of(join)
    return join if not chain.crosses or chain.can_fail else instead_of(join, chain.orders())
