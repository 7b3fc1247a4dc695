"""Aggregates that round as they go, and so depend on the order in which they meet their rows.

Where DuckDB adds floats, the last digits of a partition's answer may depend on which
other partitions are evaluated with it, and such partitions must be evaluated one by one.

What a step takes away must be, bit for bit, what it emitted when the rows came. DuckDB evaluates a
frame of a window with a tree whose nodes lie at fixed places of all the rows it sorted together,
and joins in an order that it chooses by the sizes of its inputs. Integers, decimals and whatever
picks a value give the same answer in any order; sums of floats do not::

    (1e16 + 1.0) + 1.0   is  1e16          1e16 + (1.0 + 1.0)   is  10000000000000002
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
from sqlglot import exp

from everview.change.types import FLOATS, Type
from everview.operators.evaluation import evaluator
from everview.plan.expressions import parsed, written
from everview.sql.aggregates import called

_EXACT_OF_WHOLE = frozenset({"sum", "avg", "mean", "product"})
"""Round only where their arguments are floats."""

ROUNDING = _EXACT_OF_WHOLE | frozenset(
    {
        *("fsum", "favg", "kahan_sum", "sumkahan", "geomean", "geometric_mean", "entropy", "sem"),
        *("stddev", "stddev_pop", "stddev_samp", "variance", "variance_pop", "var_pop", "var_samp"),
        *("corr", "covar_pop", "covar_samp", "skewness", "kurtosis", "kurtosis_pop"),
        *("regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
    }
)
"""The aggregates that may round on the way."""


def rounds(sql: str) -> bool:
    """Whether a query calls an aggregate that may round, or compares texts under a collation: of those
    that are equal the one that is met first may be shown.

    >>> rounds("SELECT SUM(x) FROM in0"), rounds("SELECT MAX(x), COUNT(*) FROM in0")
    (True, False)
    """
    if parsed(sql).find(exp.Collate) is not None:
        return True
    return any(called(node) in ROUNDING for node in parsed(sql).walk() if isinstance(node, exp.Func))


def frame_rounds(sql: str, fields: Mapping[str, Type]) -> bool:
    """Whether a window function over fields of these types adds floats frame by frame.

    >>> double = {"x": parse_type("DOUBLE")}
    >>> frame_rounds('SUM("x") OVER (ORDER BY "x")', double), frame_rounds('SUM("x") OVER ()', double)
    (True, False)
    >>> frame_rounds('AVG("n") OVER (ORDER BY "n")', {"n": parse_type("INTEGER")})
    False
    """
    return any(_frame_rounds(window, fields) for window in parsed(sql).find_all(exp.Window))


def _frame_rounds(window: exp.Expr, fields: Mapping[str, Type]) -> bool:
    if not (window.args.get("order") or window.args.get("spec")):
        return False
    calls = [(node, called(node)) for node in window.this.walk() if isinstance(node, exp.Func)]
    return any(name in ROUNDING and (name not in _EXACT_OF_WHOLE or _is_float(node, fields)) for node, name in calls)


def _is_float(call: exp.Expr, fields: Mapping[str, Type]) -> bool:
    """Whether a call's argument is a float; where that is unknown, it may be."""
    argument = call.this
    while isinstance(argument, exp.Distinct | exp.Order) and (argument.expressions or argument.this):
        argument = argument.this or argument.expressions[0]
    if argument is None:
        return True
    try:
        (kind,) = evaluator().types([written(argument)], fields)
    except duckdb.Error:
        return True
    return kind.kind in FLOATS
