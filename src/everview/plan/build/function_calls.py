"""Calls: which functions are aggregates, how each is kept, and which leave an order open.

DuckDB decides what is an aggregate; where the result depends on the order of the
rows and the query leaves it open, the rows' key decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from sqlglot import exp

from everview.change.types import BIGNUM, DOUBLE, Kind, Type
from everview.plan.build.context import BuildContext, field_column, text_of
from everview.plan.build.query_scopes import as_sort, inside
from everview.plan.collations import is_collated
from everview.plan.expressions import Expr, Field, parsed, written
from everview.plan.relations import Call, Relation, Way
from everview.plan.relations.groups import kept_as
from everview.sql.aggregates import WRAPPERS
from everview.sql.settings import connect

SUMS = frozenset({"count", "sum", "avg", "mean"})
AVERAGES = frozenset({"avg", "mean"})
EXTREMES = frozenset({"min", "max"})
COUNTS = frozenset({"count", "count_star", "approx_count_distinct", "regr_count"})
"""Zero over nothing; every other aggregate is null there."""
OPEN = frozenset(
    {"first", "last", "any_value", "arbitrary", "array_agg", "list", "string_agg", "group_concat", "listagg", "mode"}
    | {"arg_min", "argmin", "min_by", "arg_max", "argmax", "max_by", "arg_min_null", "arg_max_null"}
    | {"lttb", "arg_min_nulls_last", "arg_max_nulls_last", "json_group_array", "json_group_object"}
)
"""Their result depends on the order of the rows."""


@cache
def aggregates() -> frozenset[str]:
    """The names of DuckDB's aggregates."""
    with connect() as connection:
        rows = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
        ).fetchall()
    return frozenset(str(name).lower() for (name,) in rows)


def function_of(node: exp.Expr) -> str:
    """The name of the function that a node calls, in lower case; empty where it calls none."""
    while isinstance(node, WRAPPERS):
        node = node.this
    if not isinstance(node, exp.Func):
        return ""
    found = re.match(r'"?(\w+)"?\s*\(', text_of(node))
    return found.group(1).lower() if found else ""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate. sqlglot knows some by name only, and calls some
    operators functions, whose text may well begin with an aggregate."""
    bare = node
    while isinstance(bare, WRAPPERS):
        bare = bare.this
    if isinstance(bare, exp.AggFunc | exp.Anonymous):
        return function_of(bare) in aggregates()
    return isinstance(bare, exp.Func) and any(name.lower() in aggregates() for name in bare.sql_names())


def aggregate_calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates in a tree, outermost first, with their FILTER; not those that are window functions."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        function = node.this
        while isinstance(function, WRAPPERS):
            function = function.this
        parts = [*function.iter_expressions(), *(p for k, p in _parts(node) if k != "this")]
        for part in parts:
            yield from aggregate_calls(part)
        return
    if is_aggregate(node):
        yield node
        return
    for part in node.iter_expressions():
        yield from aggregate_calls(part)


def _parts(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for key, value in node.args.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield key, part


def windows(node: exp.Expr) -> Iterator[exp.Window]:
    """The window functions in a tree."""
    return (part for part in inside(node) if isinstance(part, exp.Window) and part.this and part.args.get("over"))


def aggregate(context: BuildContext, relation: Relation, tree: exp.Expr, name: str) -> Call:
    """An aggregate over fields as a call. Its type is filled in by :func:`typed`."""
    function = function_of(tree)
    filter_ = tree.expression.this if isinstance(tree, exp.Filter) else None
    inner = tree.this if isinstance(tree, exp.Filter) else tree
    if isinstance(inner, exp.IgnoreNulls) and isinstance(inner.this, exp.AnyValue):
        inner = inner.this  # sqlglot adds to any_value what it does anyway
    arguments, distinct, order = _arguments(inner)
    sql = text_of(tree)
    if function in OPEN and not isinstance(inner, exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        more: list[exp.Expr] = arguments[:1] if distinct else [field_column(key) for key in relation.key]
        if not (distinct and order):
            order = [*order, *(exp.Ordered(this=one, nulls_first=False) for one in more)]
            sql = _with_order(inner, more) + (f" FILTER(WHERE {text_of(filter_)})" if filter_ is not None else "")
            sql = written(parsed(sql))
    made = context.typed([text_of(one) for one in [*arguments, *(part.this for part in order)]], relation)
    by = made[len(arguments) :]
    sorts = tuple(as_sort(expression, part) for expression, part in zip(by, order, strict=True))
    condition = context.condition(filter_, relation) if filter_ is not None else None
    plain = not order and not isinstance(inner, exp.WithinGroup) and len(arguments) <= 1
    plain = plain and not any(map(is_collated, made))
    if plain and function in AVERAGES and made and made[0].type == BIGNUM:  # DuckDB adds them as DOUBLE
        made[0] = Expr(f"CAST({made[0].sql} AS DOUBLE)", DOUBLE)
    way = _way(function, made[: len(arguments)]) if plain else Way.GENERAL
    kind = context.expression(sql, relation).type
    field = Field(name, kind, nullable=function not in COUNTS)
    return Call(field, function, tuple(made[: len(arguments)]), distinct, condition, sorts, sql, way)


def _way(function: str, arguments: Sequence[Expr]) -> Way:
    if function in EXTREMES and all(has_ends(one.type) for one in arguments):
        return Way.EXTREME
    kept = function == "count" or all(kept_as(one.type) for one in arguments)
    return Way.SUM if function in SUMS and kept else Way.GENERAL


def has_ends(kind: Type) -> bool:
    """Whether the least and the greatest value can be read off a bag in the order of its keys: the bytes of
    lists and structs are in no order, and an INTERVAL comes back from a key as 1 month where it was 30 days."""
    return kind.is_scalar and kind.kind is not Kind.INTERVAL


def _arguments(inner: exp.Expr) -> tuple[list[exp.Expr], bool, list[exp.Ordered]]:
    """The arguments of a call, whether DISTINCT, and its own ORDER BY."""
    order: list[exp.Ordered] = []
    distinct = False
    arguments: list[exp.Expr] = []
    if isinstance(inner, exp.WithinGroup):
        order = list(inner.expression.expressions)
        inner = inner.this
    while isinstance(inner, WRAPPERS):
        inner = inner.this
    for _, part in _parts(inner):
        if isinstance(part, exp.Order):
            order = list(part.expressions)
            part = part.this
        if isinstance(part, exp.Distinct):
            distinct = True
            arguments += part.expressions
        elif not isinstance(part, exp.Star):
            arguments.append(part)
    return arguments, distinct, order


def _with_order(inner: exp.Expr, more: list[exp.Expr]) -> str:
    """The text of a call with something appended to its ORDER BY."""
    text = text_of(inner)
    if not more:
        return text
    keys = ", ".join(text_of(one) for one in more)
    has_order = any(isinstance(part, exp.Order) for part in inner.iter_expressions())
    return f"{text[:-1]}{', ' if has_order else ' ORDER BY '}{keys})"
