"""Relations to drafts of steps: one function for each kind of relation, in the table below.

A relation with the fields that are needed of it becomes a stream, inputs first,
and every step on the way is found by its fingerprint or made.

Projections are no steps: a computed column is carried as an expression over the columns that
are there, until a step keeps it or sends it on. So two views that compute different things of
the same rows share everything below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from everview.plan.maintenance.aggregate_steps import aggregate, distinct, set_operation
from everview.plan.maintenance.context import CompileContext
from everview.plan.maintenance.join_steps import join
from everview.plan.maintenance.partition_steps import reevaluation, top_k, window
from everview.plan.maintenance.rowwise_steps import filtered, projected, rows, scan, union, unnest
from everview.plan.maintenance.sketch import Stream
from everview.plan.relations import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    QueryRows,
    Reevaluate,
    Relation,
    Scan,
    SetOperation,
    TopK,
    Union,
    Unnest,
    Window,
)

COMPILED_BY: Mapping[type[Relation], Callable[[Any, frozenset[str], CompileContext], Stream]] = {
    Scan: scan,
    QueryRows: rows,
    Filter: filtered,
    Project: projected,
    Unnest: unnest,
    Union: union,
    Aggregate: aggregate,
    Distinct: distinct,
    SetOperation: set_operation,
    Join: join,
    Window: window,
    TopK: top_k,
    Reevaluate: reevaluation,
}
