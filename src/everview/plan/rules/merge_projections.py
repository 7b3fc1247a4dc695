"""Two projections in a row are one, over what the inner one's fields are defined as::

    project "s" * 2 AS t               project ("a" + 1) * 2 AS t
      project "a" + 1 AS s       →       …
        …

Unless the text would grow out of hand (a definition that is read twice is written twice), or the
key would get another name (where a key field is passed on under two).
"""

from __future__ import annotations

from everview.plan.relations import Project, Relation
from everview.plan.rules.conditions import substituted
from everview.plan.rules.trees import bottom_up

_GROWTH = 1_000
"""How much longer than both together the merged text may be."""


def merge_projections(relation: Relation) -> Relation:
    return bottom_up(relation, merged)


def merged(node: Relation) -> Relation:
    """A projection of a projection as one; anything else as it is."""
    if not isinstance(node, Project) or not isinstance(node.input, Project):
        return node
    inner = {field.name: found for field, found in node.input.outputs}
    outputs = tuple((field, substituted(found, inner)) for field, found in node.outputs)
    before = sum(len(found.sql) for _, found in (*node.outputs, *node.input.outputs))
    if sum(len(found.sql) for _, found in outputs) > before + _GROWTH:
        return node
    found = Project(node.input.input, outputs)
    return found if set(found.key) <= set(node.key) else node
