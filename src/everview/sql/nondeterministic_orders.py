"""Nondeterministic orders: where SQL does not define the order of rows, so that the row key has to decide.

The answer of these constructs depends on the order of their rows, and the query does not, or need not,
order all of them. The planner completes the order by the key of the rows, so that there is one answer.

| construct | nondeterministic |
|---|---|
| LIMIT, OFFSET | always; with ORDER BY among equal rows |
| DISTINCT ON | the same |
| first, last, any_value, arg_min, list, string_agg, mode, … | always; with ORDER BY inside among equal rows |
| row_number, ntile, lag, lead, first_value, … and ROWS frames | among equal rows of the window's ORDER BY |
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from everview.sql.aggregates import called
from everview.sql.positions import START, TextPosition, position_of

ORDERED = frozenset(
    [
        "first",
        "last",
        "any_value",
        "arbitrary",
        "arg_min",
        "arg_max",
        "argmin",
        "argmax",
        "min_by",
        "max_by",
        "arg_min_null",
        "arg_max_null",
        "list",
        "array_agg",
        "group_concat",
        "string_agg",
        "listagg",
        "lttb",
        "mode",
        "approx_quantile",
        "approx_top_k",
        "json_group_array",
        "json_group_object",
    ]
)
"""Aggregates whose value depends on the order of their rows."""
_WINDOWED = frozenset(["row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "fill"])


@dataclass(frozen=True)
class NondeterministicOrder:
    """A construct whose answer depends on an order that SQL does not define."""

    node: exp.Expr
    what: str
    ties_only: bool
    """It has an ORDER BY, so that only equal rows come in any order."""
    at: TextPosition


def nondeterministic_orders(tree: exp.Expr, text: str) -> tuple[NondeterministicOrder, ...]:
    found = []
    for node in tree.walk():
        kind = _kind(node)
        if kind is not None:
            what, ties_only = kind
            found.append(NondeterministicOrder(node, what, ties_only, position_of(node, text) or START))
    return tuple(sorted(found, key=lambda order: order.at))


def _kind(node: exp.Expr) -> tuple[str, bool] | None:
    if isinstance(node, exp.Limit | exp.Offset) and isinstance(node.parent, exp.Query):
        if isinstance(node, exp.Offset) and node.parent.args.get("limit"):
            return None
        return node.key.upper(), bool(node.parent.args.get("order"))
    if isinstance(node, exp.Distinct) and node.args.get("on") is not None:
        return "DISTINCT ON", bool(node.parent and node.parent.args.get("order"))
    if isinstance(node, exp.Window):
        function = node.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            function = function.this
        spec = node.args.get("spec")
        rows = spec is not None and str(spec.args.get("kind", "")).upper() == "ROWS"
        name = called(function)
        if name in _WINDOWED or name in ORDERED or rows:
            return name, bool(node.args.get("order"))
        return None
    if called(node) in ORDERED and not isinstance(_around(node), exp.Window):
        return called(node), bool(node.find(exp.Order)) or isinstance(_around(node), exp.WithinGroup)
    return None


def _around(node: exp.Expr) -> exp.Expr | None:
    around = node.parent
    while isinstance(around, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        around = around.parent
    return around
