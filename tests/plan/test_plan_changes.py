"""A plan to which views are joined one at a time is the plan of all of them."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterable
from dataclasses import replace

import pytest

from everview.change.types import INTEGER
from everview.plan.compile import compile_text
from everview.plan.maintenance import (
    MaintenancePlan,
    PlanChange,
    Role,
    ViewInput,
    changed,
    continued,
    joined,
    plan_group,
    restricted,
    without,
)
from everview.plan.maintenance.model import Constants
from everview.plan.maintenance.recorded import decoded, encoded
from everview.sql.namespace import Names
from tests.plan.build_queries import OPERATORS, REEVALUATED
from tests.plan.evaluate_plan import Evaluation, Where
from tests.plan.shop import filled, relations
from tests.plan.test_maintenance_corpora import rounded, view_of

FAMILIES = [
    "SELECT id, amount FROM orders WHERE amount > {}",
    "SELECT customer, sum(amount) AS total FROM orders WHERE amount < {} GROUP BY customer",
    "SELECT o.id, c.city FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE o.amount > {}",
    "SELECT id, amount, customer FROM orders WHERE amount > {}",
]
MEMBERS = {f"f{n}_{k:02}": text.format(k) for n, text in enumerate(FAMILIES) for k in range(12)}


def normal(plan: MaintenancePlan) -> object:
    """What two plans must agree in: not in the order of steps that do not read each other, nor of
    members, nor in what steps in between are called, nor in which zones of a stage were one because of a view that is
    gone, nor in types that are wide for the constants of such a view."""
    written = {view.step for view in plan.views}
    steps = {
        step.fingerprint: (
            step.operator.meaning or step.operator.name,
            step.operator.identity(),
            step.operator.gained,
            step.title if step.fingerprint in written else "",
            step.inputs,
            step.fields,
            step.zone_key,
            [replace(state, role=Role.PARTITION, name=state.name.partition(" ")[2]) for state in step.states],
            step.constants and frozenset(step.constants.rows),
        )
        for step in plan.steps
    }
    families = {family.step: (family.title, family.views) for family in plan.families}
    return steps, plan.tables, {step: zone.stage for step, zone in plan.zone_of.items()}, plan.views, families


class Group:
    """A group whose views come and go, planned by changes where there are any; and planned as a whole beside."""

    def __init__(self, inputs: Iterable[ViewInput]) -> None:
        self.inputs = {one.name: one for one in inputs}
        self.plan = plan_group(list(self.inputs.values()))
        self.changes = 0

    def whole(self) -> MaintenancePlan:
        return continued(plan_group(list(self.inputs.values())), self.plan)

    def join(self, *new: ViewInput) -> bool:
        """Whether that was a change."""
        own = continued(plan_group(new), self.plan)
        self.inputs |= {one.name: one for one in new}
        return self._goes_on(joined(self.plan, own))

    def leave(self, names: Collection[str]) -> bool:
        for name in names:
            del self.inputs[name]
        return self._goes_on(without(self.plan, names))

    def _goes_on(self, change: PlanChange | None) -> bool:
        whole = self.whole()
        if change is None:
            self.plan = whole
            return False
        self.changes += 1
        recorded = json.loads(json.dumps(encoded(change)))
        assert decoded(PlanChange, recorded) == change
        self.plan = changed(self.plan, change)
        assert normal(self.plan) == normal(whole)
        assert dict(self.plan.by_name) == {view.name: view for view in self.plan.views}
        assert self.plan.by_fingerprint == {step.fingerprint: step for step in self.plan.steps}
        assert MaintenancePlan.from_json(json.loads(json.dumps(self.plan.to_json()))) == self.plan
        return True


def test_a_member_joins_a_family_and_leaves_it() -> None:
    group = Group(view_of(name, MEMBERS[name]) for name in sorted(MEMBERS) if name < "f1" and not name.endswith("07"))
    before = group.plan
    assert group.join(view_of("f0_07", MEMBERS["f0_07"]))
    change = joined(before, continued(plan_group([view_of("f0_07", MEMBERS["f0_07"])]), before))
    assert change is not None and change.zones is None and not change.tables and not change.families
    assert {one.entered for one in change.steps if one.entered} == {(("7",),)}
    assert group.leave(["f0_03"])
    assert group.leave(["f0_07"])
    assert "family of 10 selections" in group.plan.families[0].title


@pytest.mark.parametrize("seed", range(12))
def test_views_that_come_and_go(seed: int) -> None:
    rng = random.Random(seed)
    texts = {f"o{n:03}": text for n, text in enumerate([*OPERATORS, *REEVALUATED])} | MEMBERS
    names = rng.sample(sorted(texts), 60)
    group = Group(view_of(name, texts[name]) for name in names[:20])
    for name in names[20:]:
        group.join(view_of(name, texts[name]))
        if rng.random() < 0.4:
            group.leave(rng.sample(sorted(group.inputs), rng.randint(1, 2)))
    assert group.changes > 10, "most views join without a new plan"
    places: Where = {}
    connection = filled(seed)
    evaluation = Evaluation(group.plan, connection, places)
    for name in group.inputs:
        expected = connection.execute(texts[name]).fetchall()
        assert rounded(evaluation.view(name)) == rounded(expected), texts[name]


def test_views_that_read_views() -> None:
    texts = {
        **{f"high{n}": f"SELECT id, customer, amount FROM orders WHERE amount > {n}" for n in range(6)},
        **{f"of{n}": f"SELECT customer, count(*) AS k FROM high{n} GROUP BY customer" for n in range(6)},
    }
    known = list(relations())
    inputs: dict[str, ViewInput] = {}
    for name, text in texts.items():
        compiled = compile_text(f"CREATE MATERIALIZED VIEW {name} AS {text}", Names(known))
        known.append(compiled.named)
        inputs[name] = compiled.input
    names = [*(f"high{n}" for n in range(6)), *(f"of{n}" for n in range(5))]
    plan = plan_group([inputs[name] for name in names])
    own = continued(restricted(plan_group([inputs["high5"], inputs["of5"]]), ["of5"]), plan)
    change = joined(plan, own)
    assert change is not None
    whole = plan_group(list(inputs.values()))
    assert normal(changed(plan, change)) == normal(continued(whole, plan))
    gone = without(changed(plan, change), ["of5"])
    assert gone is not None
    assert normal(changed(changed(plan, change), gone)) == normal(plan)


@pytest.mark.parametrize("text", FAMILIES)
def test_a_family_begins_and_ends(text: str) -> None:
    """Titles are those of a plan of all views, down to the only member, whose constants they show."""
    group = Group([view_of("f05", text.format(5)), view_of("other", "SELECT id, price FROM orders")])
    for number in (3, 9, 1, 7, 4):
        assert group.join(view_of(f"f{number:02}", text.format(number)))
    assert group.join(view_of("again", text.format(5))), "the same member twice"
    for number in (5, 3, 9, 1, 7):
        assert group.leave([f"f{number:02}"])
    assert group.leave(["again"])
    assert not group.plan.families
    assert group.leave(["f04"])
    assert [view.name for view in group.plan.views] == ["other"]


@pytest.mark.parametrize(
    ("constants", "kind"),
    [
        (["5", "12345678901"], "BIGINT"),
        (["12345678901", "5"], "BIGINT"),
        (["1.5", "20", "3.25"], "DECIMAL(4,2)"),
        (["5", "12345678901", "0.5"], "DECIMAL(12,1)"),
    ],
)
def test_a_parameter_is_as_wide_as_its_constants(constants: list[str], kind: str) -> None:
    text = "SELECT id, amount FROM orders WHERE amount > {}"
    group = Group([view_of("v0", text.format(constants[0]))])
    for number, constant in enumerate(constants[1:], start=1):
        assert group.join(view_of(f"v{number}", text.format(constant)))
    types = {str(one) for step in group.plan.steps if step.constants for one in step.constants.types}
    assert types == {kind}
    whole = {step.fingerprint: step.constants and step.constants.types for step in group.whole().steps}
    assert whole == {step.fingerprint: step.constants and step.constants.types for step in group.plan.steps}


def test_a_view_of_another_group_of_logs_does_not_join() -> None:
    with_images, without_images = (
        plan_group([view_of(name, MEMBERS["f0_01"])], images) for name, images in (("a", True), ("b", False))
    )
    assert joined(with_images, without_images) is None


def test_members_that_are_gone_are_known_without_looking_at_the_others() -> None:
    first = Constants((INTEGER,), tuple((str(number),) for number in range(100)))
    second = first.changed(first.types, [("3",), ("7",)], [("200",)])
    third = second.changed(first.types, [("9",)], [("3",)])
    assert set(second.gone_since(first)) == {("3",), ("7",)}
    assert set(third.gone_since(second)) == {("9",)}
    assert set(third.gone_since(first)) == {("7",), ("9",)}
    assert set(first.gone_since(third)) == {("200",)}
    assert second == Constants(first.types, second.members)
    assert set(second.rows) == set(second.members)
