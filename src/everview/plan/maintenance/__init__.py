"""Relations to a maintenance plan: steps, their state, and zones."""

from __future__ import annotations

from everview.plan.maintenance.change import PlanChange, changed, joined, without
from everview.plan.maintenance.costs import Amount, Change, Cost, costs, notices
from everview.plan.maintenance.evolution import PlanDifference, continued, difference, restricted
from everview.plan.maintenance.group import ViewInput, plan_group
from everview.plan.maintenance.model import (
    Constants,
    Family,
    Input,
    MaintenancePlan,
    PlannedView,
    ReadOrder,
    Role,
    Shape,
    ShownColumn,
    State,
    Step,
    TableUse,
    Zone,
)

__all__ = [
    "Amount",
    "Change",
    "Constants",
    "Cost",
    "Family",
    "Input",
    "MaintenancePlan",
    "PlanChange",
    "PlanDifference",
    "PlannedView",
    "ReadOrder",
    "Role",
    "Shape",
    "ShownColumn",
    "State",
    "Step",
    "TableUse",
    "ViewInput",
    "Zone",
    "changed",
    "continued",
    "costs",
    "difference",
    "joined",
    "notices",
    "plan_group",
    "restricted",
    "without",
]
