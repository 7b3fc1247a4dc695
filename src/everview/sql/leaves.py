"""Expressions that replace the scalars inside of a nested value.

Given what a scalar of each kind becomes, the text of an expression that takes a value of a nested
type apart, replaces its scalars and puts it together again, nulls where they were.

    >>> replaced("x", parse_type("BIT[]"), {Kind.BIT: "CAST({} AS VARCHAR)".format})
    'list_transform(x, lambda v0: CAST(v0 AS VARCHAR))'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.change.types import Kind, Type

Replacements = Mapping[Kind, Callable[[str], str]]
"""What makes of the text of a scalar the text of what it becomes."""


def has_leaves(kind: Type, of: Replacements) -> bool:
    """Whether values of the type hold a scalar that is replaced."""
    return kind.kind in of or any(has_leaves(child, of) for _, child in kind.children)


def replaced(sql: str, kind: Type, by: Replacements, depth: int = 0) -> str:
    """The expression with such scalars replaced. An array comes out as a list."""
    if not has_leaves(kind, by):
        return sql
    if kind.kind in by:
        return by[kind.kind](sql)
    item = f"v{depth}"
    if kind.kind is Kind.STRUCT:
        fields = ", ".join(
            f"{_quoted(name)} := {replaced(f'struct_extract({sql}, {_text(name)})', child, by, depth)}"
            for name, child in kind.children
        )
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({fields}) END"
    if kind.kind is Kind.TUPLE:
        parts = [replaced(f"struct_extract_at({sql}, {name})", child, by, depth) for name, child in kind.children]
        return f"CASE WHEN {sql} IS NOT NULL THEN row({', '.join(parts)}) END"
    if kind.kind is Kind.MAP:
        (_, key), (_, value) = kind.children
        parts = [
            replaced(f"struct_extract({item}, '{name}')", child, by, depth + 1)
            for name, child in (("key", key), ("value", value))
        ]
        entries = f"list_transform(map_entries({sql}), lambda {item}: struct_pack(k := {parts[0]}, v := {parts[1]}))"
        return f"CASE WHEN {sql} IS NOT NULL THEN map_from_entries({entries}) END"
    items = f"CAST({sql} AS {kind.item}[])" if kind.kind is Kind.ARRAY else sql
    return f"list_transform({items}, lambda {item}: {replaced(item, kind.item, by, depth + 1)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
