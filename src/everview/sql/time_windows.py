"""TUMBLE and HOP: the windows of time that a row belongs to, as table functions.

Both become plain SQL over the table's own rows before anything else looks at the
query, so that they need no operator and mean what DuckDB's ``time_bucket`` means.

::

    TUMBLE(bids, ts, INTERVAL 10 MINUTE)                     each row once
    HOP(bids, ts, INTERVAL 5 MINUTE, INTERVAL 10 MINUTE)     slide, size: each row twice

Both add ``window_start`` and ``window_end``; a window holds the times from its start up to but
not including its end. Windows start at multiples of the size (or the slide) counted from
``time_bucket``'s origin, Monday, 3 January 2000, or 1 January 2000 for months and years. A row
without a time is in no window.
"""

from __future__ import annotations

from sqlglot import exp

from everview.errors import SqlError, SqlTypeError
from everview.sql.dialects import to_sql
from everview.sql.positions import error_at, offset_of
from everview.sql.typer import typer

WINDOW_COLUMNS = ("window_start", "window_end")

_FORMS = {
    "tumble": "TUMBLE(table, column, INTERVAL size)",
    "hop": "HOP(table, column, INTERVAL slide, INTERVAL size)",
}
TIME_WINDOWS = frozenset(_FORMS)


def time_windows(call: exp.Expr, text: str) -> exp.Query:
    """The query that a call of TUMBLE or HOP stands for."""
    name = call.name.lower()
    given = call.expressions
    if len(given) != (3 if name == "tumble" else 4):
        raise _misused(call, text, f"it was given {len(given)} arguments")
    source = _source(given[0])
    if source is None:
        raise _misused(given[0], text, "its first argument is a table, a view or a query in parentheses")
    column = _column(given[1])
    if column is None:
        raise _misused(given[1], text, "its second argument is a column of the table")
    lengths = [_length(length, text) for length in given[2:]]
    rows = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier(source.alias_or_name)))
    time = exp.Column(this=column, table=exp.to_identifier(source.alias_or_name))
    if name == "tumble":
        start = _bucket(lengths[0], time)
        return (
            rows.select(exp.alias_(start, "window_start"), exp.alias_(start + lengths[0].copy(), "window_end"))
            .from_(source)
            .where(time.copy().is_(exp.null()).not_())
        )
    return _hopping(rows, source, time, *lengths)


def _hopping(rows: exp.Select, source: exp.Expr, time: exp.Column, slide: exp.Expr, size: exp.Expr) -> exp.Select:
    """Every row once for each window that starts up to ``size`` before it; the last of those
    that the series offers may have ended already where months differ in length."""
    starts = exp.GenerateSeries(
        start=_bucket(slide, time.copy() - size.copy()), end=_bucket(slide, time.copy()), step=slide.copy()
    )
    spread = rows.select(exp.alias_(exp.Explode(this=starts), "window_start")).from_(source)
    start = exp.column("window_start", table="hops")
    end = start + size.copy()
    return (
        exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier("hops")), exp.alias_(end, "window_end"))
        .from_(spread.subquery("hops"))
        .where(exp.Column(this=time.this.copy(), table=exp.to_identifier("hops")) < end.copy())
    )


def _bucket(width: exp.Expr, time: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="time_bucket", expressions=[width.copy(), time.copy()])


def _source(given: exp.Expr) -> exp.Expr | None:
    if isinstance(given, exp.Column) and not given.args.get("db") and isinstance(given.this, exp.Identifier):
        return exp.Table(
            this=given.this.copy(), db=given.args.get("table"), alias=exp.TableAlias(this=given.this.copy())
        )
    if isinstance(given, exp.Subquery) and isinstance(given.this, exp.Query):
        return exp.Subquery(this=given.this.copy(), alias=exp.TableAlias(this=exp.to_identifier("rows")))
    return None


def _column(given: exp.Expr) -> exp.Identifier | None:
    if isinstance(given, exp.Anonymous) and given.name.lower() == "descriptor" and len(given.expressions) == 1:
        given = given.expressions[0]
    if isinstance(given, exp.Column) and isinstance(given.this, exp.Identifier):
        return given.this.copy()
    return None


def _length(given: exp.Expr, text: str) -> exp.Expr:
    """The argument, if it is an interval of some length that does not depend on the row."""
    positive = None
    if given.find(exp.Column, exp.Query) is None:
        positive = typer().value(f"({to_sql(given)}) > INTERVAL 0 SECOND")
    if positive is not True:
        raise error_at(
            SqlTypeError,
            text,
            offset_of(given),
            "a window of time has a length that is an INTERVAL above zero",
            hint="write a length such as INTERVAL 10 MINUTE",
        )
    return given


def _misused(node: exp.Expr, text: str, why: str) -> SqlError:
    call = node if isinstance(node, exp.Anonymous) else node.parent
    name = call.name.lower() if isinstance(call, exp.Anonymous) else "tumble"
    form = _FORMS.get(name, _FORMS["tumble"])
    return error_at(
        SqlTypeError,
        text,
        offset_of(node),
        f"{name.upper()} is not used as it should be",
        why=why,
        hint=f"write {form}",
    )
