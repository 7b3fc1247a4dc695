"""LIMIT and FETCH … WITH TIES, which DuckDB does not have, as a rank.

::

    SELECT a FROM t ORDER BY b LIMIT 3 WITH TIES
    SELECT a FROM t QUALIFY rank() OVER (ORDER BY b) <= 3 ORDER BY b

FETCH FIRST without ties is LIMIT by another name, and becomes it. While the query is checked the
ties are a mark on LIMIT; the rank is written once all names are resolved.
"""

from __future__ import annotations

import re

from sqlglot import exp

from everview.errors import SqlError, SqlRefusedError
from everview.sql.expansion import WHOLE
from everview.sql.positions import error_at, offset_of

TIES = "with_ties"
_WORDED = re.compile(
    r"(?P<head>.*)\bORDER\s+BY\b(?P<order>.*?)\b"
    r"(?:FETCH\s+(?:FIRST|NEXT)\s+(?P<rows>\d+)\s+ROWS?|LIMIT\s+(?P<limit>\d+))\s+WITH\s+TIES\s*",
    re.IGNORECASE | re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_OTHER_ROWS = re.compile(r"\b(?:DISTINCT|QUALIFY|UNION|INTERSECT|EXCEPT)\b", re.IGNORECASE)
"""Where the rows that are ordered are not those that a rank would see."""


def worded_rank(words: str) -> str | None:
    """The words of a query that ends in WITH TIES, with the rank written out in DuckDB's SQL: what our reading of
    them is compared with, so nothing of that reading is used. None where an order may mean an output column, which
    a rank would not, or where there is another LIMIT.

    >>> worded_rank("SELECT a FROM t ORDER BY b FETCH FIRST 3 ROWS WITH TIES")
    'SELECT a FROM t QUALIFY rank() OVER (ORDER BY b) <= 3'
    """
    found = _WORDED.fullmatch(words)
    if found is None:
        return None
    head, order = found["head"].strip(), found["order"].strip()
    by_place = any(part.strip()[:1].isdigit() for part in order.split(","))
    if by_place or _OTHER_ROWS.search(head) or any(_is_output(name, head) for name in _NAME.findall(order)):
        return None
    return f"{head} QUALIFY rank() OVER (ORDER BY {order}) <= {found['rows'] or found['limit']}"


def _is_output(name: str, head: str) -> bool:
    """Whether a column may be given this name, with AS or without."""
    given = rf"""(?<!\bSELECT)(?<=[\w)"'\]])\s+"?{name}"?\s*(?:,|\bFROM\b|$)"""
    return re.search(given, head, re.IGNORECASE) is not None


def has_ties(tree: exp.Expr) -> bool:
    """Whether a query, as it was read, has WITH TIES somewhere."""
    return any(options.args.get("with_ties") for options in tree.find_all(exp.LimitOptions))


def mark_ties(tree: exp.Expr, text: str) -> None:
    """Make FETCH and WITH TIES plain LIMITs, the latter with a mark."""
    for query in tree.find_all(exp.Query):
        limit = query.args.get("limit")
        if limit is None:
            continue
        options = limit.args.get("limit_options")
        ties = options is not None and bool(options.args.get("with_ties"))
        percent = options is not None and bool(options.args.get("percent"))
        if ties and (not query.args.get("order") or percent):
            hint = "add what the rows are ordered by" if not percent else "limit to a number of rows"
            raise error_at(SqlError, text, offset_of(limit), "WITH TIES needs ORDER BY and a number of rows", hint=hint)
        count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
        plain = exp.Limit(expression=(count or exp.Literal.number(1)).copy())
        if percent:
            plain.set("limit_options", exp.LimitOptions(percent=True))
        if ties:
            plain.meta[TIES] = True
        query.set("limit", plain)


def write_ties(tree: exp.Expr, text: str) -> exp.Expr:
    """Put the ranks where the marks are."""
    holder = exp.Paren(this=tree)
    for limit in [limit for limit in holder.find_all(exp.Limit) if limit.meta.get(TIES)]:
        query = limit.parent
        assert isinstance(query, exp.Query)
        around = query.parent
        while around is not None:
            if around.meta.get(WHOLE):
                raise error_at(
                    SqlRefusedError,
                    text,
                    offset_of(limit),
                    "WITH TIES cannot be part of this query",
                    hint="write QUALIFY rank() OVER (ORDER BY …) <= k instead",
                )
            around = around.parent
        plain = isinstance(query, exp.Select) and not query.args.get("distinct") and not query.args.get("qualify")
        if plain:
            _rank(query, {part.output_name: part.unalias() for part in query.selects})
        else:
            _rank_around(query)
    found: exp.Expr = holder.this.pop()
    return found


def _rank(query: exp.Query, outputs: dict[str, exp.Expr]) -> None:
    """QUALIFY the rows by their rank; names of outputs in ORDER BY are replaced by what they are."""
    limit, offset = query.args["limit"], query.args.get("offset")
    order = query.args["order"].copy()
    for column in list(order.find_all(exp.Column)):
        if not column.table and column.name in outputs:
            column.replace(outputs[column.name].copy())
    last = limit.expression.copy()
    condition: exp.Expr
    if offset is None:
        condition = _over(exp.Rank(), order) <= last
    else:
        first = offset.expression
        condition = exp.and_(
            _over(exp.RowNumber(), order) > first.copy(), _over(exp.Rank(), order) <= exp.paren(first.copy()) + last
        )
    query.set("limit", None)
    query.set("offset", None)
    query.set("qualify", exp.Qualify(this=condition))


def _rank_around(query: exp.Query) -> None:
    """The same for a query whose rows are not those that a rank would see: a query around it."""
    inner = query.copy()
    for key in ("limit", "offset", "order"):
        inner.set(key, None)
    names = list(query.named_selects)
    ranked = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("ranked")))
    columns = {name: exp.column(name, table="ranked", quoted=True) for name in names}
    outputs = [exp.alias_(column.copy(), name, quoted=True) for name, column in columns.items()]
    outer = exp.select(*outputs).from_(ranked)
    for key in ("limit", "offset", "order"):
        kept = query.args.get(key)
        outer.set(key, kept.copy() if kept else None)
    if isinstance(inner, exp.Select):
        _through_outputs(outer, inner, columns)
    _rank(outer, dict(columns))
    query.replace(outer)


def _through_outputs(outer: exp.Select, inner: exp.Select, columns: dict[str, exp.Column]) -> None:
    """ORDER BY in terms of the inner query's outputs; what is not among them becomes one."""
    for number, ordered in enumerate(outer.args["order"].expressions):
        key = ordered.this
        if isinstance(key, exp.Column) and not key.table:
            continue
        same = next((part for part in inner.selects if part.unalias() == key), None)
        name = same.output_name if same is not None else f"__order_{number}"
        if same is None:
            inner.select(exp.alias_(key.copy(), name, quoted=True), copy=False)
        ordered.set("this", exp.column(name, table="ranked", quoted=True))


def _over(function: exp.Expr, order: exp.Expr) -> exp.Expr:
    return exp.Window(this=function, order=order.copy(), over="OVER")
