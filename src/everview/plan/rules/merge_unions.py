"""A UNION ALL of a UNION ALL is one UNION ALL of all inputs, whose key is shorter by a field::

union all                    union all
  union all                    a
    a               →          b
    b                          c
  c
"""

from __future__ import annotations

from dataclasses import replace

from everview.plan.relations import Relation, Union
from everview.plan.rules.trees import bottom_up


def merge_unions(relation: Relation) -> Relation:
    return bottom_up(relation, _merged)


def _merged(node: Relation) -> Relation:
    if not isinstance(node, Union):
        return node
    parts: list[Relation] = []
    for part in node.parts:
        parts += part.parts if isinstance(part, Union) and _same_types(part, node) else (part,)
    return node if len(parts) == len(node.parts) else replace(node, parts=tuple(parts))


def _same_types(part: Union, node: Union) -> bool:
    """Whether the outer one casts nothing in between."""
    return [column.type for column in part.columns] == [column.type for column in node.columns]
