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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from everview.plan.expressions import quoted
from everview.plan.maintenance import Input, MaintenancePlan, Operator, Step
from everview.plan.maintenance.names import filled

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
        split = step.operator is Operator.REEVALUATION and any(step.parameters["partition"])
        query = self._apart(step, inputs) if split else _query(step, sources, inputs)
        query = filled(query, constants)
        try:
            self.connection.execute(f"CREATE TEMP TABLE {table} AS {query}")
        except duckdb.Error as error:
            raise AssertionError(f"{step.operator.value} {step.title}\n{query}\n{error}") from error
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
        assert {one.name for one in step.fields} <= columns, f"{step.operator.value} {step.title}"
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
                assert found == place, f"{step.operator.value} {step.title}: {values} at {found} and at {place}"


def _keys(step: Step) -> list[Sequence[str]] | None:
    """For each input, the key under which the step keeps its rows, or must meet them."""
    told = step.parameters
    match step.operator:
        case Operator.PRE_AGGREGATION | Operator.EXTREME | Operator.REVERSE_JOIN | Operator.PARTITION:
            return [told["key"]]
        case Operator.DISTINCT:
            return [told["row"]]
        case Operator.SET:
            return list(told["inputs"])
        case Operator.VIEW | Operator.INDEX:
            stored = dict(told["columns"])
            return [[stored[name] for name in told["key"]]]
        case Operator.JOIN:
            return [[f"__k{n}" for n, _ in enumerate(told["left"])]] * 2
        case Operator.REEVALUATION:
            return [[f"__k{n}" for n, _ in enumerate(key)] for key in told["partition"]]
        case Operator.AGGREGATE:
            return [list(map(quoted, told["key"]))] * len(step.inputs)
    return None


def _place(key: Sequence[str]) -> str:
    return f"[{', '.join(f'CAST({sql} AS VARCHAR)' for sql in key)}]::VARCHAR[]"


def _columns(step: Step) -> str:
    """What a step passes on and computes."""
    computed = dict(step.parameters.get("computed", ()))
    return ", ".join(
        [f"{computed.get(one.name, quoted(one.name))} AS {quoted(one.name)}" for one in step.fields] + [PLACE]
    )


def _query(step: Step, sources: Sequence[Step], inputs: Sequence[str]) -> str:
    told = step.parameters
    match step.operator:
        case Operator.DELTA:
            columns = [f"{quoted(real)} AS {quoted(stored)}" for stored, real in told["columns"]]
            by = [quoted(dict(told["columns"])[name]) for name in told["key"]]
            place = _place([f"'{told['table']}'", *by])
            return f"SELECT {', '.join(columns)}, {place} AS {PLACE} FROM {quoted(told['table'])}"
        case Operator.ROWS:
            names = [one.name for one in step.fields if one.name != "rows.number"]
            names.sort(key=lambda name: int(name.partition(".")[2]))
            own = ", ".join(map(quoted, names))
            number = 'row_number() OVER () AS "rows.number"'
            return f"SELECT *, {_place(['0'])} AS {PLACE}, {number} FROM ({told['query']}) AS q({own})"
        case Operator.FILTER_PROJECT:
            where = f" WHERE {told['condition']}" if "condition" in told else ""
            return f"SELECT {_columns(step)} FROM {inputs[0]}{where}"
        case Operator.REVERSE_JOIN | Operator.PARTITION:
            keys = "".join(f", {sql} AS __k{n}" for n, sql in enumerate(told["key"]))
            order = "".join(f", {sql} AS __o{n}" for n, (sql, _) in enumerate(told.get("order", ())))
            return f"SELECT {_columns(step)}{keys}{order} FROM {inputs[0]}"
        case Operator.UNNEST:
            item, position = quoted(told["item"]), quoted(told["position"])
            made = f"SELECT UNNEST({told['items']}) AS {item}, GENERATE_SUBSCRIPTS({told['items']}, 1) AS {position}"
            join = "LEFT JOIN" if told["outer"] else "JOIN"
            return f"SELECT {_columns(step)} FROM {inputs[0]} {join} LATERAL ({made}) AS item ON true"
        case Operator.UNION:
            parts = [
                f"SELECT {', '.join([*map(str, sent), PLACE])} FROM {table}"
                for sent, table in zip(told["inputs"], inputs, strict=True)
            ]
            own = ", ".join([*map(quoted, told["columns"]), PLACE])
            return f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS q({own})"
        case Operator.SET:
            return _set(told, inputs)
        case Operator.EXPAND:
            return " UNION ALL ".join(_expanded(step, number, inputs[0]) for number, _ in enumerate(told["sets"]))
        case Operator.DISTINCT:
            return f"SELECT DISTINCT ON ({', '.join(told['row'])}) {_columns(step)} FROM {inputs[0]}"
        case Operator.JOIN:
            return _join(step, sources, inputs)
        case Operator.TOP_K:
            return _top(step, sources[0], inputs[0])
        case Operator.WINDOW:
            calls = dict(told.get("calls", ()))
            return (
                "SELECT "
                + ", ".join(
                    [f"{calls.get(one.name, quoted(one.name))} AS {quoted(one.name)}" for one in step.fields] + [PLACE]
                )
                + f" FROM {inputs[0]}"
            )
        case Operator.REEVALUATION:
            return _evaluated(step, inputs, _literal([]))
        case Operator.VIEW | Operator.INDEX:
            return f"SELECT {_columns(step)} FROM {inputs[0]}"
    return _grouped(step, inputs)


def _evaluated(step: Step, inputs: Sequence[str], place: str) -> str:
    told = step.parameters
    tables = [
        f"in{n} AS (SELECT {', '.join(f'{quoted(a)} AS {quoted(b)}' for a, b in called)} FROM {table})"
        for n, (called, table) in enumerate(zip(told["inputs"], inputs, strict=True))
    ]
    own = ", ".join(map(quoted, told["columns"]))
    query = f"WITH {', '.join(tables)} SELECT * FROM ({told['query']})" if tables else told["query"]
    return f"SELECT *, {place} AS {PLACE} FROM ({query}) AS q({own})"


def _literal(place: Sequence[str | None]) -> str:
    return _place([f"'{value}'" if value is not None else "NULL" for value in place])


def _grouped(step: Step, inputs: Sequence[str]) -> str:
    told = step.parameters
    key = list(told["key"]) if "key" in told else []
    match step.operator:
        case Operator.PRE_AGGREGATION:
            calls = [f"{_call(f, arg, where)} AS {quoted(n)}" for n, f, arg, where in told["accumulators"]]
        case Operator.EXTREME:
            calls = [f"{_call(f, told['value'], told['filter'])} AS {quoted(n)}" for n, f in told["ends"]]
        case Operator.GROUP_REEVALUATION:
            key = [f"__k{n}" for n, _ in enumerate(key)]
            calls = [f"{sql} AS {quoted(n)}" for n, sql in told["calls"]]
        case Operator.AGGREGATE:
            return _together(step, inputs)
        case _:
            raise AssertionError(f"nothing says what {step.operator} gives")
    columns = [f"{sql} AS {quoted(name)}" for sql, name in zip(key, told["key names"], strict=True)]
    by = f" GROUP BY {', '.join(key)}" if key else ""
    return f"SELECT {', '.join([*columns, *calls, f'any_value({PLACE}) AS {PLACE}'])} FROM {inputs[0]}{by}"


def _call(function: str, argument: str | None, where: str | None) -> str:
    return f"{function}({argument or '*'})" + (f" FILTER (WHERE {where})" if where else "")


def _together(step: Step, inputs: Sequence[str]) -> str:
    told = step.parameters
    key = list(map(quoted, told["key"]))
    groups = f"SELECT {', '.join([*key, PLACE])} FROM {inputs[told['groups']]}"
    if key:
        there = [", ".join([*values, "NULL"]) for values in told["always"]]
        more = "".join(f" UNION ALL SELECT {row}" for row in there)
        groups = f"SELECT {', '.join([*key, f'any_value({PLACE}) AS {PLACE}'])} FROM ({groups}{more}) GROUP BY ALL"
    kinds = {one.name: one.type for one in step.fields}
    calls = [f"CAST({_made(f, held)} AS {kinds[n]}) AS {quoted(n)}" for n, f, held in told["calls"]]
    parts = "".join(
        f" LEFT JOIN {table} AS p{n} ON "
        + (" AND ".join(f"g.{k} IS NOT DISTINCT FROM p{n}.{k}" for k in key) or "true")
        for n, table in enumerate(inputs)
    )
    own = [f"g.{name}" for name in (*key, PLACE)]
    return f"SELECT {', '.join([*own, *calls])} FROM ({groups}) AS g{parts}"


def _made(function: str, held: Sequence[tuple[int, str]]) -> str:
    columns = [f"p{part}.{quoted(name)}" for part, name in held]
    if function == "count" and len(columns) == 1:
        return f"coalesce({columns[0]}, 0)"
    if len(columns) == 1:
        return columns[0]
    total, count = columns
    value = f"{total}::DOUBLE / {count}" if function == "avg" else total
    return f"CASE WHEN {count} > 0 THEN {value} END"


def _top(step: Step, bag: Step, table: str) -> str:
    told = step.parameters
    by = ", ".join(f"__k{n}" for n, _ in enumerate(bag.parameters["key"]))
    order = [f"__o{n}{' DESC' if down else ''}" for n, (_, down) in enumerate(bag.parameters["order"])]
    split = f"PARTITION BY {by} " if by else ""
    number = f"row_number() OVER ({split}ORDER BY {', '.join(order) or '1'})"
    last = "" if told["limit"] is None else f"<= {told['offset'] + told['limit']}"
    asked = [f"{number} > {told['offset']}"]
    if last and told["ties"] is None:
        asked.append(f"{number} {last}")
    elif last:
        asked.append(f"rank() OVER ({split}ORDER BY {', '.join(order[: told['ties']]) or '1'}) {last}")
    return f"SELECT {_columns(step)} FROM {table} QUALIFY {' AND '.join(asked)}"


def _join(step: Step, sides: Sequence[Step], inputs: Sequence[str]) -> str:
    told = step.parameters
    prefix = told["right prefix"]
    ties = [
        f"l.__k{n} {'IS NOT DISTINCT FROM' if nulls else '='} r.__k{n}" for n, nulls in enumerate(told["nulls match"])
    ]
    own = [f"__k{n}" for n, _ in enumerate(told["right"])]
    renamed = [f"{quoted(one.name)} AS {quoted(prefix + one.name)}" for one in sides[1].fields]
    right = f"(SELECT {', '.join([*renamed, *own, PLACE])} FROM {inputs[1]}) AS r"
    on = " AND ".join([*ties, *([f"({told['rest']})"] if told["rest"] else [])]) or "true"
    names = [quoted(one.name) for one in step.fields]
    place = f"l.{PLACE}" if told["kind"] in ("semi", "anti") else f"coalesce(l.{PLACE}, r.{PLACE})"
    return f"SELECT {', '.join([*names, place])} AS {PLACE} FROM {inputs[0]} AS l {told['kind']} JOIN {right} ON {on}"


def _set(told: Mapping[str, Any], inputs: Sequence[str]) -> str:
    sides = [f"SELECT {', '.join(sent)} FROM {table}" for sent, table in zip(told["inputs"], inputs, strict=True)]
    own = [name for name in told["columns"] if name != "set.copy"]
    names = ", ".join(map(quoted, own))
    both = f" {told['kind']} {'ALL' if told['all'] else ''} ".join(sides)
    copy = f', row_number() OVER (PARTITION BY {names}) AS "set.copy"' if told["all"] else ""
    return f"SELECT *{copy}, {_place(list(map(quoted, own)))} AS {PLACE} FROM ({both}) AS q({names})"


def _expanded(step: Step, number: int, table: str) -> str:
    told = step.parameters
    kinds = {one.name: one.type for one in step.fields}
    made = {
        name: sql if n in told["sets"][number] else f"CAST(NULL AS {kinds[name]})"
        for n, (name, sql) in enumerate(zip(told["columns"], told["groups"], strict=True))
    }
    made[told["number"]] = f"CAST({number} AS BIGINT)"
    columns = [f"{made.get(one.name, quoted(one.name))} AS {quoted(one.name)}" for one in step.fields]
    return f"SELECT {', '.join([*columns, PLACE])} FROM {table}"
