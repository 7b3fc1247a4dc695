"""Changes that are lost, or counted wrongly, between steps: for every operator the same few faults.

What an operator emits is what the next one believes, so each operator is broken by forgetting what
goes, what has a null and what comes last, and by exchanging what comes and what goes.
"""

from __future__ import annotations

from everview.plan.maintenance import Operator
from tests.mutations.mutant import (
    Changed,
    Mutant,
    emitted,
    reweighted,
    turned,
    weights,
    without_departures,
    without_last,
    without_nulls,
)

VIEWS: dict[Operator, str] = {
    Operator.DELTA: "SELECT id, customer, amount FROM orders",
    Operator.ROWS: "SELECT r.n, r.t, v.a FROM (VALUES (1, 'x'), (2, NULL), (3, 'y')) AS r(n, t) LEFT JOIN visits AS v "
    "ON v.a = r.n",
    Operator.FILTER_PROJECT: "SELECT id, customer, amount FROM orders WHERE amount > 1",
    Operator.EXPAND: "SELECT a, b, count(*) AS n FROM visits GROUP BY ROLLUP (a, b)",
    Operator.UNNEST: "SELECT o.id, u.i FROM orders AS o, unnest(o.items) AS u(i)",
    Operator.UNION: "SELECT a, b FROM visits UNION ALL SELECT id, score FROM customers",
    Operator.PRE_AGGREGATION: "SELECT a, count(b) AS n, sum(b) AS s FROM visits GROUP BY a",
    Operator.EXTREME: "SELECT a, min(b) AS l, max(b) AS h FROM visits GROUP BY a",
    Operator.GROUP_REEVALUATION: "SELECT a, median(b) AS m FROM visits GROUP BY a",
    Operator.AGGREGATE: "SELECT a, count(*) AS n, max(b) AS h FROM visits GROUP BY a",
    Operator.REVERSE_JOIN: "SELECT o.id, o.amount, v.b FROM orders AS o JOIN visits AS v ON o.customer = v.a",
    Operator.PARTITION: "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount, id) AS n FROM orders",
    Operator.JOIN: "SELECT o.id, o.amount, v.b FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.a",
    Operator.DISTINCT: "SELECT DISTINCT a, b FROM visits",
    Operator.SET: "SELECT a FROM visits UNION SELECT score FROM customers",
    Operator.WINDOW: "SELECT id, amount, rank() OVER (PARTITION BY customer ORDER BY amount) AS r FROM orders",
    Operator.TOP_K: "SELECT id, customer, amount FROM orders ORDER BY amount NULLS FIRST, id LIMIT 4",
    Operator.REEVALUATION: "SELECT o.id, v.a, v.b FROM orders AS o LEFT JOIN visits AS v "
    "ON o.amount < v.a AND v.b > o.customer",
    Operator.VIEW: "SELECT id, customer, amount FROM orders",
}
"""For each operator a view that it works for, with nulls in what it emits."""

FAULTS: dict[str, Changed] = {
    "what goes is forgotten": without_departures,
    "what has a null is forgotten": without_nulls,
    "the last change is forgotten": without_last,
    "what comes and what goes are exchanged": turned,
    "every change counts twice": lambda rows: reweighted(rows, 2 * weights(rows)),
}

NEVER_GOES = (Operator.ROWS,)
"""Rows of the query itself: they come, and that is all."""

MUTANTS: tuple[Mutant, ...] = tuple(
    Mutant(name, operator, emitted(operator, fault), (view,))
    for operator, view in VIEWS.items()
    for name, fault in FAULTS.items()
    if not (operator in NEVER_GOES and fault is without_departures)
)
