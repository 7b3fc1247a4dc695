"""Two filters in a row are one, and a condition is written as its parts in order.

The inner one's parts come first::

    filter "a" = 1                     filter "b" = 2 AND "a" = 1
      filter "b" = 2          →          …
        …
"""

from __future__ import annotations

from everview.plan.expressions import conjuncts
from everview.plan.relations import Filter, Relation
from everview.plan.rules.conditions import filtered
from everview.plan.rules.trees import bottom_up


def merge_filters(relation: Relation) -> Relation:
    return bottom_up(relation, _merged)


def _merged(node: Relation) -> Relation:
    if not isinstance(node, Filter) or not isinstance(node.input, Filter):
        return node
    return filtered(node.input, conjuncts(node.condition))
