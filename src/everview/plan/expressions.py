"""Expressions: DuckDB's SQL over the fields of a relation.

Everview evaluates nothing itself, so an expression is a text that DuckDB will
run, with the fields it reads and the type it has.

Fields are quoted identifiers in the text, whatever dots they contain: ``"o.amount" * 2``.
Two expressions are the same if their texts are; texts come out of sqlglot's generator, so
spelling and white space do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp

from everview.change.types import BOOLEAN, Type
from everview.sql.copies import copied
from everview.sql.own_dialect import Everview


@dataclass(frozen=True)
class Field:
    """A named, typed column of a relation. A hidden one is not shown to the reader: it is there
    because the rows' key needs it."""

    name: str
    type: Type
    nullable: bool = True
    hidden: bool = False

    def __str__(self) -> str:
        return f"({self.name})" if self.hidden else self.name


@dataclass(frozen=True)
class Expr:
    """An expression with its type."""

    sql: str
    type: Type

    @property
    def fields(self) -> frozenset[str]:
        """The fields it reads."""
        return fields_of(self.sql)

    @property
    def field(self) -> str | None:
        """The field it is, if it is nothing but a field."""
        return _plain_field(self.sql)

    def renamed(self, names: Mapping[str, str]) -> Expr:
        """The same over fields of other names."""
        return Expr(replaced(self.sql, {old: quoted(new) for old, new in names.items()}), self.type)

    def over(self, definitions: Mapping[str, Expr]) -> Expr:
        """The same with fields replaced by what they are defined as."""
        return Expr(replaced(self.sql, {name: found.sql for name, found in definitions.items()}), self.type)

    def __str__(self) -> str:
        return self.sql


def of_field(field: Field) -> Expr:
    return Expr(quoted(field.name), field.type)


def quoted(name: str) -> str:
    """A name as SQL writes it, in quotes."""
    return '"' + name.replace('"', '""') + '"'


@lru_cache(maxsize=65_536)
def parsed(sql: str) -> exp.Expr:
    """The tree of an expression's text. Shared: copy before changing it."""
    return sqlglot.parse_one(sql, dialect=Everview)


@lru_cache(maxsize=65_536)
def fields_of(sql: str) -> frozenset[str]:
    return frozenset(column.name for column in parsed(sql).find_all(exp.Column))


@lru_cache(maxsize=65_536)
def _plain_field(sql: str) -> str | None:
    tree = parsed(sql)
    return tree.name if isinstance(tree, exp.Column) else None


def replaced(sql: str, texts: Mapping[str, str]) -> str:
    """The text with fields replaced by other texts."""
    if not fields_of(sql) & texts.keys():
        return sql

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in texts:
            found = copied(parsed(texts[node.name]))
            return exp.Paren(this=found) if _needs_parentheses(found, node.parent) else found
        return node

    return written(copied(parsed(sql)).transform(change, copy=False))


def _needs_parentheses(tree: exp.Expr, parent: exp.Expr | None) -> bool:
    """Parentheses only where they are needed: two ways to one expression give one text."""
    if parent is None or isinstance(parent, exp.Paren | exp.Alias):
        return False
    closed = isinstance(tree, exp.Column | exp.Literal | exp.Paren | exp.Boolean | exp.Null) or _is_call(tree)
    return not (closed or _is_call(parent))


def _is_call(tree: exp.Expr) -> bool:
    """Whether it is written as a function with its arguments in parentheses."""
    return isinstance(tree, exp.Cast | exp.AggFunc | exp.Anonymous | exp.Coalesce | exp.Case)


def written(tree: exp.Expr) -> str:
    """The one text of a tree."""
    return copied(tree).sql(dialect=Everview, identify=True, comments=False, copy=False)


@lru_cache(maxsize=65_536)
def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a condition that must all hold, in their order."""
    return tuple(Expr(written(part), BOOLEAN) for part in conjuncts_of(parsed(condition.sql)))


def conjuncts_of(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a tree that must all hold."""
    found = tree.unnest()
    if isinstance(found, exp.And):
        yield from conjuncts_of(found.this)
        yield from conjuncts_of(found.expression)
    else:
        yield found


def operand(tree: exp.Expr) -> exp.Expr:
    """A tree as one side of a comparison: in parentheses where it would be read otherwise."""
    loose = isinstance(tree, exp.Connector | exp.Predicate | exp.Not | exp.Lambda)
    return exp.Paren(this=copied(tree)) if loose else copied(tree)


def conjunction(parts: Iterable[Expr]) -> Expr | None:
    """One condition out of several, each once; None where there is none. The order stays: a part
    may guard a later one that fails on other rows."""
    texts = list(dict.fromkeys(part.sql for part in parts))
    if len(texts) < 2:
        return Expr(texts[0], BOOLEAN) if texts else None
    return Expr(written(exp.and_(*(parsed(text) for text in texts), copy=True)), BOOLEAN)


Definition = tuple[Field, Expr]
"""A field and what it is computed as."""

Rename = Callable[[str], str]
