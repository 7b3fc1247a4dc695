"""A maintenance plan evaluated by DuckDB, step by step, over whole tables instead of changes.

A step whose changes add up to what this makes of its inputs is right, so the views
of a plan are compared with their queries, and on the way every row carries the place where the
plan says it is.

Places are what zones are about. A row is where its table's key says until it is redistributed,
and then where the values of the new row key say. Two things must hold: all rows, of today and of
another day, that belong to one key of a state are in one place; and the rows that a join pairs
are in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from everview.plan.expressions import quoted
from everview.plan.maintenance import Input, MaintenancePlan, Step
from everview.plan.maintenance.column_names import filled
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    ComputingOperator,
    DeltaOperator,
    DistinctOperator,
    ExpandOperator,
    ExtremeOperator,
    FilterProjectOperator,
    GroupReevaluationOperator,
    JoinOperator,
    KeyedRowsOperator,
    PreAggregationOperator,
    ReevaluationOperator,
    RowsOperator,
    SetOperator,
    TopKOperator,
    UnionOperator,
    UnnestOperator,
    WindowOperator,
    WrittenRowsOperator,
)
from everview.plan.maintenance.operator_parts import AssembledCall

PLACE = "__place"
Where = dict[tuple[str, tuple[str, ...]], dict[tuple[object, ...], object]]
"""For each state, and each key in it, the place where it is kept."""


@dataclass
class Evaluation:
    """A plan over the tables of a connection. ``places`` outlives the connection, so that places on
    several days are compared."""

    plan: MaintenancePlan
    connection: duckdb.DuckDBPyConnection
    places: Where = field(default_factory=dict)
    made: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)

    def view(self, name: str) -> list[tuple[object, ...]]:
        """What a view shows."""
        view = self.plan.view(name)
        table = self._table(view.step, view.constants)
        shown = ", ".join(f"{quoted(one.stored)} AS {quoted(one.name)}" for one in view.columns)
        described = self.connection.execute(f"DESCRIBE SELECT {shown} FROM {table}").fetchall()
        wanted = self.connection.execute(
            "SELECT " + ", ".join(f"typeof(CAST(NULL AS {one.type}))" for one in view.columns)
        ).fetchone()
        assert tuple(row[1] for row in described) == wanted
        return self.connection.execute(f"SELECT {shown} FROM {table}").fetchall()

    def _table(self, fingerprint: str, constants: tuple[str, ...]) -> str:
        known = self.made.get((fingerprint, constants))
        if known is not None:
            return known
        step = self.plan.step(fingerprint)
        inputs: list[str] = []
        at = 0
        for one in step.inputs:
            source = self.plan.step(one.step)
            count = len(source.constants.types) if source.constants else 0
            inputs.append(self._moved(one, self._table(one.step, constants[at : at + count])))
            at += count
        table = f"step{len(self.made)}"
        sources = [self.plan.step(one.step) for one in step.inputs]
        operator = step.operator
        split = isinstance(operator, ReevaluationOperator) and any(one.key for one in operator.inputs)
        query = self._apart(step, inputs) if split else _query(step, sources, inputs)
        query = filled(query, constants)
        try:
            self.connection.execute(f"CREATE TEMP TABLE {table} AS {query}")
        except duckdb.Error as error:
            raise AssertionError(f"{step.operator.name} {step.title}\n{query}\n{error}") from error
        self._check(step, inputs, table, constants)
        self.made[fingerprint, constants] = table
        return table

    def _apart(self, step: Step, inputs: Sequence[str]) -> str:
        """A re-evaluation that is split, place by place: what each makes of the rows that it has."""
        there = " UNION ".join(f"SELECT {PLACE} FROM {table}" for table in inputs)
        places = [_literal(place) for (place,) in self.connection.execute(there).fetchall()]
        return " UNION ALL ".join(
            _evaluated(step, [f"(FROM {table} WHERE {PLACE} = {place})" for table in inputs], place)
            for place in places or [_literal([])]
        )

    def _moved(self, source: Input, table: str) -> str:
        if source.key is None:
            return table
        return f"(SELECT * REPLACE ({_place(source.key)} AS {PLACE}) FROM {table})"

    def _check(self, step: Step, inputs: Sequence[str], table: str, constants: tuple[str, ...]) -> None:
        columns = {row[0] for row in self.connection.execute(f"DESCRIBE {table}").fetchall()}
        assert {one.name for one in step.fields} <= columns, f"{step.operator.name} {step.title}"
        keys = _keys(step)
        if keys is None:
            return
        for source, key in zip(inputs, keys, strict=True):
            held = ", ".join(f"CAST({sql} AS VARCHAR)" for sql in key)
            rows = self.connection.execute(
                f"SELECT DISTINCT {PLACE}, {held or 'NULL'} FROM {source} WHERE {PLACE} IS NOT NULL"
            ).fetchall()
            known = self.places.setdefault((step.fingerprint, constants), {})
            for place, *values in rows:
                found = known.setdefault(tuple(values), place)
                assert found == place, f"{step.operator.name} {step.title}: {values} at {found} and at {place}"


def _keys(step: Step) -> list[Sequence[str]] | None:
    """For each input, the key under which the step keeps its rows, or must meet them."""
    match step.operator:
        case PreAggregationOperator(key=key) | ExtremeOperator(key=key) | KeyedRowsOperator(key=key):
            return [key]
        case DistinctOperator(row=row):
            return [row]
        case SetOperator(inputs=inputs):
            return list(inputs)
        case WrittenRowsOperator(columns=columns, key=key):
            stored = {column.name: column.sql for column in columns}
            return [[stored[name] for name in key]]
        case JoinOperator(on=on):
            return [[f"__k{n}" for n, _ in enumerate(on)]] * 2
        case ReevaluationOperator(inputs=read):
            return [[f"__k{n}" for n, _ in enumerate(one.key)] for one in read]
        case AggregateOperator(key=key):
            return [list(map(quoted, key))] * len(step.inputs)
    return None


def _place(key: Sequence[str]) -> str:
    return f"[{', '.join(f'CAST({sql} AS VARCHAR)' for sql in key)}]::VARCHAR[]"


def _columns(step: Step) -> str:
    """What a step passes on and computes."""
    operator = step.operator
    computed = {one.name: one.sql for one in operator.computed} if isinstance(operator, ComputingOperator) else {}
    return ", ".join(
        [f"{computed.get(one.name, quoted(one.name))} AS {quoted(one.name)}" for one in step.fields] + [PLACE]
    )


def _query(step: Step, sources: Sequence[Step], inputs: Sequence[str]) -> str:
    operator = step.operator
    match operator:
        case DeltaOperator(table=table):
            columns = [f"{quoted(one.column)} AS {quoted(one.name)}" for one in operator.columns]
            real = {one.name: one.column for one in operator.columns}
            by = [quoted(real[name]) for name in operator.key]
            place = _place([f"'{table}'", *by])
            return f"SELECT {', '.join(columns)}, {place} AS {PLACE} FROM {quoted(table)}"
        case RowsOperator(query=query):
            names = [one.name for one in step.fields if one.name != "rows.number"]
            names.sort(key=lambda name: int(name.partition(".")[2]))
            own = ", ".join(map(quoted, names))
            number = 'row_number() OVER () AS "rows.number"'
            return f"SELECT *, {_place(['0'])} AS {PLACE}, {number} FROM ({query}) AS q({own})"
        case FilterProjectOperator(condition=condition):
            where = f" WHERE {condition}" if condition is not None else ""
            return f"SELECT {_columns(step)} FROM {inputs[0]}{where}"
        case KeyedRowsOperator(key=key):
            keys = "".join(f", {sql} AS __k{n}" for n, sql in enumerate(key))
            order = "".join(f", {one.sql} AS __o{n}" for n, one in enumerate(operator.order or ()))
            return f"SELECT {_columns(step)}{keys}{order} FROM {inputs[0]}"
        case UnnestOperator(items=items):
            item, position = quoted(operator.item), quoted(operator.position)
            made = f"SELECT UNNEST({items}) AS {item}, GENERATE_SUBSCRIPTS({items}, 1) AS {position}"
            join = "LEFT JOIN" if operator.outer else "JOIN"
            return f"SELECT {_columns(step)} FROM {inputs[0]} {join} LATERAL ({made}) AS item ON true"
        case UnionOperator():
            parts = [
                f"SELECT {', '.join([*sent, PLACE])} FROM {table}"
                for sent, table in zip(operator.inputs, inputs, strict=True)
            ]
            own = ", ".join([*map(quoted, operator.columns), PLACE])
            return f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS q({own})"
        case SetOperator():
            return _set(operator, inputs)
        case ExpandOperator(sets=sets):
            return " UNION ALL ".join(_expanded(step, number, inputs[0]) for number, _ in enumerate(sets))
        case DistinctOperator(row=row):
            return f"SELECT DISTINCT ON ({', '.join(row)}) {_columns(step)} FROM {inputs[0]}"
        case JoinOperator():
            return _join(step, sources, inputs)
        case TopKOperator():
            return _top(step, sources[0], inputs[0])
        case WindowOperator():
            calls = {call.name: call.sql for call in operator.calls}
            return (
                "SELECT "
                + ", ".join(
                    [f"{calls.get(one.name, quoted(one.name))} AS {quoted(one.name)}" for one in step.fields] + [PLACE]
                )
                + f" FROM {inputs[0]}"
            )
        case ReevaluationOperator():
            return _evaluated(step, inputs, _literal([]))
        case WrittenRowsOperator():
            return f"SELECT {_columns(step)} FROM {inputs[0]}"
    return _grouped(step, inputs)


def _evaluated(step: Step, inputs: Sequence[str], place: str) -> str:
    operator = step.operator_as(ReevaluationOperator)
    tables = [
        f"in{n} AS (SELECT {', '.join(f'{quoted(c.stored)} AS {quoted(c.name)}' for c in read.columns)} FROM {table})"
        for n, (read, table) in enumerate(zip(operator.inputs, inputs, strict=True))
    ]
    own = ", ".join(map(quoted, operator.columns))
    query = f"WITH {', '.join(tables)} SELECT * FROM ({operator.query})" if tables else operator.query
    return f"SELECT *, {place} AS {PLACE} FROM ({query}) AS q({own})"


def _literal(place: Sequence[str | None]) -> str:
    return _place([f"'{value}'" if value is not None else "NULL" for value in place])


def _grouped(step: Step, inputs: Sequence[str]) -> str:
    match step.operator:
        case PreAggregationOperator(key=key, key_names=names) as operator:
            calls = [
                f"{_call(one.function, one.argument, one.filter)} AS {quoted(one.name)}"
                for one in operator.accumulators
            ]
        case ExtremeOperator(key=key, key_names=names) as operator:
            calls = [
                f"{_call(end.function, operator.value, operator.filter)} AS {quoted(end.name)}" for end in operator.ends
            ]
        case GroupReevaluationOperator(key_names=names) as operator:
            key = tuple(f"__k{n}" for n, _ in enumerate(operator.key))
            calls = [f"{call.sql} AS {quoted(call.name)}" for call in operator.calls]
        case AggregateOperator():
            return _together(step, inputs)
        case _:
            raise AssertionError(f"no query for {step.operator}")
    columns = [f"{sql} AS {quoted(name)}" for sql, name in zip(key, names, strict=True)]
    by = f" GROUP BY {', '.join(key)}" if key else ""
    return f"SELECT {', '.join([*columns, *calls, f'any_value({PLACE}) AS {PLACE}'])} FROM {inputs[0]}{by}"


def _call(function: str, argument: str | None, where: str | None) -> str:
    return f"{function}({argument or '*'})" + (f" FILTER (WHERE {where})" if where else "")


def _together(step: Step, inputs: Sequence[str]) -> str:
    operator = step.operator_as(AggregateOperator)
    key = list(map(quoted, operator.key))
    groups = f"SELECT {', '.join([*key, PLACE])} FROM {inputs[operator.groups]}"
    if key:
        there = [", ".join([*values, "NULL"]) for values in operator.always]
        more = "".join(f" UNION ALL SELECT {row}" for row in there)
        groups = f"SELECT {', '.join([*key, f'any_value({PLACE}) AS {PLACE}'])} FROM ({groups}{more}) GROUP BY ALL"
    kinds = {one.name: one.type for one in step.fields}
    calls = [f"CAST({_made(call)} AS {kinds[call.name]}) AS {quoted(call.name)}" for call in operator.calls]
    parts = "".join(
        f" LEFT JOIN {table} AS p{n} ON "
        + (" AND ".join(f"g.{k} IS NOT DISTINCT FROM p{n}.{k}" for k in key) or "true")
        for n, table in enumerate(inputs)
    )
    own = [f"g.{name}" for name in (*key, PLACE)]
    return f"SELECT {', '.join([*own, *calls])} FROM ({groups}) AS g{parts}"


def _made(call: AssembledCall) -> str:
    columns = [f"p{one.part}.{quoted(one.column)}" for one in call.columns]
    if call.function == "count" and len(columns) == 1:
        return f"coalesce({columns[0]}, 0)"
    if len(columns) == 1:
        return columns[0]
    total, count = columns
    value = f"{total}::DOUBLE / {count}" if call.function == "avg" else total
    return f"CASE WHEN {count} > 0 THEN {value} END"


def _top(step: Step, bag: Step, table: str) -> str:
    operator, kept = step.operator_as(TopKOperator), bag.operator_as(KeyedRowsOperator)
    by = ", ".join(f"__k{n}" for n, _ in enumerate(kept.key))
    order = [f"__o{n}{' DESC' if one.descending else ''}" for n, one in enumerate(kept.order or ())]
    split = f"PARTITION BY {by} " if by else ""
    number = f"row_number() OVER ({split}ORDER BY {', '.join(order) or '1'})"
    last = "" if operator.limit is None else f"<= {operator.offset + operator.limit}"
    asked = [f"{number} > {operator.offset}"]
    if last and operator.ties is None:
        asked.append(f"{number} {last}")
    elif last:
        asked.append(f"rank() OVER ({split}ORDER BY {', '.join(order[: operator.ties]) or '1'}) {last}")
    return f"SELECT {_columns(step)} FROM {table} QUALIFY {' AND '.join(asked)}"


def _join(step: Step, sides: Sequence[Step], inputs: Sequence[str]) -> str:
    operator = step.operator_as(JoinOperator)
    kind, rest = operator.kind.value, operator.rest
    ties = [
        f"l.__k{n} {'IS NOT DISTINCT FROM' if one.nulls_match else '='} r.__k{n}" for n, one in enumerate(operator.on)
    ]
    own = [f"__k{n}" for n, _ in enumerate(operator.on)]
    renamed = [f"{quoted(one.name)} AS {quoted(operator.right_prefix + one.name)}" for one in sides[1].fields]
    right = f"(SELECT {', '.join([*renamed, *own, PLACE])} FROM {inputs[1]}) AS r"
    on = " AND ".join([*ties, *([f"({rest})"] if rest else [])]) or "true"
    names = [quoted(one.name) for one in step.fields]
    place = f"l.{PLACE}" if kind in ("semi", "anti") else f"coalesce(l.{PLACE}, r.{PLACE})"
    return f"SELECT {', '.join([*names, place])} AS {PLACE} FROM {inputs[0]} AS l {kind} JOIN {right} ON {on}"


def _set(operator: SetOperator, inputs: Sequence[str]) -> str:
    sides = [f"SELECT {', '.join(sent)} FROM {table}" for sent, table in zip(operator.inputs, inputs, strict=True)]
    own = [name for name in operator.columns if name != "set.copy"]
    names = ", ".join(map(quoted, own))
    both = f" {operator.kind.value} {'ALL' if operator.all else ''} ".join(sides)
    copy = f', row_number() OVER (PARTITION BY {names}) AS "set.copy"' if operator.all else ""
    return f"SELECT *{copy}, {_place(list(map(quoted, own)))} AS {PLACE} FROM ({both}) AS q({names})"


def _expanded(step: Step, number: int, table: str) -> str:
    operator = step.operator_as(ExpandOperator)
    kinds = {one.name: one.type for one in step.fields}
    made = {
        name: sql if n in operator.sets[number] else f"CAST(NULL AS {kinds[name]})"
        for n, (name, sql) in enumerate(zip(operator.columns, operator.groups, strict=True))
    }
    made[operator.number] = f"CAST({number} AS BIGINT)"
    columns = [f"{made.get(one.name, quoted(one.name))} AS {quoted(one.name)}" for one in step.fields]
    return f"SELECT {', '.join([*columns, PLACE])} FROM {table}"
