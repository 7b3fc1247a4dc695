"""Relations written by hand, shortly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everview.change.types import BIGINT, BOOLEAN, Type, parse_type
from everview.plan.expressions import Expr, Field, quoted
from everview.plan.relations import (
    Aggregate,
    Call,
    Equality,
    Filter,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    Way,
    project,
)

TABLES: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "orders": (
        ("id",),
        {"id": "BIGINT", "customer": "INTEGER", "amount": "DECIMAL(10,2)", "status": "VARCHAR", "placed": "DATE"},
    ),
    "customers": (("id",), {"id": "INTEGER", "name": "VARCHAR", "region": "VARCHAR"}),
    "a": (("k",), {"k": "BIGINT", "c1": "INTEGER", "c2": "INTEGER"}),
    "b": (("l",), {"l": "BIGINT", "c1": "INTEGER", "d": "INTEGER"}),
    "bt1": (("k",), {"k": "BIGINT", "c1": "INTEGER", "c2": "INTEGER"}),
}


def scan(table: str, alias: str = "", columns: Sequence[str] = ()) -> Scan:
    key, types = TABLES[table]
    kept = columns or tuple(types)
    fields = tuple(Field(name, parse_type(types[name]), name not in key) for name in types if name in kept)
    return Scan(table, alias or table, fields, key)


def expr(sql: str, kind: Type = BIGINT) -> Expr:
    return Expr(sql, kind)


def of(relation: Relation, name: str) -> Expr:
    return Expr(quoted(name), relation.field(name).type)


def where(relation: Relation, condition: str) -> Filter:
    return Filter(relation, Expr(condition, BOOLEAN))


def select(relation: Relation, **columns: str | Expr) -> Project:
    outputs = []
    for name, said in columns.items():
        found = of(relation, said) if isinstance(said, str) else said
        outputs.append((Field(name, found.type), found))
    return project(relation, outputs)


def call(name: str, function: str, argument: Expr | None = None, way: Way = Way.SUM, **said: object) -> Call:
    inside = argument.sql if argument else "*"
    kind = BIGINT if argument is None or function == "count" else argument.type
    return Call(
        Field(name, kind),
        function,
        (argument,) if argument else (),
        sql=f"{function}({inside})",
        way=way,
        **said,  # type: ignore[arg-type]
    )


def grouped(relation: Relation, by: Sequence[str], *calls: Call) -> Aggregate:
    groups = tuple((Field(name, relation.field(name).type), of(relation, name)) for name in by)
    return Aggregate(relation, groups, calls)


def joined(left: Relation, right: Relation, on: Mapping[str, str], kind: JoinKind = JoinKind.INNER) -> Join:
    return Join(kind, left, right, tuple(Equality(of(left, one), of(right, other)) for one, other in on.items()))
