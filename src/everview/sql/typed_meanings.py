"""What another dialect means by an operation, where that depends on the types of its values.

A text is translated before any table is known, so an operation whose meaning depends on
types is only marked then, and replaced here, where DuckDB can be asked for the types.

::

    SELECT a / b FROM t            PostgreSQL's: marked "divide"
    SELECT a // b FROM t           of numbers: integers divide to integers, a division by zero fails
    SELECT a / b FROM t            of intervals

A mark goes through the text as a call, ``__meaning_divide(a, b)``, since the text is written and read
again (:mod:`everview.sql.dialects`), and stands in ``meta`` of the operation after that: until it is
replaced it is DuckDB's, so that a query with marks has types. Marks are replaced from the inside out,
WITH and FROM first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from everview.errors import SqlRefusedError
from everview.sql.dialects import TRANSLATED
from everview.sql.marks import MARK, fails, is_marked
from everview.sql.meanings import MEANINGS, Division, Meaning, TextToInteger, ToInteger, Zero
from everview.sql.namespace import Namespace
from everview.sql.positions import error_at, offset_of
from everview.sql.value_types import FLOATS, ValueTypes, is_fraction, is_integer, is_text

_FROM = ("with_", "from_", "joins", "laterals")


def with_types(query: exp.Expr, namespace: Namespace, text: str) -> exp.Expr:
    """The query with every mark replaced by what is meant of values of their types."""
    shared = _has_collation(query) and query.find(exp.Join) is not None
    if not shared and not any(is_marked(node) for node in query.walk()):
        return query
    holder = exp.Paren(this=query.copy())
    asking = ValueTypes(holder, namespace, text)
    if shared:
        _refuse_shared_texts(holder, asking, text)
    for group in holder.find_all(exp.Group):
        _resolve_aliases(group, asking)
    for node in list(_inside_out(holder.this)):
        if MARK not in node.meta or node.root() is not holder:  # or replaced together with another one
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


def _has_collation(query: exp.Expr) -> bool:
    meaning = MEANINGS.get(query.meta.get(TRANSLATED, ""))
    return meaning is not None and meaning.collation is not None


def _refuse_shared_texts(holder: exp.Expr, types: ValueTypes, text: str) -> None:
    """USING and NATURAL compare columns, and there is no place to write a collation."""
    for join in holder.find_all(exp.Join):
        if str(join.args.get("method") or "").upper() == "NATURAL":
            raise _bytewise(join, text, "a natural join")
        for name in join.args.get("using") or ():
            output = exp.column(name.name)
            if not isinstance(join.parent, exp.Select):
                raise _bytewise(name, text, "USING")
            join.parent.append("expressions", output)
            kind = types.of(output)
            output.pop()
            if is_text(kind):
                raise _bytewise(name, text, "USING")


def _bytewise(node: exp.Expr, text: str, what: str) -> Exception:
    return error_at(
        SqlRefusedError,
        text,
        offset_of(node),
        f"{what} compares texts by their bytes here, and this dialect does not",
        hint="write the condition: JOIN … ON a.name = b.name",
    )


def _resolve_aliases(group: exp.Group, types: ValueTypes) -> None:
    """GROUP BY alias is written out, since an alias cannot be compared under a collation."""
    select = group.parent
    named = (
        {part.alias.lower(): part.this for part in select.expressions if isinstance(part, exp.Alias)} if select else {}
    )
    for key in list(group.expressions):
        if MARK in key.meta and isinstance(key, exp.Column) and key.name.lower() in named and types.is_alias(key):
            expression = named[key.name.lower()].copy()
            if MARK in expression.meta:  # an operation that has a meaning of its own is no text
                key.meta.pop(MARK)
                continue
            expression.meta[MARK] = key.meta[MARK]
            key.replace(expression)


def _inside_out(node: exp.Expr) -> Iterator[exp.Expr]:
    first = [node.args[key] for key in _FROM if node.args.get(key)] if isinstance(node, exp.Query) else []
    rest = [value for key, value in node.args.items() if not (first and key in _FROM)]
    for value in (*first, *rest):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield from _inside_out(child)
    yield node


def _nonzero(divisor: exp.Expr) -> exp.Expr:
    if isinstance(divisor, exp.Literal) and divisor.is_number and float(divisor.name) != 0:
        return divisor
    return exp.Nullif(this=divisor, expression=exp.Literal.number(0))


def _cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect="duckdb"))


# ------------------------------------------------------------------ numbers


def _divide(node: exp.Expr, meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    kinds = types.of(node.this), types.of(node.expression)
    if "" in kinds or "INTERVAL" in kinds:
        return None
    left, right = node.this.copy(), node.expression.copy()
    if meaning.zero is Zero.INFINITE or (meaning.zero is Zero.INFINITE_FLOATS and set(kinds) & set(FLOATS)):
        return None
    if meaning.zero is Zero.NULL:
        right = _nonzero(right)
        if meaning.division is Division.EXACT:
            return exp.Div(this=left, expression=right)
    if meaning.division is Division.EXACT and all(map(is_integer, kinds)):
        left = _cast(left, "DOUBLE")
    return exp.IntDiv(this=left, expression=right)


def _divide_whole(node: exp.Expr, meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """DIV, which is a whole number whatever it divides; DuckDB's ``//`` is that of integers only."""
    kinds = types.of(node.this), types.of(node.expression)
    if "" in kinds:
        return None
    left, right = node.this.copy(), node.expression.copy()
    if meaning.zero is Zero.NULL:
        right = _nonzero(right)
    quotient = exp.IntDiv(this=left, expression=right)
    if all(map(is_integer, kinds)):
        return quotient
    return _cut(quotient)


def _remainder(node: exp.Expr, meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """Of floats, where DuckDB answers NaN."""
    if not {types.of(node.this), types.of(node.expression)} & set(FLOATS):
        return None
    by_zero = exp.EQ(this=node.expression.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=by_zero, true=fails("a division by zero"))], default=node.copy())


def _remainder_whole(node: exp.Expr, _meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """SQLite's, of whole numbers always."""
    sides = [_cut(side.copy()) if is_fraction(types.of(side)) else side.copy() for side in (node.this, node.expression)]
    return exp.Mod(this=sides[0], expression=_nonzero(sides[1]))


def _cut(value: exp.Expr) -> exp.Expr:
    return _cast(exp.Anonymous(this="TRUNC", expressions=[value]), "BIGINT")


def _cast_to_integer(node: exp.Expr, meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    kind = types.of(node.this)
    if is_text(kind):
        return _text_to_integer(node, meaning)
    if meaning.to_integer is ToInteger.CUT and is_fraction(kind):
        return _recast(node, exp.Anonymous(this="TRUNC", expressions=[node.this.copy()]))
    if meaning.to_integer is ToInteger.AWAY and kind in FLOATS:
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


def _round(node: exp.Expr, _meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """PostgreSQL rounds a float to even, and a numeric away from zero, as DuckDB does both."""
    (value,) = node.expressions
    if types.of(value) not in FLOATS:
        return None
    return exp.Anonymous(this="ROUND_EVEN", expressions=[value.copy(), exp.Literal.number(0)])


# ------------------------------------------------------------------ texts


def _compare(node: exp.Expr, meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """A comparison of texts, under the collation that is the dialect's default."""
    value = node.this
    others = [node.args.get("expression"), *(node.args.get("expressions") or ()), node.args.get("low")]
    kinds = [types.of(value), *(types.of(one) for one in others if isinstance(one, exp.Expr) and not _rows(one))]
    if all(map(is_text, kinds[:1])) and all(is_text(kind) or not kind for kind in kinds):
        value.replace(_collated(value, meaning))
    return None


def _rows(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query | exp.Any | exp.All | exp.Subquery | exp.Tuple)


def _key(node: exp.Expr, meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """What rows are grouped, ordered or made distinct by."""
    if not is_text(types.of(node)):
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


def _float_to_text(node: exp.Expr, _meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """PostgreSQL writes a whole float without a point, and Infinity and NaN with capitals."""
    if types.of(node.this) not in FLOATS:
        return None
    value = exp.paren(node.this.copy())
    whole = exp.and_(
        exp.EQ(this=value.copy(), expression=exp.Anonymous(this="TRUNC", expressions=[value.copy()])),
        exp.LT(this=exp.Anonymous(this="ABS", expressions=[value.copy()]), expression=exp.Literal.number("1e15")),
    )
    number = _recast(node, _cast(value.copy(), "BIGINT"))
    words = {"isnan": "NaN", "isinf": "Infinity"}
    odd = [
        exp.If(this=exp.Anonymous(this=name, expressions=[value.copy()]), true=exp.Literal.string(text))
        for name, text in words.items()
    ]
    below = exp.EQ(this=value.copy(), expression=_cast(exp.Literal.string("-inf"), "DOUBLE"))
    negative = exp.If(this=below, true=exp.Literal.string("-Infinity"))
    return exp.Case(ifs=[exp.If(this=whole, true=number), negative, *odd], default=node.copy())


def _add(node: exp.Expr, _meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """T-SQL's + puts texts together."""
    kinds = types.of(node.this), types.of(node.expression)
    if any(map(is_text, kinds)) and all(is_text(kind) or kind == '"NULL"' for kind in kinds):
        return exp.DPipe(this=node.this.copy(), expression=node.expression.copy(), safe=True)
    return None


# ------------------------------------------------------------------ lists


def _concatenate(node: exp.Expr, _meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
    """PostgreSQL's || of a list and an item."""
    left, right = types.of(node.this), types.of(node.expression)
    if not left or not right or left.endswith("]") == right.endswith("]"):
        return None
    name = "LIST_APPEND" if left.endswith("]") else "LIST_PREPEND"
    return exp.Anonymous(this=name, expressions=[node.this.copy(), node.expression.copy()])


def _item(node: exp.Expr, _meaning: Meaning, types: ValueTypes) -> exp.Expr | None:
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


_KINDS: dict[str, Callable[[exp.Expr, Meaning, ValueTypes], exp.Expr | None]] = {
    "divide": _divide,
    "divide_whole": _divide_whole,
    "remainder": _remainder,
    "remainder_whole": _remainder_whole,
    "cast": _cast_to_integer,
    "round": _round,
    "to_text": _float_to_text,
    "compare": _compare,
    "key": _key,
    "add": _add,
    "concatenate": _concatenate,
    "item": _item,
    "item_either_end": _item,
}
