"""A relation evaluated by DuckDB, node by node: each becomes a table made from the tables of its inputs.

This says what a relation means, as plainly as possible, so that what the builder
makes of a query can be compared with the query itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import duckdb

from everview.plan.expressions import Expr, Field, quoted
from everview.plan.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Project,
    QueryRows,
    Reevaluate,
    Relation,
    Scan,
    SetOperation,
    Sort,
    TopK,
    Union,
    Unnest,
    Window,
)


def evaluated(connection: duckdb.DuckDBPyConnection, relation: Relation) -> list[tuple[object, ...]]:
    """What a relation shows, as a bag; on the way every node is checked: its key distinguishes
    its rows, its columns have the types it says, and what cannot be null is not."""
    numbers = count()
    table = _made(connection, relation, numbers)
    names = _names(relation.shown)
    return connection.execute(f"SELECT {names} FROM {table}").fetchall()


def _made(connection: duckdb.DuckDBPyConnection, node: Relation, numbers: count) -> str:
    inputs = [_made(connection, found, numbers) for found in node.inputs]
    table = f"node{next(numbers)}"
    query = _query(node, inputs)
    try:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}")
    except duckdb.Error as error:
        raise AssertionError(f"{node.title} {node.description()}\n{query}\n{error}") from error
    if isinstance(node, Reevaluate) and node.partition:
        _check_partitions(connection, node, inputs, table)
    _check(connection, node, table)
    return table


def _check_partitions(connection: duckdb.DuckDBPyConnection, node: Reevaluate, inputs: list[str], table: str) -> None:
    """Evaluated for each partition alone, the query gives what it gives over everything."""
    rows = {
        row
        for source, parts in zip(inputs, node.partition, strict=True)
        for row in connection.execute(f"SELECT DISTINCT {_texts(parts)} FROM {source}").fetchall()
    }
    found: list[tuple[object, ...]] = []
    for row in rows:
        values = ", ".join("NULL" if value is None else "'" + str(value).replace("'", "''") + "'" for value in row)
        only = [
            f"(SELECT * FROM {source} WHERE ({_texts(parts)},) IS NOT DISTINCT FROM ({values},))"
            for source, parts in zip(inputs, node.partition, strict=True)
        ]
        found += connection.execute(_query(node, only)).fetchall()
    whole = connection.execute(f"SELECT * FROM {table}").fetchall()
    assert sorted(map(repr, found)) == sorted(map(repr, whole)), f"not by {node.partition}: {node.query}"


def _texts(parts: Iterable[Expr]) -> str:
    return ", ".join(f"CAST({part} AS VARCHAR)" for part in parts)


def _check(connection: duckdb.DuckDBPyConnection, node: Relation, table: str) -> None:
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    assert [row[0] for row in described] == [field.name for field in node.fields], f"{node.title} {node.description()}"
    kinds = connection.execute(
        "SELECT " + ", ".join(f"typeof(CAST(NULL AS {field.type}))" for field in node.fields)
    ).fetchone()
    assert kinds is not None
    for row, kind in zip(described, kinds, strict=True):
        assert row[1] == kind, f"{row[0]} is a {row[1]}, not a {kind}, in {node.title} {node.description()}"
    total = _number(connection, f"SELECT count(*) FROM {table}")
    for field in node.fields:
        if not field.nullable:
            nulls = _number(connection, f"SELECT count(*) FROM {table} WHERE {quoted(field.name)} IS NULL")
            assert not nulls, f"{field.name} is null in {node.title} {node.description()}"
    if node.key:
        keys = ", ".join(quoted(name) for name in node.key)
        different = _number(connection, f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {table})")
        assert different == total, f"{node.key} is no key of {node.title} {node.description()}"
    else:
        assert total <= 1, f"{node.title} {node.description()} has {total} rows"


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])


def _query(node: Relation, inputs: list[str]) -> str:
    names = _names(node.fields)
    match node:
        case Scan():
            columns = (f"{quoted(c.name)} AS {quoted(f.name)}" for c, f in zip(node.columns, node.fields, strict=True))
            return f"SELECT {', '.join(columns)} FROM {quoted(node.table)}"
        case QueryRows():
            number = f", row_number() OVER () AS {quoted(node.number.name)}" if node.number else ""
            return f"SELECT *{number} FROM ({node.query}) AS q({_names(node.columns)})"
        case Filter():
            return f"SELECT * FROM {inputs[0]} WHERE {node.condition}"
        case Project():
            return f"SELECT {_defined(node.outputs)} FROM {inputs[0]}"
        case Unnest():
            items = f"SELECT UNNEST({node.items}) AS {quoted(node.item.name)}, GENERATE_SUBSCRIPTS({node.items}, 1)"
            join = "LEFT JOIN" if node.outer else "JOIN"
            return f"SELECT * FROM {inputs[0]} {join} LATERAL ({items} AS {quoted(node.position.name)}) AS item ON true"
        case Join():
            kind = "INNER" if node.kind is JoinKind.INNER else node.kind.value.upper()
            return f"SELECT {names} FROM {inputs[0]} {kind} JOIN {inputs[1]} ON {_condition(node)}"
        case Aggregate():
            sets = node.sets or (tuple(range(len(node.groups))),)
            return " UNION ALL ".join(_grouped(node, one, n, inputs[0]) for n, one in enumerate(sets))
        case Distinct():
            return f"SELECT DISTINCT {names} FROM {inputs[0]}"
        case Window():
            calls = ", ".join(f"{call.sql} AS {quoted(call.field.name)}" for call in node.calls)
            return f"SELECT *, {calls} FROM {inputs[0]}"
        case TopK():
            return f"SELECT * FROM {inputs[0]} QUALIFY {_among_the_first(node)}"
        case Union():
            return " UNION ALL ".join(f"SELECT {_placed(node, n)} FROM {one}" for n, one in enumerate(inputs))
        case SetOperation():
            sides = [f"SELECT {_names(side.shown)} FROM {one}" for side, one in zip(node.inputs, inputs, strict=True)]
            word = f"{node.kind.value.upper()}{' ALL' if node.all else ''}"
            own = _names(node.columns)
            copy = f", row_number() OVER (PARTITION BY {own}) AS {quoted(node.copy.name)}" if node.copy else ""
            return f"SELECT {own}{copy} FROM ({sides[0]} {word} {sides[1]}) AS q({own})"
        case Reevaluate():
            tables = ", ".join(f"in{n} AS (SELECT * FROM {one})" for n, one in enumerate(inputs))
            return f"WITH {tables} SELECT * FROM ({node.query})" if inputs else node.query
    raise AssertionError(f"nothing says what {node.title} gives")


def _names(fields: Iterable[Field]) -> str:
    return ", ".join(quoted(field.name) for field in fields)


def _defined(outputs: Iterable[tuple[Field, Expr]]) -> str:
    return ", ".join(f"{found} AS {quoted(field.name)}" for field, found in outputs)


def _condition(node: Join) -> str:
    parts = [f"({one.left}) {'IS NOT DISTINCT FROM' if one.nulls_match else '='} ({one.right})" for one in node.on]
    return " AND ".join([*parts, *([f"({node.rest})"] if node.rest else [])]) or "true"


def _grouped(node: Aggregate, one: tuple[int, ...], number: int, table: str) -> str:
    columns = [
        f"{found if n in one else f'CAST(NULL AS {field.type})'} AS {quoted(field.name)}"
        for n, (field, found) in enumerate(node.groups)
    ]
    columns += [f"{call.sql} AS {quoted(call.field.name)}" for call in node.calls]
    columns += [f"CAST({number} AS BIGINT) AS {quoted(node.set_number.name)}"] if node.set_number else []
    by = ", ".join(f"({node.groups[n][1]})" for n in one) if one else "GROUPING SETS (())"
    return f"SELECT {', '.join(columns)} FROM {table} GROUP BY {by}"


def _among_the_first(node: TopK) -> str:
    by = f"PARTITION BY {', '.join(map(str, node.partition))} " if node.partition else ""
    settled = _order([*node.order, *(Sort(Expr(quoted(n), node.input.field(n).type)) for n in node.input.key)])
    last = "" if node.limit is None else f" <= {node.offset + node.limit}"
    number = f"ROW_NUMBER() OVER ({by}{settled})"
    if node.ties:
        return f"RANK() OVER ({by}{_order(node.order)}){last or ' > 0'} AND {number} > {node.offset}"
    return f"{number} > {node.offset}" + (f" AND {number}{last}" if last else "")


def _order(order: Iterable[Sort]) -> str:
    parts = [
        f"{one.by}{' DESC' if one.descending else ''} NULLS {'FIRST' if one.nulls_first else 'LAST'}" for one in order
    ]
    return f"ORDER BY {', '.join(parts)}" if parts else ""


def _placed(node: Union, number: int) -> str:
    part = node.parts[number]
    columns = [
        f"{quoted(shown.name)} AS {quoted(column.name)}" for shown, column in zip(part.shown, node.columns, strict=True)
    ]
    columns.append(f"CAST({number} AS BIGINT) AS {quoted(node.branch.name)}")
    keys = node.fields[len(node.columns) + 1 :]
    columns += [
        f"{quoted(name) if name else f'CAST(NULL AS {field.type})'} AS {quoted(field.name)}"
        for field, name in zip(keys, node.places(number), strict=True)
    ]
    return ", ".join(columns)
