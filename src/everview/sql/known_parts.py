"""What of a parsed query the stages after the parser know.

Every part that a node of a query may have is either listed here, because some stage makes
something of it, or an error, so that nothing is read and then forgotten.

sqlglot reads more than DuckDB and more than we plan (``NEAREST``, ``MATCH_CONDITION``, ``WITH FILL``, hints, …).
A new version of it may read something new into an old node: it is refused here until a stage knows it. Expressions
are not listed: they stay text, which DuckDB reads itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from everview.errors import SqlRefusedError
from everview.sql.positions import error_at, offset_of

_SET = frozenset({"this", "expression", "distinct", "by_name", "with_", "order", "limit", "offset"})

KNOWN: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset({
        "with_", "distinct", "expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify",
        "windows", "order", "limit", "offset", "sample",
    }),
    exp.Union: _SET,
    exp.Except: _SET,
    exp.Intersect: _SET,
    exp.Subquery: frozenset({"this", "alias", "with_", "joins", "pivots", "sample", "order", "limit", "offset"}),
    exp.Table: frozenset({
        "this", "db", "catalog", "alias", "joins", "laterals", "pivots", "sample", "when", "ordinality",
    }),
    exp.Values: frozenset({"expressions", "alias"}),
    exp.Unnest: frozenset({"expressions", "alias", "offset"}),
    exp.Lateral: frozenset({"this", "alias", "ordinality"}),
    exp.Join: frozenset({"this", "side", "kind", "method", "on", "using"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias", "materialized", "key_expressions"}),
    exp.Distinct: frozenset({"expressions", "on"}),
    exp.Group: frozenset({"expressions", "all", "rollup", "cube", "grouping_sets"}),
    exp.Order: frozenset({"this", "expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression", "limit_options"}),
    exp.Fetch: frozenset({"count", "direction", "limit_options"}),
    exp.LimitOptions: frozenset({"percent", "rows", "with_ties"}),
    exp.Offset: frozenset({"expression"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "alias", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
    exp.Filter: frozenset({"this", "expression"}),
    exp.WithinGroup: frozenset({"this", "expression"}),
    exp.Star: frozenset({"except_", "replace", "rename"}),
    exp.TableSample: frozenset(exp.TableSample.arg_types),
    exp.Pivot: frozenset(exp.Pivot.arg_types),
}  # fmt: skip
"""By the class of a node, the parts that are made something of: planned, or kept in the text of what is evaluated
as it stands."""


def unknown_parts(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """The parts of a query that no stage knows, each with its node; of a kind of query that none knows, the
    whole."""
    for node in tree.walk():
        known = KNOWN.get(type(node))
        if known is None:
            if isinstance(node, exp.Query | exp.QueryTransform | exp.UDTF) and not isinstance(node, exp.Func):
                yield node, node.key
            continue
        for part, value in node.args.items():
            if part not in known and value not in (None, False, "", []):
                yield node, part


def refuse_unknown_parts(tree: exp.Expr, text: str) -> None:
    """Raise for the first part that no stage knows."""
    for node, part in unknown_parts(tree):
        what = part.strip("_").replace("_", " ").upper()
        raise error_at(
            SqlRefusedError,
            text,
            offset_of(node),
            f"{what} of {node.key.upper()} cannot be part of a query here",
            why="Everview reads it and does nothing with it",
            hint="leave it out, or say it in other words",
        )
