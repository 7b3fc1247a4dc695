"""Conditions: what rules may ask of one, and how they put them into place.

Three questions, each answered "no" when in doubt:

- Does it *reject nulls*? Then it is not true where all of certain fields are null. Comparisons,
  LIKE, IN, IS NOT NULL over a field (or arithmetic and casts of one) do; an AND where a part does,
  an OR where all parts do.
- Can it *fail*? ``CAST(s AS INTEGER)`` ends the query on a row whose ``s`` is no number. Such a
  part never overtakes one that stands before it, since that may be its guard:
  ``kind = 'n' AND CAST(s AS INTEGER) > 3``. As in DuckDB itself, it may be evaluated below a join,
  on rows that the join would drop.
- Does it *go by equality*? Grouping brings together values that are equal and still different:
  0.0 and −0.0, or 1 month and 30 days. A comparison cannot distinguish them, a function can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sqlglot import exp

from everview.change.types import FLOATS, Kind, Type
from everview.plan.expressions import Expr, conjunction, conjuncts, parsed
from everview.plan.relations import Filter, Relation

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_PLAIN = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg, exp.Tuple)
_LOGIC = (exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.NullSafeEQ, exp.NullSafeNEQ)
_BY_EQUALITY = (*_PLAIN, *_LOGIC, *_COMPARISONS)
_NEVER_FAILS = (*_BY_EQUALITY, *_ARITHMETIC, exp.Like, exp.ILike, exp.Case, exp.If, exp.Coalesce, exp.TryCast)


def filtered(relation: Relation, parts: Iterable[Expr]) -> Relation:
    """The rows for which all parts hold; one filter, though the relation may be one already."""
    if isinstance(relation, Filter):
        return filtered(relation.input, (*conjuncts(relation.condition), *parts))
    condition = conjunction(parts)
    return relation if condition is None else Filter(relation, condition)


def substituted(expression: Expr, definitions: Mapping[str, Expr]) -> Expr:
    """The expression over what its fields are defined as. A constant keeps the type of its field,
    which a bare literal would not: DuckDB reads ``'1'`` as a number where one is wanted."""
    if expression.field is not None:
        return definitions.get(expression.field, expression)
    return expression.over({name: _typed(definitions[name]) for name in expression.fields if name in definitions})


def _typed(found: Expr) -> Expr:
    return found if found.fields else Expr(f"CAST({found.sql} AS {found.type})", found.type)


def rejects_nulls(condition: Expr, fields: frozenset[str]) -> bool:
    """Whether it is never true where all these fields are null."""
    return bool(condition.fields & fields) and _never_true(parsed(condition.sql), fields)


def is_strict(expression: Expr, fields: frozenset[str]) -> bool:
    """Whether it is null where all these fields are."""
    return _null(parsed(expression.sql), fields)


def _never_true(tree: exp.Expr, fields: frozenset[str]) -> bool:
    if isinstance(tree, exp.Paren):
        return _never_true(tree.this, fields)
    if isinstance(tree, exp.And):
        return _never_true(tree.this, fields) or _never_true(tree.expression, fields)
    if isinstance(tree, exp.Or):
        return _never_true(tree.this, fields) and _never_true(tree.expression, fields)
    if isinstance(tree, exp.Not):
        inner = tree.this.unnest()
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return _null(inner.this, fields)
    return _null(tree, fields)


def _null(tree: exp.Expr, fields: frozenset[str]) -> bool:
    if isinstance(tree, exp.Column):
        return tree.name in fields
    if isinstance(tree, (*_COMPARISONS, *_ARITHMETIC, exp.Like, exp.ILike)):
        return _null(tree.this, fields) or _null(tree.expression, fields)
    if isinstance(tree, exp.Paren | exp.Neg | exp.Not | exp.Cast | exp.In | exp.Between):
        in_query = isinstance(tree, exp.In) and not tree.expressions
        return not in_query and _null(tree.this, fields)
    return False


@lru_cache(maxsize=65_536)
def can_fail(sql: str) -> bool:
    """Whether it may end in an error on some rows. Overflow apart, which no condition guards
    against by accident."""

    def fails(tree: exp.Expr) -> bool:
        if isinstance(tree, exp.DataType):
            return False
        if isinstance(tree, exp.Cast) and not isinstance(tree, exp.TryCast):
            return tree.find(exp.Column) is not None
        return not isinstance(tree, _NEVER_FAILS) or any(map(fails, tree.iter_expressions()))

    return fails(parsed(sql))


def goes_by_equality(condition: Expr, types: Iterable[Type]) -> bool:
    """Whether it has one value for all values of these types that grouping takes for equal."""
    return all(map(is_exact, types)) or all(isinstance(found, _BY_EQUALITY) for found in parsed(condition.sql).walk())


def is_exact(type: Type) -> bool:
    """Whether equal values are the same."""
    if type.kind in FLOATS or type.kind is Kind.INTERVAL:
        return False
    return all(is_exact(child) for _, child in type.children)
