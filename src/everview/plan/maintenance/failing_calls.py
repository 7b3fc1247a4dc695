"""Aggregates and window functions that may have no value: evaluated for the views that ask for them.

The calls of all views over one partition are evaluated together, so one that can fail there
gets a step of its own, and a partition without a value is left out of the views that asked for it, and of no others.

What cannot fail is known; of all else it is assumed that it can, as in :mod:`everview.plan.maintenance.failing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sqlglot import exp

from everview.change.types import FLOATS, INTEGERS, Kind, Type
from everview.plan.expressions import parsed
from everview.plan.maintenance.failing import is_safe, kind_of
from everview.sql.calls import called

_NEVER = frozenset({
    "any_value", "arbitrary", "arg_max", "arg_min", "argmax", "argmin", "array_agg", "bit_and", "bit_or", "bit_xor",
    "bool_and", "bool_or", "count", "count_if", "cume_dist", "dense_rank", "first", "first_value", "group_concat",
    "histogram", "lag", "last", "last_value", "lead", "list", "listagg", "logical_and", "logical_or", "max", "max_by",
    "median", "min", "min_by", "mode", "percent_rank", "rank", "row_number", "string_agg",
})  # fmt: skip
"""Calls that have a value whenever their arguments have one."""
_ADDED = frozenset({"avg", "sum"})
_ADDED_SAFELY = 19
_WIDE = (Kind.HUGEINT, Kind.UHUGEINT)
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.Order, exp.Ordered, exp.Distinct, exp.Where)


def calls_that_can_fail(calls: Iterable[str], kinds: Mapping[str, Type]) -> tuple[str, ...]:
    """Those of the calls over columns of these types that may have no value for some partitions, in order."""
    known = tuple(sorted(kinds.items(), key=lambda pair: pair[0]))
    return tuple(sorted(sql for sql in set(calls) if not _is_safe(sql, known)))


@lru_cache(maxsize=4096)
def _is_safe(sql: str, kinds: tuple[tuple[str, Type], ...]) -> bool:
    return _safe(parsed(sql), dict(kinds))


def _safe(node: exp.Expr, kinds: Mapping[str, Type]) -> bool:
    if isinstance(node, exp.Window):
        parts = [node.this, *([node.args["order"]] if node.args.get("order") else [])]
        return _safe_frame(node.args.get("spec")) and all(_safe(part, kinds) for part in parts)
    below = list(node.iter_expressions())
    name = called(node)
    if name in _ADDED:
        return len(below) == 1 and is_safe(below[0], kinds) and _adds_up(kind_of(below[0], kinds))
    if name in _NEVER or isinstance(node, _AROUND):
        return all(isinstance(one, exp.Star) or _safe(one, kinds) for one in below)
    return is_safe(node, kinds)


def _adds_up(kind: Type | None) -> bool:
    """Whether a sum of such values fits its type, which has 38 digits, however many there are."""
    if kind is None or kind.kind in _WIDE:
        return False
    return kind.kind in (*INTEGERS, *FLOATS) or (kind.kind is Kind.DECIMAL and kind.precision <= _ADDED_SAFELY)


def _safe_frame(spec: exp.Expr | None) -> bool:
    """Whether the ends of a frame exist: those of a range with a distance may lie beyond the type."""
    if spec is None:
        return True
    ends = [spec.args.get("start"), spec.args.get("end")]
    if str(spec.args.get("kind") or "").upper() == "RANGE":
        return not any(isinstance(end, exp.Expr) for end in ends)
    return all(isinstance(end, exp.Literal) for end in ends if isinstance(end, exp.Expr))
