"""What other dialects mean by words that DuckDB has too.

Sqlglot translates most of it, and what it leaves in DuckDB's words with another
meaning is put right here, or refused, before a text becomes DuckDB's.

What every operation of a dialect means is a table (:mod:`everview.sql.meanings`); where it depends on
types, the operation is marked (:mod:`everview.sql.marks`). Words of their own:

| dialects | there | becomes |
|---|---|---|
| MySQL's, Spark's, BigQuery, T-SQL | ``dayofweek`` of a Sunday is 1 | ``dayofweek(d) + 1`` |
| MySQL's, Spark's | ``weekday`` of a Monday is 0 | ``isodow(d) - 1`` |
| MySQL's, ClickHouse | ``length`` counts bytes | ``strlen(s)`` |
| T-SQL | ``len`` leaves out blanks at the end | ``length(rtrim(s))`` |
| Oracle | ``greatest`` and ``least`` are null if one value is | a ``CASE`` |
| Oracle | an empty text is null | ``''`` is refused, ``a \\|\\| b`` skips nulls |
| SQLite | ``round`` is a float always | a ``CAST`` |
| SQLite | ``typeof`` has other words; dates have changes such as ``'+1 day'`` | refused |

Patterns and parts of texts are in :mod:`everview.sql.pattern_meanings`, collations in
:mod:`everview.sql.marks`.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from everview.errors import SqlRefusedError
from everview.sql.marks import fails, mark_comparisons, marked
from everview.sql.meanings import MEANINGS, Meaning, TextToInteger, ToInteger, Zero
from everview.sql.pattern_meanings import PATTERNS, NoCounterpart
from everview.sql.positions import error_at, offset_of

_MYSQL = frozenset({"mysql", "doris", "starrocks", "singlestore"})
_SPARK = frozenset({"spark", "spark2", "databricks", "hive"})
_TSQL = frozenset({"tsql", "fabric"})
_POSTGRES = frozenset({"postgres", "risingwave", "materialize", "redshift"})

_KINDS = (
    exp.Func, exp.Like, exp.ILike, exp.SimilarTo, exp.DPipe, exp.Div, exp.IntDiv, exp.Mod, exp.Add, exp.Literal,
    exp.Cast, exp.TryCast, exp.Convert, exp.Bracket, exp.EQ, exp.NEQ,
)  # fmt: skip


def with_our_meaning(tree: exp.Expr, dialect: str, text: str) -> exp.Expr:
    """A copy of a tree, as it was read in another dialect, that means the same once written as DuckDB's."""
    holder = exp.Paren(this=tree.copy())
    meaning = MEANINGS.get(dialect)
    changes = [change for dialects, change in _WORDS if dialect in dialects]
    if meaning is not None:
        known, operations = meaning, (*_OPERATIONS, *PATTERNS)
        changes += [lambda node, change=change: change(node, known, dialect) for change in operations]  # type: ignore[misc]
    else:
        changes.append(_divided_as_sqlglot_has_it)
    for change in changes:
        for node in reversed(list(holder.find_all(*_KINDS))):
            try:
                changed = change(node)
            except NoCounterpart as reason:
                offset = offset_of(node)
                place = offset if offset is not None else offset_of(tree)
                raise error_at(SqlRefusedError, text, place, str(reason.args[0]), hint=str(reason.args[1])) from None
            if changed is not None:
                node.replace(changed)
    if meaning is not None and meaning.collation is not None:
        mark_comparisons(holder, dialect)
    found: exp.Expr = holder.this.pop()
    return found


# ------------------------------------------------------------------ operations


def _divided_as_sqlglot_has_it(node: exp.Expr) -> exp.Expr | None:
    """DuckDB's ``//`` goes by the types of what it divides: integers to an integer, all else exactly."""
    if not isinstance(node, exp.Div) or not node.args.get("typed"):
        return None
    divisor = node.expression.copy()
    if node.args.get("safe"):
        divisor = exp.Nullif(this=divisor, expression=exp.Literal.number(0))
    return exp.IntDiv(this=node.this.copy(), expression=divisor)


def _divided(node: exp.Expr, meaning: Meaning, dialect: str) -> exp.Expr | None:
    if isinstance(node, exp.Div):
        return marked("divide", dialect, exp.Div(this=node.this.copy(), expression=node.expression.copy()))
    if isinstance(node, exp.IntDiv):
        return marked("divide_whole", dialect, node.copy())
    if not isinstance(node, exp.Mod):
        return None
    if dialect == "sqlite":
        return marked("remainder_whole", dialect, node.copy())
    if meaning.zero is Zero.NULL:
        by = exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0))
        return exp.Mod(this=node.this.copy(), expression=by)
    return marked("remainder", dialect, node.copy()) if meaning.zero is Zero.FAILS else None


_TEXTS = {exp.DType.VARCHAR, exp.DType.NVARCHAR}
_FILLED = {exp.DType.CHAR, exp.DType.NCHAR}
_UNSIZED = 30
"""As many characters T-SQL's CAST(… AS VARCHAR) leaves."""


def _cast(node: exp.Expr, meaning: Meaning, dialect: str) -> exp.Expr | None:
    if isinstance(node, exp.Convert):  # T-SQL's, with the type first
        if node.args.get("style") is not None:
            return None
        kind: type[exp.Expr] = exp.TryCast if node.args.get("safe") else exp.Cast
        node = kind(this=node.expression.copy(), to=node.this.copy(), safe=node.args.get("safe"))
        return _cast(node, meaning, dialect) or node
    if not isinstance(node, exp.Cast):
        return None
    changed = node
    if isinstance(node, exp.TryCast) and meaning.strict_casts and not node.args.get("safe"):
        changed = exp.Cast(this=node.this.copy(), to=node.args["to"].copy())
    target = changed.args["to"]
    if target.is_type(*exp.DataType.INTEGER_TYPES):
        if dialect == "sqlite":
            changed = type(changed)(this=changed.this.copy(), to=exp.DataType.build("BIGINT"))
        if _is_whole(changed.this) or (
            meaning.to_integer is ToInteger.AS_DUCKDB and meaning.text_to_integer is TextToInteger.AS_DUCKDB
        ):
            return changed if changed is not node else None
        return marked("cast", dialect, changed.copy())
    if dialect in _POSTGRES and target.this is exp.DType.TEXT and not isinstance(changed.this, exp.Literal):
        return marked("to_text", dialect, changed.copy())
    if meaning.cuts_text and target.this in _TEXTS | _FILLED:
        return _cut_text(changed, dialect) or (changed if changed is not node else None)
    return changed if changed is not node else None


def _is_whole(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_int


def _cut_text(node: exp.Expr, dialect: str) -> exp.Expr | None:
    target = node.args["to"]
    sizes = [part.this.name for part in target.expressions]
    size = int(sizes[0]) if sizes and sizes[0].isdigit() else _UNSIZED if dialect in _TSQL and not sizes else None
    if size is None:
        return None
    if target.this in _FILLED and dialect not in _MYSQL and size > 1:
        what = f"CHAR({size}) fills a text up with blanks, and DuckDB has no such type"
        raise NoCounterpart(what, f"write VARCHAR({size})")
    text = type(node)(this=node.this.copy(), to=exp.DataType.build("TEXT"))
    return exp.Left(this=text, expression=exp.Literal.number(size))


def _undefined(node: exp.Expr, meaning: Meaning, dialect: str) -> exp.Expr | None:
    """Roots and logarithms of numbers that have none."""
    if not isinstance(node, exp.Sqrt | exp.Ln | exp.Log):
        return None
    if meaning.zero is Zero.INFINITE or (dialect in _SPARK and isinstance(node, exp.Sqrt)):
        return None
    of = node.expression if isinstance(node, exp.Log) and node.expression is not None else node.this
    if isinstance(of, exp.Literal) and of.is_number and float(of.name) > 0:
        return None
    below, what = (
        (exp.LT, "a square root of a negative number")
        if isinstance(node, exp.Sqrt)
        else (exp.LTE, "a logarithm of no positive number")
    )
    nothing = exp.Null() if meaning.zero is Zero.NULL or dialect in _SPARK else fails(what)
    outside = below(this=_closed(of), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=outside, true=nothing)], default=node.copy())


def _closed(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Binary) else node.copy()


def _added(node: exp.Expr, _meaning: Meaning, dialect: str) -> exp.Expr | None:
    if not isinstance(node, exp.Add) or dialect not in _TSQL:
        return None
    if any(isinstance(side, exp.Literal) and side.is_number for side in (node.this, node.expression)):
        return None
    return marked("add", dialect, node.copy())


def _concatenated(node: exp.Expr, _meaning: Meaning, dialect: str) -> exp.Expr | None:
    if not isinstance(node, exp.DPipe) or dialect not in _POSTGRES:
        return None
    if any(isinstance(side, exp.Literal | exp.DPipe) and not _is_whole(side) for side in (node.this, node.expression)):
        return None
    return marked("concatenate", dialect, node.copy())


def _rounded(node: exp.Expr, _meaning: Meaning, dialect: str) -> exp.Expr | None:
    if not isinstance(node, exp.Round) or dialect not in _POSTGRES or node.args.get("decimals") is not None:
        return None
    return marked("round", dialect, node.copy())


def _item(node: exp.Expr, meaning: Meaning, dialect: str) -> exp.Expr | None:
    if not isinstance(node, exp.Bracket) or not meaning.strict_items or node.args.get("safe"):
        return None
    (index, *more) = node.expressions
    if more or isinstance(index, exp.Slice) or (isinstance(index, exp.Literal) and index.is_string):
        return None
    return marked(
        "item_either_end" if node.args.get("offset") == 1 and dialect in _SPARK else "item", dialect, node.copy()
    )


def _any_item(node: exp.Expr, _meaning: Meaning, dialect: str) -> exp.Expr | None:
    """PostgreSQL's ``a = ANY(list)`` is null where the list is, or has a null and no such item."""
    if not isinstance(node, exp.EQ | exp.NEQ) or dialect not in _POSTGRES:
        return None
    items = node.expression
    if not isinstance(items, exp.Any if isinstance(node, exp.EQ) else exp.All) or items.find(exp.Query) is not None:
        return None
    value, found = node.this, items.this.unnest()
    contains = exp.Anonymous(this="LIST_CONTAINS", expressions=[found.copy(), value.copy()])
    counts = [exp.Anonymous(this=name, expressions=[found.copy()]) for name in ("LEN", "LIST_COUNT")]
    nothing = exp.EQ(this=counts[0].copy(), expression=exp.Literal.number(0))
    unknown = exp.or_(
        exp.Is(this=found.copy(), expression=exp.Null()),
        exp.Is(this=_closed(value), expression=exp.Null()),
        exp.GT(this=counts[0], expression=counts[1]),
    )
    answers = ((nothing, exp.false()), (contains, exp.true()), (unknown, exp.Null()))
    made = exp.Case(ifs=[exp.If(this=one, true=answer) for one, answer in answers], default=exp.false())
    return made if isinstance(node, exp.EQ) else exp.Not(this=exp.Paren(this=made))


_OPERATIONS = (_divided, _cast, _undefined, _added, _concatenated, _rounded, _item, _any_item)


# ------------------------------------------------------------------ words


def _sunday_is_one(node: exp.Expr) -> exp.Expr | None:
    part = node.this.name.lower() if isinstance(node, exp.Extract) else ""
    if isinstance(node, exp.DayOfWeek) or part in ("dayofweek", "dow"):
        return exp.Paren(this=exp.Add(this=node.copy(), expression=exp.Literal.number(1)))
    return None


def _monday_is_zero(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "weekday":
        return None
    number = exp.Anonymous(this="isodow", expressions=[part.copy() for part in node.expressions])
    return exp.Paren(this=exp.Sub(this=number, expression=exp.Literal.number(1)))


def _length_in_bytes(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Length) or not node.args.get("binary"):
        return None
    return exp.Anonymous(this="strlen", expressions=[node.this.copy()])


def _octet_length(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "octet_length":
        return None
    return exp.Anonymous(this="strlen", expressions=[part.copy() for part in node.expressions])


def _length_without_blanks(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Length) or isinstance(node.this, exp.Trim):
        return None
    return exp.Length(this=exp.Trim(this=node.this.copy(), position="TRAILING"))


def _null_if_one_is(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Greatest | exp.Least):
        node.set("ignore_nulls", False)
    return None


def _empty_is_null(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Literal) and node.is_string and not node.name:
        raise NoCounterpart("'' is null in Oracle and a text of its own here", "write NULL, or another dialect")
    if not isinstance(node, exp.DPipe):
        return None
    both = exp.Anonymous(this="concat", expressions=[node.this.copy(), node.expression.copy()])
    return exp.Nullif(this=both, expression=exp.Literal.string(""))


def _positive_remainder(node: exp.Expr) -> exp.Expr | None:
    """pmod(a, b), which has the sign of b."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "pmod" or len(node.expressions) != 2:
        return None
    a, b = node.expressions
    inner = exp.Paren(this=exp.Add(this=exp.Mod(this=_closed(a), expression=_closed(b)), expression=_closed(b)))
    return exp.Paren(this=exp.Mod(this=inner, expression=_closed(b)))


def _is_null(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "isnull" or len(node.expressions) != 1:
        return None
    return exp.Paren(this=exp.Is(this=_closed(node.expressions[0]), expression=exp.Null()))


def _ieee_divide(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Anonymous) or node.name.lower() != "ieee_divide" or len(node.expressions) != 2:
        return None
    return exp.Anonymous(this="fdiv", expressions=[part.copy() for part in node.expressions])


_DATES = {"date": 1, "time": 1, "datetime": 1, "strftime": 2}


def _no_changes_of_dates(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Anonymous) and len(node.expressions) > _DATES.get(node.name.lower(), 99):
        raise NoCounterpart("DuckDB has no changes of dates such as '+1 day'", "write date + INTERVAL 1 DAY")
    return None


def _rounded_float(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Round):
        return None
    return exp.Cast(this=node.copy(), to=exp.DataType.build("DOUBLE"))


def _no_type_names(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Typeof):
        raise NoCounterpart(
            "typeof has other words here than in SQLite", "compare the value, or write it in DuckDB's SQL"
        )
    return None


_WORDS: tuple[tuple[frozenset[str], Callable[[exp.Expr], exp.Expr | None]], ...] = (
    (_MYSQL | _SPARK | _TSQL | {"bigquery"}, _sunday_is_one),
    (_MYSQL | _SPARK, _monday_is_zero),
    (_MYSQL | {"clickhouse"}, _length_in_bytes),
    (_POSTGRES, _octet_length),
    (_TSQL, _length_without_blanks),
    (_SPARK, _positive_remainder),
    (_SPARK, _is_null),
    (frozenset({"bigquery"}), _ieee_divide),
    (frozenset({"sqlite"}), _no_type_names),
    (frozenset({"sqlite"}), _rounded_float),
    (frozenset({"sqlite"}), _no_changes_of_dates),
    (frozenset({"oracle"}), _null_if_one_is),
    (frozenset({"oracle"}), _empty_is_null),
)
