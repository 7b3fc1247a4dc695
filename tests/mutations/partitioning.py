"""Faults of windows, top-k and re-evaluation.

A partition of which the wrong rows, the wrong moment or too little is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from everview.operators import top_k, window
from everview.operators.partitions import TouchedPartitions
from everview.operators.reevaluation import ReevaluationWorker
from everview.plan.maintenance.operator_definitions import (
    PartitionOperator,
    ReevaluationOperator,
    TopKOperator,
    WindowOperator,
)
from tests.mutations.mutant import Mutant, instead, planned, wrapped

FIRST = "SELECT id, amount FROM orders ORDER BY amount, id LIMIT 3"
LATER = "SELECT id, amount FROM orders ORDER BY amount, id LIMIT 3 OFFSET 2"
BEYOND = "SELECT id, amount FROM orders ORDER BY amount, id OFFSET 2"
TIED = "SELECT id, amount FROM orders QUALIFY rank() OVER (ORDER BY amount) <= 2"
EACH = (
    "SELECT customer, id, amount FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount, id) <= 2"
)
LAST = "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3"
SUMS = (
    "SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s "
    "FROM orders"
)
RANKS = "SELECT id, rank() OVER (PARTITION BY customer ORDER BY amount DESC) AS r FROM orders"
PAIRS = "SELECT o.id, v.b FROM orders AS o LEFT JOIN visits AS v ON o.amount < v.a"


def _as_before(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: real(replace(self, after=self.before), *args)


def _nothing_before(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: real(replace(self, before=np.zeros_like(self.before)), *args)


def _calls(old: str, new: str) -> Callable[[Any], dict[str, Any]]:
    return lambda asked: {"calls": tuple(replace(call, sql=call.sql.replace(old, new)) for call in asked.calls)}


def _first_input(real: Callable[..., Any]) -> Callable[..., Any]:
    """Changes of the first input alone touch partitions."""
    return lambda self, work, named: real(self, work, [named[0], *(one[:0] for one in named[1:])])


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "one row more",
        TopKOperator,
        planned(TopKOperator, lambda asked: {"limit": (asked.limit or 0) + 1}),
        (FIRST, EACH),
    ),
    Mutant(
        "one row less", TopKOperator, planned(TopKOperator, lambda asked: {"limit": (asked.limit or 0) - 1}), (FIRST,)
    ),
    Mutant("OFFSET is ignored", TopKOperator, planned(TopKOperator, lambda asked: {"offset": 0}), (LATER, BEYOND)),
    Mutant("ties are ignored", TopKOperator, planned(TopKOperator, lambda asked: {"ties": None}), (TIED,)),
    Mutant(
        "ties are compared with one order more",
        TopKOperator,
        planned(TopKOperator, lambda asked: {"ties": (asked.ties or 0) + 1}),
        (TIED,),
    ),
    Mutant(
        "as much is read as if nothing went",
        TopKOperator,
        wrapped(top_k._Changes, "taken", lambda real: lambda self, bags: np.zeros(bags, np.int64)),
        (FIRST, LATER),
    ),
    Mutant(
        "what stands behind is taken for known",
        TopKOperator,
        wrapped(
            top_k.TopKWorker,
            "_known",
            lambda real: (
                lambda self, *args: ((found := real(self, *args))[0], np.ones_like(found[1]), np.ones_like(found[2]))
            ),
        ),
        ("SELECT a, b FROM visits QUALIFY rank() OVER (ORDER BY a) <= 2",),
    ),
    Mutant(
        "the first rows of all partitions are counted together",
        TopKOperator,
        wrapped(top_k, "_before", lambda real: lambda bag, counts: np.cumsum(counts) - counts),
        (EACH,),
    ),
    Mutant(
        "DESC is ignored",
        TopKOperator,
        planned(
            PartitionOperator,
            lambda asked: {
                "order": asked.order
                and tuple(replace(one, sql=f"-({one.sql})" if one.descending else one.sql) for one in asked.order)
            },
        ),
        (LAST,),
    ),
    Mutant(
        "partitions are evaluated together", WindowOperator, instead(window, "by_unit", lambda sql: sql), (RANKS, SUMS)
    ),
    Mutant("rows stay as they were", WindowOperator, wrapped(TouchedPartitions, "units", _as_before), (RANKS, SUMS)),
    Mutant(
        "what was there before is not taken away",
        WindowOperator,
        wrapped(TouchedPartitions, "units", _nothing_before),
        (RANKS,),
    ),
    Mutant(
        "the frame is another", WindowOperator, planned(WindowOperator, _calls("1 PRECEDING", "2 PRECEDING")), (SUMS,)
    ),
    Mutant("the order is the other way round", WindowOperator, planned(WindowOperator, _calls(" DESC", "")), (RANKS,)),
    Mutant(
        "changes of the second input touch nothing",
        ReevaluationOperator,
        wrapped(ReevaluationWorker, "_groups", _first_input),
        (PAIRS,),
    ),
    Mutant(
        "what was there before is not taken away",
        ReevaluationOperator,
        wrapped(TouchedPartitions, "side", _nothing_before),
        (PAIRS,),
    ),
    Mutant("rows stay as they were", ReevaluationOperator, wrapped(TouchedPartitions, "side", _as_before), (PAIRS,)),
    Mutant(
        "LEFT is lost in the text",
        ReevaluationOperator,
        planned(ReevaluationOperator, lambda asked: {"query": asked.query.replace("LEFT JOIN", "INNER JOIN")}),
        (PAIRS,),
    ),
    Mutant(
        "a condition is lost in the text",
        ReevaluationOperator,
        planned(ReevaluationOperator, lambda asked: {"query": asked.query.partition(" ON ")[0] + " ON TRUE"}),
        (PAIRS,),
    ),
)
