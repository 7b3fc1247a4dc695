"""Constant parts of conditions are computed: WHERE 1 = 1 is no condition, WHERE 1 = 2 is FALSE.

sqlglot computes, DuckDB decides what it means: only what both agree on is folded. That is
comparisons of small whole numbers with each other, of texts with each other by = and <>, and
TRUE, FALSE and NULL under AND, OR and NOT. ``'1' = 1``, ``0.1 + 0.2 = 0.3`` and everything about
dates is left to DuckDB. A condition that is NULL drops rows as FALSE does, so at the top, and
under AND and OR there, NULL becomes FALSE.

The parts that are left keep their order; sqlglot's own simplification of AND and OR would sort them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from everview.change.types import BOOLEAN
from everview.plan.expressions import Expr, parsed, written
from everview.plan.relations import Filter, Join, Relation
from everview.plan.rules.trees import bottom_up

_ORDER = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_EQUAL = (exp.EQ, exp.NEQ)
_DIGITS = 9
"""Whole numbers of so many digits are INTEGERs to DuckDB, and compare as Python's do."""


def fold_constants(relation: Relation) -> Relation:
    return bottom_up(relation, _folded)


def _folded(node: Relation) -> Relation:
    if isinstance(node, Filter):
        condition = folded(node.condition)
        if condition.sql == "TRUE":
            return node.input
        return node if condition == node.condition else replace(node, condition=condition)
    if isinstance(node, Join) and node.rest is not None:
        rest = folded(node.rest)
        return node if rest == node.rest else replace(node, rest=None if rest.sql == "TRUE" else rest)
    return node


def folded(condition: Expr) -> Expr:
    """The condition with its constant parts computed; the same rows meet it."""
    text = _folded_text(condition.sql)
    return condition if text is None else Expr(text, BOOLEAN)


@lru_cache(maxsize=65_536)
def _folded_text(sql: str) -> str | None:
    before = parsed(sql)
    if not any(isinstance(found, exp.Boolean | exp.Null) or _is_constant(found) for found in before.walk()):
        return None
    after = _condition(before)
    return None if after == before else written(after)


def _condition(tree: exp.Expr) -> exp.Expr:
    """A tree of which only matters where it is true."""
    if isinstance(tree, exp.Paren):
        inner = _condition(tree.this)
        return tree if inner is tree.this and not isinstance(inner, exp.Boolean) else _wrapped(inner)
    if isinstance(tree, exp.And | exp.Or):
        left, right = _condition(tree.this), _condition(tree.expression)
        wins = isinstance(tree, exp.Or)
        for this, other in ((left, right), (right, left)):
            if isinstance(this, exp.Boolean):
                return this if bool(this.this) is wins else other
        same = left is tree.this and right is tree.expression
        return tree if same else type(tree)(this=left.copy(), expression=right.copy())
    value = _value(tree)
    return exp.false() if isinstance(value, exp.Null) else value


def _value(tree: exp.Expr) -> exp.Expr:
    """A constant as TRUE, FALSE or NULL; anything else as it is."""
    bare = tree.unnest()
    if isinstance(bare, exp.Boolean | exp.Null):
        return bare
    if isinstance(bare, exp.Not):
        inner = _value(bare.this)
        if isinstance(inner, exp.Null):
            return inner
        return exp.Boolean(this=not inner.this) if isinstance(inner, exp.Boolean) else tree
    if _is_constant(bare):
        found = simplify(bare.copy(), dialect="duckdb")
        return found if isinstance(found, exp.Boolean) else tree
    return tree


def _is_constant(tree: exp.Expr) -> bool:
    if not isinstance(tree, (*_ORDER, *_EQUAL)):
        return False
    sides = (tree.this, tree.expression)
    if all(isinstance(side, exp.Literal) and side.is_int and len(side.name) <= _DIGITS for side in sides):
        return True
    return isinstance(tree, _EQUAL) and all(isinstance(side, exp.Literal) and side.is_string for side in sides)


def _wrapped(tree: exp.Expr) -> exp.Expr:
    return exp.Paren(this=tree.copy()) if isinstance(tree, exp.Connector) else tree
