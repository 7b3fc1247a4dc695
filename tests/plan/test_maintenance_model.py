"""The definitions of a maintenance plan check themselves and survive being recorded."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from everview.change.schema import KeyPart
from everview.change.types import BIGINT, decimal, parse_type
from everview.errors import DefinitionError
from everview.plan.expressions import Field
from everview.plan.maintenance.fingerprint import fingerprint, member_fingerprint
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
from everview.plan.maintenance.operator_definitions import DeltaOperator, ViewOperator
from everview.plan.maintenance.operator_parts import ComputedColumn, TableColumn

ID = Field("orders.id", BIGINT, nullable=False)
AMOUNT = Field("orders.amount", decimal(10, 2))
DELTA = Step(
    "d",
    DeltaOperator(table="orders", key=("orders.id",), columns=(TableColumn("orders.id", "id"),)),
    "orders",
    (),
    (ID, AMOUNT),
    ("orders.id",),
)
STATE = State("s", "VIEW large", Role.VIEW, Shape.RECORD, (KeyPart("orders.id", BIGINT),), (AMOUNT,))
VIEW = Step(
    "v",
    ViewOperator(columns=(ComputedColumn("orders.id", '"orders.id"'),), key=("orders.id",)),
    "large",
    (Input("d"),),
    (ID, AMOUNT),
    ("orders.id",),
    (STATE,),
    Constants((BIGINT,), (("1",), ("2",))),
)
PLAN = MaintenancePlan(
    (TableUse("orders", ("id",), (Field("id", BIGINT), Field("tags", parse_type("VARCHAR[]"))), "d"),),
    (DELTA, VIEW),
    (Zone(1, 1, ("orders.id",), ("d", "v")),),
    (
        PlannedView(
            "large",
            "v",
            ("orders.id",),
            (ShownColumn("id", BIGINT, False, "orders.id"),),
            (ReadOrder('"orders.id"', True, True),),
            ("1",),
        ),
    ),
    (Family("family of 2 selections on orders", "v", ("large", "small")),),
)


def test_a_plan_survives_being_recorded() -> None:
    assert MaintenancePlan.from_json(json.loads(json.dumps(PLAN.to_json()))) == PLAN


def test_a_plan_of_another_format_is_refused() -> None:
    with pytest.raises(DefinitionError, match="format 99"):
        MaintenancePlan.from_json({**PLAN.to_json(), "format": 99})


def test_fingerprints_are_the_same_everywhere() -> None:
    assert fingerprint("filter", {"b": 1, "a": ["é", None]}, ["00"]) == "462c9d7155c1ba72671195429573b1c6"
    assert member_fingerprint("00", ("1", "'a'")) == "58fa7e7854f707ab14232a9bd6b47599"
    assert member_fingerprint("00", ()) == "00"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"steps": (VIEW, DELTA)}, "not before it"),
        ({"steps": (DELTA, DELTA)}, "a step twice"),
        ({"zones": ()}, "exactly one zone"),
        ({"views": (replace(PLAN.views[0], step="x"),)}, "by a step of the plan"),
    ],
)
def test_a_plan_that_does_not_hang_together_is_refused(change: dict, complaint: str) -> None:
    with pytest.raises(DefinitionError, match=complaint):
        replace(PLAN, **change)


def test_a_state_holds_each_column_once_and_only_bags_are_ordered() -> None:
    with pytest.raises(DefinitionError, match="twice"):
        replace(STATE, fields=(ID,))
    with pytest.raises(DefinitionError, match="no order"):
        replace(STATE, order=(KeyPart("orders.amount", BIGINT),))


def test_every_member_gives_every_parameter_a_value() -> None:
    with pytest.raises(DefinitionError, match="every parameter"):
        Constants((BIGINT,), ((),))


def test_what_a_view_needs_and_who_needs_a_step() -> None:
    assert PLAN.steps_of("large") == (DELTA, VIEW)
    assert PLAN.users == {"d": ("large",), "v": ("large",)}
    assert PLAN.view_fingerprint("large") == member_fingerprint("s", ("1",))
    assert PLAN.shuffles == 0
