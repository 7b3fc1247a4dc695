"""Filters go down, part by part, as far as they can: fewer rows to keep, to send, to join.

Where a part may go is the table in ``descent.py``. A join's own condition goes down too, to the
sides whose rows matter only where they match::

    filter "a.x" = 1 AND "a.y" < "b.y"            filter "a.y" < "b.y"
      join inner ON "a.id" = "b.id" AND "b.z"       join inner ON "a.id" = "b.id"
        scan a                              →         filter "a.x" = 1
        scan b                                          scan a
                                                      filter "b.z"
                                                        scan b
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.plan.expressions import Expr, conjunction, conjuncts
from everview.plan.relations import Filter, Join, Relation
from everview.plan.rules.conditions import filtered
from everview.plan.rules.descent import MATCHED, below, below_join
from everview.plan.rules.trees import over


def push_filters(relation: Relation) -> Relation:
    return _pushed(relation, ())


def _pushed(node: Relation, parts: Sequence[Expr]) -> Relation:
    if isinstance(node, Filter):
        if not parts and not node.input.inputs:
            return node
        found = _pushed(node.input, (*conjuncts(node.condition), *parts))
        same = isinstance(found, Filter) and found.input is node.input and found.condition == node.condition
        return node if same else found
    downs, staying = below(node, parts)
    if isinstance(node, Join) and node.rest is not None:
        matched, rest = below_join(node, conjuncts(node.rest), MATCHED[node.kind])
        if any(matched):
            node = replace(node, rest=conjunction(rest))
            downs = tuple((*own, *asked) for own, asked in zip(matched, downs, strict=True))
    inputs = [_pushed(found, down) for found, down in zip(node.inputs, downs, strict=True)]
    return filtered(over(node, inputs), staying)
