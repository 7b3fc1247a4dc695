"""Which calls are aggregates: DuckDB knows more of them than sqlglot has classes for."""

from __future__ import annotations

import functools

from sqlglot import exp

from everview.sql.typer import typer


@functools.cache
def aggregate_names() -> frozenset[str]:
    """Every aggregate of DuckDB, in lower case."""
    return frozenset(name for name, kind, _, _ in typer().functions() if kind == "aggregate")


def called(node: exp.Expr) -> str:
    """The name of a function in lower case, as sqlglot or the text has it."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a call is one of an aggregate; over a window it may be something else still."""
    if isinstance(node, exp.AggFunc):
        return True
    return isinstance(node, exp.Anonymous) and node.name.lower() in aggregate_names()


def aggregates(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregates that an expression of a SELECT computes: not those of subqueries inside
    it, nor what is computed over a window."""
    found = []
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Query)):
        over = node.parent
        while isinstance(over, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
            over = over.parent
        if is_aggregate(node) and not isinstance(over, exp.Window):
            found.append(node)
    return found
