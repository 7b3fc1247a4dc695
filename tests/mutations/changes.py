"""Changes that are lost, or counted wrongly, between steps: for every operator the same few faults.

What an operator emits is what the next one believes, so each operator is broken by forgetting what
goes, what has a null and what comes last, and by exchanging what comes and what goes.
"""

from __future__ import annotations

from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    DeltaOperator,
    DistinctOperator,
    ExpandOperator,
    ExtremeOperator,
    FilterProjectOperator,
    GroupReevaluationOperator,
    JoinOperator,
    PartitionOperator,
    PreAggregationOperator,
    ReevaluationOperator,
    ReverseJoinOperator,
    RowsOperator,
    SetOperator,
    TopKOperator,
    UnionOperator,
    UnnestOperator,
    ViewOperator,
    WindowOperator,
)
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

VIEWS: dict[type[Operator], str] = {
    DeltaOperator: "SELECT id, customer, amount FROM orders",
    RowsOperator: "SELECT r.n, r.t, v.a FROM (VALUES (1, 'x'), (2, NULL), (3, 'y')) AS r(n, t) LEFT JOIN visits AS v "
    "ON v.a = r.n",
    FilterProjectOperator: "SELECT id, customer, amount FROM orders WHERE amount > 1",
    ExpandOperator: "SELECT a, b, count(*) AS n FROM visits GROUP BY ROLLUP (a, b)",
    UnnestOperator: "SELECT o.id, u.i FROM orders AS o, unnest(o.items) AS u(i)",
    UnionOperator: "SELECT a, b FROM visits UNION ALL SELECT id, score FROM customers",
    PreAggregationOperator: "SELECT a, count(b) AS n, sum(b) AS s FROM visits GROUP BY a",
    ExtremeOperator: "SELECT a, min(b) AS l, max(b) AS h FROM visits GROUP BY a",
    GroupReevaluationOperator: "SELECT a, median(b) AS m FROM visits GROUP BY a",
    AggregateOperator: "SELECT a, count(*) AS n, max(b) AS h FROM visits GROUP BY a",
    ReverseJoinOperator: "SELECT o.id, o.amount, v.b FROM orders AS o JOIN visits AS v ON o.customer = v.a",
    PartitionOperator: "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount, id) AS n FROM orders",
    JoinOperator: "SELECT o.id, o.amount, v.b FROM orders AS o LEFT JOIN visits AS v ON o.customer = v.a",
    DistinctOperator: "SELECT DISTINCT a, b FROM visits",
    SetOperator: "SELECT a FROM visits UNION SELECT score FROM customers",
    WindowOperator: "SELECT id, amount, rank() OVER (PARTITION BY customer ORDER BY amount) AS r FROM orders",
    TopKOperator: "SELECT id, customer, amount FROM orders ORDER BY amount NULLS FIRST, id LIMIT 4",
    ReevaluationOperator: "SELECT o.id, v.a, v.b FROM orders AS o LEFT JOIN visits AS v "
    "ON o.amount < v.a AND v.b > o.customer",
    ViewOperator: "SELECT id, customer, amount FROM orders",
}
"""For each operator a view that it works for, with nulls in what it emits."""

FAULTS: dict[str, Changed] = {
    "what goes is forgotten": without_departures,
    "what has a null is forgotten": without_nulls,
    "the last change is forgotten": without_last,
    "what comes and what goes are exchanged": turned,
    "every change counts twice": lambda rows: reweighted(rows, 2 * weights(rows)),
}

NEVER_GOES = (RowsOperator,)
"""Rows of the query itself: they come, and that is all."""

MUTANTS: tuple[Mutant, ...] = tuple(
    Mutant(name, operator, emitted(operator, fault), (view,))
    for operator, view in VIEWS.items()
    for name, fault in FAULTS.items()
    if not (operator in NEVER_GOES and fault is without_departures)
)
