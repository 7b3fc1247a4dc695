"""A condition on two sides of a join belongs to the join, and equalities to its key.

A join finds matches by equal keys, so ``WHERE a.x = b.x`` above a join, or among the rest of its
condition, is worth more as a part of the key. Other conditions over both sides of an inner join
become its rest, so that ON and WHERE are one thing::

    filter "a.x" = "b.x" AND "a.y" < "b.y"
      join inner ON true                      →   join inner ON "a.x" = "b.x" AND "a.y" < "b.y"

The sides of an equality are compared as bytes of keys, so they must have one type: fields of the
same type do, and whole numbers of different width are cast to the wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from everview.change.types import SIGNED, Type
from everview.plan.expressions import Expr, conjunction, conjuncts, parsed, quoted
from everview.plan.relations import Equality, Filter, Join, JoinKind, Relation
from everview.plan.rules.conditions import can_fail
from everview.plan.rules.trees import bottom_up


def join_equalities(relation: Relation) -> Relation:
    return bottom_up(relation, _joined)


def _joined(node: Relation) -> Relation:
    if isinstance(node, Join) and node.rest is not None:
        return _with(node, conjuncts(node.rest))
    if isinstance(node, Filter) and isinstance(node.input, Join) and node.input.kind is JoinKind.INNER:
        rest = node.input.rest
        return _with(node.input, (*(conjuncts(rest) if rest is not None else ()), *conjuncts(node.condition)))
    return node


def _with(join: Join, parts: Sequence[Expr]) -> Join:
    """The join under these conditions besides its equalities."""
    on = list(join.on)
    rest: list[Expr] = []
    for part in parts:
        found = None if rest and can_fail(part.sql) else equality(part, join.left, join.right)
        if found is None or not set(replace(join, on=(*on, found)).key) <= set(join.key):
            rest.append(part)
        elif found not in on:
            on.append(found)
    changed = (tuple(on), conjunction(rest))
    return join if changed == (join.on, join.rest) else replace(join, on=changed[0], rest=changed[1])


def equality(part: Expr, left: Relation, right: Relation) -> Equality | None:
    """The part as an equality of a field of the one and a field of the other, if it is one."""
    tree = parsed(part.sql).unnest()
    if not isinstance(tree, exp.EQ | exp.NullSafeEQ):
        return None
    names = [side.name if isinstance(side, exp.Column) else "" for side in (tree.this, tree.expression)]
    if names[0] in right.by_name and names[1] in left.by_name:
        names.reverse()
    if names[0] not in left.by_name or names[1] not in right.by_name:
        return None
    fields = left.field(names[0]), right.field(names[1])
    common = _common(fields[0].type, fields[1].type)
    if common is None:
        return None
    sides = [_cast(name, field.type, common) for name, field in zip(names, fields, strict=True)]
    return Equality(sides[0], sides[1], nulls_match=isinstance(tree, exp.NullSafeEQ))


def _common(one: Type, other: Type) -> Type | None:
    if one == other:
        return one
    if one.kind in SIGNED and other.kind in SIGNED:
        return max(one, other, key=lambda type: SIGNED[type.kind])
    return None


def _cast(name: str, type: Type, wanted: Type) -> Expr:

    return Expr(quoted(name) if type == wanted else f"CAST({quoted(name)} AS {wanted})", wanted)
