"""Constructs that no query can have here, each refused at its place.

Sqlglot keeps what it reads in parts of its nodes. :data:`KNOWN` lists, for each class of node that makes up
the structure of a query, the parts that a later stage uses; any other part is refused, so nothing is read and then
forgotten. A newer sqlglot may read something new into an old node: it is refused here until a stage knows it.
Expressions are not listed: they stay text, which DuckDB reads itself.

Others are read and would be answered wrongly, or not at all:

| construct | why it is refused |
|---|---|
| an as-of RIGHT or FULL join that DuckDB evaluates | DuckDB 2.0.0 does not return where no row finds a match |
| PIVOT without its columns | a view has the same columns always |
| ``rowid`` | it numbers the rows of DuckDB's own copy of a table |
| ``alias(…)`` of an expression | the name would be the words of the text |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from everview.errors import SqlRefusedError
from everview.sql.call_forms import alias_calls, alias_of
from everview.sql.namespace import NamedRelation, fold
from everview.sql.positions import error_at, offset_of, unknown_at

# ------------------------------------------------------------------ parts that no stage knows

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
            hint="leave it out, or write it in other words",
        )


# ------------------------------------------------------------------ as-of joins


def endless_join(tree: exp.Expr) -> exp.Join | None:
    """The first as-of RIGHT or FULL join in a tree."""
    joins = tree.find_all(exp.Join)
    return next((join for join in joins if join.method.upper() == "ASOF" and join.side in ("RIGHT", "FULL")), None)


def refuse_endless_join(tree: exp.Expr, text: str) -> None:
    """Refuse to have a tree evaluated in which there is such a join."""
    join = endless_join(tree)
    if join is not None:
        raise error_at(
            SqlRefusedError,
            text,
            offset_of(join.this) if text else None,
            f"an as-of {join.side} join cannot be evaluated here",
            why="DuckDB does not return from it where no row finds a match",
            hint="make it a view of its own with equalities and one inequality in ON, or write ASOF LEFT JOIN",
        )


# ------------------------------------------------------------------ pivots, row ids, alias(…)

_VALUES = ("expressions", "query", "field", "unnest")
"""Where the values of an IN stand."""


def refuse_pivots_without_columns(tree: exp.Expr, text: str) -> None:
    """Refuse each PIVOT whose columns would depend on the rows."""
    for pivot in tree.find_all(exp.Pivot):
        on = pivot.expressions if pivot.this is not None else pivot.args.get("fields") or []
        if any(isinstance(part, exp.In) and not any(map(part.args.get, _VALUES)) for part in on):
            raise error_at(
                SqlRefusedError,
                text,
                offset_of(pivot),
                "PIVOT has an empty list of columns",
                hint="list the values: PIVOT … ON column IN (value, …) USING …",
            )
        if not pivot.args.get("unpivot") and not all(isinstance(part, exp.In | exp.Alias) for part in on):
            raise error_at(
                SqlRefusedError,
                text,
                offset_of(pivot),
                "PIVOT needs a list of its columns",
                why="without them they depend on the rows, and a view has the same columns always",
                hint="list the values: PIVOT … ON column IN (value, …) USING …",
            )


def refuse_row_ids(tree: exp.Expr, uses: Sequence[NamedRelation], text: str) -> None:
    """DuckDB's ``rowid`` numbers the rows of its own copy of a table, unless a column has the name."""
    ids = [column for column in tree.find_all(exp.Column) if fold(column.name) == "rowid"]
    if ids and "rowid" not in column_names(tree, uses):
        raise unknown_at(
            text, offset_of(ids[0].this), "there is no column rowid", width=5, hint="use the table's primary key"
        )


def column_names(tree: exp.Expr, uses: Sequence[NamedRelation]) -> frozenset[str]:
    """Every name that a column has somewhere in a query: in a table, or as an alias."""
    names = [column.name for relation in uses for column in relation.columns]
    names += [alias.alias for alias in tree.find_all(exp.Alias)]
    names += [name.name for alias in tree.find_all(exp.TableAlias) for name in alias.columns]
    return frozenset(map(fold, names))


def refuse_unnamed_aliases(tree: exp.Expr, text: str) -> None:
    """Refuse calls of ``alias`` whose argument has no name."""
    for call in alias_calls(tree):
        if alias_of(call) is None:
            raise error_at(
                SqlRefusedError,
                text,
                offset_of(call),
                "alias() takes a column",
                width=len("alias"),
                why="the name of an expression depends on the words of the text",
                hint="write the name itself: 'name'",
            )
