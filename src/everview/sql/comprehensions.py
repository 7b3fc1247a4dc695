"""List comprehensions as the functions that they stand for.

::

    [x || '!' FOR x IN tags IF x <> 'new']
    list_transform(list_filter(tags, lambda x: x <> 'new'), lambda x: x || '!')

With a second name, ``[x || i FOR x, i IN tags IF i > 1]``, that is the place of the element in the
list as it was before the filter: then both travel through it in a struct.
"""

from __future__ import annotations

from sqlglot import exp

from everview.sql.namespace import fold

_BOTH = "__both"


def comprehensions(tree: exp.Expr) -> None:
    """Rewrite the comprehensions of a tree in place, the innermost first."""
    for found in reversed(list(tree.find_all(exp.Comprehension))):
        around = found.parent
        if isinstance(around, exp.Array) and len(around.expressions) == 1:
            around.replace(_as_functions(found))


def _as_functions(found: exp.Comprehension) -> exp.Expr:
    element, place = found.expression, found.args.get("position")
    condition, items, value = found.args.get("condition"), found.args["iterator"], found.this
    if condition is None:
        return _call("list_transform", items, [element, *([place] if place else [])], value)
    if place is None:
        return _call("list_transform", _call("list_filter", items, [element], condition), [element], value)
    both = exp.to_identifier(_BOTH)
    struct = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=variable.copy())
            for name, variable in (("element", element), ("place", place))
        ]
    )
    fields: dict[str, exp.Expr] = {
        fold(variable.name): exp.Dot(this=both.copy(), expression=exp.to_identifier(name))
        for name, variable in (("element", element), ("place", place))
    }
    items = _call("list_transform", items, [element, place], struct)
    items = _call("list_filter", items, [both], _with(condition, fields))
    return _call("list_transform", items, [both], _with(value, fields))


def _call(function: str, items: exp.Expr, variables: list[exp.Expr], body: exp.Expr) -> exp.Expr:
    inner = _with(body, {fold(variable.name): variable for variable in variables})
    by = exp.Lambda(this=inner, expressions=[variable.copy() for variable in variables])
    return exp.Anonymous(this=function, expressions=[items.copy(), by])


def _with(body: exp.Expr, values: dict[str, exp.Expr]) -> exp.Expr:
    """An expression with the variables put in where columns of their names stand."""
    holder = exp.Paren(this=body.copy())
    for column in list(holder.find_all(exp.Column)):
        value = values.get(fold(column.parts[0].name))
        if value is not None:
            fields = [part.copy() for part in column.parts[1:]]
            column.replace(exp.Dot.build([value.copy(), *fields]) if fields else value.copy())
    found: exp.Expr = holder.this.pop()
    return found
