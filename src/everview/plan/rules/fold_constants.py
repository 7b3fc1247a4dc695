"""Constant parts of conditions are computed: WHERE 1 = 1 is no condition, WHERE 1 = 2 is FALSE.

DuckDB computes them, under the settings under which it will evaluate everything else, so nothing
is folded to what it would not be: ``7 // 2 = 3`` is true, ``1 / 0 > 1`` too (it is infinite), ``'01' = 1``
is true and ``0.1 + 0.2 = 0.3`` too. What fails, as ``CAST('x' AS INTEGER) = 1`` and ``1 % 0 = 1`` do, is
left to fail where and if it is evaluated. Only comparisons and the like are computed, so the value is TRUE, FALSE
or NULL and no literal has to be written for it; and only those that consist of literals, casts and
arithmetic. Under AND, OR and NOT these values follow SQL. A condition that is NULL drops rows
as FALSE does, so at the top, and under AND and OR there, NULL becomes FALSE.

The parts that are left keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from everview.change.types import BOOLEAN
from everview.plan.expressions import Expr, parsed, written
from everview.plan.relations import Filter, Join, Relation
from everview.plan.rules.trees import bottom_up
from everview.sql.typer import typer

_PREDICATES = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
)
_PARTS = (
    *(exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.Cast, exp.TryCast, exp.Interval, exp.Var),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Not, exp.And, exp.Or),
)


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
        return _VALUES.get(_computed(written(bare)), tree)
    return tree


_VALUES: Mapping[object, exp.Expr] = {True: exp.true(), False: exp.false(), None: exp.null()}


@lru_cache(maxsize=65_536)
def _computed(sql: str) -> object:
    """True, False or None; anything else where DuckDB cannot compute it."""
    found = typer().value(f"CAST(({sql}) AS BOOLEAN)")
    return found if found is None or isinstance(found, bool) else "fails"


def _is_constant(tree: exp.Expr) -> bool:
    return isinstance(tree, _PREDICATES) and all(map(_is_part, tree.iter_expressions()))


def _is_part(tree: exp.Expr) -> bool:
    """Whether it is a constant that means the same wherever it stands."""
    if isinstance(tree, exp.DataType):
        return True
    return isinstance(tree, (*_PARTS, *_PREDICATES)) and all(map(_is_part, tree.iter_expressions()))


def _wrapped(tree: exp.Expr) -> exp.Expr:
    return exp.Paren(this=tree.copy()) if isinstance(tree, exp.Connector) else tree
