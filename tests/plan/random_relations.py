"""Random relations over two small tables, with everything that rules move things through."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import duckdb

from everview.change.types import BIGINT, BOOLEAN, INTEGER, list_of
from everview.plan.expressions import Definition, Expr, Field, of_field, quoted
from everview.plan.relations import (
    Aggregate,
    Call,
    Distinct,
    Equality,
    Filter,
    Join,
    JoinKind,
    Relation,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    TopK,
    Union,
    Unnest,
    Way,
    Window,
    full_join,
    project,
)

T = TypeVar("T")

TABLES = {"t": ("id", "a", "b"), "u": ("id", "a", "c")}


def scan(table: str, alias: str) -> Scan:
    columns = tuple(Field(name, INTEGER, nullable=name != "id") for name in TABLES[table])
    return Scan(table, alias, columns, ("id",))


def fill(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    """Both tables with a few rows of small numbers and nulls."""
    source = random.Random(seed)
    for table, names in TABLES.items():
        connection.execute(f"CREATE OR REPLACE TABLE {table} ({', '.join(f'{name} INTEGER' for name in names)})")
        rows = [[n, *(source.choice([None, 0, 1, 2]) for _ in names[1:])] for n in range(source.randrange(6))]
        if rows:
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in names)})", rows)


class Trees:
    """Makes trees out of choices. ``choose(n)`` gives a number below n."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self._count = 0

    def tree(self) -> Relation:
        """A relation with a projection at its root, as a query has."""
        shapes = (self._joins, self._relation)
        return self._project(self._pick(shapes)(2 + self.choose(3)))

    def _joins(self, depth: int) -> Relation:
        """FROM, WHERE and perhaps GROUP BY."""
        found = self._relation(0)
        for _ in range(depth - 1):
            found = self._join(found, self._relation(self.choose(2)))
        found = self._filter(found)
        return self._aggregate(found) if self.choose(2) else found

    def _pick(self, items: Sequence[T]) -> T:
        return items[self.choose(len(items))]

    def _new(self, name: str) -> str:
        self._count += 1
        return f"{name}{self._count}"

    def _relation(self, depth: int) -> Relation:
        if depth <= 0:
            table = self._pick(list(TABLES))
            return scan(table, self._new(table))
        alone = [self._filter, self._filter, self._project, self._aggregate, self._distinct]
        alone += [self._window, self._top, self._unnest]
        paired = [self._join, self._join, self._join, self._union, self._set]
        number = self.choose(len(alone) + len(paired))
        if number < len(alone):
            return alone[number](self._relation(depth - 1))
        left, right = self._relation(depth - 1), self._relation(self.choose(depth))
        return paired[number - len(alone)](left, right)

    # ------------------------------------------------------------ expressions

    def _numbers(self, *inputs: Relation) -> list[Field]:
        """Fields that are read by name: shown ones, as in SQL."""
        return [field for found in inputs for field in found.shown if field.type in (INTEGER, BIGINT)]

    def _value(self, fields: Sequence[Field]) -> str:
        if not fields:
            return "1"
        name = quoted(self._pick(fields).name)
        forms = [name, name, name, f"{name} + 1", f"COALESCE({name}, 0)", f"-{name}", str(self.choose(3))]
        return self._pick(forms)

    def condition(self, fields: Sequence[Field], depth: int = 2) -> str:
        one, other, small = self._value(fields), self._value(fields), self.choose(3)
        forms = [
            f"{one} = {other}",
            f"{one} < {other}",
            f"{one} = {small}",
            f"{one} >= {small}",
            f"{one} IS NULL",
            f"{one} IS NOT NULL",
            f"{one} IN (0, {small})",
            f"{one} IS NOT DISTINCT FROM {other}",
            f"{one} BETWEEN 0 AND {small}",
            f"{small} = 1",
            self._pick(["TRUE", "FALSE", "NULL"]),
        ]
        if depth:
            left, right = self.condition(fields, depth - 1), self.condition(fields, depth - 1)
            forms += [f"({left}) AND ({right})", f"({left}) AND ({right})", f"({left}) OR ({right})", f"NOT ({left})"]
        return self._pick(forms)

    def _expression(self, fields: Sequence[Field]) -> Expr:
        """Of type BIGINT whatever its parts are."""
        return Expr(f"CAST({self._value(fields)} AS BIGINT)", BIGINT)

    # ------------------------------------------------------------ one input

    def _filter(self, input: Relation) -> Relation:
        return Filter(input, Expr(self.condition(self._numbers(input)), BOOLEAN))

    def _outputs(self, input: Relation, count: int) -> list[Definition]:
        fields = self._numbers(input)
        found: list[Definition] = []
        for _ in range(count):
            field = self._pick(fields) if fields else None
            if field is not None and self.choose(2):
                name = self._pick([field.name, self._new("p")])
                name = name if all(name != there.name for there, _ in found) else self._new("p")
                found.append((replace(field, name=name), of_field(field)))
            else:
                found.append((Field(self._new("p"), BIGINT), self._expression(fields)))
        return found

    def _project(self, input: Relation) -> Relation:
        return project(input, self._outputs(input, 1 + self.choose(3)))

    def _two_columns(self, input: Relation) -> Relation:
        fields = self._numbers(input)
        return project(input, [(Field(self._new("c"), BIGINT), self._expression(fields)) for _ in range(2)])

    def _aggregate(self, input: Relation) -> Relation:
        fields = self._numbers(input)
        groups = tuple((Field(self._new("g"), BIGINT), self._expression(fields)) for _ in range(self.choose(3)))
        calls = [Call(Field(self._new("n"), BIGINT, nullable=False), "count", sql="COUNT(*)", way=Way.SUM)]
        if fields:
            read = of_field(self._pick(fields))
            calls.append(Call(Field(self._new("m"), read.type), "max", (read,), sql=f"MAX({read})", way=Way.EXTREME))
        if len(groups) == 2 and self.choose(2):
            sets = self._pick([((0, 1), (0,)), ((0, 1), (0,), ()), ((0,), (1,))])
            return Aggregate(input, groups, tuple(calls), sets, Field(self._new("set"), BIGINT, hidden=True))
        return Aggregate(input, groups, tuple(calls))

    def _distinct(self, input: Relation) -> Relation:
        return Distinct(self._two_columns(input) if self.choose(2) else input)

    def _window(self, input: Relation) -> Relation:
        fields = self._numbers(input)
        partition = tuple(dict.fromkeys(self._partition(fields) for _ in range(self.choose(3))))
        order = tuple(Sort(of_field(input.field(name))) for name in input.key)
        by = f"PARTITION BY {', '.join(found.sql for found in partition)} " if partition else ""
        by += f"ORDER BY {', '.join(str(sort) for sort in order)}" if order else ""
        calls = [Call(Field(self._new("w"), BIGINT), "row_number", order=order, sql=f"ROW_NUMBER() OVER ({by})")]
        if fields:
            read = of_field(self._pick(fields))
            whole = f"PARTITION BY {', '.join(found.sql for found in partition)}" if partition else ""
            calls.append(Call(Field(self._new("w"), read.type), "max", (read,), sql=f"MAX({read}) OVER ({whole})"))
        return Window(input, partition, tuple(calls))

    def _partition(self, fields: Sequence[Field]) -> Expr:
        if not fields:
            return Expr("CAST(1 AS BIGINT)", BIGINT)
        return of_field(self._pick(fields)) if self.choose(3) else self._expression(fields)

    def _top(self, input: Relation) -> Relation:
        fields = self._numbers(input)
        partition = tuple(self._partition(fields) for _ in range(self.choose(2)))
        order = (Sort(of_field(self._pick(fields)), descending=bool(self.choose(2))),) if fields else ()
        return TopK(input, partition, order, 1 + self.choose(3), offset=self.choose(2), ties=not self.choose(4))

    def _unnest(self, input: Relation) -> Relation:
        items = Expr(f"[{self._expression(self._numbers(input))}, 1][:{self.choose(3)}]", list_of(BIGINT))
        item, position = Field(self._new("item"), BIGINT), Field(self._new("at"), BIGINT, hidden=True)
        return Unnest(input, items, item, position, outer=bool(self.choose(2)))

    # ------------------------------------------------------------ two inputs

    def _join(self, left: Relation, right: Relation) -> Relation:
        if left.by_name.keys() & right.by_name.keys():
            right = project(right, [(replace(field, name=self._new("r")), of_field(field)) for field in right.fields])
        ours, theirs = self._numbers(left), self._numbers(right)
        on: list[Equality] = []
        for _ in range(self.choose(3)):
            sides = [self._pick(fields) if fields else None for fields in (ours, theirs)]
            if sides[0] is not None and sides[1] is not None and sides[0].type == sides[1].type:
                on.append(Equality(of_field(sides[0]), of_field(sides[1]), nulls_match=not self.choose(4)))
        rest = Expr(self.condition(ours + theirs), BOOLEAN) if not self.choose(3) else None
        kinds = [JoinKind.INNER] * 4 + [JoinKind.LEFT] * 2 + list(JoinKind)[2:]
        kind = self._pick(kinds)
        if kind is JoinKind.FULL:
            return full_join(left, right, on, rest, self._new("side"))
        return Join(kind, left, right, tuple(on), rest)

    def _union(self, left: Relation, right: Relation) -> Relation:
        parts = self._two_columns(left), self._two_columns(right)
        inner = self._over(parts)
        if self.choose(2):
            return inner
        return self._over((inner, self._two_columns(scan("t", self._new("t")))))

    def _over(self, parts: tuple[Relation, ...]) -> Union:
        columns = tuple(Field(self._new("c"), BIGINT) for _ in range(2))
        return Union(parts, columns, Field(self._new("branch"), BIGINT, nullable=False, hidden=True))

    def _set(self, left: Relation, right: Relation) -> Relation:
        columns = tuple(Field(self._new("c"), BIGINT) for _ in range(2))
        copy = Field(self._new("copy"), BIGINT, nullable=False, hidden=True) if self.choose(2) else None
        kind = self._pick(list(SetKind))
        if copy is not None and kind is SetKind.UNION:
            copy = None
        sides = self._two_columns(left), self._two_columns(right)
        return SetOperation(kind, copy is not None, *sides, columns, copy)
