"""Parentheses around what FROM names, taken off where they say nothing.

::

    SELECT q.a FROM ((SELECT a FROM t) AS q)              SELECT q.a FROM (SELECT a FROM t) AS q
    SELECT a.x FROM (a JOIN b ON a.x = b.x) JOIN c ON …   SELECT a.x FROM a JOIN b ON a.x = b.x JOIN c ON …

Joins in parentheses on the right of another join stay: they are made first.
"""

from __future__ import annotations

from sqlglot import exp


def parentheses(tree: exp.Expr) -> None:
    """Take them off in the FROM of every SELECT below a node, in place."""
    for select in list(tree.find_all(exp.Select)):
        _unwrap(select)


def _unwrap(select: exp.Select) -> None:
    from_ = select.args.get("from_")
    for holder in [*([from_] if from_ is not None else []), *(select.args.get("joins") or [])]:
        while _says_nothing(holder.this):
            around, inside = holder.this, holder.this.this
            joins = inside.args.get("joins") or []
            if joins and around.args.get("joins"):
                break
            holder.set("this", inside.pop())
            holder.this.set("joins", joins or around.args.get("joins"))
            if joins and holder is not from_ and not _says_nothing(holder.this):
                holder.set("this", exp.Subquery(this=holder.this))
                break
    if from_ is not None and from_.this.args.get("joins") and not isinstance(from_.this, exp.Values):
        first = from_.this.args["joins"]
        from_.this.set("joins", None)
        select.set("joins", [*first, *(select.args.get("joins") or [])])


def _says_nothing(node: exp.Expr) -> bool:
    """Whether a node is parentheses around a table or a subquery."""
    plain = isinstance(node, exp.Subquery) and not any(node.args.get(key) for key in ("alias", "pivots", "sample"))
    return plain and not node.meta and isinstance(node.this, exp.Table | exp.Subquery)
