"""Families: views that differ only in constants.

A constant that a condition compares with becomes a parameter, and relations that
are equal with their parameters left open are one template, compiled once for all its views.

    amount > 10 AND status = 'new'    →    amount > $1 AND status = $2    (10, 'new')

A parameter will be a column of a table of constants when it is evaluated, and a column is not
always as good as a literal: ``date_trunc('month', d)`` wants its unit as a literal, and a text
literal beside a DATE takes that type where a text column would not. So only those literals
become parameters that are one side of a comparison, and only where the type is known: numbers;
texts beside a plain field, of whose type they become; literals that are cast; and only if they are
values of that type. All others are part of the template.

Thousands of conditions are taken apart, so a text is cut at its literals by one regular
expression, and the tree is looked at once for each different text that remains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any

from sqlglot import exp

from everview.change.types import BIGINT, FLOATS, HUGEINT, INTEGER, INTEGERS, TEXTS, Kind, Type, decimal, parse_type
from everview.errors import DefinitionError
from everview.plan.expressions import Field, parsed
from everview.plan.relations import Filter, Relation
from everview.sql.typer import Failure, typer

NUMBER = "NUMBER"
"""The class of numeric parameters; the type is wide enough for all constants of the family."""

_LITERAL = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![\w.])\d+(?:\.\d+)?(?![\w.])""")
_DIGITS = 18
"""Numbers up to here go into one DECIMAL together with any other, exactly."""
_MARK = "#slot"
_MARKED = re.compile(rf"(?:{_MARK}|7)(\d{{7}})7?")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.ILike)


@dataclass(frozen=True)
class Template:
    """A condition with its parameters left open, the class of each, and the constants it had."""

    sql: str
    classes: tuple[str, ...]
    """NUMBER, or a type."""
    constants: tuple[str, ...]


def template_of(sql: str, available: tuple[Field, ...]) -> Template:
    """Take the constants out of a condition over these fields."""
    literals: list[str] = []

    def cut(match: re.Match[str]) -> str:
        text = match.group()
        if text[0] == '"':
            return text
        literals.append(text)
        number = len(literals)
        return f"'{_MARK}{number:07}'" if text[0] == "'" else f"7{number:07}7"

    skeleton = _LITERAL.sub(cut, sql)
    if not literals or _MARK in sql:
        return Template(sql, (), ())
    found = _slots(skeleton, available)
    classes: list[str] = []
    constants: list[str] = []
    texts: dict[int, str] = {}
    for number, literal in enumerate(literals, start=1):
        kind = found.get(number)
        if kind is None or (kind == NUMBER and len(literal) > _DIGITS) or not _converts(literal, kind):
            texts[number] = literal
        else:
            classes.append(kind)
            constants.append(literal)
            texts[number] = f"${len(constants)}"
    return Template(_unmarked(skeleton, texts), tuple(classes), tuple(constants))


@lru_cache(maxsize=65_536)
def _converts(literal: str, kind: str) -> bool:
    """Whether a constant has a value of its class: one that has none fails where rows are compared with it."""
    if kind in (NUMBER, "VARCHAR"):
        return True
    return not isinstance(typer().value(f"CAST({literal} AS {kind})"), Failure)


def _unmarked(skeleton: str, texts: Mapping[int, str]) -> str:
    def put(match: re.Match[str]) -> str:
        text = match.group()
        if text[0] == '"':
            return text
        return texts[int(text[len(_MARK) + 1 : -1] if text[0] == "'" else text[1:-1])]

    return _LITERAL.sub(put, skeleton)


@lru_cache(maxsize=4096)
def _slots(skeleton: str, available: tuple[Field, ...]) -> dict[int, str]:
    """For each literal that may be a parameter its class."""
    types = {field.name: field.type for field in available}
    found: dict[int, str] = {}
    for literal in parsed(skeleton).find_all(exp.Literal):
        mark = _MARKED.fullmatch(str(literal.this))
        kind = _class(literal, types) if mark else None
        if mark and kind:
            found[int(mark.group(1))] = kind
    return found


def _class(literal: exp.Expr, types: Mapping[str, Type]) -> str | None:
    node: exp.Expr = literal
    cast = None
    if isinstance(node.parent, exp.Cast) and not isinstance(node.parent, exp.TryCast):
        node = node.parent
        if any(member.is_string for member in node.to.find_all(exp.Literal)):
            return None  # the members of an ENUM are literals as well
        cast = _type_text(node.to.sql(dialect="duckdb"))
        if cast is None:
            return None
    while isinstance(node.parent, exp.Paren) or (isinstance(node.parent, exp.Neg) and not literal.is_string):
        node = node.parent
    other = _compared_with(node)
    if other is None:
        return None
    if cast is not None:
        return cast
    beside = types.get(other.name) if isinstance(other, exp.Column) else None
    if literal.is_string:
        if beside is None or not beside.is_scalar or beside.kind is Kind.ENUM:
            return None  # DuckDB compares an ENUM with a text as text
        return "VARCHAR" if beside.kind in TEXTS else str(beside)
    if beside is not None and beside.kind not in _NUMERIC:
        return None
    return NUMBER


_NUMERIC = (INTEGERS.keys() | FLOATS | {Kind.DECIMAL}) - {Kind.HUGEINT, Kind.UHUGEINT}


def _compared_with(node: exp.Expr) -> exp.Expr | None:
    """What a comparison compares this with."""
    parent = node.parent
    found: Any = None
    if isinstance(parent, _COMPARISONS):
        found = parent.expression if parent.this is node else parent.this
    elif isinstance(parent, exp.Between | exp.In) and parent.this is not node:
        found = parent.this
    if found is None or not next(iter(found.find_all(exp.Column)), None):
        return None
    return found.unnest() if isinstance(found, exp.Expr) else None


def _type_text(text: str) -> str | None:
    try:
        return str(parse_type(text))
    except DefinitionError:
        return None


def parameter_type(kind: str, constants: Iterable[str]) -> Type:
    """Of a parameter of this class with these constants."""
    if kind != NUMBER:
        return parse_type(kind)
    whole, after = 1, 0
    largest = 0
    for constant in constants:
        head, _, tail = constant.partition(".")
        whole, after = max(whole, len(head)), max(after, len(tail))
        largest = max(largest, int(head))
    if after:
        return decimal(whole + after, after)
    return INTEGER if largest < 2**31 else BIGINT if largest < 2**63 else HUGEINT


Shapeless = tuple[object, ...]
"""What identifies a template: the relation without its constants."""


def relation_template(relation: Relation) -> tuple[Shapeless, tuple[str, ...]]:
    """The template of a relation, and its constants, inputs first."""
    constants: list[str] = []
    return _template(relation, constants), tuple(constants)


def _template(relation: Relation, constants: list[str]) -> Shapeless:
    below = tuple(_template(found, constants) for found in relation.inputs)
    if isinstance(relation, Filter):
        found = template_of(relation.condition.sql, relation.input.fields)
        constants.extend(found.constants)
        return (Filter, found.sql, found.classes, below)
    return (type(relation), *(getattr(relation, name) for name in _own(type(relation))), below)


@cache
def _own(kind: type[Relation]) -> tuple[str, ...]:
    """The fields of a relation that are not its inputs."""
    hints = {field.name: str(field.type) for field in fields(kind)}
    return tuple(name for name, hint in hints.items() if "Relation" not in hint)
