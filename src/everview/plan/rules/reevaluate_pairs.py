"""A join that is left without any equality is evaluated again where its inputs change.

Rows find their partners by equal keys, so where the other rules found no equality, no operator
maintains the join, unless one side has one row at most: then that row is the partner of all. Here,
at the end, its inputs are as small as they get: filtered, and without the columns that nothing reads::

    join inner ON "a.x" < "b.y"          re-evaluation SELECT … FROM in0 INNER JOIN in1 ON "a.x" < "b.y"
      scan a                       →       scan a
      scan b                               scan b
"""

from __future__ import annotations

from everview.plan.expressions import quoted
from everview.plan.relations import Join, Reevaluate, Relation
from everview.plan.rules.trees import bottom_up

REASON = "a join without an equality"


def reevaluate_pairs(relation: Relation) -> Relation:
    return bottom_up(relation, _reevaluated)


def _reevaluated(node: Relation) -> Relation:
    if not isinstance(node, Join) or not node.compares_all:
        return node
    shown = ", ".join(quoted(field.name) for field in node.fields)
    condition = node.rest.sql if node.rest else "TRUE"
    query = f"SELECT {shown} FROM in0 {node.kind.value.upper()} JOIN in1 ON {condition}"
    return Reevaluate((node.left, node.right), query, node.fields, node.key, reason=REASON)
