"""A projection that passes on all fields of its input as they are goes; below an aggregate, which
reads by name and keeps only what it reads, one that passes on some in another order goes too."""

from __future__ import annotations

from everview.plan.relations import Aggregate, Project, Relation
from everview.plan.rules.trees import bottom_up


def remove_identities(relation: Relation) -> Relation:
    return bottom_up(relation, _removed)


def _removed(node: Relation) -> Relation:
    if isinstance(node, Aggregate) and isinstance(node.input, Project) and _only_passes(node.input):
        return node.with_inputs(node.input.input)
    if isinstance(node, Project) and _only_passes(node):
        fields = [(field.name, field.hidden) for field in node.fields]
        if fields == [(field.name, field.hidden) for field in node.input.fields]:
            return node.input
    return node


def _only_passes(node: Project) -> bool:
    return all(found.field == field.name for field, found in node.outputs)
