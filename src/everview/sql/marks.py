"""Marks: operations whose meaning in another dialect depends on types that are not known yet.

A mark is a call around the operation while a text is written and read again, and
``meta["meaning"]`` of the operation after that (:mod:`everview.sql.typed_meanings`).

MySQL and T-SQL compare texts under a collation that ignores case, so in their texts everything that compares values is
marked: conditions, and the keys of GROUP BY, ORDER BY, PARTITION BY and DISTINCT.
"""

from __future__ import annotations

from sqlglot import exp

MARK = "meaning"
"""In ``meta``: which kind of operation it is, and in which dialect."""

_CALL = "__meaning_"


def marked(kind: str, dialect: str, operation: exp.Expr) -> exp.Expr:
    """The operation in a call that survives being written and read."""
    return exp.Anonymous(this=f"{_CALL}{kind}__{dialect}", expressions=[operation])


def is_marked(node: exp.Expr) -> bool:
    """Whether a node has a mark. Every tree is asked, so no node is given a ``meta`` for it."""
    return node._meta is not None and MARK in node._meta


def kind_of(node: exp.Expr) -> str | None:
    """The kind of operation that a call marks."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return name.removeprefix(_CALL).partition("__")[0] if name.startswith(_CALL) else None


def unwrapped(tree: exp.Expr) -> exp.Expr:
    """The tree with marks in ``meta`` instead of calls."""
    holder = exp.Paren(this=tree)
    for call in reversed(list(holder.find_all(exp.Anonymous))):
        name = call.name.lower()
        if name.startswith(_CALL):
            operation = call.expressions[0]
            kind, _, dialect = name.removeprefix(_CALL).partition("__")
            operation.meta[MARK] = (kind, dialect)
            operation = operation.pop()
            call.replace(exp.Paren(this=operation) if _needs_parentheses(operation, call.parent) else operation)
    found: exp.Expr = holder.this
    found.pop()
    return found


def _needs_parentheses(operation: exp.Expr, parent: exp.Expr | None) -> bool:
    """Whether a binary operation would be read otherwise without the call around it."""
    if not isinstance(operation, exp.Binary | exp.Between | exp.In) or isinstance(parent, exp.Paren):
        return False
    return isinstance(parent, exp.Binary | exp.Unary | exp.Cast | exp.Bracket | exp.Between | exp.In | exp.Is)


def fails(why: str, kind: str = "DOUBLE") -> exp.Expr:
    """A value that no row has: evaluating it is an error that contains the reason."""
    failure = exp.Anonymous(this="ERROR", expressions=[exp.Literal.string(why)])
    return exp.Cast(this=failure, to=exp.DataType.build(kind, dialect="duckdb"))


# ------------------------------------------------------------------ comparisons

_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between),
)
_PLAIN = (exp.Boolean, exp.Null, exp.Interval)


def mark_comparisons(holder: exp.Expr, dialect: str) -> None:
    """Mark all comparisons and keys below a node, in place."""
    for select in list(holder.find_all(exp.Select)):
        _resolve_positions(select)
    for node in reversed(list(holder.find_all(*_COMPARISONS))):
        if not isinstance(node.parent, exp.PropertyEQ) and not any(map(_is_plain, _operands(node))):
            node.replace(marked("compare", dialect, node.copy()))
    for key in _keys(holder):
        kind = kind_of(key)
        if kind == "add":  # the two meanings stand on two nodes
            key.replace(marked("key", dialect, exp.Paren(this=key.copy())))
        elif kind is None and not _is_plain(key):
            key.replace(_as_output(key, marked("key", dialect, key.copy())))


def _operands(node: exp.Expr) -> list[exp.Expr]:
    return [value for key in ("this", "expression", "low") if isinstance(value := node.args.get(key), exp.Expr)]


def _is_plain(node: exp.Expr) -> bool:
    """Whether it is certainly no text."""
    if isinstance(node, exp.Cast):
        return not node.args["to"].is_type(*exp.DataType.TEXT_TYPES)
    return isinstance(node, _PLAIN) or (isinstance(node, exp.Literal) and not node.is_string)


def _keys(holder: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for node in holder.find_all(exp.Group, exp.Ordered, exp.Window, exp.Case, exp.Min, exp.Max, exp.Select, exp.Count):
        match node:
            case exp.Group():
                found += node.expressions
            case exp.Window():
                found += node.args.get("partition_by") or []
            case exp.Select() if node.args.get("distinct") is not None or _is_distinct_part(node):
                found += [part.unalias() for part in node.expressions if not part.is_star]
            case exp.Count() if isinstance(node.this, exp.Distinct):
                found += node.this.expressions
            case exp.Ordered() | exp.Min() | exp.Max():
                found.append(node.this)
            case exp.Case() if node.this is not None:
                found.append(node.this)
    return found


def _is_distinct_part(select: exp.Select) -> bool:
    """Whether it is one side of a UNION, INTERSECT or EXCEPT that leaves out equal rows."""
    around = select.parent
    while isinstance(around, exp.Subquery | exp.Paren):
        around = around.parent
    return isinstance(around, exp.SetOperation) and bool(around.args.get("distinct", True))


def _resolve_positions(select: exp.Select) -> None:
    """ORDER BY 1 and GROUP BY 1 are written out, since a position cannot be compared under a collation."""
    outputs = select.expressions
    for place in ("group", "order"):
        held = select.args.get(place)
        for part in held.expressions if held is not None else ():
            key = part.this if isinstance(part, exp.Ordered) else part
            if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(outputs):
                output = outputs[int(key.name) - 1]
                if not output.is_star:
                    key.replace(output.unalias().copy())


def _as_output(key: exp.Expr, changed: exp.Expr) -> exp.Expr:
    """A column of a SELECT keeps its name."""
    if isinstance(key.parent, exp.Select) and isinstance(key, exp.Column):
        return exp.alias_(changed, key.this.copy())
    return changed
