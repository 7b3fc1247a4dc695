"""Faults of joins, and of the bags of rows that joins, windows and re-evaluations read.

A pair that is missed or invented, a row without a partner that is shown wrongly, a bag that is not what
it should be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from everview.operators import join
from everview.operators.in_memory import InMemory
from everview.operators.join import JoinWorker, _Joining, _Keyed
from everview.operators.pairing import KeyNumbers, SideRows
from everview.operators.rows_by_key import PartitionWorker
from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import JoinOperator, PartitionOperator, ReverseJoinOperator
from everview.plan.relations import JoinKind
from everview.store.contract import BagRows
from tests.mutations.mutant import Fault, Mutant, instead, planned, wrapped

INNER = "SELECT o.id, v.b FROM orders AS o JOIN visits AS v ON o.customer = v.a"
LEFT = "SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.a"
FULL = "SELECT o.id, c.id AS c FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id"
RIGHT = "SELECT o.id, c.id AS c FROM orders AS o RIGHT JOIN customers AS c ON o.customer = c.id"
SEMI = "SELECT o.id FROM orders AS o WHERE o.customer IN (SELECT a FROM visits)"
ANTI = "SELECT o.id FROM orders AS o ANTI JOIN visits AS v ON o.customer = v.a"
NULLS = "SELECT o.id, v.b FROM orders AS o JOIN visits AS v ON o.customer IS NOT DISTINCT FROM v.a"
REST = "SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.a AND o.amount > v.b"
RANKED = "SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount) AS r FROM orders"
TOP = (
    "SELECT customer, id, amount FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount, id) <= 2"
)


def _without_term(number: int) -> Fault:
    """One of the two terms of Δ(A ⋈ B) is lost."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        real = _Joining.emit_pairs
        calls: dict[int, int] = {}

        def emit_pairs(self: _Joining, *args: Any) -> None:
            calls[id(self)] = calls.get(id(self), -1) + 1
            if calls[id(self)] % 2 != number:
                real(self, *args)

        patch.setattr(_Joining, "emit_pairs", emit_pairs)

    return inject


def _old_only(real: Callable[..., Any]) -> Callable[..., Any]:
    """What both sides change at once is not paired."""
    return lambda self, other: self if len(self) else other


def _one_weight(real: Callable[..., Any]) -> Callable[..., Any]:
    def emit_pairs(self: Any, left: SideRows, right: SideRows, one: Any, other: Any) -> None:
        real(self, left, SideRows(right.columns, right.keys, np.ones_like(right.weights)), one, other)

    return emit_pairs


def _reversed_columns(real: Callable[..., Any]) -> Callable[..., Any]:
    def of_side(self: JoinWorker, number: int, names: Any) -> Any:
        found = real(self, number, names)
        return dict(zip(found, list(found.values())[::-1], strict=True)) if number == 0 else found

    return of_side


def _bags(operator: type[Operator], change: Callable[[BagRows], BagRows]) -> Fault:
    """What a step adds to its bags, changed."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        real_run, real_add = PartitionWorker.run, InMemory.add_to_bags
        working: list[type[Operator]] = []

        def run(self: PartitionWorker, work: Any, inputs: Any) -> Any:
            working.append(type(self.step.operator))
            try:
                return real_run(self, work, inputs)
            finally:
                working.pop()

        def add_to_bags(self: InMemory, table: Any, changes: BagRows) -> None:
            real_add(self, table, change(changes) if working[-1:] == [operator] else changes)

        patch.setattr(PartitionWorker, "run", run)
        patch.setattr(InMemory, "add_to_bags", add_to_bags)

    return inject


def _chosen(rows: BagRows, chosen: Any) -> BagRows:
    mask = pa.array(np.asarray(chosen, np.bool_))
    return BagRows(rows.keys.filter(mask), rows.entries.filter(mask), rows.counts.filter(mask))


def _only_growing(rows: BagRows) -> BagRows:
    return _chosen(rows, rows.counts.to_numpy() > 0)


def _without_first(rows: BagRows) -> BagRows:
    return _chosen(rows, np.arange(len(rows.counts)) > 0)


def _under_one_key(rows: BagRows) -> BagRows:
    return BagRows(rows.keys.take(pa.array(np.zeros(len(rows.keys), np.int64))), rows.entries, rows.counts)


_BAG_FAULTS: dict[str, Callable[[BagRows], BagRows]] = {
    "a row that goes stays in its bag": _only_growing,
    "a row is not kept": _without_first,
    "rows are kept under another key": _under_one_key,
}


def _asked(kind: JoinKind, view: str, name: str) -> Mutant:
    return Mutant(name, JoinOperator, planned(JoinOperator, lambda asked: {"kind": kind}), (view,))


MUTANTS: tuple[Mutant, ...] = (
    Mutant("changes of the left side meet nothing", JoinOperator, _without_term(0), (INNER, LEFT)),
    Mutant("changes of the right side meet nothing", JoinOperator, _without_term(1), (INNER, LEFT)),
    Mutant(
        "what both sides change at once is not paired", JoinOperator, wrapped(SideRows, "__add__", _old_only), (INNER,)
    ),
    Mutant(
        "the right side's weights are ignored", JoinOperator, wrapped(_Joining, "emit_pairs", _one_weight), (INNER,)
    ),
    Mutant(
        "nulls equal each other", JoinOperator, instead(KeyNumbers, "_live", lambda self, columns: None), (INNER, LEFT)
    ),
    Mutant(
        "nulls do not equal each other",
        JoinOperator,
        planned(JoinOperator, lambda asked: {"on": tuple(replace(one, nulls_match=False) for one in asked.on)}),
        (NULLS,),
    ),
    Mutant(
        "the condition beyond the keys is not asked",
        JoinOperator,
        planned(JoinOperator, lambda asked: {"rest": None}),
        (REST,),
    ),
    Mutant(
        "the condition beyond the keys is its opposite",
        JoinOperator,
        planned(JoinOperator, lambda asked: {"rest": asked.rest and f"NOT ({asked.rest})"}),
        (REST,),
    ),
    Mutant(
        "lines are shown of the matched",
        JoinOperator,
        wrapped(_Joining, "shown", lambda real: lambda self, matches: 1 - real(self, matches)),
        (LEFT, ANTI, SEMI),
    ),
    Mutant(
        "a line stays when a partner comes",
        JoinOperator,
        wrapped(
            _Keyed,
            "_lines",
            lambda real: (
                lambda self, side: self.emit_lines(
                    side, self.moved[side], self.moved[side].weights * (self.moved[side].keys < 0)
                )
            ),
        ),
        (LEFT, FULL),
    ),
    Mutant(
        "lines of the right side are lost",
        JoinOperator,
        wrapped(_Keyed, "_lines", lambda real: lambda self, side: None if side else real(self, side)),
        (FULL,),
    ),
    Mutant(
        "a partner more is always there",
        JoinOperator,
        wrapped(_Joining, "sizes", lambda real: lambda self, *args: real(self, *args) + 1),
        (ANTI, SEMI),
    ),
    _asked(JoinKind.INNER, LEFT, "LEFT is INNER"),
    _asked(JoinKind.LEFT, FULL, "FULL is LEFT"),
    _asked(JoinKind.INNER, RIGHT, "RIGHT is INNER"),
    _asked(JoinKind.ANTI, SEMI, "SEMI is ANTI"),
    _asked(JoinKind.SEMI, ANTI, "ANTI is SEMI"),
    Mutant(
        "columns of a side are exchanged",
        JoinOperator,
        wrapped(JoinWorker, "_of_side", _reversed_columns),
        ("SELECT o.customer, o.amount, v.b FROM orders AS o JOIN visits AS v ON o.customer = v.a",),
    ),
    Mutant(
        "matches are counted once",
        JoinOperator,
        instead(
            join, "_sum", lambda numbers, weights, count: (np.bincount(numbers, weights, count) > 0).astype(np.int64)
        ),
        (REST,),
    ),
    *(
        Mutant(name, operator, _bags(operator, fault), (view,))
        for name, fault in _BAG_FAULTS.items()
        for operator, view in ((ReverseJoinOperator, LEFT), (PartitionOperator, RANKED), (PartitionOperator, TOP))
    ),
)
