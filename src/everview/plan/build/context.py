"""What the builders share: the tables a query may read, the names given, the types, the notices.

A builder that finds no operator for a construct raises :class:`NoOperator`, and
the smallest enclosing query that stands on its own is re-evaluated as a whole.

What a query calls by one name twice, the plan calls apart: ``o``, ``o#2``, … (:class:`FreeNames`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from everview.change.schema import Column
from everview.change.types import BOOLEAN, Type
from everview.errors import SqlRefusedError, SqlTypeError
from everview.plan.expressions import Definition, Expr, Field, of_field, parsed, written
from everview.plan.relations import Relation, project
from everview.sql.copies import copied
from everview.sql.options import ROUNDS
from everview.sql.positions import START, position_of
from everview.sql.typer import Described, Failure


class FreeNames:
    """The names given so far, upper and lower case alike."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """The wanted name for a field, or the first of its kind that is free."""
        return self._free(wanted, "")

    def source(self, wanted: str, columns: Iterable[str] = ()) -> str:
        """A free name for what stands in a FROM. Its columns, where they are given, are the fields
        ``source.column``, which are given too."""
        columns = list(columns)
        name = self._free(wanted, ".")
        while any(f"{name}.{column}".lower() in self._given for column in columns):
            name = self._free(wanted, ".")
        self._given |= {f"{name}.{column}".lower() for column in columns}
        return name

    def _free(self, wanted: str, end: str) -> str:
        """Names of sources are kept with a dot at their end: they are apart from those of fields."""
        name, number = wanted, 1
        while f"{name}{end}".lower() in self._given:
            number += 1
            name = f"{wanted}#{number}"
        self._given.add(f"{name}{end}".lower())
        return name

    def mark(self) -> frozenset[str]:
        return frozenset(self._given)

    def back_to(self, mark: frozenset[str]) -> None:
        """Forget the names given since."""
        self._given = set(mark)


Inputs = Mapping[str, Sequence[tuple[str, Type]]]


class QueryTyper(Protocol):
    """DuckDB's types of a query over inputs."""

    def attempt(self, sql: str, inputs: Inputs) -> Described | Failure: ...


class SourceTable(Protocol):
    """A table or view that a query reads."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def columns(self) -> tuple[Column, ...]: ...
    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def bag(self) -> bool: ...


@dataclass(frozen=True)
class Notice:
    """What a view costs more than its reader may think, and where in the text the reason stands."""

    construct: str
    line: int
    column: int
    cost: str

    def __str__(self) -> str:
        return f"{self.construct} at line {self.line}, column {self.column}: {self.cost}"


class NoOperator(SqlRefusedError):
    """A construct that no operator maintains. What around it can be evaluated again, is."""

    def __init__(self, construct: str, node: exp.Expr | None = None) -> None:
        super().__init__(construct)
        self.construct = construct
        self.node = node
        """None: the query in which it was met."""


class UntypedPart(SqlTypeError):
    """DuckDB refuses a part of the query by itself, although it takes the query."""


@dataclass(frozen=True)
class Around:
    """The rows around a subquery, as an input of it."""

    relation: Relation
    fields: Mapping[str, str]
    """What the fields are called in the subquery, and what around it: the key, and what is read."""


@dataclass
class BuildContext:
    """Shared by all builders of one query."""

    typer: QueryTyper
    sources: Mapping[str, SourceTable]
    """By name in lower case."""
    text: str = ""
    rounds: int = ROUNDS
    """After how many a recursive query is given up."""
    names: FreeNames = field(default_factory=FreeNames)
    notices: list[Notice] = field(default_factory=list)
    named: dict[str, exp.Expr] = field(default_factory=dict)
    """WITH queries in sight, by name in lower case."""
    around: dict[str, Around] = field(default_factory=dict)
    """Rows around subqueries that these read, by the name they have there."""

    def described(self, sql: str, inputs: Inputs) -> tuple[tuple[str, Type], ...]:
        """The columns of a query over inputs. Values that no table can hold have no operator."""
        found = self.typer.attempt(sql, inputs)
        if isinstance(found, Failure):
            raise UntypedPart("a part of the query cannot be evaluated by itself", detail=f"{found.message}\n{sql}")
        try:
            return found.typed()
        except SqlTypeError:
            raise NoOperator("a query with values that no table can hold") from None

    def typed(self, texts: Iterable[str], *relations: Relation) -> list[Expr]:
        """Expressions over the fields of the relations, with their types."""
        there = {name: found for relation in relations for name, found in relation.by_name.items()}
        kinds: dict[str, Type] = {}
        unknown: list[str] = []
        wanted = list(texts)
        for text in wanted:
            kind = _plain_type(parsed(text), there)
            if kind is not None:
                kinds[text] = kind
            elif text not in unknown:
                unknown.append(text)
        if unknown:
            read = sorted(
                {column.name for text in unknown for column in parsed(text).find_all(exp.Column)} & there.keys()
            )
            inputs = {"in0": [(name, there[name].type) for name in read]} if read else {}
            origin = " FROM in0" if read else ""
            parts = ", ".join(f"{text} AS c{number}" for number, text in enumerate(unknown))
            found = self.described(f"SELECT {parts}{origin}", inputs)
            kinds.update({text: kind for text, (_, kind) in zip(unknown, found, strict=True)})
        return [Expr(text, kinds[text]) for text in wanted]

    def expression(self, text: str, *relations: Relation) -> Expr:
        return self.typed([text], *relations)[0]

    def condition(self, tree: exp.Expr, *relations: Relation) -> Expr:
        """A condition over the fields of the relations: what is no BOOLEAN is cast to one, as DuckDB does it."""
        holder = exp.Paren(this=copied(tree))
        for leaf in list(_leaves(holder.this)):
            if self.expression(text_of(leaf), *relations).type != BOOLEAN:
                leaf.replace(exp.cast(copied(leaf), "BOOLEAN"))
        return Expr(text_of(holder.this), BOOLEAN)

    def extended(self, relation: Relation, added: Sequence[Definition]) -> Relation:
        """The relation with further fields."""
        return project(relation, [*((found, of_field(found)) for found in relation.fields), *added])

    def noticed(self, why: NoOperator, cost: str) -> None:
        at = (position_of(why.node, self.text) if why.node is not None else None) or START
        self.notices.append(Notice(why.construct, at.line, at.column, cost))


def _plain_type(tree: exp.Expr, there: Mapping[str, Field]) -> Type | None:
    tree = tree.unnest()
    if isinstance(tree, exp.Column) and not tree.table:
        found = there.get(tree.name)
        return found.type if found else None
    if isinstance(tree, exp.Predicate | exp.Connector | exp.Not | exp.Boolean):
        return BOOLEAN
    return None


def _leaves(tree: exp.Expr) -> Iterator[exp.Expr]:
    """What AND, OR and NOT connect: rules take conditions apart there."""
    if isinstance(tree, exp.And | exp.Or | exp.Not | exp.Paren):
        for part in tree.iter_expressions():
            yield from _leaves(part)
    else:
        yield tree


def field_column(name: str, column: exp.Column | None = None) -> exp.Column:
    """A field as a node of a tree; it takes the position in the text of the column that it stands for."""
    identifier = exp.to_identifier(name, quoted=True)
    if column is not None:
        identifier.meta.update((column.args.get("table") or column.this).meta)
    return exp.column(identifier)


def nullable(expression: Expr, *relations: Relation) -> bool:
    """Whether an expression may be null, as far as its form shows."""
    name = expression.field
    if name is not None:
        return any(relation.by_name[name].nullable for relation in relations if name in relation.by_name)
    return not isinstance(parsed(expression.sql), exp.Literal | exp.Boolean)


def text_of(tree: exp.Expr) -> str:
    """The text of a tree over fields."""
    return written(tree)
