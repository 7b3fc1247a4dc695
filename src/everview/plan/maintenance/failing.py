"""Expressions that may fail: computed for a view before anything shares them.

Where an expression can fail for some rows, a step of its own computes it first, so
that a row whose expression failed is left out of the views that asked for it, as a whole, and of no others.

    SELECT customer, count(*), sum(CAST(note AS INTEGER)) FROM orders GROUP BY customer

counts no order whose note is no number, and another view that counts the orders of each customer
shares nothing with it that would make it lose them too.

What cannot fail is known; of all else it is assumed that it can. That costs little: a step without
state, and a PRE-AGGREGATION that is not shared.

**Aggregates and window functions** may fail too. The calls of all views over one partition are
evaluated together, so one that can fail there gets a step of its own, and a partition that fails is
left out of the views that asked for it, and of no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sqlglot import exp

from everview.change.types import DOUBLE, FLOATS, INTEGERS, TEXTS, Kind, Type, decimal, parse_type
from everview.errors import DefinitionError
from everview.plan.expressions import Expr, parsed
from everview.plan.maintenance.operator_definitions import FilterProjectOperator
from everview.plan.maintenance.sketch import CompileContext, Stream
from everview.sql.aggregates import called

_NARROW, _WIDEST = 18, 38
_COMPARED = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Between,
    exp.In,
    exp.Coalesce,
    exp.Like,
    exp.ILike,
    exp.Lower,
    exp.Upper,
    exp.Trim,
    exp.Length,
    exp.DPipe,
)
_TRUTHS = (exp.And, exp.Or, exp.Not, exp.Is, exp.Paren, exp.Neg)


def computed_first(context: CompileContext, below: Stream, expressions: Iterable[Expr]) -> Stream:
    """What is below, with those of the expressions computed that can fail. The expressions are in
    columns of the draft; the new stream has, for each of them, a name that is its text."""
    found = {one.sql: one for one in expressions}
    kinds = {name: field.type for name, field in below.draft.columns.items()}
    failing = sorted(sql for sql in found if can_fail(sql, kinds))
    if not failing:
        return below
    operator = FilterProjectOperator(first=tuple(failing))
    draft, slots = context.sketch.step(operator, [(below, None)], below.draft.subject)
    texts = {sql: found[sql] for sql in failing}
    made = Stream(below.draft, below.labels, below.names | texts, below.slots).carried_by(
        draft, [*below.names, *texts], slots
    )
    read = sorted({name for one in found.values() if one.sql not in texts for name in one.fields})
    draft.carry(below.draft.columns[name] for name in read)
    return made


def settled(made: Stream, expression: Expr) -> Expr:
    """The expression in columns of what :func:`computed_first` gave."""
    return made.names.get(expression.sql, expression)


def can_fail(sql: str, kinds: Mapping[str, Type]) -> bool:
    """Whether an expression over columns of these types may have no value for some rows."""
    return _can_fail(sql, tuple(sorted(kinds.items(), key=lambda pair: pair[0])))


@lru_cache(maxsize=4096)
def _can_fail(sql: str, kinds: tuple[tuple[str, Type], ...]) -> bool:
    return not is_safe(parsed(sql), dict(kinds))


def is_safe(node: exp.Expr, kinds: Mapping[str, Type]) -> bool:
    """Whether an expression has a value for every row."""
    below = list(node.iter_expressions())
    match node:
        case exp.Column():
            return node.name in kinds
        case exp.Literal() | exp.Boolean() | exp.Null():
            return True
        case exp.Cast() if not isinstance(node, exp.TryCast):
            return is_safe(node.this, kinds) and _widens(kind_of(node.this, kinds), kind_of(node, kinds))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return all(is_safe(one, kinds) for one in below) and _fits(node, kinds)
        case exp.Case():
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            last = node.args.get("default")
            results = branches if last is None else [*branches, last]
            return all(is_safe(one, kinds) for one in below) and _alike(results, kinds)
        case exp.If():
            return all(is_safe(one, kinds) for one in below)
    if isinstance(node, _TRUTHS):
        return all(is_safe(one, kinds) for one in below) and not (
            isinstance(node, exp.Neg) and not _signed(node, kinds)
        )
    return isinstance(node, _COMPARED) and all(is_safe(one, kinds) for one in below) and _alike(below, kinds)


def _signed(node: exp.Neg, kinds: Mapping[str, Type]) -> bool:
    """Whether the negative is a value of the type."""
    kind = kind_of(node.this, kinds)
    return node.this.is_number or (kind is not None and kind.kind in (Kind.DECIMAL, *FLOATS))


def _fits(node: exp.Expr, kinds: Mapping[str, Type]) -> bool:
    """Whether the result of an operation always fits its type. Floats become infinite."""
    kind = kind_of(node, kinds)
    return kind is not None and kind.kind in (Kind.DECIMAL, *FLOATS)


def _alike(nodes: Iterable[exp.Expr], kinds: Mapping[str, Type]) -> bool:
    """Whether values are compared as what they are: no text is made a number, and no number too large for a decimal."""
    found = [kind_of(node, kinds) for node in nodes if not isinstance(node, exp.Null)]
    families = set(map(_family, found))
    return len(families) <= 1 and None not in families and ("number" not in families or _meet(found))


def _meet(numbers: Iterable[Type | None]) -> bool:
    """Whether there is a decimal for all numbers, if some are decimals and none is a float."""
    kinds = [kind for kind in numbers if kind is not None]
    if not any(kind.kind is Kind.DECIMAL for kind in kinds) or any(kind.kind in FLOATS for kind in kinds):
        return True
    decimals = [_as_decimal(kind) for kind in kinds]
    if any(kind is None for kind in decimals):
        return False
    held = [kind for kind in decimals if kind is not None]
    return max(kind.precision - kind.scale for kind in held) + max(kind.scale for kind in held) <= _WIDEST


def _family(kind: Type | None) -> str | None:
    if kind is None:
        return None
    if kind.kind in INTEGERS or kind.kind in FLOATS or kind.kind is Kind.DECIMAL:
        return "number"
    return "text" if kind.kind in TEXTS else str(kind)


def _widens(source: Type | None, target: Type | None) -> bool:
    """Whether every value of the one type is one of the other."""
    if source is None or target is None:
        return False
    if source == target or target.kind in TEXTS or (target == DOUBLE and _family(source) == "number"):
        return True
    if source.kind in INTEGERS and target.kind in INTEGERS:
        return _bits(source) < _bits(target) and _is_signed(source) <= _is_signed(target)
    if source.kind is Kind.DECIMAL and target.kind is Kind.DECIMAL:
        return source.scale <= target.scale and source.precision - source.scale <= target.precision - target.scale
    return False


def _bits(kind: Type) -> int:
    return 8 * (kind.width or 0)


def _is_signed(kind: Type) -> bool:
    return not kind.kind.value.startswith("U")


def kind_of(node: exp.Expr, kinds: Mapping[str, Type]) -> Type | None:
    """The type of a simple expression; None of others."""
    match node:
        case exp.Column():
            return kinds.get(node.name)
        case exp.Paren() | exp.Neg():
            return kind_of(node.this, kinds)
        case exp.Boolean() | exp.And() | exp.Or() | exp.Not() | exp.Is():
            return parse_type("BOOLEAN")
        case exp.Lower() | exp.Upper() | exp.Trim() | exp.DPipe():
            return parse_type("VARCHAR")
        case exp.Length():
            return parse_type("BIGINT")
        case exp.Literal():
            return _literal(node)
        case exp.Cast():
            return _named(node.to.sql(dialect="duckdb"))
        case exp.Case():
            return kind_of(node.args["ifs"][0].args["true"], kinds)
        case exp.Coalesce():
            return kind_of(node.this, kinds)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _result(node, kind_of(node.left, kinds), kind_of(node.right, kinds))
    return parse_type("BOOLEAN") if isinstance(node, _COMPARED[:10]) else None


def _literal(node: exp.Literal) -> Type | None:
    text = str(node.this)
    if node.is_string:
        return parse_type("VARCHAR")
    if "e" in text.lower():
        return DOUBLE
    digits = len(text.replace(".", ""))
    return decimal(max(digits, 1), len(text.partition(".")[2])) if digits <= _WIDEST else None


def _is_whole(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Literal) and node.is_number and not set(node.name) & set(".eE")


def _named(text: str) -> Type | None:
    try:
        return parse_type(text)
    except DefinitionError:
        return None


def _result(node: exp.Expr, left: Type | None, right: Type | None) -> Type | None:
    """Of an operation on numbers: a division is a DOUBLE, infinite by zero; decimals are widened as far
    as 18 digits, and wider ones as far as 38; beyond, None."""
    if left is None or right is None:
        return None
    numbers = {_family(left), _family(right)} == {"number"}
    if numbers and (isinstance(node, exp.Div) or {left.kind, right.kind} & FLOATS):
        return DOUBLE
    if Kind.DECIMAL not in (left.kind, right.kind) or isinstance(node, exp.Div):
        return None
    whole = [
        kind.kind in INTEGERS or _is_whole(side)
        for kind, side in zip((left, right), node.unnest_operands(), strict=True)
    ]
    if all(whole):  # a whole number beside an integer has the integer's type
        return None
    a, b = _as_decimal(left), _as_decimal(right)
    if a is None or b is None:
        return None
    most = _NARROW if max(a.precision, b.precision) <= _NARROW else _WIDEST
    if isinstance(node, exp.Mul):
        return _decimal(a.precision + b.precision, a.scale + b.scale, most)
    scale = max(a.scale, b.scale)
    return _decimal(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale, most)


def _as_decimal(kind: Type) -> Type | None:
    if kind.kind is Kind.DECIMAL:
        return kind
    digits = {1: 3, 2: 5, 4: 10, 8: 19}.get(kind.width or 0)
    return decimal(digits, 0) if digits is not None and kind.kind in INTEGERS else None


def _decimal(precision: int, scale: int, most: int) -> Type | None:
    return decimal(precision, scale) if precision <= most and scale <= precision else None


# -------------------------------------------------------------- aggregates and window functions


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
