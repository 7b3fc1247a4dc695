"""A view's plan tried out on rows that belong to no table.

The plan that would maintain a view is run as it would be, epoch after epoch, over given rows in
memory, and returns what the view would show after each.

What it reads is given as whole rows that come and go, so tables and views are the same here, and nothing of a
store is touched.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from everview.change.entries import WEIGHT
from everview.change.schema import ROW_ID, Column, Schema
from everview.operators.bound import QUARANTINE, BoundPlan
from everview.operators.evaluation import Evaluator
from everview.operators.flow import condensed
from everview.operators.in_memory import InMemory
from everview.operators.quarantine_records import QuarantineChanges
from everview.operators.recursion import NO_END
from everview.operators.runner import Runner
from everview.operators.view import StoredView
from everview.operators.work import Changes, Work
from everview.plan.maintenance import MaintenancePlan, TableUse, ViewInput, plan_group
from everview.plan.relations import Reevaluate, Relation
from everview.sql.patience import given_up
from everview.store.contract import StateTable, Table

GROUP = "trial"
ROUNDS = 1000
"""After how many a recursive query is given up here: some rows that would go on longer are none to try it on."""


PATIENCE = 10.0
"""Seconds that an epoch may take over some dozens of rows."""
MOST = 200_000
"""Rows that a step may make of them."""


class TooMuch(Exception):
    """A plan that makes so much of a few rows that it is not to be used."""


class _Bounded(Evaluator):
    """Gives a query up that makes too many rows, or when the epoch has taken too long."""

    deadline = math.inf

    def answer(self, sql: str) -> pa.Table:
        try:
            # While a reader is open the connection answers nothing else.
            with (
                given_up(self._connection, self.deadline - time.monotonic()),
                self._connection.sql(sql).to_arrow_reader() as reader,
            ):
                return _few(reader)
        except duckdb.InterruptException:
            raise TooMuch(f"more than {PATIENCE:.0f} s for a few rows") from None
        except (OSError, pa.ArrowException) as error:  # what DuckDB raises, once rows are read
            if "INTERRUPT" in str(error):
                raise TooMuch(f"more than {PATIENCE:.0f} s for a few rows") from None
            raise duckdb.Error(str(error)) from error


def _few(reader: pa.RecordBatchReader) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    for batch in reader:
        batches.append(batch)
        if sum(map(len, batches)) > MOST:
            raise TooMuch(f"more than {MOST:,} rows are made of a few")
    return pa.Table.from_batches(batches, reader.schema)


class Trial:
    """One view, over rows in memory."""

    def __init__(self, view: ViewInput) -> None:
        plan = plan_group([replace(view, relation=_sooner_given_up(view.relation))])
        bound = BoundPlan(plan, {use.name: _table(use) for use in plan.tables}, _states(plan))
        self._first: Runner | None = Runner(replace(bound, first=frozenset(plan.by_fingerprint)))
        self._runner = Runner(bound)
        self._states = InMemory()
        self._reader = StoredView(bound, view.name)
        self._failing: dict[bytes, int] = {}
        self.gave_up = False
        """Whether a recursion was given up, which has an answer where it may go on for longer."""
        self.tables: Mapping[str, Sequence[str]] = {
            use.name: [column.name for column in use.columns] for use in plan.tables
        }
        """The columns that the plan reads, by table."""

    def epoch(self, comes: Mapping[str, pa.Table], goes: Mapping[str, pa.Table]) -> None:
        """Take in the rows that come and go, by table."""
        runner, self._first = self._first or self._runner, None
        evaluator = _bounded()
        evaluator.deadline = time.monotonic() + PATIENCE
        work = Work(runner.bound, self._states, QuarantineChanges(runner.bound.plan), evaluator)
        sources: dict[str, Changes] = {}
        for name in self.tables:
            worker = runner.workshop.delta(name)
            assert worker is not None
            parts = [worker.of_rows(work, comes[name])] if name in comes else []
            parts += [_gone(worker.of_rows(work, goes[name]))] if name in goes else []
            if parts:
                sources[name] = condensed(pa.concat_tables(parts))
        runner.run(work, sources)
        for key, (change, failed) in work.quarantine.net.items():
            self._failing[key] = self._failing.get(key, 0) + change
            self.gave_up = self.gave_up or failed.reason.startswith(NO_END)
        self._states.end()

    @property
    def quarantined(self) -> bool:
        """Whether the view lacks something for which an expression fails."""
        return any(self._failing.values())

    def rows(self) -> pa.Table:
        """What the view shows."""
        found = self._states.records(self._reader.stored.table)
        return self._reader.shown(self._reader.stored.table_of(found.keys, found.values))


_held = threading.local()


def _bounded() -> _Bounded:
    """This thread's evaluator for trials, which is not kept over a fork."""
    found: _Bounded | None = getattr(_held, "evaluator", None)
    if found is None or _held.process != os.getpid():
        found = _Bounded()
        _held.evaluator, _held.process = found, os.getpid()
    return found


def _gone(changes: Changes) -> Changes:
    return changes.set_column(changes.column_names.index(WEIGHT), WEIGHT, pc.negate(changes[WEIGHT]))


def _states(plan: MaintenancePlan) -> dict[str, StateTable]:
    names = [QUARANTINE, *(state.fingerprint for step in plan.steps for state in step.states)]
    return {name: StateTable(number, f"{GROUP} {number}", GROUP) for number, name in enumerate(names)}


def _table(use: TableUse) -> Table:
    """What is read, as if it were a table: views may have keys that tables cannot."""
    key = use.key or tuple(column.name for column in use.columns if column.type.is_scalar)[:1]
    columns = tuple(
        Column(column.name, column.type, nullable=column.name not in key, hidden=column.name == ROW_ID)
        for column in use.columns
    )
    return Table(0, use.name, Schema(columns, key))


def _sooner_given_up(relation: Relation) -> Relation:
    inputs = tuple(_sooner_given_up(one) for one in relation.inputs)
    changed = relation.with_inputs(*inputs) if inputs and inputs != tuple(relation.inputs) else relation
    if isinstance(changed, Reevaluate) and changed.rounds > ROUNDS:
        return replace(changed, rounds=ROUNDS)
    return changed
