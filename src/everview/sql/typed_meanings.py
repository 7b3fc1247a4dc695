"""What another dialect means by an operation, where that depends on the types of its values.

One sentence: a text is translated before any table is known, so an operation whose meaning depends on
types is only marked then, and replaced here, where DuckDB can be asked for the types.

::

    SELECT a / b FROM t            PostgreSQL's: marked "divide"
    SELECT a // b FROM t           of numbers: integers divide to integers, a division by zero fails
    SELECT a / b FROM t            of intervals

A mark goes through the text as a call, ``__meaning_divide(a, b)``, since the text is written and read
again (:mod:`everview.sql.dialects`), and stands in ``meta`` of the operation after that: until it is
replaced it is DuckDB's, so that a query with marks has types. Marks are replaced from the inside out,
WITH and FROM first. What a value's type is, DuckDB says when the value is given to a function that takes
none: ``No function matches 'pi(DECIMAL(3,1))'``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from everview.sql.dialects import to_sql
from everview.sql.expand import expanded
from everview.sql.marks import MARK, fails
from everview.sql.meanings import MEANINGS, Division, Meaning, TextToInteger, ToInteger, Zero
from everview.sql.namespace import Namespace
from everview.sql.typer import Failure, typer

_FROM = ("with_", "from_", "joins", "laterals")
_INTEGER = re.compile(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)(_LITERAL)?|INTEGER_LITERAL")
_FLOAT = ("FLOAT", "DOUBLE")


def with_types(query: exp.Expr, namespace: Namespace, text: str) -> exp.Expr:
    """The query with every mark replaced by what is meant of values of their types."""
    if not any(MARK in node.meta for node in query.walk()):
        return query
    holder = exp.Paren(this=query.copy())
    holder.this.meta.update(query.meta)
    asking = _Types(holder, namespace, text)
    for node in list(_inside_out(holder.this)):
        if MARK not in node.meta:
            continue
        kind, dialect = node.meta[MARK]
        changed = _KINDS[kind](node, MEANINGS[dialect], asking)
        node.meta.pop(MARK)
        if changed is not None and changed is not node:
            changed.meta.update({key: value for key, value in node.meta.items() if key not in changed.meta})
            node.replace(changed)
    found: exp.Expr = holder.this
    found.pop()
    return found


def _inside_out(node: exp.Expr) -> Iterator[exp.Expr]:
    first = [node.args[key] for key in _FROM if node.args.get(key)] if isinstance(node, exp.Query) else []
    rest = [value for key, value in node.args.items() if not (first and key in _FROM)]
    for value in (*first, *rest):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield from _inside_out(child)
    yield node


class _Types:
    """The types of parts of a query."""

    def __init__(self, holder: exp.Expr, namespace: Namespace, text: str) -> None:
        self._holder = holder
        self._namespace = namespace
        self._text = text

    def of(self, node: exp.Expr) -> str:
        """The type of a value as DuckDB writes it; nothing where the query has none, for another reason."""
        if isinstance(node, exp.Literal):
            return "VARCHAR" if node.is_string else "INTEGER" if node.is_int else "DECIMAL"
        asked = exp.Anonymous(this="pi", expressions=[exp.Null()])
        node.replace(asked)
        asked.set("expressions", [node])
        try:
            tree, uses = expanded(self._holder.this, self._namespace, self._text)
            inputs = {relation.name: [(column.name, column.type) for column in relation.columns] for relation in uses}
            found = typer().attempt(to_sql(tree), inputs)
        finally:
            asked.replace(node)
        said = re.match(
            r"No function matches the given name and argument types 'pi\((.*)\)'", _message(found), re.DOTALL
        )
        return said[1] if said else ""


def _message(found: object) -> str:
    return found.message if isinstance(found, Failure) else ""


def _is_integer(kind: str) -> bool:
    return _INTEGER.fullmatch(kind) is not None


def _is_fraction(kind: str) -> bool:
    return kind in _FLOAT or kind.startswith("DECIMAL")


def _is_text(kind: str) -> bool:
    return kind in ("VARCHAR", "STRING_LITERAL")


def _nonzero(divisor: exp.Expr) -> exp.Expr:
    if isinstance(divisor, exp.Literal) and divisor.is_number and float(divisor.name) != 0:
        return divisor
    return exp.Nullif(this=divisor, expression=exp.Literal.number(0))


def _cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))


# ------------------------------------------------------------------ numbers


def _divide(node: exp.Expr, meaning: Meaning, types: _Types) -> exp.Expr | None:
    kinds = types.of(node.this), types.of(node.expression)
    if "" in kinds or "INTERVAL" in kinds:
        return None
    left, right = node.this.copy(), node.expression.copy()
    if meaning.zero is Zero.INFINITE or (meaning.zero is Zero.INFINITE_FLOATS and set(kinds) & set(_FLOAT)):
        return None
    if meaning.zero is Zero.NULL:
        right = _nonzero(right)
        if meaning.division is Division.EXACT:
            return exp.Div(this=left, expression=right)
    if meaning.division is Division.EXACT and all(map(_is_integer, kinds)):
        left = _cast(left, "DOUBLE")
    return exp.IntDiv(this=left, expression=right)


def _divide_whole(node: exp.Expr, meaning: Meaning, types: _Types) -> exp.Expr | None:
    """DIV, which is a whole number whatever it divides; DuckDB's ``//`` is that of integers only."""
    kinds = types.of(node.this), types.of(node.expression)
    if "" in kinds:
        return None
    left, right = node.this.copy(), node.expression.copy()
    if meaning.zero is Zero.NULL:
        right = _nonzero(right)
    quotient = exp.IntDiv(this=left, expression=right)
    if all(map(_is_integer, kinds)):
        return quotient
    return _cast(exp.Anonymous(this="TRUNC", expressions=[quotient]), "BIGINT")


def _remainder(node: exp.Expr, meaning: Meaning, types: _Types) -> exp.Expr | None:
    """Of floats, where DuckDB says NaN."""
    if not {types.of(node.this), types.of(node.expression)} & set(_FLOAT):
        return None
    by_zero = exp.EQ(this=node.expression.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=by_zero, true=fails("a division by zero"))], default=node.copy())


def _cast_to_integer(node: exp.Expr, meaning: Meaning, types: _Types) -> exp.Expr | None:
    kind = types.of(node.this)
    if _is_text(kind):
        return _text_to_integer(node, meaning)
    if meaning.to_integer is ToInteger.CUT and _is_fraction(kind):
        return _recast(node, exp.Anonymous(this="TRUNC", expressions=[node.this.copy()]))
    if meaning.to_integer is ToInteger.AWAY and kind in _FLOAT:
        return _recast(node, exp.Anonymous(this="ROUND", expressions=[node.this.copy()]))
    return None


def _text_to_integer(node: exp.Expr, meaning: Meaning) -> exp.Expr | None:
    if meaning.text_to_integer is TextToInteger.FAILS:
        if isinstance(node.this, exp.Literal) and not set(node.this.name) & set(".eE"):
            return None
        marks = [node.this.copy(), exp.Literal.string(".eE"), exp.Literal.string("???")]
        return _recast(node, exp.Anonymous(this="TRANSLATE", expressions=marks))
    if meaning.text_to_integer is TextToInteger.DIGITS:
        found = [node.this.copy(), exp.Literal.string(r"^\s*([+-]?[0-9]+)"), exp.Literal.number(1)]
        digits = exp.Anonymous(this="REGEXP_EXTRACT", expressions=found)
        number = exp.Coalesce(
            this=exp.TryCast(this=digits, to=node.args["to"].copy()), expressions=[exp.Literal.number(0)]
        )
        missing = exp.Is(this=node.this.copy(), expression=exp.Null())
        return exp.Case(ifs=[exp.If(this=missing, true=exp.Null())], default=number)
    return None


def _recast(node: exp.Expr, value: exp.Expr) -> exp.Expr:
    return type(node)(this=value, to=node.args["to"].copy())


def _round(node: exp.Expr, _meaning: Meaning, types: _Types) -> exp.Expr | None:
    """PostgreSQL rounds a float to even, and a numeric away from zero, as DuckDB does both."""
    if types.of(node.this) not in _FLOAT:
        return None
    return exp.Anonymous(this="ROUND_EVEN", expressions=[node.this.copy(), exp.Literal.number(0)])


# ------------------------------------------------------------------ texts


def _compare(node: exp.Expr, meaning: Meaning, types: _Types) -> exp.Expr | None:
    """A comparison of texts, under the collation that is the dialect's default."""
    value = node.this
    others = [node.args.get("expression"), *(node.args.get("expressions") or ()), node.args.get("low")]
    kinds = [types.of(value), *(types.of(one) for one in others if isinstance(one, exp.Expr) and not _rows(one))]
    if all(map(_is_text, kinds[:1])) and all(_is_text(kind) or not kind for kind in kinds):
        value.replace(_collated(value, meaning))
    return None


def _rows(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query | exp.Any | exp.All | exp.Subquery | exp.Tuple)


def _key(node: exp.Expr, meaning: Meaning, types: _Types) -> exp.Expr | None:
    """What rows are grouped, ordered or told apart by."""
    if not _is_text(types.of(node)):
        return None
    collated = _collated(node, meaning)
    group = node.parent if isinstance(node.parent, exp.Group) else None
    if group is not None and group.parent is not None:
        for place in ("expressions", "having", "qualify", "order"):
            held = group.parent.args.get(place)
            for part in held if isinstance(held, list) else [held] if held is not None else []:
                for same in [one for one in part.find_all(type(node)) if one == node and not _in_aggregate(one, part)]:
                    same.replace(_collated_output(same, meaning))
    return collated


def _in_aggregate(node: exp.Expr, top: exp.Expr) -> bool:
    around = node
    while around is not top and around.parent is not None:
        around = around.parent
        if isinstance(around, exp.AggFunc):
            return True
    return False


def _collated_output(node: exp.Expr, meaning: Meaning) -> exp.Expr:
    collated = _collated(node, meaning)
    if isinstance(node.parent, exp.Select) and isinstance(node, exp.Column):
        return exp.alias_(collated, node.this.copy())
    return collated


def _collated(node: exp.Expr, meaning: Meaning) -> exp.Expr:
    assert meaning.collation is not None
    bare = node.copy()
    bare.meta.pop(MARK, None)
    return exp.Collate(this=bare, expression=exp.var(meaning.collation))


def _add(node: exp.Expr, _meaning: Meaning, types: _Types) -> exp.Expr | None:
    """T-SQL's + puts texts together."""
    kinds = types.of(node.this), types.of(node.expression)
    if any(map(_is_text, kinds)) and all(_is_text(kind) or kind == '"NULL"' for kind in kinds):
        return exp.DPipe(this=node.this.copy(), expression=node.expression.copy(), safe=True)
    return None


# ------------------------------------------------------------------ lists


def _concatenate(node: exp.Expr, _meaning: Meaning, types: _Types) -> exp.Expr | None:
    """PostgreSQL's || of a list and an item."""
    left, right = types.of(node.this), types.of(node.expression)
    if not left or not right or left.endswith("]") == right.endswith("]"):
        return None
    name = "LIST_APPEND" if left.endswith("]") else "LIST_PREPEND"
    return exp.Anonymous(this=name, expressions=[node.this.copy(), node.expression.copy()])


def _item(node: exp.Expr, _meaning: Meaning, types: _Types) -> exp.Expr | None:
    """An index outside of a list fails; a key that a map does not have is null. sqlglot counts from 0."""
    if not types.of(node.this).endswith("]"):
        return None
    index = node.expressions[0]
    length = exp.Anonymous(this="LEN", expressions=[node.this.copy()])
    outside: exp.Expr = exp.GTE(this=exp.paren(index.copy()), expression=length)
    if node.meta[MARK][0] == "item":
        outside = exp.or_(exp.LT(this=exp.paren(index.copy()), expression=exp.Literal.number(0)), outside)
    else:  # the first from the end is -2 then, and the item 0, which there is not, -1
        last = exp.Sub(this=exp.Literal.number(-1), expression=exp.paren(index.copy()))
        none = exp.EQ(this=exp.paren(index.copy()), expression=exp.Literal.number(-1))
        outside = exp.or_(none, exp.GT(this=last, expression=length.copy()), outside)
    index.replace(
        exp.Case(
            ifs=[exp.If(this=outside, true=fails("an index outside of the list", "INTEGER"))], default=index.copy()
        )
    )
    return None


_KINDS: dict[str, Callable[[exp.Expr, Meaning, _Types], exp.Expr | None]] = {
    "divide": _divide,
    "divide_whole": _divide_whole,
    "remainder": _remainder,
    "cast": _cast_to_integer,
    "round": _round,
    "compare": _compare,
    "key": _key,
    "add": _add,
    "concatenate": _concatenate,
    "item": _item,
    "item_either_end": _item,
}
