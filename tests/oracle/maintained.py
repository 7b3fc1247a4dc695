"""Views maintained in this process, and what DuckDB says they should be.

A :class:`Maintained` is a store with tables and views whose epochs run
on request; after each of them every view is compared with the same query over the base rows.

The recomputation reads the base tables and the texts of the views, and nothing of the plan.
"""

from __future__ import annotations

import atexit
import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from everview.catalog import Catalog
from everview.change.frontier import Frontier
from everview.change.schema import Schema
from everview.change.types import TIMESTAMP_NS, parse_type
from everview.maintain.executor import EpochInput, read_input
from everview.maintain.tasks import EpochTask
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.evaluation import one_array
from everview.operators.quarantine_records import Unvalued, listed
from everview.operators.runner import Outcome, Runner
from everview.operators.stages import Clock
from everview.operators.view import StoredView
from everview.plan.compile import CompiledView, compile_text, plan_views
from everview.sql.namespace import NamedRelation, Names
from everview.sql.settings import connect
from everview.store.contract import BaseTable, Begun, StateTable, Store
from everview.store.embedded.store import EmbeddedStore
from everview.store.encoding.fitting import fit
from everview.store.encoding.registering import register, unregister

GROUP = "main"


class EpochRunner(Runner):
    """A runner that reads what an epoch takes in, as executors do."""

    def read(self, store: Store, begun: Begun) -> EpochInput:
        """The log entries of an epoch."""
        slices = begun.start.slices_to(begun.frontier)
        return read_input(store, self.bound, EpochTask(""), begun.frontier, slices, (), Clock())

    def epoch(self, store: Store, begun: Begun) -> Outcome:
        """Do the work of an epoch that has begun. The commit is the caller's."""
        read = self.read(store, begun)
        return replace(self.take(store, begun, read.batches), damaged=read.damaged)


class Maintained:
    """Tables and views of one group. ``views`` are queries by name; they may read one another in
    their order."""

    def __init__(
        self,
        path: Path,
        tables: Mapping[str, Schema],
        views: Mapping[str, str],
        *,
        before_images: bool = True,
        nodes: int = 4,
    ) -> None:
        self.store = EmbeddedStore.open(path, create=True, durability="none", before_images=before_images, nodes=nodes)
        try:
            self._define(tables, views, before_images)
        except BaseException:
            self.store.close()
            raise

    def _define(self, tables: Mapping[str, Schema], views: Mapping[str, str], before_images: bool) -> None:
        catalog = Catalog(self.store.metadata)
        self.tables = {name: catalog.create_table(name, schema) for name, schema in tables.items()}
        self.queries = dict(views)
        known = [
            NamedRelation(name, "table", schema.shown, () if schema.hidden_key else schema.key, bag=schema.hidden_key)
            for name, schema in tables.items()
        ]
        self.compiled: list[CompiledView] = []
        for name, query in views.items():
            view = compile_text(f'CREATE MATERIALIZED VIEW "{name}" AS {query}', Names(known))
            self.compiled.append(view)
            known.append(view.named)
        self.plan = plan_views(self.compiled, before_images)
        states: dict[str, StateTable] = {QUARANTINE: StateTable(1000, QUARANTINE, GROUP)}
        for step in self.plan.steps:
            for state in step.states:
                states.setdefault(state.fingerprint, StateTable(1000 + len(states), state.name, GROUP))
        used = {use.name: self.tables[use.name] for use in self.plan.tables}
        self.first = BoundPlan(self.plan, used, states, frozenset(self.plan.by_fingerprint))
        self.later = BoundPlan(self.plan, used, states)
        self.runner = EpochRunner(self.first)
        self.epochs = 0

    # -------------------------------------------------------------- writing

    def table(self, name: str) -> BaseTable:
        return self.store.table(self.tables[name])

    def begin(self, frontier: Frontier | None = None) -> Begun:
        bound = self.later if self.epochs else self.first
        return self.store.views.begin(GROUP, frontier or self.store.log.latest(), bound.to_bytes())

    def epoch(self, frontier: Frontier | None = None) -> Outcome:
        """Take the views to a frontier, by default to the end of the logs."""
        begun = self.begin(frontier)
        outcome = self.runner.epoch(self.store, begun)
        self.store.views.commit(GROUP, begun.epoch)
        self.store.views.sweep(GROUP)
        if not self.epochs:
            self.runner = EpochRunner(self.later)
        self.epochs += 1
        return outcome

    # -------------------------------------------------------------- reading

    def view(self, name: str) -> pa.Table:
        reader = StoredView(self.later, name)
        return reader.rows(self.store.views, self.store.views.committed(GROUP).epoch)

    def quarantine(self) -> list[tuple[int, Unvalued]]:
        epoch = self.store.views.committed(GROUP).epoch
        return listed(self.plan, self.store.views.scan(self.later.states[QUARANTINE], b"", epoch))

    def recomputed(self, names: Sequence[str] | None = None) -> dict[str, pa.Table]:
        """What the queries say of the base tables now."""
        with connect() as connection:
            for name, table in self.tables.items():
                rows = pa.Table.from_batches(self.store.table(table).scan(), schema=table.schema.arrow)
                register(connection, f"rows_{name}", rows.select([column.name for column in table.schema.shown]))
                connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM "rows_{name}"')
            found: dict[str, pa.Table] = {}
            for name, query in self.queries.items():
                connection.execute(f'CREATE TABLE "{name}" AS {query}')
                if names is None or name in names:
                    found[name] = content(connection, name)
            return found

    def differences(self) -> dict[str, str]:
        """For each view that is not what it should be, what is missing and what is too much."""
        found: dict[str, str] = {}
        for name, expected in self.recomputed().items():
            said = difference(expected, self.view(name))
            if said:
                found[name] = said
        return found

    def check(self) -> None:
        wrong = self.differences()
        assert not wrong, "\n".join(f"{name}: {self.queries[name]}\n{said}" for name, said in wrong.items())

    def close(self) -> None:
        self.store.close()


def content(connection: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    """The rows of a table in DuckDB, in the Arrow types that Everview has for its columns."""
    rows = connection.table(name).to_arrow_table()
    kinds = [parse_type(row[1]) for row in connection.execute(f'DESCRIBE "{name}"').fetchall()]
    columns = [fit(one_array(column), kind) for column, kind in zip(rows.columns, kinds, strict=True)]
    return pa.table(columns, names=rows.column_names)


@functools.cache
def database() -> duckdb.DuckDBPyConnection:
    """The DuckDB of the tests: making one takes longer than most things it is asked."""
    return connect()


def difference(expected: pa.Table, found: pa.Table) -> str:
    """What is missing and what is too much, in words; nothing where the two are one bag of rows."""
    should, is_there = bag(expected), bag(found)
    missing, extra = should - is_there, is_there - should
    if missing or extra:
        return f"missing {dict(missing)}\nextra   {dict(extra)}"
    should_be, are = types(expected), types(found)
    return "" if should_be == are else f"columns {are}\ninstead {should_be}"


def bag(rows: pa.Table) -> Counter[tuple[object, ...]]:
    """Rows with how often they stand there, values as something that can be compared."""
    connection = _connection()
    register(connection, "rows", rows)
    names = [
        f'CAST("{field.name}" AS VARCHAR)' if field.type == TIMESTAMP_NS.arrow else f'"{field.name}"'
        for field in rows.schema  # Python has no nanoseconds
    ]
    found = connection.sql(f"SELECT {', '.join(names)} FROM rows").fetchall()
    unregister(connection, "rows", rows)
    return Counter(tuple(comparable(value) for value in row) for row in found)


def types(rows: pa.Table) -> list[tuple[str, str]]:
    """The columns and what DuckDB calls their types."""
    connection = database()
    register(connection, "rows", rows)
    found = [(row[0], row[1]) for row in connection.execute("DESCRIBE rows").fetchall()]
    unregister(connection, "rows", rows)
    return found


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    return connect()


for _kept in (database, _connection):  # otherwise DuckDB's bindings speak of leaks where threads outlive them
    atexit.register(_kept.cache_clear)


def comparable(value: object) -> object:
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, list):
        return ("list", *map(comparable, value))
    if isinstance(value, dict):
        return ("map", *((comparable(k), comparable(v)) for k, v in value.items()))
    return value
