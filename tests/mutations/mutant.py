"""Mutants, and the ways to inject a fault.

A fault wraps the real function, parameter or tree, so that everything else of the product stays as it
is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from everview.change.entries import WEIGHT
from everview.maintain import trial
from everview.operators.bound import Edge
from everview.operators.stages import Stage
from everview.plan import compile as compiling
from everview.plan.maintenance import MaintenancePlan, Step, plan_group
from everview.plan.maintenance.operator_base import Operator
from everview.plan.maintenance.operator_definitions import ViewOperator
from everview.sql import definition_statements, passes
from tests.mutations.targets import Target

Planned = TypeVar("Planned", bound=Operator)
Fault: TypeAlias = Callable[[pytest.MonkeyPatch], None]
Change: TypeAlias = Callable[[exp.Expr], None]
"""Changes a tree in place."""


@dataclass(frozen=True)
class Mutant:
    """One fault, and views in which it shows: it is caught if each of them is."""

    name: str
    breaks: Target
    inject: Fault
    views: tuple[str, ...]


# ------------------------------------------------------------------ faults in code


def wrapped(owner: object, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Fault:
    """A function replaced by what is made of it."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, name, around(getattr(owner, name)))

    return inject


def instead(owner: object, name: str, other: Any) -> Fault:
    """A function or value replaced by another."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(owner, name, other)

    return inject


def entry(table: Mapping[Any, Any], key: object, other: Any) -> Fault:
    """An entry of a table of the code replaced by another."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(table, key, other)

    return inject


def returned(owner: object, name: str, change: Callable[..., Any]) -> Fault:
    """What a function returns, changed."""
    return wrapped(owner, name, lambda real: lambda *args, **kwargs: change(real(*args, **kwargs)))


def given(owner: object, name: str, change: Callable[..., Sequence[Any]]) -> Fault:
    """What a function is given, changed."""
    return wrapped(owner, name, lambda real: lambda *args: real(*change(*args)))


# ------------------------------------------------------------------ faults in plans


def planned(kind: type[Planned], change: Callable[[Planned], Mapping[str, Any]]) -> Fault:
    """A plan that asks a wrong thing of an operator: some of its fields are others."""

    def changed(step: Step) -> Step:
        if type(step.operator) is not kind:
            return step
        return replace(step, operator=replace(step.operator, **change(step.operator_as(kind))))

    def inject(patch: pytest.MonkeyPatch) -> None:
        def faulty(views: Any) -> MaintenancePlan:
            plan = plan_group(views)
            return replace(plan, steps=tuple(map(changed, plan.steps)))

        patch.setattr(trial, "plan_group", faulty)

    return inject


# ------------------------------------------------------------------ faults in changes

Changed: TypeAlias = Callable[[pa.Table], pa.Table]


def emitted(kind: type[Operator], change: Changed) -> Fault:
    """Changes that a step emits (that it is sent, where it emits none), changed on the way."""

    def inject(patch: pytest.MonkeyPatch) -> None:
        real = Stage._changes

        def changes(self: Stage, step: Step, worker: Any, packed: Any, sources: Any) -> Any:
            if type(step.operator) is not kind:
                return real(self, step, worker, packed, sources)
            if kind is ViewOperator:
                packed = {
                    edge: list(map(change, parts)) if _leads_to(edge, step) else parts for edge, parts in packed.items()
                }
                return real(self, step, worker, packed, sources)
            found = real(self, step, worker, packed, sources)
            return found if found is None else change(found)

        patch.setattr(Stage, "_changes", changes)

    return inject


def _leads_to(edge: Edge, step: Step) -> bool:
    return bool(edge.target == step.fingerprint)


def filtered(rows: pa.Table, kept: Any) -> pa.Table:
    return rows.filter(pa.array(np.asarray(kept, np.bool_)))


def weights(rows: pa.Table) -> Any:
    return rows[WEIGHT].to_numpy()


def reweighted(rows: pa.Table, numbers: Any) -> pa.Table:
    return rows.set_column(rows.column_names.index(WEIGHT), WEIGHT, pa.array(numbers))


def without_departures(rows: pa.Table) -> pa.Table:
    """What goes is forgotten."""
    return filtered(rows, weights(rows) > 0)


def without_nulls(rows: pa.Table) -> pa.Table:
    """Rows with a null are forgotten."""
    kept = np.ones(len(rows), np.bool_)
    for column in rows.columns:
        kept &= ~column.combine_chunks().is_null().to_numpy(zero_copy_only=False)
    return filtered(rows, kept)


def without_last(rows: pa.Table) -> pa.Table:
    """The last change is forgotten."""
    return rows[: len(rows) - 1]


def turned(rows: pa.Table) -> pa.Table:
    """What comes goes, and what goes comes."""
    return reweighted(rows, -weights(rows))


# ------------------------------------------------------------------ faults in trees


def parsed(change: Change) -> Fault:
    """A parser that reads something else."""
    return returned(definition_statements, "query", lambda tree: _changed(tree, change))


def expanded(change: Change) -> Fault:
    """Names of queries are expanded, and something else happens on the way."""
    return returned(passes, "expanded", lambda found: (_changed(found[0], change), found[1]))


def resolved(change: Change) -> Fault:
    """Columns are tied to their tables, and something else happens on the way."""
    return returned(compiling, "check", lambda found: replace(found, tree=_changed(found.tree, change)))


def _changed(tree: exp.Expr, change: Change) -> exp.Expr:
    holder = exp.Paren(this=tree.copy())
    change(holder)
    found: exp.Expr = holder.this
    found.pop()
    return found
