"""Calls in other forms, written as the plain calls that they stand for.

DuckDB lets a text call functions in ways that no later pass need know: as methods, as list
comprehensions, by macros, and by ``alias(…)``, which is the name of a column.

::

    p.name.upper().left(3)                        left(upper(p.name), 3)
    [x || '!' FOR x IN tags IF x <> 'new']        list_transform(list_filter(tags, lambda x: x <> 'new'), …)
    SELECT g, geomean(x) FROM t GROUP BY g        SELECT g, exp(avg(ln(x))) FROM t GROUP BY g
    SELECT alias(a) AS x, upper(alias(a)) AS y    SELECT 'x' AS x, upper('a') AS y
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from everview.errors import EverviewError
from everview.sql.aggregates import aggregates, called
from everview.sql.dialects import DEFAULT, reader
from everview.sql.namespace import fold
from everview.sql.resolution import Resolution
from everview.sql.typer import typer

# ------------------------------------------------------------------ methods


def rewrite_method_calls(query: Resolution) -> None:
    """Functions called like methods, the innermost first. What stands before the dot is a column, with or without
    its table, or any other expression; if it is the schema ``main``, which all functions are in, it goes."""
    columns = query.tree.find_all(exp.Column)
    for column in [column for column in columns if isinstance(column.this, exp.Filter)]:
        # sqlglot takes a call with FILTER for the column of a table.
        names = column.parts[:-1]
        column.replace(exp.Dot.build([*(name.copy() for name in names), column.this.copy()]))
    for dot in reversed(list(query.tree.find_all(exp.Dot))):
        call, owner = dot.expression, dot.this
        while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.Window):
            call = call.this
        if not isinstance(call, exp.Anonymous):
            continue
        first = _owner_value(owner)
        if isinstance(owner, exp.Identifier) and fold(owner.name) == "main" and call.expressions:
            dot.replace(dot.expression.pop())
        elif first is not None:
            call.set("expressions", [first, *call.expressions])
            dot.replace(dot.expression.pop())


def _owner_value(owner: exp.Expr) -> exp.Expr | None:
    """The expression before the dot; names are read as a column of at most a table."""
    if isinstance(owner, exp.Paren) and isinstance(owner.this, exp.Identifier):
        owner = owner.this
    if isinstance(owner, exp.Identifier):
        return exp.Column(this=owner.copy())
    if not isinstance(owner, exp.Dot):
        return owner.copy()
    table, column = owner.this, owner.expression
    if isinstance(table, exp.Dot):
        return None
    if not isinstance(table, exp.Identifier) or not isinstance(column, exp.Identifier):
        return owner.copy()
    return exp.Column(this=column.copy(), table=table.copy())


# ------------------------------------------------------------------ comprehensions

_BOTH = "__both"


def rewrite_comprehensions(query: Resolution) -> None:
    """List comprehensions as calls of ``list_transform`` and ``list_filter``, the innermost first.

    With a second name, ``[x || i FOR x, i IN tags IF i > 1]``, that is the place of the element in the
    list as it was before the filter: then both travel through it in a struct.
    """
    for comprehension in reversed(list(query.tree.find_all(exp.Comprehension))):
        around = comprehension.parent
        if isinstance(around, exp.Array) and len(around.expressions) == 1:
            around.replace(_as_functions(comprehension))


def _as_functions(comprehension: exp.Comprehension) -> exp.Expr:
    element, place = comprehension.expression, comprehension.args.get("position")
    condition, items, value = comprehension.args.get("condition"), comprehension.args["iterator"], comprehension.this
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
    items = _call("list_filter", items, [both], _with_variables(condition, fields))
    return _call("list_transform", items, [both], _with_variables(value, fields))


def _call(function: str, items: exp.Expr, variables: list[exp.Expr], body: exp.Expr) -> exp.Expr:
    inner = _with_variables(body, {fold(variable.name): variable for variable in variables})
    by = exp.Lambda(this=inner, expressions=[variable.copy() for variable in variables])
    return exp.Anonymous(this=function, expressions=[items.copy(), by])


def _with_variables(body: exp.Expr, values: dict[str, exp.Expr]) -> exp.Expr:
    """An expression with the variables put in where columns of their names stand."""
    holder = exp.Paren(this=body.copy())
    for column in list(holder.find_all(exp.Column)):
        value = values.get(fold(column.parts[0].name))
        if value is not None:
            fields = [part.copy() for part in column.parts[1:]]
            column.replace(exp.Dot.build([value.copy(), *fields]) if fields else value.copy())
    expression: exp.Expr = holder.this.pop()
    return expression


# ------------------------------------------------------------------ macros


@dataclass(frozen=True)
class _Macro:
    parameters: tuple[str, ...]
    body: exp.Expr


@functools.cache
def _macros() -> dict[str, _Macro]:
    """The macros with an aggregate or an UNNEST in them, by name. One may be made of another."""
    read: dict[str, _Macro] = {}
    for name, parameters, definition in typer().macros():
        try:
            body = reader(DEFAULT).read(f"SELECT {definition}").expressions[0].pop()
        except EverviewError:
            continue
        for node in body.walk():
            node.meta.clear()
        read[name] = _Macro(tuple(map(fold, parameters)), body)
    rows = exp.Explode, exp.Unnest
    macros = {name: macro for name, macro in read.items() if aggregates(macro.body) or macro.body.find(*rows)}
    while True:
        more = {
            name: macro
            for name, macro in read.items()
            if name not in macros and any(called(node) in macros for node in macro.body.walk())
        }
        if not more:
            return macros
        macros |= more


_WHOLE = (exp.Window, exp.Table, exp.Lateral)


def write_out_macros(query: Resolution) -> None:
    """DuckDB's macros that aggregate, or make several rows of one, replaced by their texts.

    ``geomean``, ``weighted_avg``, ``regexp_split_to_table`` and their like are no aggregates and no
    UNNEST to DuckDB but texts made of some, and written out these are kept like any others.
    Over a window the macro stays, and so does one that is read from: there DuckDB evaluates the call as a whole.
    """
    waiting = list(query.tree.find_all(exp.Anonymous))
    while waiting:
        call = waiting.pop()
        macro = _macros().get(called(call))
        if macro is None or len(macro.parameters) != len(call.expressions) or isinstance(call.parent, _WHOLE):
            continue
        values = dict(zip(macro.parameters, call.expressions, strict=True))
        holder = exp.Paren(this=macro.body.copy())
        for column in list(holder.find_all(exp.Column)):
            value = values.get(fold(column.name)) if not column.table else None
            if value is not None:
                column.replace(exp.Paren(this=value.copy()))
        call.replace(holder)
        waiting.extend(holder.find_all(exp.Anonymous))


# ------------------------------------------------------------------ alias(…)


def replace_alias_calls(query: Resolution) -> None:
    """``alias(…)`` as the name that it stands for: a call that is a column of its own is called what the column is
    called, inside an expression it is the name of its argument."""
    for call in list(alias_calls(query.tree)):
        call.replace(exp.Literal.string(alias_of(call) or ""))


def alias_calls(tree: exp.Expr) -> Iterator[exp.Anonymous]:
    """The calls of ``alias`` in a tree."""
    calls = tree.find_all(exp.Anonymous)
    return (call for call in calls if call.name.lower() == "alias" and len(call.expressions) == 1)


def alias_of(call: exp.Anonymous) -> str | None:
    """The name that a call of ``alias`` stands for; None of an argument that is no column."""
    if isinstance(call.parent, exp.Alias):
        return call.parent.alias
    (argument,) = call.expressions
    if isinstance(argument, exp.Column | exp.Columns | exp.Star):
        return argument.name
    return None
