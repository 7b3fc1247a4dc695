"""Plans of real queries: their views are what the queries say, and state is where its rows are."""

from __future__ import annotations

import pytest

from everview.plan.maintenance import MaintenancePlan, ViewInput, plan_group
from everview.plan.rules import rewrite
from tests.plan.build_queries import OPERATORS, REEVALUATED
from tests.plan.evaluate_plan import Evaluation, Where
from tests.plan.shop import built, filled


def rounded(rows: list[tuple[object, ...]]) -> list[str]:
    """Rows in one order, floats without the digits that depend on the order of additions."""
    return sorted(repr(tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row)) for row in rows)


def view_of(name: str, text: str) -> ViewInput:
    found = built(text)
    return ViewInput(name, rewrite(found.relation))


@pytest.mark.parametrize("text", [*OPERATORS, *REEVALUATED])
def test_a_planned_view_is_what_its_query_says(text: str) -> None:
    plan = plan_group([view_of("v", text)], before_images=False)
    places: Where = {}
    for seed in range(2):
        connection = filled(seed)
        expected = connection.execute(text).fetchall()
        assert rounded(Evaluation(plan, connection, places).view("v")) == rounded(expected), f"seed {seed}"


def test_the_views_of_one_group_do_not_disturb_each_other() -> None:
    texts = {f"v{number:03}": text for number, text in enumerate(OPERATORS)}
    plan = plan_group([view_of(name, text) for name, text in texts.items()])
    assert MaintenancePlan.from_json(plan.to_json()) == plan
    places: Where = {}
    for seed in range(2):
        connection = filled(seed)
        evaluation = Evaluation(plan, connection, places)
        for name, text in texts.items():
            assert rounded(evaluation.view(name)) == rounded(connection.execute(text).fetchall()), text
