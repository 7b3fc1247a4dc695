"""Text under a collation, as a key.

What DuckDB compares instead of such a text is a text again, compared by its bytes, and
so it can be a part of a key.
"""

from __future__ import annotations

from sqlglot import exp

from everview.plan.expressions import Expr, parsed, written

_FUNCTIONS = {"NOCASE": "LOWER", "NOACCENT": "STRIP_ACCENTS", "NFC": "NFC_NORMALIZE"}
_BYTES = ("BINARY", "C", "POSIX")


def is_collated(value: Expr) -> bool:
    """Whether the value of an expression has a collation, and does not only come of a comparison under one."""
    return _is_collated(parsed(value.sql))


def _is_collated(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Predicate):
        return False
    return isinstance(tree, exp.Collate) or any(map(_is_collated, tree.iter_expressions()))


def comparable(left: Expr, right: Expr) -> tuple[Expr, Expr] | None:
    """Two values that are compared, as values that are equal where their bytes are; None where there
    are no such."""
    trees = _tree(left), _tree(right)
    names = {written(tree.expression) for tree in trees if isinstance(tree, exp.Collate)}
    within = [tree.this if isinstance(tree, exp.Collate) else tree for tree in trees]
    if any(map(_is_collated, within)) or len(names) > 1 or (names and left.type != right.type):
        return None
    if not names:
        return left, right
    (name,) = names
    bare = [written(exp.paren(tree.copy())) for tree in within]
    return (
        compared_by(Expr(f"{bare[0]} COLLATE {name}", left.type)),
        compared_by(Expr(f"{bare[1]} COLLATE {name}", right.type)),
    )


def compared_by(value: Expr) -> Expr:
    """Text under a collation as what DuckDB compares instead of it: text again, by its bytes.

    >>> compared_by(Expr('"name" COLLATE NOACCENT.NOCASE', parse_type("VARCHAR"))).sql
    'STRIP_ACCENTS(LOWER("name"))'
    """
    tree = _tree(value)
    if not isinstance(tree, exp.Collate):
        return value
    sql, others = written(tree.this.unnest()), []
    for name in reversed(written(tree.expression).replace('"', "").upper().split(".")):
        if name in _FUNCTIONS:
            sql = f"{_FUNCTIONS[name]}({sql})"
        elif name not in _BYTES:
            others.append(f"ICU_COLLATE_{name}")
    return compared_by(Expr(f"{others[0]}({sql})" if others else sql, value.type))


def _tree(value: Expr) -> exp.Expr:
    return parsed(value.sql).unnest()
