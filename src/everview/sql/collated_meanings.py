"""Where text is compared: what MySQL and T-SQL do under a collation that ignores case.

Everything that compares values, a condition, a key of GROUP BY, ORDER BY, PARTITION BY and
DISTINCT, is marked, and compared under the dialect's collation where the values are texts.
"""

from __future__ import annotations

from sqlglot import exp

from everview.sql.marks import kind_of, marked

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
    """Whether it is one side of a UNION, INTERSECT or EXCEPT that tells rows apart."""
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
