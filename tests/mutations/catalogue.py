"""All mutants, and those that are missed.

What is missed is listed with the reason why neither safeguard can notice it.
"""

from __future__ import annotations

from everview.plan.maintenance.operator_definitions import DeltaOperator, IndexOperator
from tests.mutations import (
    building_clauses,
    building_joins,
    building_orders,
    changes,
    grouping,
    joining,
    partitioning,
    rowwise,
    rules_filters,
    rules_shapes,
    trees,
    writing,
)
from tests.mutations.mutant import Mutant
from tests.mutations.targets import Target

MUTANTS: tuple[Mutant, ...] = (
    *trees.MUTANTS,
    *writing.MUTANTS,
    *building_clauses.MUTANTS,
    *building_joins.MUTANTS,
    *building_orders.MUTANTS,
    *rules_filters.MUTANTS,
    *rules_shapes.MUTANTS,
    *changes.MUTANTS,
    *rowwise.MUTANTS,
    *grouping.MUTANTS,
    *joining.MUTANTS,
    *partitioning.MUTANTS,
)

MISSED: dict[tuple[Target, str], str] = {
    (DeltaOperator, "what a log says to be gone is forgotten"): "a trial is given rows that come and go, and no log",
}
"""Mutants that go live, each with the reason."""

NOT_A_QUERY: dict[Target, str] = {
    IndexOperator: "an index computes nothing: it is written by the worker that writes views",
}
"""Targets without mutants of their own."""
