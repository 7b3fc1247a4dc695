"""Marks: operations whose meaning depends on types that are not known yet.

A mark is a call around the operation while a text is written and read again, and
``meta["meaning"]`` of the operation after that (:mod:`everview.sql.typed_meanings`).
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
