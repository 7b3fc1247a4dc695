"""Every order names the key that settles its ties.

Ties beyond the order are settled by the key of the rows. Other rules may find a smaller key, and
by that the ties would fall otherwise; so the order says what it means before they run::

    top-k first 3 by "t.a"  [t.x, t.id]   →   top-k first 3 by "t.a", "t.x", "t.id"  [t.x, t.id]

With ties kept there is nothing to settle. The text of a re-evaluation says it too, wherever it leaves
an order open (``settled_texts.py``).
"""

from __future__ import annotations

from dataclasses import replace

from everview.plan.expressions import of_field
from everview.plan.relations import Reevaluate, Relation, Sort, TopK
from everview.plan.rules.settled_texts import settled_text
from everview.plan.rules.trees import bottom_up


def settle_ties(relation: Relation) -> Relation:
    return bottom_up(relation, _settled)


def _settled(node: Relation) -> Relation:
    if isinstance(node, Reevaluate):
        text = settled_text(node)
        return node if text == node.query else replace(node, query=text)
    if not isinstance(node, TopK) or node.ties:
        return node
    ordered = {sort.by.field for sort in node.order} | {found.field for found in node.partition}
    missing = tuple(Sort(of_field(node.field(name))) for name in node.input.key if name not in ordered)
    return replace(node, order=node.order + missing) if missing else node
