"""Faults of the operators that bring rows together: aggregates, distinct rows and set operations.

A group that is counted, found or left wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from everview.operators import aggregate, distinct, extreme, partitions, pre_aggregation, set_operation
from everview.operators.accumulators import Count
from everview.operators.distinct import Copies
from everview.operators.whole_sums import NarrowSum
from everview.plan.maintenance.operator_definitions import (
    AggregateOperator,
    DistinctOperator,
    ExtremeOperator,
    GroupReevaluationOperator,
    PreAggregationOperator,
    SetOperator,
)
from everview.plan.maintenance.operator_parts import PartColumn
from everview.plan.relations import SetKind
from tests.mutations.mutant import (
    Mutant,
    emitted,
    given,
    instead,
    planned,
    returned,
    without_departures,
    without_nulls,
    wrapped,
)

COUNTED = "SELECT a, count(*) AS n, count(b) AS m FROM visits GROUP BY a"
SUMMED = "SELECT a, sum(b) AS s FROM visits GROUP BY a"
AVERAGE = "SELECT a, avg(b) AS s FROM visits GROUP BY a"
FILTERED = "SELECT a, count(*) FILTER (WHERE b > 1) AS n, sum(b) FILTER (WHERE b > 1) AS s FROM visits GROUP BY a"
ENDS = "SELECT a, min(b) AS l, max(b) AS h FROM visits GROUP BY a"
FILTERED_END = "SELECT a, max(b) FILTER (WHERE c > 'a') AS h FROM visits GROUP BY a"
TOTAL = "SELECT count(*) AS n, sum(b) AS s, max(b) AS h FROM visits WHERE a > 3 AND c = 'ab'"
MEDIAN = "SELECT a, median(b) AS m FROM visits GROUP BY a"
MEDIAN_OF_ALL = "SELECT list(a ORDER BY a) AS l, median(b) AS m FROM visits WHERE a > 3 AND c = 'ab'"
MIXED = "SELECT a, count(*) AS n, max(c) AS h, median(b) AS m FROM visits GROUP BY a"
DIFFERENT = "SELECT DISTINCT a, b FROM visits"


def _counts(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, values, weights, groups, count: real(self, None, weights, groups, count)


def _nulls_are_no_group(real: Callable[..., Any]) -> Callable[..., Any]:
    def pack(self: Any, work: Any, number: int, changes: pa.Table) -> pa.Table:
        made = real(self, work, number, changes)
        return made.filter(pa.array(~made["k0"].combine_chunks().is_null().to_numpy(zero_copy_only=False)))

    return pack


def _zero_for_nothing(real: Callable[..., Any]) -> Callable[..., Any]:
    def result(function: str, argument: Any, total: Any, count: Any) -> Any:
        found = real(function, argument, total, count)
        return replace(found, values=found.values.fill_null(pa.scalar(0, found.values.type)))

    return result


def _all_rows_count(real: Callable[..., Any]) -> Callable[..., Any]:
    """Averages divide by the number of rows, not by that of values."""

    def called(self: Any, call: Any, parts: Any, there: Any, failed: Any) -> Any:
        rows = next(name for name in parts[self._counted] if name.endswith("count(*)"))
        held = (call.held[0], PartColumn(self._counted, rows)) if call.argument is not None else call.held
        return real(self, replace(call, held=held), parts, there, failed)

    return called


def _after_for_before(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: replace(found := real(self, *args), after=found.before)


def _once(real: Callable[..., Any]) -> Callable[..., Any]:
    def read(self: Any, *args: Any) -> Any:
        found = real(self, *args)
        return replace(found, before=np.minimum(found.before, 1), after=np.minimum(found.after, 1))

    return read


def _counts_decide(real: Callable[..., Any]) -> Callable[..., Any]:
    def changing(self: Any, partials: pa.Table) -> pa.Table:
        at = next(n for n, one in enumerate(self._kept) if one.name == self._rows)
        return partials.filter(pa.array(partials[f"a{at}"].to_numpy() != 0))

    return changing


def _nulls_like(found: pa.Table) -> pa.Table:
    return pa.table([pa.nulls(len(found), column.type) for column in found.columns], names=found.column_names)


def _from_one(real: Callable[..., Any]) -> Callable[..., Any]:
    def numbered(self: Any, before: Any, after: Any) -> Any:
        row, weight, copy = real(self, before, after)
        return row, weight, copy - np.minimum(before, after)[row]

    return numbered


def _without_always(asked: Any) -> dict[str, Any]:
    return {"always": ()}


MUTANTS: tuple[Mutant, ...] = (
    Mutant("nulls are counted", PreAggregationOperator, wrapped(Count, "partial", _counts), (COUNTED,)),
    Mutant(
        "FILTER is not asked",
        PreAggregationOperator,
        planned(
            PreAggregationOperator,
            lambda asked: {"accumulators": tuple(replace(one, filter=None) for one in asked.accumulators)},
        ),
        (FILTERED,),
    ),
    Mutant(
        "rows without a group's value are in no group",
        PreAggregationOperator,
        wrapped(pre_aggregation.PreAggregationWorker, "pack", _nulls_are_no_group),
        (COUNTED,),
    ),
    Mutant(
        "sums only grow",
        PreAggregationOperator,
        wrapped(
            NarrowSum,
            "partial",
            lambda real: lambda self, values, weights, groups, count: real(self, values, abs(weights), groups, count),
        ),
        (SUMMED,),
    ),
    Mutant(
        "sums are not added to",
        PreAggregationOperator,
        wrapped(NarrowSum, "add", lambda real: lambda self, before, change: change),
        (SUMMED,),
    ),
    Mutant(
        "a group changes only with the number of its rows",
        PreAggregationOperator,
        wrapped(pre_aggregation.PreAggregationWorker, "_changing", _counts_decide),
        (SUMMED,),
    ),
    Mutant(
        "min is max",
        ExtremeOperator,
        planned(ExtremeOperator, lambda asked: {"ends": tuple(replace(end, function="max") for end in asked.ends)}),
        (ENDS,),
    ),
    Mutant(
        "a value that goes stays",
        ExtremeOperator,
        returned(extreme.ExtremeWorker, "pack", without_departures),
        (ENDS,),
    ),
    Mutant(
        "FILTER is not asked",
        ExtremeOperator,
        planned(ExtremeOperator, lambda asked: {"filter": None}),
        (FILTERED_END,),
    ),
    Mutant(
        "a change of the last value is not noticed",
        ExtremeOperator,
        wrapped(
            extreme,
            "_same",
            lambda real: (
                lambda a, b: pa.array(
                    real(a, b).to_numpy(zero_copy_only=False) | a.is_valid().to_numpy(zero_copy_only=False)
                )
            ),
        ),
        (ENDS,),
    ),
    Mutant(
        "a group keeps its rows as they were",
        GroupReevaluationOperator,
        wrapped(partitions.Partitions, "read", _after_for_before),
        (MEDIAN,),
    ),
    Mutant(
        "equal rows count once", GroupReevaluationOperator, wrapped(partitions.Partitions, "read", _once), (MEDIAN,)
    ),
    Mutant(
        "there is nothing over nothing",
        GroupReevaluationOperator,
        planned(GroupReevaluationOperator, _without_always),
        (MEDIAN_OF_ALL,),
    ),
    Mutant(
        "a call is another",
        GroupReevaluationOperator,
        planned(
            GroupReevaluationOperator,
            lambda asked: {
                "calls": tuple(replace(call, sql=call.sql.replace("MEDIAN", "MAX")) for call in asked.calls)
            },
        ),
        (MEDIAN,),
    ),
    Mutant("there is nothing over nothing", AggregateOperator, planned(AggregateOperator, _without_always), (TOTAL,)),
    Mutant(
        "a sum of nothing is zero",
        AggregateOperator,
        wrapped(aggregate, "result", _zero_for_nothing),
        ("SELECT a, sum(price) AS s FROM (SELECT customer AS a, price FROM orders) GROUP BY a",),
    ),
    Mutant(
        "an average counts nulls",
        AggregateOperator,
        wrapped(aggregate.AggregateWorker, "_called", _all_rows_count),
        (AVERAGE,),
    ),
    Mutant(
        "what did not change is not asked for",
        AggregateOperator,
        returned(aggregate.AggregateWorker, "_asked", _nulls_like),
        (MIXED, ENDS),
    ),
    Mutant(
        "a group without rows stays",
        AggregateOperator,
        given(
            aggregate.AggregateWorker,
            "_shown",
            lambda self, work, groups, parts, there, weight: (self, work, groups, parts, there | (weight > 0), weight),
        ),
        (COUNTED,),
    ),
    Mutant(
        "a row appears with its second copy",
        DistinctOperator,
        instead(distinct, "crossings", lambda before, after: (after > 1).astype(np.int64) - (before > 1)),
        (DIFFERENT,),
    ),
    Mutant(
        "a row goes with any copy",
        DistinctOperator,
        instead(
            distinct,
            "crossings",
            lambda before, after: (after > before).astype(np.int64) * (before == 0) - (after < before),
        ),
        (DIFFERENT,),
    ),
    Mutant(
        "copies are not added up",
        DistinctOperator,
        wrapped(Copies, "_counts", lambda real: lambda self, records: np.minimum(real(self, records), 1)),
        (DIFFERENT,),
    ),
    *(
        Mutant(name, SetOperator, planned(SetOperator, lambda asked, kind=kind: {"kind": kind}), (view,))  # type: ignore[misc]
        for name, kind, view in (
            ("EXCEPT is INTERSECT", SetKind.INTERSECT, "SELECT a FROM visits EXCEPT SELECT score FROM customers"),
            ("INTERSECT is UNION", SetKind.UNION, "SELECT a FROM visits INTERSECT SELECT score FROM customers"),
            ("UNION is EXCEPT", SetKind.EXCEPT, "SELECT a FROM visits UNION SELECT score FROM customers"),
        )
    ),
    Mutant(
        "the sides are exchanged",
        SetOperator,
        given(set_operation.SetWorker, "_result", lambda self, counts: (self, counts[:, ::-1])),
        ("SELECT a FROM visits EXCEPT SELECT score FROM customers",),
    ),
    Mutant(
        "copies are taken away once",
        SetOperator,
        wrapped(
            set_operation.SetWorker, "_result", lambda real: lambda self, counts: real(self, np.minimum(counts, 1))
        ),
        (
            "SELECT a FROM visits EXCEPT ALL SELECT score FROM customers",
            "SELECT a FROM visits INTERSECT ALL SELECT b FROM visits",
        ),
    ),
    Mutant(
        "a null that is left over is forgotten",
        SetOperator,
        emitted(SetOperator, without_nulls),
        ("SELECT a FROM visits EXCEPT ALL SELECT score FROM customers",),
    ),
    Mutant(
        "copies are numbered from one again",
        SetOperator,
        wrapped(set_operation.SetWorker, "_numbered", _from_one),
        ("SELECT a FROM visits EXCEPT ALL SELECT score FROM customers",),
    ),
)
