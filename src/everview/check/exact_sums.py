"""Sums of floating-point numbers, added exactly.

A view's SUM and AVG of floating-point numbers are the exact sum of the rows that are
there, rounded once, while DuckDB adds in the order in which rows come; so the recomputation collects
the numbers of a group and has :func:`math.fsum` add them.

    sum(x)                         __exact_sum(list(x))
    avg(x) FILTER (WHERE c)        __exact_avg(list(x) FILTER (WHERE c))

Which sums are of floating-point numbers DuckDB says itself (:mod:`everview.sql.typer`). Sums over windows
stay as they are: a view has them as DuckDB computes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from sqlglot import exp

from everview.change.types import Kind
from everview.sql.aggregates import called
from everview.sql.dialects import to_sql
from everview.sql.typer import Described, Inputs, typer

_NAMES = {"sum": "__exact_sum", "avg": "__exact_avg", "mean": "__exact_avg"}
_FLOATS = frozenset({str(Kind.DOUBLE), str(Kind.REAL), "FLOAT", "DOUBLE", "REAL"})


def define_exact_sums(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a connection know the functions."""
    for name, function in (("__exact_sum", _total), ("__exact_avg", _mean)):
        of_lists = _over_lists(function)
        connection.create_function(
            name,
            of_lists,
            ["DOUBLE[]"],
            "DOUBLE",
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )


def _over_lists(function: Callable[[list[float]], float]) -> Callable[[pa.Array], pa.Array]:
    def of_lists(lists: pa.Array) -> pa.Array:
        plain = ([number for number in numbers or () if number is not None] for numbers in lists.to_pylist())
        return pa.array([function(numbers) if numbers else None for numbers in plain], pa.float64())

    return of_lists


def _total(numbers: list[float]) -> float:
    try:
        return math.fsum(numbers) + 0.0
    except ValueError:  # both infinities
        return math.nan
    except OverflowError:  # on the way: the sum itself may fit
        whole = sum(map(Fraction, numbers))
        try:
            return float(whole)
        except OverflowError:
            return math.inf if whole > 0 else -math.inf


def _mean(numbers: list[float]) -> float:
    return _total(numbers) / len(numbers)


def exactly_summed(tree: exp.Expr, inputs: Inputs) -> exp.Expr:
    """A checked query with exact sums, given the columns of what it reads. The original is left as it is."""
    holder = exp.Paren(this=tree.copy())
    for call in [node for node in holder.find_all(exp.Func) if called(node) in _NAMES]:
        filtered = call.parent if isinstance(call.parent, exp.Filter) else None
        around = call.parent if filtered is None else filtered.parent
        select = call.find_ancestor(exp.Select)
        if isinstance(around, exp.Window) or select is None or not _is_float(call, select, inputs):
            continue
        listed = exp.Anonymous(this="list", expressions=[call.this.copy()])
        name = _NAMES[called(call)]
        if filtered is None:
            call.replace(exp.Anonymous(this=name, expressions=[listed]))
        else:
            call.replace(listed)
            filtered.replace(exp.Anonymous(this=name, expressions=[filtered.copy()]))
    found: exp.Expr = holder.this.pop()
    return found


def _is_float(call: exp.Expr, select: exp.Select, inputs: Inputs) -> bool:
    """Whether what is added are floating-point numbers; not where that cannot be decided by itself."""
    argument = call.this
    if isinstance(argument, exp.Distinct):
        argument = argument.expressions[0]
    probe = exp.Select(expressions=[exp.alias_(argument.copy(), "probe")])
    for part in ("from_", "joins", "laterals"):
        kept = select.args.get(part)
        if kept:
            probe.set(part, [one.copy() for one in kept] if isinstance(kept, list) else kept.copy())
    found = typer().attempt(to_sql(probe), inputs)
    added_as_floats = _FLOATS if called(call) == "sum" else _FLOATS | {str(Kind.BIGNUM)}
    return isinstance(found, Described) and found.types[0] in added_as_floats
