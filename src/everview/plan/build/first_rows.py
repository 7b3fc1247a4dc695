"""First rows: conditions on a row's number in its partition, as a top-k.

``row_number() OVER (PARTITION BY p ORDER BY o) <= k`` keeps the first k rows of each
p, which a top-k finds without numbering the others.

=====================================  =========================================================
``row_number() <= k``, ``< k``         first k; the other way round, ``BETWEEN 1 AND k`` and ``= 1`` too
``rank() <= k``                        first k with ties
``dense_rank() = 1``, ``<= 1``         first 1 with ties
``row_number() = n``, ``BETWEEN m …``  first n, and the condition again, of the rows that are left
=====================================  =========================================================

A row's number depends on the rows before it only, so numbers under the same order may be computed
of the rows that are left; where one row is, or where all of them tie, the number is 1.

A condition in the query around is moved to where the number is computed, as long as nothing
between the two depends on the rows that it takes away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from everview.change.types import BIGINT
from everview.plan.build import function_calls, subqueries, windows
from everview.plan.build.context import BuildContext, field_column, text_of
from everview.plan.build.links import Link
from everview.plan.build.query_scopes import QueryScope, by_key, conjuncts, has_query, inside
from everview.plan.collations import compared_by
from everview.plan.expressions import Expr, Field
from everview.plan.relations import TopK

_NUMBERS = frozenset({"row_number", "rank", "dense_rank"})
_TURNED: dict[type[exp.Expr], type[exp.Binary]] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}


@dataclass(frozen=True)
class First:
    """A condition that holds for the first rows of a window at most."""

    window: exp.Window
    limit: int
    exact: bool
    """It holds for all of them."""

    @property
    def ties(self) -> bool:
        return function_calls.function_of(self.window.this) != "row_number"


def as_first(condition: exp.Expr) -> First | None:
    """What a condition requires of a row's number; None where it is no such condition."""
    found = condition.unnest()
    if isinstance(found, exp.Between):
        low, high = _number(found.args["low"]), _number(found.args["high"])
        first = _first(found.this, high)
        return None if first is None or low is None else First(first.window, first.limit, low <= 1)
    if type(found) in _TURNED and _number(found.this) is not None:
        found = _TURNED[type(found)](this=found.expression, expression=found.this)
    if not isinstance(found, exp.LT | exp.LTE | exp.EQ):
        return None
    bound = _number(found.expression)
    first = _first(found.this, None if bound is None else bound - isinstance(found, exp.LT))
    return first and First(first.window, first.limit, first.limit == 1 or not isinstance(found, exp.EQ))


def _number(node: exp.Expr) -> int | None:
    found = node.unnest()
    return int(found.name) if isinstance(found, exp.Literal) and found.is_int else None


def _first(node: exp.Expr, limit: int | None) -> First | None:
    window = node.unnest()
    if limit is None or limit < 1 or not isinstance(window, exp.Window) or window.args.get("spec"):
        return None
    function = function_calls.function_of(window.this)
    if function not in _NUMBERS or (function == "dense_rank" and limit > 1):
        return None
    if function != "row_number" and not window.args.get("order"):
        return None
    return First(window, limit, True)


def numbers(scope: QueryScope, window: exp.Window, first: First) -> bool:
    """Whether a window function can be computed of the rows that are left: it numbers them under
    the same order."""
    if function_calls.function_of(window.this) not in _NUMBERS or has_query(window) or has_query(first.window):
        return False
    over, own = (scope.lower(one) for one in (window, first.window))
    return all(_texts(over, part) == _texts(own, part) for part in ("partition_by", "order", "spec"))


def _texts(window: exp.Expr, part: str) -> list[str]:
    found = window.args.get(part)
    return [text_of(one) for one in (found if isinstance(found, list) else [found]) if one is not None]


def keep_first(scope: QueryScope, first: First, after: Sequence[exp.Window], links: Sequence[Link]) -> None:
    """Cut the scope to the first rows, and compute what numbers those."""
    subqueries.absorb_within(scope, first.window)
    by = [*(first.window.args.get("partition_by") or ()), *(field_column(link.inner) for link in links)]
    sorts = scope.sorts(first.window.args.get("order"))
    partition = tuple(dict.fromkeys(map(compared_by, scope.exprs(by))))
    order = sorts if first.ties else by_key(scope.relation, sorts)
    scope.relation = TopK(scope.relation, partition, order, first.limit, 0, first.ties)
    if first.limit > 1:
        windows.build_windows(scope, after, links)
        return
    for window in after:
        text = text_of(scope.lower(window))
        if text not in scope.known:
            field = Field(scope.context.names.fresh(function_calls.function_of(window.this)), BIGINT, nullable=False)
            scope.relation = scope.context.extended(scope.relation, [(field, Expr("CAST(1 AS BIGINT)", BIGINT))])
            scope.known[text] = field.name


def move_first_rows(context: BuildContext, query: exp.Expr) -> None:
    """Conditions of WHERE on the numbers of a subquery's rows: they move into the subquery."""
    where = query.args.get("where")
    if where is None:
        return
    conditions = conjuncts(where.this)
    left = [condition for condition in conditions if not _moved(context, query, condition)]
    if len(left) < len(conditions):
        query.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)


def _moved(context: BuildContext, query: exp.Expr, condition: exp.Expr) -> bool:
    """Whether a condition of a query on one column of a subquery in its FROM could be moved there."""
    columns = list(condition.find_all(exp.Column))
    start = query.args.get("from_")
    joins = query.args.get("joins") or ()
    if len(columns) != 1 or start is None or has_query(condition) or any(j.side in ("RIGHT", "FULL") for j in joins):
        return False
    plain = [join.this for join in joins if not (join.side or join.method)]
    source = next((one for one in (start.this, *plain) if one.alias_or_name.lower() == columns[0].table.lower()), None)
    inner = _query_of(context, source) if source is not None else None
    if inner is None:
        return False
    shown = {part.alias_or_name.lower(): part.unalias() for part in reversed(inner.expressions)}
    found = shown.get(columns[0].name.lower())
    if found is None:
        return False
    moved = condition.copy().transform(lambda node: found.copy() if isinstance(node, exp.Column) else node)
    if as_first(moved) is not None:
        qualify = inner.args.get("qualify")
        inner.set("qualify", exp.Qualify(this=exp.and_(qualify.this, moved) if qualify else moved))
    elif not (isinstance(found, exp.Column) and _only_filters(inner) and _moved(context, inner, moved)):
        return False
    if isinstance(source, exp.Table):
        alias = source.args.get("alias") or exp.TableAlias(this=exp.to_identifier(source.name, quoted=True))
        source.replace(exp.Subquery(this=inner, alias=alias.copy()))
    return True


def _query_of(context: BuildContext, source: exp.Expr) -> exp.Select | None:
    """The SELECT that a source stands for, if it keeps all rows that it computes."""
    alias = source.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        return None
    inner = source.this if isinstance(source, exp.Subquery) else None
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier) and not source.db:
        named = context.named.get(source.name.lower())
        inner = named.copy() if named is not None else None
    cut = ("distinct", "limit", "offset", "with_")
    if not isinstance(inner, exp.Select) or any(inner.args.get(part) for part in cut):
        return None
    return inner


def _only_filters(query: exp.Select) -> bool:
    """Whether leaving out rows before a SELECT is leaving them out after it."""
    if any(query.args.get(part) for part in ("group", "having", "qualify")):
        return False
    parts = [node for part in query.expressions for node in inside(part)]
    return not any(
        isinstance(node, exp.Window | exp.Explode | exp.Unnest) or function_calls.is_aggregate(node) for node in parts
    )
