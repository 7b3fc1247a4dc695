"""Faults of the operators that look at one row at a time, and of those that write views.

A row that is computed wrongly, or of which the wrong columns are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from everview.change.types import BOOLEAN
from everview.operators import filter_project, unnest, view
from everview.operators.delta import DeltaWorker
from everview.operators.evaluation import Evaluator
from everview.operators.in_memory import InMemory
from everview.operators.members import MEMBER
from everview.operators.stages import Stage
from everview.operators.view import StoredView
from everview.operators.work import StepWorker
from everview.plan.maintenance import Step
from everview.plan.maintenance.operator_definitions import (
    DeltaOperator,
    ExpandOperator,
    FilterProjectOperator,
    RowsOperator,
    UnionOperator,
    UnnestOperator,
    ViewOperator,
)
from everview.store.contract import Deletes, Puts
from tests.mutations.mutant import (
    Fault,
    Mutant,
    filtered,
    given,
    planned,
    returned,
    weights,
    without_departures,
    wrapped,
)

FILTERED = "SELECT id, amount FROM orders WHERE amount > 1"
COMPARED = "SELECT id, amount, customer FROM orders WHERE amount > customer"
GROUPING = "SELECT a, b, grouping(a) AS g, count(*) AS n FROM visits GROUP BY GROUPING SETS ((a), (b), ())"
ITEMS = "SELECT o.id, u.i FROM orders AS o LEFT JOIN unnest(o.items) AS u(i) ON TRUE"
UNITED = "SELECT a, b FROM visits UNION ALL SELECT id, score FROM customers"


def _unasked(real: Callable[..., Any]) -> Callable[..., Any]:
    def matched(self: Any, work: Any, rows: pa.Table) -> pa.Table:
        return rows.append_column(MEMBER, pa.array(np.zeros(len(rows), np.int32)))

    return matched


def _half_asked(real: Callable[..., Any]) -> Callable[..., Any]:
    """The condition is asked of what comes and not of what goes."""

    def matched(self: Any, work: Any, rows: pa.Table) -> pa.Table:
        comes, goes = (filtered(rows, weights(rows) * sign > 0) for sign in (1, -1))
        went = goes.append_column(MEMBER, pa.array(np.zeros(len(goes), np.int32)))
        return pa.concat_tables([real(self, work, comes), went])

    return matched


def _unknown_is_true(real: Callable[..., Any]) -> Callable[..., Any]:
    def mask(self: Evaluator, condition: str, rows: pa.Table) -> Any:
        return self.columns([(condition, BOOLEAN)], rows).columns[0].fill_null(True), {}

    return mask


def _swapped_columns(real: Callable[..., Any]) -> Callable[..., Any]:
    """The last two columns are taken for each other."""

    def renamed(self: DeltaWorker, changes: pa.Table) -> pa.Table:
        found = real(self, changes)
        names = found.column_names
        one, other = names.index("orders.amount"), names.index("orders.customer")
        order = [other if at == one else one if at == other else at for at in range(len(names))]
        return pa.table([found[at] for at in order], names=names)

    return renamed


def _twice(patch: pytest.MonkeyPatch) -> None:
    """The rows of a query come again in every epoch."""
    real = Stage._changes
    seen: dict[str, Any] = {}

    def changes(self: Stage, step: Step, worker: Any, packed: Any, sources: Any) -> Any:
        found = real(self, step, worker, packed, sources)
        if isinstance(step.operator, RowsOperator):
            return seen.setdefault(step.fingerprint, found)
        return found

    patch.setattr(Stage, "_changes", changes)


def _outputs(change: Callable[[pa.Table], pa.Table]) -> Fault:
    """What the items of lists are."""
    return wrapped(unnest.UnnestWorker, "_items", lambda real: lambda *args: list(map(change, real(*args))))


def _firsts(items: pa.Table) -> pa.Table:
    rows = items["__n"].to_numpy()
    return items.take(pa.array(np.unique(rows, return_index=True)[1]))


def _kept(real: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: InMemory, table: Any, puts: Puts, deletes: Deletes) -> None:
        real(self, table, puts, Deletes(deletes.keys[:0]))

    return write


def _not_overwritten(real: Callable[..., Any]) -> Callable[..., Any]:
    def write(self: InMemory, table: Any, puts: Puts, deletes: Deletes) -> None:
        new = puts.previous.is_null() if puts.previous is not None else pa.array([True] * len(puts.keys))
        real(self, table, Puts(puts.keys.filter(new), puts.values.filter(new)), deletes)

    return write


def _without_empty(items: pa.Table) -> pa.Table:
    return filtered(items, ~items.column(1).combine_chunks().is_null().to_numpy(zero_copy_only=False))


def _branches(asked: UnionOperator) -> dict[str, Any]:
    """All inputs claim to be the first."""
    at = asked.columns.index("union.branch")
    return {"inputs": tuple((*sent[:at], asked.inputs[0][at], *sent[at + 1 :]) for sent in asked.inputs)}


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "two columns are exchanged",
        DeltaOperator,
        wrapped(DeltaWorker, "_renamed", _swapped_columns),
        ("SELECT id, customer, amount FROM orders",),
    ),
    Mutant(
        "the first of many rows is the only one",
        DeltaOperator,
        wrapped(DeltaWorker, "of_rows", lambda real: lambda self, work, rows: real(self, work, rows[:1])),
        ("SELECT id, amount FROM orders",),
    ),
    Mutant(
        "what a log says to be gone is forgotten",
        DeltaOperator,
        returned(DeltaWorker, "of_log", without_departures),
        ("SELECT id, amount FROM orders",),
    ),
    Mutant(
        "the rows come again in every epoch",
        RowsOperator,
        _twice,
        ("SELECT a, b FROM visits UNION ALL SELECT 7, 7 FROM (VALUES (1), (2)) AS r(x)",),
    ),
    Mutant(
        "a constant of the rows is another",
        RowsOperator,
        planned(RowsOperator, lambda asked: {"query": asked.query.replace("2", "4")}),
        ("SELECT r.n, v.a FROM (VALUES (1), (2)) AS r(n) LEFT JOIN visits AS v ON v.a = r.n",),
    ),
    Mutant(
        "the condition is not asked",
        FilterProjectOperator,
        wrapped(filter_project._Constants, "matched", _unasked),
        (FILTERED,),
    ),
    Mutant(
        "the condition is not asked of what goes",
        FilterProjectOperator,
        wrapped(filter_project._Constants, "matched", _half_asked),
        (FILTERED,),
    ),
    Mutant("unknown counts as true", FilterProjectOperator, wrapped(Evaluator, "mask", _unknown_is_true), (COMPARED,)),
    Mutant(
        "a condition is its opposite",
        FilterProjectOperator,
        planned(FilterProjectOperator, lambda asked: {"condition": f"NOT ({asked.condition})"}),
        (FILTERED, COMPARED),
    ),
    Mutant(
        "the last grouping set is lost",
        ExpandOperator,
        planned(ExpandOperator, lambda asked: {"sets": asked.sets[:-1]}),
        (GROUPING,),
    ),
    Mutant(
        "columns outside of a set keep their values",
        ExpandOperator,
        planned(ExpandOperator, lambda asked: {"sets": ((0, 1),) * len(asked.sets)}),
        (GROUPING,),
    ),
    Mutant(
        "grouping sets are taken for each other",
        ExpandOperator,
        planned(ExpandOperator, lambda asked: {"sets": asked.sets[::-1]}),
        (GROUPING,),
    ),
    Mutant(
        "a row with an empty list is lost",
        UnnestOperator,
        planned(UnnestOperator, lambda asked: {"outer": False}),
        (ITEMS,),
    ),
    Mutant("the first item of a list is the only one", UnnestOperator, _outputs(_firsts), (ITEMS,)),
    Mutant(
        "an item that is null is lost",
        UnnestOperator,
        _outputs(_without_empty),
        ("SELECT o.id, u.i FROM orders AS o, unnest(o.items) AS u(i)",),
    ),
    Mutant(
        "all inputs have one number",
        UnionOperator,
        planned(UnionOperator, _branches),
        ("SELECT id, name FROM customers UNION ALL SELECT id, name FROM lands",),
    ),
    Mutant(
        "the second input is the first",
        UnionOperator,
        planned(UnionOperator, lambda asked: {"inputs": tuple((one[1], one[0], *one[2:]) for one in asked.inputs)}),
        (UNITED,),
    ),
    Mutant(
        "the last input is lost",
        UnionOperator,
        wrapped(
            StepWorker,
            "gathered",
            lambda real: (
                lambda self, number, parts: real(
                    self, number, () if isinstance(self.step.operator, UnionOperator) and number else parts
                )
            ),
        ),
        (UNITED,),
    ),
    Mutant("a row that goes stays", ViewOperator, wrapped(InMemory, "write", _kept), (FILTERED,)),
    Mutant(
        "a row that changes stays as it was", ViewOperator, wrapped(InMemory, "write", _not_overwritten), (FILTERED,)
    ),
    Mutant(
        "two columns are exchanged",
        ViewOperator,
        returned(StoredView, "shown", lambda rows: pa.table(rows.columns[::-1], names=rows.column_names)),
        ("SELECT a, b FROM visits",),
    ),
    Mutant(
        "a null key is a key like no other",
        ViewOperator,
        given(
            view._ReplacedRows,
            "of",
            lambda stored, rows: (
                stored,
                filtered(rows, ~rows[stored.key_names[0]].combine_chunks().is_null().to_numpy(zero_copy_only=False)),
            ),
        ),
        ("SELECT a, count(*) AS n FROM visits GROUP BY a",),
    ),
)
