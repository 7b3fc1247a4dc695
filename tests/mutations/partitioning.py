"""Faults of windows, top-k and re-evaluation.

A partition of which the wrong rows, the wrong moment or too little is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from everview.operators import top_k, window
from everview.operators.partitions import Touched
from everview.operators.reevaluation import ReevaluationWorker
from everview.plan.maintenance import Operator
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
    return lambda told: {"calls": tuple((name, sql.replace(old, new)) for name, sql in told["calls"])}


def _first_input(real: Callable[..., Any]) -> Callable[..., Any]:
    """Changes of the first input alone touch partitions."""
    return lambda self, work, named: real(self, work, [named[0], *(one[:0] for one in named[1:])])


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "one row more",
        Operator.TOP_K,
        planned(Operator.TOP_K, lambda told: {"limit": told["limit"] + 1}),
        (FIRST, EACH),
    ),
    Mutant(
        "one row less", Operator.TOP_K, planned(Operator.TOP_K, lambda told: {"limit": told["limit"] - 1}), (FIRST,)
    ),
    Mutant("OFFSET is ignored", Operator.TOP_K, planned(Operator.TOP_K, lambda told: {"offset": 0}), (LATER, BEYOND)),
    Mutant("ties are ignored", Operator.TOP_K, planned(Operator.TOP_K, lambda told: {"ties": None}), (TIED,)),
    Mutant(
        "ties are compared with one order more",
        Operator.TOP_K,
        planned(Operator.TOP_K, lambda told: {"ties": told["ties"] + 1}),
        (TIED,),
    ),
    Mutant(
        "as much is read as if nothing went",
        Operator.TOP_K,
        wrapped(top_k._Changes, "taken", lambda real: lambda self, bags: np.zeros(bags, np.int64)),
        (FIRST, LATER),
    ),
    Mutant(
        "what stands behind is taken for known",
        Operator.TOP_K,
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
        Operator.TOP_K,
        wrapped(top_k, "_before", lambda real: lambda bag, counts: np.cumsum(counts) - counts),
        (EACH,),
    ),
    Mutant(
        "DESC is ignored",
        Operator.TOP_K,
        planned(
            Operator.PARTITION,
            lambda told: {
                "order": tuple(
                    (f"-({sql})" if descending else sql, descending) for sql, descending in told.get("order", ())
                )
            },
        ),
        (LAST,),
    ),
    Mutant(
        "partitions are evaluated together", Operator.WINDOW, instead(window, "by_unit", lambda sql: sql), (RANKS, SUMS)
    ),
    Mutant("rows stay as they were", Operator.WINDOW, wrapped(Touched, "units", _as_before), (RANKS, SUMS)),
    Mutant(
        "what was there before is not taken away", Operator.WINDOW, wrapped(Touched, "units", _nothing_before), (RANKS,)
    ),
    Mutant(
        "the frame is another", Operator.WINDOW, planned(Operator.WINDOW, _calls("1 PRECEDING", "2 PRECEDING")), (SUMS,)
    ),
    Mutant(
        "the order is the other way round", Operator.WINDOW, planned(Operator.WINDOW, _calls(" DESC", "")), (RANKS,)
    ),
    Mutant(
        "changes of the second input touch nothing",
        Operator.REEVALUATION,
        wrapped(ReevaluationWorker, "_groups", _first_input),
        (PAIRS,),
    ),
    Mutant(
        "what was there before is not taken away",
        Operator.REEVALUATION,
        wrapped(Touched, "side", _nothing_before),
        (PAIRS,),
    ),
    Mutant("rows stay as they were", Operator.REEVALUATION, wrapped(Touched, "side", _as_before), (PAIRS,)),
    Mutant(
        "LEFT is lost in the text",
        Operator.REEVALUATION,
        planned(Operator.REEVALUATION, lambda told: {"query": told["query"].replace("LEFT JOIN", "INNER JOIN")}),
        (PAIRS,),
    ),
    Mutant(
        "a condition is lost in the text",
        Operator.REEVALUATION,
        planned(Operator.REEVALUATION, lambda told: {"query": told["query"].partition(" ON ")[0] + " ON TRUE"}),
        (PAIRS,),
    ),
)
